"""The decoder of shapes: the requests and node constraints of a pod, and unsupported fields.

Equal pods share one Shape object, so 50,000 replicas take the memory of one.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from sys import intern

from ...model.inter_pod import InterPodRules
from ...model.keys import NodeName
from ...model.resources import Resources
from ...model.shapes import NodeTerm, Preferences, Shape, Toleration
from .. import wire
from .inter_pod import requirement_order, requirements
from .requests import pod_requests

KNOWN = 16384  # shapes, tolerations and resources that are cached

NODE_NAME = "metadata.name"  # the only field that node affinity can match

CLAIM = "persistentVolumeClaim"  # the type of volume that Tutti supports
EPHEMERAL = "ephemeral"  # the type of volume whose claim belongs to the pod
CLAIM_FIELD = f"spec.volumes[].{CLAIM}"
DEVICE_CLAIMS = "spec.resourceClaims"
# The other types that matter to kube-scheduler's VolumeBinding, VolumeZone, VolumeRestrictions and
# NodeVolumeLimits; in-tree types are from csi-translation-lib.
DECIDING_VOLUMES = frozenset(
    {
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "cinder",
        "gcePersistentDisk",
        "iscsi",
        "portworxVolume",
        "rbd",
        "vsphereVolume",
    }
)


def decode_shape(pod: wire.Pod, rules: InterPodRules, preferences: Preferences) -> Shape:
    """The shape of a pod with these rules and preferences; raises ``QuantityError``."""
    spec = pod.spec
    return _shared_shape(
        _shared_resources(pod_requests(pod)),
        tuple(sorted(spec.node_selector.items())) if spec.node_selector else (),
        _required(spec.affinity),
        _tolerations(spec.tolerations) if spec.tolerations else (),
        (rules, preferences),
    )


def decode_requests(pod: wire.Pod) -> Resources:
    """The amounts that a pod takes of its node; raises ``QuantityError``."""
    return _shared_resources(pod_requests(pod))


def pinned_to(pod: wire.Pod) -> NodeName | None:
    """The only node that a pod can run on, if every term of its affinity names this node.

    Terms that match no node do not count: terms without requirements, or with two names.
    """
    required = _selector(pod.spec.affinity)
    if required is None:
        return None
    names = {
        frozenset(_node_names(term))
        for term in required.node_selector_terms
        if term.match_expressions or term.match_fields
    }
    possible = [name for name in names if len(name) <= 1]
    if len(possible) != 1 or not possible[0]:
        return None
    (node,) = possible[0]
    return NodeName(node)


def unmodelled(spec: wire.PodSpec) -> tuple[str, ...]:
    """The fields in use that Tutti does not support yet, as users write them; sorted.

    It supports claims for devices of pods, whose objects exist, but not those of templates.
    """
    native = () if spec.scheduling_group is None else ("spec.schedulingGroup",)
    return tuple(sorted({*native, *_claims(spec)}))


def claims(spec: wire.PodSpec, pod_name: str = "") -> tuple[str, ...]:
    """The claims that the volumes of a pod name, sorted.

    With the name of the pod, this includes the claims of its ephemeral volumes.
    """
    if not spec.volumes:
        return ()
    names = {name for volume in spec.volumes if (name := _claim_name(volume.get(CLAIM)))}
    return tuple(sorted({*names, *own_claims(spec, pod_name)}))


def own_claims(spec: wire.PodSpec, pod_name: str) -> tuple[str, ...]:
    """The claims of the generic ephemeral volumes of a pod, sorted; none without its name.

    kube-controller-manager makes them, with the pod as their owner.
    """
    if not (spec.volumes and pod_name):
        return ()
    names = (v.get("name") for v in spec.volumes if v.get(EPHEMERAL) is not None)
    return tuple(sorted({f"{pod_name}-{name}" for name in names}))


def _claim_name(source: object) -> str:
    """The name of the claim of a volume; empty if it names none, which the API does not allow."""
    name = source.get("claimName") if isinstance(source, Mapping) else None
    return intern(name) if isinstance(name, str) else ""


def _claims(spec: wire.PodSpec) -> Iterator[str]:
    for volume in spec.volumes:
        if (source := volume.get(CLAIM)) is not None and not _claim_name(source):
            yield CLAIM_FIELD
        for kind in DECIDING_VOLUMES & volume.keys():
            if volume[kind] is not None:
                yield f"spec.volumes[].{kind}"
    if spec.resource_claims:
        yield DEVICE_CLAIMS


def _selector(affinity: wire.Affinity) -> wire.NodeSelector | None:
    return affinity.node_affinity.required_during_scheduling_ignored_during_execution


def _node_names(term: wire.NodeTerm) -> Iterator[str]:
    """The names of nodes that a term requires; a node has only one name."""
    for requirement in term.match_fields:
        if (
            requirement.key == NODE_NAME
            and requirement.operator == "In"
            and len(requirement.values) == 1
        ):
            yield requirement.values[0]


def _required(affinity: wire.Affinity) -> tuple[NodeTerm, ...] | None:
    """The required node affinity; None if there is none.

    An empty term matches no node, so it is left out. An affinity without terms matches no node.
    """
    selector = _selector(affinity)
    if selector is None:
        return None
    terms = {
        NodeTerm(requirements(term.match_expressions), requirements(term.match_fields))
        for term in selector.node_selector_terms
        if term.match_expressions or term.match_fields
    }
    return tuple(sorted(terms, key=node_term_order))


def node_term_order(term: NodeTerm) -> tuple[object, ...]:
    """The sort key of a term on nodes."""
    return (
        tuple(requirement_order(requirement) for requirement in term.labels),
        tuple(requirement_order(requirement) for requirement in term.fields),
    )


def _tolerations(wire_tolerations: Iterable[wire.Toleration]) -> tuple[Toleration, ...]:
    """The tolerations, sorted and without duplicates; an absent operator means Equal."""
    fields = frozenset((t.key, t.operator or "Equal", t.value, t.effect) for t in wire_tolerations)
    return _shared_tolerations(fields)


@lru_cache(maxsize=KNOWN)
def _shared_tolerations(
    tolerations: frozenset[tuple[str, str, str, str]],
) -> tuple[Toleration, ...]:
    return tuple(Toleration(*fields) for fields in sorted(tolerations))


@lru_cache(maxsize=KNOWN)
def _shared_resources(resources: Resources) -> Resources:
    return resources


@lru_cache(maxsize=KNOWN)
def _shared_shape(
    requests: Resources,
    node_selector: tuple[tuple[str, str], ...],
    required: tuple[NodeTerm, ...] | None,
    tolerations: tuple[Toleration, ...],
    rules_and_preferences: tuple[InterPodRules, Preferences],
) -> Shape:
    return Shape(requests, node_selector, required, tolerations, *rules_and_preferences)
