"""``verify`` catches a planner that breaks a rule on domains or segments."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import Mutant, plant, printed
from .catalogue import FORGETS_DOMAINS, FORGETS_SEGMENTS_OF_REPAIRS, REPAIRS_IN_ANY_DOMAIN

ROOT = Path(__file__).parents[3]


def violations(place: Path) -> str:
    """What the plans of this operator break."""
    return printed("domain_scenes", place)


@pytest.mark.parametrize(
    ("mutant", "sentence"),
    [
        (FORGETS_DOMAINS, "it would be in these domains of rack: s, t"),
        (REPAIRS_IN_ANY_DOMAIN, "gang ml/lost-one: it would be in these domains of rack: r"),
        (FORGETS_SEGMENTS_OF_REPAIRS, "gang ml/lost-one: it would be in more than 2 segments"),
    ],
    ids=str,
)
def test_the_judge_catches_a_planner_that_forgets_domains(
    mutant: Mutant, sentence: str, tmp_path: Path
) -> None:
    assert sentence in violations(plant(mutant, tmp_path))


def test_the_planner_as_it_is_breaks_nothing() -> None:
    assert violations(ROOT / "operator") == ""
