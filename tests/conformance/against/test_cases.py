"""The gangs that are compared: fixed, of every kind, and every one of them can be placed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from . import byhand, drawn
from .cases import HOST, ZONE, Ask, Case, Ground, Kind, Role, Rule
from .existing import has_placement


@pytest.mark.parametrize("case", byhand.CASES, ids=lambda case: case.name)
def test_a_gang_by_hand_has_a_placement(case: Case) -> None:
    assert has_placement(case)


def test_there_are_twenty_by_hand_and_twenty_five_of_each_kind_by_seed() -> None:
    assert len({case.name for case in byhand.CASES}) == 20
    assert {case.kind for case in byhand.CASES} == set(Kind)
    assert Counter(kind for kind, _ in drawn.ALL) == dict.fromkeys(Kind, 25)


@pytest.mark.parametrize("kind", Kind)
def test_a_number_stands_for_one_gang_which_has_a_placement(kind: Kind) -> None:
    case = drawn.case(kind, 0)
    drawn.case.cache_clear()
    assert drawn.case(kind, 0) == case
    assert has_placement(case)
    assert case.kind is kind


def test_what_has_no_placement_is_not_kept() -> None:
    """Each rule of the small language is one that can fail."""
    apart, even = Rule(Ask.APART, HOST), Rule(Ask.EVEN, ZONE, min_domains=2)
    beside = Rule(Ask.NEAR, ZONE, "role", "driver")
    nodes = (Ground("n0", "a", 4), Ground("n1", "b", 1))
    for role in (
        Role("m", 6),
        Role("m", 1, gpus=1),
        Role("m", 3, rules=(apart,)),
        Role("m", 3, port=80),
        Role("m", 4, rules=(even,)),
        Role("m", 1, rules=(beside,)),
    ):
        assert not has_placement(Case("none", Kind.MIXED, nodes, (role,))), role
        fewer = replace(role, count=2, gpus=0, rules=tuple(r for r in role.rules if r != beside))
        assert has_placement(Case("some", Kind.MIXED, nodes, (fewer,))), fewer
