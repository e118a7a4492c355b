"""A tree of queues over a scene: all waiting gangs are in its leaves, and some gangs run there.

Amounts are parts of the GPUs that are free before the running gangs are placed. Seeded.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tutti.gang.findings import QueueAtLimit
from tutti.model.cluster import Namespace, Reservation
from tutti.model.keys import GangKey, NodeName, PodKey, Uid
from tutti.model.queues import Queue, QueueRecord, RoleAtStart

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.model.cluster import Gang, Node, Snapshot
    from tutti.model.decisions import Plan
    from tutti.model.keys import NodeName
    from tutti.model.resources import Resources

TEAMS, GROUPS, LEAVES = 4, 4, 5  # children of the root, of each team, and of each group
QUEUES = TEAMS + TEAMS * GROUPS + TEAMS * GROUPS * LEAVES
GUARANTEED = 0.4  # of the free GPUs, by all leaves together
BEYOND = 1.2  # times what its children guarantee is what a group, and a team, guarantees
LIMITED = 0.75  # of all leaves and groups have a limit
RUNNING = 0.05  # of the free GPUs, at most, by gangs that run
MOST_RUNNING = 2  # gangs in each leaf, of as many members
WEIGHTS = (1, 1, 1, 2, 3)
STARTED = 3_600.0  # seconds ago, the first running gang


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A queue without children; its share of what all leaves guarantee is drawn."""

    name: str
    group: str
    team: str
    part: float


def with_queues(picture: Snapshot, gpu: str, seed: int) -> Snapshot:
    """The same gangs in the leaves of a tree of queues, and further gangs that run there."""
    rng = random.Random(f"{seed} queues")
    leaves = [
        _Leaf(f"team-{t}-{g}-{leaf}", f"team-{t}-{g}", f"team-{t}", rng.uniform(0.5, 1.5))
        for t in range(TEAMS)
        for g in range(GROUPS)
        for leaf in range(LEAVES)
    ]
    free = sum(max(node.allocatable[gpu] - node.used[gpu], 0) for node in picture.nodes)
    queues = [*_queues(leaves, free, gpu, rng)]
    least_free = free * (1 - RUNNING)
    waiting = [replace(gang, queue=rng.choice(leaves).name) for gang in picture.gangs]
    nodes = {node.name: node for node in picture.nodes}
    running: list[Gang] = []
    for gang in _running(leaves, waiting, nodes, rng):
        running.append(gang)
        free -= sum(member.shape.requests[gpu] for member in gang.members)
        if free < least_free:
            break
    gangs = tuple(sorted((*waiting, *running), key=lambda gang: gang.key))
    names = sorted({gang.key.namespace for gang in gangs})
    return replace(
        picture,
        nodes=tuple(nodes.values()),
        gangs=gangs,
        namespaces=tuple(map(Namespace, names)),
        queues=tuple(sorted(queues, key=lambda queue: queue.name)),
        start_records=tuple(_start_record(gang) for gang in running),
    )


def without_queues(picture: Snapshot) -> Snapshot:
    """The same gangs, waiting and running, without any Queue."""
    return replace(picture, queues=(), start_records=(), namespaces=())


def at_a_limit(plan: Plan) -> int:
    """How many queues keep a gang waiting because of their limits."""
    findings = (finding for rejection in plan.rejections for finding in rejection.findings)
    return len({finding.queue for finding in findings if isinstance(finding, QueueAtLimit)})


def _queues(leaves: Sequence[_Leaf], free: int, gpu: str, rng: random.Random) -> Iterator[Queue]:
    parts: dict[tuple[str, str], float] = {}  # by queue and parent, the leaves below it
    own = {leaf.name for leaf in leaves}
    for leaf in leaves:
        for queue in ((leaf.name, leaf.group), (leaf.group, leaf.team), (leaf.team, "")):
            parts[queue] = parts.get(queue, 0.0) + leaf.part
    total = sum(leaf.part for leaf in leaves)
    for (name, parent), part in parts.items():
        levels = 0 if name in own else 1 if parent else 2
        guaranteed = int(free * GUARANTEED * part / total * BEYOND**levels)
        limit = int(guaranteed * rng.uniform(1.0, 2.0))
        is_limited = parent and rng.random() < LIMITED
        yield Queue(
            name,
            Uid(f"uid-{name}"),
            parent,
            guaranteed=((gpu, guaranteed),),
            limits=((gpu, limit),) if is_limited else (),
            weight=rng.choice(WEIGHTS),
        )


def _running(
    leaves: Sequence[_Leaf],
    waiting: Sequence[Gang],
    nodes: dict[NodeName, Node],
    rng: random.Random,
) -> Iterator[Gang]:
    """Gangs like the waiting ones, of few members, each on the next node with room."""
    names = list(nodes)
    for leaf in leaves:
        for number in range(rng.randint(0, MOST_RUNNING)):
            like = rng.choice(waiting)
            name = f"{leaf.name}-{number}"
            placed = []
            for n, member in enumerate(like.members[:MOST_RUNNING]):
                start = rng.randrange(len(names))
                order = (*names[start:], *names[:start])
                node = next((o for o in order if _has_room(nodes[o], member.shape.requests)), None)
                if node is None:
                    continue
                used = nodes[node].used + member.shape.requests
                nodes[node] = replace(nodes[node], used=used)
                key = PodKey(member.key.namespace, f"{name}-{n}")
                bound = replace(member, key=key, uid=Uid(f"uid-{key.name}"), group=name)
                placed.append(replace(bound, node=node))
            if placed:
                created = like.created - STARTED
                yield replace(
                    like,
                    key=GangKey(like.key.namespace, name),
                    uid=Uid(f"uid-{name}"),
                    min_member=len(placed),
                    members=tuple(placed),
                    created=created,
                    queue=leaf.name,
                )


def _has_room(node: Node, requests: Resources) -> bool:
    return all(node.allocatable[name] - node.used[name] >= n for name, n in requests.amounts)


def _start_record(gang: Gang) -> Reservation:
    charged = gang.members[0].shape.requests.scaled(len(gang.members))
    started = (RoleAtStart("", len(gang.members), charged),)
    record = QueueRecord(gang.queue, Uid(f"uid-{gang.queue}"), gang.created, started)
    pods = tuple(sorted(member.uid for member in gang.members))
    return Reservation(gang.key, gang.uid, 1, "tutti", "", 0.0, (), record=record, charged=pods)
