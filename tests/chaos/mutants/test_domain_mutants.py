"""``verify`` catches a planner that breaks a rule on domains or segments."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import Mutant, plant, printed
from .catalogue import (
    FORGETS_DOMAINS,
    FORGETS_INDEXES,
    FORGETS_INDEXES_OF_REPAIRS,
    FORGETS_SEGMENTS,
    FORGETS_SEGMENTS_OF_REPAIRS,
    HOLDS_ROOM_IN_ANY_DOMAIN,
    REPAIRS_IN_ANY_DOMAIN,
)

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
        (FORGETS_SEGMENTS, "gang ml/new: more than one segment of rack would be short"),
        (FORGETS_INDEXES, "gang ml/new-by-index: a segment would be in several domains"),
        (FORGETS_INDEXES_OF_REPAIRS, "gang ml/lost-two: a segment would be in several domains"),
        (HOLDS_ROOM_IN_ANY_DOMAIN, "gang ml/absent-one: it would be in these domains of rack: r"),
    ],
    ids=str,
)
def test_the_judge_catches_a_planner_that_forgets_domains(
    mutant: Mutant, sentence: str, tmp_path: Path
) -> None:
    assert sentence in violations(plant(mutant, tmp_path))


def test_the_planner_as_it_is_breaks_nothing() -> None:
    assert violations(ROOT / "operator") == ""
