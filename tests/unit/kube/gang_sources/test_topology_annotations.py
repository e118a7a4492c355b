"""Levels that annotations of Kueue and KAI name, on JobSets and RayClusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tutti.kube import wire
from tutti.kube.gang_sources.jobset import JobSet, decode_set
from tutti.kube.gang_sources.ray import RayCluster, decode_cluster
from tutti.model.inter_pod import DomainRule, SegmentRule

if TYPE_CHECKING:
    from tutti.kube.gang_sources.base import GangObject

KUEUE = "kueue.x-k8s.io/podset-"
REQUIRED, PREFERRED = f"{KUEUE}required-topology", f"{KUEUE}preferred-topology"
SLICES = f"{KUEUE}slice-required-topology"
KAI = "kai.scheduler/topology-{}-placement"
INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_KEY = "pod-index-label"


def template(**annotations: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {KUEUE + key: value for key, value in annotations.items()}}}


def sliced(size: str, level: str = "rack", **more: str) -> dict[str, Any]:
    return template(**{"slice-required-topology": level, "slice-size": size, **more})


def jobset(metadata: dict[str, Any] | None = None, /, **templates: dict[str, Any]) -> GangObject:
    jobs = [
        {"name": name, "template": {"spec": {"parallelism": 4, "template": pods}}}
        for name, pods in templates.items()
    ]
    body = {"name": "tune", "namespace": "ml", "uid": "u", **(metadata or {})}
    return decode_set(wire.parse_one({"metadata": body, "spec": {"replicatedJobs": jobs}}, JobSet))


def test_the_levels_of_a_template_are_those_of_its_pods() -> None:
    node = template(**{"required-topology": "block", "preferred-topology": "rack"})
    gang = jobset(node=node, driver=template(**{"unconstrained-topology": "true"}))
    assert gang.same_domain == (DomainRule("block", ("node",)),)
    assert gang.preferred_domains == (DomainRule("rack", ("node",)),)
    assert (gang.segments, gang.unsupported_fields) == ((), ())


def test_templates_of_one_group_are_in_one_domain_together() -> None:
    both = template(**{"required-topology": "rack", "group-name": "all"})
    alone = template(**{"required-topology": "rack"})
    gang = jobset(node=both, driver=both, store=alone)
    assert gang.same_domain == (
        DomainRule("rack", ("driver", "node")),
        DomainRule("rack", ("store",)),
    )


def test_slices_are_segments_by_the_completion_index() -> None:
    gang = jobset(node=sliced("2", **{"required-topology": "block"}))
    assert gang.segments == (SegmentRule(DomainRule("rack", ("node",)), 2, INDEX),)
    assert gang.same_domain == (DomainRule("block", ("node",)),)
    assert gang.unsupported_fields == ()


@pytest.mark.parametrize("size", ["", "0", "-2", "two", "5001", "9" * 5000, "\u0662"])
def test_a_size_of_slices_that_is_no_number_keeps_the_gang_waiting(size: str) -> None:
    gang = jobset(node=sliced(size))
    problem = "kueue.x-k8s.io/podset-slice-size is no number from 1 to 5000"
    assert gang.unsupported_fields == (f"annotation {SLICES} of node: {problem}",)
    assert gang.segments == ()


def test_slices_in_layers_keep_the_gang_waiting() -> None:
    layers = template(**{"slice-required-topology-constraints": "[]"})
    assert jobset(node=layers).unsupported_fields == (f"annotation {SLICES}-constraints of node",)


def test_slices_and_a_preferred_level_go_together() -> None:
    gang = jobset(node=sliced("2", **{"preferred-topology": "block"}))
    assert gang.unsupported_fields == ()
    assert gang.segments == (SegmentRule(DomainRule("rack", ("node",)), 2, INDEX),)
    assert gang.preferred_domains == (DomainRule("block", ("node",)),)


def test_slices_of_several_equal_jobs_keep_the_gang_waiting() -> None:
    """Their pods have the same indexes."""
    job = {"name": "node", "replicas": 2, "template": {"spec": {"template": sliced("2")}}}
    body = {"metadata": {"name": "a", "uid": "u"}, "spec": {"replicatedJobs": [job]}}
    gang = decode_set(wire.parse_one(body, JobSet))
    words = f"annotation {SLICES} of node: there are 2 replicas of the Job, not 1"
    assert gang.unsupported_fields == (words,)


def test_while_kueue_decides_on_a_job_its_annotations_are_not_read() -> None:
    """Kueue chooses the domain itself, and says it to pods by a selector."""
    labels = {"labels": {"kueue.x-k8s.io/queue-name": "team"}}
    gang = jobset(labels, node=sliced("2", **{"required-topology": "block"}))
    assert (gang.same_domain, gang.segments, gang.unsupported_fields) == ((), (), ())


def test_the_levels_of_kai_are_those_of_all_pods() -> None:
    annotations = {KAI.format("required"): "block", KAI.format("preferred"): "rack"}
    metadata = {"annotations": {"kai.scheduler/topology": "network", **annotations}}
    gang = jobset(metadata, node=template(**{"required-topology": "rack"}))
    assert gang.same_domain == (DomainRule("block"), DomainRule("rack", ("node",)))
    assert gang.preferred_domains == (DomainRule("rack"),)


def kai_segments(**annotations: str) -> dict[str, Any]:
    keys = {"level": "topology-required-placement", "preferred": "topology-preferred-placement"}
    names = {key: f"segment-{keys.get(key, key)}" for key in annotations} | {"index": INDEX_KEY}
    named = {f"kai.scheduler/{names[key]}": value for key, value in annotations.items()}
    return {"metadata": {"annotations": named}}


def test_segments_of_kai_are_segments_by_the_index() -> None:
    gang = jobset(node=kai_segments(level="rack", size="2"), driver=template())
    assert gang.segments == (SegmentRule(DomainRule("rack", ("node",)), 2, INDEX),)
    assert gang.unsupported_fields == ()
    gang = jobset(node=kai_segments(level="rack", size="2", index="rank"))
    assert gang.segments == (SegmentRule(DomainRule("rack", ("node",)), 2, "rank"),)
    groups = [{"groupName": "small", "template": kai_segments(level="rack", size="4")}]
    body = {"metadata": {"name": "ray", "uid": "u"}, "spec": {"workerGroupSpecs": groups}}
    cluster = decode_cluster(wire.parse_one(body, RayCluster))
    assert cluster.segments == (SegmentRule(DomainRule("rack", ("small",)), 4),)


def test_preferred_segments_of_kai_keep_no_gang_waiting() -> None:
    gang = jobset(node=kai_segments(preferred="rack", size="2"))
    assert (gang.segments, gang.unsupported_fields) == ((), ())


KAI_LEVEL = "kai.scheduler/segment-topology-required-placement"
KAI_SIZE = "kai.scheduler/segment-size"


@pytest.mark.parametrize(
    ("annotations", "sentence"),
    [
        (
            {"size": "2"},
            f"annotation {KAI_SIZE} of node: there is no annotation {KAI_LEVEL}",
        ),
        (
            {"level": "rack", "size": "0"},
            f"annotation {KAI_LEVEL} of node: {KAI_SIZE} is no number from 1 to 5000",
        ),
    ],
    ids=["no level", "no size"],
)
def test_segments_of_kai_that_cannot_be_read_keep_the_gang_waiting(
    annotations: dict[str, str], sentence: str
) -> None:
    assert jobset(node=kai_segments(**annotations)).unsupported_fields == (sentence,)


def test_segments_of_kai_on_the_job_keep_the_gang_waiting() -> None:
    """A gang that started without them would be slower than it asked to be."""
    annotations = kai_segments(level="rack", size="2")["metadata"]
    gang = jobset(annotations, node=template())
    words = f"annotation {KAI_LEVEL}: it belongs to a template of pods"
    assert (gang.segments, gang.unsupported_fields) == ((), (words,))


def test_a_ray_cluster_names_levels_of_its_head_and_of_groups() -> None:
    together = template(**{"required-topology": "block", "group-name": "all"})
    workers = [
        {"groupName": "small", "template": together},
        {"groupName": "big", "template": sliced("4")},
    ]
    metadata = {"name": "ray", "uid": "u", "annotations": {KAI.format("required"): "zone"}}
    spec = {"headGroupSpec": {"template": together}, "workerGroupSpecs": workers}
    gang = decode_cluster(wire.parse_one({"metadata": metadata, "spec": spec}, RayCluster))
    assert gang.same_domain == (DomainRule("block", ("headgroup", "small")), DomainRule("zone"))
    assert gang.segments == (SegmentRule(DomainRule("rack", ("big",)), 4),)
    assert gang.unsupported_fields == ()


def test_of_two_groups_of_one_name_the_last_slices_count() -> None:
    """KubeRay refuses such a cluster; no two rules on segments may cover one role."""
    workers = [{"groupName": "same", "template": sliced(size)} for size in ("2", "4")]
    body = {"metadata": {"name": "ray", "uid": "u"}, "spec": {"workerGroupSpecs": workers}}
    gang = decode_cluster(wire.parse_one(body, RayCluster))
    assert gang.segments == (SegmentRule(DomainRule("rack", ("same",)), 4),)
