"""Findings in words: one sentence for each, the same wherever people read it."""

import pytest

from tutti.gang import finding_text, findings, room_findings
from tutti.model.decisions import Finding, Mode, Reason, Rejection
from tutti.model.keys import GangKey, NodeName, PodKey
from tutti.model.resources import Resources

from ...harness.builders import NAMESPACE

CPU = Resources.of({"cpu": 2000})
NOWHERE = room_findings.Excluded(0, ())
TAINTED = room_findings.Excluded(3, ((2, "is cordoned"), (1, "has taint a=b:NoSchedule")), 2)
POD, OTHER = PodKey(NAMESPACE, "a-0"), PodKey(NAMESPACE, "b-0")
LARGEST = room_findings.LargestNode("cpu", 2000, 1500, NodeName("n1"))


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        (room_findings.Asked(4, CPU), "4 members need 2 cpu each"),
        (room_findings.Asked(1, CPU, is_single=True), "the pod needs 2 cpu"),
        (room_findings.Asked(2, CPU, role="ps"), "role ps: 2 members need 2 cpu each"),
        (
            room_findings.Asked(1, CPU, purpose="to replace lost ones"),
            "1 member to replace lost ones needs 2 cpu",
        ),
        (
            room_findings.MixedAsked(3, ((2, CPU, room_findings.RoomFor(2, 1)),), 2),
            "3 members needed of 2 with 2 cpu each (room for 2 on 1 node), 2 more kinds",
        ),
        (room_findings.RoomFor(0, 0), "room for none"),
        (
            room_findings.RoomFor(2, 1, is_unused=True),
            "room for 2 on 1 node, left unused by this plan",
        ),
        (room_findings.EmptyClusterRoom(0), "even the empty cluster has room for none"),
        (room_findings.EmptyClusterRoom(2), "even the empty cluster has room for only 2"),
        (
            room_findings.DomainOfGang("rack", "b1/r2"),
            "its domain of rack is b1/r2",
        ),
        (
            room_findings.DomainOfGang("rack", "b1/r2", resource="cpu", outside=1500),
            "its domain of rack is b1/r2; pods of no gang have 1500m cpu there",
        ),
        (
            room_findings.DomainOfGang("rack", "b1/r2", (GangKey(NAMESPACE, "x"),)),
            "its domain of rack is b1/r2, where ml/x is, too",
        ),
        (
            room_findings.DomainOfGang("rack", "b1/r2", (GangKey(NAMESPACE, "x"),), 1),
            "its domain of rack is b1/r2, where ml/x and 1 other gang are, too",
        ),
        (room_findings.MorePortsTaken(4), "4 more host ports are taken"),
        (
            findings.EvictionPutOff(findings.JobNotRead("train")),
            "but not yet: Job train cannot be read, so its backoffLimit is unknown",
        ),
        (
            findings.EvictionPutOff(findings.JobWouldFail("train", 2, 3)),
            (
                "but not yet: Job train stands 2 more failures and each of the 3 evictions counts "
                "as one: raise its backoffLimit, or let its podFailurePolicy ignore "
                "DisruptionTarget"
            ),
        ),
        (findings.EvictionPutOff(findings.EvictionRefused("no")), "but not yet: no"),
        (
            findings.EvictionPutOff(findings.EvictionRefused("no", 2)),
            "but not yet: no; 2 others had left, so no other member is evicted within an hour",
        ),
        (
            room_findings.NoNodeFits(POD, "", CPU, NOWHERE, 0),
            "no node of the kinds present fits member ml/a-0: there are no nodes",
        ),
        (
            room_findings.NoNodeFits(None, "ps", CPU, TAINTED, 3),
            (
                "no node of the kinds present fits an absent member of role ps: 3 nodes: "
                "2 cordoned, 1 has taint a=b:NoSchedule, 2 for other reasons"
            ),
        ),
        (
            room_findings.NoNodeFits(POD, "", CPU, NOWHERE, 4, LARGEST),
            (
                "no node of the kinds present fits member ml/a-0: asks 2 cpu; "
                "the largest node has 1500m (n1)"
            ),
        ),
        (
            room_findings.NoNodeFits(POD, "", CPU, NOWHERE, 4),
            "no node of the kinds present fits member ml/a-0: asks 2 cpu; no node has all of it",
        ),
        (findings.BeingDeleted(), "the PodGroup is being deleted"),
        (
            findings.MembersLost(1, has_slots=False),
            "1 lost, and no pod waits to replace it",
        ),
        (
            findings.MembersLost(2, has_slots=True),
            "2 lost or never made, and no room is held for them",
        ),
        (
            findings.Gated(1, ("x", "y"), 3, is_started=True),
            "1 more has scheduling gates (x, y, 3 more)",
        ),
        (findings.Gated(1, ("x",), is_single=True), "the pod has scheduling gates (x)"),
        (findings.Failed(2), "2 more have failed"),
        (findings.WithoutRole(1), "1 pod names no role of the gang"),
        (
            findings.MaximumReached(("a", "b"), 2),
            "roles a, b have their maxMember; 2 more wait until a member has ended",
        ),
        (
            findings.NotReleased(findings.NotMadeAgain("a-0", is_driver=True)),
            "not released: a-0 is a Spark driver, which no controller creates again",
        ),
        (
            findings.NotReleased(findings.RoomAfterOther(POD, OTHER)),
            "not released: ml/a-0 may find room once ml/b-0 has its node",
        ),
        (
            findings.NamesOneClaim("data", members=2, needed=3, role="worker"),
            (
                "3 members of role worker must start together, but 2 name claim data, which one "
                "pod at a time may use (ReadWriteOncePod): give each pod a claim of its own, or "
                "all of them one with ReadWriteMany"
            ),
        ),
        (
            findings.EvictionsCapped(3, 4),
            "but not yet: this cycle ends 3 pods already, and at most 4 may",
        ),
        (
            findings.EvictionsCapped(1, 2, "ml"),
            "but not yet: 1 pod of queue ml ended within the last hour, and at most 2 may",
        ),
        (findings.Quoted("denied the request"), "denied the request"),
        (
            findings.NothingStarts(Mode.SHADOW),
            "Tutti only watches (TUTTI_MODE=shadow), so nothing starts",
        ),
        (findings.WouldStart(3, 1), "otherwise 3 members would start now on 1 node"),
        (
            findings.WouldEvict(1),
            "1 bound member would be evicted now, to start again whole",
        ),
    ],
)
def test_a_finding_in_words(finding: Finding, words: str) -> None:
    assert finding_text.sentence_of([finding]) == words


def test_the_findings_of_a_rejection_are_one_sentence() -> None:
    rejection = Rejection(
        GangKey(NAMESPACE, "g"), Reason.NOT_ENOUGH_ROOM, (room_findings.RoomFor(1, 1),)
    )
    rejection = rejection.with_findings(room_findings.ShortOf(2))
    assert finding_text.sentence(rejection) == "room for 1 on 1 node; short 2"


def test_every_kind_of_finding_has_words() -> None:
    kinds = [
        kind
        for module in (findings, room_findings)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Finding) and kind is not Finding
    ]
    assert len(kinds) > 30
    no_words = finding_text.text.dispatch(object)
    assert [kind for kind in kinds if finding_text.text.dispatch(kind) is no_words] == []
    with pytest.raises(TypeError):
        finding_text.text(Finding())
