"""From a mutant's patches to a folder that PYTHONPATH can name.

Separate from the catalogue, which is a list to read.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
OPERATOR = ROOT / "operator"


class RottenError(Exception):
    """The code that a mutant changes is not there exactly once any more: adapt the mutant."""


@dataclass(frozen=True, slots=True)
class Patch:
    """One replacement in one file of the package; ``old`` is there exactly once."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """An operator with one thing wrong; the name reads after "an operator that"."""

    name: str
    patches: tuple[Patch, ...]

    def __str__(self) -> str:
        """Name the test that runs it."""
        return self.name.replace(" ", "-")


def plant(mutant: Mutant, place: Path) -> Path:
    """Copy the operator into this folder and change the copy; answers what PYTHONPATH must say.

    Raises:
        RottenError: one of the texts to be replaced is not found exactly once.
    """
    package = place / "tutti"
    shutil.copytree(OPERATOR / "tutti", package, ignore=shutil.ignore_patterns("__pycache__"))
    for patch in mutant.patches:
        path = package / patch.file
        text = path.read_text() if path.exists() else ""
        if (found := text.count(patch.old)) != 1:
            raise RottenError(f"{mutant.name}: {patch.file} has {patch.old!r} {found} times")
        path.write_text(text.replace(patch.old, patch.new))
    return place


def printed(scenes: str, operator: Path) -> str:
    """What a module of scenes, run with this operator, prints about its plans."""
    command = [sys.executable, "-m", f"tests.chaos.mutants.{scenes}"]
    environ = {**os.environ, "PYTHONPATH": str(operator)}
    return subprocess.run(
        command, cwd=ROOT, env=environ, text=True, check=True, capture_output=True
    ).stdout
