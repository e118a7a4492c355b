"""The lock files: each package once, with the hashes of the wheels for amd64 and arm64.

pip resolves them, so that what is locked is what pip would install; only names, versions and
hashes are written, never where they came from. A package without a wheel for one of the two kinds
of machine cannot be locked.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from . import dependencies

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from packaging.requirements import Requirement

LOCKS = dependencies.PROJECT / "locks"
MACHINES = ("x86_64", "aarch64")
# The image's glibc is newer than any of these.
_GLIBC = ("2_34", "2_31", "2_28", "2_27", "2_26", "2_24", "2_17")
_HEAD = """\
# Made by `make lock` from pyproject.toml and constraints.txt: {what}.
# Python {python}; hashes of the wheels for {machines}.
"""


def files() -> Mapping[str, tuple[str, Sequence[Requirement]]]:
    """The lock files by name: what each is for, and what it begins with."""
    return {
        "run.txt": ("what the image runs", dependencies.of_the_image()),
        "build.txt": ("what its wheel is built with", dependencies.of_the_build()),
    }


def lock() -> Iterator[Path]:
    """Write the lock files again."""
    for name, (what, roots) in files().items():
        pinned: dict[str, tuple[str, set[str]]] = {}
        for machine in MACHINES:
            for package, version, digest in _resolved(roots, machine):
                pinned.setdefault(package, (version, set()))[1].add(digest)
        head = _HEAD.format(what=what, python=dependencies.PYTHON, machines=" and ".join(MACHINES))
        path = LOCKS / name
        path.write_text(head + "".join(_line(*item) for item in sorted(pinned.items())))
        yield path


def _line(package: str, pinned: tuple[str, set[str]]) -> str:
    version, digests = pinned
    hashes = [f"    --hash=sha256:{digest}" for digest in sorted(digests)]
    return " \\\n".join([f"{package}=={version}", *hashes]) + "\n"


def _resolved(roots: Sequence[Requirement], machine: str) -> Iterator[tuple[str, str, str]]:
    """Name, version and hash of every wheel that pip would install on such a machine."""
    platforms = [f"manylinux_{glibc}_{machine}" for glibc in _GLIBC]
    platforms += [f"manylinux2014_{machine}", f"linux_{machine}"]
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run"]
        command += ["--ignore-installed", "--only-binary=:all:", "--report", str(report)]
        command += ["--implementation=cp", f"--python-version={dependencies.PYTHON}"]
        command += [f"--platform={platform}" for platform in platforms]
        command += ["--constraint", str(dependencies.PROJECT / "constraints.txt")]
        command += [str(root) for root in roots]
        subprocess.run(command, check=True)
        told: Any = json.loads(report.read_text())
    for each in told["install"]:
        about = each["metadata"]
        digest = each["download_info"]["archive_info"]["hashes"]["sha256"]
        yield canonicalize_name(about["name"]), about["version"], digest
