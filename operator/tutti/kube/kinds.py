"""The kinds of API objects that Tutti lists and watches: each is declared once, here.

The modules of ``gang_sources`` have the kinds that declare gangs. To add a kind, declare its
fields, its decoder and the kind here. Use its store in the cluster state, and grant its list and
watch in the chart; a test fails if that right is missing. The larger models and decoders, as for
pods, nodes and volumes, are in ``wire`` and ``codec``.
"""

from functools import partial
from typing import Any, TypeAlias

from ..model.cluster import DisruptionBudget, Namespace, PriorityClass
from ..model.inter_pod import Topology
from ..model.keys import POD_GROUP, ApiKind
from . import gang_sources, wire
from .calls import RESOURCE, TUTTI_VERSION, Call, Kind, Right, Stream, api_version
from .codec import decode, devices, queues, volumes
from .codec.hand_over import KUBE_SCHEDULER
from .codec.inter_pod import MalformedSelector, decode_labels, read_selector
from .codec.metadata import named
from .wire import devices as device_objects

AnyKind: TypeAlias = Kind[Any, Any]

POD = Kind(ApiKind("", "Pod"), "pods", wire.Pod, decode.decode_member)
RESERVATION = Kind(
    ApiKind(POD_GROUP.group, "Reservation"),
    "reservations",
    wire.Reservation,
    decode.decode_reservation,
    version=TUTTI_VERSION,
)
NODE = Kind(ApiKind("", "Node"), "nodes", wire.Node, decode.decode_node, is_namespaced=False)


class PriorityClassObject(wire.Object):
    """A scheduling.k8s.io PriorityClass."""

    value: int = 0


def decode_priority_class(read: PriorityClassObject) -> PriorityClass:
    """Read a PriorityClass; its value is immutable."""
    named(read)
    return PriorityClass(read.metadata.name, read.value)


PRIORITY_CLASS = Kind(
    ApiKind("scheduling.k8s.io", "PriorityClass"),
    "priorityclasses",
    PriorityClassObject,
    decode_priority_class,
    is_namespaced=False,
)


class NamespaceObject(wire.Object):
    """A v1 Namespace."""


def decode_namespace(read: NamespaceObject) -> Namespace:
    """Read a namespace."""
    named(read)
    return Namespace(read.metadata.name, decode_labels(read.metadata.labels))


class BudgetSpec(wire.Wire):
    """The pods that a budget is about."""

    selector: wire.LabelSelector | None = None


class BudgetStatus(wire.Wire):
    """How many pods there are, and how many of them may go."""

    observed_generation: int = 0
    disruptions_allowed: int = 0
    expected_pods: int = 0
    desired_healthy: int = 0


class BudgetObject(wire.Object):
    """A policy/v1 PodDisruptionBudget."""

    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()


def decode_budget(read: BudgetObject) -> DisruptionBudget:
    """Read a PodDisruptionBudget as the eviction API does.

    It allows nothing while its status is older than its spec, and no pod has a budget whose
    selector cannot be read.
    """
    named(read)
    metadata, status = read.metadata, read.status
    is_current = status.observed_generation >= metadata.generation
    try:
        selector = read_selector(read.spec.selector)
    except MalformedSelector:
        selector = None
    return DisruptionBudget(
        metadata.namespace,
        metadata.name,
        selector,
        max(status.disruptions_allowed, 0) if is_current else 0,
        max(status.expected_pods - status.desired_healthy, 0) if is_current else 0,
    )


def encode_budget(budget: DisruptionBudget) -> dict[str, Any]:
    """A PodDisruptionBudget as the API has it; for dumps."""
    spec: dict[str, Any] = {}
    if budget.selector is not None:
        spec["selector"] = {
            "matchExpressions": [
                {"key": r.key, "operator": r.operator, "values": [*r.values]}
                for r in budget.selector
            ]
        }
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            "namespace": budget.namespace,
            "name": budget.name,
            "uid": f"budget-{budget}",
        },
        "spec": spec,
        "status": {"disruptionsAllowed": budget.allowed, "expectedPods": budget.most},
    }


BUDGET = Kind(
    ApiKind("policy", "PodDisruptionBudget"),
    "poddisruptionbudgets",
    BudgetObject,
    decode_budget,
)
JOB = Kind(ApiKind("batch", "Job"), "jobs", wire.Job, decode.decode_job)
NAMESPACE = Kind(
    ApiKind("", "Namespace"),
    "namespaces",
    NamespaceObject,
    decode_namespace,
    is_namespaced=False,
)
QUEUE = Kind(
    ApiKind(POD_GROUP.group, "Queue"),
    "queues",
    wire.Queue,
    queues.decode_queue,
    is_namespaced=False,
    version=TUTTI_VERSION,
    is_optional=True,
)


class LevelSpec(wire.Wire):
    """One level of the network."""

    node_label: str


class TopologySpec(wire.Wire):
    """The levels, the widest first."""

    levels: tuple[LevelSpec, ...] = ()


class TopologyObject(wire.Object):
    """A Topology of Tutti, Kueue or KAI-Scheduler: all three have the same fields."""

    spec: TopologySpec = TopologySpec()


def decode_topology(read: TopologyObject, group: str = "") -> Topology:
    """Read a Topology; if it names a label twice, the first counts."""
    named(read)
    labels = dict.fromkeys(level.node_label for level in read.spec.levels)
    return Topology(read.metadata.name, tuple(labels), group)


def encode_topology(topology: Topology) -> dict[str, Any]:
    """A Topology in the form of the API; for dumps."""
    kind = next(kind for kind in TOPOLOGIES if kind.api.group == (topology.group or TUTTI))
    return {
        "apiVersion": api_version(kind.api.group, kind.version),
        "kind": "Topology",
        "metadata": {"name": topology.name, "uid": f"topology-{topology.title}"},
        "spec": {"levels": [{"nodeLabel": label} for label in topology.levels]},
    }


def _topology(group: str, version: str) -> Kind[TopologyObject, Topology]:
    own = "" if group == TUTTI else group
    return Kind(
        ApiKind(group, "Topology"),
        "topologies",
        TopologyObject,
        partial(decode_topology, group=own),
        is_namespaced=False,
        version=version,
        is_optional=True,
    )


TUTTI = POD_GROUP.group
TOPOLOGY = _topology(TUTTI, TUTTI_VERSION)
# Source: topology_types.go in apis/kueue/v1beta2 of Kueue, and in pkg/apis/kai/v1alpha1 of KAI.
KUEUE_TOPOLOGY = _topology("kueue.x-k8s.io", "v1beta2")
KAI_TOPOLOGY = _topology("kai.scheduler", "v1alpha1")
FOREIGN_TOPOLOGIES = (KUEUE_TOPOLOGY, KAI_TOPOLOGY)
TOPOLOGIES = (TOPOLOGY, *FOREIGN_TOPOLOGIES)
CLAIM = Kind(
    ApiKind("", "PersistentVolumeClaim"),
    "persistentvolumeclaims",
    wire.PersistentVolumeClaim,
    volumes.decode_claim,
)
VOLUME = Kind(
    ApiKind("", "PersistentVolume"),
    "persistentvolumes",
    wire.PersistentVolume,
    volumes.decode_volume,
    is_namespaced=False,
)
STORAGE_CLASS = Kind(
    ApiKind("storage.k8s.io", "StorageClass"),
    "storageclasses",
    wire.StorageClass,
    volumes.decode_class,
    is_namespaced=False,
)
CSI_NODE = Kind(
    ApiKind("storage.k8s.io", "CSINode"),
    "csinodes",
    wire.CSINode,
    volumes.decode_drivers,
    is_namespaced=False,
)
CSI_DRIVER = Kind(
    ApiKind("storage.k8s.io", "CSIDriver"),
    "csidrivers",
    wire.CSIDriver,
    volumes.decode_driver,
    is_namespaced=False,
)
ATTACHMENT = Kind(
    ApiKind("storage.k8s.io", "VolumeAttachment"),
    "volumeattachments",
    wire.VolumeAttachment,
    volumes.decode_attachment,
    is_namespaced=False,
)

# The kinds of resource.k8s.io; an API server of an older version does not have them.
RESOURCE_SLICE = Kind(
    ApiKind(RESOURCE, "ResourceSlice"),
    "resourceslices",
    device_objects.ResourceSlice,
    devices.decode_slice,
    is_namespaced=False,
    is_optional=True,
)
DEVICE_CLASS = Kind(
    ApiKind(RESOURCE, "DeviceClass"),
    "deviceclasses",
    device_objects.DeviceClass,
    devices.decode_device_class,
    is_namespaced=False,
    is_optional=True,
)
TAINT_RULE = Kind(
    ApiKind(RESOURCE, "DeviceTaintRule"),
    "devicetaintrules",
    device_objects.DeviceTaintRule,
    devices.decode_taint_rule,
    is_namespaced=False,
    is_optional=True,
)
DEVICE_CLAIM = Kind(
    ApiKind(RESOURCE, "ResourceClaim"),
    "resourceclaims",
    device_objects.ResourceClaim,
    devices.decode_device_claim,
    is_optional=True,
)
CAPACITY = Kind(
    ApiKind("storage.k8s.io", "CSIStorageCapacity"),
    "csistoragecapacities",
    wire.CSIStorageCapacity,
    volumes.decode_capacity,
)

# The kinds that declare gangs, by API group and kind; optional sources included.
GANGS = {kind.api: kind for source in gang_sources.SOURCES for kind in source.kinds}
# The kinds that declare gangs in every cluster.
PRESENT_GANGS = tuple(kind for source in gang_sources.ALWAYS for kind in source.kinds)
# The kinds that the cluster state always has, beside pods and the kinds that declare gangs.
CLUSTER: tuple[AnyKind, ...] = (
    NODE,
    RESERVATION,
    PRIORITY_CLASS,
    NAMESPACE,
    QUEUE,
    *TOPOLOGIES,
)
# The kinds that are listed and watched only once a pod of ours names a claim.
STORAGE: tuple[AnyKind, ...] = (
    CLAIM,
    VOLUME,
    STORAGE_CLASS,
    CSI_NODE,
    CSI_DRIVER,
    ATTACHMENT,
)
# What is listed and watched only once a claim waits for a driver that publishes it.
PROVISIONING: tuple[AnyKind, ...] = (CAPACITY,)
# The kinds that are listed and watched only once a pod of ours has a claim for devices, or is to
# get one. Classes are read before: once a pod of ours requests a resource that no node publishes.
DEVICES: tuple[AnyKind, ...] = (RESOURCE_SLICE, DEVICE_CLASS, TAINT_RULE, DEVICE_CLAIM)
# What is listed and watched only while Tutti may end gangs so that others start.
PREEMPTION: tuple[AnyKind, ...] = (BUDGET, JOB)
KINDS: tuple[AnyKind, ...] = (
    POD,
    *PRESENT_GANGS,
    *CLUSTER,
    *STORAGE,
    *PROVISIONING,
    *DEVICES,
    *PREEMPTION,
)

BOUND = POD.stream("spec.nodeName!=", "bound pods")


def pending(*scheduler_names: str) -> Stream:
    """The stream of the pods that wait for one of these schedulers.

    A field selector has no "or". So for several names the stream also has pods of other schedulers,
    which Tutti drops; the selector leaves out at least the pods of the default scheduler.
    """
    ours = "spec.nodeName="
    if len(scheduler_names) == 1:
        ours += f",spec.schedulerName={scheduler_names[0]}"
    elif KUBE_SCHEDULER not in scheduler_names:
        ours += f",spec.schedulerName!={KUBE_SCHEDULER}"
    return POD.stream(ours, "pending pods")


def others_pending(scheduler_name: str) -> Stream:
    """The stream of unbound pods of other schedulers; a pod pinned to a node uses room there."""
    selector = f"spec.nodeName=,spec.schedulerName!={scheduler_name}"
    return POD.stream(selector, "pinned pods")


def rights() -> frozenset[Right]:
    """All rights that Tutti needs by default: calls, and list and watch of all kinds.

    For an optional source, the chart grants list and watch if its values name the source.
    """
    sources = (*gang_sources.ALWAYS, *gang_sources.DEFAULT)
    calls = (value for value in vars(Call).values() if isinstance(value, Right))
    read = {*KINDS, *(kind for source in sources for kind in source.kinds)}
    streams = (kind.right(verb) for kind in read for verb in ("list", "watch"))
    return frozenset((*calls, *streams, *(right for s in sources for right in s.rights)))
