"""Whom the API server refused a moment ago: nobody plans around them, and they are told so."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tutti.commit.progress import Bind, Release, next_steps
from tutti.gang import finding_text, refusals
from tutti.gang.refusals import SUSPENDED
from tutti.model.cluster import (
    ApiRefusal,
    BoundBy,
    OnTimeout,
    Phase,
    SlotReservation,
    Snapshot,
)
from tutti.model.decisions import Plan, Reason
from tutti.model.keys import ApiKind, GangKey, NodeName, Uid
from tutti.planning.plan import plan
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget
from tutti.verify.plan_checks import violations
from tutti.whatif import Planner, advise, advise_all

from ...harness.builders import (
    GangBuilder,
    Part,
    gang,
    member,
    node,
    reservation,
    shape,
    single,
    snapshot_of,
)

SENTENCE = "Reservation refused: exceeded quota"
TERM = "t"


def seen(*parts: Part, refused: Sequence[Uid]) -> Snapshot:
    return replace(
        snapshot_of(*parts), api_refusals=dict.fromkeys(refused, ApiRefusal(SENTENCE, 30.0))
    )


def planned(picture: Snapshot) -> Plan:
    return plan(picture, BestFit(), BestFit(), Budget())


def placed(plan: Plan) -> list[str]:
    return [placement.gang.name for placement in plan.placements]


def told(plan: Plan) -> dict[str, tuple[Reason, str]]:
    return {
        rejection.gang.name: (rejection.reason, finding_text.sentence(rejection))
        for rejection in plan.rejections
    }


A, B = gang("a").of(2, cpu=2), gang("b").of(2, cpu=2).but(created=9.0)
ROOM = node("n1", cpu=4)


def test_a_refused_gang_is_left_out_and_told_in_the_servers_own_words() -> None:
    plan = planned(seen(ROOM, A, B, refused=[A.made.uid]))
    assert placed(plan) == ["b"]
    assert told(plan) == {"a": (Reason.REFUSED, SENTENCE)}


def test_a_gang_of_which_a_member_was_refused_is_left_out_too() -> None:
    plan = planned(seen(ROOM, A, B, refused=[A.made.members[1].uid]))
    assert placed(plan) == ["b"]
    assert told(plan) == {"a": (Reason.REFUSED, SENTENCE)}


def test_a_member_that_has_a_node_by_now_stands_for_nothing() -> None:
    begun = gang("a").of(3, cpu=1).bound_on("n1")
    plan = planned(seen(ROOM, begun, refused=[begun.made.members[0].uid]))
    assert placed(plan) == ["a"]


def test_a_reserved_gang_is_carried_out_while_a_member_was_refused() -> None:
    held = reservation(A, ("a-0", "n1"), ("a-1", "n1"))
    plan = planned(seen(ROOM, A, held, refused=[A.made.members[1].uid]))
    assert (placed(plan), told(plan)) == ([], {})


def test_a_refused_pod_alone_is_left_out() -> None:
    alone, other = single("s", cpu=4), single("t", cpu=4).each(created=9.0)
    plan = planned(seen(ROOM, alone, other, refused=[alone.made.uid]))
    assert placed(plan) == ["t"]


def test_nothing_of_the_clusters_is_advised_where_the_server_refuses() -> None:
    picture = seen(ROOM, A, refused=[A.made.uid])
    plan = planned(picture)
    planner = Planner(BestFit(), BestFit(), Budget())
    advice = advise(picture, plan, A.made.key, planner)
    assert advice is not None
    assert (advice.reason, advice.diagnosis) == (Reason.REFUSED, None)


def test_a_refused_gang_is_not_taken_for_one_that_waits_for_the_same_room() -> None:
    """Both ask for the same, and only room helps the other."""
    twin = gang("c").of(2, cpu=2).but(created=9.0)
    picture = seen(node("n1", cpu=2), A, twin, refused=[A.made.uid])
    planner = Planner(BestFit(), BestFit(), Budget())
    advices = advise_all(picture, planned(picture), planner)
    reasons = {advice.gang.name: (advice.reason, advice.alike) for advice in advices}
    assert reasons == {"a": (Reason.REFUSED, ()), "c": (Reason.NOT_ENOUGH_ROOM, ())}


def test_a_reservation_that_has_not_begun_is_released_once_a_binding_is_refused() -> None:
    held = replace(reservation(A, ("a-0", "n1"), ("a-1", "n1")), term=TERM)
    ((_, step),) = next_steps(seen(ROOM, A, held, refused=[A.made.members[1].uid]), TERM)
    assert step == Release(SENTENCE)


def test_one_that_has_begun_goes_on() -> None:
    begun = gang("a").of(2, cpu=2).bound_on("n1")
    held = replace(reservation(begun, ("a-0", "n1"), ("a-1", "n1")), term=TERM)
    ((_, step),) = next_steps(seen(ROOM, begun, held, refused=[begun.made.members[1].uid]), TERM)
    assert isinstance(step, Bind)


def test_one_of_a_past_term_that_is_to_be_signed_yet_keeps_its_room_and_is_left_alone() -> None:
    old = replace(reservation(A, ("a-0", "n1"), ("a-1", "n1"), at=1.0), term="past")
    own = replace(reservation(B, ("b-0", "n1"), ("b-1", "n1"), at=2.0), term=TERM)
    picture = snapshot_of(ROOM, A, B, old, own)
    ((held, step),) = next_steps(picture, TERM, inherited=[old.self_uid])
    assert held == own
    assert isinstance(step, Release), "the older promise has the room"


def test_when_one_may_be_asked_for_again_another_plan_is_due() -> None:
    assert planned(seen(ROOM, A, refused=[A.made.uid])).next_change_at == 30.0
    later = replace(seen(ROOM, A, refused=[A.made.uid]), taken_at=30.0)
    assert placed(planned(later)) == ["a"]


def test_no_room_is_held_for_a_gang_that_was_refused_when_it_was_asked_for_last() -> None:
    busy = node("n1", cpu=4), gang("run").of(1, cpu=2).bound_on("n1")
    picture = replace(snapshot_of(*busy, A, single("s", cpu=2).each(created=9.0)), taken_at=5000.0)
    assert placed(planned(picture)) == [], "it is held for who has starved"
    refused = {A.made.uid: ApiRefusal(SENTENCE, 30.0)}
    assert placed(planned(replace(picture, api_refusals=refused))) == ["s"]


def test_a_suspended_gang_waits_and_others_have_its_room() -> None:
    plan = planned(snapshot_of(ROOM, A.but(is_suspended=True), B))
    assert placed(plan) == ["b"]
    assert told(plan) == {"a": (Reason.PAUSED, SUSPENDED)}


def test_no_room_is_held_for_a_suspended_gang_and_it_does_not_run_out_of_time() -> None:
    busy = node("n1", cpu=4), gang("run").of(1, cpu=2).bound_on("n1")
    late = A.but(is_suspended=True, timeout_seconds=60.0, on_timeout=OnTimeout.FAIL)
    picture = snapshot_of(*busy, late, single("s", cpu=2).each(created=9.0))
    plan = planned(replace(picture, taken_at=5000.0))
    assert placed(plan) == ["s"]
    assert told(plan) == {"a": (Reason.PAUSED, SUSPENDED)}


def test_a_gang_that_has_started_goes_on_though_it_is_suspended() -> None:
    lost = gang("a").of(2, cpu=1).bound_on("n1").but(is_suspended=True)
    assert placed(planned(snapshot_of(ROOM, lost))) == ["a"]
    held = reservation(A, ("a-0", "n1"), ("a-1", "n1"))
    plan = planned(snapshot_of(ROOM, A.but(is_suspended=True), held))
    assert (placed(plan), told(plan)) == ([], {})


def test_a_suspended_gang_without_pods_waits_for_them() -> None:
    plan = planned(snapshot_of(ROOM, gang("a").but(min_member=2, is_suspended=True)))
    assert told(plan) == {"a": (Reason.WAITING_FOR_MEMBERS, "0 of 2 members exist")}


def test_what_suspends_a_gang_is_advised_and_nothing_of_the_clusters() -> None:
    picture = snapshot_of(ROOM, A.but(is_suspended=True))
    planner = Planner(BestFit(), BestFit(), Budget())
    (advice,) = advise_all(picture, planned(picture), planner)
    assert (advice.reason, advice.diagnosis) == (Reason.PAUSED, None)


KUBERNETES = ApiKind("scheduling.k8s.io", "PodGroup")


def of_kubernetes(**changes: object) -> GangBuilder:
    key = GangKey("ml", "a", KUBERNETES)
    made = gang("a").of(2, cpu=1).each(group_kind=KUBERNETES)
    return made.but(key=key, needs_equal_members=True, class_value=0, **changes)


def test_a_gang_whose_object_uses_a_field_that_is_not_modelled_waits_and_names_it() -> None:
    fields = ("spec.resourceClaims", "spec.schedulingConstraints.topology")
    plan = planned(snapshot_of(node("n1", cpu=4), of_kubernetes(unsupported_fields=fields)))
    sentence = (
        "the PodGroup uses spec.resourceClaims, spec.schedulingConstraints.topology, "
        "which Tutti does not place by yet"
    )
    assert told(plan) == {"a": (Reason.NOT_MODELLED, sentence)}


def test_a_gang_without_pods_names_such_a_field_too() -> None:
    """Its pods may be made only once there is room for them: a vcjob's."""
    without = gang("a").needing(2).but(unsupported_fields=("spec.networkTopology",))
    sentence = "the PodGroup uses spec.networkTopology, which Tutti does not place by yet"
    assert told(planned(snapshot_of(node("n1", cpu=4), without))) == {
        "a": (Reason.NOT_MODELLED, sentence)
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"priority": 7}, "the same priority: it is 0, but 7 in pod a-1"),
        (
            {"may_preempt": False},
            "the same preemptionPolicy: it is PreemptLowerPriority, but Never in pod a-1",
        ),
    ],
    ids=["priority", "preemption policy"],
)
def test_members_that_differ_where_their_kind_of_gang_wants_them_equal_wait(
    changes: dict[str, object], words: str
) -> None:
    mixed = of_kubernetes().last(1, **changes)
    plan = planned(snapshot_of(node("n1", cpu=4), mixed))
    said = f"all pods of the PodGroup must have {words}"
    assert (told(plan), placed(plan)) == ({"a": (Reason.MEMBERS_DIFFER, said)}, [])


def test_equal_members_start_and_a_gang_without_waiting_members_is_left_alone() -> None:
    assert placed(planned(snapshot_of(node("n1", cpu=4), of_kubernetes()))) == ["a"]
    over = of_kubernetes().last(1, priority=7, phase=Phase.SUCCEEDED).needing(1)
    assert placed(planned(snapshot_of(node("n1", cpu=4), over))) == ["a"]
    bound = of_kubernetes(unsupported_fields=("x",)).each(node=NodeName("n1"))
    assert told(planned(snapshot_of(node("n1", cpu=4), bound))) == {}


def test_pods_of_the_other_scheduler_wait_and_are_no_members_once_they_run() -> None:
    group = gang("a").but(bound_by=BoundBy.KUBE_SCHEDULER).made
    ours, theirs = (
        replace(member("a-0", shape(cpu=1)), bound_by=BoundBy.KUBE_SCHEDULER),
        member("a-1", shape(cpu=1)),
    )
    bound = replace(theirs, node=NodeName("n1"))
    assert refusals.members_of(group, [ours, bound]) == (ours,)
    (waiting,) = refusals.members_of(group, [theirs])
    assert waiting.unsupported_fields == (refusals.NAMES_TUTTI,)
    (waiting,) = refusals.members_of(gang("a").made, [ours])
    assert waiting.unsupported_fields == (refusals.HAS_THE_GATE,)


def test_the_slots_of_a_refused_gang_are_given_to_nobody() -> None:
    """Its Reservation is written later, and until then a slot that it needs no more holds room."""
    made = gang("a").role("d", 1, 1, cpu=3).declaring(cpu=3).needing(1).bound_on("n1")
    standing = reservation(made, ("a-0", "n1"), slots=[SlotReservation(NodeName("n1"), "d", 1)])
    waits = gang("b").of(1, cpu=3)
    room = node("n1", cpu=6)
    assert placed(planned(seen(room, made, standing, waits, refused=()))) == ["a", "b"]
    refused = seen(room, made, standing, waits, refused=(made.made.uid,))
    plan = planned(refused)
    assert (plan.placements, violations(refused, plan)) == ((), ())
