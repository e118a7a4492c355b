"""Manifests that were never applied are read as they would be once they are."""

from typing import Any

import pytest
import yaml

from tutti import dump
from tutti.kube import kinds
from tutti.model.cluster import Namespace
from tutti.model.inter_pod import AffinityTerm, InterPodRules, PodSelector, Requirement
from tutti.model.owners import Job
from tutti.model.resources import Resources

NOW = "2026-01-01T00:00:00Z"
SEEN = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"creationTimestamp": NOW}}


def read(*raw: object) -> dump.Objects:
    return dump.read([dump.Text("some.yaml", yaml.safe_dump_all(raw).encode())])


def node(status: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": status}


def template(**resources: Any) -> dict[str, Any]:
    return {
        "metadata": {"labels": {"tutti.dev/pod-group": "g", "tutti.dev/role": "worker"}},
        "spec": {
            "schedulerName": "tutti",
            "containers": [{"name": "main", "resources": resources}],
        },
    }


def workload(kind: str, group: str, **spec: Any) -> dict[str, Any]:
    limits = {"cpu": "2", "nvidia.com/gpu": 1}
    body = {"template": template(limits=limits, requests={"cpu": "1"}), **spec}
    about = {"name": "w", "namespace": "ml"}
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": about, "spec": body}


def test_a_node_that_says_nothing_of_itself_is_ready_and_offers_what_it_has() -> None:
    (found,) = read(node({"capacity": {"cpu": "4", "memory": "1Gi"}})).of(kinds.NODE)
    assert found.ready
    assert found.allocatable == Resources.of({"cpu": 4000, "memory": 2**30, "pods": 110})


def test_what_a_node_does_say_counts() -> None:
    said = {
        "capacity": {"cpu": "8"},
        "allocatable": {"cpu": "4", "pods": "7"},
        "conditions": [{"type": "Ready", "status": "False"}],
    }
    (found,) = read(node(said)).of(kinds.NODE)
    assert not found.ready
    assert found.allocatable == Resources.of({"cpu": 4000, "pods": 7})


COUNTS = {
    "a Job": (workload("Job", "batch", parallelism=4), 4),
    "a Job that ends early": (workload("Job", "batch", parallelism=4, completions=3), 3),
    "a Job without a number": (workload("Job", "batch"), 1),
    "a Deployment": (workload("Deployment", "apps", replicas=2), 2),
    "a StatefulSet": (workload("StatefulSet", "apps", replicas=0), 0),
}


@pytest.mark.parametrize("name", COUNTS)
def test_a_workload_counts_as_the_pods_that_it_would_make(name: str) -> None:
    raw, count = COUNTS[name]
    objects = read(SEEN, raw)
    assert [member.key.name for member in objects.members] == [f"w-{i}" for i in range(count)]
    assert objects.skipped == {"ConfigMap": 1}
    for member in objects.members:
        assert (member.key.namespace, member.group, member.role) == ("ml", "g", "worker")
        assert member.owner is not None
        assert member.owner.kind == raw["kind"]
        assert member.created == objects.taken_at == 1_767_225_600.0
        asked = {"cpu": 1000, "nvidia.com/gpu": 1, "pods": 1}
        assert member.shape.requests == Resources.of(asked)


@pytest.mark.parametrize("n", ["many", -1, 10**9, True, [3]])
def test_a_number_of_pods_that_makes_no_sense_is_refused(n: object) -> None:
    for raw in (
        workload("ReplicaSet", "apps", replicas=n),
        workload("Job", "batch", parallelism=2, completions=n),
    ):
        with pytest.raises(dump.BadFile, match=r"document 1 .*: is not a number of pods"):
            read(raw)


def test_a_workload_that_exists_has_made_its_pods() -> None:
    raw = workload("Deployment", "apps", replicas=4)
    raw["metadata"]["uid"] = "u"
    objects = read(raw)
    assert objects.members == ()
    assert objects.skipped == {"Deployment.apps": 1}


@pytest.mark.parametrize("uid", ["u", None])
def test_how_many_failures_a_job_tolerates_counts_whether_it_exists_or_not(
    uid: str | None,
) -> None:
    raw = workload("Job", "batch", backoffLimit=2)
    raw["metadata"]["uid"] = uid
    objects = read(raw)
    assert objects.of(kinds.JOB) == (Job("ml", "w", 2),)
    assert len(objects.members) == (uid is None)


def test_the_moment_of_files_is_that_of_the_youngest_object() -> None:
    old = {"apiVersion": "v1", "kind": "ConfigMap"}
    ages = (
        "2020-01-01T00:00:00Z",
        "2025-01-01T00:00:00+01:00",
        "nonsense",
        "9999-12-31T23:59:59-12:00",
        None,
    )
    objects = read(*({**old, "metadata": {"creationTimestamp": age}} for age in ages))
    assert objects.taken_at == 1_735_686_000.0


SELECTED = "requiredDuringSchedulingIgnoredDuringExecution"
WISHED = "preferredDuringSchedulingIgnoredDuringExecution"


def ruled(**kinds: Any) -> dict[str, Any]:
    """A Deployment of two whose pods have this affinity."""
    made = workload("Deployment", "apps", replicas=2)
    body = made["spec"]["template"]
    body["metadata"]["labels"]["app"] = "x"
    body["spec"]["affinity"] = kinds
    return made


def rules(objects: dump.Objects) -> InterPodRules:
    """What all members ask for."""
    (one,) = {member.shape.rules for member in objects.members}
    return one


def test_keys_that_match_by_the_pods_own_labels_are_merged_as_on_creation() -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
        "matchLabelKeys": ["app", "absent", 7],
        "mismatchLabelKeys": ["tutti.dev/role"],
    }
    merged = (
        Requirement("app", "In", ("x",)),
        Requirement("team", "Exists"),
        Requirement("tutti.dev/role", "NotIn", ("worker",)),
    )
    want = AffinityTerm("zone", PodSelector(merged, ("ml",)))
    both = {SELECTED: [term], WISHED: [{"weight": 1, "podAffinityTerm": term}]}
    assert rules(
        read(ruled(podAffinity=both, podAntiAffinity={SELECTED: [term]}))
    ) == InterPodRules((want,), (want,))


def test_keys_match_nothing_more_without_a_selector() -> None:
    term = {"topologyKey": "zone", "labelSelector": None, "matchLabelKeys": ["app"]}
    inter_pod_rules = rules(
        read(ruled(podAntiAffinity={SELECTED: [term, {**term, "labelSelector": {}}]}))
    )
    assert [one.peers.selector for one in inter_pod_rules.anti_affinity] == [
        None,
        (Requirement("app", "In", ("x",)),),
    ]


@pytest.mark.parametrize(
    "affinity",
    [
        {SELECTED: 7},
        {SELECTED: [7]},
        {SELECTED: [{"labelSelector": 7, "matchLabelKeys": ["app"]}]},
        {SELECTED: [{"labelSelector": {"matchExpressions": 7}, "matchLabelKeys": ["app"]}]},
        {WISHED: 7},
        {WISHED: [7]},
        {WISHED: [{"podAffinityTerm": 7}]},
    ],
)
def test_an_affinity_that_is_none_is_refused_in_one_sentence(affinity: dict[str, Any]) -> None:
    with pytest.raises(dump.BadFile, match="podAffinity"):
        read(ruled(podAffinity=affinity))


def test_nodes_and_namespaces_are_labelled_with_their_names() -> None:
    about = {"name": "ml", "labels": {"team": "a"}}
    objects = read(node({}), {"apiVersion": "v1", "kind": "Namespace", "metadata": about})
    assert objects.of(kinds.NODE)[0].labels == (("kubernetes.io/hostname", "n1"),)
    (space,) = objects.of(kinds.NAMESPACE)
    assert space == Namespace("ml", (("kubernetes.io/metadata.name", "ml"), ("team", "a")))


@pytest.mark.parametrize("kind", ["Node", "Namespace"])
def test_labels_that_are_none_are_refused_in_one_sentence(kind: str) -> None:
    with pytest.raises(dump.BadFile, match="labels"):
        read({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "labels": 7}})


def test_a_namespace_is_there_where_a_pod_is() -> None:
    other = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "namespace": "db"}}
    other["spec"] = {"nodeName": "n1", "containers": []}
    about = {"name": "ml", "uid": "u", "labels": {"team": "a"}}
    known = {"apiVersion": "v1", "kind": "Namespace", "metadata": about}
    objects = read(workload("Job", "batch"), other, known)
    assert objects.of(kinds.NAMESPACE) == (
        Namespace("ml", (("team", "a"),)),
        Namespace("db", (("kubernetes.io/metadata.name", "db"),)),
    )
