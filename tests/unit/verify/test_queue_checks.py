"""The checker catches plans that exceed the limit of a queue, or start gangs in no queue."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tutti.model.cluster import STUCK_SECONDS, Phase, Reservation, SlotReservation, Snapshot
from tutti.model.decisions import GangCap, Placement, Plan
from tutti.model.inter_pod import Requirement
from tutti.model.keys import NodeName, Uid
from tutti.model.queues import ROOT, Queue, QueueMode, QueueRecord, RoleAtStart, Stop
from tutti.verify import plan_checks
from tutti.verify.queues import starts
from tutti.verify.queues.charges import QueueCharges

from ...harness.builders import (
    GangBuilder,
    Part,
    gang,
    member,
    node,
    reservation,
    resources,
    shape,
    single,
    snapshot_of,
    space,
)
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
    return plan_checks.violations(snapshot_of(ROOMY, ML, *parts), Plan(placements))


def upheld(*parts: Part) -> list[str]:
    placements = tuple(starting(part) for part in parts if isinstance(part, GangBuilder))
    kept = plan_checks.upheld(snapshot_of(ROOMY, ML, *parts), placements)
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
    snapshot = snapshot_of(node("n1", cpu=64, memory=9), ML, capped("a", 1000), runs, free)
    assert plan_checks.violations(snapshot, Plan((starting(free),))) == ()
    assert plan_checks.upheld(snapshot, (starting(free),)) == (starting(free),)


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


def record(of: GangBuilder, name: str, **requests: int) -> Reservation:
    """The record of a start in this queue with three members without roles, and no more."""
    start = RoleAtStart("", 3, resources(pods=3, **requests))
    queue_record = QueueRecord(name, Uid(f"{name}-1"), 0.0, (start,))
    return replace(reservation(of), record=queue_record)


def test_a_lost_member_stays_charged_and_its_replacement_adds_nothing() -> None:
    runs = gang("r").of(3, cpu=1).bound_on("n1", "n1", "n1").but(queue="a")
    lost = runs.last(1, phase=Phase.FAILED)
    started = record(runs, "a", cpu=3)
    one = gang("b").of(1, cpu=1).but(queue="a")
    assert broken(capped("a", 3000), lost, one) == ()
    sentence = "cap queue a: 4 of 3 cpu would be in use"
    assert broken(capped("a", 3000), lost, started, one) == (sentence,)
    assert upheld(capped("a", 3000), lost, started, one) == ["r"]
    repaired = lost.of(1, cpu=1).needing(3)
    assert broken(capped("a", 3000), repaired, started) == ()
    assert upheld(capped("a", 3000), repaired, started, one) == ["r"]
    larger = lost.of(1, cpu=2).needing(3)
    assert broken(capped("a", 3000), larger, started) == (sentence,)
    leaving = runs.last(1, terminating=True).of(1, cpu=1).needing(3)
    assert broken(capped("a", 3000), leaving, started) == (sentence,)


def test_members_beyond_those_needed_pay_in_full() -> None:
    runs = gang("r").of(3, cpu=1).bound_on("n1", "n1", "n1").but(queue="a")
    grown = runs.last(1, phase=Phase.FAILED).of(2, cpu=1).needing(3)
    started = record(runs, "a", cpu=3)
    assert broken(capped("a", 3999), grown, started) == (
        "cap queue a: 4 of 3999m cpu would be in use",
    )
    assert broken(capped("a", 4000), grown, started) == ()


def test_members_that_joined_first_are_needed_and_an_older_one_that_joins_is_an_extra() -> None:
    both = gang("a").of(1, cpu=1).of(1, cpu=3).needing(1).but(queue="a")
    older, younger = both.members
    start = QueueRecord("a", Uid("a-1"), 0.0, (RoleAtStart("", 1, resources(cpu=3)),))
    spent = replace(reservation(both), record=start)
    joins = both.only("a-1", node="n1")
    first = replace(spent, charged=(younger.uid,))
    assert cap_sentences(capped("a", 4000), first, joins) == []
    assert cap_sentences(capped("a", 3999), first, joins) != []
    third = gang("b").of(1, cpu=1).but(queue="a")
    runs = both.bound_on("n1", "n1")
    second = replace(spent, charged=(younger.uid, older.uid))
    assert cap_sentences(capped("a", 5000), runs, second, third) == []
    standing = replace(reservation(both, ("a-0", "n1")), record=start, charged=(younger.uid,))
    assert cap_sentences(capped("a", 5000), runs, standing, third) == []
    earlier = replace(first, uid=Uid("earlier"))
    own = replace(spent, charged=(older.uid,))
    assert cap_sentences(capped("a", 5000), runs, earlier, own, third) == []
    assert cap_sentences(capped("a", 4999), runs, earlier, own, third) != []
    together = replace(reservation(both, ("a-0", "n1"), ("a-1", "n1")), record=start)
    assert cap_sentences(capped("a", 5000), runs, together, third) != [], "the oldest comes first"


def test_members_that_succeeded_are_no_longer_charged() -> None:
    runs = gang("r").of(3, cpu=1).bound_on("n1", "n1", "n1").but(queue="a")
    done = runs.last(2, phase=Phase.SUCCEEDED)
    one = gang("b").of(2, cpu=1).but(queue="a")
    start = record(runs, "a", cpu=3)
    assert broken(capped("a", 3000), done, start, one) == (
        "cap queue a: 5 of 3 cpu would be in use",
    ), "nothing is written down so far"
    assert start.record is not None
    written = replace(start, record=replace(start.record, succeeded=(("", 2),)))
    assert broken(capped("a", 3000), done, written, one) == ()
    grown = done.of(1, cpu=1).needing(1)
    assert broken(capped("a", 1999), grown, written) != (), "it takes no place of theirs"


def test_the_roles_of_the_record_count() -> None:
    runs = gang("r").role("x", 1, cpu=1).role("y", 1, 2, cpu=2).but(queue="a").needing(2)
    runs = runs.bound_on("n1", "n1", "n1")
    lost = runs.only("r-0", phase=Phase.FAILED)
    starts = RoleAtStart("x", 1, resources(cpu=1)), RoleAtStart("y", 1, resources(cpu=2))
    queue_record = QueueRecord("a", Uid("a-1"), 0.0, starts)
    started = replace(reservation(runs), record=queue_record)
    one = gang("b").of(1, cpu=1).but(queue="a")
    assert broken(capped("a", 6000), lost, started, one) == (), "no y takes the place of x"
    assert broken(capped("a", 5999), lost, started, one) == (
        "cap queue a: 6 of 5999m cpu would be in use",
    )
    repaired = lost.of(1, role="x", cpu=1)
    assert broken(capped("a", 4000), repaired, started) == (), "it adds nothing"
    grown = lost.of(1, role="y", cpu=1)
    assert broken(capped("a", 5999), grown, started) == (
        "cap queue a: 6 of 5999m cpu would be in use",
    )


def test_slots_count_among_the_members_of_the_record() -> None:
    runs = gang("r").role("w", 3, 1, cpu=1).but(queue="a").bound_on("n1").needing(3)
    slots = [SlotReservation(NodeName("n1"), "w", 2)]
    starts = (RoleAtStart("w", 3, resources(cpu=3, pods=3)),)
    queue_record = QueueRecord("a", Uid("a-1"), 0.0, starts)
    standing = replace(reservation(runs, slots=slots), record=queue_record)
    one = gang("b").of(1, cpu=1).but(queue="a")
    assert cap_sentences(capped("a", 4000), runs, standing, one) == []
    assert cap_sentences(capped("a", 3999), runs, standing, one) == [
        "cap queue a: 4 of 3999m cpu would be in use"
    ]


@pytest.mark.parametrize(
    ("limit", "taking", "cpu"),
    [(6000, 1, None), (5000, 1, "6"), (6000, 2, None), (7000, 0, None), (6000, 0, "7")],
)
def test_a_member_that_takes_a_slot_has_its_place(limit: int, taking: int, cpu: str | None) -> None:
    """An older extra that joins with it has none, whatever the plan says of it."""
    made = gang("r").role("w", 1, 1, cpu=1).role("d", 1, 0).declaring(cpu=3).needing(2)
    runs = made.but(queue="a").only("r-0", node=NodeName("n1"))
    minimum = RoleAtStart("d", 1, resources(cpu=3)), RoleAtStart("w", 1, resources(cpu=1))
    record = QueueRecord("a", Uid("a-1"), 0.0, minimum)
    slots = [SlotReservation(NodeName("n1"), "d", 1)]
    standing = replace(reservation(runs, slots=slots), record=record)
    sizes = {"r-8": (2, 1.0), "r-9": (3, 2.0)}  # the extra is older
    arrived = [
        replace(member(name, shape(cpu=n), role="d"), group="r", created=created)
        for name, (n, created) in sizes.items()
    ]
    grown = replace(runs, members=(*runs.members, *arrived))
    extra, taker = placing(grown, ("r-8", "n1"), ("r-9", "n1")).assignments
    takers = [replace(a, role="d", fills_slot=True) for a in (taker, extra)][:taking]
    rest = [a for a in (taker, extra) if a.uid not in {t.uid for t in takers}]
    plan = Plan((replace(placing(grown), assignments=(*takers, *rest)),))
    seen = snapshot_of(ROOMY, ML, capped("a", limit), grown, standing)
    faults = [f"cap queue a: {cpu} of {limit // 1000} cpu would be in use"] if cpu else []
    assert [*plan_checks.violations(seen, plan)] == faults


def cap_sentences(*parts: Part) -> list[str]:
    """What a plan breaks of limits that starts the last gang."""
    seen, last = snapshot_of(ROOMY, ML, *parts), parts[-1]
    assert isinstance(last, GangBuilder)
    return [*plan_checks.violations(seen, Plan((starting(last),)))]


def test_a_gang_that_runs_counts_in_the_queue_of_its_record() -> None:
    runs = gang("r").of(3, cpu=1).bound_on("n1", "n1", "n1").but(queue="b")
    one = gang("c").of(1, cpu=1).but(queue="a")
    queues = capped("a", 3000), queue("b")
    assert cap_sentences(*queues, runs, one) == []
    started = record(runs, "a", cpu=3)
    assert cap_sentences(*queues, runs, started, one) == ["cap queue a: 4 of 3 cpu would be in use"]
    again = replace(queues[0], uid=Uid("a-2"))
    assert cap_sentences(again, queue("b"), runs, started, one) == []
    over = runs.each(phase=Phase.FAILED)
    assert cap_sentences(*queues, over, started, one) == []


def test_pods_whose_podgroup_is_gone_stay_charged() -> None:
    runs = gang("r").role("x", 3, cpu=1).bound_on("n1", "n1", "n1")
    starts = (RoleAtStart("x", 3, resources(cpu=3, pods=3)),)
    started = replace(reservation(runs), record=QueueRecord("a", Uid("a-1"), 0.0, starts))
    one = gang("b").of(1, cpu=1).but(queue="a")
    snapshot = snapshot_of(ROOMY, ML, capped("a", 3000), started, one, strays=runs.members)
    broken = plan_checks.violations(snapshot, Plan((starting(one),)))
    assert broken == ("cap queue a: 4 of 3 cpu would be in use",)
    assert plan_checks.upheld(snapshot, (starting(one),)) == ()
    lost = runs.last(1, phase=Phase.FAILED)
    snapshot = snapshot_of(ROOMY, ML, capped("a", 3000), started, one, strays=lost.members)
    assert plan_checks.violations(snapshot, Plan((starting(one),))) == (), "none replaces it"
    snapshot = snapshot_of(ROOMY, ML, capped("a", 3000), started, one)
    assert plan_checks.violations(snapshot, Plan((starting(one),))) == ()


def test_no_gang_starts_while_pods_of_its_name_are_charged_to_another_queue() -> None:
    leaving = gang("a").of(1, cpu=1).bound_on("n1").each(terminating=True).of(1, cpu=1).needing(1)
    record = QueueRecord("vision", Uid("vision-1"), 0.0)
    held = replace(reservation(leaving), uid=Uid("earlier"), record=record)
    queues = (queue("vision"), queue("nlp"))
    assert broken(*queues, held, leaving.but(queue="vision")) == ()
    assert broken(*queues, held, leaving.but(queue="nlp")) == (
        "gang ml/a: its pods are charged to queue vision",
    )


def test_a_placement_whose_record_is_stale_is_not_upheld() -> None:
    """The queue was made again, or the gang names another, since the plan was made."""
    start = starting(A)
    vision, other = queue("a"), queue("b")
    for written, expected in (
        (None, ["a"]),
        (QueueRecord("a", vision.uid, 0.0), ["a"]),
        (QueueRecord("a", Uid("a-0"), 0.0), []),
        (QueueRecord("b", other.uid, 0.0), []),
        (QueueRecord(ROOT, Uid(""), 0.0), []),
    ):
        world = snapshot_of(ROOMY, ML, vision, other, A)
        kept = plan_checks.upheld(world, [replace(start, record=written)])
        assert [placement.gang.name for placement in kept] == expected
    alone = single("p", cpu=1)
    assert upheld(vision, alone) == ["p"]


def caps(world: Snapshot) -> Sequence[GangCap]:
    """The limits of its queues, as the check sees them."""
    return starts.caps(QueueCharges.of(world, ()))


def test_what_runs_without_a_record_is_charged_somewhere_whatever_it_names() -> None:
    default = capped("b", 2000, default_for=(), created=1.0)
    later = capped("c", 2000, default_for=(), created=2.0)
    runs = A.bound_on("n1", "n1")
    for named, above in (("a", "a"), ("gone", "b"), ("", "b")):
        parents = (capped("a", 2000), queue("d", parent="a"), default, later)
        snapshot = snapshot_of(ROOMY, ML, *parents, runs.but(queue=named))
        holding = [cap.name for cap in caps(snapshot) if runs.key in cap.gangs]
        assert holding == [f"queue {above}"]
    inner = (capped("a", 2000, default_for=()), queue("d", parent="a"))
    snapshot = snapshot_of(ROOMY, ML, *inner, runs.but(queue=""))
    assert [cap.gangs for cap in caps(snapshot)] == [{runs.key}]
    unseen = snapshot_of(ROOMY, *inner, runs.but(queue=""))
    assert caps(unseen) == []


def waits_for(limit: int, *, second: bool = True, stuck: bool = False) -> list[str]:
    """The claims that wait; the victim of the second one terminates."""
    victim = gang("victim").of(2, cpu=1).bound_on("n1", "n1").but(queue="a")
    gone_by = -STUCK_SECONDS if stuck else 9.0
    parts = [victim.each(terminating=True, gone_by=gone_by)]
    claims = []
    for number, name in enumerate(("c1", "c2") if second else ("c1",)):
        claimant = gang(name).of(2, cpu=1).but(queue="a")
        entries = ((f"{name}-{i}", "n1") for i in range(2))
        claims.append(replace(reservation(claimant, *entries, at=float(number)), victims=()))
        parts.append(claimant)
    world = snapshot_of(ROOMY, ML, capped("a", limit), queue("b"), B, *parts, *claims)
    return sorted(key.name for key in starts.limited_claims(world, claims, {}).waiting)


def test_a_claim_waits_for_pods_that_leave_room_below_its_limit() -> None:
    assert waits_for(2000, second=False) == ["c1"]
    assert waits_for(4000, second=False) == []
    assert waits_for(2000, second=False, stuck=True) == []


def test_a_claim_does_not_wait_for_the_victims_of_a_younger_claim() -> None:
    assert waits_for(4000) == ["c2"]


def test_a_claim_of_another_queue_does_not_wait_for_a_limit() -> None:
    victim = gang("victim").of(2, cpu=1).bound_on("n1", "n1").but(queue="a")
    leaving = victim.each(terminating=True, gone_by=9.0)
    claimant = gang("c").of(2, cpu=1).but(queue="b")
    claim = replace(reservation(claimant, ("c-0", "n1"), ("c-1", "n1")), victims=())
    world = snapshot_of(ROOMY, ML, capped("a", 1000), B, leaving, claimant, claim)
    assert starts.limited_claims(world, [claim], {}) == starts.LimitedClaims()


def test_a_claim_waits_for_what_leaves_below_a_limit_that_was_lowered() -> None:
    assert waits_for(1000, second=False) == ["c1"]


@pytest.mark.parametrize(
    ("limit", "queue_of_victim", "is_limited"),
    [(2000, "a", True), (1000, "a", True), (4000, "a", False), (1000, "b", False)],
)
def test_victims_below_an_exceeded_limit_must_end(
    limit: int, queue_of_victim: str, *, is_limited: bool
) -> None:
    victim = gang("victim").of(2, cpu=1).bound_on("n1", "n1").but(queue=queue_of_victim)
    claimant = gang("c").of(2, cpu=1).but(queue="a")
    claim = replace(reservation(claimant, ("c-0", "n1"), ("c-1", "n1")), victims=())
    world = snapshot_of(ROOMY, ML, capped("a", limit), queue("b"), victim, claimant, claim)
    staying = {claim.uid: {member.uid for member in victim.members}}
    limited = starts.limited_claims(world, [claim], staying)
    assert limited.ending == limited.waiting == ({claimant.key} if is_limited else set())
    assert starts.limited_claims(world, [claim], {claim.uid: ()}) == starts.LimitedClaims()


def test_victims_stay_if_what_leaves_by_itself_makes_room_below_the_limit() -> None:
    victim = gang("victim").of(1, cpu=1).bound_on("n1").but(queue="a")
    leaves = gang("w").of(1, cpu=1).bound_on("n1").but(queue="a")
    claimant = gang("c").of(2, cpu=1).but(queue="a")
    claim = replace(reservation(claimant, ("c-0", "n1"), ("c-1", "n1")), victims=())
    parts = victim, leaves.each(terminating=True, gone_by=9.0), claimant, claim
    for limit, ending in ((2000, {claimant.key}), (3000, set())):
        world = snapshot_of(ROOMY, ML, capped("a", limit), *parts)
        limited = starts.limited_claims(world, [claim], {claim.uid: {victim.members[0].uid}})
        assert (limited.ending, limited.waiting) == (ending, {claimant.key})


def test_a_claim_waits_for_the_victims_of_another_below_its_limit() -> None:
    """Also if more is charged than pods request: one member of the victim is lost."""
    victim = gang("victim").of(2, cpu=1).bound_on("n1", "n1").but(queue="a")
    lost = victim.only("victim-1", phase=Phase.FAILED)
    starting = QueueRecord("a", Uid("a-1"), 0.0, (RoleAtStart("", 2, resources(cpu=2)),))
    start = replace(reservation(lost), record=starting, charged=(lost.members[0].uid,))
    gangs = [gang(name).of(1, cpu=1).but(queue="a") for name in ("c1", "c2")]
    claims = [
        replace(reservation(made, (f"{made.key.name}-0", "n1"), at=float(number)), victims=())
        for number, made in enumerate(gangs)
    ]
    world = snapshot_of(ROOMY, ML, capped("a", 2000), lost, start, *gangs, *claims)
    staying = {claims[0].uid: {lost.members[0].uid}}
    limited = starts.limited_claims(world, claims, staying)
    assert (limited.ending, limited.waiting) == ({gangs[0].key}, {made.key for made in gangs})


def test_a_claim_with_a_stuck_pod_below_its_limit_is_named_with_the_pod() -> None:
    stuck = gang("w").of(2, cpu=1).bound_on("n1", "n1").but(queue="a")
    stuck = stuck.each(terminating=True, gone_by=-STUCK_SECONDS)
    claimant = gang("c").of(1, cpu=1).but(queue="a")
    claim = replace(reservation(claimant, ("c-0", "n1")), victims=())
    for limit, named in ((2000, {claimant.key: "w-0"}), (3000, {})):
        world = snapshot_of(ROOMY, ML, capped("a", limit), stuck, claimant, claim)
        limited = starts.limited_claims(world, [claim], {})
        assert {key: pod.key.name for key, pod in limited.stuck.items()} == named
        assert limited.ending | limited.waiting == set()
