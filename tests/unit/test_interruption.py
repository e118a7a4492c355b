"""A command that a signal ends answers 130, wherever the signal comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ..harness.interruption import INTERRUPTED

ROOT = Path(__file__).parents[2]
SIGNAL = "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(9)"
DISCARDED = f"""
import time, weakref

class Gone: pass

gone = Gone()
reference = weakref.ref(gone, lambda _: exec({SIGNAL!r}))
del gone
time.sleep(9)
"""
WRAPPED = f"""
class Field:
    def __set_name__(self, owner, name):
        exec({SIGNAL!r})

class Owner:
    field = Field()
"""


@pytest.mark.parametrize(
    "command",
    [
        SIGNAL,
        f"exec({SIGNAL!r})",
        f"def main(**_):\n    exec({SIGNAL!r})",
        DISCARDED,
        WRAPPED,
    ],
    ids=[
        "in an import",
        "in an import's exec",
        "in the command",
        "in the callback of a weak reference",
        "in __set_name__",
    ],
)
def test_ctrl_c_gives_the_exit_code_that_shells_expect(tmp_path: Path, command: str) -> None:
    """An import of dataclasses runs `exec` of a string."""
    package = tmp_path / "slow"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "command.py").write_text(command)
    (package / "__main__.py").write_text("from tests.harness.interruption import run; run('slow')")
    answer = subprocess.run(
        [sys.executable, "-m", "slow"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stderr) == (INTERRUPTED, "interrupted\n")


# It presses Ctrl-C while the main thread waits for the first thread that starts processes.
FIRST_PROCESS = """
import os, pathlib, signal, sys, threading
from tests.harness.controlplane.processes import spawn

posix_spawn = os.posix_spawn

def interrupted(*arguments, **options):
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    return posix_spawn(*arguments, **options)

os.posix_spawn = interrupted
sys.setswitchinterval(60)
command = [sys.executable, "-c", "input()"]
spawn("first", command, pathlib.Path("log"), environment={}, detached=False)
"""


def test_ctrl_c_ends_a_program_that_starts_its_first_process(tmp_path: Path) -> None:
    """Python waits at its end for every thread that is no daemon; nobody tells this one to end."""
    with pytest.raises(subprocess.CalledProcessError) as refusal:
        subprocess.run(
            [sys.executable, "-c", FIRST_PROCESS],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
            timeout=60,
        )
    assert refusal.value.returncode == -signal.SIGINT, refusal.value.stderr
