"""What claims leave to the starved gang: its place under limits, and its cover."""

from typing import Any

from ....harness.builders import GangBuilder, Part, gang
from ..test_queued_gangs import queue
from .test_claim_rounds import claimed, plan, starts
from .test_preemption import A, B, gpus, old, runs, seen, waits

LATE: dict[str, Any] = {"starvation_seconds": 60.0}


def starves(name: str, into: str, gpu: int, priority: int = 0) -> GangBuilder:
    """A gang that has starved, and that has nobody ended."""
    starved = waits(name, into, gpu, priority, created=0.0)
    return starved.each(may_preempt=False)


def test_no_younger_gang_of_its_queue_claims_the_limit_or_the_cover_of_a_starved_gang() -> None:
    """Otherwise it would be passed over for ever: each younger gang would end what borrows."""
    mine = runs(gang("mine").of(2, gpu=1), A)
    younger = waits("new", "a", 2)
    for own in (queue("a", **gpus(4, 4)), A):
        parts = own, B, starves("first", "a", 4), *mine, *old("loan", 6)
        assert claimed(seen(*parts), **LATE) == {}
        assert claimed(seen(*parts, younger), **LATE) == {}
        assert claimed(seen(*parts[:2], *parts[3:], younger), **LATE) == {"new": ["loan"]}


def test_a_higher_priority_of_its_queue_claims_before_a_starved_gang() -> None:
    own = queue("a", **gpus(4, 4))
    above = waits("new", "a", 2, priority=1)
    parts = own, B, starves("first", "a", 4), *runs(gang("mine").of(2, gpu=1), own)
    assert claimed(seen(*parts, above, *old("loan", 6)), **LATE) == {"new": ["loan"]}


def under(limit: int, guaranteed: int = 4) -> list[Part]:
    """A limit above three queues, of which ``c`` borrows 4."""
    parent = queue("p", **gpus(0, limit))
    a, c = queue("a", parent="p", **gpus(guaranteed)), queue("c", parent="p")
    b = queue("b", parent="p", **gpus(2))
    return [parent, a, b, c, *runs(gang("loan").of(4, gpu=1), c, start=0.0)]


def test_another_queue_claims_no_limit_of_a_starved_gang_that_its_leaf_covers() -> None:
    """It may end what uses the limit itself, and then both have room below it."""
    other, outside = queue("d"), old("out", 4, into=queue("d"))
    of = [*under(6), other, starves("first", "a", 4), waits("new", "b", 2), *outside]
    assert claimed(seen(*of), **LATE) == {"new": ["loan"]}
    assert claimed(seen(*of)) == {"new": ["out"]}


def test_a_starved_gang_that_borrows_holds_no_limit_from_what_guarantees_cover() -> None:
    other, outside = queue("d"), old("out", 4, into=queue("d"))
    of = [*under(6, 0), other, starves("first", "a", 4), waits("new", "b", 2), *outside]
    assert claimed(seen(*of), **LATE) == {"new": ["out"]}


def test_by_priority_no_gang_claims_the_limit_of_a_starved_gang() -> None:
    """Those of its own priority or a lower one; what ends frees less than they want."""
    own = queue("a", **gpus(0, 6))
    loan = runs(gang("loan").of(2, gpu=1).priority(-1), own)
    parts = own, starves("first", "a", 4), *runs(gang("mine").of(2, gpu=1).priority(9), own), *loan
    younger = waits("new", "a", 2)
    made = plan(seen(*parts, younger, gpu=4), **LATE)
    assert (starts(made), made.claims) == ([], ())
    assert claimed(seen(*parts, younger, gpu=4)) == {"new": ["loan"]}
    above = waits("new", "a", 2, priority=1)
    assert claimed(seen(*parts, above, gpu=4), **LATE) == {"new": ["loan"]}


def test_a_starved_gang_claims_with_the_limit_that_is_held_for_it() -> None:
    own = queue("a", **gpus(0, 4))
    starved = waits("first", "a", 4, created=0.0)
    loan = runs(gang("loan").of(4, gpu=1).priority(-1), own)
    of = seen(own, starved, waits("new", "a", 4), *loan, gpu=4)
    assert claimed(of, **LATE) == {"first": ["loan"]}


def test_a_starved_gang_that_borrows_claims_once_pods_terminate_that_its_parent_covers() -> None:
    """Its own place below its limit is not held from itself."""
    parent = queue("p", **gpus(4))
    a, b = queue("a", parent="p", **gpus(0, 4)), queue("b", parent="p")
    leaves, record = runs(gang("leaves").of(4, gpu=1), b)
    assert isinstance(leaves, GangBuilder)
    parts = parent, a, b, queue("c"), leaves.each(terminating=True), record
    starved = waits("first", "a", 4, created=0.0)
    of = seen(*parts, starved, *old("loan", 4, into=queue("c")))
    assert claimed(of, **LATE) == {"first": []}
