"""Which gangs are given up for now, and what keeps the others from it."""

from dataclasses import replace

import numpy as np
import pytest

from tutti.gang import demand, finding_text
from tutti.gang.room_findings import ShortOf
from tutti.model.cluster import OnPartial, Phase, Snapshot
from tutti.model.decisions import Plan, Reason, Rejection
from tutti.model.owners import Job, Owner
from tutti.planning import partial_release
from tutti.planning.compile import grids
from tutti.planning.compile.capacity import FitByShape
from tutti.planning.compile.pod_classes import SelectorIndex
from tutti.planning.plan import plan
from tutti.strategies.best_fit import BestFit
from tutti.strategies.ilp.strategy import IlpStrategy
from tutti.verify import plan_checks

from ...harness.builders import (
    AMPLE_BUDGET,
    GangBuilder,
    NodeBuilder,
    gang,
    node,
    peers,
    shape,
    snapshot_of,
)

SET = Owner("ReplicaSet", "train", "apps")
JOB = Owner("Job", "train", "batch")
NO_ROOM = "1 member to replace lost ones needs 2 cpu; "


def lost_one(
    *, owner: Owner | None = SET, on_partial: OnPartial = OnPartial.RELEASE, **changes: object
) -> GangBuilder:
    """A gang of 3 of which 2 are bound, and a third waits to replace the one that was lost."""
    asked = gang("a").of(3, cpu=2).each(owner=owner, **changes)
    return asked.bound_on("n1", "n1").but(on_partial=on_partial)


def decide(*parts: GangBuilder | NodeBuilder, cpu: int = 4) -> Plan:
    return plan(_cluster(*parts, cpu=cpu), BestFit(), BestFit(), AMPLE_BUDGET)


def _cluster(*parts: GangBuilder | NodeBuilder, cpu: int = 4) -> Snapshot:
    return snapshot_of(node("n1", cpu=cpu), node("n2", cpu=8).cordoned(), *parts)


def evicted(plan: Plan) -> list[str]:
    return [member.key.name for eviction in plan.evictions for member in eviction.members]


def test_a_gang_that_cannot_be_completed_is_released_where_that_was_asked_for() -> None:
    plan = decide(lost_one())
    assert evicted(plan) == ["a-0", "a-1"]
    (rejection,) = plan.rejections
    assert finding_text.sentence(rejection).endswith(
        "; to be released: 2 bound members to evict, to start again whole"
    )
    assert plan.evictions[0].uid == lost_one().made.uid


def test_nothing_is_evicted_by_default() -> None:
    plan = decide(lost_one(on_partial=OnPartial.COMPLETE))
    assert not plan.evictions
    assert "released" not in finding_text.sentence(plan.rejections[0])


def test_a_gang_that_finds_room_is_completed() -> None:
    plan = decide(lost_one(), cpu=8)
    assert not plan.evictions
    assert not plan.rejections
    assert len(plan.placements) == 1


def test_a_gang_that_is_whole_keeps_what_it_has_though_more_members_wait() -> None:
    assert not decide(lost_one().needing(2)).evictions


def test_a_gang_that_has_not_started_has_nothing_to_give_back() -> None:
    assert not decide(gang("a").of(3, cpu=2).but(on_partial=OnPartial.RELEASE)).evictions


def test_a_gang_waits_for_all_of_its_replacements() -> None:
    plan = decide(lost_one().needing(4))
    assert not plan.evictions
    roles = gang("a").role("driver", 1, 0).role("worker", 1, 2, cpu=3).bound_on("n1")
    made = roles.each(owner=SET).but(on_partial=OnPartial.RELEASE).needing(2)
    assert not decide(made).evictions, "a worker replaces no driver"


def test_a_gang_whose_replacement_is_of_the_right_role_is_released() -> None:
    roles = gang("a").role("driver", 1, cpu=3).role("worker", 1, cpu=3).each(owner=SET)
    assert evicted(decide(roles.bound_on("n1").but(on_partial=OnPartial.RELEASE))) == ["a-0"]


OBSTACLES = {
    "bare pods": (lost_one(owner=None), "a-0 has no controller that creates it again"),
    "one bare pod": (
        lost_one().only("a-1", owner=None),
        "a-1 has no controller that creates it again",
    ),
    "a driver": (
        lost_one().only("a-1", is_driver=True),
        "a-1 is a Spark driver, which no controller creates again",
    ),
    "a finishing gang": (
        lost_one().only("a-0", phase=Phase.SUCCEEDED).needing(3),
        "1 member succeeded already",
    ),
    "a member that is leaving": (
        gang("a").of(4, cpu=2).needing(3).each(owner=SET).but(on_partial=OnPartial.RELEASE)
        .bound_on("n1", "n1", "n3").only("a-2", terminating=True),
        "a-2 has not left node n3 yet",
    ),
}  # fmt: skip


@pytest.mark.parametrize("why", OBSTACLES)
def test_what_keeps_a_gang_from_being_released_is_said(why: str) -> None:
    of, sentence = OBSTACLES[why]
    plan = decide(of, node("n3", cpu=2).cordoned(), cpu=2 if "finishing" in why else 4)
    assert not plan.evictions
    (rejection,) = plan.rejections
    assert finding_text.sentence(rejection).startswith(NO_ROOM)
    assert finding_text.sentence(rejection).endswith(f"; not released: {sentence}")


def test_a_member_that_will_never_leave_its_dead_node_is_not_waited_for() -> None:
    of, _ = OBSTACLES["a member that is leaving"]
    for dead in ([node("n3", cpu=2).cordoned().but(ready=False)], []):
        assert evicted(decide(of, *dead)) == ["a-0", "a-1"]


def test_a_gang_is_not_released_without_proof() -> None:
    shot = _cluster(lost_one())
    census = demand.count_members(shot.gangs[0])
    nobody = partial_release.AwaitedPods(
        SelectorIndex([], []), [], FitByShape(grids.grid(shot, []), np.zeros((2, 1), np.int64)), {}
    )
    unproved = Rejection(census.gang.key, Reason.BUDGET_EXHAUSTED, (ShortOf(1),))
    assert partial_release.verdicts(shot, [census], [unproved], nobody) == ((), (unproved,))
    proved = replace(unproved, reason=Reason.NO_NODE_FITS)
    assert len(partial_release.verdicts(shot, [census], [proved], nobody)[0]) == 1


# Rules between pods: room that others would make.


def waiting_for_company(*, cpu: int = 1) -> GangBuilder:
    """A gang of 2 of which one is bound; the other's successor has to be near to pods of b."""
    asked = gang("a").of(2, cpu=1).last(1, shape=shape(cpu=cpu)).each(owner=SET)
    asked = asked.near("zone", peers("ml", app="b")).labelled(app="a")
    return asked.priority(1).bound_on("n1").but(on_partial=OnPartial.RELEASE)


def test_a_gang_is_repaired_by_the_plan_that_places_those_whom_it_needs() -> None:
    """Repairs come first; this one has room only once the other gang has its node."""
    near, other = node("n1", cpu=3).labelled(zone="z"), gang("b").of(1, cpu=1).labelled(app="b")
    snapshot = snapshot_of(near, waiting_for_company(), other)
    found = plan(snapshot, IlpStrategy(), BestFit(), AMPLE_BUDGET)
    assert [placement.gang.name for placement in found.placements] == ["a", "b"]
    assert found.evictions == ()
    assert plan_checks.violations(snapshot, found) == ()


def test_a_gang_is_not_released_while_the_same_plan_places_those_whom_it_needs() -> None:
    """They get a node where they are of no help to it."""
    near, far = (node(name, cpu=cpu).labelled(zone=name) for name, cpu in (("n1", 2), ("n2", 1)))
    other = gang("b").of(1, cpu=1).labelled(app="b").shaped(node_selector=(("zone", "n2"),))
    found = plan(
        snapshot_of(near, far, waiting_for_company(), other), BestFit(), BestFit(), AMPLE_BUDGET
    )
    assert [placement.gang.name for placement in found.placements] == ["b"]
    assert found.evictions == ()
    assert finding_text.sentence(found.rejections[0]).endswith(
        "; not released: ml/a-1 may find room once ml/b-0 has its node"
    )


def test_a_gang_is_not_released_while_those_whom_it_needs_still_wait() -> None:
    late = gang("b").of(2, cpu=1).labelled(app="b").last(1, gates=("hold",))
    near = node("n1", cpu=4).labelled(zone="z")
    found = plan(snapshot_of(near, waiting_for_company(), late), BestFit(), BestFit(), AMPLE_BUDGET)
    assert found.evictions == ()
    assert "once ml/b-0 has its node" in finding_text.sentence(found.rejections[0])


@pytest.mark.parametrize(
    "others",
    [
        [],
        [gang("c").of(1, cpu=1).labelled(app="c")],
        [gang("b").of(2, cpu=1).labelled(app="b").bound_on("n2").last(1, shape=shape(cpu=9))],
    ],
    ids=["nobody", "nobody whom it needs", "who was tried together with it"],
)
def test_a_gang_whom_nobody_can_help_is_released(others: list[GangBuilder]) -> None:
    nodes = node("n1", cpu=4).labelled(zone="z"), node("n2", cpu=4)
    found = plan(
        snapshot_of(*nodes, waiting_for_company(), *others), BestFit(), BestFit(), AMPLE_BUDGET
    )
    assert evicted(found) == ["a-0"]


def test_a_gang_that_lacks_room_whoever_is_near_is_released() -> None:
    near = node("n1", cpu=4).labelled(zone="z")
    other = gang("b").of(1, cpu=1).labelled(app="b")
    snapshot = snapshot_of(near, waiting_for_company(cpu=9), other)
    assert evicted(plan(snapshot, BestFit(), BestFit(), AMPLE_BUDGET)) == ["a-0"]


# Jobs

KEY = ("ml", "train")


def of_job() -> Plan:
    return decide(lost_one(owner=JOB))


def test_a_job_that_stands_the_evictions_is_evicted() -> None:
    for left in (3, None):
        plan = partial_release.spared(of_job(), {KEY: Job("ml", "train", left)})
        assert plan == of_job()


def test_a_job_that_would_fail_is_spared_and_that_is_said() -> None:
    plan = partial_release.spared(of_job(), {KEY: Job("ml", "train", 2)})
    assert not plan.evictions
    (rejection,) = plan.rejections
    assert (
        "but not yet: Job train stands 2 more failures and each of the 2"
        in finding_text.sentence(rejection)
    )
    assert "podFailurePolicy ignore DisruptionTarget" in finding_text.sentence(rejection)


def test_a_job_that_cannot_be_read_is_spared() -> None:
    plan = partial_release.spared(of_job(), {})
    assert not plan.evictions
    assert "Job train cannot be read" in finding_text.sentence(plan.rejections[0])


def test_other_controllers_count_no_failures() -> None:
    assert partial_release.spared(decide(lost_one()), {}) == decide(lost_one())
    assert not Owner("Job", "train", "batch.volcano.sh").is_job


def test_gangs_that_are_not_spared_keep_their_sentences() -> None:
    shot = _cluster(lost_one(owner=JOB), gang("z").of(9, cpu=9))
    found = plan(shot, BestFit(), BestFit(), AMPLE_BUDGET)
    kept = partial_release.spared(found, {})
    assert kept.rejections[1] == found.rejections[1]


def test_an_eviction_is_dropped_once_it_makes_no_sense() -> None:
    assert partial_release.is_given_up(lost_one().made)
    assert not partial_release.is_given_up(lost_one(on_partial=OnPartial.COMPLETE).made)
    assert not partial_release.is_given_up(lost_one().needing(2).made)
    assert not partial_release.is_given_up(replace(lost_one().made, terminating=True))
