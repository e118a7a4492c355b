"""``verify`` catches unlawful claims, and the enumeration those that are not the cheapest."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import Mutant, plant, printed
from .catalogue import (
    CLAIMS_BEYOND_LIMITS,
    CLAIMS_WITHOUT_COVER,
    COUNTS_NO_LEAVING_ROOM,
    COVERS_PROTECTED_GANGS_LATE,
    ENDS_COVERED_GANGS,
    ENDS_HALF_GANGS,
    ENDS_ITS_OWN_PRIORITY,
    ENDS_OTHER_QUEUES_BY_PRIORITY,
    ENDS_PROTECTED_GANGS,
    ENDS_THE_FIRST_BY_NAME,
    FORGETS_EARLIER_EVICTIONS,
    GIVES_ROOM_TWICE,
)

ROOT = Path(__file__).parents[3]


def faults(place: Path) -> str:
    """What is wrong with the claims of this operator."""
    return printed("claim_scenes", place)


@pytest.mark.parametrize(
    ("mutant", "sentence"),
    [
        (ENDS_ITS_OWN_PRIORITY, "ml/own is of its queue and has no lower priority"),
        (ENDS_PROTECTED_GANGS, "ml/old cannot be ended"),
        (ENDS_OTHER_QUEUES_BY_PRIORITY, "ml/other is of another queue"),
        (ENDS_COVERED_GANGS, "ml/covered would not borrow"),
        (CLAIMS_WITHOUT_COVER, "ml/above of its queue would lose its cover"),
        (COVERS_PROTECTED_GANGS_LATE, "ml/small would not borrow"),
        (ENDS_HALF_GANGS, "ml/old would be half a gang"),
        (GIVES_ROOM_TWICE, "n0 has too little"),
        (CLAIMS_BEYOND_LIMITS, "queue a would use more 0 than its limit"),
        (FORGETS_EARLIER_EVICTIONS, "and its victims cost"),
        (ENDS_THE_FIRST_BY_NAME, "suffices"),
        (COUNTS_NO_LEAVING_ROOM, "suffices"),
    ],
    ids=str,
)
def test_wrong_claims_are_caught(mutant: Mutant, sentence: str, tmp_path: Path) -> None:
    assert sentence in faults(plant(mutant, tmp_path))


def test_the_claims_as_they_are_have_no_fault() -> None:
    assert faults(ROOT / "operator") == ""
