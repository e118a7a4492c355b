"""The queue of each gang in a plan: who is refused, who is stopped, what is charged."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tutti.gang.finding_text import sentence
from tutti.model.cluster import (
    Gang,
    Member,
    OnTimeout,
    Phase,
    Reservation,
    Role,
    SlotReservation,
    Snapshot,
)
from tutti.model.decisions import GangCap, Plan, Reason
from tutti.model.inter_pod import Requirement
from tutti.model.keys import NodeName, Uid
from tutti.model.queues import Queue, QueueMode, QueueRecord, RoleAtStart, Stop
from tutti.model.resources import Resources
from tutti.planning import observed_demand
from tutti.planning.plan import plan
from tutti.planning.queued_gangs import (
    QueuedGangs,
    completed_records,
    outdated_records,
    queue_gangs,
    unrecorded_gangs,
)
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Strategy
from tutti.verify.plan_checks import upheld, violations
from tutti.verify.queues import starts
from tutti.verify.queues.charges import QueueCharges

from ...harness import generators
from ...harness.builders import (
    AMPLE_BUDGET,
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
from ..verify.test_plan_checks import placing

BEST_FIT, ILP = BestFit(), STRATEGIES["ilp"]()
TEAM_A = (Requirement("team", "In", ("a",)),)
ML = space("ml", team="a")
ROOM = node("n1", cpu=100)
GPU = "nvidia.com/gpu"
FIELD = "spec.queue of the PodGroup"
AMBIGUOUS = (
    f"queues nlp, vision are all the default of namespace ml: name one of them in {FIELD}, or let "
    "an administrator leave one default"
)
VISION = Queue("vision", Uid("vision-1"))


def queue(name: str, **changes: Any) -> Queue:
    return replace(Queue(name, Uid(f"{name}-1")), **changes)


def queued(*parts: Part) -> QueuedGangs:
    return queue_gangs(observed_demand.observe(snapshot_of(*parts, at=60.0)))


def planned(*parts: Part, at: float = 60.0, by: Strategy = BEST_FIT) -> Plan:
    return plan(snapshot_of(*parts, at=at), by, BEST_FIT, AMPLE_BUDGET)


def reasons(plan: Plan) -> dict[str, Reason]:
    return {rejection.gang.name: rejection.reason for rejection in plan.rejections}


def started(plan: Plan) -> set[str]:
    return {placement.gang.name for placement in plan.placements}


def test_without_queues_a_named_queue_means_nothing() -> None:
    plan = planned(ROOM, gang("a").of(2, cpu=1).but(queue="vision"))
    assert (started(plan), reasons(plan)) == ({"a"}, {})


def test_a_gang_starts_in_the_queue_that_it_names_or_in_its_default_or_in_the_root() -> None:
    default = queue("nlp", default_for=TEAM_A, namespaces=TEAM_A)
    queued_gangs = queued(
        *(ROOM, ML, space("other"), VISION, default),
        gang("a").of(1, cpu=1).but(queue="vision"),
        gang("b").of(1, cpu=1),
        single("p", cpu=1),
        gang("c", "other").of(1, cpu=1),
    )
    queues = {key.name: name for key, name in queued_gangs.queues.items()}
    assert queues == {"a": "vision", "b": "nlp", "p": "nlp", "c": "root"}
    assert not queued_gangs.observed.refused


@pytest.mark.parametrize(
    ("name", "reason", "words"),
    [
        (
            "vison",
            Reason.UNKNOWN_QUEUE,
            f"queue vison does not exist: name nlp or vision in {FIELD}",
        ),
        (
            "root",
            Reason.UNKNOWN_QUEUE,
            f"queue root does not exist: name nlp or vision in {FIELD}",
        ),
        (
            "theirs",
            Reason.FORBIDDEN_QUEUE,
            f"queue theirs does not admit namespace ml: name nlp or vision in {FIELD}",
        ),
        (
            "ml",
            Reason.QUEUE_HAS_CHILDREN,
            f"queue ml has children, so no gang starts in it: name nlp in {FIELD}",
        ),
        (
            "",
            Reason.AMBIGUOUS_DEFAULT,
            AMBIGUOUS,
        ),
    ],
)
def test_a_gang_without_a_queue_waits_and_says_what_to_name(
    name: str, reason: Reason, words: str
) -> None:
    queues = (
        queue("vision", default_for=TEAM_A),
        queue("ml"),
        queue("nlp", parent="ml", default_for=TEAM_A),
        queue("theirs", namespaces=None),
    )
    plan = planned(ROOM, ML, *queues, gang("a").of(2, cpu=1).but(queue=name))
    (rejection,) = plan.rejections
    assert (started(plan), rejection.reason, sentence(rejection)) == (set(), reason, words)


def test_a_sentence_names_a_few_queues_and_says_where_there_is_none() -> None:
    many = [queue(f"q{i}") for i in range(7)]
    (rejection,) = planned(ROOM, ML, *many, gang("a").of(1, cpu=1).but(queue="x")).rejections
    assert "name q0 or q1 or q2 or q3 or q4 or 2 more in" in sentence(rejection)
    theirs = queue("theirs", namespaces=None)
    (rejection,) = planned(ROOM, ML, theirs, gang("a").of(1, cpu=1).but(queue="x")).rejections
    assert sentence(rejection).endswith("there is no queue that this namespace may use instead")


def test_a_single_pod_of_a_namespace_with_two_defaults_waits() -> None:
    queues = (queue("vision", default_for=()), queue("nlp", default_for=()))
    assert reasons(planned(ROOM, ML, *queues, single("p", cpu=1))) == {
        "p": Reason.AMBIGUOUS_DEFAULT
    }


@pytest.mark.parametrize(
    ("stopped", "why"),
    [
        (
            (queue("vision", stop=Stop.HOLD),),
            "it has stop: Hold; gangs start again once the stop of queue vision is None",
        ),
        (
            (queue("vision", is_terminating=True),),
            "it is being deleted; name another queue in spec.queue of the PodGroup",
        ),
        (
            (queue("vision", parent="gone"),),
            "it names a parent that cannot be used; correct spec.parent of queue vision",
        ),
        (
            (queue("vision", parent="ml"), queue("ml", stop=Stop.HOLD)),
            "queue ml above it has stop: Hold; gangs start again once the stop of queue ml is None",
        ),
    ],
)
def test_a_queue_that_holds_starts_no_gang_and_no_extra_and_replaces_lost_members(
    stopped: tuple[Queue, ...], why: str
) -> None:
    waits = gang("a").of(2, cpu=1).but(queue="vision")
    grows = gang("b").of(2, cpu=1).needing(1).bound_on("n1").but(queue="vision")
    broken = gang("c").of(2, cpu=1).bound_on("n1").but(queue="vision")
    plan = planned(ROOM, ML, *stopped, waits, grows, broken)
    assert started(plan) == {"c"}
    assert reasons(plan) == {"a": Reason.QUEUE_HELD, "b": Reason.QUEUE_HELD}
    extra = next(rejection for rejection in plan.rejections if rejection.gang.name == "b")
    assert extra.only_extra_members
    held = next(rejection for rejection in plan.rejections if rejection.gang.name == "a")
    assert sentence(held) == f"queue vision starts no gang now: {why}"


def test_a_queue_that_drains_starts_what_was_there_when_the_drain_began() -> None:
    drains = queue("vision", stop=Stop.DRAIN, draining_since=10.0)
    old = gang("a").of(1, cpu=1).but(queue="vision", created=9.0)
    new = gang("b").of(1, cpu=1).but(queue="vision", created=10.0)
    plan = planned(ROOM, ML, drains, old, new)
    assert (started(plan), reasons(plan)) == ({"a"}, {"b": Reason.QUEUE_DRAINS})
    (rejection,) = plan.rejections
    assert sentence(rejection) == (
        "queue vision drains and starts no gang with a PodGroup or pods that were created since "
        "it does"
    )


def test_a_drain_keeps_out_new_pods_of_an_old_podgroup() -> None:
    drains = queue("vision", stop=Stop.DRAIN, draining_since=10.0)
    reused = in_vision(gang("a").of(2, cpu=1).each(created=11.0))
    partly = in_vision(gang("b").of(3, cpu=1)).needing(2).last(1, created=11.0)
    runs = in_vision(gang("c").of(2, cpu=1)).needing(1).bound_on("n1")
    broken = in_vision(gang("d").of(2, cpu=1)).bound_on("n1").last(1, created=11.0)
    few = in_vision(gang("e").of(1, cpu=1)).needing(2).each(created=11.0)
    plan = planned(ROOM, ML, drains, reused, partly, runs, broken, few)
    placed = {placement.gang.name: len(placement.assignments) for placement in plan.placements}
    assert placed == {"b": 2, "d": 1}
    waiting = {"a": Reason.QUEUE_DRAINS, "c": Reason.QUEUE_DRAINS, "e": Reason.WAITING_FOR_MEMBERS}
    assert reasons(plan) == waiting
    world = snapshot_of(ROOM, ML, drains, reused, at=60.0)
    forced = replace(plan, placements=(placing(reused, ("a-0", "n1"), ("a-1", "n1")),))
    assert violations(world, forced) == ("gang ml/a: queue vision does not start it",)


def test_a_gang_of_a_namespace_that_is_not_known_yet_waits() -> None:
    plan = planned(ROOM, VISION, gang("a").of(1, cpu=1))
    (rejection,) = plan.rejections
    assert (started(plan), rejection.reason) == (set(), Reason.UNKNOWN_NAMESPACE)
    assert sentence(rejection) == (
        "namespace ml is not known yet, so neither is the queue of the gang"
    )
    world = snapshot_of(ROOM, VISION, gang("a").of(1, cpu=1))
    forced = replace(plan, placements=(placing(gang("a").of(1, cpu=1), ("a-0", "n1")),))
    assert violations(world, forced) == ("gang ml/a: it belongs to no queue",)


def test_a_default_with_children_lifts_no_limit() -> None:
    """Neither for gangs that wait nor for pods and gangs that run without a record."""
    parent = queue("vision", default_for=TEAM_A, limits=(("pods", 2),))
    child = queue("speech", parent="vision")
    runs = single("p", cpu=1).bound_on("n1")
    waits = gang("b").of(2, cpu=1).but(queue="speech")
    plan = planned(ROOM, ML, parent, child, runs, gang("a").of(1, cpu=1), waits)
    assert started(plan) == set()
    assert reasons(plan) == {"a": Reason.QUEUE_HAS_CHILDREN, "b": Reason.QUEUE_AT_LIMIT}


def test_two_defaults_lift_no_limit_for_what_runs() -> None:
    defaults = [
        queue(name, default_for=TEAM_A, limits=(("pods", 2),)) for name in ("nlp", "vision")
    ]
    older, newer = replace(defaults[1], created=1.0), replace(defaults[0], created=2.0)
    runs = single("p", cpu=1).bound_on("n1")
    waits = gang("b").of(2, cpu=1).but(queue="vision")
    world = snapshot_of(ROOM, ML, older, newer, runs, waits)
    made = plan(world, BEST_FIT, BEST_FIT, AMPLE_BUDGET)
    assert reasons(made) == {"b": Reason.QUEUE_AT_LIMIT}
    forced = replace(made, placements=(placing(waits, ("b-0", "n1"), ("b-1", "n1")),))
    assert violations(world, forced)


def resized(limit: int = 100, **changes: Any) -> tuple[Part, ...]:
    """A gang that started with one member wants four by now."""
    grown = in_vision(gang("a").of(4, cpu=1)).needing(4).bound_on("n1")
    record = charging(started_in(VISION, grown, 1), replace(grown, members=grown.members[:1]))
    vision = queue("vision", limits=(("pods", limit),), **changes)
    return (ROOM, ML, vision, queue("nlp", guaranteed=(("cpu", 4000),)), grown, record)


def test_members_for_a_minimum_that_was_raised_are_extras() -> None:
    """They obey limits, start in no queue that holds, and come after gangs that are covered."""
    assert len(planned(*resized(3)).placements[0].assignments) == 2
    assert started(planned(*resized(stop=Stop.HOLD))) == set()
    drained = resized(stop=Stop.DRAIN, draining_since=50.0)
    assert started(planned(*drained)) == set()
    covered = gang("b").of(4, cpu=1).but(queue="nlp")
    _, *tree = resized()
    plan = planned(node("n1", cpu=6), *tree, covered)
    assert {placement.gang.name: len(placement.assignments) for placement in plan.placements} == {
        "a": 1,
        "b": 4,
    }


def test_a_gang_of_which_nobody_runs_is_admitted_again() -> None:
    """Members that succeeded long ago start no others past a stop, a refusal or their turn."""
    over = in_vision(gang("a").of(3, cpu=1)).needing(3)
    over = over.only("a-0", phase=Phase.SUCCEEDED)
    held = queue("vision", stop=Stop.HOLD)
    assert reasons(planned(ROOM, ML, held, over)) == {"a": Reason.QUEUE_HELD}
    assert reasons(planned(ROOM, ML, queue("nlp"), over)) == {"a": Reason.UNKNOWN_QUEUE}
    plan = planned(ROOM, ML, VISION, over)
    (placement,) = plan.placements
    assert len(placement.assignments) == 2
    assert placement.record is not None


def test_a_single_pod_counts_as_started_when_it_was_bound() -> None:
    """Else an old pod would take the cover of a gang that runs."""
    guarantee = queue("top", guaranteed=(("cpu", 2000),))
    tree = (ROOM, ML, guarantee, queue("vision", parent="top"))
    default = queue("nlp", parent="top", default_for=TEAM_A)
    runs = in_vision(gang("a").of(2, cpu=1).bound_on("n1", "n1"))
    record = charging(started_in(VISION, runs, 2), runs)
    late = single("p", cpu=1).bound_on("n1").each(bound_at=50.0, created=-9.0).but(created=-9.0)
    use = {one.name: one for one in planned(*tree, default, runs, record, late).queues}
    assert (use["vision"].covered["cpu"], use["nlp"].covered["cpu"]) == (2000, 0)
    waits = late.each(node=None, bound_at=None)
    plan = planned(*tree, default, runs, record, waits)
    assert started(plan) == {"p"}


def test_a_gang_that_ran_before_there_were_queues_gets_a_record_of_its_queue() -> None:
    runs = in_vision(gang("a").of(3, cpu=1)).needing(2).bound_on("n1", "n1", "n1")
    runs = runs.each(bound_at=5.0)
    world = snapshot_of(ROOM, ML, OLDER, runs, gang("w").of(1, cpu=1))
    (unrecorded,) = unrecorded_gangs(world)
    two = RoleAtStart("", 2, resources(cpu=2, pods=2))
    assert unrecorded.record == QueueRecord("vision", OLDER.uid, 5.0, (two,))
    assert unrecorded.pods == tuple(sorted(member.uid for member in runs.members))
    assert not unrecorded_gangs(snapshot_of(ROOM, ML, runs)), "there are no queues"
    assert not unrecorded_gangs(snapshot_of(ROOM, ML, OLDER, runs.each(bound_at=11.0)))
    record = started_in(VISION, runs, 3)
    assert not unrecorded_gangs(snapshot_of(ROOM, ML, OLDER, runs, record))
    standing = reservation(runs, ("a-0", "n1"))
    assert not unrecorded_gangs(snapshot_of(ROOM, ML, OLDER, runs, standing))


@pytest.mark.parametrize("named", ["", "later"], ids=["root", "unknown queue"])
def test_a_gang_that_ran_before_there_were_queues_is_recorded_without_a_queue(named: str) -> None:
    """Else the members that join for a larger minimum would count as replacements."""
    runs = gang("a").of(2, cpu=1).needing(1).bound_on("n1").each(bound_at=5.0).but(queue=named)
    (unrecorded,) = unrecorded_gangs(snapshot_of(ROOM, ML, OLDER, runs))
    start = RoleAtStart("", 1, resources(cpu=1, pods=1))
    assert unrecorded.record == QueueRecord("", Uid(""), 5.0, (start,))
    record = replace(started_in(OLDER, runs, 1), record=unrecorded.record)
    assert not completed_records(snapshot_of(ROOM, ML, OLDER, runs, record))
    assert not completed_records(snapshot_of(ROOM, ML, runs, record)), "there are no queues"
    later = queue("later", default_for=TEAM_A)
    (complete,) = completed_records(snapshot_of(ROOM, ML, OLDER, later, runs, record))
    completed = replace(unrecorded.record, queue="later", queue_uid=later.uid)
    assert complete == replace(record, record=completed)
    assert not completed_records(snapshot_of(ROOM, ML, OLDER, later, runs, complete))


@pytest.mark.parametrize("named", ["", "unknown"])
def test_members_of_a_gang_without_a_queue_for_a_larger_minimum_are_extras(named: str) -> None:
    vision = queue("vision", guaranteed=(("cpu", 4000),), created=10.0)
    runs = gang("a").of(4, cpu=1).needing(4).bound_on("n1").each(bound_at=5.0).but(queue=named)
    start = RoleAtStart("", 1, resources(cpu=1, pods=1))
    record = started_in(vision, replace(runs, members=runs.members[:1]), 1)
    record = replace(record, record=QueueRecord("", Uid(""), 5.0, (start,)))
    covered = in_vision(gang("b").of(4, cpu=1))
    plan = planned(node("n1", cpu=5), ML, vision, runs, record, covered)
    assert started(plan) == {"b"}
    held = queue("held", stop=Stop.HOLD, default_for=TEAM_A, created=10.0)
    assert started(planned(ROOM, ML, held, runs, record)) == set()


def test_a_gang_that_is_refused_is_given_up_in_time() -> None:
    late = gang("a").of(1, cpu=1).but(queue="x", timeout_seconds=30.0, on_timeout=OnTimeout.FAIL)
    assert reasons(planned(ROOM, ML, VISION, late)) == {"a": Reason.TIMED_OUT}


def test_a_gang_that_is_being_deleted_says_so() -> None:
    leaving = gang("a").of(1, cpu=1).but(queue="x", terminating=True)
    assert reasons(planned(ROOM, ML, VISION, leaving)) == {"a": Reason.WAITING_FOR_MEMBERS}


def test_a_gang_is_charged_for_members_with_a_node_and_for_room_that_is_held() -> None:
    slot = SlotReservation(NodeName("n1"), "worker", 2)
    runs = gang("a").of(2, cpu=1).bound_on("n1").but(queue="vision")
    reserved = gang("b").of(1, role="worker", cpu=3).but(roles=(Role("worker", 3),))
    queued_gangs = queued(
        *(ROOM, ML, queue("vision", limits=(("cpu", 4000),))),
        *(runs, reserved, reservation(reserved, ("b-0", "n1"), slots=[slot])),
        gang("c").of(1, cpu=1),
    )
    charges = {key.name: amount.total for key, amount in queued_gangs.charges.items()}
    assert charges == {
        "a": Resources.of({"cpu": 1000, "pods": 1}),
        "b": Resources.of({"cpu": 9000, "pods": 3}),
    }
    (limit,) = queued_gangs.limits
    assert (limit.queue, limit.limit, limit.in_use) == ("vision", 4000, 1000)


def test_a_gang_that_runs_stays_charged_where_its_queue_is_gone() -> None:
    runs = gang("a").of(1, cpu=1).bound_on("n1").but(queue="gone")
    assert {*queued(ROOM, ML, VISION, runs).queues.values()} == {"root"}


# Limits


def in_vision(gang: GangBuilder) -> GangBuilder:
    return gang.but(queue="vision")


def limited(**limits: int) -> Queue:
    return queue("vision", limits=tuple(sorted(limits.items())))


def test_no_plan_starts_more_than_a_limit_leaves() -> None:
    gangs = [in_vision(gang(f"g{i}").of(2, cpu=1)) for i in range(4)]
    runs = in_vision(gang("r").of(1, cpu=1).bound_on("n1"))
    plan = planned(ROOM, ML, limited(cpu=6000), runs, *gangs, by=STRATEGIES["ilp"]())
    assert started(plan) == {"g0", "g1"}
    assert {*reasons(plan).values()} == {Reason.QUEUE_AT_LIMIT}
    assert plan.proved
    assert sentence(plan.rejections[0]) == (
        "queue vision is at its limit: 5 of 6 cpu are in use, 2 wanted; a limit of 7 would be "
        "enough, or the end of ml/r (1)"
    )


def test_no_queue_waits_for_the_head_of_another() -> None:
    first = in_vision(gang("a").of(2, cpu=1)).priority(9)
    other = gang("b").of(2, cpu=1).but(queue="nlp")
    plan = planned(ROOM, ML, limited(cpu=1000), queue("nlp"), first, other)
    assert (started(plan), reasons(plan)) == ({"b"}, {"a": Reason.QUEUE_AT_LIMIT})


def test_a_limit_above_holds_for_all_queues_below_it() -> None:
    tree = (queue("ml", limits=(("pods", 3),)), queue("a", parent="ml"), queue("b", parent="ml"))
    gangs = [gang(name).of(2, cpu=1).but(queue=name) for name in ("a", "b")]
    plan = planned(ROOM, ML, *tree, *gangs)
    assert (started(plan), reasons(plan)) == ({"a"}, {"b": Reason.QUEUE_AT_LIMIT})
    assert sentence(plan.rejections[0]) == (
        "queue ml is at its limit: 2 of 3 pods are in use, 2 wanted; a limit of 4 would be enough"
    )


def test_no_limit_alone_is_said_to_be_enough_where_several_keep_a_gang_waiting() -> None:
    tree = (queue("ml", limits=(("pods", 3),)), queue("a", parent="ml"))
    leaf = queue("b", parent="ml", limits=(("pods", 1),))
    gangs = [gang(name).of(2, cpu=1).but(queue=name) for name in ("a", "b")]
    plan = planned(ROOM, ML, *tree, leaf, *gangs)
    assert started(plan) == {"a"}
    first, second = sentence(plan.rejections[0]).split("; queue ")
    assert first.endswith("a limit of 2 would be enough, with the other limits met, too")
    assert second.startswith("ml is at its limit: 2 of 3 pods are in use, 2 wanted")
    assert second.endswith("a limit of 4 would be enough, with the other limits met, too")


@pytest.mark.parametrize("strategy", [BestFit(), STRATEGIES["ilp"]()])
def test_gangs_of_several_rounds_keep_a_limit_together(strategy: Strategy) -> None:
    """Extras part the rounds; a border decides once more on all above it."""
    top = in_vision(gang("a").of(4, cpu=1).needing(2)).priority(2)
    low = in_vision(gang("b").of(2, cpu=1)).priority(1)
    last = in_vision(gang("c").of(1, cpu=1))
    for most, names in ((1, ["c"]), (3, ["a"]), (5, ["a", "c"]), (7, ["a", "b", "c"])):
        snapshot = snapshot_of(ROOM, ML, limited(pods=most), top, low, last, at=60.0)
        made = plan(snapshot, strategy, BestFit(), AMPLE_BUDGET)
        placed = {placement.gang.name: len(placement.assignments) for placement in made.placements}
        assert sorted(placed) == names
        assert sum(placed.values()) == most


@pytest.mark.parametrize("pool", ["n1", "n2"])
def test_what_a_border_starts_counts_for_all_rounds_after_it(pool: str) -> None:
    """The gang above moves aside for gang b, and gang c comes too late."""
    nodes = [node(name, cpu=2).labelled(pool=name) for name in ("n1", "n2")]
    above = in_vision(gang("a").of(2, cpu=1)).priority(2)
    large = replace(shape(cpu=2), node_selector=(("pool", pool),))
    moves = in_vision(gang("b").of(1).each(shape=large)).priority(1)
    last = in_vision(gang("c").of(1, memory=1))
    others = [gang(f"x{i}").of(2, memory=1).needing(1).bound_on("n3").priority(i) for i in (1, 2)]
    parting = [other.but(queue="nlp") for other in others]
    room = [*nodes, node("n3", memory=3)]
    plan = planned(
        *room,
        ML,
        limited(pods=3),
        queue("nlp"),
        above,
        moves,
        last,
        *parting,
        by=STRATEGIES["ilp"](),
    )
    assert (started(plan) - {"x1", "x2"}, reasons(plan)["c"]) == (
        {"a", "b"},
        Reason.QUEUE_AT_LIMIT,
    )


def test_a_lost_member_is_replaced_as_far_as_the_limit_leaves_room() -> None:
    broken = in_vision(gang("a").of(3, cpu=1).bound_on("n1"))
    plan = planned(ROOM, ML, limited(cpu=2000), broken)
    assert [len(placement.assignments) for placement in plan.placements] == [1]
    full = in_vision(gang("b").of(1, cpu=1).bound_on("n1"))
    plan = planned(ROOM, ML, limited(cpu=2000), broken, full)
    assert (started(plan), reasons(plan)) == (set(), {"a": Reason.QUEUE_AT_LIMIT})


def test_room_for_absent_members_counts() -> None:
    awaits = in_vision(gang("a").role("driver", 1, cpu=1).role("worker", 3, 0, cpu=1))
    awaits = awaits.declaring(cpu=1)
    plan = planned(ROOM, ML, limited(cpu=3000), awaits)
    assert (started(plan), reasons(plan)) == (set(), {"a": Reason.QUEUE_AT_LIMIT})
    other = in_vision(gang("b").of(1, cpu=1)).but(created=9.0)
    plan = planned(ROOM, ML, limited(cpu=4000), awaits, other)
    assert (started(plan), reasons(plan)) == ({"a"}, {"b": Reason.QUEUE_AT_LIMIT})
    (placement,) = plan.placements
    assert sum(slot.count for slot in placement.slots) == 3


def test_the_record_of_a_start_has_the_queue_and_the_minimum() -> None:
    plan = planned(
        *(ROOM, ML, VISION),
        in_vision(gang("a").of(3, cpu=1).needing(2)),
        gang("b").of(1, cpu=1),
        in_vision(gang("c").of(2, cpu=1).needing(1).bound_on("n1")),
        single("d", cpu=1),
    )
    records = {placement.gang.name: placement.record for placement in plan.placements}
    two, one = (RoleAtStart("", n, resources(cpu=n, pods=n)) for n in (2, 1))
    assert records == {
        "a": QueueRecord("vision", Uid("vision-1"), 60.0, (two,)),
        "b": QueueRecord("root", Uid(""), 60.0, (one,)),
        "c": None,
        "d": None,
    }


def test_the_record_of_a_start_counts_absent_members() -> None:
    awaits = in_vision(gang("a").role("driver", 1, cpu=1).role("worker", 3, 0, cpu=1))
    (placement,) = planned(ROOM, ML, VISION, awaits.declaring(cpu=1)).placements
    assert placement.record is not None
    assert [(start.role, start.members) for start in placement.record.minimum] == [
        ("driver", 1),
        ("worker", 3),
    ]


def test_without_queues_nothing_is_written_down_of_a_start() -> None:
    (placement,) = planned(ROOM, gang("a").of(1, cpu=1)).placements
    assert placement.record is None


def started_in(queue: Queue, of: GangBuilder, *members: int) -> Reservation:
    """The record of a start with the oldest members, one CPU each, and no room that is held."""
    starts = tuple(RoleAtStart("", n, resources(cpu=n, pods=n)) for n in members)
    record = QueueRecord(queue.name, queue.uid, 0.0, starts)
    return replace(reservation(of), record=record)


def test_a_gang_that_runs_is_charged_to_the_queue_of_its_record() -> None:
    runs = gang("a").of(2, cpu=1).bound_on("n1", "n1").but(queue="nlp")
    tree = (VISION, queue("nlp"))
    queued_gangs = queued(ROOM, ML, *tree, runs, started_in(VISION, runs, 2))
    assert queued_gangs.queues == {runs.key: "vision"}
    again = replace(VISION, uid=Uid("vision-2"))
    queued_gangs = queued(ROOM, ML, again, queue("nlp"), runs, started_in(VISION, runs, 2))
    assert queued_gangs.queues == {runs.key: "root"}
    other = runs.but(uid=Uid("another"))
    queued_gangs = queued(ROOM, ML, *tree, other, started_in(VISION, runs, 2))
    assert queued_gangs.queues == {runs.key: "vision"}, (
        "the record of an earlier PodGroup of that name"
    )


def test_a_record_of_its_own_counts_before_that_of_an_earlier_podgroup() -> None:
    runs = gang("a").of(2, cpu=1).bound_on("n1", "n1").but(queue="nlp")
    other = runs.but(uid=Uid("another"))
    own = replace(started_in(queue("nlp"), other, 2), record=QueueRecord("nlp", Uid("nlp-1"), 1.0))
    older = started_in(VISION, runs.but(uid=Uid("old")), 2)
    tree = (VISION, queue("nlp"))
    queued_gangs = queued(ROOM, ML, *tree, other, started_in(VISION, runs, 2), own)
    assert queued_gangs.queues == {runs.key: "nlp"}
    newer = replace(older, record=QueueRecord("nlp", Uid("nlp-1"), 1.0))
    queued_gangs = queued(ROOM, ML, *tree, other, started_in(VISION, runs, 2), newer)
    assert queued_gangs.queues == {runs.key: "nlp"}, "of earlier ones, the latest"


def test_no_gang_starts_in_another_queue_while_pods_of_its_name_hold_room() -> None:
    leaving = gang("a").of(2, cpu=1).bound_on("n1", "n1").each(terminating=True)
    again = leaving.of(2, cpu=1).needing(2).but(queue="nlp", uid=Uid("another"))
    tree = (ROOM, ML, VISION, queue("nlp"))
    plan = planned(*tree, again, started_in(VISION, leaving, 2))
    assert (started(plan), reasons(plan)) == (set(), {"a": Reason.QUEUE_CHANGES})
    assert sentence(plan.rejections[0]) == (
        "pods of this gang still hold room in queue vision: it starts in queue nlp once they are "
        "gone"
    )
    assert started(planned(*tree, again.but(queue="vision"), started_in(VISION, leaving, 2))) == {
        "a"
    }


def test_a_podgroup_that_is_created_again_has_a_record_for_the_pods_that_join_it() -> None:
    """A gang that runs has that of the earlier start; one that starts has one of its own."""
    runs = in_vision(gang("a").of(2, cpu=1).bound_on("n1", "n1"))
    again = runs.of(1, cpu=1).needing(2).but(uid=Uid("another"))
    earlier = started_in(VISION, runs, 2)
    (placement,) = planned(ROOM, ML, VISION, again, earlier).placements
    assert placement.record == earlier.record
    (placement,) = planned(ROOM, ML, VISION, again.but(uid=runs.made.uid), earlier).placements
    assert placement.record is None, "its Reservation has it"
    leaving = runs.each(terminating=True)
    again = leaving.of(2, cpu=1).needing(2).but(uid=Uid("another"))
    (placement,) = planned(ROOM, ML, VISION, again, earlier).placements
    assert placement.record is not None
    assert (placement.record.queue, placement.record.started) == ("vision", 60.0)


def test_pods_whose_podgroup_is_gone_stay_charged() -> None:
    """Deleting it frees nothing but the places of lost members, which nobody can fill."""
    runs = in_vision(gang("a").of(3, cpu=1).bound_on("n1", "n1", "n1"))
    waits = in_vision(gang("b").of(1, cpu=1))
    record = started_in(VISION, runs, 3)
    world = snapshot_of(ROOM, ML, limited(cpu=3000), waits, record, strays=runs.members, at=60.0)
    made = plan(world, BEST_FIT, BEST_FIT, AMPLE_BUDGET)
    assert reasons(made) == {"b": Reason.QUEUE_AT_LIMIT}
    lost = runs.last(1, phase=Phase.FAILED)
    world = snapshot_of(ROOM, ML, limited(cpu=3000), waits, record, strays=lost.members, at=60.0)
    assert started(plan(world, BEST_FIT, BEST_FIT, AMPLE_BUDGET)) == {"b"}
    over = runs.each(phase=Phase.FAILED)
    world = snapshot_of(ROOM, ML, limited(cpu=3000), waits, record, strays=over.members, at=60.0)
    assert started(plan(world, BEST_FIT, BEST_FIT, AMPLE_BUDGET)) == {"b"}


def charging(start: Reservation, *pods: GangBuilder) -> Reservation:
    """The record with the pods that it names."""
    uids = (member.uid for part in pods for member in part.members)
    return replace(start, charged=tuple(sorted(uids)))


def charges(*parts: Part, strays: Sequence[Member] = ()) -> dict[str, tuple[str, int]]:
    """The queue of each gang that is charged, and how many pods it is charged for."""
    world = snapshot_of(*parts, strays=strays, at=60.0)
    queued_gangs = queue_gangs(observed_demand.observe(world))
    return {
        key.name: (queued_gangs.queues[key], one.total["pods"])
        for key, one in queued_gangs.charges.items()
    }


def named(of: GangBuilder, group: str) -> GangBuilder:
    """Its pods with the label of another PodGroup, or of none."""
    return of.each(group=group)


OLDER = Queue("vision", Uid("vision-1"), limits=(("cpu", 3000),), created=10.0)


@pytest.mark.parametrize("label", ["other", "gone", ""])
def test_a_pod_that_runs_is_charged_where_it_started_whatever_its_label_says(label: str) -> None:
    """To its own gang, also if its new gang exists, does not exist, or it is in none."""
    runs = in_vision(gang("a").of(3, cpu=1).bound_on("n1", "n1", "n1"))
    record = charging(started_in(VISION, runs, 3), runs)
    rest = replace(runs, members=())
    waits = in_vision(gang("b").of(1, cpu=1))
    tree = (ROOM, ML, OLDER, queue("nlp"), waits, rest, record)
    moved = named(runs, label).members
    other = gang("other").of(0).but(queue="nlp")
    parts: tuple[Part, ...] = ()
    strays: tuple[Member, ...] = ()
    if label == "other":
        parts = (replace(other, members=moved),)
    elif label == "gone":
        strays = (*moved, *gang("gone").of(1, cpu=1).members)
    else:
        parts = tuple(replace(single(pod.key.name), members=(pod,)) for pod in moved)
    assert charges(*tree, *parts, strays=strays) == {"a": ("vision", 3)}
    world = snapshot_of(*tree, *parts, strays=strays, at=60.0)
    made = plan(world, BEST_FIT, BEST_FIT, AMPLE_BUDGET)
    assert reasons(made)["b"] is Reason.QUEUE_AT_LIMIT
    forced = replace(made, placements=(placing(waits, ("b-0", "n1")),))
    assert any("queue vision" in fault for fault in violations(world, forced))
    assert upheld(world, forced.placements) == ()


def test_a_single_pod_that_takes_the_label_of_a_gang_stays_in_the_default_queue() -> None:
    """Else it would leave the limit of the default of its namespace, and start its new gang."""
    default = queue("vision", default_for=(), limits=(("pods", 1),), created=10.0)
    pod = single("p", cpu=1).bound_on("n1").each(bound_at=20.0, group="x").members[0]
    joined = gang("x").of(2, cpu=1).but(queue="nlp")
    joined = replace(joined, members=(pod, *joined.members[:1]))
    tree = (ROOM, ML, default, queue("nlp"), single("q", cpu=1))
    assert charges(*tree, joined) == {"p": ("vision", 1)}
    assert charges(*tree, strays=(pod,)) == {"p": ("vision", 1)}
    world = snapshot_of(*tree, joined, at=60.0)
    made = plan(world, BEST_FIT, BEST_FIT, AMPLE_BUDGET)
    assert started(made) == set(), "a stranger makes the gang neither started nor whole"
    assert reasons(made)["q"] is Reason.QUEUE_AT_LIMIT
    forced = replace(made, placements=(placing(single("q", cpu=1), ("q", "n1")),))
    assert violations(world, forced)


def test_a_pod_that_ran_before_there_were_queues_is_charged_to_the_gang_of_its_label() -> None:
    runs = gang("a").of(2, cpu=1).bound_on("n1", "n1").but(queue="vision")
    for bound_at, expected in ((None, {"a"}), (10.0, {"a"}), (10.5, {"a-0", "a-1"})):
        assert charges(ROOM, ML, OLDER, runs.each(bound_at=bound_at)).keys() == expected


def test_a_pod_that_is_created_with_a_node_does_not_make_a_gang_count_as_older_than_queues() -> (
    None
):
    """No kubelet says when such a pod got its node; some name a node that does not exist."""
    runs = gang("a").of(2, cpu=1).bound_on("n1", "n1").but(queue="vision")
    late = runs.each(bound_at=None, created=20.0)
    assert charges(ROOM, ML, OLDER, late).keys() == {"a-0", "a-1"}
    guaranteed = replace(OLDER, guaranteed=(("cpu", 8000),), limits=())
    for named in ("", "gone", "vision"):
        gang_of_three = gang("x").of(3, cpu=1).needing(3).but(queue=named, created=20.0)
        ghost = gang_of_three.last(1, node=NodeName("ghost"), created=20.0)
        waits = in_vision(gang("b").of(1, cpu=8))
        world = snapshot_of(node("n1", cpu=8), ML, guaranteed, ghost, waits, at=60.0)
        made = plan(world, BEST_FIT, BEST_FIT, AMPLE_BUDGET)
        assert started(made) == {"b"}, "it repairs nothing, so it does not come first"
    waits = in_vision(gang("b").of(1, cpu=1))
    world = snapshot_of(ROOM, ML, replace(OLDER, limits=(("cpu", 2000),)), late, waits, at=60.0)
    made = plan(world, BEST_FIT, BEST_FIT, AMPLE_BUDGET)
    assert started(made) == {"b"}
    assert not violations(world, made), "the checker charges the same pods"


def test_pods_of_plans_before_queues_count_as_such_although_a_queue_was_there() -> None:
    """A plan may not know the first Queue yet; and that Queue may be gone, unlike others."""
    runs = gang("a").of(2, cpu=1).bound_on("n1", "n1").but(queue="vision").each(bound_at=15.0)
    known = replace(OLDER, queues_since=20.0)
    newer = replace(queue("nlp", created=30.0), queues_since=20.0)
    for queues in ((known,), (known, newer), (known, replace(newer, queues_since=None))):
        assert charges(ROOM, ML, *queues, runs).keys() == {"a"}
    late = runs.each(bound_at=25.0)
    assert charges(ROOM, ML, newer, replace(known, created=31.0), late).keys() == {"a-0", "a-1"}
    full = replace(known, limits=(("cpu", 2000),))
    waits = in_vision(gang("b").of(1, cpu=1))
    world = snapshot_of(ROOM, ML, full, runs, waits)
    made = plan(world, BEST_FIT, BEST_FIT, AMPLE_BUDGET)
    assert reasons(made)["b"] is Reason.QUEUE_AT_LIMIT
    forced = replace(made, placements=(placing(waits, ("b-0", "n1")),))
    assert any("queue vision" in fault for fault in violations(world, forced))


def test_a_pod_that_the_record_of_its_gang_does_not_name_is_charged_by_itself() -> None:
    runs = in_vision(gang("a").of(2, cpu=1).bound_on("n1", "n1"))
    record = replace(started_in(VISION, runs, 1), charged=(runs.members[0].uid,))
    seen = charges(ROOM, ML, OLDER, runs, record)
    assert seen == {"a": ("vision", 1), "a-1": ("root", 1)}


def test_an_older_member_that_joins_adds_what_it_requests() -> None:
    both = in_vision(gang("a").of(1, cpu=1).of(1, cpu=3).needing(1))
    older, younger = both.members
    record = QueueRecord("vision", VISION.uid, 1.0, (RoleAtStart("", 1, resources(cpu=3, pods=1)),))
    start = replace(reservation(both), record=record, charged=(younger.uid,))
    waits = in_vision(gang("b").of(1, cpu=1))
    runs = both.only("a-1", node="n1", bound_at=5.0)
    made = planned(ROOM, ML, limited(cpu=5000), runs, waits, start)
    assert started(made) == {"a", "b"}
    grown = runs.only("a-0", node="n1", bound_at=5.0)
    joined = replace(start, charged=(younger.uid, older.uid))
    assert started(planned(ROOM, ML, limited(cpu=5000), grown, waits, joined)) == {"b"}
    assert started(planned(ROOM, ML, limited(cpu=4000), grown, waits, joined)) == set()
    again = grown.but(uid=Uid("again"))
    own = replace(start, uid=Uid("again"), charged=(older.uid,))
    assert started(planned(ROOM, ML, limited(cpu=5000), again, waits, start, own)) == {"b"}
    standing = replace(reservation(again, ("a-0", "n1")), record=record)
    made = planned(ROOM, ML, limited(cpu=5000), again, waits, start, standing)
    assert started(made) == {"b"}, "pods of an earlier PodGroup joined first"


def test_all_records_of_a_gang_whose_podgroup_is_gone_count() -> None:
    """Deleting and creating it again and again frees nothing."""
    runs = in_vision(gang("a").of(2, cpu=1).bound_on("n1", "n1"))
    first, second = runs.members
    older = replace(started_in(VISION, runs, 1), charged=(first.uid,))
    newer = replace(started_in(VISION, runs.but(uid=Uid("b")), 1), charged=(second.uid,))
    seen = charges(ROOM, ML, OLDER, older, newer, strays=(first, second))
    assert seen == {"a": ("vision", 2)}
    world = snapshot_of(ROOM, ML, OLDER, older, newer, strays=(first, second))
    (cap,) = starts.caps(QueueCharges.of(world, ()))
    assert len(cap.gangs) == 1


def test_of_records_of_the_same_start_the_reservation_that_holds_room_counts() -> None:
    """A PodGroup that was created again has the start of the earlier one; now it is gone."""
    runs = in_vision(gang("a").of(1, cpu=1).bound_on("n1"))
    slots = [SlotReservation(NodeName("n1"), "", 2)]
    newer = replace(reservation(runs, slots=slots), record=started_in(VISION, runs, 1).record)
    older = charging(replace(started_in(VISION, runs, 1), uid=Uid("z")), runs)
    parts = ROOM, ML, OLDER, older, newer
    assert charges(*parts, strays=runs.members) == {"a": ("vision", 3)}
    world = snapshot_of(*parts, strays=runs.members)
    (cap,) = starts.caps(QueueCharges.of(world, ()))
    assert len(cap.gangs) == 1


def test_a_pod_with_room_that_takes_another_label_before_it_is_bound_stays_charged() -> None:
    waits = in_vision(gang("a").of(1, cpu=1))
    record = QueueRecord("vision", VISION.uid, 0.0, (RoleAtStart("", 1, resources(cpu=1, pods=1)),))
    standing = replace(reservation(waits, ("a-0", "n1")), record=record)
    moved = replace(gang("x").but(queue="nlp"), members=named(waits, "x").members)
    tree = (ROOM, ML, OLDER, queue("nlp"), standing, replace(waits, members=()))
    assert charges(*tree, moved) == {"a": ("vision", 1)}


def test_members_that_succeeded_are_to_be_written_down_once() -> None:
    runs = in_vision(gang("a").of(3, cpu=1).bound_on("n1", "n1", "n1"))
    other = in_vision(gang("b").of(1, cpu=1).bound_on("n1")).each(phase=Phase.SUCCEEDED)
    record = charging(started_in(VISION, runs, 3), runs)
    assert not [*outdated_records(snapshot_of(ROOM, ML, OLDER, runs, record))]
    done = runs.only("a-0", phase=Phase.SUCCEEDED)
    quiet = in_vision(gang("c").of(1, cpu=1).bound_on("n1"))
    parts = done, other, quiet, record, charging(started_in(VISION, quiet, 1), quiet)
    (written,) = outdated_records(snapshot_of(ROOM, ML, OLDER, *parts))
    assert written.record is not None
    assert written.record.succeeded == (("", 1),)
    assert not [*outdated_records(snapshot_of(ROOM, ML, OLDER, done, written))]
    assert not [*outdated_records(snapshot_of(ROOM, ML, done, record))], "there are no queues"
    rest = replace(runs, members=runs.members[1:]).but(finished=("",))
    (gone,) = outdated_records(snapshot_of(ROOM, ML, OLDER, rest, record))
    assert gone.record == written.record


def test_an_extra_that_succeeded_ends_no_place() -> None:
    runs = in_vision(gang("a").of(3, cpu=1).needing(2).bound_on("n1", "n1", "n1"))
    record = charging(started_in(VISION, runs, 2), runs)
    extra = runs.only("a-2", phase=Phase.SUCCEEDED)
    assert not [*outdated_records(snapshot_of(ROOM, ML, OLDER, extra, record))]
    also_lost = extra.only("a-0", phase=Phase.FAILED)
    (written,) = outdated_records(snapshot_of(ROOM, ML, OLDER, also_lost, record))
    assert written.record is not None
    assert written.record.succeeded == (("", 1),), "it took the place of the lost member"
    waits = runs.only("a-0", node=None, bound_at=None).only("a-2", phase=Phase.SUCCEEDED)
    standing = replace(reservation(waits, ("a-0", "n1")), record=record.record)
    assert not [*outdated_records(snapshot_of(ROOM, ML, OLDER, waits, standing))]
    leaves = extra.only("a-0", terminating=True)
    assert [*outdated_records(snapshot_of(ROOM, ML, OLDER, leaves, record))]


def test_the_success_of_a_member_beside_a_slot_ends_no_place() -> None:
    made = in_vision(gang("a").role("w", 2, 2, cpu=1).declaring(cpu=1).needing(2))
    runs = made.bound_on("n1", "n1").only("a-1", phase=Phase.SUCCEEDED)
    minimum = (RoleAtStart("w", 2, resources(cpu=2, pods=2)),)
    record = QueueRecord("vision", VISION.uid, 1.0, minimum)
    slots = [SlotReservation(NodeName("n1"), "w", 1)]
    roles = tuple((member.uid, "w") for member in runs.members)
    charged = tuple(member.uid for member in runs.members)
    standing = replace(reservation(runs, slots=slots), record=record, charged=charged, roles=roles)
    assert not [*outdated_records(snapshot_of(ROOM, ML, OLDER, runs, standing))]
    (spent,) = outdated_records(snapshot_of(ROOM, ML, OLDER, runs, replace(standing, slots=())))
    assert spent.record is not None
    assert spent.record.succeeded == (("w", 1),)


def with_driver() -> tuple[GangBuilder, Reservation]:
    """A gang in vision of a driver, a worker and an extra worker, and its record without roles."""
    made = gang("a").role("driver", 1, cpu=1).role("worker", 1, 2, cpu=1).needing(2)
    runs = in_vision(made.bound_on("n1", "n1", "n1"))
    each = resources(cpu=1, pods=1)
    minimum = (RoleAtStart("driver", 1, each), RoleAtStart("worker", 1, each))
    record = QueueRecord("vision", VISION.uid, 1.0, minimum)
    return runs, charging(replace(reservation(runs), record=record), runs)


def test_roles_that_are_not_written_down_are_to_be_written_once() -> None:
    runs, record = with_driver()
    driver, worker, extra = runs.members
    old = replace(record, roles=((driver.uid, "driver"),))
    (written,) = outdated_records(snapshot_of(ROOM, ML, OLDER, runs, old))
    assert written.roles == (
        (driver.uid, "driver"),
        (worker.uid, "worker"),
        (extra.uid, "worker"),
    )
    assert not [*outdated_records(snapshot_of(ROOM, ML, OLDER, runs, written))]
    gone = replace(runs, members=(driver,))
    assert not [*outdated_records(snapshot_of(ROOM, ML, OLDER, gone, old))]
    assert not [*outdated_records(snapshot_of(ROOM, ML, OLDER, old))], "its PodGroup is gone"


def test_an_extra_of_another_role_leaves_the_credit_of_a_lost_member() -> None:
    """If labels alone say its role, it may be the lost member itself."""
    runs, record = with_driver()
    _, worker, extra = runs.members
    lost = runs.only("a-0", phase=Phase.FAILED)
    world = ROOM, ML, OLDER, lost
    assert queued(*world, record).credit_of == {}
    known = replace(record, roles=((worker.uid, "worker"), (extra.uid, "worker")))
    (credit,) = queued(*world, known).credit_of.values()
    assert credit == resources(cpu=1, pods=1)
    assert queued(*world, replace(known, roles=known.roles[:1])).credit_of == {}


@pytest.mark.parametrize(("limit", "is_started"), [(7000, True), (6000, False), (5000, False)])
def test_a_slot_of_a_role_that_came_later_is_charged_beside_what_is_lost(
    limit: int, *, is_started: bool
) -> None:
    """It has no place. No member takes it: nothing says what it was charged at first."""
    made = gang("a").role("w", 1, 1, cpu=1).role("d", 1, 0).declaring(cpu=2).needing(2)
    runs = in_vision(made.only("a-0", node=NodeName("n1"), bound_at=5.0))
    record = QueueRecord("vision", VISION.uid, 1.0, (RoleAtStart("w", 2, resources(cpu=4)),))
    slots = [SlotReservation(NodeName("n1"), "d", 1)]
    standing = replace(reservation(runs, slots=slots), record=record)
    assert charges(ROOM, ML, OLDER, runs, standing) == {"a": ("vision", 2)}
    waits = in_vision(gang("b").of(1, cpu=1))
    assert ("b" in started(planned(ROOM, ML, limited(cpu=limit), runs, waits, standing))) is (
        is_started
    )
    comes = replace(member("a-9", shape(cpu=2), role="d"), group="a", created=9.0)
    grown = replace(runs, members=(*runs.members, comes))
    world = snapshot_of(ROOM, ML, limited(cpu=limit), grown, standing, at=60.0)
    made_plan = plan(world, BEST_FIT, BEST_FIT, AMPLE_BUDGET)
    assert violations(world, made_plan) == ()
    assert not any(a.fills_slot for p in made_plan.placements for a in p.assignments)


def test_an_extra_of_a_gang_without_roles_leaves_its_credit() -> None:
    runs = in_vision(gang("a").of(3, cpu=1).needing(2).bound_on("n1", "n1", "n1"))
    start = (RoleAtStart("", 2, resources(cpu=5, pods=2)),)
    record = replace(
        started_in(VISION, runs, 2), record=QueueRecord("vision", VISION.uid, 0.0, start)
    )
    (credit,) = queued(ROOM, ML, OLDER, runs, charging(record, runs)).credit_of.values()
    assert credit == resources(cpu=3)


def test_a_slot_that_is_given_back_is_charged_until_that_is_written() -> None:
    """Otherwise a write that is lost would leave both the slot and what started instead of it."""
    made = gang("a").role("w", 1, 1, cpu=1).role("d", 2, 0).declaring(cpu=1).needing(3)
    runs = in_vision(made.only("a-0", node=NodeName("n1"), bound_at=5.0))
    one, two = resources(cpu=1, pods=1), resources(cpu=1, pods=1)
    minimum = RoleAtStart("d", 1, one), RoleAtStart("w", 1, two)
    record = QueueRecord("vision", VISION.uid, 1.0, minimum)
    slots = [SlotReservation(NodeName("n1"), "d", 2)]
    standing = replace(reservation(runs, slots=slots), record=record)
    waits = in_vision(gang("b").of(1, cpu=1))
    lowered = replace(runs, roles=tuple(replace(role, min_member=1) for role in runs.roles))
    lowered = lowered.needing(2)
    world = ROOM, ML, limited(cpu=3000), lowered, waits
    assert started(planned(*world, standing)) == {"a"}, "one slot of its two is given back"
    once = replace(standing, slots=(replace(slots[0], count=1),))
    assert started(planned(*world, once)) == {"b"}


def test_a_slot_that_is_given_back_leaves_its_place_to_the_slot_of_another_role() -> None:
    """One write takes the first slot away and adds the second: never are both held."""
    made = gang("a").role("d", 1, 0).declaring(cpu=1).role("w", 1, 0).declaring(cpu=1).needing(2)
    own = replace(member("a-0", shape(cpu=5), role="d"), group="a", node=NodeName("n1"))
    runs = in_vision(replace(made, members=(own,)))
    record = QueueRecord("vision", VISION.uid, 1.0, (RoleAtStart("", 2, resources(cpu=7)),))
    slots = [SlotReservation(NodeName("n1"), "d", 1)]
    standing = replace(reservation(runs, slots=slots), record=record, charged=(own.uid,))
    world = snapshot_of(ROOM, ML, limited(cpu=7000), runs, standing, at=60.0)
    made_plan = plan(world, BEST_FIT, BEST_FIT, AMPLE_BUDGET)
    assert [slot.role for change in made_plan.placements for slot in change.slots] == ["w"]
    assert violations(world, made_plan) == ()


def test_a_gang_whose_last_slot_is_given_back_is_charged_until_then() -> None:
    made = gang("a").role("d", 1, 2, cpu=1).role("w", 1, 1, cpu=1).needing(2).but(queue="nlp")
    over = made.only("a-0", node="n1", phase=Phase.SUCCEEDED, bound_at=5.0)
    slots = [SlotReservation(NodeName("n1"), "w", 1)]
    minimum = (RoleAtStart("d", 1, resources(cpu=1, pods=1)), RoleAtStart("w", 1, resources(cpu=1)))
    record = QueueRecord("vision", VISION.uid, 1.0, minimum, succeeded=(("d", 1),))
    standing = replace(reservation(over, ("a-0", "n1"), slots=slots), record=record)
    tree = (ROOM, ML, OLDER, queue("nlp"), standing, over)
    assert charges(*tree) == {"a": ("vision", 1)}
    assert reasons(planned(*tree)) == {"a": Reason.QUEUE_CHANGES}


def test_the_slots_of_a_gang_that_may_not_start_are_given_to_nobody() -> None:
    """No placement says that its surplus slot is given back, so it still holds its room."""
    made = in_vision(gang("a").role("d", 1, 0).declaring(cpu=3).needing(1))
    stranger = replace(member("x-0", shape(cpu=1), role="d"), group="a", node=NodeName("n1"))
    left = in_vision(replace(made, members=(replace(stranger, bound_at=5.0),)))
    record = QueueRecord("vision", VISION.uid, 1.0, (RoleAtStart("d", 1, resources(cpu=3)),))
    slots = [SlotReservation(NodeName("n1"), "d", 1)]
    standing = replace(reservation(left, slots=slots), record=record)
    other = gang("x").but(queue="nlp")
    named = charging(replace(reservation(other), record=replace(record, queue="nlp")), left)
    waits = gang("b").of(1, cpu=4).but(queue="nlp")
    room, held = node("n1", cpu=5), replace(VISION, stop=Stop.HOLD)
    world = snapshot_of(
        *(room, ML, held, queue("nlp"), left, standing, other, named, waits), at=60.0
    )
    made_plan = plan(world, BEST_FIT, BEST_FIT, AMPLE_BUDGET)
    assert (started(made_plan), violations(world, made_plan)) == (set(), ())
    assert reasons(made_plan)["a"] is Reason.QUEUE_HELD


@pytest.mark.parametrize("least", [3, 4, 5])
def test_members_take_the_places_of_lost_slots(least: int) -> None:
    """The gang has lost a member and the node of its slots, and its queue is at the limit."""
    made = gang("a").role("d", 3, 4, cpu=1).declaring(cpu=1).needing(least)
    own = replace(member("a-9", shape(cpu=1), role="d"), group="a", node=NodeName("n1"))
    runs = in_vision(replace(made, members=(own, *made.members[1:])))
    record = QueueRecord("vision", VISION.uid, 1.0, (RoleAtStart("d", 3, resources(cpu=6)),))
    slots = [SlotReservation(NodeName("gone"), "d", 2)]
    standing = replace(reservation(runs, slots=slots), record=record, charged=(own.uid,))
    world = snapshot_of(ROOM, ML, limited(cpu=6000), runs, standing, at=60.0)
    made_plan = plan(world, BEST_FIT, BEST_FIT, AMPLE_BUDGET)
    (change,) = made_plan.placements
    assert ([a.pod.name for a in change.assignments], change.slots) == (["a-1", "a-2"], ())
    assert violations(world, made_plan) == ()


def test_lost_slots_without_places_for_what_replaces_them_leave_no_credit() -> None:
    """The slots have the places of the member that runs, which gets one of them back."""
    made = gang("a").role("d", 3, 4, cpu=2).declaring(cpu=1).needing(6)
    own = replace(member("a-9", shape(cpu=1), role="d"), group="a", node=NodeName("n1"))
    runs = in_vision(replace(made, members=(own, *made.members[1:3])))
    record = QueueRecord("vision", VISION.uid, 1.0, (RoleAtStart("d", 3, resources(cpu=6)),))
    slots = [SlotReservation(NodeName("gone"), "d", 3)]
    standing = replace(reservation(runs, slots=slots), record=record, charged=(own.uid,))
    parts = (ROOM, ML, limited(cpu=7000), runs, standing)
    assert queued(*parts).credit_of == {}
    world = snapshot_of(*parts, at=60.0)
    assert violations(world, plan(world, BEST_FIT, BEST_FIT, AMPLE_BUDGET)) == ()


@pytest.mark.parametrize("has_role", [False, True])
def test_an_older_member_of_another_size_joins_after_the_start(*, has_role: bool) -> None:
    """The record of the start counts the oldest as the minimum, and cover counts the chosen."""
    role = "w" if has_role else ""
    made = gang("a").of(1, cpu=4, role=role).of(3, cpu=1, role=role).needing(2)
    made = replace(made, roles=(Role("w", 2),)) if has_role else made
    made = in_vision(made.but(is_protected=True))
    vision = queue("vision", guaranteed=(("cpu", 3000),))
    world = snapshot_of(ROOM, ML, vision, made, at=60.0)
    (start,) = plan(world, ILP, BEST_FIT, AMPLE_BUDGET).placements
    assert {a.pod.name for a in start.assignments} == {"a-1", "a-2", "a-3"}
    assert start.record is not None
    assert [start.requests for start in start.record.minimum] == [resources(cpu=2, pods=2)]


@pytest.mark.parametrize("is_declared", [False, True])
def test_a_pod_of_another_gang_counts_to_the_maximum_of_a_role(*, is_declared: bool) -> None:
    made = gang("a").role("d", 1, 3, cpu=1).at_most(2)
    made = in_vision((made.declaring(cpu=1) if is_declared else made).needing(1))
    stranger = replace(member("x-0", shape(cpu=1), role="d"), group="a", node=NodeName("n1"))
    grown = replace(made, members=(*made.members, stranger))
    other = gang("x").but(queue="nlp")
    record = replace(reservation(other), charged=(stranger.uid,))
    record = replace(record, record=QueueRecord("nlp", Uid("nlp-1"), 1.0, ()))
    world = snapshot_of(ROOM, ML, OLDER, queue("nlp"), grown, other, record, at=60.0)
    made_plan = plan(world, BEST_FIT, BEST_FIT, AMPLE_BUDGET)
    assert violations(world, made_plan) == ()
    (start,) = (p for p in made_plan.placements if p.gang.name == "a")
    assert len(start.assignments) == 1


def test_a_gang_whose_members_left_it_starts_anew_within_the_limit_alone() -> None:
    runs = in_vision(gang("a").of(2, cpu=1).bound_on("n1", "n1"))
    record = charging(started_in(VISION, runs, 2), runs)
    again = in_vision(gang("a").of(4, cpu=1)).needing(2)
    again = replace(again, members=again.members[2:])
    tree = (ROOM, ML, replace(OLDER, limits=(("cpu", 3000),)), again, record)
    world = snapshot_of(*tree, strays=named(runs, "gone").members, at=60.0)
    made = plan(world, BEST_FIT, BEST_FIT, AMPLE_BUDGET)
    assert reasons(made) == {"a": Reason.QUEUE_AT_LIMIT}


def two_runs() -> tuple[GangBuilder, GangBuilder]:
    """The pods that an older run of a gang has left, and the gang with those of the newest."""
    both = in_vision(gang("a").of(4, cpu=1)).needing(2)
    older, again = (replace(both, members=part) for part in (both.members[:2], both.members[2:]))
    return older.bound_on("n1", "n1"), again


def test_pods_of_an_older_run_stay_charged_to_the_queue_of_their_gang() -> None:
    """Else each new run of a job would start in a queue that its earlier runs fill."""
    older, again = two_runs()
    other = in_vision(gang("b").of(1, cpu=1))
    for limit, starting in ((2000, ""), (3000, "b"), (5000, "ab")):
        tree = (ROOM, ML, limited(cpu=limit), again, other)
        world = snapshot_of(*tree, strays=older.members, at=60.0)
        made = plan(world, BEST_FIT, BEST_FIT, AMPLE_BUDGET)
        assert (started(made), violations(world, made)) == (set(starting), ())
    (charged,) = queue_gangs(observed_demand.observe(world)).charges.values()
    assert charged.total == resources(cpu=2, pods=2)


def test_a_plan_that_starts_a_gang_beside_its_older_run_is_found_wrong() -> None:
    older, again = two_runs()
    world = snapshot_of(ROOM, ML, limited(cpu=2000), again, at=60.0)
    made = plan(world, BEST_FIT, BEST_FIT, AMPLE_BUDGET)
    assert (started(made), violations(world, made)) == ({"a"}, ())
    assert violations(replace(world, strays=older.members), made)


def test_pods_whose_podgroup_is_gone_are_charged_by_role() -> None:
    runs = gang("a").role("x", 1, cpu=1).role("y", 1, 2, cpu=2).bound_on("n1", "n1", "n1")
    starts = RoleAtStart("x", 1, resources(cpu=1)), RoleAtStart("y", 1, resources(cpu=2))
    record = replace(reservation(runs), record=QueueRecord("vision", VISION.uid, 0.0, starts))
    lost = runs.only("a-0", phase=Phase.SUCCEEDED)
    world = snapshot_of(ROOM, ML, limited(), record, strays=lost.members)
    (made,) = queue_gangs(observed_demand.observe(world)).charges.values()
    assert (made.minimum, made.total) == (resources(cpu=2, pods=1), resources(cpu=4, pods=2))


def test_a_record_counts_no_more_once_no_member_holds_room() -> None:
    over = gang("a").of(2, cpu=1).bound_on("n1", "n1").each(phase=Phase.FAILED).but(queue="nlp")
    queued_gangs = queued(ROOM, ML, VISION, queue("nlp"), over, started_in(VISION, over, 2))
    assert (queued_gangs.queues, queued_gangs.charges) == ({over.key: "nlp"}, {})


def lost_one(name: str = "a", *, cpu: float = 1, **changes: Any) -> GangBuilder:
    """Three members started, the last was lost, and another waits in its place."""
    bound = in_vision(gang(name).of(3, cpu=1).bound_on("n1", "n1", "n1"))
    changes = changes or {"phase": Phase.FAILED}
    return bound.last(1, **changes).of(1, cpu=cpu).needing(3)


def test_lost_members_stay_charged_and_their_replacements_add_nothing() -> None:
    broken, waits = lost_one(), in_vision(gang("b").of(1, cpu=1))
    plan = planned(ROOM, ML, limited(cpu=3000), broken, waits, started_in(VISION, broken, 3))
    assert (started(plan), reasons(plan)) == ({"a"}, {"b": Reason.QUEUE_AT_LIMIT})
    below = planned(ROOM, ML, limited(cpu=2000), broken, waits, started_in(VISION, broken, 3))
    assert started(below) == {"a"}, "a limit below what is charged stops no replacement"


def test_a_larger_replacement_adds_what_is_beyond_the_lost_member() -> None:
    broken = lost_one(cpu=2)
    record = started_in(VISION, broken, 3)
    assert reasons(planned(ROOM, ML, limited(cpu=3999), broken, record)) == {
        "a": Reason.QUEUE_AT_LIMIT
    }
    plan = planned(ROOM, ML, limited(cpu=4000), broken, record)
    assert started(plan) == {"a"}
    waits = in_vision(gang("b").of(1, cpu=1)).priority(9)
    plan = planned(ROOM, ML, limited(cpu=4999), broken, waits, record)
    assert (started(plan), reasons(plan)) == ({"a"}, {"b": Reason.QUEUE_AT_LIMIT})


def test_a_replacement_waits_at_the_limit_until_the_lost_member_is_gone() -> None:
    broken = lost_one(terminating=True)
    record = started_in(VISION, broken, 3)
    plan = planned(ROOM, ML, limited(cpu=3000), broken, record)
    assert reasons(plan) == {"a": Reason.QUEUE_AT_LIMIT}
    assert started(planned(ROOM, ML, limited(cpu=4000), broken, record)) == {"a"}


def test_no_gang_uses_what_another_is_charged_for_lost_members() -> None:
    small, large = lost_one("a"), lost_one("b", cpu=2)
    records = started_in(VISION, small, 3), started_in(VISION, large, 3)
    for by in (BEST_FIT, STRATEGIES["ilp"]()):
        plan = planned(ROOM, ML, limited(cpu=6000), small, large, *records, by=by)
        assert (started(plan), reasons(plan)) == ({"a"}, {"b": Reason.QUEUE_AT_LIMIT})


def test_members_beyond_those_needed_pay_in_full() -> None:
    """Also while lost members are charged whose replacements have no room."""
    broken = in_vision(gang("a").role("w", 2, 3, cpu=1).role("x", 1, cpu=1))
    broken = broken.needing(3).bound_on("n1", "n1").last(1, phase=Phase.FAILED)
    start = RoleAtStart("w", 2, resources(cpu=2, pods=2)), RoleAtStart("x", 1, resources(cpu=1))
    record = replace(started_in(VISION, broken), record=QueueRecord("vision", VISION.uid, 0, start))
    queued_gangs = queued(ROOM, ML, limited(cpu=3000), broken, record)
    assert queued_gangs.credit_of == {broken.key: resources(cpu=1)}
    plan = planned(ROOM, ML, limited(cpu=3000), broken, record)
    assert (started(plan), reasons(plan)) == (set(), {"a": Reason.QUEUE_AT_LIMIT})


def test_single_pods_count_in_the_default_of_their_namespace() -> None:
    default = queue("vision", default_for=(), limits=(("pods", 2),))
    plan = planned(ROOM, ML, default, *(single(f"p{i}", cpu=1) for i in range(4)))
    assert len(started(plan)) == 2
    assert {*reasons(plan).values()} == {Reason.QUEUE_AT_LIMIT}


def test_a_limit_below_what_is_in_use_ends_nobody_and_stops_starts() -> None:
    runs = in_vision(gang("a").of(3, cpu=1).bound_on("n1", "n1", "n1"))
    waits = in_vision(gang("b").of(1, cpu=1))
    free = in_vision(gang("c").of(1, memory=1))
    plan = planned(node("n1", cpu=9, memory=9), ML, limited(cpu=1000), runs, waits, free)
    assert (started(plan), plan.evictions) == ({"c"}, ())
    assert reasons(plan) == {"b": Reason.QUEUE_AT_LIMIT}


def test_a_limit_in_shadow_stops_nobody() -> None:
    shadow = replace(limited(cpu=0), mode=QueueMode.SHADOW)
    assert started(planned(ROOM, ML, shadow, in_vision(gang("a").of(2, cpu=1)))) == {"a"}


def test_no_room_is_held_for_a_gang_that_is_larger_than_a_limit() -> None:
    """It could never start, however long it waits."""
    large = in_vision(gang("a").of(4, cpu=1))
    small = gang("b").of(3, cpu=1).but(created=9000.0).but(queue="nlp")
    plan = planned(node("n1", cpu=4), ML, limited(cpu=3000), queue("nlp"), large, small, at=9_000.0)
    assert (started(plan), reasons(plan)) == ({"b"}, {"a": Reason.QUEUE_AT_LIMIT})


def some_record(chance: st.DataObject, gang: Gang, queues: tuple[Queue, ...]) -> Reservation | None:
    """A record of a gang: in some queue, perhaps of more than it holds now."""
    if gang.is_single or not chance.draw(st.booleans()):
        return None
    starts = []
    for role in sorted(role.name for role in gang.roles) or [""]:
        n, cpu = chance.draw(st.integers(1, 4)), chance.draw(st.integers(0, 3))
        starts.append(RoleAtStart(role, n, resources(cpu=n * cpu, pods=n)))
    own = chance.draw(st.sampled_from([*queues, queue("gone")]))
    record = QueueRecord(own.name, own.uid, 0.0, tuple(starts))
    return Reservation(gang.key, gang.uid, 1, "tutti", "term", 0.0, (), record=record)


def some_queues(chance: st.DataObject) -> tuple[Queue, ...]:
    """Two queues below a third, each with some limits."""
    amount = st.none() | st.integers(0, 12)

    def some(name: str, parent: str) -> Queue:
        cpu, gpu, pods = (chance.draw(amount) for _ in range(3))
        limits = (("cpu", None if cpu is None else cpu * 1000), (GPU, gpu), ("pods", pods))
        known = tuple((resource, n) for resource, n in limits if n is not None)
        return queue(name, parent=parent, limits=known)

    return some("a", "top"), some("b", "top"), some("top", "")


@pytest.mark.parametrize(("strategy", "examples"), [(BestFit(), 100), (STRATEGIES["ilp"](), 25)])
def test_no_limit_is_ever_exceeded(strategy: Strategy, examples: int) -> None:
    """Counted gang by gang by a checker that shares nothing with the plan."""

    @settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=[*HealthCheck]
    )
    @given(generators.crowded(), st.data())
    def tried(snapshot: Snapshot, chance: st.DataObject) -> None:
        queues = some_queues(chance)
        names = st.sampled_from(["a", "b", ""])
        gangs = tuple(replace(gang, queue=chance.draw(names)) for gang in snapshot.gangs)
        snapshot = replace(snapshot, gangs=gangs, queues=queues, namespaces=(ML,))
        below = {"a": ("a",), "b": ("b",), "top": ("a", "b")}
        caps = [
            GangCap(
                queue.name,
                frozenset(gang.key for gang in gangs if gang.queue in below[queue.name]),
                dict(queue.limits),
            )
            for queue in queues
        ]
        made = plan(snapshot, strategy, BestFit(), AMPLE_BUDGET)
        assert violations(snapshot, made, caps) == ()

    tried()


@pytest.mark.parametrize(("strategy", "examples"), [(BestFit(), 150), (STRATEGIES["ilp"](), 25)])
def test_no_limit_is_exceeded_where_lost_members_are_charged(
    strategy: Strategy, examples: int
) -> None:
    """Gangs run, have lost members and others than they started with, and are repaired."""

    @settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=[*HealthCheck]
    )
    @given(generators.snapshots(), st.data())
    def tried(snapshot: Snapshot, chance: st.DataObject) -> None:
        queues = some_queues(chance)
        names = st.sampled_from(["a", "b", ""])
        gangs = tuple(replace(gang, queue=chance.draw(names)) for gang in snapshot.gangs)
        uids = {reservation.uid for reservation in snapshot.reservations}
        others = [gang for gang in gangs if gang.uid not in uids]
        records = tuple(
            record for one in others if (record := some_record(chance, one, queues)) is not None
        )
        snapshot = replace(
            snapshot, gangs=gangs, queues=queues, namespaces=(ML,), start_records=records
        )
        made = plan(snapshot, strategy, BestFit(), AMPLE_BUDGET)
        assert violations(snapshot, made) == ()

    tried()


def test_a_plan_says_what_queues_use_and_how_many_gangs_wait_before_it() -> None:
    runs = gang("a").of(2, gpu=2).bound_on("n1", "n1").but(queue="vision")
    waits, empty = gang("b").of(1, gpu=2).but(queue="vision"), gang("c").but(queue="vision")
    gpus = queue("vision", guaranteed=((GPU, 3),))
    plan = planned(node("n1", gpu=8), ML, gpus, runs, waits, empty)
    vision = next(use for use in plan.queues if use.name == "vision")
    assert (vision.charged[GPU], vision.borrowed[GPU], vision.waiting) == (4, 4, 1)
    assert [use.name for use in plan.queues] == ["root", "vision"]
    assert planned(node("n1", gpu=8), runs, waits).queues == ()


def test_a_gang_at_a_limit_says_who_comes_before_it() -> None:
    gangs = [in_vision(gang(f"g{i}").of(2, cpu=1)) for i in range(3)]
    plan = planned(ROOM, ML, limited(cpu=2000), *gangs)
    (second, third) = sorted(plan.rejections, key=lambda rejection: rejection.gang)
    assert "before it" not in sentence(second)
    assert sentence(third).endswith("before it in its queue: ml/g1")


def test_a_gang_that_waits_in_the_root_says_so_and_others_do_not() -> None:
    large, small = gang("large").of(2, cpu=90), gang("small").of(1, cpu=1)
    words = "it names no queue and its namespace has no default, so it counts in queue root"
    plan = planned(ROOM, ML, limited(cpu=1), large, small, in_vision(gang("v").of(2, cpu=90)))
    told = {r.gang.name: sentence(r).endswith(words) for r in plan.rejections}
    assert told == {"large": True, "v": False}


def test_a_huge_priority_exceeds_no_limit() -> None:
    runs = in_vision(gang("r").of(2, cpu=1).bound_on("n1"))
    huge = in_vision(gang("huge").of(2, cpu=1).priority(1_000_000_000))
    plan = planned(ROOM, ML, limited(cpu=3000), runs, huge, in_vision(gang("small").of(1, cpu=1)))
    assert (started(plan), reasons(plan)) == ({"r", "small"}, {"huge": Reason.QUEUE_AT_LIMIT})
