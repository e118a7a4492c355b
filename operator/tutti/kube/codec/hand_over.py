"""Pods that Tutti hands over to kube-scheduler: how they and their gangs are read, and the patch.

The patch pins a gated pod to its node and removes Tutti's gate in one write. The API server lets
the required node affinity of a gated pod only be narrowed (``ValidatePodUpdate``).
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from ...model.cluster import GATE, BoundBy, Member
from ...model.decisions import Assignment
from ...model.keys import POD_GROUP
from .. import wire
from ..errors import BadObject, Conflict
from ..gang_sources import ALWAYS, GangObject, GangSource
from ..gang_sources.spark import TUTTI_GROUP_LABEL
from .decode import decode_member
from .encode import timestamp
from .metadata import seconds_by_users
from .shapes import NODE_NAME, claims, pinned_to

KUBE_SCHEDULER = "default-scheduler"  # of Kubernetes; most pods of most clusters name it
HANDED_OVER_AT = "tutti.dev/handed-over-at"  # the annotation with the time of the patch

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NO_GROUP = f"spec.schedulingGates (without the label {TUTTI_GROUP_LABEL})"
NATIVE_GROUP = "spec.schedulingGroup"
NO_HAND_OVER = "spec.binding: KubeScheduler (settings.handOver is false)"
# Fields that kube-scheduler models, and that therefore make no such pod wait.
LET_THROUGH = ("spec.resourceClaims", "spec.volumes[].")

_SOURCES = tuple(source for source in ALWAYS if POD_GROUP in {kind.api for kind in source.kinds})


def is_member(pod: wire.Pod) -> bool:
    """Whether a pod of the default scheduler is, or was, to be handed over.

    It has the gate; or it names a PodGroup of Tutti and is pinned to one node, also once it is
    bound.
    """
    spec = pod.spec
    if spec.scheduler_name not in ("", KUBE_SCHEDULER):  # empty only in files
        return False
    if spec.scheduling_gates:
        return any(gate.name == GATE for gate in spec.scheduling_gates)
    return TUTTI_GROUP_LABEL in pod.metadata.labels and pinned_to(pod) is not None


def member_decoder(
    sources: Collection[GangSource], *, hands_over: bool
) -> Callable[[wire.Pod], Member]:
    """The decoder of our pods; if Tutti ``hands_over``, also of pods of the default scheduler."""
    decode = partial(decode_member, sources=sources)
    if not hands_over:
        return decode
    return lambda pod: (
        decode_handed_member(pod) if pod.spec.scheduler_name == KUBE_SCHEDULER else decode(pod)
    )


def group_decoder(
    decode: Callable[[Any], GangObject], *, hands_over: bool
) -> Callable[[Any], GangObject]:
    """The decoder of objects that declare gangs; a gang waits if Tutti is to hand over and may not.

    ``decode`` is the decoder of the kind.
    """
    if hands_over:
        return decode

    def declared(wire_object: Any) -> GangObject:
        group = decode(wire_object)
        if group.bound_by is BoundBy.TUTTI:
            return group
        return replace(group, unsupported_fields=(*group.unsupported_fields, NO_HAND_OVER))

    return declared


def decode_handed_member(pod: wire.Pod) -> Member:
    """Read a pod that kube-scheduler binds, by the rules of docs/integrations/kube-scheduler.md.

    Without gates, it is on the node that it is pinned to, also before kube-scheduler binds it.
    """
    member, metadata = decode_member(pod, _SOURCES), pod.metadata
    may_be_bound = not (member.gates or member.terminating or member.is_over)
    pin = pinned_to(pod) if member.node is None and may_be_bound else None
    fields = [field for field in member.unsupported_fields if not field.startswith(LET_THROUGH)]
    fields = [NATIVE_GROUP if field.startswith(NATIVE_GROUP) else field for field in fields]
    return replace(
        member,
        bound_by=BoundBy.KUBE_SCHEDULER,
        node=member.node or pin,
        is_handed_over=pin is not None,
        handed_over_at=None if pin is None else _seconds(metadata.annotations.get(HANDED_OVER_AT)),
        unsupported_fields=tuple(fields) if member.group else (NO_GROUP, *fields),
        claims=claims(pod.spec, metadata.name),
        application=None,
        device_claims=(),  # kube-scheduler allocates
        extended_requests=(),
        extended_claim="",
        extended_resources=(),
        unread_gang=None,
    )


def _seconds(text: str | None) -> float | None:
    """The time in an annotation, which users may change; None if it cannot be read."""
    try:
        return seconds_by_users(datetime.fromisoformat(text or ""))
    except (ValueError, OverflowError):
        return None


def hand_over(body: bytes, assignment: Assignment, at: float) -> Mapping[str, Any]:
    """The merge patch that hands a pod over; ``body`` is the pod as the API server just showed it.

    Raises:
        Conflict: the pod is another, or has changed since it was planned.
        BadObject: the pod cannot be read.
    """
    try:
        pod = json.loads(body)
        metadata, spec = pod["metadata"], pod["spec"]
        is_same = metadata["uid"] == assignment.uid
        gates = [gate for gate in spec.get("schedulingGates") or () if gate.get("name") != GATE]
        terms = _pinned(_terms(spec), assignment.node)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as problem:
        raise BadObject(str(assignment.pod), f"the pod cannot be read: {problem!r}") from problem
    if not is_same or metadata.get("resourceVersion") != assignment.version:
        raise Conflict(f"pod {assignment.pod} is another, or has changed", status=409)
    return {
        "metadata": {
            "uid": assignment.uid,
            "resourceVersion": assignment.version,
            "annotations": {HANDED_OVER_AT: timestamp(at)},
        },
        "spec": {
            "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}},
            "schedulingGates": gates or None,
        },
    }


def _terms(spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    return (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()


def _pinned(terms: Sequence[Mapping[str, Any]], node: str) -> list[Mapping[str, Any]]:
    """The terms, each also with the name of the node; a term without requirements matches none."""
    pin = {"key": NODE_NAME, "operator": "In", "values": [node]}
    if not terms:
        return [{"matchFields": [pin]}]
    return [
        {**term, "matchFields": [*(term.get("matchFields") or ()), pin]}
        if term.get("matchExpressions") or term.get("matchFields")
        else term
        for term in terms
    ]
