"""PodGroups of Volcano, the pods that name them, and the jobs that make these pods."""

from __future__ import annotations

from typing import Any

import pytest

from tutti.kube import gang_sources, wire
from tutti.kube.codec.decode import decode_member
from tutti.kube.gang_sources import GangOutcome
from tutti.kube.gang_sources.volcano import (
    KIND,
    Job,
    PodGroup,
    decode_group,
    pods_of,
    status_of,
)
from tutti.model.cluster import Role
from tutti.model.keys import POD, POD_GROUP, ApiKind, GangKey
from tutti.model.resources import Resources

from .. import objects

NAME = "podgroups.scheduling.volcano.sh"
GROUP, TASK, VERSION = (
    "scheduling.k8s.io/group-name",
    "volcano.sh/task-spec",
    "volcano.sh/job-version",
)
KEY = GangKey("ml", "train-u", KIND.api)
OWNER = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "j"}
PLUGINS = ApiKind("scheduling.x-k8s.io", "PodGroup")
NOW = "2026-01-01T00:00:00Z"
REQUEST = {"cpu": "1", "memory": "1Gi"}


def group(
    spec: dict[str, Any], status: dict[str, Any] | None = None, *owners: dict[str, Any]
) -> PodGroup:
    metadata = {
        "name": "train-u",
        "namespace": "ml",
        "uid": "u",
        "resourceVersion": "7",
        "generation": 2,
        "ownerReferences": owners,
    }
    return wire.parse_one({"metadata": metadata, "spec": spec, "status": status}, PodGroup)


def pod(**annotations: str) -> wire.Pod:
    body = objects.merged(objects.POD, {"metadata": {"namespace": "ml", "name": "a-0", "uid": "p"}})
    body["metadata"]["labels"] = {}
    body["metadata"]["annotations"] = {
        {"group": GROUP, "task": TASK, "version": VERSION}[name]: value
        for name, value in annotations.items()
    }
    return wire.parse_one(body, wire.Pod)


def job(*tasks: dict[str, Any], **spec: Any) -> Job:
    metadata = {"name": "train", "namespace": "ml", "uid": "j"}
    return wire.parse_one({"metadata": metadata, "spec": {"tasks": tasks, **spec}}, Job)


def task(name: str, replicas: int, requests: dict[str, str], **spec: Any) -> dict[str, Any]:
    main = {"name": "main", "resources": {"requests": requests}}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [main], **spec}}
    return {"name": name, "replicas": replicas, "template": template}


def test_a_pod_group_declares_a_gang_with_a_role_for_each_task() -> None:
    spec = {"minMember": 3, "minTaskMember": {"work": 2, "head": 1}, "priorityClassName": "high"}
    found = decode_group(group({**spec, "queue": "team"}, {"phase": "Running"}))
    assert found is not None
    assert (found.key, found.uid, found.generation, found.version) == (KEY, "u", 2, "7")
    assert (found.min_member, found.priority_class) == (3, "high")
    assert found.roles == (Role("head", 1), Role("work", 2))
    assert found.status == {"phase": "Running"}
    assert found.job_awaiting_room is None


@pytest.mark.parametrize(
    ("spec", "needed", "roles"),
    [
        ({}, 1, ()),
        ({"minMember": 0}, 1, ()),
        ({"minMember": 2, "minTaskMember": {"head": 1, "work": 2}}, 2, ()),
        (
            {"minMember": 3, "minTaskMember": {"head": -1, "work": 2}},
            3,
            (Role("head", 0), Role("work", 2)),
        ),
        ({"minMember": 2**31 - 1, "unknown": {"a": 1}}, 2**31 - 1, ()),
    ],
    ids=["nothing", "zero", "tasks with a larger sum do not count", "negative", "vast"],
)
def test_minimums_are_read_as_volcano_reads_them(
    spec: dict[str, Any], needed: int, roles: tuple[Role, ...]
) -> None:
    found = decode_group(group(spec))
    assert found is not None
    assert (found.min_member, found.roles, found.unsupported_fields) == (needed, roles, ())


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (
            {"networkTopology": {"mode": "firm", "highestTierAllowed": 1}},
            "spec.networkTopology.mode",
        ),
        ({"subGroupPolicy": [{"name": "a"}]}, "spec.subGroupPolicy"),
        (
            {"minMember": 101, "minTaskMember": {f"t{i}": 1 for i in range(101)}},
            "spec.minTaskMember of more than 100 tasks",
        ),
    ],
)
def test_what_tutti_does_not_place_by_is_named(spec: dict[str, Any], field: str) -> None:
    found = decode_group(group(spec))
    assert found is not None
    assert found.unsupported_fields == (field,)
    assert len(found.roles) <= 100


@pytest.mark.parametrize(
    ("network", "required", "preferred"),
    [
        ({"highestTierAllowed": 2}, "tier 2", ""),
        ({"mode": "hard", "highestTierAllowed": 1}, "tier 1", ""),
        ({"mode": "hard", "highestTierName": "example.com/rack"}, "example.com/rack", ""),
        ({"mode": "hard"}, "", ""),
        ({"mode": "soft"}, "", "tier 1"),
        ({"mode": "soft", "highestTierAllowed": 2}, "", "tier 2"),
        ({"mode": "soft", "highestTierName": "example.com/rack"}, "", "example.com/rack"),
    ],
)
def test_a_tier_is_a_level_of_a_topology(
    network: dict[str, Any], required: str, preferred: str
) -> None:
    found = decode_group(group({"minMember": 2, "networkTopology": network}))
    assert found is not None
    assert [rule.level for rule in found.same_domain] == [required][: bool(required)]
    assert [rule.level for rule in found.preferred_domains] == [preferred][: bool(preferred)]
    assert found.unsupported_fields == ()


def test_the_group_of_one_that_volcano_makes_for_a_bare_pod_is_none() -> None:
    """The pod starts alone, as it would without it, or in the gang that it names."""
    body: dict[str, Any] = {
        "name": "podgroup-p",
        "namespace": "ml",
        "uid": "u",
        "resourceVersion": "7",
    }
    body["ownerReferences"] = [{"kind": "Pod", "name": "a-0", "uid": "p", "controller": True}]
    assert decode_group(wire.parse_one({"metadata": body, "spec": {}}, PodGroup)) is None
    member = decode_member(pod(group="podgroup-p"), gang_sources.chosen([NAME]))
    assert (member.gang.kind, member.other_gangs) == (POD, ())


@pytest.mark.parametrize(
    ("owner", "labels", "kind"),
    [
        ("ReplicaSet", {}, KIND.api),  # which may say how many start together
        ("ReplicaSet", {"tutti.dev/pod-group": "own"}, POD_GROUP),
        ("MPIJob", {"scheduling.x-k8s.io/pod-group": "pi"}, PLUGINS),
        ("Pod", {}, POD),  # as a Spark driver and its executors
    ],
)
def test_a_group_that_volcano_makes_for_any_pod_yields_to_others(
    owner: str, labels: dict[str, str], kind: ApiKind
) -> None:
    """It has one member, or as many as the owner says; an Event on each pod would be noise."""
    body = objects.merged(objects.POD, {"metadata": {"namespace": "ml", "name": "a-0", "uid": "p"}})
    body["metadata"] |= {"labels": labels, "annotations": {GROUP: "podgroup-o"}}
    body["metadata"]["ownerReferences"] = [{"kind": owner, "name": "x", "uid": "o"}]
    sources = gang_sources.chosen([NAME, "podgroups.scheduling.x-k8s.io"])
    member = decode_member(wire.parse_one(body, wire.Pod), sources)
    assert (member.gang.kind, member.other_gangs) == (kind, ())


def test_a_pod_that_names_two_gangs_is_in_the_first_and_says_so() -> None:
    labels = {"scheduling.x-k8s.io/pod-group": "pi"}
    body = objects.merged(objects.POD, {"metadata": {"namespace": "ml", "name": "a-0", "uid": "p"}})
    body["metadata"] |= {"labels": labels, "annotations": {GROUP: "train-u"}}
    sources = gang_sources.chosen([NAME, "podgroups.scheduling.x-k8s.io"])
    member = decode_member(wire.parse_one(body, wire.Pod), sources)
    assert (member.gang, member.other_gangs) == (KEY, (GangKey("ml", "pi", PLUGINS),))


def test_the_group_of_a_leader_is_a_gang() -> None:
    """LeaderWorkerSet's groups belong to a pod as well."""
    leader = {"kind": "Pod", "name": "serve-0", "uid": "p", "controller": True}
    found = decode_group(group({"minMember": 3}, None, leader))
    assert found is not None
    assert (found.owner, found.owner_pod, found.job_awaiting_room) == (None, "", None)


@pytest.mark.parametrize(
    ("status", "owner", "awaits"),
    [
        (None, {**OWNER, "controller": True}, ("train", "j")),
        ({"phase": ""}, {**OWNER, "controller": True}, ("train", "j")),
        ({"phase": "Pending"}, {**OWNER, "controller": True}, ("train", "j")),
        ({"phase": "Inqueue"}, {**OWNER, "controller": True}, None),
        (None, OWNER, None),
        (None, {**OWNER, "apiVersion": "batch/v1", "controller": True}, None),
    ],
)
def test_a_vcjob_waits_for_room(
    status: dict[str, Any] | None, owner: dict[str, Any], awaits: tuple[str, str] | None
) -> None:
    found = decode_group(group({"minMember": 3}, status, owner))
    assert found is not None
    assert found.job_awaiting_room == awaits


def test_what_it_needs_is_read_without_the_names_of_quotas() -> None:
    amounts = {
        "cpu": "5",
        "requests.cpu": "5",
        "limits.cpu": "9",
        "pods": "3",
        "count/pods": "3",
        "memory": "much",
    }
    found = decode_group(group({"minResources": amounts}))
    assert found is not None
    assert found.min_resources == Resources.of({"cpu": 5000})


@pytest.mark.parametrize(
    ("annotations", "role", "run"),
    [
        ({}, "", 0),
        ({"task": "head", "version": "6"}, "head", 6),
        ({"version": "-1"}, "", 0),
        ({"version": "9" * 5000}, "", 0),
        ({"version": "²"}, "", 0),
    ],
)
def test_a_pod_says_its_group_task_and_run(
    annotations: dict[str, str], role: str, run: int
) -> None:
    member = decode_member(pod(group="train-u", **annotations), gang_sources.chosen([NAME]))
    assert (member.gang, member.role, member.run) == (KEY, role, run)


def test_a_pod_of_an_unread_source_has_none_of_it() -> None:
    member = decode_member(pod(group="train-u", task="head", version="1"))
    assert (member.gang.kind, member.role, member.run) == (POD, "", 0)


def test_the_tasks_of_a_job_are_roles_with_templates() -> None:
    declared = decode_group(group({"minMember": 3, "minTaskMember": {"head": 1, "work": 2}}))
    assert declared is not None
    pods = pods_of(job(task("head", 1, REQUEST), task("work", 4, REQUEST)), declared)
    head, work = pods.roles
    assert (head.name, head.min_member, head.max_member) == ("head", 1, 1)
    assert (work.name, work.min_member, work.max_member) == ("work", 2, 4)
    assert work.template is not None
    assert work.template.shape.requests["cpu"] == 1000
    assert dict(work.template.labels)["volcano.sh/task-spec"] == "work"


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (task("a", 1, {"cpu": "much"}), "the template of task a cannot be read"),
        (task("a", 1, REQUEST, resourceClaims=[{"name": "x"}]), "uses spec.resourceClaims"),
    ],
)
def test_a_template_that_tutti_does_not_place_is_none(bad: dict[str, Any], sentence: str) -> None:
    declared = decode_group(group({}))
    assert declared is not None
    pods = pods_of(job(bad, schedulerName="tutti"), declared)
    assert (len(pods.roles), pods.schedulers) == (0, frozenset({"tutti"}))
    assert sentence in pods.problem


@pytest.mark.parametrize(
    ("of_job", "of_tasks", "names"),
    [
        ("tutti", ["", "tutti"], {"tutti"}),
        ("volcano", ["", "tutti"], {"volcano", "tutti"}),
        ("volcano", ["tutti"], {"tutti"}),
        ("tutti", ["volcano"], {"volcano"}),
        ("", [""], {""}),
        ("tutti", [], set()),
    ],
)
def test_a_template_without_a_scheduler_has_that_of_its_job(
    of_job: str, of_tasks: list[str], names: set[str]
) -> None:
    """As in Volcano's createJobPod."""
    declared = decode_group(group({}))
    assert declared is not None
    tasks = [task(f"t{i}", 1, REQUEST, schedulerName=name) for i, name in enumerate(of_tasks)]
    assert pods_of(job(*tasks, schedulerName=of_job), declared).schedulers == names


def outcome(**counts: Any) -> GangOutcome:
    needed = counts.pop("needed", 3)
    is_whole = counts.get("bound", 0) >= needed
    message = "" if is_whole else "no room"
    return GangOutcome(
        2, is_whole, "" if is_whole else "NotEnoughRoom", message, needed=needed, **counts
    )


@pytest.mark.parametrize(
    ("observed", "counts", "phase"),
    [
        ("", {}, "Pending"),
        ("Pending", {}, "Pending"),
        ("Inqueue", {}, "Inqueue"),
        ("Unknown", {}, "Unknown"),
        ("", {"seen": 3}, "Inqueue"),
        ("Pending", {"seen": 3, "bound": 2}, "Inqueue"),
        ("Unknown", {"seen": 3}, "Inqueue"),
        ("Inqueue", {"seen": 3, "bound": 3}, "Running"),
        ("Running", {"seen": 2, "bound": 2}, "Running"),
        ("Running", {"seen": 3, "bound": 3, "succeeded": 2}, "Running"),
        ("Running", {"seen": 3, "bound": 3, "succeeded": 3}, "Completed"),
        ("Running", {"seen": 3, "bound": 1, "failed": 2}, "Running"),
        ("Running", {"seen": 3, "bound": 0, "failed": 3}, "Completed"),
        ("Completed", {"seen": 3}, "Inqueue"),
    ],
)
def test_the_phase_is_that_of_volcanos_scheduler(
    observed: str, counts: dict[str, int], phase: str
) -> None:
    """But never Unknown, which restarts jobs, and Pending no more once pods may be made."""
    status = {"phase": observed} if observed else {}
    assert status_of(outcome(**counts), status, NOW, keep_sentences=False)["phase"] == phase


@pytest.mark.parametrize("observed", ["", "Pending", "Inqueue", "Running", "Completed", "odd"])
@pytest.mark.parametrize("seen", [0, 1, 3])
@pytest.mark.parametrize("bound", [0, 1, 3])
def test_unknown_is_never_written(observed: str, seen: int, bound: int) -> None:
    found = status_of(
        outcome(seen=seen, bound=bound), {"phase": observed}, NOW, keep_sentences=False
    )
    assert found["phase"] != "Unknown"


def test_a_gang_that_waits_says_why_and_one_that_is_whole_says_so() -> None:
    waiting = status_of(outcome(seen=3, bound=0), {}, NOW, keep_sentences=False)
    (line,) = waiting["conditions"]
    assert line == {
        "type": "Unschedulable",
        "status": "True",
        "reason": "NotEnoughResources",
        "message": "3/3 tasks in gang unschedulable: no room",
        "lastTransitionTime": NOW,
        "transitionID": "2",
    }
    whole = status_of(outcome(seen=3, bound=3, running=1), waiting, NOW, keep_sentences=False)
    assert [(condition["type"], condition["status"]) for condition in whole["conditions"]] == [
        ("Unschedulable", "True"),
        ("Scheduled", "True"),
    ]
    assert (whole["running"], whole.get("failed")) == (1, None)


def test_what_stands_there_stays_as_it_is() -> None:
    """What others have written beside it, too; the same is not written with another time."""
    odd = {"type": "Other", "status": "True"}
    first = status_of(outcome(seen=3), {"conditions": [odd]}, NOW, keep_sentences=False)
    assert first["conditions"][0] == odd
    assert status_of(outcome(seen=3), first, "later", keep_sentences=False) == first
    other = outcome(seen=3)._replace(message="other words")
    assert status_of(other, first, "later", keep_sentences=True) == first
    assert status_of(other, first, "later", keep_sentences=False) != first


@pytest.mark.parametrize("conditions", [None, "odd", ["odd", 3], {}])
def test_odd_conditions_are_put_right(conditions: object) -> None:
    found = status_of(outcome(seen=3), {"conditions": conditions}, NOW, keep_sentences=False)
    assert [condition["type"] for condition in found["conditions"]] == ["Unschedulable"]


def test_a_job_without_pods_says_which_of_its_fields_keeps_it() -> None:
    message = "the PodGroup uses spec.subGroupPolicy"
    refused = outcome()._replace(reason="NotModelled", message=message)
    found = status_of(refused, {}, NOW, keep_sentences=False)
    assert found["conditions"][0]["message"] == f"3/0 tasks in gang unschedulable: {message}"


def test_a_job_without_pods_says_what_they_wait_for() -> None:
    waiting = outcome()._replace(reason="WaitingForMembers", message="0 of 3 members")
    found = status_of(waiting, {}, NOW, keep_sentences=False)
    assert "made once there is room" in found["conditions"][0]["message"]


def test_a_job_without_pods_says_what_is_wrong_with_its_queue() -> None:
    message = "there is no Queue tema"
    refused = outcome()._replace(reason="UnknownQueue", message=message)
    found = status_of(refused, {}, NOW, keep_sentences=False)
    assert found["conditions"][0]["message"] == f"3/0 tasks in gang unschedulable: {message}"


@pytest.mark.parametrize(
    ("name", "queue", "if_exists"),
    [("team", "team", ""), ("default", "", "default"), ("", "", "")],
)
def test_a_queue_counts_but_volcanos_default_only_where_it_exists(
    name: str, queue: str, if_exists: str
) -> None:
    """Volcano's webhook names the default where users have named no queue."""
    found = decode_group(group({"queue": name}))
    assert found is not None
    assert (found.queue, found.queue_if_exists) == (queue, if_exists)
