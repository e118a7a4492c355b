"""Encoders from model values to request bodies: bindings, Reservations, conditions, Events.

The counterpart of ``decode``, which reads the same values back.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ...model.cluster import (
    ClaimGrounds,
    Member,
    PodReservation,
    Reservation,
    ReservedVictim,
)
from ...model.decisions import Assignment
from ...model.keys import (
    POD,
    POD_GROUP,
    ApiKind,
    GangKey,
    LeaderTerm,
    Lease,
    LeaseKey,
    NodeName,
    PodKey,
    Uid,
)
from ...model.queues import QueueRecord
from ...model.volumes import VolumeChoice
from .. import errors
from ..calls import TUTTI_VERSION, api_version
from ..gang_sources import api_version_of
from .decode import BY_GUARANTEE, BY_PRIORITY, LEASE_MODE
from .devices import encode_reserved
from .quantity import as_text

API_VERSION = api_version(POD_GROUP.group, TUTTI_VERSION)
COMPONENT = "tutti"
FENCE = " (no late call for version "  # begins the part that makes the message of a condition new
SCHEDULED, DISRUPTED = "PodScheduled", "DisruptionTarget"  # conditions of a pod
MESSAGE_LIMIT = 1024  # characters; the limit of the note of an Event, and enough for a condition
# A merge patch leaves what it does not name, such as the grounds of an earlier claim.
NO_GROUNDS = dict.fromkeys(("right", "costMilliseconds", "boundMilliseconds", "guarantee"))
# etcd takes 1.5 MiB by default, including what the API server adds to an object. It was measured to
# take bodies like this one up to 1,572,373 bytes. The rest allows for a longer term at adoption.
RESERVATION_LIMIT = 1_570_000  # bytes


def timestamp(seconds: float) -> str:
    """RFC 3339 in whole seconds, as the API server keeps it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(seconds: float) -> str:
    """RFC 3339 with microseconds, as in the times of a Lease."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def binding(assignment: Assignment) -> Mapping[str, Any]:
    """A v1 Binding; its uid and resourceVersion are preconditions."""
    metadata = {
        "name": assignment.pod.name,
        "namespace": assignment.pod.namespace,
        "uid": assignment.uid,
        "resourceVersion": assignment.version,
    }
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": assignment.node},
    }


def reservation(value: Reservation) -> Mapping[str, Any]:
    """A Reservation object: one entry per node, pods by name and uid, slots by role.

    If the names would make it too large, pods are named by uid alone.

    Raises:
        errors.Refused: it would be larger than etcd takes.
    """
    kind = value.gang.kind
    owner = {
        "apiVersion": api_version_of(kind),
        "kind": kind.kind,
        "name": value.gang.name,
        "uid": value.uid,
    }
    # The record of a start counts while members run, even after their PodGroup is deleted.
    owner_fields = {"ownerReferences": [owner]} if value.record is None else {}
    # Without a kind it is Tutti's PodGroup, as older versions of Tutti write it and read it.
    kind_fields = {} if kind == POD_GROUP else {"apiGroup": kind.group, "kind": kind.kind}
    spec: dict[str, Any] = {
        "schedulerName": value.scheduler,
        "podGroup": {
            **kind_fields,
            "name": value.gang.name,
            "uid": value.uid,
            "generation": value.generation,
        },
        "term": value.term,
        "reservedAt": timestamp(value.reserved_at),
        "placement": _placement(value, _by_name),
    }
    if value.evict:
        spec["evict"] = list(value.evict)
    if value.record is not None:
        spec["queue"] = _record(value.record)
        if value.record.succeeded:
            spec["succeeded"] = dict(value.record.succeeded)
    if value.charged:
        spec["charged"] = list(value.charged)
    if value.roles:
        spec["roles"] = _roles(value.roles)
    if value.volumes:
        spec["volumes"] = [_volume(choice) for choice in value.volumes]
    if value.victims is not None:
        spec["claim"] = {
            "reservedAt": spec["reservedAt"],
            "victims": [_victim(victim) for victim in value.victims],
            **_grounds(value.grounds),
        }
    body = {
        "apiVersion": API_VERSION,
        "kind": "Reservation",
        "metadata": {
            "name": value.uid,
            "namespace": value.gang.namespace,
            **owner_fields,
        },
        "spec": spec,
    }
    if _size(body) > RESERVATION_LIMIT:
        spec["placement"] = _placement(value, _by_uid)
    if (size := _size(body)) > RESERVATION_LIMIT:
        raise errors.Refused(
            f"the Reservation of {len(value.entries):,} members would take {size:,} bytes, and at "
            f"most {RESERVATION_LIMIT:,} can be stored: make the gang smaller"
        )
    return body


def _roles(roles: Sequence[tuple[Uid, str]]) -> list[dict[str, Any]]:
    pods: dict[str, list[Uid]] = {}
    for uid, role in roles:
        pods.setdefault(role, []).append(uid)
    return [{"role": role, "pods": uids} for role, uids in sorted(pods.items())]


def _victim(victim: ReservedVictim) -> dict[str, Any]:
    return {
        "namespace": victim.gang.namespace,
        "apiGroup": victim.gang.kind.group,
        "kind": victim.gang.kind.kind,
        "name": victim.gang.name,
        "uid": victim.uid,
        "pods": list(victim.pods),
        "whole": victim.is_whole,
        **({"lostMilliseconds": lost} if (lost := victim.lost_milliseconds) else {}),
    }


def _grounds(grounds: ClaimGrounds | None) -> dict[str, Any]:
    if grounds is None:
        return {}
    return {
        "right": BY_GUARANTEE if grounds.by_guarantee else BY_PRIORITY,
        "costMilliseconds": grounds.cost_milliseconds,
        "boundMilliseconds": grounds.bound_milliseconds,
        "guarantee": [{"name": name, "guaranteed": amount} for name, amount in grounds.guarantee],
    }


def _volume(choice: VolumeChoice) -> dict[str, Any]:
    return {
        "claim": choice.claim,
        "uid": choice.uid,
        "version": choice.version,
        "node": choice.node,
        **({"volume": choice.volume} if choice.volume else {}),
    }


def _record(record: QueueRecord) -> dict[str, Any]:
    return {
        "name": record.queue,
        "uid": record.queue_uid,
        "startedAt": moment(record.started),
        "minimum": [
            {
                "role": start.role,
                "members": start.members,
                "requests": {name: as_text(name, n) for name, n in start.requests.amounts},
            }
            for start in record.minimum
        ],
        **({"protected": True} if record.is_protected else {}),
    }


def _size(body: Mapping[str, Any]) -> int:
    return len(json.dumps(body, separators=(",", ":")))


def _by_name(entries: Sequence[PodReservation]) -> dict[str, Any]:
    return {"pods": [{"name": entry.pod.name, "uid": entry.uid} for entry in entries]}


def _by_uid(entries: Sequence[PodReservation]) -> dict[str, Any]:
    return {"uids": [entry.uid for entry in entries]}


def _placement(
    value: Reservation, encode_pods: Callable[[Sequence[PodReservation]], Mapping[str, Any]]
) -> list[dict[str, Any]]:
    entries: dict[NodeName, list[PodReservation]] = {}
    for entry in value.entries:
        entries.setdefault(entry.node, []).append(entry)
    slots: dict[NodeName, dict[str, int]] = {}
    for slot in value.slots:
        slots.setdefault(slot.node, {})[slot.role] = slot.count
    placement: list[dict[str, Any]] = []
    for node in sorted(entries.keys() | slots.keys()):
        node_placement: dict[str, Any] = {"node": node}
        if node in entries:
            node_placement |= encode_pods(entries[node])
            if claims := [encode_reserved(e.uid, e.claims) for e in entries[node] if e.claims]:
                node_placement["claims"] = claims
        if node in slots:
            node_placement["slots"] = slots[node]
        placement.append(node_placement)
    return placement


def eviction(member: Member) -> Mapping[str, Any]:
    """A policy/v1 Eviction of the pod with this uid and resourceVersion alone."""
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": member.key.name, "namespace": member.key.namespace},
        "deleteOptions": {"preconditions": {"uid": member.uid, "resourceVersion": member.version}},
    }


def delete_options(value: Reservation) -> Mapping[str, Any]:
    """Options that delete only this object in this version, not one that was adopted since."""
    preconditions = {"uid": value.self_uid, "resourceVersion": value.version}
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}


def adoption(value: Reservation, term: LeaderTerm) -> Mapping[str, Any]:
    """A patch that signs a standing Reservation with another term."""
    return {"metadata": {"resourceVersion": value.version}, "spec": {"term": term}}


def amendment(value: Reservation) -> Mapping[str, Any]:
    """A patch that gives a standing Reservation this placement.

    A spent Reservation with the record of a start may be used for a new placement. So with a
    record, the other fields are also written.

    Raises:
        errors.Refused: it would be larger than etcd takes.
    """
    spec = reservation(value)["spec"]
    changed: dict[str, Any] = {"placement": spec["placement"], "volumes": spec.get("volumes")}
    if value.record is not None:
        changed |= {
            "podGroup": {"generation": value.generation},
            "term": value.term,
            "reservedAt": spec["reservedAt"],
            "evict": spec.get("evict"),
            "charged": spec.get("charged"),
            "roles": spec.get("roles"),
            "queue": {"name": value.record.queue, "uid": value.record.queue_uid},
            **({"succeeded": spec["succeeded"]} if "succeeded" in spec else {}),
        }
    if value.victims is not None:
        changed["claim"] = {**NO_GROUNDS, **spec["claim"]}
    return {"metadata": {"resourceVersion": value.version}, "spec": changed}


def lease(key: LeaseKey, value: Lease) -> Mapping[str, Any]:
    """A Lease object; with a version it replaces only that version."""
    metadata: dict[str, Any] = {"name": key.name, "namespace": key.namespace}
    if value.version:
        metadata["resourceVersion"] = value.version
    if value.mode:
        metadata["annotations"] = {LEASE_MODE: value.mode}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {
            "holderIdentity": value.holder,
            "acquireTime": value.acquired,
            "renewTime": value.renewed,
            "leaseDurationSeconds": value.seconds,
            "leaseTransitions": value.transitions,
        },
    }


class Why(NamedTuple):
    """Why a condition of a pod is False: PodScheduled or DisruptionTarget."""

    reason: str
    message: str
    at: float  # seconds since the epoch
    condition: str = SCHEDULED


def pod_condition(member: Member, why: Why) -> Mapping[str, Any]:
    """A patch of a condition of the pod with this uid and resourceVersion."""
    condition = {
        "type": why.condition,
        "status": "False",
        "reason": why.reason,
        "message": why.message[:MESSAGE_LIMIT],
        "lastTransitionTime": timestamp(why.at),
    }
    preconditions = {"uid": member.uid, "resourceVersion": member.version}
    return {"metadata": preconditions, "status": {"conditions": [condition]}}


class Regarding(NamedTuple):
    """The object that an Event is about."""

    kind: ApiKind
    namespace: str
    name: str
    uid: Uid

    @classmethod
    def gang(cls, key: GangKey, uid: Uid) -> "Regarding":
        """The object that declares a gang, or the pod of a gang of one."""
        return cls(key.kind, key.namespace, key.name, uid)

    @classmethod
    def pod(cls, key: PodKey, uid: Uid) -> "Regarding":
        """A pod."""
        return cls(POD, key.namespace, key.name, uid)


class Event(NamedTuple):
    """An Event, which ``kubectl describe`` shows to users."""

    regarding: Regarding
    reason: str
    message: str
    at: float  # seconds since the epoch
    warning: bool = False


def event(value: Event) -> Mapping[str, Any]:
    """A v1 Event; its name differs by object, reason, message and second."""
    at = timestamp(value.at)
    about = value.regarding
    digest = hashlib.sha256(f"{about.uid}{value.reason}{value.message}{at}".encode()).hexdigest()
    # An Event's name is a DNS subdomain of at most 253 characters; the digest takes 17 of them.
    name = f"{about.name[:200].rstrip('-.')}.{digest[:16]}"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": about.namespace},
        "involvedObject": {
            "apiVersion": api_version_of(about.kind),
            "kind": about.kind.kind,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
        },
        "reason": value.reason,
        "message": value.message[:MESSAGE_LIMIT],
        "type": "Warning" if value.warning else "Normal",
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
