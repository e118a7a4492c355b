"""A case as objects for one scheduler, on nodes of its own that its pods select."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...bench.load.gangs import Form, Load, Member
from ...harness.controlplane.nodes import node_manifest
from ...harness.controlplane.pins import NATIVE_COMPOSITE_API, NATIVE_GANG_API, chosen_k8s
from .cases import GPUS, NODES, Kind, Level

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .cases import Case, Gang

    Manifest = dict[str, Any]

POOL, MEMBER = "tests/pool", "tests/member"
ZONE = "example.com/zone"
KEYS: Mapping[Level, str] = {Level.BLOCK: "example.com/block", Level.RACK: "example.com/rack"}
HOST = "kubernetes.io/hostname"
KUEUE_API = "kueue.x-k8s.io/v1beta2"
_KUEUE = "kueue.x-k8s.io"


def nodes(pool: str) -> Iterator[Manifest]:
    """The nodes of a pool; no two pools share a domain."""
    for ground in NODES:
        labels = {
            POOL: pool,
            ZONE: f"{pool}-{ground.zone}",
            **{key: f"{pool}-{ground.domain(level)}" for level, key in KEYS.items()},
        }
        yield node_manifest(
            f"{pool}-{ground.name}", cpu=64, memory="256Gi", gpus=GPUS, labels=labels
        )


def beside(pool: str) -> str:
    """The namespace of the pods that are there already: Kueue takes none of them for its own."""
    return f"{pool}-others"


def others(case: Case, pool: str) -> Iterator[Manifest]:
    """Who is there already: on each node that is in use one pod with all GPUs in use there."""
    load = Load(Form.PLAIN, beside(pool), Member(), {}, "nobody")
    for ground, used in zip(NODES, case.used, strict=True):
        if used:
            (pod,) = load.pods(f"other-{case.name}-{ground.name}", 1)
            yield _asking(pod, used, nodeName=f"{pool}-{ground.name}")


def pods(gang: Gang, pool: str, form: Form) -> Iterator[Manifest]:
    """The members of a gang."""
    load = Load(form, pool, Member(), {MEMBER: "yes"})
    marks = _kueue_marks(gang) if form is Form.KUEUE else {}
    spec: Manifest = {"nodeSelector": {POOL: pool}}
    for i, pod in enumerate(load.pods(gang.name, len(gang.sizes))):
        metadata = pod["metadata"]
        annotations = {**metadata.get("annotations", {}), **marks}
        made = {**pod, "metadata": {**metadata, "annotations": annotations}}
        if form is Form.NATIVE and gang.segment:
            spec["schedulingGroup"] = {"podGroupName": _segment(gang, i // gang.segment)}
        yield _asking(made, gang.sizes[i], **spec)


def _asking(pod: Manifest, gpus: int, **spec: Any) -> Manifest:
    """A pod that asks for so many GPUs and little else."""
    (container,) = pod["spec"]["containers"]
    resources = Member(gpus=gpus, cpu="100m", memory="64Mi").resources
    return {
        **pod,
        "spec": {**pod["spec"], "containers": [container | {"resources": resources}], **spec},
    }


def groups(gang: Gang, pool: str, form: Form) -> Iterator[Manifest]:
    """The groups of a gang with its domain; none where pods alone say all."""
    if form is Form.NATIVE and gang.segment:
        yield from _composite(gang, pool)
        return
    made = Load(form, pool, Member(), {}).group(gang.name, len(gang.sizes))
    if made is None:
        return
    if form is Form.TUTTI:
        made["spec"]["topology"] = {"required": KEYS[gang.level]}
        if gang.segment:
            segments = {"size": gang.segment, "level": KEYS[Level.RACK]}
            made["spec"]["topology"]["segments"] = segments
    else:
        made["spec"] |= _in_one(gang.level)
    yield made


def _in_one(level: Level) -> Manifest:
    return {"schedulingConstraints": {"topology": [{"key": KEYS[level]}]}}


def _segment(gang: Gang, number: int) -> str:
    return f"{gang.name}-segment-{number}"


def _composite(gang: Gang, pool: str) -> Iterator[Manifest]:
    """A group of groups: each segment is a PodGroup of Kubernetes, in one rack."""
    api = NATIVE_COMPOSITE_API[chosen_k8s()]
    count, size = len(gang.sizes), gang.segment
    sizes = [min(size, count - first) for first in range(0, count, size)]
    whole = {"schedulingPolicy": {"gang": {"minGroupCount": len(sizes)}}, **_in_one(gang.level)}
    parts = {
        members: {"schedulingPolicy": {"gang": {"minCount": members}}, **_in_one(Level.RACK)}
        for members in sizes
    }
    templates = [{"name": f"of-{members}", **part} for members, part in parts.items()]
    template = {"name": "gang", **whole, "podGroupTemplates": templates}

    def made(version: str, kind: str, name: str, spec: Manifest) -> Manifest:
        metadata = {"name": name, "namespace": pool}
        return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}

    def reference(name: str) -> Manifest:
        return {"workloadRef": {"workloadName": gang.name, "templateName": name}}

    yield made(api, "Workload", gang.name, {"compositePodGroupTemplates": [template]})
    yield made(api, "CompositePodGroup", gang.name, {**reference("gang"), **whole})
    for i, members in enumerate(sizes):
        parent = {"parentCompositePodGroupName": gang.name, **reference(f"of-{members}")}
        spec = {**parent, **parts[members]}
        yield made(NATIVE_GANG_API[chosen_k8s()], "PodGroup", _segment(gang, i), spec)


def can_ask(gang: Gang, form: Form) -> bool:
    """Whether a gang can be described to a scheduler at all.

    Kueue counts pods of one size as a set and has one domain for two sets at most, one of them a
    single pod; its slices are all whole. Kubernetes 1.36 has no groups of groups.
    """
    match form:
        case Form.NATIVE:
            return not gang.segment or chosen_k8s() in NATIVE_COMPOSITE_API
        case Form.KUEUE:
            counts = sorted(gang.sizes.count(size) for size in set(gang.sizes))
            is_leader = len(counts) == 2 and counts[0] == 1
            return gang.kind is not Kind.SHORT and (len(counts) == 1 or is_leader)
        case _:
            return True


def _kueue_marks(gang: Gang) -> Mapping[str, str]:
    marks = {f"{_KUEUE}/podset-required-topology": KEYS[gang.level]}
    if gang.segment:
        marks[f"{_KUEUE}/podset-slice-required-topology"] = KEYS[Level.RACK]
        marks[f"{_KUEUE}/podset-slice-size"] = f"{gang.segment}"
    elif len(set(gang.sizes)) > 1:
        marks[f"{_KUEUE}/podset-group-name"] = "together"
    return marks


def tutti_topology() -> Manifest:
    """The levels, for Tutti."""
    levels = [{"nodeLabel": key} for key in (ZONE, *KEYS.values())]
    return {
        "apiVersion": "tutti.dev/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": "network"},
        "spec": {"levels": levels},
    }


def kueue_queue(pool: str) -> Iterator[Manifest]:
    """The levels down to the node, and a queue on the nodes of a pool whose quota never ends."""
    covered = ("cpu", "memory", "nvidia.com/gpu")
    quotas = [{"name": name, "nominalQuota": "1P"} for name in covered]
    resources = {"coveredResources": covered, "flavors": [{"name": "gpus", "resources": quotas}]}
    levels = [{"nodeLabel": key} for key in (ZONE, *KEYS.values(), HOST)]
    flavor = {"nodeLabels": {POOL: pool}, "topologyName": "network"}
    for kind, metadata, spec in (
        ("Topology", {"name": "network"}, {"levels": levels}),
        ("ResourceFlavor", {"name": "gpus"}, flavor),
        ("ClusterQueue", {"name": "all"}, {"namespaceSelector": {}, "resourceGroups": [resources]}),
        ("LocalQueue", {"name": "default", "namespace": pool}, {"clusterQueue": "all"}),
    ):
        yield {"apiVersion": KUEUE_API, "kind": kind, "metadata": metadata, "spec": spec}
