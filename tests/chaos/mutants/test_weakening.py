"""Dropping any check of ``verify`` and its parts makes one of its unit tests fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .weakening import weakened

ROOT = Path(__file__).parents[3]
VERIFY = "operator/tutti/verify"
TESTS = ("tests/unit/verify", "tests/unit/gang/test_slots.py")

# What makes no difference to any answer, and why it is there all the same, by module.
NO_CHECKS = {
    "plan_checks": {
        "upheld: never not placements": "saves the work of counting where nothing is placed",
        "_plan_faults: never not placements": "likewise",
        (
            "_inter_pod_checker: never not (snapshot.reservations or "
            "lookup.may_have_rules(replace(snapshot, gangs=tuple(gangs))))"
        ): "saves the work of counting where no rule is in force",
        "_without_rule_breakers: no if reservation.slots": "saves counting where no slots stand",
        "_inter_pod_checker: no if reservation.slots": "saves a look at those without slots",
        (
            "_surplus_members: never all((role.max_member is None for role in gang.roles))"
        ): "saves counting where no role has a maximum",
    },
    "cap_checks": {},
    "domain_checks": {},
    "lookup": {
        "member: no self.members(expected_in).get(uid)": "saves a look at all pods",
    },
    "reservation_checks": {
        "_separate: never not violations": "saves passes that change nothing",
        "_separate: never not lookup.may_have_rules(snapshot)": "saves the work of counting pods",
    },
    "inter_pod": {
        "__init__: no if pod.anti_affinity": "saves a look at those who have none",
        "least: no self._lowest": "saves looking for them again",
        "_candidates: never requirement.operator == 'In'": "saves a look at pods without the label",
        "_candidates: no selector.selector": "likewise",
        "_traits: no if label[0] in keys": "counts pods together that no selector tells apart",
    },
}

CHECKS = '''
def found(a, b):
    """Compare."""
    if a > 1 and b:
        yield "wrong"
    count(a)
    return [x for x in b if x]
'''


@pytest.mark.parametrize("name", NO_CHECKS)
def test_dropping_any_check_of_verify_is_caught_by_its_tests(name: str) -> None:
    command = [sys.executable, "-m", "tests.chaos.mutants.surviving", f"tutti.verify.{name}"]
    answer = subprocess.run(
        [*command, *TESTS],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'operator'}", "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    lines = answer.stdout.splitlines()
    survivors = [line.removeprefix("survives ") for line in lines if line.startswith("survives ")]
    assert sorted(survivors) == sorted(NO_CHECKS[name])


def test_every_check_is_dropped_once() -> None:
    assert [one.name for one in weakened(CHECKS)] == [
        "found: never a > 1 and b",
        "found: no count(a)",
        "found: no a > 1",
        "found: no b",
        "found: no yield 'wrong'",
        "found: no if x",
    ]


def test_a_mutant_differs_in_the_one_place_that_its_name_says() -> None:
    named = {one.name: one.source for one in weakened(CHECKS)}
    assert "if a > 1:" in named["found: no b"]
    assert "if b:" not in named["found: no b"]
    assert "yield from ()" in named["found: no yield 'wrong'"]
    assert all(one.count("def found") == 1 for one in named.values())


def test_verify_has_checks_of_every_kind() -> None:
    sources = [(ROOT / VERIFY / f"{name}.py").read_text() for name in NO_CHECKS]
    names = [one.name for source in sources for one in weakened(source)]
    assert len(names) == len(set(names))
    assert len(names) > 100
