"""The same scenario with PodGroups of Kubernetes, of scheduler-plugins and of Volcano."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...harness.rig import GROUP_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping

KUBERNETES, PLUGINS = "scheduling.k8s.io/v1beta1", "scheduling.x-k8s.io/v1alpha1"
VOLCANO = "scheduling.volcano.sh/v1beta1"
SOURCES = (
    "podgroups.scheduling.k8s.io",
    "podgroups.scheduling.x-k8s.io",
    "podgroups.scheduling.volcano.sh",
)
CRDS = (
    Path(__file__).parents[2] / "bench" / "e2e" / "coscheduling-crd.yaml",
    Path(__file__).parent / "volcano-crd.yaml",
)
VOLCANO_ANNOTATION = "scheduling.k8s.io/group-name"
PLUGINS_LABEL = "scheduling.x-k8s.io/pod-group"
SCHEDULED = "PodGroupInitiallyScheduled"

# Which of them declares which gang; roles have Tutti's PodGroups alone.
DECLARED_BY: Mapping[str, str] = {
    "train": KUBERNETES,
    "short": KUBERNETES,
    "vast": KUBERNETES,
    "late": PLUGINS,
    "worn": VOLCANO,
}


def translated(body: dict[str, Any], priority_classes: Mapping[str, str]) -> dict[str, Any]:
    """A pod or a PodGroup in the words of what declares its gang; ``priority_classes`` by gang."""
    return _group(body, priority_classes) if body["kind"] == "PodGroup" else member(body)


def _group(body: dict[str, Any], priority_classes: Mapping[str, str]) -> dict[str, Any]:
    name = body["metadata"]["name"]
    version = DECLARED_BY.get(name)
    if version is None:
        return body
    spec = {"minMember": body["spec"]["minMember"]}
    if version == KUBERNETES:
        spec = {"schedulingPolicy": {"gang": {"minCount": body["spec"]["minMember"]}}}
        if name in priority_classes:
            spec["priorityClassName"] = priority_classes[name]
    return body | {"apiVersion": version, "spec": spec}


def member(body: dict[str, Any]) -> dict[str, Any]:
    """A pod that names its gang as what declares that wants it."""
    labels, spec = dict(body["metadata"]["labels"]), dict(body["spec"])
    annotations = dict(body["metadata"]["annotations"])
    name = labels.get(GROUP_LABEL, "")
    if (version := DECLARED_BY.get(name)) is None:
        return body
    del labels[GROUP_LABEL]
    if version == KUBERNETES:
        spec["schedulingGroup"] = {"podGroupName": name}
    elif version == VOLCANO:
        annotations[VOLCANO_ANNOTATION] = name
    else:
        labels[PLUGINS_LABEL] = name
    metadata = body["metadata"] | {"labels": labels, "annotations": annotations}
    return body | {"metadata": metadata, "spec": spec}


def gang(pod: Mapping[str, Any]) -> str:
    """The gang that a pod names, whatever declares it; empty if it names none."""
    labels = pod["metadata"].get("labels", {})
    native = pod["spec"].get("schedulingGroup", {}).get("podGroupName", "")
    volcano = pod["metadata"].get("annotations", {}).get(VOLCANO_ANNOTATION, "")
    return str(labels.get(GROUP_LABEL) or native or volcano or labels.get(PLUGINS_LABEL, ""))


def said(group: Mapping[str, Any]) -> str:
    """What is said of a PodGroup of Kubernetes, or of Volcano."""
    status = group.get("status", {})
    lines = status.get("conditions", ())
    native = next((f"{x['status']}/{x['reason']}" for x in lines if x["type"] == SCHEDULED), "")
    return native or str(status.get("phase", ""))
