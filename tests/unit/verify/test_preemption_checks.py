"""What the check of claims says of each way in which a claim can be wrong."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from tutti.model.cluster import (
    Gang,
    Phase,
    PodReservation,
    Reservation,
    ReservedVictim,
    SlotReservation,
    Snapshot,
)
from tutti.model.decisions import Assignment, Claim, Placement, Plan, Victim
from tutti.model.inter_pod import PodSelector
from tutti.model.keys import GangKey, NodeName, Uid
from tutti.model.owners import Job, Owner
from tutti.model.queues import Preemption, Queue, QueueMode, QueueRecord, RoleAtStart
from tutti.verify import plan_checks
from tutti.verify.preemption import checks as preemption_checks
from tutti.verify.preemption import judge

from ...harness.builders import (
    GPU,
    NAMESPACE,
    GangBuilder,
    Part,
    budget,
    gang,
    labels,
    node,
    peers,
    reservation,
    resources,
    snapshot_of,
    space,
)

FULL = dict.fromkeys(("a", "b", "root"), Preemption.FULL)
ZERO = Fraction(0)


def queue(name: str, gpu: int | None = None, **changes: Any) -> Queue:
    guaranteed = () if gpu is None else ((GPU, gpu),)
    return replace(Queue(name, Uid(name), guaranteed=guaranteed), **changes)


def key(name: str) -> GangKey:
    return GangKey(NAMESPACE, name)


def runs(builder: GangBuilder, into: str, start: float = 1.0) -> tuple[GangBuilder, Reservation]:
    """A gang on the first node, and the record of its start."""
    bound = builder.but(queue=into).each(node=NodeName("n1"))
    made = bound.made
    needed = tuple(m.shape.requests for m in made.members[: made.min_member])
    total = resources()
    for requests in needed:
        total += requests
    record = QueueRecord(into, Uid(into), start, (RoleAtStart("", len(needed), total),))
    return bound, replace(reservation(bound), record=record)


def scene(*parts: Part, room: int = 8) -> Snapshot:
    return snapshot_of(space(NAMESPACE), node("n1", gpu=room, cpu=9), *parts, at=60.0)


def claims(
    snapshot: Snapshot,
    *victims: str | tuple[str, ...],
    by_guarantee: bool = True,
    name: str = "new",
    on: str = "n1",
    **changes: Any,
) -> Claim:
    """A claim of all members of a gang; a tuple is a gang and some of its members."""
    gang = found(snapshot, name)
    assignments = tuple(Assignment(m.key, m.uid, m.version, NodeName(on)) for m in gang.members)
    chosen = []
    for victim in victims:
        other = found(snapshot, victim if isinstance(victim, str) else victim[0])
        some = [m for m in other.members if isinstance(victim, str) or m.key.name in victim[1:]]
        is_whole = isinstance(victim, str)
        chosen.append(Victim(other.key, other.uid, tuple(some), is_whole=is_whole))
    claim = Claim(
        gang.key,
        gang.uid,
        0,
        assignments,
        tuple(chosen),
        by_guarantee=by_guarantee,
        cost=ZERO,
        bound=ZERO,
    )
    return replace(claim, **changes)


def found(snapshot: Snapshot, name: str) -> Gang:
    return next(gang for gang in snapshot.gangs if gang.key.name == name)


def said(
    snapshot: Snapshot, *made: Claim, protected: Sequence[str] = (), modes: Any = FULL
) -> tuple[str, ...]:
    return preemption_checks.violations(snapshot, made, modes, {key(name) for name in protected})


OLD = runs(gang("old").of(8, gpu=1), "b")
NEW = gang("new").of(4, gpu=1).but(queue="a")
A, B = queue("a", 4), queue("b", 4)
EXTRAS = ("old", "old-4", "old-5", "old-6", "old-7")


def test_a_claim_by_guarantee_ends_what_borrows() -> None:
    snapshot = scene(A, B, NEW, *OLD)
    claim = claims(snapshot, "old")
    assert said(snapshot, claim) == ()
    assert claim.is_proved
    assert not replace(claim, cost=Fraction(1)).is_proved


def test_a_claim_of_a_gang_that_does_not_wait_is_wrong() -> None:
    snapshot = scene(A, B, NEW, *OLD)
    claim = claims(snapshot, "old")
    for wrong in (replace(claim, uid=Uid("x")), replace(claim, gang=key("x"))):
        (sentence,) = said(snapshot, wrong)[:1]
        assert "there is no such gang that waits" in sentence
    assert "there is no such gang" in said(snapshot, claim, claim)[0]
    assert "does not wait, or one twice" in said(snapshot, claims(snapshot, name="old"))[0]
    twice = replace(claim, assignments=claim.assignments[:1] * 4)
    assert "does not wait, or one twice" in said(snapshot, twice)[0]
    stranger = replace(claim.assignments[0], uid=Uid("x"))
    assert "does not wait" in said(snapshot, replace(claim, assignments=(stranger,)))[0]


def test_a_claim_places_all_members_that_the_gang_needs() -> None:
    snapshot = scene(A, B, NEW, *OLD)
    claim = claims(snapshot, "old")
    few = replace(claim, assignments=claim.assignments[:3])
    assert "fewer members than the gang needs" in said(snapshot, few)[0]
    roles = gang("new").role("x", 1, 2, gpu=1).role("y", 1, gpu=1)
    snapshot = scene(A, B, roles.but(queue="a", min_member=0), *OLD)
    claim = claims(snapshot, "old")
    assert said(snapshot, claim) == ()
    assert "fewer" in said(snapshot, replace(claim, assignments=claim.assignments[:2]))[0]


def test_a_claim_has_nodes_on_which_its_members_may_run_and_have_room() -> None:
    snapshot = scene(A, B, NEW, *OLD, node("n2", gpu=8).cordoned())
    assert "may not run on n2" in said(snapshot, claims(snapshot, "old", on="n2"))[0]
    assert "may not run on n3" in said(snapshot, claims(snapshot, "old", on="n3"))[0]
    assert "n1 has too little nvidia.com/gpu" in said(snapshot, claims(snapshot))[0]


def ruled(new: GangBuilder) -> Snapshot:
    """A gang that waits, one that shares no node with it, and a pod for which n2 is held."""
    n1, n2 = (node(n, gpu=9, cpu=9).labelled(hostname=n) for n in ("n1", "n2"))
    apart = gang("apart").of(1, gpu=1).but(queue="a").apart("hostname", peers(group="new"))
    held = gang("held").of(1)
    kept = reservation(held, ("held-0", "n2"))
    return snapshot_of(n1, n2, space(NAMESPACE), A, B, new, apart, held, kept, *OLD, at=60.0)


@pytest.mark.parametrize("rule", [NEW.near("hostname"), NEW.even("hostname")])
def test_a_claim_has_no_nodes_that_depend_on_other_pods(rule: GangBuilder) -> None:
    snapshot = ruled(rule)
    assert list(said(snapshot, claims(snapshot, "old"))) == [
        f"pod ml/new-{n}: it claims node n1, which depends on other pods" for n in range(4)
    ]
    alone = ruled(NEW.even("hostname", PodSelector(())))  # it counts no other pod
    assert said(alone, claims(alone, "old")) == ()


def test_a_claim_has_no_nodes_that_anti_affinity_forbids() -> None:
    snapshot = ruled(NEW.apart("hostname", peers(group="held")))
    assert said(snapshot, claims(snapshot, "old")) == ()
    assert said(snapshot, claims(snapshot, "old", on="n2"))[0] == (
        "pod ml/new-0: node n2 is forbidden by its anti-affinity on kubernetes.io/hostname"
    )
    both = claims(snapshot, "old"), claims(snapshot, name="apart")
    assert said(snapshot, *both)[0] == (
        "pod ml/new-0: node n1 is forbidden by others' anti-affinity on kubernetes.io/hostname"
    )
    stranger = replace(both[1].assignments[0], uid=Uid("x"))
    assert "does not wait" in said(snapshot, replace(both[1], assignments=(stranger,)))[0]


def test_room_that_a_reservation_holds_is_taken() -> None:
    starting = gang("starting").of(2, gpu=2).but(queue="b")
    held = reservation(starting, ("starting-0", "n1"), ("starting-1", "n1"))
    snapshot = scene(A, B, NEW, *runs(gang("old").of(4, gpu=1), "b"), starting)
    snapshot = replace(snapshot, reservations=(held,))
    sentences = said(snapshot, claims(snapshot))
    assert any("n1 has too little nvidia.com/gpu" in sentence for sentence in sentences)
    assert any(
        "starting does not run, or not yet" in s
        for s in said(snapshot, claims(snapshot, "starting"))
    )


def test_a_gang_with_slots_for_absent_members_alone_ends_whole() -> None:
    old, start = runs(gang("old").of(8, gpu=1).needing(4), "b")
    slots = [SlotReservation(NodeName("n1"), "", 1)]

    def wrong(claim: Claim, **changes: Any) -> list[str]:
        """The sentences that say that its victim does not run."""
        bound = [(m.key.name, "n1") for m in old.members]
        held = replace(reservation(old, *bound, slots=slots), record=start.record, **changes)
        snapshot = scene(A, B, NEW, *(old, held), room=9)
        return [s for s in said(snapshot, claim) if "does not run" in s]

    whole, extras = (claims(scene(A, B, NEW, old, start), who) for who in ("old", EXTRAS))
    assert wrong(whole) == []
    assert wrong(extras)
    assert wrong(whole, slots=())
    assert wrong(whole, victims=())
    assert wrong(whole, evict=(old.members[0].uid,))
    assert wrong(whole, entries=(PodReservation(NEW.members[0].key, Uid("x"), NodeName("n1")),))


def test_the_mode_of_the_claimant_s_queue_counts() -> None:
    snapshot = scene(A, B, NEW, *OLD)
    assert "lets it end nobody" in said(snapshot, claims(snapshot, "old"), modes={})[0]
    reclaim = {"a": Preemption.RECLAIM}
    assert said(snapshot, claims(snapshot, "old"), modes=reclaim) == ()
    sentences = said(snapshot, claims(snapshot, "old", by_guarantee=False), modes=reclaim)
    assert "end nobody by priority" in sentences[0]
    assert any("is of another queue" in sentence for sentence in sentences)


def test_a_guarantee_that_does_not_cover_gives_no_claim() -> None:
    snapshot = scene(queue("a", 3), B, NEW, *OLD)
    assert "by a guarantee that does not cover it" in said(snapshot, claims(snapshot, "old"))[0]
    shadow = queue("a", 4, mode=QueueMode.SHADOW)
    snapshot = scene(shadow, B, NEW, *OLD)
    assert "by a guarantee that does not cover it" in said(snapshot, claims(snapshot, "old"))[0]


def test_a_claim_takes_the_cover_of_no_gang_of_its_queue() -> None:
    parent, leaf = queue("p", 6), queue("a", 2, parent="p")
    above = runs(gang("above").of(5, gpu=1).priority(9), "a")
    small = gang("new").of(2, gpu=1).but(queue="a")
    snapshot = scene(parent, leaf, small, *above, *runs(gang("old").of(3, gpu=1), "b", 2), B)
    assert "above of its queue would lose its cover" in said(snapshot, claims(snapshot, "old"))[0]


def test_a_protected_gang_neither_borrows_nor_ends() -> None:
    snapshot = scene(A, B, NEW, *OLD)
    assert "old cannot be ended" in said(snapshot, claims(snapshot, "old"), protected=["old"])[0]
    snapshot = scene(queue("p", 4), queue("a", parent="p"), B, NEW, *OLD)
    assert said(snapshot, claims(snapshot, "old")) == ()
    assert "and it would borrow" in said(snapshot, claims(snapshot, "old"), protected=["new"])[0]


def test_a_protected_gang_is_covered_first_in_its_own_queue() -> None:
    old = runs(gang("old").of(4, gpu=1), "b")
    above = runs(gang("above").of(4, gpu=1).priority(9), "b", 2)
    snapshot = scene(A, B, NEW, *old, *above)
    assert said(snapshot, claims(snapshot, "above"), protected=["old"]) == ()
    assert "above would not borrow" in said(snapshot, claims(snapshot, "above"))[0]


def test_what_a_guarantee_covers_does_not_end() -> None:
    snapshot = scene(A, B, NEW, *runs(gang("old").of(4, gpu=1), "b"))
    assert "its victim old would not borrow" in " ".join(
        said(snapshot, claims(snapshot, "old"))
    ).replace("ml/", "")


def test_no_gang_of_its_queue_without_a_lower_priority_ends() -> None:
    own = runs(gang("own").of(8, gpu=1), "a")
    snapshot = scene(A, B, NEW, *own)
    assert "has no lower priority" in said(snapshot, claims(snapshot, "own"))[0]
    snapshot = scene(A, B, NEW.priority(1), *own)
    assert said(snapshot, claims(snapshot, "own")) == ()


def test_an_extra_of_its_queue_ends_by_guarantee_alone() -> None:
    own = runs(gang("own").of(8, gpu=1).needing(2), "a")
    snapshot = scene(queue("a", 6), B, NEW, *own)
    four = ("own", "own-4", "own-5", "own-6", "own-7")
    assert said(snapshot, claims(snapshot, *[four])) == ()
    assert "no lower priority" in said(snapshot, claims(snapshot, *[four], by_guarantee=False))[0]
    needed = ("own", "own-0", "own-1")
    assert "lose members that it needs" in said(snapshot, claims(snapshot, *[needed]))[0]
    assert "no member that runs ends" in said(snapshot, claims(snapshot, *[("own", "x")]))[0]


def test_no_gang_is_left_half_and_no_gang_ends_that_does_not_run() -> None:
    snapshot = scene(A, B, NEW, *OLD, gang("idle").of(1, gpu=1).but(queue="b"))
    claim = claims(snapshot, "old")
    half = replace(claim.victims[0], members=claim.victims[0].members[:4])
    assert "would be half a gang" in said(snapshot, replace(claim, victims=(half,)))[0]
    assert "idle does not run" in said(snapshot, claims(snapshot, "old", "idle"))[0]
    gone = replace(claim.victims[0], gang=key("gone"))
    assert "gone does not run" in said(snapshot, replace(claim, victims=(gone,)))[0]


def test_no_more_gangs_end_than_a_reservation_names() -> None:
    two = runs(gang("x").of(4, gpu=1), "b"), runs(gang("y").of(4, gpu=1), "b")
    snapshot = scene(A, queue("b"), NEW, *two[0], *two[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "MOST_VICTIMS", 1)
        assert said(snapshot, claims(snapshot, "x")) == ()
        assert said(snapshot, claims(snapshot, "x", "y")) == (
            "gang ml/new: 2 gangs would end for it, 1 may",
        )


def test_limits_hold_once_the_victims_have_gone() -> None:
    limited = queue("a", 4, limits=((GPU, 3), ("cpu", 1)))
    snapshot = scene(limited, B, NEW, *OLD)
    assert (
        "queue a would use more nvidia.com/gpu than its limit"
        in said(snapshot, claims(snapshot, "old"))[0]
    )
    idle = queue("a", 4, limits=((GPU, 3),), mode=QueueMode.ACTIVE)
    other = gang("new").of(1, cpu=1).but(queue="a")
    snapshot = scene(idle, B, other, *runs(gang("own").of(4, gpu=1), "a"))
    assert said(snapshot, claims(snapshot)) == ()


def test_gangs_end_only_if_the_plan_comes_closer_to_rest() -> None:
    old = gang("old").of(8, gpu=1).priority(1).each(node=NodeName("n1"))
    snapshot = scene(gang("new").of(4, gpu=1).priority(1), old)
    assert said(snapshot, claims(snapshot, "old", by_guarantee=False)) == (
        "gang ml/new: its victim ml/old is of its queue and has no lower priority",
        "gangs end, and the plan comes no closer to rest",
    )


def test_without_queues_a_higher_priority_ends_a_lower_one() -> None:
    old = gang("old").of(8, gpu=1).each(node=NodeName("n1"))
    snapshot = scene(gang("new").of(4, gpu=1).priority(1), old)
    assert said(snapshot, claims(snapshot, "old", by_guarantee=False)) == ()
    snapshot = scene(gang("new").of(4, gpu=1), old)
    sentences = said(snapshot, claims(snapshot, "old", by_guarantee=False))
    assert "has no lower priority" in sentences[0]


def test_what_terminates_has_gone_also_if_its_pod_group_has() -> None:
    strays = gang("old").of(8, gpu=1).each(node=NodeName("n1"))
    room = node("n1", gpu=8, cpu=9).using(gpu=8, pods=8)
    for leaves in (True, False):
        pods = strays.each(terminating=leaves).members
        snapshot = snapshot_of(space(NAMESPACE), room, A, B, NEW, strays=pods, at=60.0)
        assert bool(said(snapshot, claims(snapshot))) is not leaves


def test_what_terminates_has_gone() -> None:
    old = gang("old").of(8, gpu=1).but(queue="b").each(node=NodeName("n1")).each(terminating=True)
    snapshot = scene(A, B, NEW, old)
    assert said(snapshot, claims(snapshot)) == ()
    unbound = gang("old").of(1, gpu=1).but(queue="b").each(terminating=True)
    assert said(scene(A, B, NEW, unbound), claims(scene(A, B, NEW, unbound))) == ()
    over = gang("over").of(8, gpu=1).but(queue="b").each(node=NodeName("n1"))
    over = over.each(terminating=True, phase=Phase.SUCCEEDED)
    assert said(scene(A, B, NEW, over), claims(scene(A, B, NEW, over))) == ()


@pytest.mark.parametrize("lines", [{}, {"gpu": 0}])
def test_a_queue_that_guarantees_nothing_covers_nobody(lines: dict[str, int]) -> None:
    snapshot = scene(queue("a", **lines), B, NEW, *OLD)
    assert "by a guarantee that does not cover it" in said(snapshot, claims(snapshot, "old"))[0]


@pytest.mark.parametrize("priority", [0, 9])
def test_what_a_leaf_covers_ends_for_no_other_queue(priority: int) -> None:
    """Whatever its priority, and whatever the other queue guarantees."""
    covered = runs(gang("covered").of(4, gpu=1), "b")
    new = gang("new").of(8, gpu=1).priority(priority).but(queue="a")
    for gpus in (0, 4, 8):
        snapshot = scene(queue("a", gpus), B, new, *covered)
        for by_guarantee in (True, False):
            assert said(snapshot, claims(snapshot, "covered", by_guarantee=by_guarantee))


def plan_of(snapshot: Snapshot, claim: Claim, *starts: str) -> Plan:
    """A plan that starts these gangs on the first node."""
    made = [found(snapshot, name) for name in starts]
    placements = tuple(
        Placement(
            one.key,
            one.uid,
            0,
            tuple(Assignment(m.key, m.uid, m.version, NodeName("n1")) for m in one.members),
            record=QueueRecord(one.queue, Uid(one.queue), 60.0),
        )
        for one in made
    )
    return Plan(placements, claims=(claim,))


def test_who_borrows_by_the_same_plan_is_counted_after_claims_by_guarantee() -> None:
    quick = gang("quick").of(1, gpu=1).priority(9).but(queue="d")
    loan = runs(gang("loan").of(7, gpu=1), "b")
    queues = queue("p", 4), queue("a", parent="p"), queue("d", parent="p"), queue("b")
    snapshot = scene(*queues, NEW, quick, *loan)
    plan = plan_of(snapshot, claims(snapshot, "loan"), "quick")
    assert preemption_checks.faults(snapshot, plan, Preemption.RECLAIM) == ()
    tight = scene(*queues, NEW, quick, *runs(gang("loan").of(3, gpu=1), "b"), room=4)
    plan = plan_of(tight, claims(tight, "loan"), "quick")
    (why,) = preemption_checks.faults(tight, plan, Preemption.RECLAIM)
    assert "too little nvidia.com/gpu" in why


def test_the_setting_holds_for_queues_that_say_nothing_and_off_for_all() -> None:
    snapshot = scene(A, B, NEW, *OLD)
    plan = plan_of(snapshot, claims(snapshot, "old"))
    off = "gang ml/new: its queue lets it end nobody"
    assert preemption_checks.faults(snapshot, replace(plan, claims=()), Preemption.OFF) == ()
    assert preemption_checks.faults(snapshot, plan, Preemption.OFF) == (off,)
    own = replace(snapshot, queues=(replace(A, preemption=Preemption.OFF), B))
    assert preemption_checks.faults(own, plan, Preemption.FULL) == (off,)
    shadow = replace(snapshot, queues=(replace(A, mode=QueueMode.SHADOW), B))
    assert off in preemption_checks.faults(shadow, plan, Preemption.FULL)


def test_a_placement_of_a_gang_with_a_reservation_adds_to_it() -> None:
    held = gang("held").of(2, gpu=1).but(queue="b")
    snapshot = scene(A, B, NEW, held, *runs(gang("loan").of(6, gpu=1), "b"))
    standing = reservation(held, ("held-0", "n1"))
    snapshot = replace(snapshot, reservations=(standing,))
    plan = plan_of(snapshot, claims(snapshot, "loan"), "held")
    assert preemption_checks.faults(snapshot, plan, Preemption.FULL) == ()


def test_a_gang_started_when_its_first_member_got_a_node() -> None:
    """Without a record; the later of two in one queue borrows."""
    early = gang("x").of(4, gpu=1).but(queue="b").each(node=NodeName("n1"), bound_at=9.0)
    late = gang("y").of(4, gpu=1).but(queue="b").each(node=NodeName("n1"), bound_at=8.0)
    snapshot = scene(A, B, NEW, early, late)
    assert said(snapshot, claims(snapshot, "x")) == ()
    assert said(snapshot, claims(snapshot, "y")) == (
        "gang ml/new: its victim ml/y would not borrow",
    )


def test_no_victim_has_more_pods_than_its_budgets_let_go() -> None:
    seen = scene(A, B, NEW, *runs(gang("old").of(8, gpu=1).each(labels=labels(app="old")), "b"))
    made = Plan(claims=(claims(seen, "old"),))

    def faults(*budgets: Any, of: Snapshot = seen, plan: Plan = made) -> tuple[str, ...]:
        return preemption_checks.faults(replace(of, budgets=budgets), plan, Preemption.FULL)

    assert faults(budget("keep", 8, app="old")) == ()
    (sentence,) = faults(budget("keep", 7, app="old"))
    assert "ml/old would be left as half a gang: 8 pods of ml/keep would go, 7 may" in sentence
    assert faults(budget("keep", 7, app="x")) == ()
    assert faults(replace(budget("keep", 7), namespace="else")) == ()
    assert faults(replace(budget("keep", 7), selector=None)) == ()
    (sentence,) = faults(budget("a", 8), budget("b", 8))
    assert "has pods of two budgets, which are never evicted" in sentence


def test_the_pods_of_a_budget_that_standing_claims_end_count() -> None:
    """Also those of victims of one claim together."""
    some = labels(app="old")
    x, y = (runs(gang(n).of(4, gpu=1).each(labels=some), "b") for n in ("x", "y"))
    snapshot = scene(A, B, NEW, *x, *y)
    keep = budget("keep", 7, app="old")
    reserved_victim = ReservedVictim(
        key("x"), Uid("other"), (found(snapshot, "x").members[0].uid,), is_whole=True
    )
    standing = replace(reservation(gang("else").of(1)), victims=(reserved_victim,))
    for allowed, is_fault in ((4, True), (5, False)):
        of = replace(
            snapshot,
            budgets=(replace(keep, allowed=allowed),),
            reservations=(*snapshot.reservations, standing),
        )
        said = preemption_checks.faults(of, Plan(claims=(claims(snapshot, "y"),)), Preemption.FULL)
        assert any("half a gang" in sentence for sentence in said) is is_fault
    both = replace(snapshot, budgets=(keep,))
    said = preemption_checks.faults(
        both, Plan(claims=(claims(snapshot, "x", "y"),)), Preemption.FULL
    )
    assert any("victim ml/y would be left as half a gang" in sentence for sentence in said)


def starts(
    snapshot: Snapshot, *names: str, protected: bool | None = True, into: str = "a"
) -> tuple[Placement, ...]:
    """Placements of all members of these gangs, with the record of each start."""
    placed = []
    for name in names:
        gang_ = found(snapshot, name)
        on = [Assignment(m.key, m.uid, m.version, NodeName("n1")) for m in gang_.members]
        record = None
        if protected is not None:
            amounts = resources()
            for m in gang_.members:
                amounts += m.shape.requests
            at_start = (RoleAtStart("", len(on), amounts),)
            record = QueueRecord(into, Uid(into), 60.0, at_start, is_protected=protected)
        placed.append(Placement(gang_.key, gang_.uid, 0, tuple(on), record=record))
    return tuple(placed)


def borrows(snapshot: Snapshot, placements: Sequence[Placement]) -> dict[str, str]:
    found_ = preemption_checks.borrowers(snapshot, placements)
    return {gang_.name: sentence for gang_, sentence in found_.items()}


NEVER = gang("new").of(4, gpu=1).but(queue="a", is_protected=True)


def test_a_gang_that_cannot_be_ended_starts_only_if_its_own_queue_covers_it() -> None:
    within, beyond = scene(A, B, NEVER), scene(queue("a", 3), B, NEVER)
    assert borrows(within, starts(within, "new")) == {}
    (sentence,) = borrows(beyond, starts(beyond, "new")).values()
    assert sentence == "gang ml/new: it cannot be ended, and it would borrow"
    parent = scene(queue("p", 8), queue("a", 3, parent="p"), NEVER)
    assert list(borrows(parent, starts(parent, "new"))) == ["new"]
    any_ = scene(queue("a", 3), B, NEW)
    assert borrows(any_, starts(any_, "new", protected=False)) == {}
    nowhere = scene(NEVER)
    assert borrows(nowhere, starts(nowhere, "new")) == {}


def test_a_gang_whose_job_would_fail_or_is_unknown_cannot_be_ended() -> None:
    of_job = NEW.each(owner=Owner("Job", "train", "batch"))
    for left, is_protected in ((4, True), (5, False), (None, False)):
        snapshot = scene(A, B, of_job, Job(NAMESPACE, "train", left))
        made = starts(snapshot, "new", protected=is_protected)
        assert borrows(snapshot, made) == {}
        assert list(borrows(snapshot, starts(snapshot, "new", protected=not is_protected)))
    unknown = replace(scene(A, B, of_job), jobs={})
    assert borrows(unknown, starts(unknown, "new")) == {}


def test_of_gangs_that_start_together_the_later_one_borrows() -> None:
    """A gang that runs comes before both; one that can be ended after both."""
    first, second = (
        gang(name).of(2, gpu=1).but(queue="a", is_protected=True) for name in ("x", "y")
    )
    above = runs(gang("above").of(4, gpu=1).priority(9), "a")
    snapshot = scene(A, B, first, second, *above)
    assert borrows(snapshot, starts(snapshot, "x", "y")) == {}
    record = above[1].record
    assert record is not None
    held = replace(above[1], record=replace(record, is_protected=True))
    snapshot = scene(A, B, first, second, above[0], held)
    assert list(borrows(snapshot, starts(snapshot, "x", "y"))) == ["x", "y"]
    small = scene(queue("a", 2), B, first, second)
    assert list(borrows(small, starts(small, "x", "y"))) == ["y"]


def test_the_record_of_a_start_says_what_the_podgroup_says() -> None:
    for of, is_protected in ((NEW, True), (NEVER, False)):
        snapshot = scene(A, B, of)
        (sentence,) = borrows(snapshot, starts(snapshot, "new", protected=is_protected)).values()
        assert "its record does not say whether it can be ended" in sentence
    snapshot = scene(A, B, NEVER)
    assert borrows(snapshot, starts(snapshot, "new", protected=None)) == {}
    run = scene(A, B, *runs(gang("old").of(2, gpu=1).but(is_protected=True), "a"))
    assert borrows(run, starts(run, "old", protected=False)) == {}
    snapshot = scene(A, B, NEVER, *OLD)
    record = starts(snapshot, "new", protected=False)[0].record
    assert (
        "does not say"
        in said(snapshot, claims(snapshot, "old", record=record), protected=["new"])[0]
    )


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"labels": labels(app="x")}, [budget("keep", 9, most=3, app="x")]),
        ({"labels": labels(app="x")}, [budget(n, 9, most=9, app="x") for n in ("one", "two")]),
        ({"grace_seconds": 61}, []),
    ],
)
def test_a_gang_that_no_eviction_would_end_whole_or_soon_may_not_borrow(
    changes: dict[str, Any], more: list[Part]
) -> None:
    quick = queue("a", 3, max_grace_seconds=60.0)
    beyond = scene(quick, B, NEW.each(**changes), *more)
    (sentence,) = borrows(beyond, starts(beyond, "new")).values()
    assert sentence == "gang ml/new: it cannot be ended, and it would borrow"
    (sentence,) = borrows(beyond, starts(beyond, "new", protected=False)).values()
    assert "its record does not say whether it can be ended" in sentence
    plain = scene(quick, B, NEW)
    assert borrows(plain, starts(plain, "new", protected=False)) == {}
    within = replace(beyond, queues=(replace(quick, guaranteed=A.guaranteed), B))
    assert borrows(within, starts(within, "new")) == {}
    record = starts(within, "new", protected=False)[0].record
    within = replace(within, gangs=tuple(sorted((*within.gangs, OLD[0].made), key=lambda g: g.key)))
    claim = claims(within, record=record)
    sentences = preemption_checks.faults(within, Plan(claims=(claim,)), Preemption.FULL)
    assert any("does not say whether it can be ended" in said for said in sentences)


def test_a_budget_that_allows_as_many_evictions_as_the_gang_has_pods_keeps_nothing() -> None:
    of = NEW.each(labels=labels(app="x"))
    snapshot = scene(queue("a", 3), B, of, budget("keep", 0, most=4, app="x"))
    assert borrows(snapshot, starts(snapshot, "new", protected=False)) == {}


def test_a_plan_that_lets_a_protected_gang_borrow_breaks_a_promise() -> None:
    snapshot = scene(queue("a", 3), B, NEVER)
    plan = Plan(placements=starts(snapshot, "new"), proved=False)
    assert any("it would borrow" in words for words in plan_checks.violations(snapshot, plan))
    assert plan_checks.upheld(snapshot, plan.placements) == ()
    free = scene(A, B, NEVER)
    assert plan_checks.upheld(free, starts(free, "new")) == starts(free, "new")


def test_who_runs_is_as_protected_as_its_record_says() -> None:
    """Without Queues the PodGroup counts; without a record nobody is protected beside Queues."""
    bound, held = OLD
    assert isinstance(bound, GangBuilder)
    assert isinstance(held, Reservation)
    assert held.record is not None
    kept = replace(held, record=replace(held.record, is_protected=True))
    never = bound.but(is_protected=True)
    cases = [((never, held), False), ((bound, kept), True), ((never,), False)]
    for parts, is_protected in cases:
        snapshot = scene(A, B, NEW, *parts)
        plan = Plan(claims=(claims(snapshot, "old"),))
        sentences = preemption_checks.faults(snapshot, plan, Preemption.FULL)
        assert any("old cannot be ended" in words for words in sentences) is is_protected
    high = NEW.priority(9)
    for of, is_protected in ((never, True), (bound, False)):
        snapshot = scene(high, of)
        plan = Plan(claims=(claims(snapshot, "old", by_guarantee=False),))
        sentences = preemption_checks.faults(snapshot, plan, Preemption.FULL)
        assert any("old cannot be ended" in words for words in sentences) is is_protected


def test_a_gang_that_a_reservation_holds_room_for_is_as_its_record_says() -> None:
    of = gang("b").of(1, gpu=1).but(queue="a", is_protected=True)
    for slots in ((), (SlotReservation(NodeName("n1"), "", 1),)):
        entries = () if slots else (("b-0", "n1"),)
        held = reservation(of, *entries, slots=slots)
        record = QueueRecord("a", Uid("a"), 1.0, (RoleAtStart("", 1, resources(gpu=1, pods=1)),))
        for is_protected in (False, True):
            kept = replace(held, record=replace(record, is_protected=is_protected))
            snapshot = scene(A, B, of, kept)
            assert (key("b") in preemption_checks._protected(snapshot, ())) is is_protected


def test_no_gang_ends_before_it_has_run_for_as_long_as_its_queue_says() -> None:
    for seconds, is_fault in ((60.0, True), (59.0, False)):
        snapshot = scene(A, replace(B, min_run_seconds=seconds), NEW, *OLD)
        sentences = said(snapshot, claims(snapshot, "old"))
        assert any("has not run for long enough" in words for words in sentences) is is_fault
    snapshot = scene(A, B, NEW, *OLD)
    assert said(snapshot, claims(snapshot, "old")) == ()
