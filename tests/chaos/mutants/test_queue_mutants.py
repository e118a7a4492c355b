"""``verify`` and the oracle catch a planner that breaks a rule of queues."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from . import Mutant, plant, printed
from .catalogue import (
    BORROWS_IN_ANY_ORDER,
    EXCEEDS_LIMITS,
    FORGETS_TIERS,
    KNOWS_NO_COVER,
    UNLAWFUL_QUEUE_MUTANTS,
)

ROOT = Path(__file__).parents[3]
CLUSTERS = "400"  # that the oracle draws at most, until one shows the mutant


def violations(place: Path) -> str:
    """What the plans of this operator break."""
    return printed("queue_scenes", place)


@pytest.mark.parametrize(
    ("mutant", "sentence"),
    [
        (EXCEEDS_LIMITS, "cap queue a: 5 of 4 cpu would be in use"),
        (KNOWS_NO_COVER, "although its queue guarantees it"),
        (FORGETS_TIERS, "starts in its place beyond the guarantee of its own"),
        (BORROWS_IN_ANY_ORDER, "although its queue has borrowed less"),
    ],
    ids=str,
)
def test_the_judge_catches_a_planner_that_forgets_queues(
    mutant: Mutant, sentence: str, tmp_path: Path
) -> None:
    assert sentence in violations(plant(mutant, tmp_path))


def test_the_planner_as_it_is_breaks_nothing() -> None:
    assert violations(ROOT / "operator") == ""


@pytest.mark.parametrize("mutant", UNLAWFUL_QUEUE_MUTANTS, ids=str)
def test_the_oracle_catches_a_planner_that_breaks_a_rule_of_queues(
    mutant: Mutant, tmp_path: Path
) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.conformance.queue_oracle",
        "--first",
        "--runs",
        CLUSTERS,
    ]
    environ = {**os.environ, "PYTHONPATH": str(plant(mutant, tmp_path))}
    run = subprocess.run(
        command, cwd=ROOT, env=environ, text=True, check=False, capture_output=True
    )
    assert run.returncode == 1, run.stdout
    assert "seed " in run.stdout
