"""The checker catches plans that exceed the limit of a queue, or start gangs in no queue."""

from dataclasses import replace
from typing import Any

import pytest

from tutti.model.decisions import Placement, Plan
from tutti.model.inter_pod import Requirement
from tutti.model.keys import Uid
from tutti.model.queues import Queue, QueueMode, Stop
from tutti.verify import plan_checks

from ...harness.builders import GangBuilder, Part, gang, node, snapshot, space
from .test_plan_checks import placing

ROOMY, ML = node("n1", cpu=64), space("ml", team="a")
A, B = gang("a").of(2, cpu=2).but(queue="a"), gang("b").of(3, cpu=1).but(queue="b")


def queue(name: str, **changes: Any) -> Queue:
    return replace(Queue(name, Uid(f"{name}-1")), **changes)


def capped(name: str, cpu: int, **changes: Any) -> Queue:
    return queue(name, limits=(("cpu", cpu),), **changes)


def starting(of: GangBuilder) -> Placement:
    waiting = [member for member in of.members if member.node is None]
    return placing(of, *((member.key.name, "n1") for member in waiting))


def broken(*parts: Part) -> tuple[str, ...]:
    """What a plan breaks that starts all gangs."""
    placements = tuple(starting(part) for part in parts if isinstance(part, GangBuilder))
    return plan_checks.violations(snapshot(ROOMY, ML, *parts), Plan(placements))


def upheld(*parts: Part) -> list[str]:
    placements = tuple(starting(part) for part in parts if isinstance(part, GangBuilder))
    kept = plan_checks.upheld(snapshot(ROOMY, ML, *parts), placements)
    return [placement.gang.name for placement in kept]


def test_a_limit_holds_for_all_gangs_below_its_queue() -> None:
    below = (queue("a", parent="top"), queue("b", parent="top"))
    assert broken(capped("top", 7000), *below, A, B) == ()
    assert broken(capped("top", 6999), *below, A, B) == (
        "cap queue top: 7 of 6999m cpu would be in use",
    )
    assert broken(capped("a", 3999), queue("b"), A, B) == (
        "cap queue a: 4 of 3999m cpu would be in use",
    )
    assert upheld(capped("top", 6999), *below, A, B) == ["a"]
    assert upheld(capped("top", 3999), *below, A, B) == ["b"]


def test_a_limit_in_shadow_counts_for_nothing() -> None:
    shadow = capped("a", 0, mode=QueueMode.SHADOW)
    assert broken(shadow, queue("b"), A, B) == ()


def test_a_limit_that_is_exceeded_already_stops_those_who_add_to_it() -> None:
    runs = A.bound_on("n1")
    free = gang("c").of(1, memory=1).but(queue="a")
    parts = (capped("a", 1000), runs)
    assert broken(*parts) == ("cap queue a: 4 of 1 cpu would be in use",)
    assert upheld(*parts) == []
    seen = snapshot(node("n1", cpu=64, memory=9), ML, capped("a", 1000), runs, free)
    assert plan_checks.violations(seen, Plan((starting(free),))) == ()
    assert plan_checks.upheld(seen, (starting(free),)) == (starting(free),)


@pytest.mark.parametrize(
    "queues",
    [
        [],
        [queue("b")],
        [queue("a", namespaces=None)],
        [queue("a", namespaces=(Requirement("team", "In", ("b",)),))],
        [queue("a"), queue("b", parent="a")],
    ],
)
def test_a_gang_starts_in_a_queue_without_children_that_admits_it(queues: list[Queue]) -> None:
    expected = ("gang ml/a: it belongs to no queue",) if queues else ()
    assert broken(*queues, A) == expected
    assert upheld(*queues, A) == ([] if queues else ["a"])


def test_a_gang_that_names_no_queue_starts_in_the_one_default_or_in_the_root() -> None:
    plain = gang("c").of(1, cpu=1)
    first, second = (capped(name, 0, default_for=()) for name in ("a", "b"))
    assert broken(first, plain) == ("cap queue a: 1 of 0 cpu would be in use",)
    assert broken(first, second, plain) == ("gang ml/c: it belongs to no queue",)
    assert broken(queue("a"), queue("root", limits=(("cpu", 0),)), plain) == ()


@pytest.mark.parametrize(
    "queues",
    [
        [queue("a", stop=Stop.HOLD)],
        [queue("a", is_terminating=True)],
        [queue("a", parent="gone")],
        [queue("a", parent="a")],
        [queue("a", parent="b"), queue("b", parent="c"), queue("c", parent="b")],
        [queue("a", parent="b"), queue("b", stop=Stop.HOLD)],
        [queue("a", stop=Stop.DRAIN, draining_since=0.0)],
    ],
)
def test_a_stopped_queue_starts_nothing_and_repairs(queues: list[Queue]) -> None:
    assert broken(*queues, A) == ("gang ml/a: queue a does not start it",)
    assert broken(*queues, A.bound_on("n1")) == ()


def test_a_drain_is_not_for_gangs_that_were_there_before() -> None:
    assert broken(queue("a", stop=Stop.DRAIN, draining_since=9.0), A) == ()
    assert broken(queue("a", stop=Stop.DRAIN), A) == ()


def test_the_limits_of_queues_on_a_cycle_are_those_of_each_alone() -> None:
    runs = A.bound_on("n1")
    cycle = (capped("b", 9000, parent="c"), capped("c", 0, parent="b"))
    assert broken(queue("a", parent="b"), *cycle, runs) == ()
    assert broken(queue("a", parent="b"), capped("b", 0, parent="c"), cycle[1], runs) == (
        "cap queue b: 4 of 0 cpu would be in use",
    )
