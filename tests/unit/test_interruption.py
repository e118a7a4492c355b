"""A command that a signal ends answers 130, wherever the signal comes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..harness.interruption import INTERRUPTED

ROOT = Path(__file__).parents[2]
SIGNAL = "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(9)"


@pytest.mark.parametrize(
    "command",
    [SIGNAL, f"exec({SIGNAL!r})", f"def main(**_):\n    exec({SIGNAL!r})"],
    ids=["in an import", "in an import's exec", "in the command"],
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
