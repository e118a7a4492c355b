"""A full cluster in which two queues borrow, and a gang that a third queue's guarantee covers."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tutti.model.cluster import Gang, Member, Namespace, Node, Reservation, Snapshot
from tutti.model.keys import GangKey, NodeName, PodKey, Uid
from tutti.model.queues import Queue, QueueRecord, RoleAtStart
from tutti.model.resources import Resources
from tutti.model.shapes import Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GPU = "nvidia.com/gpu"
GPUS = 8  # of a node
SIZES = (1, 2, 3, 4, 6)  # members of a gang that runs, of one GPU each; 3.2 on average
CLAIMANT = 64  # members
OLDEST = 7_200  # seconds for which a gang has run at most
NAMESPACE, CLAIMS = "bench", "claims"
BORROW = ("nlp", "speech")  # the queues of gangs that run
GUARANTEED = 0.4  # of all GPUs, by each of these; they use a half
TAKEN_AT = 1_700_000_000.0


def snapshot(nodes: int, gangs: int, seed: int) -> Snapshot:
    """So many nodes, on which gangs run until all GPUs are used, and the claimant.

    At most so many gangs run; the nodes that they leave free are left out.
    """
    rng = random.Random(f"{seed} borrowers")
    total = nodes * GPUS
    running, used = [], 0
    for number in range(gangs):
        size = min(rng.choice(SIZES), total - used)
        if not size:
            break
        running.append(_runs(number, size, used, rng.randrange(OLDEST)))
        used += size
    full = -(-used // GPUS)
    own = [(name, int(used * GUARANTEED)) for name in BORROW]
    queues = [_queue(name, n) for name, n in (*own, ("vision", used - sum(n for _, n in own)))]
    waits = _gang(CLAIMS, "vision", CLAIMANT, TAKEN_AT - 60)
    return Snapshot(
        TAKEN_AT,
        tuple(_node(row, min(GPUS, used - row * GPUS)) for row in range(full)),
        tuple(sorted((*running, waits), key=lambda gang: gang.key)),
        namespaces=(Namespace(NAMESPACE),),
        queues=tuple(sorted(queues, key=lambda queue: queue.name)),
        start_records=tuple(map(_record, running)),
    )


def _runs(number: int, size: int, used: int, age: int) -> Gang:
    """A gang on the GPUs from ``used`` on."""
    nodes = [_name((used + n) // GPUS) for n in range(size)]
    name = f"gang-{number:04}"
    return _gang(name, BORROW[number % 2], size, TAKEN_AT - age, nodes)


def _gang(name: str, queue: str, size: int, created: float, nodes: Sequence[NodeName] = ()) -> Gang:
    members = tuple(_members(name, size, created, nodes))
    key = GangKey(NAMESPACE, name)
    return Gang(key, Uid(f"uid-{name}"), size, members=members, created=created, queue=queue)


def _members(name: str, size: int, created: float, nodes: Sequence[NodeName]) -> Iterator[Member]:
    shape = Shape(Resources.of({GPU: 1, "cpu": 8_000, "pods": 1}))
    for number in range(size):
        key = PodKey(NAMESPACE, f"{name}-{number:02}")
        node = nodes[number] if nodes else None
        yield Member(key, Uid(f"uid-{key.name}"), "1", shape, created, group=name, node=node)


def _record(gang: Gang) -> Reservation:
    size = len(gang.members)
    minimum = (RoleAtStart("", size, gang.members[0].shape.requests.scaled(size)),)
    record = QueueRecord(gang.queue, Uid(gang.queue), gang.created, minimum)
    uids = tuple(member.uid for member in gang.members)
    return Reservation(gang.key, gang.uid, 1, "", "", 0.0, (), record=record, charged=uids)


def _queue(name: str, guaranteed: int) -> Queue:
    return Queue(name, Uid(name), guaranteed=((GPU, guaranteed),))


def _node(row: int, used: int) -> Node:
    return Node(
        _name(row),
        Resources.of({GPU: GPUS, "cpu": 128_000, "pods": 110}),
        used=Resources.of({GPU: used, "cpu": 8_000 * used, "pods": used}),
    )


def _name(row: int) -> NodeName:
    return NodeName(f"node-{row:05}")
