"""What a gang that waits may have ended."""

from dataclasses import replace

from tutti.gang import finding_text
from tutti.gang.findings import MayNotBorrow
from tutti.model.keys import POD
from tutti.model.queues import Preemption
from tutti.queues import claims, cover
from tutti.queues.claims import Entitlement
from tutti.queues.cover import QueuedGang
from tutti.queues.tree import QueueTree

from .builders import key, queue, queued

TREE = QueueTree.of([queue("p", gpu=6), queue("a", "p", gpu=2), queue("b", gpu=2)])
NO_QUEUES = QueueTree.of([])


def entitled(
    tree: QueueTree,
    start: QueuedGang,
    *running: QueuedGang,
    preemption: Preemption = Preemption.FULL,
) -> tuple[bool, set[str], set[str]] | None:
    """By guarantee or not, the gangs, and the extras."""
    found = claims.entitlement(tree, running, start, preemption)
    if found is None:
        return None
    return (
        found.by_guarantee,
        {gang.name for gang in found.gangs},
        {f"{gang.name}/{pod}" for gang, pod in found.extras},
    )


def protected(gang: QueuedGang) -> QueuedGang:
    return replace(gang, is_protected=True)


def test_what_borrows_ends_for_a_gang_that_would_be_covered() -> None:
    covered, borrows = queued("old", "b", started=1, gpu=2), queued("more", "b", started=2, gpu=3)
    assert entitled(TREE, queued("new", "a", gpu=2), covered, borrows) == (True, {"more"}, set())


def test_what_a_start_displaces_at_the_parent_ends() -> None:
    old = queued("old", "a", started=1, gpu=6)
    new = queued("new", "a", 1, gpu=1)
    assert entitled(TREE, new, old) == (True, {"old"}, set())
    assert entitled(TREE, replace(new, priority=0), old) == (False, set(), set())


def test_the_mode_says_what_a_gang_may_do() -> None:
    old = queued("old", "a", started=1, gpu=9)
    for size, by_guarantee in ((2, True), (9, False)):
        new = queued("new", "a", 1, gpu=size)
        assert entitled(TREE, new, old) == (by_guarantee, {"old"}, set())
        assert entitled(TREE, new, old, preemption=Preemption.OFF) is None
        reclaim = entitled(TREE, new, old, preemption=Preemption.RECLAIM)
        assert reclaim == ((True, {"old"}, set()) if by_guarantee else None)


def test_gangs_of_its_queue_end_only_with_a_lower_priority_and_extras_with_any() -> None:
    above = queued("above", "a", 9, started=1, gpu=1, extras=(9, 9))
    equal, below = (queued(n, "a", p, started=2, gpu=9) for n, p in (("equal", 1), ("below", 0)))
    new = queued("new", "a", 1, gpu=1)
    assert entitled(TREE, new, above, equal, below) == (True, {"below"}, {"above/x0", "above/x1"})
    large = queued("new", "a", 1, gpu=8)
    assert entitled(TREE, large, above, equal, below) == (False, {"below"}, set())


def test_gangs_of_other_queues_end_by_guarantee_alone() -> None:
    other = queued("other", "b", started=1, gpu=9)
    assert entitled(TREE, queued("new", "a", 9, gpu=2), other) == (True, {"other"}, set())
    assert entitled(TREE, queued("new", "a", 9, gpu=9), other) == (False, set(), set())


def test_a_protected_gang_does_not_end_and_its_extras_do() -> None:
    other = protected(queued("other", "b", started=1, gpu=9, extras=(1,)))
    assert entitled(TREE, queued("new", "a", gpu=2), other) == (True, set(), {"other/x0"})


def test_a_protected_gang_claims_by_its_own_queue_s_guarantee_alone() -> None:
    other = queued("other", "b", started=1, gpu=9)
    assert entitled(TREE, protected(queued("new", "a", gpu=2)), other) == (True, {"other"}, set())
    assert entitled(TREE, protected(queued("new", "a", gpu=3)), other) is None
    assert entitled(NO_QUEUES, protected(queued("new", "root", 1, gpu=3)), other) is not None


def test_protected_gangs_are_covered_first_in_their_own_queue_by_start_alone() -> None:
    first, second = (protected(queued(n, "b", started=s, gpu=1)) for n, s in (("y", 1), ("x", 2)))
    above = queued("above", "b", 9, started=3, gpu=1)
    assert {gang.name for gang in cover.walk(TREE, [first, second, above]).gangs} == {"x", "y"}
    last = replace(second, started=4, priority=9)
    large = protected(queued("large", "b", started=2, gpu=2))
    assert {gang.name for gang in cover.walk(TREE, [last, large]).gangs} == {"large"}
    elsewhere = protected(queued("low", "a", started=1, gpu=6))  # the parent takes it by priority
    child = queued("high", "a", 9, started=2, gpu=5)
    assert {gang.name for gang in cover.walk(TREE, [elsewhere, child]).gangs} == {"high"}


def test_an_old_pod_claims_by_a_guarantee_only_if_more_is_covered_with_it() -> None:
    tree = QueueTree.of([queue("p", gpu=4), queue("a", "p"), queue("b", "p")])
    pod = replace(queued("pod", "a", started=0, gpu=4), key=key("pod")._replace(kind=POD))
    one, two = queued("b1", "b", started=1, gpu=2), queued("b2", "b", started=2, gpu=2)
    assert entitled(tree, pod, one, two) == (False, set(), set())
    assert entitled(tree, pod, one) == (False, set(), set())
    assert entitled(tree, replace(pod, priority=1), one, two) == (True, {"b1", "b2"}, set())


def test_extras_count_after_minimums_of_their_queue() -> None:
    tree = QueueTree.of([queue("a", gpu=4), queue("b", gpu=1)])
    old = queued("old", "a", started=1, gpu=2, extras=(1, 1))
    assert entitled(tree, queued("new", "a", gpu=1), old) == (True, set(), {"old/x1"})


def test_where_there_are_no_queues_a_lower_priority_ends() -> None:
    old, equal = queued("old", "root", started=1, gpu=2, extras=(1,)), queued("eq", "root", 1)
    new = queued("new", "root", 1, gpu=1)
    assert entitled(NO_QUEUES, new, old, equal) == (False, {"old"}, {"old/x0"})


def test_a_gang_without_victims_may_still_claim_room_that_is_leaving() -> None:
    found = claims.entitlement(TREE, [], queued("new", "a", gpu=2), Preemption.FULL)
    assert found == Entitlement(by_guarantee=True, gangs=frozenset(), extras=frozenset())


def test_a_gang_that_must_not_borrow_says_what_its_queue_lacks() -> None:
    start, running = protected(queued("x", "a", gpu=2, cpu=1)), queued("r", "a", started=1, gpu=1)
    assert claims.why_not_covered(TREE, [], start) is None
    short = claims.why_not_covered(TREE, [protected(running)], start)
    assert short == MayNotBorrow("a", "gpu", wanted=2, guaranteed=2, in_use=1)
    large = claims.why_not_covered(TREE, [], protected(queued("x", "a", gpu=3)))
    assert large == MayNotBorrow("a", "gpu", wanted=3, guaranteed=2)
    assert claims.why_not_covered(TREE, [], protected(queued("x", "root", cpu=1))) == MayNotBorrow(
        "root"
    )


def test_a_gang_that_must_not_borrow_names_the_fix() -> None:
    fix = "; with preemption: Any it could borrow, and then be ended"
    why = "preemption: Never, and queue a does not cover it by its own guarantee"
    assert finding_text.text(MayNotBorrow("a")) == why + fix
    full = MayNotBorrow("a", "pods", wanted=2, guaranteed=2, in_use=1)
    assert finding_text.text(full) == f"{why}: it guarantees 2 pods, 1 is in use, 2 wanted{fix}"
