"""Limits of queues as limits over gangs."""

from dataclasses import replace

from tutti.model.decisions import GangCap
from tutti.model.queues import QueueMode
from tutti.model.resources import Resources
from tutti.queues.limits import caps, limits, obstacles
from tutti.queues.tree import QueueTree

from .builders import amounts, key, queue

TREE = QueueTree.of(
    [
        queue("r", limits=amounts(cpu=9, gpu=8)),
        queue("v", "r", limits=amounts(gpu=4)),
        replace(queue("s", limits=amounts(gpu=0)), mode=QueueMode.SHADOW),
    ]
)
A, B, C = key("a"), key("b"), key("c")
FOUND = limits(TREE, {A: "v", B: "r", C: "s"}, {A: Resources.of({"gpu": 5})})


def test_a_limit_holds_for_all_gangs_at_or_below_its_queue() -> None:
    rows = [(one.queue, one.resource, one.limit, one.in_use, one.room) for one in FOUND]
    assert rows == [
        ("r", "cpu", 9, 0, 9),
        ("r", "gpu", 8, 5, 3),
        ("s", "gpu", 0, 0, 0),
        ("v", "gpu", 4, 5, 0),
    ]
    assert [one.gangs for one in FOUND] == [{A, B}, {A, B}, {C}, {A}]


def test_limits_in_shadow_are_no_caps() -> None:
    assert [*caps(FOUND)] == [
        GangCap("queue r", frozenset({A, B}), {"cpu": 9, "gpu": 8}),
        GangCap("queue v", frozenset({A}), {"gpu": 4}),
    ]


def test_obstacles_are_the_limits_that_a_start_would_exceed() -> None:
    assert [obstacle.queue for obstacle in obstacles(FOUND, B, Resources.of({"gpu": 4}))] == ["r"]
    assert [*obstacles(FOUND, B, Resources.of({"gpu": 3}))] == []
    assert [*obstacles(FOUND, A, Resources.of({"cpu": 9}))] == []
    assert [obstacle.is_shadow for obstacle in obstacles(FOUND, C, Resources.of({"gpu": 1}))] == [
        True
    ]
