"""A Snapshot as one v1 List, one object per line, in JSON: kubectl reads it, and so does grep."""

import json
from collections.abc import Iterator

from ...model.cluster import Member, Snapshot
from ...model.decisions import Plan
from ...model.keys import NodeName
from ...model.resources import NOTHING, Resources
from . import objects
from .header import Setup, annotations


def write(snapshot: Snapshot, setup: Setup, plan: Plan | None = None) -> str:
    """The Snapshot, how was planned, and the plan that was made of it.

    Pods of other schedulers are known by what they use of a node alone, and written so.
    """
    words = annotations(snapshot.taken_at, setup, plan, snapshot.gangs)
    head = {"apiVersion": "v1", "kind": "List", "metadata": {"annotations": words}}
    lines = (json.dumps(one, separators=(",", ":")) for one in _items(snapshot, setup.scheduler))
    return f'{json.dumps(head)[:-1]}, "items": [\n' + ",\n".join(lines) + "\n]}\n"


def _items(snapshot: Snapshot, scheduler: str) -> Iterator[objects.Raw]:
    at = snapshot.taken_at
    members = [*(m for gang in snapshot.gangs for m in gang.members), *snapshot.strays]
    yield from (objects.node(node) for node in snapshot.nodes)
    classes = {
        gang.priority_class: gang.class_value
        for gang in snapshot.gangs
        if gang.class_value is not None
    }
    yield from (objects.priority_class(name, n) for name, n in sorted(classes.items()))
    yield from (objects.group(gang, at) for gang in snapshot.gangs if not gang.is_single)
    yield from (objects.member(member, scheduler, at) for member in members)
    yield from (objects.reservation(held) for held in snapshot.reservations)
    ours = _used_by(members)
    number = 0
    for node in snapshot.nodes:
        for pod in objects.others(node, ours.get(node.name, NOTHING), number):
            number += 1
            yield pod


def _used_by(members: list[Member]) -> dict[NodeName, Resources]:
    on: dict[NodeName, list[Resources]] = {}
    for member in members:
        if member.node is not None and not member.is_over:
            on.setdefault(member.node, []).append(member.shape.requests)
    return {node: Resources.total(requests) for node, requests in on.items()}
