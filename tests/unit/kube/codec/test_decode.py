"""Wire objects to model values, as kubectl shows them and as nobody should write them."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tutti.kube import wire
from tutti.kube.codec.decode import (
    decode_job,
    decode_member,
    decode_node,
    decode_occupant,
    decode_reservation,
)
from tutti.kube.errors import BadObject
from tutti.kube.gang_sources import GangObject
from tutti.kube.gang_sources.pod_group import PodGroup, decode_group
from tutti.kube.kinds import (
    NamespaceObject,
    PriorityClassObject,
    decode_namespace,
    decode_priority_class,
)
from tutti.model.cluster import (
    Gang,
    Member,
    Namespace,
    Node,
    OnPartial,
    OnTimeout,
    Phase,
    PodReservation,
    PriorityClass,
    Reservation,
    Role,
    ScheduledCondition,
    SlotReservation,
)
from tutti.model.inter_pod import DomainRule, SegmentRule
from tutti.model.keys import GangKey, NodeName, PodKey, Uid
from tutti.model.owners import Job, Owner
from tutti.model.queues import QueueRecord, RoleAtStart
from tutti.model.resources import Resources
from tutti.model.shapes import Shape, Taint, Toleration

from ..objects import GROUP, NODE, POD, RESERVATION, container, merged, pod

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


def node(**changes: Any) -> Node:
    """The node with changes, decoded."""
    return decode_node(wire.parse_one(merged(NODE, changes), wire.Node))


def group(**spec: object) -> GangObject:
    """The PodGroup with another spec, decoded."""
    return decode_group(wire.parse_one(GROUP | {"spec": spec}, PodGroup))


def held(**spec: object) -> Reservation:
    """The Reservation with changes, decoded."""
    return decode_reservation(wire.parse_one(merged(RESERVATION, {"spec": spec}), wire.Reservation))


def test_a_pod_of_ours_is_read_whole() -> None:
    assert decode_member(pod()) == Member(
        key=PodKey("ml", "train-0"),
        uid=Uid("7d1c0b1e-1111-4f6e-9d8e-000000000001"),
        version="4711",
        shape=Shape(
            requests=Resources.of({"cpu": 1500, "memory": 2**32, "nvidia.com/gpu": 1, "pods": 1}),
            node_selector=(("pool", "gpu"),),
            required=None,
            tolerations=(
                Toleration("gpu", "Equal", "yes", "NoSchedule"),
                Toleration("node.kubernetes.io/not-ready", "Exists", "", "NoExecute"),
            ),
        ),
        created=NEW_YEAR + 10,
        group="train",
        role="worker",
        priority=1000,
        owner=Owner("Job", "train", "batch", Uid("j")),
        scheduled_condition=ScheduledCondition("WaitingForMembers", "1 of 2 exist"),
        labels=(("app", "t"), ("tutti.dev/pod-group", "train"), ("tutti.dev/role", "worker")),
    )


def test_a_bare_pod_has_no_group_role_owner_or_words() -> None:
    got = decode_member(pod(status={"conditions": []}, labels=None, ownerReferences=None))
    assert (got.group, got.role, got.owner, got.scheduled_condition) == (
        "",
        "",
        None,
        ScheduledCondition(),
    )


def test_a_scheduled_pod_was_told_nothing() -> None:
    scheduled = [{"type": "PodScheduled", "status": "True"}]
    assert (
        decode_member(pod(status={"conditions": scheduled})).scheduled_condition
        == ScheduledCondition()
    )


def test_pods_that_wait_for_the_same_reason_share_its_words() -> None:
    told = [{"type": "PodScheduled", "status": "False", "reason": "NoRoom", "message": "x" * 100}]
    first, second = (decode_member(pod(status={"conditions": told})) for _ in range(2))
    assert first.scheduled_condition == ScheduledCondition("NoRoom", "x" * 100)
    assert first.scheduled_condition is second.scheduled_condition


def test_pods_share_the_names_that_they_have_in_common() -> None:
    # The parser keeps short strings for a while: these are too long for that.
    node, group, space, role = (word * 16 for word in ("node-", "gang-", "team-", "worker-"))
    labels = {"tutti.dev/pod-group": group, "tutti.dev/role": role}
    metadata = {"namespace": space, "labels": labels}
    text = json.dumps(merged(POD, {"spec": {"nodeName": node}, "metadata": metadata}))
    parsed = [wire.parse_one(text, wire.Pod) for _ in range(2)]
    first, second = map(decode_member, parsed)
    assert (first.node, first.group, first.key.namespace, first.role) == (node, group, space, role)
    assert first.node is second.node
    assert first.group is second.group
    assert first.key.namespace is second.key.namespace
    assert first.role is second.role
    occupants = [each.node for each in map(decode_occupant, parsed) if each is not None]
    assert [name is first.node for name in occupants] == [True, True]


MATCHING = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["run"]}
    ]
}
APART = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
            ]
        }
    }
}
RESIZED = {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "5"}}]}


@pytest.mark.parametrize(
    ("common", "spec", "status", "metadata"),
    [
        ({}, {"containers": [container(cpu="3")]}, {}, {}),
        ({}, {"nodeSelector": {"disk": "ssd"}}, {}, {}),
        ({}, {"volumes": [{"name": "data", "cinder": {}}]}, {}, {}),
        ({"containers": [container(cpu="1")], "nodeName": "n1"}, {}, RESIZED, {}),
        (MATCHING, {}, {}, {"labels": {"run": "2"}}),
        (MATCHING, {}, {}, {"namespace": "other"}),
        (APART, {}, {}, {"namespace": "other"}),
    ],
)
def test_what_a_pod_needs_does_not_depend_on_the_pod_that_was_read_before(
    common: dict[str, Any], spec: dict[str, Any], status: dict[str, Any], metadata: dict[str, Any]
) -> None:
    usual = pod({"nodeSelector": None, **common}, labels={"run": "1"})
    changed = {"labels": {"run": "1"}, **metadata}
    other = pod({"nodeSelector": None, **common, **spec}, status, **changed)

    def needs(of: wire.Pod) -> tuple[object, ...]:
        member = decode_member(of)
        return member.shape, member.unsupported_fields

    own = needs(usual)
    assert needs(other) != own
    assert needs(usual) == own


@pytest.mark.parametrize(
    "requesting",
    [
        lambda amount: {"containers": [container(cpu=amount)]},
        lambda amount: {"initContainers": [container(cpu=amount)]},
        lambda amount: {"overhead": {"cpu": amount}},
        lambda amount: {"resources": {"requests": {"cpu": amount}}},
    ],
)
def test_an_amount_that_is_none_is_refused_whatever_equal_pod_was_read_before(
    requesting: Callable[..., dict[str, Any]],
) -> None:
    decode_member(pod(requesting(1)))
    with pytest.raises(BadObject, match="not bool"):
        decode_member(pod(requesting(amount=True)))


def test_pods_of_equal_specs_have_the_same_needs_whatever_their_labels() -> None:
    first, second = (decode_member(pod(name=f"a-{i}", labels={"index": str(i)})) for i in range(2))
    assert first.shape is second.shape
    assert first.labels != second.labels


def test_times_within_a_second_are_one_object() -> None:
    first, second = (decode_member(pod(name=name)).created for name in ("a-0", "a-1"))
    assert first is second


def test_nodes_that_offer_the_same_share_its_amounts() -> None:
    assert node().allocatable is node(metadata={"name": "node-b"}).allocatable


@pytest.mark.parametrize(
    ("said", "phase"),
    [*((str(phase), phase) for phase in Phase), ("", Phase.UNKNOWN), ("Odd", Phase.UNKNOWN)],
)
def test_every_phase_is_known(said: str, phase: Phase) -> None:
    assert decode_member(pod(status={"phase": said})).phase is phase


def test_a_pod_that_succeeded_ended_with_the_last_of_its_containers() -> None:
    ended = [{"finishedAt": at} for at in ("2026-01-01T00:00:09Z", "2026-01-01T00:00:07Z", None)]
    states: list[dict[str, Any]] = [{"terminated": one} for one in ended]
    statuses = [{"state": state} for state in (*states, {"running": {}})]
    said = {"phase": "Succeeded", "containerStatuses": statuses}
    assert decode_member(pod(status=said)).ended == NEW_YEAR + 9
    assert decode_member(pod(status=said | {"phase": "Failed"})).ended is None
    assert decode_member(pod(status={"phase": "Succeeded"})).ended is None


def test_why_a_pod_failed_is_known_and_nothing_is_said_of_others() -> None:
    assert (
        decode_member(pod(status={"phase": "Failed", "reason": "OutOfcpu"})).failure == "OutOfcpu"
    )
    assert decode_member(pod(status={"phase": "Failed"})).failure == ""
    assert decode_member(pod(status={"phase": "Running", "reason": "NodeLost"})).failure == ""


def test_a_pod_without_a_phase_is_pending() -> None:
    assert decode_member(pod(status={"phase": None})).phase is Phase.PENDING


def test_binding_gates_and_deletion_are_seen() -> None:
    got = decode_member(
        pod(
            {"nodeName": "node-a", "schedulingGates": [{"name": "example.com/quota"}]},
            deletionTimestamp="2026-01-01T00:01:00Z",
        )
    )
    assert (got.node, got.gated, got.terminating) == ("node-a", True, True)


def test_gates_are_kept_by_name_until_there_are_none() -> None:
    two = [{"name": "example.com/quota"}, {"name": "another.io/hold"}]
    member = decode_member(pod({"schedulingGates": two}))
    assert member.gates == ("another.io/hold", "example.com/quota")
    assert not member.is_waiting
    freed = decode_member(pod({"schedulingGates": []}))
    assert freed.gates == ()
    assert freed.is_waiting


@pytest.mark.parametrize(
    "time", ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00.000000Z"]
)
def test_a_time_is_seconds_since_the_epoch(time: str) -> None:
    assert decode_member(pod(creationTimestamp=time)).created == NEW_YEAR


def test_a_pod_without_a_creation_time_is_as_old_as_can_be() -> None:
    assert decode_member(pod(creationTimestamp=None)).created == 0


def test_a_node_is_read_whole() -> None:
    assert node() == Node(
        name=NodeName("node-a"),
        allocatable=Resources.of(
            {
                "cpu": 63900,
                "memory": 257 * 2**30,
                "ephemeral-storage": 95551679124,
                "nvidia.com/gpu": 8,
                "pods": 110,
            }
        ),
        labels=(("kubernetes.io/hostname", "node-a"), ("pool", "gpu")),
        taints=(
            Taint("gpu", "yes", "NoSchedule"),
            Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"),
        ),
        unschedulable=True,
        ready=True,
    )


@pytest.mark.parametrize(
    "conditions",
    [
        [],
        None,
        [{"type": "Ready", "status": "False"}],
        [{"type": "Ready", "status": "Unknown"}],
        [{"type": "DiskPressure", "status": "True"}],
    ],
)
def test_a_node_is_ready_only_if_it_says_so(conditions: object) -> None:
    assert not node(status={"conditions": conditions}).ready


@pytest.mark.parametrize("amount", ["many", "-5", "", [8], {"value": 8}, True, "-1e-999999999"])
def test_an_amount_that_cannot_be_read_is_offered_as_none_of_it(amount: object) -> None:
    allocatable = node(status={"allocatable": {"nvidia.com/gpu": amount}}).allocatable
    assert (allocatable["nvidia.com/gpu"], allocatable["cpu"]) == (0, 63900)


def test_a_node_without_a_status_offers_nothing() -> None:
    assert node(status=None, spec=None).allocatable == Resources()


def test_a_node_cannot_offer_host_ports_under_the_name_of_a_resource() -> None:
    made = node(status={"allocatable": {"port:80/TCP": "9", "cpu": "1"}})
    assert not any(name.startswith("port:") for name in made.allocatable.names)


def test_a_pod_group_is_read_whole() -> None:
    assert decode_group(wire.parse_one(GROUP, PodGroup)) == GangObject(
        key=GangKey("ml", "train"),
        uid=Uid("g-1"),
        generation=3,
        min_member=9,
        roles=(Role("driver", 1), Role("worker", 8)),
        created=NEW_YEAR,
        terminating=False,
        version="99",
        status={"phase": "Waiting", "members": {"needed": 9, "seen": 2}},
    )


@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        ({"minMember": 4}, 4),
        ({"roles": [{"name": "a", "minMember": 2}, {"name": "b", "minMember": 3}]}, 5),
        ({"minMember": 7, "roles": [{"name": "a", "minMember": 2}]}, 7),
        ({"roles": [{"name": "a"}]}, 1),
        ({}, 1),
        ({"minMember": None, "roles": None}, 1),
        ({"minMember": 0}, 1),
        ({"minMember": -3, "roles": [{"name": "a", "minMember": -1}]}, 1),
    ],
)
def test_the_roles_add_up_where_min_member_is_absent(spec: dict[str, Any], needed: int) -> None:
    assert group(**spec).min_member == needed


TEMPLATE = {
    "resources": {"cpu": "1500m", "memory": "1Gi"},
    "nodeSelector": {"pool": "spark"},
    "tolerations": [{"key": "spark", "operator": "Exists"}],
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
            ]
        }
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"tutti.dev/role": "worker"}},
            "matchLabelKeys": ["app", "tutti.dev/pod-group"],
        }
    ],
    "labels": {"app": "x"},
}


def templated(template: Mapping[str, Any], **spec: object) -> GangObject:
    return group(roles=[{"name": "worker", "minMember": 2, "template": template}], **spec)


def test_a_template_is_read_as_the_pod_that_will_be_made_of_it() -> None:
    gang_object = templated(TEMPLATE)
    (role,) = gang_object.roles
    assert role.template is not None
    pod = {
        "metadata": {
            "name": "p",
            "namespace": gang_object.key.namespace,
            "uid": "u",
            "labels": {
                "app": "x",
                "tutti.dev/pod-group": gang_object.key.name,
                "tutti.dev/role": "worker",
            },
        },
        "spec": {
            "containers": [{"resources": {"requests": TEMPLATE["resources"]}}],
            **{name: TEMPLATE[name] for name in TEMPLATE.keys() - {"resources", "labels"}},
        },
    }
    member = decode_member(wire.parse_one(pod, wire.Pod))
    assert (role.template.shape, role.template.labels) == (member.shape, member.labels)
    assert [len(one.peers.selector or ()) for one in member.shape.rules.spread] == [3]
    assert gang_object.absent_seconds == 600.0
    assert gang_object.owner_pod == ""


def test_for_how_long_absent_members_are_awaited_and_who_makes_them() -> None:
    assert templated(TEMPLATE, absentMemberTimeoutSeconds=5).absent_seconds == 5.0
    owned = GROUP["metadata"] | {"ownerReferences": [{"kind": "Job", "name": "j"}]}
    assert decode_group(wire.parse_one(GROUP | {"metadata": owned}, PodGroup)).owner_pod == ""
    owned = owned | {"ownerReferences": [{"kind": "Pod", "name": "driver"}]}
    gang_object = decode_group(wire.parse_one(GROUP | {"metadata": owned}, PodGroup))
    assert gang_object.owner_pod == "driver"
    assert Gang.of(gang_object, ()).owner_pod == "driver"


def test_a_template_whose_amounts_cannot_be_read_is_not_guessed() -> None:
    with pytest.raises(BadObject) as caught:
        templated({"resources": {"cpu": "two"}})
    assert caught.value.sentence.startswith("the template of role worker cannot be read: ")


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"-": "x"}},
        {"matchExpressions": [{"key": "app", "operator": "In"}]},
    ],
)
def test_a_template_with_a_selector_that_cannot_be_read_is_none(selector: object) -> None:
    term = {"topologyKey": "zone", "labelSelector": selector}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    gang_object = templated({"resources": {"cpu": "1"}, "affinity": {"podAffinity": terms}})
    unreadable = ("a malformed spec.affinity.podAffinity",)
    assert gang_object.roles == (Role("worker", 2, unreadable=unreadable),)


@pytest.mark.parametrize(("said", "meant"), [(None, None), (8, 8), (1, 2), (-1, 2)])
def test_a_role_has_no_maximum_below_its_minimum(said: int | None, meant: int | None) -> None:
    role = {"name": "worker", "minMember": 2, "maxMember": said}
    assert group(roles=[role]).roles == (Role("worker", 2, meant),)


@pytest.mark.parametrize(
    ("said", "meant"),
    [("Release", OnPartial.RELEASE), ("Complete", OnPartial.COMPLETE), ("odd", OnPartial.COMPLETE)],
)
def test_what_is_done_with_a_partial_gang_is_release_only_where_that_is_said(
    said: str, meant: OnPartial
) -> None:
    assert group(minMember=1, onPartial=said).on_partial is meant
    assert group(minMember=1).on_partial is OnPartial.COMPLETE


@pytest.mark.parametrize(("role", "is_driver"), [("driver", True), ("executor", False)])
def test_a_spark_driver_is_known_by_its_label(role: str, *, is_driver: bool) -> None:
    assert decode_member(pod(labels={"spark-role": role})).is_driver is is_driver


def rule(action: str, *types: str) -> dict[str, Any]:
    return {"action": action, "onPodConditions": [{"type": each} for each in types]}


JOBS: dict[str, tuple[dict[str, Any], dict[str, Any], int | None]] = {
    "by default": ({}, {}, 6),
    "some have failed": ({"backoffLimit": 9}, {"failed": 2}, 7),
    "some are not counted yet": (
        {"backoffLimit": 9},
        {"failed": 2, "uncountedTerminatedPods": {"failed": ["a", "b"]}},
        5,
    ),
    "more than allowed have failed": ({"backoffLimit": 0}, {"failed": 2}, 0),
    "counted by index": ({"backoffLimitPerIndex": 3}, {}, 0),
    "disruptions are ignored": (
        {"backoffLimit": 0, "podFailurePolicy": {"rules": [rule("Ignore", "DisruptionTarget")]}},
        {"failed": 3},
        None,
    ),
    "disruptions are ignored by a later rule": (
        {
            "podFailurePolicy": {
                "rules": [rule("Ignore", "ConfigIssue"), rule("Ignore", "DisruptionTarget")]
            }
        },
        {},
        None,
    ),
    "another rule may match first": (
        {
            "podFailurePolicy": {
                "rules": [{"action": "FailJob"}, rule("Ignore", "DisruptionTarget")]
            }
        },
        {},
        6,
    ),
    "disruptions count": ({"podFailurePolicy": {"rules": [rule("Ignore", "Odd")]}}, {}, 6),
}


@pytest.mark.parametrize("name", JOBS)
def test_a_job_says_how_many_failures_it_stands(name: str) -> None:
    spec, status, left = JOBS[name]
    metadata = {"name": "train", "namespace": "ml", "uid": "j"}
    body = {"metadata": metadata, "spec": spec, "status": status}
    assert decode_job(wire.parse_one(body, wire.Job)) == Job("ml", "train", left)


def test_a_reservation_is_read_whole() -> None:
    assert held() == Reservation(
        gang=GangKey("ml", "train"),
        uid=Uid("g-1"),
        generation=3,
        scheduler="tutti",
        term="tutti-0@2026-01-01T00:00:00Z",
        reserved_at=NEW_YEAR + 60,
        entries=(
            PodReservation(PodKey("ml", "train-0"), Uid("u0"), NodeName("node-a")),
            PodReservation(PodKey("ml", "train-1"), Uid("u1"), NodeName("node-a")),
        ),
        slots=(SlotReservation(NodeName("node-b"), "worker", 3),),
        version="100",
        self_uid=Uid("r-1"),
    )


@pytest.mark.parametrize(
    ("placement", "sentence"),
    [
        ([{"node": "a", "slots": {"w": 0}}], "a slot counts less than 1 member"),
        (
            [{"node": n, "pods": [{"name": "p", "uid": "u"}]} for n in ("a", "b")],
            "it places the same pod twice",
        ),
    ],
)
def test_a_reservation_that_makes_no_sense_is_refused(placement: object, sentence: str) -> None:
    with pytest.raises(BadObject, match=f"^ml/g-1: {sentence}$"):
        held(placement=placement)


RECORD: dict[str, Any] = {
    "name": "vision",
    "uid": "q-1",
    "startedAt": "2026-01-01T00:00:00.5Z",
    "minimum": [
        {"role": "worker", "members": 2, "requests": {"cpu": "1500m", "pods": 2}},
        {"role": "driver", "members": 1},
    ],
}


def test_the_record_of_a_start_is_read_by_role() -> None:
    assert held(queue=RECORD).record == QueueRecord(
        "vision",
        Uid("q-1"),
        NEW_YEAR + 0.5,
        (
            RoleAtStart("driver", 1, Resources()),
            RoleAtStart("worker", 2, Resources.of({"cpu": 1500, "pods": 2})),
        ),
    )
    root = {"name": "root", "startedAt": RECORD["startedAt"]}
    assert held(queue=root).record == QueueRecord("root", Uid(""), NEW_YEAR + 0.5)


@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        ({"members": 0}, ": it counts less than 1 member of a role"),
        ({"members": 1, "requests": {"cpu": "lots"}}, " cannot be read: 'lots' is not a quantity"),
    ],
)
def test_a_record_that_makes_no_sense_is_refused(start: object, sentence: str) -> None:
    with pytest.raises(BadObject, match=f"^ml/g-1: spec.queue.minimum{sentence}"):
        held(queue={**RECORD, "minimum": [start]})


@pytest.mark.parametrize("spec", [{}, {"nodeName": "n1"}])
def test_a_request_that_cannot_be_read_is_said(spec: dict[str, Any]) -> None:
    bad = pod({**spec, "containers": [container(cpu="lots")]})
    sentence = "ml/train-0: its request cannot be read: 'lots' is not a quantity"
    with pytest.raises(BadObject, match=sentence):
        decode_member(bad)
    if spec:
        with pytest.raises(BadObject, match=sentence):
            decode_occupant(bad)


def test_objects_without_a_name_or_uid_are_refused() -> None:
    with pytest.raises(BadObject, match=r"^a Pod without a name: its metadata has no name$"):
        decode_member(wire.Pod())
    with pytest.raises(BadObject, match=r"^a Node without a name: its metadata has no name$"):
        decode_node(wire.Node())
    with pytest.raises(BadObject, match=r"^ml/train-0: its metadata has no uid$"):
        decode_occupant(pod(uid=None))


def test_names_in_any_script_are_kept() -> None:
    got = decode_member(pod(labels={"tutti.dev/pod-group": "поезд-列車-🚂"}))
    assert got.group == "поезд-列車-🚂"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
PATHS = st.sampled_from(
    [
        ("metadata",),
        ("metadata", "labels"),
        ("metadata", "creationTimestamp"),
        ("metadata", "ownerReferences"),
        ("spec",),
        ("spec", "containers"),
        ("spec", "tolerations"),
        ("spec", "affinity"),
        ("spec", "nodeSelector"),
        ("spec", "volumes"),
        ("spec", "overhead"),
        ("status",),
        ("status", "conditions"),
        ("status", "allocatable"),
    ]
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PATHS, JSON)
def test_whatever_stands_in_a_field_raises_nothing_but_a_broken_object(
    path: tuple[str, ...], value: object
) -> None:
    change: Any = value
    for key in reversed(path):
        change = {key: change}
    raw = json.dumps({"items": [merged(POD, change), POD]}).encode()
    page = wire.parse_page(raw, wire.Pod)
    assert len(page.items) + len(page.broken) == 2
    for item in page.items:
        with suppress(BadObject):
            decode_member(item)
        with suppress(BadObject):
            decode_occupant(item)


def test_a_priority_class_is_read() -> None:
    metadata = {"name": "high", "uid": "c-1", "resourceVersion": "7"}
    body = {"metadata": metadata, "value": 1000, "globalDefault": False, "description": "urgent"}
    read = decode_priority_class(wire.parse_one(body, PriorityClassObject))
    assert read == PriorityClass("high", 1000)
    lowest = wire.parse_one({"metadata": metadata, "value": -5}, PriorityClassObject)
    assert decode_priority_class(lowest) == PriorityClass("high", -5)


def test_a_namespace_is_read_with_its_labels() -> None:
    metadata = {"name": "ml", "uid": "ns-1", "labels": {"team": "a", "env": "prod"}}
    read = decode_namespace(wire.parse_one({"metadata": metadata}, NamespaceObject))
    assert read == Namespace("ml", (("env", "prod"), ("team", "a")))


def test_a_gang_is_a_pod_group_with_its_pods_and_the_value_of_its_class() -> None:
    gang_object = group(minMember=2, priorityClassName="high")
    assert gang_object.priority_class == "high"
    gang = Gang.of(gang_object, (), class_value=7)
    assert (gang.key, gang.uid, gang.min_member) == (GangKey("ml", "train"), gang_object.uid, 2)
    assert (gang.priority_class, gang.priority) == ("high", 7)
    assert Gang.of(group(minMember=2), ()).priority == 0


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Fail", OnTimeout.FAIL),
        ("KeepWaiting", OnTimeout.KEEP_WAITING),
        ("Delete", OnTimeout.KEEP_WAITING),
        (None, OnTimeout.KEEP_WAITING),
    ],
)
def test_only_who_says_so_is_given_up(said: str | None, meant: OnTimeout) -> None:
    gang_object = group(minMember=1, scheduleTimeoutSeconds=60, onTimeout=said)
    assert (gang_object.timeout_seconds, gang_object.on_timeout) == (60, meant)
    gang = Gang.of(gang_object, ())
    assert (gang.timeout_seconds, gang.on_timeout) == (60, meant)
    assert group(minMember=1).timeout_seconds is None


def test_a_size_of_segments_in_a_file_may_be_any_number() -> None:
    segments = {"size": 10**30, "level": "rack"}
    (rule,) = group(minMember=4, topology={"segments": segments}).segments
    assert rule.size == 5_000, "as the CRD allows at most"


def test_of_several_segments_for_one_role_the_first_count() -> None:
    """The CRD refuses them; an object from before may have them."""
    segments = {"size": 4, "level": "rack"}
    roles = [{"name": "a", "minMember": 4, "topology": {"segments": segments}}]
    groups = [{"roles": ["a"], "segments": segments | {"size": 3}}]
    of_role = SegmentRule(DomainRule("rack", ("a",)), 4)
    assert group(roles=roles, topology={"roleGroups": groups}).segments == (of_role,)
    whole = {"segments": segments | {"indexLabel": "index"}}
    both = group(roles=roles, topology=whole)
    assert both.segments == (SegmentRule(DomainRule("rack"), 4, "index"),)
    for nothing in ({"size": 0, "level": "rack"}, {"size": 2}):
        assert group(minMember=4, topology={"segments": nothing}).segments == ()
