"""Settings that are wrong: `tutti run` stops before it looks for a cluster."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ..harness.operator_process import ROOT

WRONG = {
    "an unknown name": (
        {"TUTTI_STRATEGIE": "ilp"},
        ["TUTTI_STRATEGIE is not a setting; the nearest is TUTTI_STRATEGY"],
    ),
    "a value out of range": (
        {"TUTTI_PROBE_PORT": "70000"},
        ["TUTTI_PROBE_PORT: '70000' is not valid: Input should be less than or equal to 65535"],
    ),
    "no number": (
        {"TUTTI_BUDGET_SECONDS": "a while"},
        ["TUTTI_BUDGET_SECONDS: 'a while' is not valid: Input should be a valid number"],
    ),
    "no such choice": (
        {"TUTTI_LOG_FORMAT": "xml"},
        ["TUTTI_LOG_FORMAT: 'xml' is not valid: Input should be 'auto', 'human' or 'json'"],
    ),
    "an unknown strategy": (
        {"TUTTI_STRATEGY": "bestfitt"},
        [
            (
                "TUTTI_STRATEGY: 'bestfitt' is not one of bestfit, firstfit, flow, ilp, "
                "ilp-highs, spread; did you mean bestfit?"
            )
        ],
    ),
    "several at once": (
        {"TUTTI_PROBEPORT": "1", "TUTTI_LOG_LEVEL": "loud"},
        ["TUTTI_PROBEPORT is not a setting; the nearest is TUTTI_PROBE_PORT", "TUTTI_LOG_LEVEL: "],
    ),
}


@pytest.mark.parametrize(("environment", "sentences"), WRONG.values(), ids=WRONG)
def test_a_wrong_setting_stops_the_start_with_a_sentence_and_exit_code_two(
    environment: dict[str, str], sentences: list[str]
) -> None:
    """One line for each mistake, and nothing else."""
    ended = subprocess.run(
        [sys.executable, "-m", "tutti", "run"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "operator"), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 2
    lines = ended.stderr.splitlines()
    assert len(lines) == len(sentences)
    for sentence in sentences:
        assert any(sentence in line for line in lines), ended.stderr
