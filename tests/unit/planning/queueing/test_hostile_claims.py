"""What a tenant tries to have a gang of another queue end that this queue's guarantee covers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tutti.model.cluster import Snapshot
from tutti.model.decisions import Plan, Policy
from tutti.model.inter_pod import PodSelector
from tutti.model.queues import Preemption, Queue
from tutti.planning.plan import plan
from tutti.planning.queueing import claim_rounds, preemption
from tutti.queues import claims, cover
from tutti.queues.claims import Entitlement
from tutti.queues.cover import Cover
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.verify.plan_checks import violations
from tutti.verify.preemption import checks as preemption_checks

from ....harness.builders import (
    AMPLE_BUDGET,
    GangBuilder,
    Part,
    node,
    peers,
    single,
    snapshot_of,
    space,
)
from .test_failures_of_others import PATIENT, cluster, quota, runs, waits

HUGE = 1_000_000_000
TENANT = replace(quota("tenant", gpu=4), default_for=())
FULL = replace(PATIENT, preemption=Preemption.FULL)
RECLAIM = replace(PATIENT, preemption=Preemption.RECLAIM)
STARVING = Policy(age_seconds=1e9, starvation_seconds=60.0, preemption=Preemption.FULL)

TRIES: dict[str, Sequence[Part]] = {
    "a gang within the guarantee": [waits("x", "tenant", 4)],
    "a gang beyond the guarantee": [waits("x", "tenant", 5)],
    "a huge priority": [waits("x", "tenant", 4, HUGE)],
    "a huge priority beyond the guarantee": [waits("x", "tenant", 5, HUGE)],
    "a gang that cannot be ended": [waits("x", "tenant", 4).but(is_protected=True)],
    "a gang that has waited for long": [waits("x", "tenant", 5).but(created=0.0)],
    "many gangs": [waits(f"x{n}", "tenant", 1, HUGE) for n in range(12)],
    "many members beyond those needed": [waits("x", "tenant", 12, HUGE).needing(1)],
    "a pod without a PodGroup that is old": [single("x", gpu=1).but(created=0.0)],
    "a queue that does not admit the namespace": [waits("x", "closed", 4, HUGE)],
    "a queue that does not exist": [waits("x", "nowhere", 4, HUGE)],
    "nothing of what is guaranteed": [waits("x", "tenant", 4, HUGE, cpu=1, gpu=0)],
}


def scene(own: Queue, batch: Queue, tried: Sequence[Part]) -> Snapshot:
    """A full cluster: ``own`` has 4 of 8 GPUs and all CPUs, and ``batch`` has the other GPUs."""
    closed = replace(quota("closed", gpu=4), namespaces=None)
    return cluster(
        node("n1", cpu=4, gpu=8).labelled(hostname="n1"),
        *(own, TENANT, closed, batch),
        *runs(waits("own", "own", 4, cpu=1, gpu=1), own, *["n1"] * 4),
        *runs(waits("batch", "batch", 4, 9), batch, *["n1"] * 4),
        *tried,
    )


def planned(snapshot: Snapshot, policy: Policy) -> Plan:
    made = plan(snapshot, STRATEGIES["ilp"](), BestFit(), AMPLE_BUDGET, policy)
    assert preemption_checks.faults(snapshot, made, policy.preemption) == ()
    return made


def ended(made: Plan) -> set[str]:
    return {victim.gang.name for claim in made.claims for victim in claim.victims}


@pytest.mark.parametrize("policy", [FULL, STARVING], ids=["patient", "starving"])
@pytest.mark.parametrize("tried", TRIES)
def test_no_try_of_a_tenant_ends_what_the_guarantee_of_another_queue_covers(
    tried: str, policy: Policy
) -> None:
    for batch in (quota("batch"), quota("batch", gpu=4)):
        made = planned(scene(quota("own", gpu=4), batch, TRIES[tried]), policy)
        assert "own" not in ended(made)


@pytest.mark.parametrize(
    "tried",
    [
        "a gang within the guarantee",
        "a huge priority",
        "a gang that cannot be ended",
        "many gangs",
        "many members beyond those needed",
        "a pod without a PodGroup that is old",
        "nothing of what is guaranteed",
    ],
)
def test_what_has_a_right_to_room_ends_the_same_gang_where_no_guarantee_covers_it(
    tried: str,
) -> None:
    made = planned(scene(quota("own"), quota("batch", gpu=4), TRIES[tried]), FULL)
    assert ended(made) == {"own"}


@pytest.mark.parametrize("is_protected", [False, True])
def test_many_gangs_that_are_alike_cost_as_many_walks_as_few(
    is_protected: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The walk over all gangs that run is the same for gangs that differ only in their names."""
    walks, own, batch = 0, quota("own", gpu=4, cpu=4), quota("batch", gpu=4)

    def counted(*args: Any) -> Cover:
        nonlocal walks
        walks += 1
        return walk(*args)

    walk = cover.walk
    monkeypatch.setattr(cover, "walk", counted)
    costs = []
    for gangs in (5, 50):
        walks = 0
        alike = [waits(f"x{n}", "tenant", 5, 1) for n in range(gangs)]
        tried = [each.but(is_protected=is_protected) for each in alike]
        made = planned(scene(own, batch, tried), FULL)
        assert ended(made) == set()
        costs.append(walks)
    assert costs[0] == costs[1] > 0


ALL_PODS = PodSelector((), namespace_labels=())
OF_CLAIMANT = peers(group="x")
IDLE, FULL_SIZE = (waits("h", "batch", gpu=n) for n in (0, 1))  # there is no room for the second
# What pods of the borrower may say that wait, and whether they start at once.
RULES: dict[str, tuple[GangBuilder, bool]] = {
    "a spread of its own, without room": (FULL_SIZE.even("hostname"), False),
    "a spread of its own": (IDLE.even("hostname"), True),
    "a spread of the claimant's pods": (IDLE.even("hostname", OF_CLAIMANT), True),
    "affinity to itself": (FULL_SIZE.near("hostname"), False),
    "affinity to pods of all namespaces": (IDLE.near("hostname", ALL_PODS), True),
    "affinity to the claimant's pods": (IDLE.near("hostname", OF_CLAIMANT), False),
    "anti-affinity to itself": (IDLE.apart("hostname"), True),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("policy", [FULL, RECLAIM], ids=["full", "reclaim"])
def test_no_rule_between_pods_of_a_tenant_that_waits_keeps_others_from_a_claim(
    rule: str, policy: Policy
) -> None:
    """Nor is anything placed near pods that come only once their victims have gone."""
    hostile, starts = RULES[rule]
    tried = [waits("x", "tenant", 4), hostile]
    snapshot = scene(quota("own", gpu=4, cpu=4), quota("batch"), tried)
    made = planned(snapshot, policy)
    assert ended(made) == {"batch"}
    assert [placement.gang.name for placement in made.placements] == ["h"] * starts
    assert violations(snapshot, made) == ()
    standing = claim_rounds.with_claims(snapshot, made.claims)
    later = planned(standing, policy)
    assert later.claims == ()
    assert [placement.gang.name for placement in later.placements] == ["h"] * starts
    assert violations(standing, later) == ()


def test_a_gang_that_lets_nobody_onto_its_node_is_not_ended_for_those_whom_it_keeps_off() -> None:
    own, batch = quota("own", gpu=4, cpu=4), quota("batch")
    snapshot = scene(own, batch, [waits("x", "tenant", 4)])
    assert ended(planned(snapshot, FULL)) == {"batch"}
    apart = runs(waits("batch", "batch", 4, 9).apart("hostname", ALL_PODS), batch, *["n1"] * 4)
    alone = snapshot_of(
        space("ml"),
        node("n1", gpu=4).labelled(hostname="n1"),
        *(own, TENANT, batch, waits("x", "tenant", 4)),
        *apart,
        at=snapshot.taken_at,
    )
    assert planned(alone, FULL).claims == ()


def test_by_priority_no_rule_between_pods_of_others_keeps_a_gang_from_a_claim() -> None:
    low = waits("low", "").bound_on("n1")
    high = waits("high", "", priority=1)
    for hostile, _ in RULES.values():
        snapshot = cluster(node("n1", gpu=1).labelled(hostname="n1"), low, high, hostile)
        assert ended(planned(snapshot, FULL)) == {"low"}


class Late:
    """The progress of a plan that should have been finished."""

    is_late = True

    def step(self) -> None:
        """Do nothing."""


def test_a_plan_that_is_late_still_makes_its_first_claim() -> None:
    tried = [waits(f"x{n}", "tenant", 2) for n in range(2)]
    snapshot = scene(quota("own", gpu=4, cpu=4), quota("batch"), tried)
    ilp, fallback = STRATEGIES["ilp"](), BestFit()
    in_time = plan(snapshot, ilp, fallback, AMPLE_BUDGET, FULL)
    late = plan(snapshot, ilp, fallback, AMPLE_BUDGET, FULL, progress=Late())
    assert [claim.gang.name for claim in in_time.claims] == ["x0", "x1"]
    assert [claim.gang.name for claim in late.claims] == ["x0"]


def test_a_plan_that_is_late_looks_at_few_kinds_of_gangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gangs that no guarantee covers, no two alike, come before the gang that may claim."""
    tried = [waits(f"x{n:02}", "tenant", 5 + n, 1) for n in range(20)]
    tried.append(waits("y", "tenant", 4))
    snapshot = scene(quota("own", gpu=4, cpu=4), quota("batch"), tried)
    asked = 0

    def counted(*args: Any) -> Entitlement | None:
        nonlocal asked
        asked += 1
        return entitlement(*args)

    entitlement = claims.entitlement
    monkeypatch.setattr(claims, "entitlement", counted)
    in_time = plan(snapshot, STRATEGIES["ilp"](), BestFit(), AMPLE_BUDGET, RECLAIM)
    assert [claim.gang.name for claim in in_time.claims] == ["y"]
    assert asked == 21
    asked = 0
    late = plan(snapshot, STRATEGIES["ilp"](), BestFit(), AMPLE_BUDGET, RECLAIM, progress=Late())
    assert (late.claims, asked) == ((), preemption.MOST_LATE)
