"""A sample of the oracle, that it notices what is wrong, and that it shares no code with Tutti.

All of it: ``python -m tests.conformance.queue_oracle``.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from tutti.strategies import load

from . import drawing, planner
from .judging import Answer, judge
from .world import Gang, Pod, Team, World

SAMPLE, PART = 100, 50
SPEAKS_TO_THE_PROJECT = {"planner.py", "__main__.py", Path(__file__).name}


@pytest.mark.parametrize("strategy", ["ilp", "ilp-highs"])
@pytest.mark.parametrize("first", range(1, SAMPLE + 1, PART))
def test_plans_with_queues_are_lawful_and_each_stage_is_the_best(strategy: str, first: int) -> None:
    proved = 0
    for seed in range(first, first + PART):
        judgement, made = planner.judged(drawing.world(seed), load(strategy))
        assert judgement.wrong == (), seed
        proved += made.proved
    assert proved >= PART * 0.9


A = Team("root", (4, None), (None, None), 1)


def gang(name: str, team: str, size: int, priority: int = 0, since: int = 900) -> Gang:
    return Gang(name, team, priority, since, 1, (Pod((size, 1)),))


def world(*gangs: Gang, room: int = 4, starving: float = inf, **teams: Team) -> World:
    return World(teams, ((room, 100),), gangs, 1000, starving, "resources")


def wrong(cluster: World, *names: str) -> tuple[str, ...]:
    """What the oracle says if these gangs start."""
    return judge(cluster, Answer({name: {0: 0} for name in names}, is_proved=True)).wrong


def test_it_notices_a_gang_without_room_and_one_above_a_limit() -> None:
    limited = replace(A, limit=(2, None))
    cluster = world(gang("w", "a", 3), gang("x", "root", 3), a=limited)
    assert wrong(cluster, "x") == ()
    assert wrong(cluster, "w") == ("a is charged 3 of 2 of resource 0",)
    assert wrong(cluster, "w", "x")[0] == "node 0 has not the room"


def test_it_notices_a_borrower_in_the_place_of_a_gang_that_would_be_covered() -> None:
    cluster = world(gang("w", "a", 4), gang("x", "b", 4, priority=9), a=A, b=replace(A, weight=9))
    covered = replace(cluster, teams={"a": A, "b": Team("root", (None, None), (None, None), 1)})
    assert wrong(cluster, "x") == ()
    assert "covered gangs of" in wrong(covered, "x")[0]
    assert wrong(covered, "w") == ()


def test_it_notices_a_borrower_before_its_turn() -> None:
    free = Team("root", (None, None), (None, None), 1)
    runs = replace(gang("r", "a", 2), start=0, at_start=(2, 1), pods=(Pod((2, 1), 0),))
    cluster = world(runs, gang("w", "a", 2, priority=9), gang("x", "b", 2), a=free, b=free)
    assert wrong(cluster, "x") == ()
    assert "borrowers ['x']" in wrong(cluster, "w")[0]


def test_it_notices_that_a_starved_gang_is_passed_over() -> None:
    cluster = world(gang("w", "a", 4, since=0), gang("x", "a", 3, since=0), starving=500, a=A)
    assert wrong(cluster, "w") == ()
    assert "the starved gang w can start" in wrong(cluster, "x")[0]


def test_it_notices_cover_that_is_held_and_taken() -> None:
    small = replace(gang("r", "a", 1), start=0, at_start=(1, 1), pods=(Pod((1, 1), 0),))
    late = gang("x", "a", 1)
    cluster = world(small, gang("w", "a", 4, since=0), late, room=4, starving=500, a=A)
    assert wrong(cluster) == ()
    assert "the cover of w is held" in wrong(cluster, "x")[0]


def test_it_notices_a_lost_member_that_is_not_replaced() -> None:
    broken = Gang("r", "a", 0, 0, 2, (Pod((2, 1), 0), Pod((2, 1))), start=0, at_start=(4, 2))
    cluster = world(broken, a=replace(A, limit=(4, None)))
    assert "lacks a member" in wrong(cluster)[0]
    assert judge(cluster, Answer({"r": {1: 0}}, is_proved=True)).wrong == ()


def test_a_gang_that_cannot_start_by_itself_takes_no_turn() -> None:
    """Else w would come before x, for huge is the first of its queue; now both have one turn."""
    free = Team("root", (None, None), (None, None), 1)
    some = gang("huge", "b", 9, since=0), gang("x", "b", 4, since=1), gang("w", "a", 3)
    cluster = world(*some, a=free, b=free)
    assert wrong(cluster, "x") == ()
    assert "borrowers" in wrong(cluster, "w")[0]
    assert planner.judged(cluster, load("ilp"))[0].wrong == ()


def test_covered_gangs_are_decided_jointly_where_a_lost_member_is_replaced() -> None:
    """A gang of priority 1 would be covered together with one of priority 0, and not alone."""
    assert planner.judged(drawing.world(905), load("ilp"))[0].wrong == ()


def test_it_shares_no_code_with_what_it_judges() -> None:
    for path in Path(__file__).parent.glob("*.py"):
        if path.name in SPEAKS_TO_THE_PROJECT:
            continue
        for at in ast.walk(ast.parse(path.read_text())):
            names = [at.module or ""] if isinstance(at, ast.ImportFrom) else []
            names += [alias.name for alias in at.names] if isinstance(at, ast.Import) else []
            assert not any(name.split(".")[0] == "tutti" for name in names), path.name
