"""Encodes model values as API objects, with the fields that the decoder needs and no others.

The inverse of ``decode``, as a property test checks. Fields that a Snapshot does not keep are not
written.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from ..kube.codec import encode
from ..kube.codec.decode import DISRUPTED
from ..kube.codec.hand_over import KUBE_SCHEDULER
from ..kube.codec.quantity import CPU
from ..kube.codec.requests import PODS
from ..kube.codec.shapes import CLAIM_FIELD, DEVICE_CLAIMS
from ..kube.gang_sources import pod_group
from ..model import ports
from ..model.cluster import (
    GRACE_SECONDS,
    BoundBy,
    Gang,
    Member,
    Namespace,
    Node,
    PlacedPod,
    Reservation,
    Role,
)
from ..model.inter_pod import InterPodRules
from ..model.owners import Job
from ..model.resources import NOTHING, Resources
from ..model.shapes import Preferences, Shape
from . import membership
from .devices.encode import add_device_claims, add_extended_requests
from .inter_pod import REQUIRED, add_preferences, add_rules, add_unreadable, node_term
from .volumes import add_claims, without_volumes

Raw = dict[str, Any]

OTHERS = "others"  # namespace and schedulerName of the pods that stand for foreign pods
_VOLUMES = "spec.volumes[]."
RECOMPUTED = ("spec.schedulerName", "spec.schedulingGates")  # of pods and their gangs together


def timestamp(seconds: float) -> str:
    """A time as the API server writes it; with microseconds if it is not in whole seconds."""
    return encode.timestamp(seconds) if seconds.is_integer() else encode.moment(seconds)


def job(value: Job) -> Raw:
    """A batch/v1 Job that tolerates as many failures; its uid is not part of a Snapshot."""
    ignored = {"action": "Ignore", "onPodConditions": [{"type": DISRUPTED, "status": "True"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "namespace": value.namespace,
            "name": value.name,
            "uid": f"job-{value.namespace}/{value.name}",
        },
        "spec": {"podFailurePolicy": {"rules": [ignored]}}
        if value.failures_left is None
        else {"backoffLimit": value.failures_left},
    }


def node(value: Node) -> Raw:
    """A v1 Node; its uid is not part of a Snapshot."""
    spec: Raw = {}
    if value.taints:
        spec["taints"] = [
            {"key": taint.key, "value": taint.value, "effect": taint.effect}
            for taint in value.taints
        ]
    if value.unschedulable:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": value.name,
            "uid": f"node-{value.name}",
            "labels": dict(value.labels),
        },
        "spec": spec,
        "status": {
            "allocatable": _amounts(without_volumes(value.allocatable)),
            "conditions": [{"type": "Ready", "status": "True" if value.ready else "False"}],
        },
    }


def group(gang: Gang, taken_at: float) -> Raw:
    """The declaration of a gang as a PodGroup; of its status, only what plans read."""
    spec = pod_group.encode_spec(gang, [_role(role) for role in gang.roles])
    metadata: Raw = {
        "name": gang.key.name,
        "namespace": gang.key.namespace,
        "uid": gang.uid,
        "generation": gang.generation,
        "creationTimestamp": timestamp(gang.created),
    }
    if gang.owner_pod:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": gang.owner_pod, "uid": ""}
        metadata["ownerReferences"] = [owner]
    if marks := membership.declaration(gang):
        metadata["annotations"] = marks
    if gang.terminating:
        metadata["deletionTimestamp"] = timestamp(taken_at)
    return {
        "apiVersion": encode.API_VERSION,
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": spec,
        **({"status": status} if (status := pod_group.encode_status(gang)) else {}),
    }


def priority_class(name: str, value: int) -> Raw:
    """A PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "uid": f"class-{name}"},
        "value": value,
    }


def namespace(value: Namespace) -> Raw:
    """A v1 Namespace; its uid is not part of a Snapshot."""
    metadata = {
        "name": value.name,
        "uid": f"namespace-{value.name}",
        "labels": dict(value.labels),
    }
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def member(value: Member, scheduler: str, taken_at: float) -> Raw:
    """A v1 Pod that names our scheduler."""
    metadata: Raw = {
        "name": value.key.name,
        "namespace": value.key.namespace,
        "uid": value.uid,
        "resourceVersion": value.version,
        "creationTimestamp": timestamp(value.created),
        "labels": membership.labels(value),
    }
    if marks := membership.marks(value):
        metadata["annotations"] = marks
    if value.terminating:
        ends = taken_at if value.gone_by is None else value.gone_by
        metadata["deletionTimestamp"] = timestamp(ends)
        if value.finalizers:
            metadata["finalizers"] = [*value.finalizers]
    if (owner := value.owner) is not None:
        version = f"{owner.group}/v1" if owner.group else "v1"
        names = {"kind": owner.kind, "name": owner.name, "uid": owner.uid or ""}
        metadata["ownerReferences"] = [{"apiVersion": version, **names, "controller": True}]
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": _spec(value, scheduler),
        "status": _status(value),
    }
    add_device_claims(body, value)
    add_extended_requests(body, value)
    return body


def reservation(value: Reservation) -> Raw:
    """A Reservation; pods whose name is not known are named by uid alone."""
    body = dict(encode.reservation(value))
    names = {"uid": value.self_uid or f"reservation-{value.uid}", "resourceVersion": value.version}
    body["metadata"] = {**body["metadata"], **names}
    for node_entry in body["spec"]["placement"]:
        if nameless := [pod["uid"] for pod in node_entry.get("pods", ()) if not pod["name"]]:
            node_entry["pods"] = [pod for pod in node_entry["pods"] if pod["name"]]
            node_entry["uids"] = nameless
    return body


def foreign_pods(
    on: Node, ours: Resources, pods: Sequence[PlacedPod], taken_at: float, first: int
) -> Iterator[Raw]:
    """Pods that stand for the use of a node by others: as many as there are, in equal shares.

    The pods that rules between pods may count are known one by one, but not their requests.
    ``ours`` is the use by our members. Other pods are numbered from ``first``.
    """
    rest = {name: n for name, n in without_volumes(on.used - ours).amounts if n > 0}
    count = max(rest.pop(PODS, 1 if rest else 0), len(pods))
    port_amounts = {name: rest.pop(name) for name in [*rest] if ports.is_port(name)}
    for i in range(count):
        equal = {n: a * (i + 1) // count - a * i // count for n, a in rest.items()}
        share = Resources.of({**equal, **ports.share(port_amounts, i)})
        if i < len(pods):
            yield placed_pod(pods[i], share, taken_at)
        else:
            yield _foreign_pod(f"{OTHERS}-{first + i}", on.name, share)


def placed_pod(value: PlacedPod, share: Resources = NOTHING, taken_at: float = 0.0) -> Raw:
    """A pod of another scheduler that rules may count, with its uid in place of its name."""
    raw = _foreign_pod(value.uid, value.node, share)
    raw["metadata"] |= {"namespace": value.namespace, "labels": dict(value.labels)}
    if value.terminating:
        raw["metadata"]["deletionTimestamp"] = timestamp(taken_at)
    add_rules(raw["spec"], InterPodRules(anti_affinity=value.anti_affinity))
    add_preferences(raw["spec"], Preferences(pod_affinity=value.scored_terms))
    return raw


def _foreign_pod(name: str, node_name: str, share: Resources) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": OTHERS, "uid": name},
        "spec": {
            "schedulerName": OTHERS,
            "nodeName": node_name,
            "containers": [_container(share)],
        },
    }


def _role(value: Role) -> Raw:
    role: Raw = {"name": value.name, "minMember": value.min_member}
    if value.max_member is not None:
        role["maxMember"] = value.max_member
    if value.template is not None:
        shape = value.template.shape
        role["template"] = {
            "resources": _requests(shape.requests),
            "labels": dict(value.template.labels),
        }
        _add_node_rules(role["template"], shape)
        add_rules(role["template"], shape.rules)
        add_preferences(role["template"], shape.preferences)
    elif value.unreadable:
        role["template"] = {"resources": {}}
        for field in value.unreadable:
            add_unreadable(role["template"], field)
    return role


def _spec(value: Member, scheduler: str) -> Raw:
    shape = value.shape
    spec: Raw = {
        "schedulerName": scheduler if value.bound_by is BoundBy.TUTTI else KUBE_SCHEDULER,
        "containers": [_container(without_volumes(shape.requests))],
    }
    if value.priority:
        spec["priority"] = value.priority
    if not value.may_preempt:
        spec["preemptionPolicy"] = "Never"
    if value.grace_seconds != GRACE_SECONDS:
        spec["terminationGracePeriodSeconds"] = value.grace_seconds
    if value.node is not None and not value.is_handed_over:
        spec["nodeName"] = value.node
    if value.gates:
        spec["schedulingGates"] = [{"name": name} for name in value.gates]
    _add_node_rules(spec, shape)
    add_rules(spec, shape.rules)
    add_preferences(spec, shape.preferences)
    for field in value.unsupported_fields:
        _use(spec, field)
    add_claims(spec, value)
    membership.mount(spec, value.application)
    return spec


def _add_node_rules(spec: Raw, shape: Shape) -> None:
    """Add the node constraints of a shape to the spec of a pod or a template."""
    if shape.node_selector:
        spec["nodeSelector"] = dict(shape.node_selector)
    if shape.tolerations:
        spec["tolerations"] = [
            {"key": t.key, "operator": t.operator, "value": t.value, "effect": t.effect}
            for t in shape.tolerations
        ]
    if shape.required is not None:
        terms = [node_term(term) for term in shape.required]
        spec["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}


def _status(value: Member) -> Raw:
    status: Raw = {"phase": value.phase.value}
    if value.failure:
        status["reason"] = value.failure
    if value.ended is not None:
        terminated = {"finishedAt": timestamp(value.ended)}
        status["containerStatuses"] = [{"name": "main", "state": {"terminated": terminated}}]
    if value.scheduled_condition.reason or value.scheduled_condition.message:
        why = {
            "reason": value.scheduled_condition.reason,
            "message": value.scheduled_condition.message,
        }
        status["conditions"] = [{"type": "PodScheduled", "status": "False", **why}]
    elif value.bound_at is not None:
        bound = {"lastTransitionTime": timestamp(value.bound_at)}
        status["conditions"] = [{"type": "PodScheduled", "status": "True", **bound}]
    return status


def _use(spec: Raw, field: str) -> None:
    """Add an unsupported field to the spec of a pod; its value does not matter."""
    if add_unreadable(spec, field):
        return
    if field.startswith("spec.schedulingGroup"):
        spec["schedulingGroup"] = {}
    elif field.startswith((f"{CLAIM_FIELD} (", DEVICE_CLAIMS, *RECOMPUTED)):
        pass  # what it depends on is in the dump, and reading it has the same result
    else:
        name = f"volume-{len(spec.get('volumes', ()))}"
        spec.setdefault("volumes", []).append({"name": name, field.removeprefix(_VOLUMES): {}})


def _container(requests: Resources) -> Raw:
    container: Raw = {"name": "main", "resources": {"requests": _requests(requests)}}
    if host_ports := ports.named(dict(requests.amounts)):
        container["ports"] = [_port(port) for port in host_ports]
    return container


def _requests(requests: Resources) -> dict[str, str]:
    amounts = {n: text for n, text in _amounts(requests).items() if not ports.is_port(n)}
    amounts.pop(PODS, None)  # every pod takes one without requesting it
    return amounts


def _port(value: ports.HostPort) -> Raw:
    names = {"protocol": value.protocol, "hostIP": value.ip}
    return {"containerPort": value.number, "hostPort": value.number, **names}


def _amounts(resources: Resources) -> dict[str, str]:
    return {name: f"{n}m" if name == CPU else str(n) for name, n in resources.amounts}
