"""Which gangs end so that others start, and where these are placed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from tutti.model.cluster import (
    STUCK_SECONDS,
    Reservation,
    ReservedVictim,
    SlotReservation,
    Snapshot,
)
from tutti.model.decisions import Claim, Policy
from tutti.model.inter_pod import PodSelector
from tutti.model.keys import GangKey, NodeName, Uid
from tutti.model.queues import Preemption, Queue, QueueRecord, RoleAtStart
from tutti.planning import compiled_demand, observed_demand, queued_gangs
from tutti.planning.compile.quotas import Quotas
from tutti.planning.queueing import preemption, victims
from tutti.planning.queueing.ledger import QueueLedger
from tutti.planning.queueing.preemption import ClaimedPlan
from tutti.planning.queueing.victim_pool import PreemptionRules
from tutti.planning.search import round_answer
from tutti.planning.search.limits import SearchLimits
from tutti.strategies import STRATEGIES
from tutti.verify.preemption import checks as preemption_checks

from ....harness.builders import (
    AMPLE_BUDGET,
    GPU,
    NAMESPACE,
    GangBuilder,
    Part,
    gang,
    member,
    node,
    peers,
    reservation,
    resources,
    shape,
    single,
    snapshot_of,
    space,
)
from ..test_queued_gangs import queue

NOW = 100.0
LIMITS = SearchLimits(STRATEGIES["ilp"](), STRATEGIES["bestfit"](), AMPLE_BUDGET, Policy(), NOW)
FULL = dict.fromkeys(("a", "b", "root"), Preemption.FULL)


def gpus(guaranteed: int, limit: int | None = None) -> dict[str, Any]:
    limits = () if limit is None else ((GPU, limit),)
    return {"guaranteed": ((GPU, guaranteed),), "limits": limits}


A, B = queue("a", **gpus(4)), queue("b", **gpus(4))


def waits(name: str, into: str, gpu: int, priority: int = 0, **changes: Any) -> GangBuilder:
    changes = {"created": 50.0, "queue": into, **changes}
    return gang(name).of(gpu, gpu=1).priority(priority).but(**changes)


def runs(builder: GangBuilder, into: Queue, *, on: str = "n1", start: float = 20.0) -> list[Part]:
    """A gang of which all members are on one node, and the record of its start."""
    bound = builder.each(node=NodeName(on), bound_at=0.0).but(queue=into.name)
    made = bound.made
    starts = (
        RoleAtStart("", made.min_member, resources(gpu=made.min_member, pods=made.min_member)),
    )
    record = QueueRecord(into.name, into.uid, start, starts)
    return [bound, replace(reservation(bound), record=record)]


def old(name: str = "old", gpu: int = 8, into: Queue = B, **more: Any) -> list[Part]:
    return runs(gang(name).of(gpu, gpu=1), into, **more)


def seen(*parts: Part, gpu: int = 8, **more: Any) -> Snapshot:
    return snapshot_of(space(NAMESPACE), node("n1", gpu=gpu), *parts, at=NOW, **more)


def plan(
    cluster: Snapshot,
    *,
    modes: Mapping[str, Preemption] = FULL,
    starts: Collection[str] = (),
    first: str = "",
    **declared: Any,
) -> tuple[Claim, ...]:
    """The claims once these gangs have started; ``verify`` has nothing against them."""
    queued = queued_gangs.queue_gangs(observed_demand.observe(cluster))
    quotas = Quotas.of(queued.limits, queued.credit_of)
    compiled = compiled_demand.compile_demand(queued.observed, quotas)
    wants = [want for want in compiled.requests if want.gang.key.name in starts]
    placed = round_answer.answer_round(compiled.blank, wants, LIMITS)
    ledger = QueueLedger.of(queued, preemption.charged_gangs(queued), compiled.tried)
    ledger = ledger.with_assigned([want.gang.key for want in wants], placed.assigned)
    rules = PreemptionRules(modes, **declared)
    claimed = ClaimedPlan.of(compiled, placed, ledger, rules, LIMITS)
    key = GangKey(NAMESPACE, first) if first else None
    claimed = preemption.claim_by_guarantee(claimed, compiled.requests, key)
    claimed = preemption.claim_by_priority(claimed, compiled.requests)
    assert claimed.plan.assigned == placed.assigned
    if not starts:
        said = preemption_checks.violations(cluster, claimed.claims, modes, rules.protected)
        assert said == ()
    return claimed.claims


def ends(claims: Sequence[Claim]) -> dict[str, list[str]]:
    """Whom each claimant ends: whole gangs by name, extras by pod."""
    return {
        claim.gang.name: [
            name
            for victim in claim.victims
            for name in (
                [victim.gang.name] if victim.is_whole else [m.key.name for m in victim.members]
            )
        ]
        for claim in claims
    }


def test_a_gang_that_its_queue_guarantees_ends_what_borrows() -> None:
    (claim,) = plan(seen(A, B, waits("new", "a", 4), *old()))
    assert ends([claim]) == {"new": ["old"]}
    assert (claim.by_guarantee, claim.is_proved, claim.cost) == (True, True, Fraction(80))
    assert [assignment.node for assignment in claim.assignments] == ["n1"] * 4
    (victim,) = claim.victims
    assert (victim.is_whole, len(victim.members)) == (True, 8)


def test_free_room_is_used_first_and_only_the_rest_is_claimed() -> None:
    parts = [A, B, waits("new", "a", 4), *old("x", 4), *old("y", 2), *old("z", 1)]
    assert ends(plan(seen(*parts, gpu=10))) == {"new": ["z"]}
    assert ends(plan(seen(*parts, gpu=9))) == {"new": ["y"]}
    assert ends(plan(seen(*parts, gpu=11))) == {"new": []}


def test_extras_end_before_their_gang() -> None:
    elastic = gang("old").of(8, gpu=1).needing(3)
    (claim,) = plan(seen(A, B, waits("new", "a", 2), *runs(elastic, B)))
    assert sorted(ends([claim])["new"]) in (["old-4", "old-5"], ["old-6", "old-7"])
    assert not claim.victims[0].is_whole


@pytest.mark.parametrize("changes", [{}, {"victims": ()}, {"evict": (Uid("x"),)}, {"slots": ()}])
def test_a_gang_with_slots_for_absent_members_alone_ends_whole(changes: dict[str, Any]) -> None:
    """It would keep what it borrows for as long as it waits for them, up to a day."""
    bound, start = runs(gang("old").role("w", 8, 7, gpu=1).declaring(gpu=1), B)
    assert isinstance(bound, GangBuilder)
    assert isinstance(start, Reservation)
    entries = [(member.key.name, "n1") for member in bound.members]
    slots = [SlotReservation(NodeName("n1"), "w", 1)]
    held = replace(reservation(bound, *entries, slots=slots), record=start.record, **changes)
    answer = ends(plan(seen(A, B, bound, held, waits("new", "a", 4))))
    assert answer == ({} if changes else {"new": ["old"]})


def test_no_gang_ends_that_ends_for_another_already() -> None:
    """Also once its pods have gone that the claim names: the judge counts all of its victims."""
    bound, start = old("old", 4)
    other = waits("other", "a", 1)
    assert isinstance(bound, GangBuilder)
    victim = ReservedVictim(bound.key, bound.made.uid, (Uid("gone"),), is_whole=False)
    held = replace(reservation(other, ("other-0", "n1")), victims=(victim,))
    new = waits("new", "a", 4)
    assert ends(plan(seen(A, queue("b"), bound, start, new, gpu=5))) == {"new": ["old"]}
    assert ends(plan(seen(A, queue("b"), bound, start, new, other, held, gpu=5))) == {}


def test_members_of_other_sizes_end_only_what_they_may() -> None:
    """With the oldest member an extra would borrow, and with the smallest it is covered."""
    top = queue("p", **gpus(4))
    lower = queue("c", parent="p", **gpus(3)), queue("v", parent="p")
    elastic = runs(gang("elastic").of(2, gpu=1).needing(1), lower[1])
    new = gang("new").of(1, gpu=3).of(1, gpu=1).needing(1).but(created=50.0, queue="c")
    modes = dict.fromkeys(("p", "c", "v", "root"), Preemption.FULL)
    assert plan(seen(top, *lower, *elastic, new, gpu=2), modes=modes) == ()
    (claim,) = plan(seen(top, *lower, *elastic, new, gpu=3), modes=modes)
    assert ([a.pod.name for a in claim.assignments], claim.victims) == (["new-1"], ())


def test_the_extras_of_a_gang_with_slots_do_not_end_without_it() -> None:
    bound, start = runs(gang("old").of(8, gpu=1).needing(3), B)
    assert isinstance(start, Reservation)
    held = replace(start, slots=(SlotReservation(NodeName("n1"), "", 1),))
    new = waits("new", "a", 2)
    assert [*ends(plan(seen(A, B, bound, start, new, gpu=8)))] == ["new"]
    assert ends(plan(seen(A, B, bound, held, new, gpu=9))) == {}


def test_a_gang_that_has_just_started_ends_before_an_extra_of_another_gang() -> None:
    elastic = runs(gang("old").of(8, gpu=1).needing(3), B)
    young = old("young", 2, start=90)
    assert ends(plan(seen(A, queue("b"), waits("new", "a", 1), *elastic, *young, gpu=10))) == {
        "new": ["young"]
    }


def test_the_gang_that_lost_less_work_ends() -> None:
    parts = [A, B, waits("new", "a", 4), *old("x", 4, start=90), *old("y", 4, start=80)]
    x, y = GangKey(NAMESPACE, "x"), GangKey(NAMESPACE, "y")
    borrow = [A, queue("b"), *parts[2:]]
    assert ends(plan(seen(*borrow))) == {"new": ["x"]}
    assert ends(plan(seen(*borrow), spent={x: Fraction(6)})) == {"new": ["y"]}
    assert ends(plan(seen(*borrow), protected=frozenset({x}))) == {"new": ["y"]}
    assert ends(plan(seen(*borrow), protected=frozenset({x, y}))) == {}
    (only,) = plan(seen(*parts), spent={x: Fraction(60)})
    assert ends([only]) == {"new": ["x"]}  # the other one is covered
    assert only.cost == only.lost + 60


def test_a_member_that_waited_after_the_start_of_its_gang_costs_what_it_has_run_for() -> None:
    """Not what it has existed for; that counts if it is not known when it got its node."""
    elastic = gang("old").of(8, gpu=1).needing(4)
    for bound_at, cost in ((90.0, Fraction(10)), (None, Fraction(60)), (10.0, Fraction(80))):
        bound, start = runs(elastic.each(created=40.0), B)
        assert isinstance(bound, GangBuilder)
        assert isinstance(start, Reservation)
        start = replace(start, charged=tuple(member.uid for member in bound.members))
        late = bound.last(4, bound_at=bound_at)
        (claim,) = plan(seen(A, B, waits("new", "a", 1), late, start))
        assert (len(claim.victims[0].members), claim.cost) == (1, cost / 8)


def test_earlier_ends_count_for_a_day_of_its_own_work_at_most() -> None:
    """So a gang that was ended often can be ended again."""
    day = 24 * 3600
    x, y = GangKey(NAMESPACE, "x"), GangKey(NAMESPACE, "y")
    parts = [A, queue("b"), waits("new", "a", 4), *old("x", 4, start=90), *old("y", 4, start=90)]
    (claim,) = plan(seen(*parts), spent={x: Fraction(9 * day), y: Fraction(9 * day)})
    assert claim.cost == claim.lost + Fraction(day, 2)  # it has half of the cluster


def test_what_leaves_costs_nothing_and_its_gang_is_covered_no_more() -> None:
    leaving = gang("old").of(8, gpu=1).each(terminating=True)
    (claim,) = plan(seen(A, B, waits("new", "a", 4), *runs(leaving, B)))
    assert (claim.victims, claim.cost) == ((), Fraction(0))
    assert len(claim.assignments) == 4


def test_claims_count_those_before_them() -> None:
    cluster = seen(A, B, waits("x", "a", 2), waits("y", "a", 2, 1), waits("z", "a", 2), *old())
    assert ends(plan(cluster)) == {"y": ["old"], "x": [], "z": []}
    first = plan(cluster, first="z")
    assert [(claim.gang.name, claim.by_guarantee) for claim in first] == [
        ("z", True),
        ("y", True),
        ("x", False),
    ]


def test_an_extra_that_has_ended_is_not_ended_again_with_its_gang() -> None:
    elastic = gang("old").of(5, gpu=1).needing(2)
    parent = queue("a", **gpus(4))
    parts = [parent, queue("b"), waits("x", "a", 1, 1), waits("y", "a", 3), *runs(elastic, B)]
    first, second = plan(seen(*parts, gpu=5))
    (extra,) = first.victims[0].members
    assert extra not in second.victims[0].members


def test_a_claimant_of_the_plan_is_no_victim() -> None:
    cluster = seen(A, B, waits("x", "b", 2), waits("y", "b", 6, 1), gpu=6)
    assert ends(plan(cluster)) == {"x": []}


def test_a_gang_to_which_the_plan_gives_a_node_is_no_victim_and_claims_nothing() -> None:
    cluster = seen(A, B, waits("new", "a", 4), waits("x", "b", 6))
    assert ends(plan(cluster, starts=["x"])) == {}


def test_a_gang_that_is_being_bound_is_no_victim() -> None:
    bound = gang("old").of(8, gpu=1).each(node=NodeName("n1")).but(queue="b")
    standing = reservation(bound, *((f"old-{i}", "n1") for i in range(8)))
    assert plan(seen(A, B, waits("new", "a", 4), bound, standing)) == ()


def test_a_gang_whose_pod_group_is_gone_is_no_victim() -> None:
    gone, record = old()
    assert isinstance(gone, GangBuilder)
    strays = [replace(m, node=NodeName("n1")) for m in gone.members]
    cluster = seen(A, B, waits("new", "a", 4), record, strays=strays)
    cluster = replace(cluster, nodes=(replace(cluster.nodes[0], used=resources(gpu=8, pods=8)),))
    assert plan(cluster) == ()


@pytest.mark.parametrize("late", [False, True])
def test_pods_that_terminate_leave_also_if_their_pod_group_is_gone(*, late: bool) -> None:
    """Without them, another gang would end for the room that they leave."""
    gone, record = old("gone", 4)
    assert isinstance(gone, GangBuilder)
    gone_by = NOW - STUCK_SECONDS if late else NOW
    strays = gone.each(terminating=True, gone_by=gone_by).members
    cluster = seen(A, B, waits("new", "a", 4), *old("other", 8), record, gpu=12, strays=strays)
    used = resources(gpu=12, pods=12)
    cluster = replace(cluster, nodes=(replace(cluster.nodes[0], used=used),))
    assert ends(plan(cluster)) == {"new": ["other"] if late else []}


@pytest.mark.parametrize("late", [False, True])
def test_pods_that_terminate_leave_their_limit_also_if_their_pod_group_is_gone(
    *, late: bool
) -> None:
    """Unless they are stuck: then nobody knows when the limit has room."""
    own = queue("a", **gpus(4, 4))
    gone, record = old("gone", 4, into=own)
    assert isinstance(gone, GangBuilder)
    strays = gone.each(terminating=True, gone_by=NOW - STUCK_SECONDS if late else NOW).members
    cluster = seen(own, B, waits("new", "a", 4), record, strays=strays)
    cluster = replace(cluster, nodes=(replace(cluster.nodes[0], used=resources(gpu=4, pods=4)),))
    assert ends(plan(cluster)) == ({} if late else {"new": []})


@pytest.mark.parametrize("limit", [8, None])
@pytest.mark.parametrize("late", [False, True])
def test_a_stuck_pod_beside_its_replacement_is_charged_until_it_has_gone(
    *, late: bool, limit: int | None
) -> None:
    """Both what its queue may use and what its queue must cover; else ``verify`` says so."""
    own, other = queue("a", **gpus(8, limit)), queue("b", **gpus(0))
    repaired, record = runs(gang("r").of(5, gpu=1).but(min_member=4), own)
    assert isinstance(repaired, GangBuilder)
    gone_by = NOW - STUCK_SECONDS if late else NOW
    repaired = repaired.last(1, terminating=True, gone_by=gone_by)
    parts: list[Part] = [own, other, waits("new", "a", 4), repaired, record]
    assert ends(plan(seen(*parts, *old("x", 7), gpu=12))) == ({} if late else {"new": ["x"]})
    stray = replace(member("older", shape(gpu=1)), node=NodeName("n1"), group="r")
    older = replace(stray, terminating=True)  # of an older run; it stays on the limit
    cluster = seen(*parts, *old("x", 6), gpu=12, strays=[older])
    used = replace(cluster.nodes[0], used=resources(gpu=12, pods=12))
    beside = ends(plan(replace(cluster, nodes=(used,))))
    assert beside == ({} if late or limit else {"new": ["x"]})


def test_a_stuck_pod_that_is_charged_by_itself_takes_no_cover_from_the_gang_of_its_label() -> None:
    made, record = runs(gang("r").of(5, gpu=1).but(min_member=4), B)
    assert isinstance(made, GangBuilder)
    assert isinstance(record, Reservation)
    named = replace(record, charged=tuple(m.uid for m in made.members[:4]))
    stuck = made.last(1, terminating=True, gone_by=NOW - STUCK_SECONDS)
    assert plan(seen(A, B, waits("new", "a", 4), stuck, named)) == ()


def test_a_gang_of_stuck_pods_is_charged_until_they_have_gone() -> None:
    own = queue("a", **gpus(4, 4))
    stuck, record = old("stuck", 4, into=own)
    assert isinstance(stuck, GangBuilder)
    stuck = stuck.each(terminating=True, gone_by=NOW - STUCK_SECONDS)
    assert plan(seen(own, B, waits("new", "a", 4), stuck, record)) == ()
    borrows = queue("a", **gpus(0, 4))
    low, record = runs(gang("stuck").of(4, gpu=1).priority(-1), borrows)
    assert isinstance(low, GangBuilder)
    low = low.each(terminating=True, gone_by=NOW - STUCK_SECONDS)
    assert plan(seen(borrows, B, waits("new", "a", 4), low, record)) == ()


def test_only_victims_that_help_end() -> None:
    pool = node("n2", gpu=8).tainted("other")
    parts: list[Part] = [
        A,
        B,
        waits("new", "a", 4),
        pool,
        *old("x", 8),
        *old("y", 8, on="n2", start=99),
    ]
    assert ends(plan(seen(*parts))) == {"new": ["x"]}
    assert plan(seen(*parts[:4], node("n3"), *old("y", 8, on="n2"), gpu=3)) == ()


def test_members_on_nodes_that_are_gone_free_nothing() -> None:
    lost = old("x", 8)
    half = gang("x").of(8, gpu=1).each(node=NodeName("n1")).last(1, node=NodeName("gone"))
    assert ends(plan(seen(A, B, waits("new", "a", 4), half.but(queue="b"), lost[1]))) == {
        "new": ["x"]
    }


def test_a_limit_makes_a_gang_on_another_node_end() -> None:
    parent = queue("p", limits=((GPU, 8),))
    own, other = queue("a", **gpus(4), parent="p"), queue("b", parent="p")
    parts: list[Part] = [
        parent,
        own,
        other,
        waits("new", "a", 4),
        node("n2", gpu=8).tainted("other"),
    ]
    cluster = seen(*parts, *old("y", 6, into=other, on="n2"))
    assert ends(plan(cluster)) == {"new": ["y"]}
    free = seen(queue("p"), *parts[1:], *old("y", 6, into=other, on="n2"))
    assert ends(plan(free)) == {"new": []}
    alone = queue("a", guaranteed=((GPU, 4),), limits=((GPU, 3),))
    assert plan(seen(alone, B, waits("new", "a", 4), *old())) == ()


def test_what_leaves_counts_for_no_limit() -> None:
    own = queue("a", **gpus(4, 4))
    leaving = gang("old").of(4, gpu=1).each(terminating=True)
    (claim,) = plan(seen(own, B, waits("new", "a", 4), *runs(leaving, own)))
    assert claim.victims == ()


def test_an_overdrawn_node_needs_more_victims() -> None:
    parts: list[Part] = [
        A,
        B,
        waits("new", "a", 4),
        *old("x", 4, start=90),
        *old("y", 2),
        *old("z", 2),
    ]
    parts[1] = queue("b")
    assert ends(plan(seen(*parts, gpu=8))) == {"new": ["x"]}
    assert sorted(ends(plan(seen(*parts, gpu=7)))["new"]) in (["x", "y"], ["x", "z"])


def test_by_priority_a_gang_ends_borrowers_of_its_queue() -> None:
    parts = [A, B, waits("new", "b", 6, 1), *old("x", 8), *old("y", 4, into=A)]
    assert ends(plan(seen(*parts, gpu=12))) == {"new": ["x"]}
    reclaim = dict.fromkeys(("a", "b"), Preemption.RECLAIM)
    assert plan(seen(*parts, gpu=12), modes=reclaim) == ()
    assert plan(seen(*parts, gpu=12), modes={}) == ()


def test_where_there_are_no_queues_lower_priorities_end() -> None:
    low, mid = (
        gang(n).of(4, gpu=1).priority(p).but(created=c)
        for n, p, c in (
            ("low", 0, 9.0),
            ("mid", 1, 50.0),
        )
    )
    parts = [low.each(node=NodeName("n1")), mid.each(node=NodeName("n1"))]
    pod = single("pod", gpu=4).priority(1).but(created=10.0)
    assert ends(plan(seen(waits("new", "", 4, 2), *parts))) == {"new": ["mid"]}
    assert ends(plan(seen(pod, *parts))) == {"pod": ["low"]}
    assert plan(seen(waits("new", "", 4, 0), *parts)) == ()
    idle = gang("idle").of(1, gpu=9)
    assert plan(seen(idle, *parts), modes={}) == ()


def test_where_there_are_no_queues_a_gang_loses_work_since_its_members_got_nodes() -> None:
    waited, early = (
        gang(name).of(4, gpu=1).but(created=created).each(node=NodeName("n1"), bound_at=bound)
        for name, created, bound in (("waited", 0.0, 95.0), ("early", 50.0, 51.0))
    )
    assert ends(plan(seen(waits("new", "", 4, 1), waited, early))) == {"new": ["waited"]}


def test_where_there_are_no_queues_a_record_still_says_when_a_gang_started() -> None:
    parts = [*old("x", 4, start=90), *old("y", 4, start=10)]
    assert ends(plan(seen(waits("new", "", 4, 1), *parts))) == {"new": ["x"]}


def test_gangs_whose_place_depends_on_other_pods_claim_nothing() -> None:
    n1, new = node("n1", gpu=8).labelled(hostname="n1"), waits("new", "a", 4)
    for rule, ended in (
        (new, {"new": ["old"]}),
        (new.near("hostname"), {}),
        (new.near("hostname", peers(group="old")), {}),
        (new.even("hostname"), {}),
        (new.even("hostname", peers(group="old")), {}),
        (new.even("hostname", PodSelector(())), {"new": ["old"]}),  # it counts no other pod
        (new.apart("hostname", peers(group="other")), {"new": ["old"]}),
    ):
        cluster = snapshot_of(space(NAMESPACE), n1, A, B, rule, *old(), at=NOW)
        assert ends(plan(cluster)) == ended


def test_the_nodes_of_claims_keep_anti_affinity() -> None:
    other = waits("new-1", "a", 1)
    n1, n2 = (node(name, gpu=4).labelled(hostname=name) for name in ("n1", "n2"))
    parts = [space(NAMESPACE), n1, n2, A, queue("b"), *old("x", 4), *old("y", 4, on="n2")]
    alone = snapshot_of(*parts, waits("new-0", "a", 1), other, at=NOW)
    assert ends(plan(alone)) == {"new-0": ["x"], "new-1": []}
    for apart in ("new-1", "y"):
        first = waits("new-0", "a", 1).apart("hostname", peers(group=apart))
        last = other.apart("hostname", peers(group="new-0"))
        assert ends(plan(snapshot_of(*parts, first, last, at=NOW))) == {
            "new-0": ["x"],
            "new-1": ["y"],
        }


def test_gangs_without_all_of_their_members_claim_nothing() -> None:
    some = gang("new").role("x", 1, gpu=1).role("y", 2, 0).declaring(gpu=1)
    assert plan(seen(A, B, some.but(queue="a", created=50.0), *old())) == ()


def test_gangs_of_which_members_still_leave_claim_nothing() -> None:
    again = waits("new", "a", 4)
    left = replace(member("new-9", shape(gpu=1)), node=NodeName("n1"), terminating=True)
    again = replace(again, members=(*again.members, replace(left, group="new")), least=4)
    assert plan(seen(A, B, again, *old("old", 7))) == ()


def test_a_plan_looks_for_the_victims_of_so_many_gangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preemption, "MOST_CLAIMANTS", 1)
    cluster = seen(A, B, waits("x", "a", 2), waits("y", "a", 2), *old())
    assert ends(plan(cluster)) == {"x": ["old"]}


def quickly(cluster: Snapshot) -> Sequence[Claim]:
    """The claims if three sets of victims at most are tried in the order of their cost."""
    before = victims.cheapest.__defaults__
    try:
        victims.cheapest.__defaults__ = ((), 3)
        return plan(cluster)
    finally:
        victims.cheapest.__defaults__ = before


def test_where_too_many_sets_cost_less_counting_proves_the_victims() -> None:
    parts = [p for i in range(8) for p in old(f"g{i}", 1, start=10.0 + i)]
    cluster = seen(A, queue("b"), waits("new", "a", 4), *parts)
    (exact,) = plan(cluster)
    assert exact.is_proved
    assert quickly(cluster) == (exact,)


def test_where_the_cheapest_victims_free_no_node_the_claim_has_a_bound() -> None:
    nodes = [node(f"m{i}", gpu=2) for i in range(4)]
    parts: list[Part] = []
    for i in range(8):  # the cheapest two are on different nodes
        parts += runs(gang(f"g{i}").of(1, gpu=1), queue("b"), on=f"m{i % 4}", start=10.0 + i)
    wide = gang("new").of(1, gpu=2).but(created=50.0, queue="a")
    cluster = seen(A, queue("b"), wide, *nodes, *parts, gpu=0)
    (exact,) = plan(cluster)
    assert exact.is_proved
    (quick,) = quickly(cluster)
    assert not quick.is_proved
    assert quick.bound < exact.cost <= quick.cost


def test_pods_of_older_runs_stay_charged() -> None:
    own = queue("a", **gpus(4, 4))
    again, record = runs(gang("old").of(2, gpu=1).but(uid=Uid("2")), own)
    stray = replace(member("older", shape(gpu=1)), node=NodeName("n1"), group="old")
    stray = replace(stray, terminating=True)
    cluster = seen(own, B, waits("new", "a", 2), again, record, strays=[stray])
    assert plan(cluster) == ()
