"""The gangs, the waiting ones in their order; claims; and everything about one gang."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..gang import demand, domain_rules, order
from ..kube.gang_sources import GangObject
from ..model.cluster import Gang, Member, Reservation, ReservedVictim, Snapshot
from ..model.keys import GangKey, NodeName, Uid
from ..reporting.utilisation import GangState, state_of
from .cluster_map import NO_UIDS, ending_pods, gang_name, requests_of
from .observation import Observation, Record

WAITING, DEGRADED = GangState.WAITING.value, GangState.DEGRADED.value
CONDITION_FIELDS = ("type", "status", "reason", "message", "lastTransitionTime")


def find(snapshot: Snapshot, name: str) -> Gang | None:
    """The gang of this ``gang_name``; None if there is none."""
    return next((gang for gang in snapshot.gangs if gang_name(gang.key) == name), None)


def gangs(observation: Observation, status_rows: Mapping[GangKey, Record]) -> Mapping[str, Record]:
    """The gangs that have not ended, by name.

    Those that wait have a rank among all, and a place among the gangs of their queue that wait.
    ``status_rows`` are the gangs of ``tutti status``; their reasons are what the operator wrote.
    """
    snapshot = observation.snapshot
    in_line = [
        gang for gang in order.considered(snapshot.gangs) if _is(WAITING, status_rows.get(gang.key))
    ]
    ranks = {gang.key: rank for rank, gang in enumerate(in_line, 1)}
    in_queue: Counter[str] = Counter()
    places = {}
    for gang in in_line:
        queue = status_rows[gang.key]["queue"]
        in_queue[queue] += 1
        places[gang.key] = in_queue[queue]
    records = {}
    for gang in snapshot.gangs:
        row = status_rows.get(gang.key)
        if row is None:
            continue
        records[gang_name(gang.key)] = {
            "gang": gang_name(gang.key),
            "namespace": gang.key.namespace,
            "name": gang.key.name,
            "kind": gang.key.kind.kind,
            "state": row["state"],
            "priority": gang.priority,
            "queue": row["queue"],
            "rank": ranks.get(gang.key),
            "place": places.get(gang.key),
            "since": since(gang) if row["state"] in (WAITING, DEGRADED) else None,
            "created": gang.created,
            "bound": row["bound"],
            "needed": row["needed"],
            "nodes": row["nodes"],
            "members": len(gang.members),
            "reason": row["reason"],
            "message": row["message"],
        }
    return records


def needing_attention(records: Mapping[str, Record]) -> Mapping[str, Record]:
    """The gangs among them that wait, and those that lack members."""
    return {
        name: record
        for name, record in records.items()
        if _is(WAITING, record) or _is(DEGRADED, record)
    }


def since(gang: Gang) -> float:
    """The time since when a gang waits, in seconds since the epoch."""
    members = order.by_age(member for member in gang.members if member.node is None)
    return order.waiting_since(gang, members)


def _is(state: str, row: Record | None) -> bool:
    return row is not None and row["state"] == state


def claims(snapshot: Snapshot) -> Sequence[Record]:
    """The standing claims: gangs that start once pods of others have ended."""
    standing = [
        (reservation, reservation.victims)
        for reservation in snapshot.reservations
        if reservation.victims is not None
    ]
    if not standing:
        return []
    pods = {
        member.uid: member
        for gang in snapshot.gangs
        for member in gang.members
        if member.node is not None and not member.is_over
    }
    return [
        {
            "gang": gang_name(reservation.gang),
            "reservedAt": reservation.reserved_at,
            "victims": [_victim(victim, pods) for victim in victims],
        }
        for reservation, victims in standing
    ]


def _victim(victim: ReservedVictim, pods: Mapping[Uid, Member]) -> Record:
    """A gang that ends for another; ``pods`` are those that hold room."""
    present = [pods[uid] for uid in victim.pods if uid in pods]
    return {
        "gang": gang_name(victim.gang),
        "whole": victim.is_whole,
        "pods": len(victim.pods),
        "gone": len(victim.pods) - len(present),
        "terminating": sum(member.terminating for member in present),
    }


def gang_record(observation: Observation, gang: Gang) -> Record:
    """Everything that the cluster shows about one gang."""
    snapshot = observation.snapshot
    ending = ending_pods(snapshot).get(gang.key, NO_UIDS)
    standing_claims = claims(snapshot)
    state = state_of(gang, snapshot)
    own_reservation = next(
        (reservation for reservation in snapshot.reservations if reservation.gang == gang.key), None
    )
    group = observation.groups.get(gang.key)
    reserved = {} if own_reservation is None else _reserved_nodes(own_reservation)
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
        "members": [
            _member(member, reserved.get(member.uid), ends=member.uid in ending)
            for member in gang.members
        ],
        "domains": list(_domains(gang, own_reservation, snapshot)),
        "conditions": list(_conditions(group)),
        "reservation": None if own_reservation is None else _reservation(own_reservation),
        "claim": next(
            (claim for claim in standing_claims if claim["gang"] == gang_name(gang.key)), None
        ),
        "endsFor": [
            {**victim, "gang": claim["gang"]}
            for claim in standing_claims
            for victim in claim["victims"]
            if victim["gang"] == gang_name(gang.key)
        ],
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


def _member(member: Member, reserved: NodeName | None, *, ends: bool) -> Record:
    return {
        "name": member.key.name,
        "role": member.role,
        "node": member.node,
        "reserved": reserved,
        "phase": member.phase.value,
        "terminating": member.terminating,
        "ends": ends,
        "gates": list(member.gates),
        "reason": member.scheduled_condition.reason or member.failure,
        "message": member.scheduled_condition.message,
    }


def _domains(gang: Gang, reservation: Reservation | None, snapshot: Snapshot) -> Iterator[str]:
    """In which domains it has nodes: a sentence for each level that it names."""
    nodes = {node.name: node for node in snapshot.nodes}
    places = domain_rules.places_of(gang, reservation)
    yield from map(str, domain_rules.level_domains(gang, places, nodes, snapshot.topologies))


def _conditions(group: GangObject | None) -> Iterator[Record]:
    lines: Any = None if group is None else group.status.get("conditions")
    for line in lines if isinstance(lines, list) else ():
        if isinstance(line, dict):
            yield {name: str(line.get(name, "")) for name in CONDITION_FIELDS}


def _reserved_nodes(reservation: Reservation) -> Mapping[Uid, NodeName]:
    return {entry.uid: entry.node for entry in reservation.entries}


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
