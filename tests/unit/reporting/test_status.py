"""The words of a PodGroup's status: a table of states, and what counts as news."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tutti.gang import health
from tutti.gang.findings import Quoted
from tutti.kube.codec.encode import timestamp
from tutti.kube.gang_sources import GangObject
from tutti.model.cluster import (
    ClaimGrounds,
    Gang,
    Phase,
    Reservation,
    ReservedVictim,
    ScheduledCondition,
)
from tutti.model.decisions import Reason, Rejection
from tutti.model.keys import ApiKind, GangKey, NodeName, Uid
from tutti.model.queues import QueueRecord
from tutti.reporting import drafts, status
from tutti.reporting.pod_conditions import notes_of, stray_notes
from tutti.reporting.status import ConditionType, GangCondition, LostWork

from ...harness.builders import GangBuilder, gang, member, reservation, shape, single

NO_ROOM = "2 members need 1 cpu each; room for none; short 2"
THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"


def waits(reason: Reason = Reason.NOT_ENOUGH_ROOM, sentence: str = NO_ROOM) -> Rejection:
    return Rejection(gang("a").key, reason, (Quoted(sentence),))


def two() -> GangBuilder:
    return gang("a").of(2, cpu=1)


def bound() -> GangBuilder:
    return two().bound_on("n1", "n1")


def handed(count: int) -> GangBuilder:
    """Two members, of which the last so many wait for kube-scheduler to bind them."""
    return bound().last(count, is_handed_over=True)


def ended(*phases: Phase) -> GangBuilder:
    named = {f"a-{i}": phase for i, phase in enumerate(phases)}
    return bound().where(lambda m: replace(m, phase=named[m.key.name]))


HELD = reservation(two(), ("a-0", "n1"), ("a-1", "n2"))
REFUSED = waits(Reason.REFUSED, "pod ml/a-0: binding refused: no")
NO_MEMBERS = GangBuilder(gang("a").key, (), 2)

RUN, DONE, FAIL = Phase.RUNNING, Phase.SUCCEEDED, Phase.FAILED
APP = (
    gang("a")
    .role("driver", 1, cpu=1)
    .role("executor", 2, 0, cpu=1)
    .bound_on("n1")
    .but(owner_pod="a-0")
    .each(is_driver=True)
)
Row = tuple[GangBuilder, Reservation | None, Rejection | None, str, Mapping[str, str]]

TABLE: Mapping[str, Row] = {
    "waits for room": (two(), None, waits(), "Waiting", {"Reserved": "False NotEnoughRoom"}),
    "nobody came": (NO_MEMBERS, None, None, "Waiting", {"Reserved": "False WaitingForMembers"}),
    "its spark driver has ended well, and deleted its executors": (
        APP.only("a-0", phase=DONE),
        None,
        None,
        "Finished",
        {"Reserved": "True Reserved", "Bound": "True Bound", "Healthy": "True Whole"},
    ),
    "its spark driver has failed, and its executors are gone": (
        APP.only("a-0", phase=FAIL),
        None,
        None,
        "Waiting",
        {"Reserved": "False WaitingForMembers"},
    ),
    "reserved": (
        two(),
        HELD,
        None,
        "Reserved",
        {"Reserved": "True Reserved", "Bound": "False Binding"},
    ),
    "half bound on the way": (
        two().bound_on("n1"),
        HELD,
        None,
        "Reserved",
        {"Reserved": "True Reserved", "Bound": "False Binding"},
    ),
    "binding refused": (
        two().bound_on("n1"),
        HELD,
        REFUSED,
        "Reserved",
        {"Reserved": "True Reserved", "Bound": "False Refused"},
    ),
    "reservation refused": (two(), None, REFUSED, "Waiting", {"Reserved": "False Refused"}),
    "bound": (
        bound(),
        None,
        None,
        "Bound",
        {"Reserved": "True Reserved", "Bound": "True Bound", "Healthy": "True Whole"},
    ),
    "bound with an extra that waits": (
        gang("a").of(3, cpu=1).needing(2).bound_on("n1", "n1"),
        None,
        waits(),
        "Bound",
        {"Reserved": "True Reserved", "Bound": "True Bound", "Healthy": "True Whole"},
    ),
    "runs": (ended(RUN, RUN), None, None, "Running", {"Healthy": "True Whole"}),
    "runs in part": (ended(RUN, Phase.PENDING), None, None, "Bound", {"Healthy": "True Whole"}),
    "runs and has finished": (ended(RUN, DONE), None, None, "Running", {"Bound": "True Bound"}),
    "finished": (ended(DONE, DONE), None, None, "Finished", {"Bound": "True Bound"}),
    "one failed": (
        ended(RUN, FAIL),
        None,
        waits(Reason.WAITING_FOR_MEMBERS),
        "Degraded",
        {"Bound": "False Binding", "Healthy": "False MemberLost"},
    ),
    "all failed": (
        ended(FAIL, FAIL),
        None,
        None,
        "Waiting",
        {"Reserved": "False WaitingForMembers"},
    ),
    "one terminates": (
        bound().last(1, terminating=True),
        None,
        None,
        "Degraded",
        {"Healthy": "False MemberLost"},
    ),
    "a role is short": (
        gang("a").role("driver", 1, cpu=1).role("worker", 1, 2, cpu=1).where(
            lambda m: replace(m, node=NodeName("n1")) if m.role == "worker" else m
        ),
        None,
        waits(),
        "Degraded",
        {"Healthy": "False MemberLost"},
    ),
    "handed over": (
        handed(2),
        reservation(two(), ("a-0", "n1"), ("a-1", "n1")),
        None,
        "Reserved",
        {"Reserved": "True Reserved", "Bound": "False Binding"},
    ),
    "one handed over, one bound": (
        handed(1),
        reservation(two(), ("a-0", "n1"), ("a-1", "n1")),
        None,
        "Reserved",
        {"Reserved": "True Reserved", "Bound": "False Binding"},
    ),
    "not bound in time": (
        handed(2),
        None,
        None,
        "Degraded",
        {"Reserved": "True Reserved", "Bound": "False Binding", "Healthy": "False NotBound"},
    ),
    "repair is reserved": (
        two().bound_on("n1"),
        reservation(two(), ("a-1", "n1")),
        None,
        "Reserved",
        {"Reserved": "True Reserved", "Bound": "False Binding"},
    ),
}  # fmt: skip


NODES = {NodeName("n1"): True, NodeName("n2"): True}


def spoken(of: Gang, held: Reservation | None, rejection: Rejection | None) -> status.GroupStatus:
    return status.status_of(of, held, rejection, NODES, {}, scheduler="tutti")


def test_a_whole_gang_that_loses_a_node_is_degraded_though_its_reservation_stands_still() -> None:
    nodes = {NodeName("n1"): False, NodeName("n2"): True}
    found = status.status_of(bound().made, HELD, None, nodes, {}, scheduler="tutti")
    assert (found.phase, said(found)["Healthy"]) == ("Degraded", "False NodeLost")


def test_a_gang_without_its_preferred_domain_says_so_once_it_has_nodes() -> None:
    note = "in 2 domains of rack; 1 was preferred"
    bound_status, waiting_status = (
        status.status_of(
            made.made, None, rejection, NODES, {}, scheduler="tutti", preference_note=note
        )
        for made, rejection in ((bound(), None), (two(), waits()))
    )
    assert bound_status.conditions[0].message == f"every needed member has its node; {note}"
    assert waiting_status.conditions[0].message == NO_ROOM


def said(of: status.GroupStatus) -> Mapping[str, str]:
    return {line.type.value: f"{line.holds} {line.reason}" for line in of.conditions}


@pytest.mark.parametrize("state", TABLE)
def test_a_state_has_its_phase_and_conditions(state: str) -> None:
    of, held, rejection, phase, conditions = TABLE[state]
    group_status = spoken(of.made, held, rejection)
    assert group_status.phase == phase
    assert {**said(group_status), **conditions} == said(group_status)


def test_counters_count_members_that_have_a_place() -> None:
    made = gang("a").role("worker", 2, cpu=1).bound_on("n1")
    odd = replace(member("odd", shape(cpu=1), role="cook"), group="a", node=None)
    counts = spoken(replace(made.made, members=(*made.members, odd)), None, None).counts
    assert counts == status.StatusCounts(
        needed=2, seen=2, bound=1, running=0, succeeded=0, failed=0
    )


def test_a_pod_of_no_role_makes_no_gang_whole() -> None:
    made = gang("a").role("worker", 2, cpu=1).bound_on("n1").made
    odd = replace(member("odd", shape(cpu=1), role="cook"), group="a", node=made.members[0].node)
    assert not health.is_whole(replace(made, members=(*made.members, odd)))


def test_a_claim_says_who_has_to_go_before_it_is_bound() -> None:
    def victim(name: str) -> ReservedVictim:
        return ReservedVictim(GangKey("ml", name), Uid(name), (Uid("1"), Uid("2")), is_whole=True)

    def sentence(*names: str) -> str:
        claim = replace(HELD, victims=tuple(map(victim, names)))
        made = status.status_of(two().made, claim, None, {}, {}, scheduler="tutti")
        return made.conditions[0].message

    held = "2 members on 2 nodes"
    assert sentence() == held
    assert sentence("x") == f"{held}, once 2 pods of ml/x have gone"
    assert sentence(*"xyzu") == f"{held}, once 8 pods of ml/x, ml/y, ml/z and 1 more have gone"


def test_the_sentence_counts_what_is_reserved() -> None:
    lines = spoken(two().made, HELD, None).conditions
    assert lines[0].message == "2 members on 2 nodes"
    assert lines[1].message == "0 of 2 members are bound"
    alone = reservation(two(), ("a-0", "n1"))
    assert spoken(two().made, alone, None).conditions[0].message == "1 member on 1 node"


def test_what_kube_scheduler_refuses_is_told_while_the_gang_is_reserved() -> None:
    no_device = ScheduledCondition("Unschedulable", "cannot allocate all claims")
    refused = handed(1).last(1, scheduled_condition=no_device)
    for held in (HELD, None):
        line = spoken(refused.made, held, None).conditions[1]
        assert line.reason == "NotBound"
        assert line.message == (
            "1 of 2 members are bound: a-1 is not bound to node n1 by kube-scheduler "
            "(Unschedulable: cannot allocate all claims)"
        )


def wanted(of: GangBuilder, rejection: Rejection | None, before: Mapping[str, Any], *,
           keep: bool = False) -> dict[str, Any]:  # fmt: skip
    group_status = spoken(of.made, None, rejection)
    return drafts.merged(group_status, before, NOW, keep_sentences=keep)


def test_an_unchanged_status_is_equal_to_what_stands_there() -> None:
    first = drafts.merged(spoken(bound().made, None, None), {}, THEN, keep_sentences=True)
    assert wanted(bound(), None, first) == first


def test_a_condition_keeps_its_time_until_its_status_turns() -> None:
    first = drafts.merged(spoken(two().made, None, waits()), {}, THEN, keep_sentences=True)
    other = wanted(two(), waits(Reason.NO_NODE_FITS, "no node"), first)
    (line,) = other["conditions"]
    assert (line["reason"], line["lastTransitionTime"]) == ("NoNodeFits", THEN)
    started = wanted(bound(), None, other)
    assert {line["lastTransitionTime"] for line in started["conditions"]} == {NOW}


def test_a_sentence_stands_for_a_while_but_a_new_reason_is_told() -> None:
    first = wanted(two(), waits(), {})
    fresh = waits(sentence="2 members need 1 cpu each; room for 1 on 1 node; short 1")
    assert wanted(two(), fresh, first, keep=True) == first
    assert wanted(two(), fresh, first) != first
    other = wanted(two(), waits(Reason.NO_NODE_FITS, "no node"), first, keep=True)
    assert other["conditions"][0]["message"] == "no node"


def test_what_claims_lack_is_told_again() -> None:
    first = wanted(two(), waits(Reason.WAITING_FOR_VOLUMES, "claim x does not exist"), {})
    bound = waits(Reason.WAITING_FOR_VOLUMES, "claim x is not bound yet")
    assert wanted(two(), bound, first, keep=True) == wanted(two(), bound, first)


@pytest.mark.parametrize(
    "odd", [{"conditions": None}, {"conditions": "x"}, {"conditions": [3, {}, {"type": 4}]}]
)
def test_a_status_that_somebody_broke_is_written_over(odd: Mapping[str, Any]) -> None:
    assert wanted(two(), waits(), odd) == wanted(two(), waits(), {})


def turned(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return [line.reason for line in drafts.news(after, before)]


def reserved() -> dict[str, Any]:
    group_status = spoken(two().made, HELD, None)
    return drafts.merged(group_status, {}, NOW, keep_sentences=False)


def test_news_is_one_line_per_change_of_state() -> None:
    waiting, is_bound = wanted(two(), waits(), {}), wanted(bound(), None, {})
    lost = wanted(two().bound_on("n1"), waits(), {})
    assert turned({}, waiting) == ["NotEnoughRoom"]
    assert turned(waiting, waiting) == []
    assert turned(waiting, reserved()) == ["Reserved"]
    assert turned(reserved(), is_bound) == ["Bound"]
    assert turned(waiting, is_bound) == ["Bound"]
    assert turned(is_bound, lost) == ["NotEnoughRoom", "MemberLost"]
    assert turned(lost, is_bound) == ["Bound", "Whole"]


def test_the_news_are_events_except_that_a_gang_is_bound_that_had_no_status() -> None:
    def events(after: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
        return [line.reason for line in drafts.worth_events(drafts.news(after, before), before)]

    waiting, is_bound = wanted(two(), waits(), {}), wanted(bound(), None, {})
    assert events(is_bound, {}) == events(is_bound, {"phase": "Bound"}) == []
    assert events(is_bound, waiting) == events(is_bound, reserved()) == ["Bound"]
    assert events(waiting, {}) == ["NotEnoughRoom"]
    assert events(reserved(), {}) == ["Reserved"]
    refused = drafts.merged(spoken(two().made, HELD, REFUSED), {}, NOW, keep_sentences=False)
    assert "Refused" in events(refused, {})


def test_a_refused_binding_is_news() -> None:
    group_status = spoken(two().made, HELD, REFUSED)
    refused = drafts.merged(group_status, reserved(), NOW, keep_sentences=False)
    (line,) = drafts.news(refused, reserved())
    assert line == GangCondition(
        ConditionType.BOUND,
        holds=False,
        reason="Refused",
        message="0 of 2 members are bound; pod ml/a-0: binding refused: no",
    )


@pytest.mark.parametrize(
    ("phase", "quiet_for", "since_write", "wait"),
    [
        ("Waiting", 0.0, 9.0, 1.0),
        ("Waiting", 9.0, 0.4, 0.6),
        ("Waiting", 9.0, 9.0, 0.0),
        ("Bound", 0.0, 0.0, 0.0),
    ],
)
def test_waiting_is_said_when_it_is_quiet_and_a_start_at_once(
    phase: str, quiet_for: float, since_write: float, wait: float
) -> None:
    after = wanted(two(), waits(), {}) if phase == "Waiting" else wanted(bound(), None, {})
    found = drafts.patience(after, {}, quiet_for=quiet_for, since_write=since_write)
    assert found == pytest.approx(wait)


def test_counters_alone_can_wait() -> None:
    before, after = wanted(bound(), None, {}), wanted(ended(RUN, Phase.PENDING), None, {})
    assert before["members"] != after["members"]
    assert drafts.patience(after, before, quiet_for=9.0, since_write=0.2) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("of", "rests"),
    [
        (NO_MEMBERS, True),
        (gang("a").of(1, cpu=1).needing(2).each(phase=DONE), True),
        (ended(DONE, DONE), False),
        (ended(DONE, FAIL), False),
        (two(), False),
    ],
)
def test_a_finished_gang_rests_while_its_pods_are_cleared_away(
    of: GangBuilder, *, rests: bool
) -> None:
    assert drafts.may_stay(of.made, {"phase": "Finished"}, "tutti") is rests
    assert not drafts.may_stay(of.made, {"phase": "Bound"}, "tutti")


def notes(of: Gang, rejection: Rejection | None) -> list[tuple[str, str, bool]]:
    pod_conditions = notes_of(of, rejection)
    return [(note.member.key.name, note.reason, note.is_its_own) for note in pod_conditions]


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        (Reason.NOT_ENOUGH_ROOM, "Unschedulable"),
        (Reason.NO_NODE_FITS, "Unschedulable"),
        (Reason.BUDGET_EXHAUSTED, "Unschedulable"),
        (Reason.WAITING_FOR_MEMBERS, "WaitingForMembers"),
        (Reason.REFUSED, "Refused"),
    ],
)
def test_only_pods_that_wait_for_room_say_unschedulable(reason: Reason, word: str) -> None:
    assert notes(two().made, waits(reason)) == [("a-0", word, False), ("a-1", word, False)]


def test_a_pod_has_an_event_of_its_own_only_for_a_reason_of_its_own() -> None:
    assert notes(single("s", cpu=1).made, waits()) == [("s", "Unschedulable", True)]
    odd = gang("a").role("worker", 1, cpu=1).of(1, role="cook", cpu=1).needing(1)
    assert notes(odd.made, waits()) == [
        ("a-0", "Unschedulable", False),
        ("a-1", "UnknownRole", True),
    ]
    ports = two().last(1, unsupported_fields=("spec.hostPort",))
    assert notes(ports.made, None) == [("a-1", "NotModelled", True)]
    empty = two().last(1, volume_problems=("claim x does not exist",))
    assert notes(empty.made, None) == [("a-1", "WaitingForVolumes", False)]


def test_pods_of_another_stage_are_told_what_they_wait_for() -> None:
    staged = gang("a").role("init", 1, cpu=1).role("train", 1, cpu=1)
    conditions = [*notes_of(replace(staged.made, other_stages=("train",)), waits())]
    init, train = conditions
    assert (init.reason, init.may_change) == ("Unschedulable", False)
    assert (train.member.role, train.reason) == ("train", "WaitingForStage")
    assert train.message == (
        "PodGroup a starts in stages: pods of the role 'train' wait until the pods of another "
        "stage have started"
    )
    assert train.may_change


def test_pods_that_wait_are_told_when_their_group_is_deleted_although_the_reason_stays() -> None:
    waiting = waits(Reason.WAITING_FOR_MEMBERS)
    for is_deleted in (False, True):
        of = replace(two().made, terminating=is_deleted)
        assert {note.may_change for note in notes_of(of, waiting)} == {is_deleted}


def test_a_pod_that_does_not_wait_is_told_nothing() -> None:
    assert notes(bound().made, waits()) == []
    assert notes(two().each(gates=("hold",)).made, waits()) == []
    assert notes(two().made, None) == []


def test_a_stray_is_told_which_pod_group_is_missing() -> None:
    lost = replace(member("p", shape(cpu=1)), group="nowhere")
    (note,) = stray_notes([lost, replace(lost, gates=("hold",))], lambda _key: None)
    assert note.reason == "PodGroupNotFound"
    assert "PodGroup ml/nowhere does not exist" in note.message
    of_a_job = replace(lost, group_kind=ApiKind("jobset.x-k8s.io", "JobSet"))
    (note,) = stray_notes([of_a_job], lambda _key: None)
    assert "JobSet ml/nowhere does not exist" in note.message
    (note,) = stray_notes([of_a_job], lambda _key: "created again")
    assert "made for an earlier JobSet ml/nowhere, which has been deleted" in note.message


def test_a_gang_that_lost_members_says_so_while_it_is_repaired() -> None:
    whole = drafts.merged(spoken(bound().made, None, None), {}, THEN, keep_sentences=False)
    lost = two().bound_on("n1")
    repair = reservation(two(), ("a-1", "n2"))
    found = status.status_of(lost.made, repair, None, NODES, whole, scheduler="tutti")
    assert found.phase == "Reserved"
    assert said(found)["Healthy"] == "False MemberLost"
    assert "Healthy" not in said(spoken(lost.made, repair, None)), "it had never been whole"


def test_a_gang_is_degraded_whose_node_is_gone_although_its_pods_remain() -> None:
    found = status.status_of(bound().made, None, None, {}, {}, scheduler="tutti")
    assert found.phase == "Degraded"
    assert said(found)["Bound"] == "True Bound"
    assert said(found)["Healthy"] == "False NodeLost"


def test_a_status_stays_small_whatever_the_names() -> None:
    long = "n" * 253
    made = gang("a").of(3, cpu=1).bound_on(*(f"{i}{long[1:]}" for i in range(3))).made
    named = replace(
        made,
        members=tuple(replace(m, key=m.key._replace(name=long)) for m in made.members),
    )
    rejection = waits(Reason.NO_NODE_FITS, "é" * 5000)
    found = status.status_of(named, None, rejection, {}, {}, scheduler="tutti")
    written = drafts.merged(found, {}, NOW, keep_sentences=False)
    assert len(json.dumps(written, ensure_ascii=False).encode()) < 4096
    refused = status.status_of(
        two().bound_on("n1").made,
        HELD,
        waits(Reason.REFUSED, "x" * 9000),
        NODES,
        written,
        scheduler="tutti",
    )
    written = drafts.merged(refused, {}, NOW, keep_sentences=False)
    assert len(written["conditions"]) == 3  # type: ignore[arg-type]
    assert len(json.dumps(written).encode()) < 4096


def test_a_gang_that_is_given_up_for_now_says_that_it_is_released() -> None:
    held = replace(HELD, entries=(), evict=(two().made.members[0].uid,))
    group_status = spoken(two().bound_on("n1").made, held, None)
    assert group_status.phase == "Degraded"
    assert said(group_status)["Bound"] == "False Released"
    assert said(group_status)["Reserved"] == "False NotEnoughRoom"
    assert group_status.conditions[0].message == "evicting 1 bound member, to start again whole"


def test_a_pod_beyond_what_its_role_may_have_waits_for_its_siblings_not_for_room() -> None:
    made = gang("a").role("worker", 1, 3).at_most(2).needing(1).made
    assert notes(made, waits()) == [
        ("a-0", "Unschedulable", False),
        ("a-1", "Unschedulable", False),
        ("a-2", "WaitingForMembers", False),
    ]
    assert notes(made, None) == []


SIGNED = {"schedulerName": "other"}


@pytest.mark.parametrize(
    ("of", "observed", "is_anothers"),
    [
        (gang("a"), SIGNED, True),
        (gang("a"), {"schedulerName": "tutti"}, False),
        (gang("a"), {}, False),
        (two(), SIGNED, False),
        (gang("a").but(finished=("",)), SIGNED, False),
    ],
)
def test_whoever_sees_members_speaks_for_a_gang(
    of: GangBuilder, observed: Mapping[str, object], *, is_anothers: bool
) -> None:
    assert drafts.may_stay(of.made, observed, "tutti") is is_anothers


def test_a_gang_of_which_extras_end_says_so_until_none_waits_for_room() -> None:
    made = bound().made
    victim = ReservedVictim(made.key, made.uid, (Uid("x"),), is_whole=False)
    other = ReservedVictim(GangKey("ml", "z"), Uid("z"), (Uid("y"), Uid("w")), is_whole=True)
    record = QueueRecord("vision", Uid("q"), 0.0)
    claim = replace(HELD, gang=GangKey("ml", "new"), victims=(other, victim), record=record)
    told = status.status_of(made, None, None, NODES, {}, scheduler="tutti", claim=claim)
    assert told.conditions[-1] == GangCondition(
        ConditionType.PREEMPTED,
        holds=True,
        reason="Preempted",
        message="1 extra pod evicted, so that gang ml/new of queue vision starts",
    )
    observed = drafts.merged(told, {}, "now", keep_sentences=False)
    assert not any(line.type == "Preempted" for line in drafts.news(observed, {}))
    for gate, is_told in ((), True), (("example.com/gate",), False):
        waiting = replace(member("a-9", shape(cpu=1)), gates=gate)
        shrunk = replace(made, members=(*made.members, waiting))
        again = status.status_of(shrunk, None, None, NODES, observed, scheduler="tutti")
        assert (again.conditions[-1] == told.conditions[-1]) is is_told
        assert ("Preempted" in said(again)) is is_told
    again = status.status_of(made, None, None, NODES, observed, scheduler="tutti")
    assert "Preempted" not in said(again)


def test_a_gang_of_which_no_pod_has_begun_to_end_says_nothing() -> None:
    made = bound().made
    victim = ReservedVictim(made.key, made.uid, (made.members[0].uid,), is_whole=False)
    claim = replace(HELD, gang=GangKey("ml", "new"), victims=(victim,))
    told = status.status_of(made, None, None, NODES, {}, scheduler="tutti", claim=claim)
    assert "Preempted" not in said(told)


def test_a_claim_says_by_which_right_its_victims_end_and_at_which_cost() -> None:
    victims = [
        ReservedVictim(GangKey("ml", name), Uid(name), (), is_whole=True, lost_milliseconds=ms)
        for name, ms in (("y", 1500), ("z", 500))
    ]
    record = QueueRecord("vision", Uid("q"), 0.0)
    held = replace(HELD, gang=GangKey("ml", "new"), victims=tuple(victims), record=record)
    start = "gang ml/new of queue vision starts"
    assert status.claimant(held) == start, "an older version made it"
    amounts = (("nvidia.com/gpu", "16"), ("memory", "4Gi"))
    grounds = ClaimGrounds(True, 2000, 2000, amounts)  # noqa: FBT003
    assert status.claimant(replace(held, grounds=grounds)) == (
        f"{start}: a guarantee covers it (its queue guarantees 16 nvidia.com/gpu, 4Gi memory); all "
        "that end for it lose 2.0 s of the whole cluster's work, proved least"
    )
    grounds = ClaimGrounds(False, 5000, 1000)  # noqa: FBT003
    assert status.claimant(replace(held, grounds=grounds)) == (
        f"{start}: its priority is higher; all that end for it lose 2.0 s of the whole cluster's "
        "work, and have lost 3.0 s by earlier ends, at least 1.0 s"
    )


def test_what_an_end_loses_is_counted_once_its_first_pod_goes_and_once_for_each_claim() -> None:
    made = bound().made
    pods = tuple(sorted(member.uid for member in made.members))
    victim = ReservedVictim(made.key, made.uid, pods, is_whole=True, lost_milliseconds=1500)
    claim = replace(HELD, victims=(victim,))
    going = replace(made, members=(replace(made.members[0], terminating=True), *made.members[1:]))

    def lost(of: Gang, observed: Mapping[str, object], of_claim: Reservation) -> LostWork | None:
        return status.status_of(
            of, None, None, NODES, observed, scheduler="tutti", claim=of_claim
        ).lost

    assert lost(made, {}, claim) is None
    for of in (going, replace(made, members=())):
        counted = lost(of, {}, claim)
        assert counted == LostWork(1500, f"{claim.uid} {timestamp(claim.reserved_at)}")
    told = status.status_of(going, None, None, NODES, {}, scheduler="tutti", claim=claim)
    observed = drafts.merged(told, {}, "now", keep_sentences=False)
    assert observed["preemption"] == {
        "lostMilliseconds": 1500,
        "countedClaim": f"{claim.uid} {timestamp(claim.reserved_at)}",
    }
    assert lost(going, observed, claim) is None
    later = replace(claim, reserved_at=claim.reserved_at + 1)
    assert lost(going, observed, later) == LostWork(
        3000, f"{claim.uid} {timestamp(later.reserved_at)}"
    )
    again = status.status_of(made, None, None, NODES, observed, scheduler="tutti")
    kept = drafts.merged(again, observed, "now", keep_sentences=False)
    assert kept["preemption"] == observed["preemption"]
    for other in (replace(victim, is_whole=False), replace(victim, lost_milliseconds=0)):
        assert lost(going, {}, replace(claim, victims=(other,))) is None


def test_what_is_lost_is_written_at_once_and_for_the_version_that_was_read() -> None:
    made, claim = bound().made, "x 1970-01-01T00:00:00Z"
    group = GangObject(made.key, made.uid, 2, version="7")
    told = status.status_of(made, None, None, NODES, {}, scheduler="tutti")
    known = replace(group, status=drafts.merged(told, {}, "then", keep_sentences=False))

    def drafted(lost: LostWork | None) -> drafts.Draft:
        wanted = replace(told, lost=lost)
        return drafts.draft(
            made, wanted, known, "now", is_fresh=True, quiet_for=0.0, since_write=0.0
        )

    assert (drafted(None).version, drafted(None).wait) == ("", drafts.QUIET_SECONDS)
    counted = drafted(LostWork(1, claim))
    assert (counted.version, counted.wait, counted.may_stay) == ("7", 0.0, False)


def test_a_gang_that_has_ended_says_for_whom_until_it_is_whole() -> None:
    made, observed = two().made, {"conditions": ["x", {"type": "Preempted", "message": "for z"}]}
    told = status.status_of(made, None, None, NODES, observed, scheduler="tutti")
    assert (told.conditions[-1].type, told.conditions[-1].message) == ("Preempted", "for z")
    for unread in ({"conditions": "x"}, {"conditions": [{"type": "Preempted"}]}):
        told = status.status_of(made, None, None, NODES, unread, scheduler="tutti")
        assert "Preempted" not in said(told)
