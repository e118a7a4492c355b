"""The queue of each gang in a plan: who is refused, who is stopped, what is charged."""

from dataclasses import replace
from typing import Any

import pytest

from tutti.gang.finding_text import sentence
from tutti.model.cluster import OnTimeout, Role, SlotReservation
from tutti.model.decisions import Plan, Reason
from tutti.model.inter_pod import Requirement
from tutti.model.keys import NodeName, Uid
from tutti.model.queues import Queue, Stop
from tutti.model.resources import Resources
from tutti.planning import observed_demand
from tutti.planning.plan import plan
from tutti.planning.queued_gangs import QueuedGangs, queue_gangs
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget

from ...harness.builders import Part, gang, node, reservation, single, snapshot, space

TEAM_A = (Requirement("team", "In", ("a",)),)
ML = space("ml", team="a")
ROOM = node("n1", cpu=100)
FIELD = "spec.queue of the PodGroup"
AMBIGUOUS = (
    f"queues nlp, vision are all the default of namespace ml: name one of them in {FIELD}, or let "
    "an administrator leave one default"
)
VISION = Queue("vision", Uid("vision-1"))


def queue(name: str, **changes: Any) -> Queue:
    return replace(Queue(name, Uid(f"{name}-1")), **changes)


def queued(*parts: Part) -> QueuedGangs:
    return queue_gangs(observed_demand.observe(snapshot(*parts, at=60.0)))


def planned(*parts: Part, at: float = 60.0) -> Plan:
    best_fit = BestFit()
    return plan(snapshot(*parts, at=at), best_fit, best_fit, Budget())


def reasons(made: Plan) -> dict[str, Reason]:
    return {rejection.gang.name: rejection.reason for rejection in made.rejections}


def started(made: Plan) -> set[str]:
    return {placement.gang.name for placement in made.placements}


def test_without_queues_a_named_queue_means_nothing() -> None:
    made = planned(ROOM, gang("a").of(2, cpu=1).but(queue="vision"))
    assert (started(made), reasons(made)) == ({"a"}, {})


def test_a_gang_starts_in_the_queue_that_it_names_or_in_its_default_or_in_the_root() -> None:
    default = queue("nlp", default_for=TEAM_A, namespaces=TEAM_A)
    seen = queued(
        *(ROOM, ML, space("other"), VISION, default),
        gang("a").of(1, cpu=1).but(queue="vision"),
        gang("b").of(1, cpu=1),
        single("p", cpu=1),
        gang("c", "other").of(1, cpu=1),
        gang("d", "gone").of(1, cpu=1),
    )
    queues = {key.name: name for key, name in seen.queues.items()}
    assert queues == {"a": "vision", "b": "nlp", "p": "nlp", "c": "root", "d": "root"}
    assert not seen.observed.refused


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
    made = planned(ROOM, ML, *queues, gang("a").of(2, cpu=1).but(queue=name))
    (rejection,) = made.rejections
    assert (started(made), rejection.reason, sentence(rejection)) == (set(), reason, words)


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
    "stopped",
    [
        (queue("vision", stop=Stop.HOLD),),
        (queue("vision", is_terminating=True),),
        (queue("vision", parent="gone"),),
        (queue("vision", parent="ml"), queue("ml", stop=Stop.HOLD)),
    ],
)
def test_a_queue_that_holds_starts_no_gang_and_no_extra_and_replaces_lost_members(
    stopped: tuple[Queue, ...],
) -> None:
    waits = gang("a").of(2, cpu=1).but(queue="vision")
    grows = gang("b").of(2, cpu=1).needing(1).bound_on("n1").but(queue="vision")
    broken = gang("c").of(2, cpu=1).bound_on("n1").but(queue="vision")
    made = planned(ROOM, ML, *stopped, waits, grows, broken)
    assert started(made) == {"c"}
    assert reasons(made) == {"a": Reason.QUEUE_HELD, "b": Reason.QUEUE_HELD}
    extra = next(one for one in made.rejections if one.gang.name == "b")
    assert extra.only_extra_members
    held = next(one for one in made.rejections if one.gang.name == "a")
    assert sentence(held) == (
        "queue vision starts no gang now: it or a queue above it has stop: Hold, is being deleted, "
        "or names a parent that cannot be used"
    )


def test_a_queue_that_drains_starts_what_was_there_when_the_drain_began() -> None:
    drains = queue("vision", stop=Stop.DRAIN, draining_since=10.0)
    old = gang("a").of(1, cpu=1).but(queue="vision", created=9.0)
    new = gang("b").of(1, cpu=1).but(queue="vision", created=10.0)
    made = planned(ROOM, ML, drains, old, new)
    assert (started(made), reasons(made)) == ({"a"}, {"b": Reason.QUEUE_DRAINS})
    (rejection,) = made.rejections
    assert sentence(rejection) == (
        "queue vision drains and starts no gang that was created since it does"
    )


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
    seen = queued(
        *(ROOM, ML, queue("vision", limits=(("cpu", 4000),))),
        *(runs, reserved, reservation(reserved, ("b-0", "n1"), slots=[slot])),
        gang("c").of(1, cpu=1),
    )
    charges = {key.name: amount for key, amount in seen.charges.items()}
    assert charges == {
        "a": Resources.of({"cpu": 1000, "pods": 1}),
        "b": Resources.of({"cpu": 9000, "pods": 3}),
    }
    (limit,) = seen.limits
    assert (limit.queue, limit.limit, limit.in_use) == ("vision", 4000, 1000)


def test_a_gang_that_runs_stays_charged_where_its_queue_is_gone() -> None:
    runs = gang("a").of(1, cpu=1).bound_on("n1").but(queue="gone")
    assert {*queued(ROOM, ML, VISION, runs).queues.values()} == {"root"}
