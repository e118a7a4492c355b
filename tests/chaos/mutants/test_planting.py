"""Every mutant still differs from the operator as it is, and says so when it cannot."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from . import MUTANTS, Mutant, Patch, RottenError, plant

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_every_mutant_can_still_be_planted(mutant: Mutant, tmp_path: Path) -> None:
    place = plant(mutant, tmp_path)
    for patch in mutant.patches:
        changed = (place / "tutti" / patch.file).read_text()
        assert patch.new in changed
        ast.parse(changed)


@pytest.mark.parametrize("text", ["no such line", "import"], ids=["not there", "there often"])
def test_a_mutant_whose_code_has_moved_on_is_an_error(text: str, tmp_path: Path) -> None:
    rotten = Mutant("has rotted", (Patch("loop/cycle.py", text, ""),))
    with pytest.raises(RottenError, match=r"has rotted: loop/cycle\.py has"):
        plant(rotten, tmp_path)


def test_a_mutant_whose_file_has_moved_is_an_error(tmp_path: Path) -> None:
    rotten = Mutant("has rotted", (Patch("gone.py", "x", "y"),))
    with pytest.raises(RottenError, match=r"gone\.py has 'x' 0 times"):
        plant(rotten, tmp_path)
