"""What a gang has lost: a table of fates, and what is remembered of those who left."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tutti.gang import health
from tutti.gang.health import Cause, PreviousStatus
from tutti.model.cluster import Gang, Phase, ScheduledCondition
from tutti.model.keys import NodeName

from ...harness.builders import GangBuilder, gang

NODES = {NodeName("n1"): True, NodeName("n2"): True, NodeName("dark"): False}
NOTHING_SAID = PreviousStatus()
TWO_OF_FOUR = "2 of 4 members are bound, 2 missing"
REMEDY = (
    "; kube-scheduler still tries; delete what it cannot bind there, and the successor is planned "
    "before other gangs"
)
THREE_OF_FOUR = "3 of 4 members are bound, 1 missing"


def four(*nodes: str) -> GangBuilder:
    return gang("a").of(4, cpu=1).bound_on(*(nodes or ("n1",) * 4)).each(phase=Phase.RUNNING)


def failed(reason: str = "", *names: str, of: GangBuilder | None = None) -> GangBuilder:
    made = of or four()
    for name in names or ("a-3",):
        made = made.only(name, phase=Phase.FAILED, failure=reason)
    return made


FATES: Mapping[str, tuple[GangBuilder, Cause, str]] = {
    "a node is gone": (
        four("n1", "n1", "n9", "n9"),
        Cause.NODE_LOST,
        f"{TWO_OF_FOUR}: a-2 on node n9, which is gone, a-3 on node n9, which is gone",
    ),
    "a node does not answer": (
        four("n1", "n1", "n2", "dark"),
        Cause.NODE_LOST,
        f"{THREE_OF_FOUR}: a-3 on node dark, which is not ready",
    ),
    "evicted from a node that does not answer": (
        four("n1", "n1", "n2", "dark").last(1, terminating=True),
        Cause.NODE_LOST,
        f"{THREE_OF_FOUR}: a-3 on node dark, which is not ready",
    ),
    "refused by kube-scheduler": (
        four("n1", "n1", "n2", "n2").last(
            1, is_handed_over=True, scheduled_condition=ScheduledCondition("Unschedulable", "full")
        ),
        Cause.NOT_BOUND,
        (
            f"{THREE_OF_FOUR}: a-3 is not bound to node n2 by kube-scheduler "
            f"(Unschedulable: full){REMEDY}"
        ),
    ),
    "left alone by kube-scheduler": (
        four("n1", "n1", "n2", "n2").last(
            1, is_handed_over=True, scheduled_condition=ScheduledCondition(health.GATED, "gates")
        ),
        Cause.NOT_BOUND,
        f"{THREE_OF_FOUR}: a-3 is not bound to node n2 by kube-scheduler{REMEDY}",
    ),
    "turned away by a kubelet": (
        failed("OutOfcpu"),
        Cause.REJECTED,
        f"{THREE_OF_FOUR}: a-3 was rejected by node n1 (OutOfcpu)",
    ),
    "turned away for its devices": (
        failed("UnexpectedAdmissionError", "a-2"),
        Cause.REJECTED,
        f"{THREE_OF_FOUR}: a-2 was rejected by node n1 (UnexpectedAdmissionError)",
    ),
    "the worst is said of several": (
        failed("OutOfcpu", of=four("n1", "n1", "n9", "n1")),
        Cause.NODE_LOST,
        f"{TWO_OF_FOUR}: a-2 on node n9, which is gone",
    ),
    "failed by itself": (
        failed(),
        Cause.MEMBER_LOST,
        f"{THREE_OF_FOUR}: a-3 failed on node n1",
    ),
    "failed for a reason of its node": (
        failed("Evicted"),
        Cause.MEMBER_LOST,
        f"{THREE_OF_FOUR}: a-3 failed on node n1 (Evicted)",
    ),
    "deleted by somebody": (
        four().last(1, terminating=True),
        Cause.MEMBER_LOST,
        f"{THREE_OF_FOUR}: a-3 is being deleted on node n1",
    ),
    "gone before anybody looked": (
        four("n1", "n1", "n1"),
        Cause.MEMBER_LOST,
        THREE_OF_FOUR,
    ),
    "many": (
        four("n8", "n9", "n9", "n9"),
        Cause.NODE_LOST,
        (
            "0 of 4 members are bound, 4 missing: a-0 on node n8, which is gone, a-1 on node n9, "
            "which is gone, a-2 on node n9, which is gone, and 1 more"
        ),
    ),
}


def ailment(
    of: GangBuilder | Gang, known: PreviousStatus = NOTHING_SAID
) -> health.Degradation | None:
    made = of if isinstance(of, Gang) else of.made
    return health.ailment(made, NODES, known)


@pytest.mark.parametrize("fate", FATES)
def test_a_fate_has_its_reason_and_names_member_and_node(fate: str) -> None:
    of, cause, sentence = FATES[fate]
    assert ailment(of) == health.Degradation(cause, sentence)


def test_a_gang_with_enough_members_on_nodes_that_answer_is_well() -> None:
    assert ailment(four()) is None
    assert ailment(four("n1", "n1", "n9", "n1").needing(3)) is None


def test_members_that_have_succeeded_need_no_node() -> None:
    assert ailment(four("n1", "n1", "n9", "n9").last(2, phase=Phase.SUCCEEDED)) is None


def test_a_finishing_gang_is_well() -> None:
    three = gang("a").of(3, cpu=1).bound_on("n1", "n1", "n1").needing(4).made
    assert ailment(three) is not None
    assert ailment(replace(three, finished=("",))) is None


def test_a_reason_stays_when_nothing_more_is_known() -> None:
    left = four("n1", "n1", "n1")
    for cause in Cause:
        found = ailment(left, PreviousStatus(was_whole=True, cause=cause))
        assert found == health.Degradation(cause, THREE_OF_FOUR)


def test_those_who_left_are_still_named_while_as_many_are_missing() -> None:
    said = f"{THREE_OF_FOUR}: a-3 on node n9, which is gone"
    known = PreviousStatus(was_whole=True, cause=Cause.NODE_LOST, sentence=said)
    found = ailment(four("n1", "n1", "n1"), known)
    assert found == health.Degradation(Cause.NODE_LOST, said)
    found = ailment(four("n1", "n1"), known)
    assert found == health.Degradation(Cause.NODE_LOST, TWO_OF_FOUR)


def test_nobody_is_asked_to_delete_a_pod_that_is_gone() -> None:
    said = f"{THREE_OF_FOUR}: a-3 is not bound to node n2 by kube-scheduler (Unschedulable: full)"
    known = PreviousStatus(was_whole=True, cause=Cause.NOT_BOUND, sentence=said + REMEDY)
    assert ailment(four("n1", "n1", "n1"), known) == health.Degradation(Cause.NOT_BOUND, said)


def test_something_more_specific_replaces_what_was_said() -> None:
    known = PreviousStatus(was_whole=True, cause=Cause.MEMBER_LOST, sentence=THREE_OF_FOUR)
    found = ailment(failed("OutOfmemory"), known)
    assert found is not None
    assert found.cause is Cause.REJECTED


def test_a_rejection_is_named_for_as_long_as_it_is_the_reason() -> None:
    known = PreviousStatus(was_whole=True, cause=Cause.REJECTED, failed=1)
    found = ailment(failed("OutOfcpu"), known)
    assert found is not None
    assert "a-3 was rejected" in found.sentence


def test_a_rejection_that_was_counted_before_the_gang_was_whole_is_named() -> None:
    """The gang's Reservation still stood then, so nobody was told why a member is missing."""
    rejected = ailment(failed("OutOfcpu"), PreviousStatus(failed=1))
    assert rejected is not None
    assert rejected.cause is Cause.REJECTED


def test_a_member_that_failed_by_itself_before_the_gang_was_whole_is_not_blamed() -> None:
    """It may be of an earlier run, all of which failed."""
    lost = ailment(failed(), PreviousStatus(failed=1))
    assert lost is not None
    assert lost == health.Degradation(Cause.MEMBER_LOST, THREE_OF_FOUR)


def test_a_member_that_failed_long_ago_is_not_blamed_for_what_is_missing_now() -> None:
    was_replaced = gang("a").of(5, cpu=1).needing(4).bound_on(*("n1",) * 5)
    made = failed("OutOfcpu", "a-0", of=was_replaced).last(1, terminating=True)
    found = ailment(made, PreviousStatus(was_whole=True, failed=1))
    assert found is not None
    assert found.cause is Cause.MEMBER_LOST
    assert found.sentence == f"{THREE_OF_FOUR}: a-4 is being deleted on node n1"


@pytest.mark.parametrize(
    ("status", "known"),
    [
        ({}, PreviousStatus()),
        ({"conditions": None, "members": 3}, PreviousStatus()),
        (
            {"members": {"failed": "many"}, "conditions": ["odd", {"type": "Bound"}]},
            PreviousStatus(),
        ),
        (
            {"members": {"failed": 2}, "conditions": [{"type": "Healthy", "status": "True"}]},
            PreviousStatus(was_whole=True, failed=2),
        ),
        (
            {
                "conditions": [
                    {"type": "Healthy", "status": "False", "reason": "Rejected", "message": "so"}
                ]
            },
            PreviousStatus(was_whole=True, cause="Rejected", sentence="so"),
        ),
    ],
)
def test_what_was_said_before_is_read_from_the_status(
    status: Mapping[str, object], known: PreviousStatus
) -> None:
    assert health.before(status) == known


def test_what_kube_scheduler_may_still_bind_in_time_is_no_cause() -> None:
    handed = four("n1", "n1", "n2", "n2").last(1, is_handed_over=True).made
    ailment = health.ailment(handed, NODES, NOTHING_SAID, is_reserved=True)
    assert ailment is not None
    assert ailment.cause is Cause.MEMBER_LOST
    assert health.is_whole(handed)
    assert not health.is_bound(handed)
