"""Operators that lack one part of the fencing; each is caught by the test that is named here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from . import Mutant, catalogue, plant

ROOT = Path(__file__).parents[3]
FENCING = "tests/cycle/test_fencing.py::"
DISTURBANCES = "tests/cycle/test_disturbances.py::"
UNSEEN = "tests/cycle/test_unseen.py::"
LOSSES = "tests/cycle/test_late_losses.py::"
EVICTIONS = "tests/cycle/test_late_evictions.py::"
TESTS_FAILED = 1  # pytest's exit code


class Caught(NamedTuple):
    """A mutant, and the test that it fails."""

    mutant: Mutant
    by: str


CAUGHT = (
    Caught(
        catalogue.BINDS_WITHOUT_ASKING_WHO_LEADS,
        FENCING + "test_a_deposed_leader_gives_back_what_it_reserved_and_binds_nothing",
    ),
    Caught(
        catalogue.CARRIES_OUT_WHAT_A_PAST_LEADER_RESERVED,
        FENCING + "test_a_reservation_of_a_past_term_that_turns_up_late_is_deleted_not_carried_out",
    ),
    Caught(
        catalogue.BINDS_WHATEVER_THE_VERSION,
        FENCING + "test_room_is_given_away_only_after_a_late_binding_can_no_longer_succeed",
    ),
    Caught(
        catalogue.BINDS_A_NAMESAKE,
        FENCING + "test_a_member_recreated_under_the_same_name_is_not_bound_by_mistake",
    ),
    Caught(
        catalogue.TAKES_A_NAMESAKE_FOR_BOUND,
        FENCING + "test_a_member_recreated_and_bound_by_hand_is_not_taken_for_the_one_reserved",
    ),
    Caught(
        catalogue.FREES_ROOM_WITHOUT_A_TOUCH,
        FENCING + "test_room_is_given_away_only_after_a_late_binding_can_no_longer_succeed",
    ),
    Caught(
        catalogue.EVICTS_WHATEVER_THE_VERSION,
        EVICTIONS + "test_no_member_that_stays_is_evicted_by_a_leader_that_wakes_up_late",
    ),
    Caught(
        catalogue.KEEPS_A_MEMBER_WITHOUT_A_TOUCH,
        EVICTIONS + "test_no_member_that_stays_is_evicted_by_a_leader_that_wakes_up_late",
    ),
    Caught(
        catalogue.EVICTS_WHO_WAS_SEEN_AFTER_THE_LEASE,
        EVICTIONS + "test_no_member_that_stays_is_evicted_by_a_leader_that_wakes_up_late",
    ),
    Caught(
        catalogue.FORGETS_PODS_THAT_NO_POD_GROUP_CLAIMS,
        UNSEEN + "test_a_reservation_that_went_before_it_was_listed_lets_no_room_be_used_twice",
    ),
    Caught(
        catalogue.TRUSTS_STANDING_RESERVATIONS,
        FENCING + "test_a_standing_reservation_is_verified_before_it_is_carried_out",
    ),
    Caught(
        catalogue.REPAIRS_GANGS_THAT_LOST_EVERYBODY,
        LOSSES + "test_no_repair_is_bound_of_a_gang_that_lost_everybody_before_it_was_reserved",
    ),
)


def _run(test: str, source: Path) -> int:
    """Run one test against the operator of this folder; answers pytest's exit code."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-o", f"pythonpath={source}", test]
    answer = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    return answer.returncode


@pytest.mark.parametrize("caught", CAUGHT, ids=lambda one: str(one.mutant))
def test_a_mutant_without_a_part_of_the_fencing_is_caught(caught: Caught, tmp_path: Path) -> None:
    assert _run(caught.by, plant(caught.mutant, tmp_path)) == TESTS_FAILED


def test_the_tests_that_catch_them_pass_with_the_operator_as_it_is() -> None:
    for test in sorted({caught.by for caught in CAUGHT}):
        assert _run(test, ROOT / "operator") == 0


def test_every_unfenced_mutant_has_a_test_that_catches_it() -> None:
    assert {caught.mutant for caught in CAUGHT} == set(catalogue.UNFENCED)
