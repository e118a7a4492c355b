"""A sample of the brute force, and that it shares no code with what it judges.

All of it: ``python -m tests.conformance.bruteforce``.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from . import sampling

SAMPLE, PART = 300, 30
SPEAKS_TO_THE_PROJECT = {"running.py"}


@pytest.mark.parametrize("first", range(1, SAMPLE + 1, PART))
def test_no_answer_about_a_small_cluster_is_wrong(first: int) -> None:
    results = [sampling.of_seed(seed) for seed in range(first, first + PART)]
    wrong = [
        f"seed {result.seed}: {violation.kind}: {violation.says}"
        for result in results
        for violation in result.verdict.violations
    ]
    assert not wrong, "\n".join(wrong)
    assert any(result.verdict.is_proved for result in results)


def test_it_shares_no_code_with_the_project() -> None:
    here = Path(__file__).parent
    for path in here.glob("*.py"):
        if path.name.startswith("test_") or path.name in SPEAKS_TO_THE_PROJECT:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert not [n.name for n in node.names if n.name.startswith(("tutti", "tests"))]
            if isinstance(node, ast.ImportFrom):
                assert node.level <= 1, path.name
                assert not (node.module or "").startswith(("tutti", "tests")), path.name
