"""A case as objects for one scheduler, on nodes of its own that its pods select."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...bench.load.gangs import Form, Load, Member
from ...harness.controlplane.nodes import node_manifest
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
    for pod, size in zip(load.pods(gang.name, len(gang.sizes)), gang.sizes, strict=True):
        metadata = pod["metadata"]
        annotations = {**metadata.get("annotations", {}), **marks}
        made = {**pod, "metadata": {**metadata, "annotations": annotations}}
        yield _asking(made, size, nodeSelector={POOL: pool})


def _asking(pod: Manifest, gpus: int, **spec: Any) -> Manifest:
    """A pod that asks for so many GPUs and little else."""
    (container,) = pod["spec"]["containers"]
    resources = Member(gpus=gpus, cpu="100m", memory="64Mi").resources
    return {
        **pod,
        "spec": {**pod["spec"], "containers": [container | {"resources": resources}], **spec},
    }


def group(gang: Gang, pool: str, form: Form) -> Manifest | None:
    """The group of a gang with its domain; None where pods alone say all."""
    made = Load(form, pool, Member(), {}).group(gang.name, len(gang.sizes))
    if made is None:
        return None
    if form is Form.TUTTI:
        made["spec"]["topology"] = {"required": KEYS[gang.level]}
        if gang.segment:
            segments = {"size": gang.segment, "level": KEYS[Level.RACK]}
            made["spec"]["topology"]["segments"] = segments
    else:
        made["spec"]["schedulingConstraints"] = {"topology": [{"key": KEYS[gang.level]}]}
    return made


def can_ask(gang: Gang, form: Form) -> bool:
    """Whether a gang can be described to a scheduler at all.

    Kueue counts pods of one size as a set and has one domain for two sets at most, one of them a
    single pod; its slices are all whole. A PodGroup of Kubernetes has no segments.
    """
    match form:
        case Form.NATIVE:
            return not gang.segment
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
