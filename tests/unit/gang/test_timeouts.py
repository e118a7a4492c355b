"""Gangs that were to start within a time: what they say, and who is given up."""

from dataclasses import replace

import pytest

from tutti.gang import finding_text, timeouts
from tutti.model.cluster import BoundBy, Member, OnTimeout
from tutti.model.decisions import Plan, Policy, Reason
from tutti.model.keys import NodeName
from tutti.planning.plan import plan
from tutti.reporting import status
from tutti.reporting.pod_conditions import notes_of
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget

from ...harness.builders import (
    GangBuilder,
    Part,
    gang,
    member,
    node,
    reservation,
    shape,
    snapshot_of,
)

ROOMY, FULL = node("n1", cpu=8), node("n1", cpu=1)
LARGE = gang("a").of(2, cpu=4).each(created=100.0).but(created=100.0, timeout_seconds=60.0)
FAILING = LARGE.but(on_timeout=OnTimeout.FAIL)


def planned(*parts: Part, at: float) -> Plan:
    patient = Policy(starvation_seconds=1e9)
    return plan(snapshot_of(*parts, at=at), BestFit(), BestFit(), Budget(), patient)


def told(*parts: Part, at: float) -> tuple[Reason, str]:
    """What the one gang that waits is told."""
    (rejection,) = planned(*parts, at=at).rejections
    return rejection.reason, finding_text.sentence(rejection)


NOWHERE = "no node of the kinds present fits member ml/a-0: asks 4 cpu; the largest node has 1 (n1)"


def test_a_gang_that_has_not_started_in_time_says_so_beside_why_it_waits() -> None:
    assert told(FULL, LARGE, at=159.0) == (Reason.NO_NODE_FITS, NOWHERE)
    late = (Reason.TIMED_OUT, f"not started within 60 s; {NOWHERE}")
    assert told(FULL, LARGE, at=160.0) == late


def test_it_waits_on_and_starts_when_it_can() -> None:
    assert planned(ROOMY, LARGE, at=1e6).rejections == ()
    assert [p.gang.name for p in planned(ROOMY, LARGE, at=1e6).placements] == ["a"]


def test_a_gang_that_is_given_up_is_not_tried_any_more() -> None:
    assert planned(ROOMY, FAILING, at=159.0).placements
    plan = planned(ROOMY, FAILING, at=160.0)
    assert plan.placements == ()
    assert [
        (rejection.reason, finding_text.sentence(rejection)) for rejection in plan.rejections
    ] == [
        (
            Reason.TIMED_OUT,
            (
                "not started within 60 s; given up, since onTimeout is Fail: it is tried again if "
                "its members are created again, or scheduleTimeoutSeconds is raised"
            ),
        )
    ]


def test_a_gang_that_is_given_up_is_in_nobodys_way() -> None:
    others = gang("b").of(2, cpu=4)
    elastic = FAILING.needing(1).priority(9)
    plan = planned(ROOMY, elastic, others, at=1e6)
    assert [placement.gang.name for placement in plan.placements] == ["b"]


@pytest.mark.parametrize(
    "state",
    [{}, {"gates": ("hold",)}, {"unsupported_fields": ("spec.x",)}, {"volume_problems": ("x",)}],
)
def test_time_runs_whatever_its_members_wait_for(state: dict[str, object]) -> None:
    made = LARGE.each(**state).needing(3)
    assert told(ROOMY, made, at=160.0)[0] is Reason.TIMED_OUT


def test_time_counts_from_the_group_or_its_oldest_waiting_member_whichever_is_later() -> None:
    again = LARGE.each(created=500.0)
    assert told(FULL, again, at=559.0)[0] is Reason.NO_NODE_FITS
    assert told(FULL, again, at=560.0)[0] is Reason.TIMED_OUT
    partly = LARGE.last(1, created=500.0)
    assert told(FULL, partly, at=160.0)[0] is Reason.TIMED_OUT


def test_a_gang_that_has_started_or_has_no_member_that_waits_has_no_time_to_run_out_of() -> None:
    lost = LARGE.bound_on("n1")
    assert told(FULL, lost, at=1e6)[0] is Reason.NO_NODE_FITS
    empty = gang("a").needing(1).but(created=100.0, timeout_seconds=60.0)
    assert told(FULL, empty, at=1e6) == (Reason.WAITING_FOR_MEMBERS, "0 of 1 member exist")


def test_the_plan_is_due_when_the_next_gang_runs_out_of_time() -> None:
    later = gang("b").of(2, cpu=4).but(created=130.0, timeout_seconds=60.0)
    assert planned(FULL, LARGE, later, at=100.0).next_change_at == 160.0
    assert planned(FULL, LARGE, later, at=160.0).next_change_at == 190.0
    assert planned(FULL, LARGE, later, at=190.0).next_change_at is None
    small = node("n1", cpu=4)
    assert (
        planned(small, LARGE, later, at=190.0).next_change_at == 1e9 + 100.0
    )  # when it will starve


def phase(of: GangBuilder, at: float) -> str:
    """The phase of the one gang there is."""
    plan = planned(FULL, of, at=at)
    rejection = plan.rejections[0] if plan.rejections else None
    return status.status_of(of.made, None, rejection, {}, {}, scheduler="tutti").phase


def test_only_a_gang_that_is_given_up_has_failed() -> None:
    assert (phase(FAILING, 100.0), phase(FAILING, 160.0)) == ("Waiting", "Failed")
    assert phase(LARGE, 160.0) == "Waiting"


def test_pods_go_on_asking_for_nodes_unless_their_gang_is_given_up() -> None:
    reasons = []
    for made in (LARGE, FAILING):
        (rejection,) = planned(FULL, made, at=160.0).rejections
        reasons.append({note.reason for note in notes_of(made.made, rejection)})
    assert reasons == [{"Unschedulable"}, {"TimedOut"}]


def test_a_member_that_ran_before_its_gang_was_made_anew_does_not_count() -> None:
    gone = LARGE.only("a-0", node=NodeName("n1"), terminating=True)
    fresh = replace(gone.members[1], created=500.0)
    made = replace(gone, members=(gone.members[0], fresh))
    assert told(FULL, made.needing(1), at=559.0)[0] is not Reason.TIMED_OUT


def handed(name: str, at: float | None) -> Member:
    return replace(
        member(name, shape(cpu=1)),
        group="a",
        bound_by=BoundBy.KUBE_SCHEDULER,
        node=NodeName("n1"),
        is_handed_over=True,
        handed_over_at=at,
        created=5.0,
    )


def test_kube_scheduler_has_its_time_from_the_patch_or_else_from_the_creation() -> None:
    assert timeouts.may_be_bound([handed("a-0", 100.0)], 99.0 + timeouts.BINDING_SECONDS)
    assert not timeouts.may_be_bound([handed("a-0", 100.0)], 100.0 + timeouts.BINDING_SECONDS)
    assert timeouts.may_be_bound([handed("a-0", None)], 4.0 + timeouts.BINDING_SECONDS)
    assert not timeouts.may_be_bound([handed("a-0", None)], 5.0 + timeouts.BINDING_SECONDS)
    forged = handed("a-0", 1e11)
    assert not timeouts.may_be_bound([forged], 5.0 + timeouts.BINDING_SECONDS)
    bound = replace(handed("a-0", 100.0), is_handed_over=False)
    assert not timeouts.may_be_bound([bound], 101.0)


def test_the_next_change_is_the_end_of_the_first_members_time() -> None:
    first, second = handed("a-0", 100.0), handed("a-1", 200.0)
    built = gang("a").of(1, cpu=1).but(bound_by=BoundBy.KUBE_SCHEDULER, members=(first, second))
    snapshot = snapshot_of(node("n1", cpu=4), built)
    assert timeouts.next_unbound_at(snapshot) is None, "without a Reservation nothing ends"
    held = replace(snapshot, reservations=(reservation(built, ("a-0", "n1")),))
    assert (
        timeouts.next_unbound_at(replace(held, taken_at=300.0)) == 100.0 + timeouts.BINDING_SECONDS
    )
    assert (
        timeouts.next_unbound_at(replace(held, taken_at=450.0)) == 200.0 + timeouts.BINDING_SECONDS
    )
    assert timeouts.next_unbound_at(replace(held, taken_at=500.0)) is None
