"""Writes a Snapshot as a v1 List in JSON, with one object per line, for kubectl and grep."""

import json
from collections.abc import Iterator

from ..kube.codec.queues import encode_queue
from ..kube.kinds import encode_budget, encode_topology
from ..model.cluster import Member, PlacedPod, Snapshot
from ..model.decisions import Plan
from ..model.devices.extended import amounts
from ..model.keys import NodeName
from ..model.resources import NOTHING, Resources
from . import encode, volumes
from .devices import encode as devices
from .header import PlannerConfig, annotations


def write(snapshot: Snapshot, setup: PlannerConfig, plan: Plan | None = None) -> str:
    """The Snapshot, the settings of the planner, and the plan for it, if any, as text.

    A Snapshot has only the sum that pods of other schedulers use of a node, and stand-ins for these
    pods are written. Their labels are written if a rule between pods is in force.
    """
    words = annotations(snapshot, setup, plan)
    head = {"apiVersion": "v1", "kind": "List", "metadata": {"annotations": words}}
    lines = (json.dumps(item, separators=(",", ":")) for item in _items(snapshot, setup.scheduler))
    return f'{json.dumps(head)[:-1]}, "items": [\n' + ",\n".join(lines) + "\n]}\n"


def _items(snapshot: Snapshot, scheduler: str) -> Iterator[encode.Raw]:
    at = snapshot.taken_at
    members = [*(m for gang in snapshot.gangs for m in gang.members), *snapshot.strays]
    yield from (encode.node(node) for node in snapshot.nodes)
    classes = {
        gang.priority_class: gang.class_value
        for gang in snapshot.gangs
        if gang.priority_class and gang.class_value is not None
    }
    yield from (encode.priority_class(name, n) for name, n in sorted(classes.items()))
    yield from (encode_queue(queue, at) for queue in snapshot.queues)
    yield from (encode_topology(topology) for topology in snapshot.topologies)
    yield from (encode_budget(budget) for budget in snapshot.budgets)
    yield from (encode.job(job) for job in (snapshot.jobs or {}).values())
    yield from (encode.group(gang, at) for gang in snapshot.gangs if not gang.is_single)
    yield from (encode.member(member, scheduler, at) for member in members)
    standing = (*snapshot.reservations, *snapshot.start_records)
    yield from (encode.reservation(reservation) for reservation in standing)
    yield from (encode.namespace(namespace) for namespace in snapshot.namespaces)
    yield from volumes.written(snapshot.storage)
    yield from volumes.drivers(snapshot)
    yield from devices.written(snapshot.devices)
    yield from _foreign_pods(snapshot, members)


def _foreign_pods(snapshot: Snapshot, members: list[Member]) -> Iterator[encode.Raw]:
    """The pods of other schedulers; pods on unknown nodes come last."""
    used, ours = _used_by(members), {member.uid for member in members}
    pods_by_node: dict[NodeName, list[PlacedPod]] = {}
    for foreign_pod in snapshot.placed_pods:
        if foreign_pod.uid not in ours:
            pods_by_node.setdefault(foreign_pod.node, []).append(foreign_pod)
    at = snapshot.taken_at
    number = 0
    for node in snapshot.nodes:
        pods_here = pods_by_node.pop(node.name, [])
        for pod in encode.foreign_pods(node, used.get(node.name, NOTHING), pods_here, at, number):
            number += 1
            yield pod
    yield from (
        encode.placed_pod(foreign_pod, taken_at=at)
        for pods_here in pods_by_node.values()
        for foreign_pod in pods_here
    )


def _used_by(members: list[Member]) -> dict[NodeName, Resources]:
    on: dict[NodeName, list[Resources]] = {}
    for member in members:
        if member.node is not None and not member.is_over:
            on.setdefault(member.node, []).append(_counted(member))
    return {node: Resources.total(requests) for node, requests in on.items()}


def _counted(member: Member) -> Resources:
    """What a node counts of a member, also of extended resources that its claim stands for."""
    requests = member.shape.requests
    if not member.extended_requests:
        return requests
    return requests.at_least(amounts(member.extended_requests))
