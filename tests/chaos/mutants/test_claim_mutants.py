"""The enumeration, and ``verify`` alone where a claim is unlawful, catch wrong claims."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from . import Mutant, plant
from .catalogue import CLAIM_MUTANTS, UNLAWFUL_CLAIM_MUTANTS

ROOT = Path(__file__).parents[3]
HISTORIES = "1200"  # at most, until one shows the mutant


@pytest.mark.parametrize("mutant", CLAIM_MUTANTS, ids=str)
def test_the_enumeration_catches_wrong_claims(mutant: Mutant, tmp_path: Path) -> None:
    run = judged(mutant, tmp_path)
    assert run.returncode == 1, run.stdout
    assert "seed " in run.stdout


@pytest.mark.parametrize("mutant", UNLAWFUL_CLAIM_MUTANTS, ids=str)
def test_verify_catches_unlawful_claims(mutant: Mutant, tmp_path: Path) -> None:
    run = judged(mutant, tmp_path, "--verify")
    assert run.returncode == 1, run.stdout
    assert "seed " in run.stdout


def judged(mutant: Mutant, place: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.conformance.preemption", "--histories", "0"]
    command += ["--judged", HISTORIES, "--first", *options]
    environ = {**os.environ, "PYTHONPATH": str(plant(mutant, place))}
    return subprocess.run(
        command, cwd=ROOT, env=environ, text=True, check=False, capture_output=True
    )
