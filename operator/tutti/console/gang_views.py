"""The waiting gangs in their order, and everything about one gang."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ..gang import demand, order
from ..kube.gang_sources import GangObject
from ..model.cluster import Gang, Member, Reservation, Snapshot
from ..model.keys import GangKey
from ..reporting.utilisation import GangState, state_of
from .cluster_map import gang_name, requests_of
from .observation import Observation, Record

WAITING, DEGRADED = GangState.WAITING.value, GangState.DEGRADED.value
CONDITION_FIELDS = ("type", "status", "reason", "message", "lastTransitionTime")


def find(snapshot: Snapshot, name: str) -> Gang | None:
    """The gang of this ``gang_name``; None if there is none."""
    return next((gang for gang in snapshot.gangs if gang_name(gang.key) == name), None)


def waiting(
    observation: Observation, status_rows: Mapping[GangKey, Record]
) -> Mapping[str, Record]:
    """The waiting gangs with their place in the order, and gangs that lack members, by name.

    ``status_rows`` are the gangs of ``tutti status``; their reasons are what the operator wrote.
    """
    snapshot = observation.snapshot
    in_line = [
        gang for gang in order.considered(snapshot.gangs) if _is(WAITING, status_rows.get(gang.key))
    ]
    places = {gang.key: place for place, gang in enumerate(in_line, 1)}
    records = {}
    for gang in snapshot.gangs:
        row = status_rows.get(gang.key)
        if row is None or not (_is(WAITING, row) or _is(DEGRADED, row)):
            continue
        records[gang_name(gang.key)] = {
            "gang": gang_name(gang.key),
            "namespace": gang.key.namespace,
            "name": gang.key.name,
            "kind": gang.key.kind.kind,
            "state": row["state"],
            "priority": gang.priority,
            "place": places.get(gang.key),
            "since": since(gang),
            "bound": row["bound"],
            "needed": row["needed"],
            "members": len(gang.members),
            "reason": row["reason"],
            "message": row["message"],
        }
    return records


def since(gang: Gang) -> float:
    """The time since when a gang waits, in seconds since the epoch."""
    members = order.by_age(member for member in gang.members if member.node is None)
    return order.waiting_since(gang, members)


def _is(state: str, row: Record | None) -> bool:
    return row is not None and row["state"] == state


def gang_record(observation: Observation, gang: Gang) -> Record:
    """Everything that the cluster shows about one gang."""
    snapshot = observation.snapshot
    state = state_of(gang, snapshot)
    own_reservation = next(
        (reservation for reservation in snapshot.reservations if reservation.gang == gang.key), None
    )
    group = observation.groups.get(gang.key)
    return {
        "gang": gang_name(gang.key),
        "namespace": gang.key.namespace,
        "name": gang.key.name,
        "kind": gang.key.kind.kind,
        "state": "finished" if state is None else state.value,
        "priority": gang.priority,
        "priorityClass": gang.priority_class,
        "created": gang.created,
        "since": since(gang) if state is GangState.WAITING else None,
        "needed": demand.min_members(gang),
        "bound": sum(member.counts_as_bound for member in gang.members) + len(gang.finished),
        "onPartial": gang.on_partial.value,
        "timeoutSeconds": gang.timeout_seconds,
        "requests": requests_of(gang),
        "roles": list(_roles(gang)),
        "members": [_member(member) for member in gang.members],
        "conditions": list(_conditions(group)),
        "reservation": None if own_reservation is None else _reservation(own_reservation),
    }


def _roles(gang: Gang) -> Iterator[Record]:
    present = Counter(member.role for member in gang.members if not member.is_over)
    bound = Counter(member.role for member in gang.members if member.counts_as_bound)
    for role in gang.roles:
        yield {
            "name": role.name,
            "minMember": role.min_member,
            "maxMember": role.max_member,
            "present": present[role.name],
            "bound": bound[role.name],
        }


def _member(member: Member) -> Record:
    return {
        "name": member.key.name,
        "role": member.role,
        "node": member.node,
        "phase": member.phase.value,
        "terminating": member.terminating,
        "gates": list(member.gates),
        "reason": member.scheduled_condition.reason or member.failure,
        "message": member.scheduled_condition.message,
    }


def _conditions(group: GangObject | None) -> Iterator[Record]:
    lines: Any = None if group is None else group.status.get("conditions")
    for line in lines if isinstance(lines, list) else ():
        if isinstance(line, dict):
            yield {name: str(line.get(name, "")) for name in CONDITION_FIELDS}


def _reservation(reservation: Reservation) -> Mapping[str, Any]:
    nodes = Counter(entry.node for entry in reservation.entries)
    return {
        "name": reservation.uid,
        "term": reservation.term,
        "reservedAt": reservation.reserved_at,
        "nodes": sorted(nodes.items()),
        "slots": [[slot.node, slot.role, slot.count] for slot in reservation.slots],
        "evicts": len(reservation.evict),
    }
