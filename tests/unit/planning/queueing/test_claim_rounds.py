"""The claims of a whole plan: who is asked, when, and what the rest of the plan leaves them."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from tutti.filters import volume_choice
from tutti.gang import finding_text, timeouts
from tutti.model.cluster import STUCK_SECONDS, Reservation, Snapshot
from tutti.model.decisions import Plan, Policy, Reason
from tutti.model.keys import GangKey, NodeName, Uid
from tutti.model.owners import Job, Owner
from tutti.model.queues import Preemption, QueueMode
from tutti.model.volumes import Claim, ClaimKey, Storage
from tutti.planning import plan as planning
from tutti.planning.queueing import claim_rounds, preemption
from tutti.strategies import STRATEGIES
from tutti.verify import plan_checks
from tutti.verify.preemption import checks as preemption_checks

from ....harness.builders import (
    AMPLE_BUDGET,
    NAMESPACE,
    GangBuilder,
    Part,
    budget,
    gang,
    labels,
    node,
    single,
    snapshot_of,
    space,
)
from ....harness.counting import calls_of
from ..test_queued_gangs import queue
from .test_preemption import NOW, A, B, ends, gpus, old, runs, seen, waits

FULL, RECLAIM, OFF = Preemption.FULL, Preemption.RECLAIM, Preemption.OFF


def plan(of: Snapshot, setting: Preemption = FULL, **policy: Any) -> Plan:
    """The plan; ``verify`` has nothing against it."""
    strategies = STRATEGIES["ilp"](), STRATEGIES["bestfit"]()
    made = planning.plan(of, *strategies, AMPLE_BUDGET, Policy(preemption=setting, **policy))
    assert plan_checks.violations(of, made) == ()
    assert preemption_checks.faults(of, made, setting) == ()
    return made


def claimed(of: Snapshot, setting: Preemption = FULL, **policy: Any) -> dict[str, list[str]]:
    return ends(plan(of, setting, **policy).claims)


def starts(plan: Plan) -> list[str]:
    return [placement.gang.name for placement in plan.placements]


def test_the_setting_and_the_queue_of_the_claimant_decide() -> None:
    parts = [B, waits("new", "a", 4), *old()]
    assert claimed(seen(A, *parts)) == {"new": ["old"]}
    assert claimed(seen(A, *parts), RECLAIM) == {"new": ["old"]}
    assert claimed(seen(A, *parts), OFF) == {}
    assert claimed(seen(replace(A, preemption=FULL), *parts), OFF) == {}
    assert claimed(seen(replace(A, preemption=OFF), *parts)) == {}
    assert claimed(seen(replace(A, preemption=RECLAIM), *parts)) == {"new": ["old"]}
    assert claimed(seen(A, replace(B, preemption=OFF), *parts[1:])) == {"new": ["old"]}


@pytest.mark.parametrize("parent", [8, None])
def test_what_runs_in_the_room_of_a_guarantee_stays_unless_the_queue_reclaims(
    parent: int | None,
) -> None:
    """Whether a parent covers it or it borrows; queues alone end nothing that runs."""
    above = queue("p", **gpus(parent)) if parent else queue("p")
    leaf, sibling = queue("a", parent="p", **gpus(4)), queue("b", parent="p")
    parts = [above, leaf, sibling, waits("new", "a", 4), *old(into=sibling)]
    made = plan(seen(*parts), OFF)
    assert (starts(made), made.claims) == ([], ())
    assert [rejection.reason for rejection in made.rejections] == [Reason.NOT_ENOUGH_ROOM]
    assert claimed(seen(*parts), RECLAIM) == {"new": ["old"]}
    assert claimed(seen(above, replace(leaf, preemption=RECLAIM), *parts[2:])) == {"new": ["old"]}


def test_of_equal_gangs_the_one_that_was_not_ended_before_ends() -> None:
    """What an end loses is written down with the claim, without what earlier ends lost."""
    x, y = (gang(name).of(4, gpu=1).bound_on(*["n1"] * 4) for name in ("x", "y"))
    waiting = node("n1", gpu=8), gang("high").of(4, gpu=1).priority(1)
    assert claimed(snapshot_of(*waiting, x, y, at=NOW)) == {"high": ["x"]}
    ended = x.but(lost_milliseconds=1)
    (claim,) = plan(snapshot_of(*waiting, ended, y, at=NOW)).claims
    assert ends([claim]) == {"high": ["y"]}
    (victim,) = claim_rounds.victims_of(claim)
    assert victim.lost_milliseconds == claim.lost * 1000 > 0
    (claim,) = plan(snapshot_of(*waiting, ended, gang("z").of(4, gpu=1).priority(1), at=NOW)).claims
    assert claim.cost == claim.lost + Fraction(1, 1000)


def test_a_queue_whose_quotas_do_not_count_claims_nothing() -> None:
    shadow = replace(A, mode=QueueMode.SHADOW, preemption=FULL)
    assert claimed(seen(shadow, B, waits("new", "a", 4), *old())) == {}


def test_only_full_claims_by_priority() -> None:
    low = runs(gang("low").of(8, gpu=1), A)
    high = waits("high", "a", 8, 5)
    assert claimed(seen(queue("a"), B, high, *low)) == {"high": ["low"]}
    assert claimed(seen(queue("a"), B, high, *low), RECLAIM) == {}


def test_where_there_are_no_queues_priorities_decide() -> None:
    low = gang("low").of(8, gpu=1).bound_on(*["n1"] * 8)
    high = gang("high").of(4, gpu=1).priority(1)
    of = snapshot_of(node("n1", gpu=8), low, high)
    made = plan(of)
    assert ends(made.claims) == {"high": ["low"]}
    assert made.claims[0].record is None
    assert claimed(of, RECLAIM) == {}


def test_the_claims_of_a_plan_share_what_they_learn_of_the_gangs_that_run() -> None:
    low = [single(f"low-{i}", gpu=1).bound_on("n1") for i in range(200)]

    def work(claimants: int) -> int:
        high = [single(f"high-{i}", gpu=1).priority(1) for i in range(claimants)]
        of = snapshot_of(node("n1", gpu=200, pods=300), *low, *high, at=NOW)
        assert len(plan(of).claims) == claimants
        strategies, policy = (STRATEGIES["ilp"](), STRATEGIES["bestfit"]()), Policy(preemption=FULL)
        return calls_of(lambda: planning.plan(of, *strategies, AMPLE_BUDGET, policy))

    assert work(16) < 2 * work(1)


def test_nobody_borrows_the_room_that_a_guarantee_claims() -> None:
    parts = [A, queue("b", **gpus(0)), waits("new", "a", 4), *old("x", 5)]
    made = plan(seen(*parts, waits("loan", "b", 3)))
    assert (ends(made.claims), starts(made)) == ({"new": ["x"]}, [])
    assert starts(plan(seen(*parts, waits("loan", "b", 3)), OFF)) == ["loan"]


def test_a_claim_waits_if_a_covered_gang_could_not_start_beside_it() -> None:
    """The room that it would start in is owed to the claimant until the victims have gone."""
    cpu_and_gpu = {"guaranteed": (("cpu", 4000), ("nvidia.com/gpu", 4))}
    a, b = queue("a", **cpu_and_gpu), queue("b", **cpu_and_gpu)
    wide = gang("wide").of(1, gpu=4).but(queue="a", created=50.0)
    first = gang("first").of(1, gpu=1).priority(9).but(queue="b", created=60.0)
    loan = runs(gang("loan").of(1, gpu=5), queue("c"), on="n1")
    made = plan(seen(a, b, queue("c"), wide, first, *loan, gpu=6))
    assert starts(made) == ["first"]
    assert ends(made.claims) == {}


def test_a_claimant_says_who_ends_before_it_starts() -> None:
    made = plan(seen(A, B, waits("new", "a", 4), *old()))
    (said,) = [finding_text.sentence(r) for r in made.rejections if r.gang.name == "new"]
    assert said == "it starts once 8 pods of ml/old have ended: a guarantee covers it"
    many = [old(f"x{n}", 1)[0] for n in range(8)]
    low = [builder.but(queue="") for builder in many]  # type: ignore[union-attr]
    of = snapshot_of(node("n1", gpu=8), *low, gang("high").of(5, gpu=1).priority(1))
    said = finding_text.sentence(plan(of).rejections[0])
    assert "once 5 pods of ml/x0, ml/x1, ml/x2 and 2 more have ended: its priority" in said


def test_what_terminates_is_waited_for_unless_it_should_have_gone_long_ago() -> None:
    leaving = gang("old").of(8, gpu=1).each(node="n1", terminating=True, gone_by=90.0)
    high = gang("high").of(4, gpu=1).priority(1)
    made = plan(snapshot_of(node("n1", gpu=8), leaving, high, at=100.0))
    assert ends(made.claims) == {"high": []}
    assert "once pods have gone that terminate" in finding_text.sentence(made.rejections[0])
    late = snapshot_of(node("n1", gpu=8), leaving, high, at=90.0 + STUCK_SECONDS)
    assert claimed(late) == {}


def test_who_borrows_by_the_same_plan_is_counted_after_claims_by_guarantee() -> None:
    """Its start may take the cover that the claimant had."""
    parent = queue("p", **gpus(4))
    a, b = queue("a", parent="p"), queue("b", parent="p")
    new = waits("new", "a", 4).but(created=60.0)
    of = seen(parent, a, b, queue("c"), new, waits("quick", "b", 1, 9), *old("x", 7, queue("c")))
    made = plan(of)
    assert (ends(made.claims), starts(made)) == ({}, ["quick"])


def test_a_pod_that_may_not_preempt_has_nobody_ended() -> None:
    low = gang("low").of(8, gpu=1).bound_on(*["n1"] * 8)
    mild = gang("mild").of(4, gpu=1).priority(1).each(may_preempt=False)
    assert claimed(snapshot_of(node("n1", gpu=8), low, mild)) == {}


def test_pods_that_share_a_claim_without_a_volume_have_nobody_ended() -> None:
    """Their nodes may not reach the volume, and it is made only after the others have ended."""
    low = gang("low").of(8, gpu=1).bound_on(*["n1"] * 8)

    def of(claim: str, members: int, *, for_one_pod: bool = False) -> Snapshot:
        high = gang("high").of(members, gpu=4 // members).priority(1)
        snapshot = snapshot_of(node("n1", gpu=8), low, high.each(unbound_claims=(claim,)))
        known = Claim(ClaimKey(NAMESPACE, claim), for_one_pod=for_one_pod)
        return replace(snapshot, storage=Storage((known,)))

    assert volume_choice.sharing_gangs(of("data", 1)) == frozenset()
    assert volume_choice.sharing_gangs(of("data", 2, for_one_pod=True)) == frozenset()
    assert volume_choice.sharing_gangs(of("data", 2)) == {GangKey(NAMESPACE, "high")}
    assert claimed(of("data", 2)) == {}


def test_whoever_could_not_be_evicted_is_spared() -> None:
    low = gang("low").of(8, gpu=1).bound_on(*["n1"] * 8)
    of = snapshot_of(node("n1", gpu=8), low, gang("high").of(4, gpu=1).priority(1))
    assert claimed(of) == {"high": ["low"]}
    spared = replace(of, protected=frozenset({low.made.uid}))
    assert claimed(spared) == {}
    made = plan(of)
    (said,) = preemption_checks.faults(spared, made, FULL)
    assert "could not be evicted a while ago" in said
    assert "its queue lets it end nobody" in preemption_checks.faults(of, made, OFF)[0]


def test_a_starved_gang_claims_with_the_room_that_is_held_for_it() -> None:
    parts = [A, queue("b"), waits("new", "a", 4), *old("x", 2), *old("y", 4)]
    assert claimed(seen(*parts), starvation_seconds=10.0) == {"new": ["x"]}
    blocked = [A, B, waits("new", "a", 4), *runs(gang("mine").of(6, gpu=1), A)]
    assert claimed(seen(*blocked), starvation_seconds=10.0) == {}


@pytest.mark.parametrize("spare", [0, 2])
def test_a_starved_gang_claims_by_priority_with_the_room_that_is_held_for_it(spare: int) -> None:
    """Two GPUs are held for it, and it needs two more; no second gang ends for nothing."""
    low = [gang(name).of(2, gpu=1).bound_on("n1", "n1") for name in ("x", "y")]
    some = low if spare else low[:1]
    high = gang("high").of(4, gpu=1).priority(9).but(created=0.0)
    of = snapshot_of(node("n1", gpu=4 + spare), *some, high, at=NOW)
    assert len(claimed(of)["high"]) == 1
    assert claimed(of, starvation_seconds=10.0) == claimed(of)


def test_a_starved_gang_claims_after_gangs_of_higher_priority() -> None:
    low = gang("low").of(4, gpu=1).bound_on(*["n1"] * 4)
    starved = gang("starved").of(4, gpu=1).priority(5).but(created=0.0)
    high = gang("high").of(4, gpu=1).priority(9).but(created=NOW)
    of = snapshot_of(node("n1", gpu=4), low, starved, high, at=NOW)
    assert claimed(of, starvation_seconds=10.0) == {"high": ["low"]}


def test_while_a_claim_stands_its_victims_are_left_alone_and_its_room_is_kept() -> None:
    parts = [A, B, waits("new", "a", 4), *old("x", 5)]
    of = seen(*parts)
    after = claim_rounds.with_claims(of, plan(of).claims)
    assert after.being_ended == {claim.gang for claim in plan(of).claims[0].victims}
    again = plan(replace(after, gangs=tuple(after.gangs)))
    assert (again.claims, again.placements) == ((), ())
    more = seen(*parts, waits("late", "a", 1, 9), gpu=9)
    standing = claim_rounds.with_claims(more, plan(of).claims)
    assert starts(plan(standing)) == []


def test_a_pod_that_leaves_for_a_claim_says_when_time_alone_changes_the_plan() -> None:
    low = gang("low").of(2, gpu=1).each(node="n1", terminating=True, gone_by=120.0)
    of = snapshot_of(node("n1", gpu=2), low, gang("high").of(2, gpu=1).priority(1), at=100.0)
    assert timeouts.next_stuck_at(of) is None
    after = claim_rounds.with_claims(of, plan(of).claims)
    assert timeouts.next_stuck_at(after) == 120.0 + STUCK_SECONDS
    assert plan(after).next_change_at == 120.0 + STUCK_SECONDS
    assert timeouts.next_stuck_at(replace(after, taken_at=999.0)) is None
    gone = replace(after, gangs=tuple(g for g in after.gangs if g.key.name != "low"))
    assert timeouts.next_stuck_at(gone) is None
    strays = replace(gone, strays=low.made.members)
    assert timeouts.next_stuck_at(strays) == 120.0 + STUCK_SECONDS


@pytest.mark.parametrize("setting", [FULL, RECLAIM])
def test_a_pod_without_a_pod_group_claims_too(setting: Preemption) -> None:
    low = gang("low").of(8, gpu=1).bound_on(*["n1"] * 8)
    pod = single("pod", gpu=4).priority(1)
    of = snapshot_of(node("n1", gpu=8), low, pod)
    assert claimed(of, setting) == ({"pod": ["low"]} if setting is FULL else {})
    if setting is FULL:
        assert [r.uid for r in claim_rounds.with_claims(of, plan(of).claims).reservations] == [
            Uid(pod.made.uid)
        ]


def test_a_gang_whose_budget_allows_fewer_evictions_than_it_has_pods_is_no_victim() -> None:
    """A budget of one would leave half a gang."""
    low = gang("low").of(4, gpu=1).each(node="n1", labels=labels(app="low"))
    dear = gang("dear").of(4, gpu=2).bound_on(*["n1"] * 4)
    high = gang("high").of(2, gpu=1).priority(1)
    parts = node("n1", gpu=12), low, dear, high
    assert claimed(snapshot_of(*parts, at=9.0)) == {"high": ["low"]}
    snapshot = snapshot_of(*parts, budget("keep", 3, app="low"), at=9.0)
    assert claimed(snapshot) == {"high": ["dear"]}
    assert claimed(snapshot_of(*parts, budget("keep", 4, app="low"), at=9.0)) == {"high": ["low"]}
    both = budget("keep", 4, app="low"), budget("twice", 9)
    assert claimed(snapshot_of(*parts[:2], high, *both, node("n0", gpu=0))) == {}


def test_a_gang_that_budgets_keep_from_a_claim_says_so() -> None:
    low = gang("low").of(8, gpu=1).each(node="n1", labels=labels(app="low"))
    high = gang("high").of(2, gpu=1).priority(1)
    made = plan(snapshot_of(node("n1", gpu=8), low, high, budget("keep", 7, app="low")))
    said = finding_text.sentence(made.rejections[0])
    assert said.endswith(
        "; gang ml/low cannot end for it: PodDisruptionBudget ml/keep allows 7 evictions of 8"
    )
    twice = snapshot_of(node("n1", gpu=8), low, high, budget("a", 9, app="low"), budget("b", 9))
    said = finding_text.sentence(plan(twice).rejections[0])
    assert "a pod of it has the PodDisruptionBudgets ml/a and ml/b, and is never evicted" in said
    two = [gang(n).of(4, gpu=1).each(node="n1", labels=labels(app="low")) for n in ("x", "y")]
    made = plan(snapshot_of(node("n1", gpu=8), *two, high, budget("keep", 1, app="low")))
    assert "gang ml/x cannot end for it, nor 1 other gang: " in finding_text.sentence(
        made.rejections[0]
    )
    queues = seen(A, B, waits("new", "a", 4), *old())
    tight = replace(queues, budgets=(budget("all", 7),))
    assert "cannot end for it" in finding_text.sentence(plan(tight).rejections[0])


def said_of(name: str, of: Snapshot, setting: Preemption = RECLAIM) -> str:
    rejections = {rejection.gang.name: rejection for rejection in plan(of, setting).rejections}
    return finding_text.sentence(rejections[name])


def test_a_gang_that_waits_for_what_guarantees_cover_says_from_which_queues() -> None:
    """The nodes have less than all guarantees together."""
    new, within = waits("new", "a", 4), old("x", 4)
    one = seen(A, B, new, *within, gpu=6)
    assert said_of("new", one).endswith(
        "; it may not reclaim from queue b, which is within its guarantee"
    )
    assert "reclaim" not in said_of("new", one, OFF)
    c, d = (queue(name, **gpus(1)) for name in "cd")
    more = *old("y", 1, c), *old("z", 1, d)
    assert said_of("new", seen(A, B, c, new, *within, *more[:2], gpu=6)).endswith(
        "; it may not reclaim from queues b and c, which are within their guarantees"
    )
    assert said_of("new", seen(A, B, c, d, new, *within, *more, gpu=6)).endswith(
        "; it may not reclaim from queue b and 2 others, which are within their guarantees"
    )


def test_a_gang_that_waits_names_no_queue_of_which_a_gang_borrows() -> None:
    third = queue("c")
    borrows = old("y", 1, third)
    cluster = seen(A, B, third, waits("new", "a", 4), *old("x", 4), *borrows, gpu=6)
    assert said_of("new", cluster).endswith(
        "; it may not reclaim from queue b, which is within its guarantee"
    )
    alone = seen(A, waits("new", "a", 5), *old("own", 1, A), gpu=4)
    assert "reclaim" not in said_of("new", alone, FULL)


def test_a_gang_for_which_more_gangs_would_end_than_a_reservation_names_claims_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(preemption, "MOST_VICTIMS", 2)
    gangs = [part for n in range(4) for part in old(f"x{n}", 1)]
    of = seen(A, queue("b"), waits("new", "a", 3), *gangs, gpu=4)
    made = plan(of)
    assert made.claims == ()
    assert finding_text.sentence(made.rejections[0]).endswith(
        "; the 3 gangs that cost least are too many: at most 2 may end for one gang, and no such "
        "choice was found"
    )
    fewer = seen(A, queue("b"), waits("new", "a", 2), *gangs, gpu=4)
    assert claimed(fewer) == {"new": ["x0", "x1"]}
    large = seen(A, queue("b"), waits("new", "a", 3), *gangs, *old("y", 3, start=10), gpu=7)
    (claim,) = plan(large).claims
    assert ends([claim]) == {"new": ["y"]}
    # Gangs of many members that free no GPU do not come before it.
    cpus = [part for n in range(2) for part in runs(gang(f"z{n}").of(4, cpu=1), queue("b"))]
    room = node("n1", gpu=7, cpu=8)
    parts = A, waits("new", "a", 3), *gangs, *old("y", 3, start=10), *cpus
    (claim,) = plan(snapshot_of(space(NAMESPACE), room, *parts, at=NOW)).claims
    assert ends([claim]) == {"new": ["y"]}
    assert not claim.is_proved


def test_gangs_that_end_together_share_a_budget() -> None:
    """What earlier claims end counts, in the same plan and in standing ones."""
    x, y = (
        gang(name).of(4, gpu=1).each(node=on, labels=labels(app="low"))
        for name, on in (("x", "n1"), ("y", "n2"))
    )
    first, second = (gang(n).of(4, gpu=1).priority(p) for n, p in (("first", 2), ("second", 1)))
    parts = node("n1", gpu=4), node("n2", gpu=4), x, y, first, second
    assert claimed(snapshot_of(*parts)) == {"first": ["x"], "second": ["y"]}
    tight = snapshot_of(*parts, budget("keep", 4, app="low"))
    assert claimed(tight) == {"first": ["x"]}
    standing = claim_rounds.with_claims(tight, plan(tight).claims)
    assert claimed(standing) == {}
    free = replace(standing, budgets=())
    assert claimed(free) == {"second": ["y"]}


def test_a_shared_budget_is_for_the_gangs_whose_end_helps() -> None:
    """A cheap gang on another node does not use up the budget of a dear one."""
    parts: list[Part] = [A, queue("b"), budget("keep", 4, app="low")]
    for name, on, start in (("dear", "n1", 10), ("cheap", "n2", 90)):
        low = gang(name).of(4, gpu=1).each(labels=labels(app="low"))
        parts += [node(on, gpu=4).labelled(disk=on), *runs(low, queue("b"), on=on, start=start)]
    for disk, ended in (("n1", "dear"), ("n2", "cheap")):
        new = waits("new", "a", 4).shaped(node_selector=(("disk", disk),))
        of = snapshot_of(space(NAMESPACE), *parts, new, at=NOW)
        (claim,) = plan(of).claims
        assert ends([claim]) == {"new": [ended]}
        assert claim.is_proved


def test_an_extra_ends_only_if_its_budget_allows_it() -> None:
    big = runs(gang("big").of(6, gpu=1).needing(4).each(labels=labels(app="big")), B)
    of = seen(A, B, waits("new", "a", 2), *big, gpu=6)
    assert claimed(of) == {"new": ["big-4", "big-5"]}
    assert claimed(replace(of, budgets=(budget("keep", 2, app="big"),))) == {
        "new": ["big-4", "big-5"]
    }
    assert claimed(replace(of, budgets=(budget("keep", 1, app="big"),))) == {}


def never(builder: GangBuilder) -> GangBuilder:
    return builder.but(is_protected=True)


def as_protected(part: Part) -> Reservation:
    """The record of a gang that said so when it started."""
    assert isinstance(part, Reservation)
    assert part.record is not None
    return replace(part, record=replace(part.record, is_protected=True))


def reasons(plan: Plan) -> dict[str, Reason]:
    return {rejection.gang.name: rejection.reason for rejection in plan.rejections}


def test_a_gang_that_says_never_starts_within_the_guarantee_of_its_queue_alone() -> None:
    """Whatever the setting: else a gang could run for ever in the room of others."""
    parent = queue("p", **gpus(8))
    mine = queue("a", parent="p", **gpus(4))
    for setting in Preemption:
        made = plan(
            seen(parent, mine, never(waits("small", "a", 4)), waits("any", "a", 4)), setting
        )
        assert starts(made) == ["any", "small"]
        small = next(p for p in made.placements if p.gang.name == "small")
        assert small.record is not None
        assert small.record.is_protected
        made = plan(seen(parent, mine, never(waits("large", "a", 5))), setting)
        assert (starts(made), reasons(made)) == ([], {"large": Reason.MAY_NOT_BORROW})
        (said,) = [finding_text.sentence(rejection) for rejection in made.rejections]
        assert said == (
            "preemption: Never, and queue a does not cover it by its own guarantee: it guarantees "
            "4 nvidia.com/gpu, 5 wanted; with preemption: Any it could borrow, and then be ended"
        )
        assert starts(plan(seen(parent, mine, waits("large", "a", 5)), setting)) == ["large"]
    assert starts(plan(seen(never(waits("a", "", 8))))) == ["a"]


def test_a_gang_that_says_never_and_is_covered_waits_for_room_like_others() -> None:
    full = gang("full").of(8, gpu=1).each(node="n1")
    made = plan(seen(A, B, never(waits("new", "a", 4)), *runs(full, B)), OFF)
    assert reasons(made) == {"new": Reason.NOT_ENOUGH_ROOM}


def test_gangs_that_say_never_share_the_guarantee_of_their_queue() -> None:
    one, two = (never(waits(name, "a", 3, n)) for n, name in ((5, "z"), (9, "b")))
    made = plan(seen(A, one, two))
    assert starts(made) == ["b"]
    runs_on = runs(gang("z").of(3, gpu=1), A)
    reservation = as_protected(runs_on[1])
    made = plan(seen(A, runs_on[0], reservation, two))
    assert reasons(made) == {"b": Reason.MAY_NOT_BORROW}
    assert "4 nvidia.com/gpu, 3 are in use, 3 wanted" in finding_text.sentence(made.rejections[0])


def test_what_a_gang_that_says_never_wants_is_the_least_that_its_members_request() -> None:
    sizes = gang("new").of(1, gpu=5).of(1, gpu=4).of(2, gpu=1).needing(3).but(queue="a")
    for guarantee, others in ((5, []), (7, runs(gang("old").of(2, gpu=1), queue("a")))):
        made = plan(seen(queue("a", **gpus(guarantee)), never(sizes), *others, gpu=30))
        assert reasons(made) == {"new": Reason.MAY_NOT_BORROW}
        assert "6 wanted" in finding_text.sentence(made.rejections[0])
    made = plan(seen(queue("a", **gpus(6)), never(sizes), gpu=30))
    assert starts(made) == ["new"]


def test_members_that_each_request_least_of_something_do_not_start_without_a_guarantee() -> None:
    """By each line alone some members would be covered: so it is said what the oldest want."""
    sizes = gang("new").of(1, gpu=3, cpu=1).of(1, gpu=1, cpu=3).needing(1).but(queue="a")
    lines = (("cpu", 2000), ("nvidia.com/gpu", 2))
    made = plan(seen(queue("a", guaranteed=lines), never(sizes), node("n2", gpu=30, cpu=30)))
    assert reasons(made) == {"new": Reason.MAY_NOT_BORROW}
    assert "2 nvidia.com/gpu, 3 wanted" in finding_text.sentence(made.rejections[0])


def test_a_starved_gang_that_says_never_borrows_no_more_than_others() -> None:
    large, small = never(waits("large", "a", 5)), waits("small", "a", 1)
    made = plan(seen(A, B, large, small), starvation_seconds=1.0)
    assert (starts(made), reasons(made)) == (["small"], {"large": Reason.MAY_NOT_BORROW})
    above = runs(gang("above").of(3, gpu=1).priority(9), A)
    fits = never(waits("fits", "a", 4))
    made = plan(seen(A, B, fits, waits("other", "b", 1), *above), starvation_seconds=1.0)
    assert (starts(made), reasons(made)) == (["other"], {"fits": Reason.MAY_NOT_BORROW})


def test_a_gang_that_says_never_is_a_victim_only_if_it_did_not_say_so_when_it_started() -> None:
    """No tenant keeps what it borrows by an edit of its PodGroup."""
    bound, held = old()
    assert isinstance(bound, GangBuilder)
    parts = A, B, waits("new", "a", 4)
    assert claimed(seen(*parts, never(bound), held)) == {"new": ["old"]}
    reservation = as_protected(held)
    assert claimed(seen(*parts, bound, reservation)) == {}
    early = seen(*parts, never(bound))  # from the time before there were Queues
    assert claimed(early) == {"new": ["old"]}


def test_without_queues_a_gang_that_says_never_is_no_victim() -> None:
    low = gang("low").of(8, gpu=1).bound_on(*["n1"] * 8)
    high = gang("high").of(4, gpu=1).priority(1)
    assert claimed(snapshot_of(node("n1", gpu=8), never(low), high)) == {}
    assert claimed(snapshot_of(node("n1", gpu=8), low, never(high))) == {"high": ["low"]}


def test_a_gang_that_says_never_claims_within_its_guarantee_alone() -> None:
    made = plan(seen(A, B, never(waits("new", "a", 4)), *old()))
    assert ends(made.claims) == {"new": ["old"]}
    assert made.claims[0].record is not None
    assert made.claims[0].record.is_protected
    mine = runs(gang("mine").of(8, gpu=1), A)
    assert claimed(seen(A, B, waits("new", "a", 5, 9), *mine)) == {"new": ["mine"]}
    assert claimed(seen(A, B, never(waits("new", "a", 5, 9)), *mine)) == {}


def test_the_record_of_an_earlier_run_decides_while_its_pods_hold_room() -> None:
    """Such a gang starts as one that can be ended, whatever its PodGroup says by now."""
    _, held = runs(gang("a").of(2, gpu=1), A)
    leaving = ("a-0", "a-1")
    again = never(gang("a").of(7, gpu=1).but(queue="a", min_member=5)).where(
        lambda m: replace(m, node=NodeName("n1"), terminating=True) if m.key.name in leaving else m
    )
    made = plan(seen(A, again, held))
    assert [(p.gang.name, p.record) for p in made.placements] == [("a", None)]
    reservation = as_protected(held)
    made = plan(seen(A, again, reservation))
    assert reasons(made) == {"a": Reason.MAY_NOT_BORROW}


def why(plan: Plan) -> list[str]:
    return [finding_text.sentence(rejection) for rejection in plan.rejections]


def labelled(builder: GangBuilder) -> GangBuilder:
    return builder.each(labels=labels(app="big"))


def test_a_gang_that_a_budget_would_keep_in_part_does_not_borrow() -> None:
    """The same gang starts within the guarantee, and its record says that it cannot be ended."""
    for most, starting in ((4, ["big"]), (3, [])):
        of = seen(B, labelled(waits("big", "b", 4)), budget("keep", 0, most=most, app="big"))
        assert starts(plan(replace(of, queues=(replace(B, guaranteed=()), A)))) == starting
        (placement,) = plan(of).placements
        assert placement.record is not None
        assert placement.record.is_protected is (most == 3)
    of = seen(A, labelled(waits("big", "a", 5)), budget("keep", 0, most=4, app="big"))
    made = plan(of)
    assert (reasons(made), made.placements) == ({"big": Reason.MAY_NOT_BORROW}, ())
    (sentence,) = why(made)
    assert sentence == (
        "PodDisruptionBudget ml/keep allows 4 evictions of 5, and queue a does not cover it by its "
        "own guarantee: it guarantees 4 nvidia.com/gpu, 5 wanted; with a budget that allows 5 it "
        "could borrow, and then be ended"
    )


def test_budgets_keep_no_gang_from_borrowing_where_nobody_ends() -> None:
    """While preemption is off, Tutti reads no budgets; nor do they count in a file."""
    of = seen(A, labelled(waits("big", "a", 5)), budget("keep", 0, app="big"))
    strategies = STRATEGIES["ilp"](), STRATEGIES["bestfit"]()
    assert starts(planning.plan(of, *strategies, AMPLE_BUDGET, Policy(preemption=OFF))) == ["big"]
    alone = replace(of, queues=())
    assert starts(plan(alone)) == ["big"]


def test_a_gang_with_two_budgets_on_one_pod_does_not_borrow() -> None:
    two = [budget(name, 9, most=9, app="big") for name in ("one", "two")]
    made = plan(seen(A, labelled(waits("big", "a", 5)), *two))
    assert "the PodDisruptionBudgets ml/one and ml/two, and is never evicted" in why(made)[0]
    assert "; with one budget it could borrow" in why(made)[0]


def test_a_gang_that_may_take_too_long_to_end_does_not_borrow() -> None:
    quick = replace(A, max_grace_seconds=60.0)
    for setting in Preemption:
        slow = waits("slow", "a", 5).each(grace_seconds=61)
        made = plan(seen(quick, slow), setting)
        assert reasons(made) == {"slow": Reason.MAY_NOT_BORROW}
        assert why(made)[0].startswith(
            "pod ml/slow-4 may take 61 s to end, and gangs that borrow at most 60 s, and queue a"
        )
        assert "; with a terminationGracePeriodSeconds of at most 60 it could" in why(made)[0]
        assert starts(plan(seen(A, slow), setting)) == ["slow"]
        assert starts(plan(seen(quick, waits("new", "a", 5).each(grace_seconds=60)))) == ["new"]
        assert starts(plan(seen(quick, waits("new", "a", 4).each(grace_seconds=61)))) == ["new"]


def test_a_pod_without_a_pod_group_borrows_whatever_its_budget() -> None:
    """It has no record of its start that could say that it cannot be ended."""
    pod = single("pod", gpu=5).each(labels=labels(app="big"), grace_seconds=900)
    quick = replace(A, max_grace_seconds=60.0, default_for=())
    assert starts(plan(seen(quick, pod, budget("keep", 0, app="big")))) == ["pod"]


def test_a_gang_that_a_budget_keeps_claims_within_its_guarantee_alone() -> None:
    keep = budget("keep", 0, most=3, app="big")
    made = plan(seen(A, B, labelled(waits("new", "a", 4)), keep, *old()))
    assert ends(made.claims) == {"new": ["old"]}
    assert made.claims[0].record is not None
    assert made.claims[0].record.is_protected
    assert claimed(seen(A, B, labelled(waits("new", "a", 5)), keep, *old())) == {}


def test_a_budget_that_comes_after_the_start_protects_nobody_who_borrows() -> None:
    """While the budget allows the evictions, the gang ends like others."""
    bound, held = old()
    assert isinstance(bound, GangBuilder)
    parts = A, B, waits("new", "a", 4), labelled(bound), held
    late = budget("late", 8, most=0, app="big")
    assert claimed(seen(*parts, late)) == {"new": ["old"]}


def test_a_gang_does_not_end_before_it_has_run_for_as_long_as_its_queue_says() -> None:
    """The plan says when it may; no other queue's words count, and a gang starts again."""
    patient = replace(B, min_run_seconds=60.0)
    for start, ended in ((NOW - 60.0, {"new": ["old"]}), (NOW - 59.0, {})):
        of = seen(A, patient, waits("new", "a", 4), *old(start=start))
        made = plan(of)
        assert ends(made.claims) == ended
        assert made.next_change_at == (None if ended else start + 60.0)
        assert plan(of, OFF).next_change_at != start + 60.0
    mine = replace(A, min_run_seconds=60.0)
    assert claimed(seen(mine, B, waits("new", "a", 4), *old(start=NOW))) == {"new": ["old"]}
    some = runs(gang("big").of(8, gpu=1).needing(4), patient, start=NOW)
    assert claimed(seen(A, patient, waits("new", "a", 4), *some)) == {}


OWNER = Owner("Job", "train", "batch")
OF_JOB = waits("big", "a", 5).each(owner=OWNER)


@pytest.mark.parametrize("left", [None, 6])
def test_a_gang_whose_job_tolerates_its_evictions_borrows(left: int | None) -> None:
    assert starts(plan(seen(A, OF_JOB, Job(NAMESPACE, "train", left)))) == ["big"]


def test_a_gang_whose_job_would_fail_does_not_borrow() -> None:
    made = plan(seen(A, OF_JOB, Job(NAMESPACE, "train", 5)))
    assert starts(made) == []
    (sentence,) = why(made)
    assert sentence == (
        "Job train stands 5 more failures and each of the 5 evictions counts as one, and queue a "
        "does not cover it by its own guarantee: it guarantees 4 nvidia.com/gpu, 5 wanted; with a "
        "larger backoffLimit, or without failures by DisruptionTarget, it could borrow, and then "
        "be ended"
    )


def test_a_gang_of_a_job_that_does_not_exist_does_not_borrow() -> None:
    """Nobody could find out whether it may be evicted. Where Jobs are not read, none counts."""
    of = seen(A, OF_JOB)
    (sentence,) = why(plan(replace(of, jobs={})))
    assert sentence.startswith("Job train cannot be read, so its backoffLimit is unknown, and ")
    assert "; with a Job that exists it could borrow, and then be ended" in sentence
    assert starts(plan(of)) == ["big"]


def test_a_gang_whose_job_would_fail_is_recorded_as_one_that_cannot_be_ended() -> None:
    made = plan(seen(A, waits("big", "a", 4).each(owner=OWNER), Job(NAMESPACE, "train", 1)))
    (placement,) = made.placements
    assert placement.record is not None
    assert placement.record.is_protected


def test_the_extras_of_a_gang_that_cannot_be_ended_may_borrow() -> None:
    """The checks of plans agree: members with a node beyond those needed are extras."""
    near_its_limit = Job(NAMESPACE, "train", 1)
    for snapshot in (
        seen(A, waits("big", "a", 6).needing(2).each(owner=OWNER), near_its_limit),
        seen(A, never(waits("big", "a", 6).needing(2))),
    ):
        (placement,) = plan(snapshot).placements
        assert len(placement.assignments) == 6
