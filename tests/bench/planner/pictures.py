"""From a scene to a Snapshot: nodes filled by bound pods, and gangs that wait. Seeded."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from operator import ge, sub
from typing import TYPE_CHECKING

from tutti.model.cluster import Gang, Member, Node, Role, Snapshot
from tutti.model.inter_pod import (
    AffinityTerm,
    InterPodRules,
    PodSelector,
    Requirement,
    TopologySpread,
)
from tutti.model.keys import GangKey, NodeName, PodKey, Uid
from tutti.model.resources import Resources
from tutti.model.shapes import NodeTerm, Shape, Template

from . import borrowers, network, queue_tree, racks, single_pods, traces
from .scenes import BOUND_ON_A_NODE, RACK, Shapes, Twist
from .single_pods import HOST_LABEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .scenes import Scene
    from .traces import Ask, Machine, Trace

GPU = "nvidia.com/gpu"
MODEL = "gpu-model"
RACK_LABEL = "rack"
ZONE_LABEL = "topology.kubernetes.io/zone"
GANG_LABEL, ROLE_LABEL, DRIVER = "gang", "role", "driver"
NAMESPACE = "bench"
PODS_PER_NODE = 110
TAKEN_AT = 1_700_000_000.0
MOST_AGE = 3_000  # seconds that a gang has waited at most: ages weigh, and none is starved

EIGHT, MANY = 8, 64
ZONES = 3
NAMED_TWISTS = (Twist.RULES, Twist.LONG_SPECS)  # nodes have a label with their name
_GENERATED_TWISTS = (Twist.GENERATED, Twist.MILLION)
_UNLIKE_TWISTS = (Twist.UNLIKE, Twist.PRIORITIES, Twist.RESOURCES)
OWN_RESOURCE = "example.com/own-"  # and the number of the gang that asks for it
_UNLIKE = traces.Machine(32_000, 128 * traces.GIBI, 0)
RULED = 5  # every so manyth gang has rules, where any has
CPU_FULL = 0.8  # of what GPU pods left, where CPU is to be scarce, too
_CPU, _GPUS, _PODS = 0, 2, 3  # positions in a Use
_SMALL_CPU = (50, 100, 200)  # milli-CPU of a small pod
_SMALL_MEMORY = tuple(n * traces.GIBI // 8 for n in (1, 2, 4))  # bytes
_CANDIDATES = 8  # nodes that a bound pod was tried on; the fullest took it
_MOST_MISSES = 1_000  # pods in a row that found no room: the cluster is as full as it gets
_UNEVEN = 64 * 1024  # bytes by which no two nodes are alike


def snapshot(scene: Scene, trace: Trace, seed: int) -> Snapshot:
    """The scene as the planner sees it; the same for the same trace and seed."""
    if scene.twist is Twist.NETWORK:
        return network.snapshot(scene.nodes, scene.gangs, seed)
    if scene.twist is Twist.PREEMPTION:
        return borrowers.snapshot(scene.nodes, scene.gangs, seed)
    if scene.twist is Twist.TOPOLOGY:
        return racks.snapshot(scene.nodes, scene.gangs, scene.full, seed)
    if scene.twist is Twist.FEW_RACKS:
        return racks.snapshot(scene.nodes, scene.gangs, scene.full, seed, racks.FEW_BLOCKS)
    rng = random.Random(f"{seed} {scene.name}")
    if scene.twist in _GENERATED_TWISTS:
        trace = traces.generated(scene.nodes, len(trace.asks), seed)
    if scene.twist in _UNLIKE_TWISTS:
        machines: Sequence[Machine] = [_UNLIKE] * scene.nodes
        used: Sequence[Use] = [_use(rng) if scene.full else (0, 0, 0, 0) for _ in machines]
    else:
        machines = _machines(scene.nodes, trace, rng)
        used = _filled(machines, trace.asks, scene, rng)
    if scene.twist is Twist.DISTINCT:
        used = [(cpu, memory + i * _UNEVEN, gpu, n) for i, (cpu, memory, gpu, n) in enumerate(used)]
    nodes = tuple(
        _node(i, machine, use, scene)
        for i, (machine, use) in enumerate(zip(machines, used, strict=True))
    )
    picture = Snapshot(TAKEN_AT, nodes, _gangs(scene, trace, machines, rng))
    is_queued = scene.twist is Twist.QUEUES
    return queue_tree.with_queues(picture, GPU, seed) if is_queued else picture


def shapes_of(scene: Scene, trace: Trace) -> Sequence[Ask]:
    """What the scene's members may ask for."""
    several = trace.shapes(least_gpus=2)
    match scene.shapes:
        case Shapes.EIGHT:
            return several[:EIGHT]
        case Shapes.SEVERAL_GPUS:
            return several
        case Shapes.ALL:
            return trace.shapes()
        case Shapes.MANY:
            return traces.many_shapes(MANY, seed=MANY)
        case Shapes.SINGLE:
            return [ask for ask in trace.shapes(least_gpus=1) if ask.gpus == 1]
        case Shapes.PAIR:
            return sorted(several, key=lambda ask: ask.gpus)[:1]


def _machines(count: int, trace: Trace, rng: random.Random) -> Sequence[Machine]:
    """The list, as often as needed; of a list that is longer, a sample in its order."""
    listed = trace.machines
    if count < len(listed):
        return [listed[i] for i in sorted(rng.sample(range(len(listed)), count))]
    return [listed[i % len(listed)] for i in range(count)]


Use = tuple[int, int, int, int]  # milli-CPU, bytes, GPUs, pods


def _filled(
    machines: Sequence[Machine], asks: Sequence[Ask], scene: Scene, rng: random.Random
) -> Sequence[Use]:
    """What bound pods use: so much of all GPUs, or of all CPU where there are none."""
    left = [[m.cpu_milli, m.memory, m.gpus, PODS_PER_NODE] for m in machines]
    scarce = _GPUS if any(machine.gpus for machine in machines) else _CPU
    _fill(left, scene.full, scarce, asks, rng)
    if scene.twist is Twist.CPU:
        _fill(left, CPU_FULL, _CPU, [ask for ask in asks if not ask.gpus], rng)
    if scene.twist is Twist.MILLION:
        _add_small_pods(left, rng)
    return [
        (m.cpu_milli - cpu, m.memory - memory, m.gpus - gpus, PODS_PER_NODE - pods)
        for m, (cpu, memory, gpus, pods) in zip(machines, left, strict=True)
    ]


def _fill(
    left: Sequence[list[int]], full: float, scarce: int, asks: Sequence[Ask], rng: random.Random
) -> None:
    """Bind pods drawn from the list until so much of one resource is used, or nothing fits."""
    misses, wanted = 0, full * sum(room[scarce] for room in left)
    while wanted > 0 and misses < _MOST_MISSES:
        ask = rng.choice(asks)
        amounts = (ask.cpu_milli, ask.memory, ask.gpus, 1)
        tried = [int(rng.random() * len(left)) for _ in range(_CANDIDATES)]
        open_ones = [i for i in tried if all(map(ge, left[i], amounts))]
        if not open_ones:
            misses += 1
            continue
        room = left[min(open_ones, key=lambda i: (left[i][_GPUS], left[i][_CPU]))]
        for r, n in enumerate(amounts):
            room[r] -= n
        wanted, misses = wanted - amounts[scarce], 0


def _add_small_pods(left: Sequence[list[int]], rng: random.Random) -> None:
    """Bind small pods until each node has its number of bound pods, or no room for more."""
    for room in left:
        for _ in range(BOUND_ON_A_NODE - (PODS_PER_NODE - room[_PODS])):
            amounts = (rng.choice(_SMALL_CPU), rng.choice(_SMALL_MEMORY), 0, 1)
            if all(map(ge, room, amounts)):
                room[:] = map(sub, room, amounts)


def _node(index: int, machine: Machine, use: Use, scene: Scene) -> Node:
    name = f"node-{index:06}"
    labels = {RACK_LABEL: _rack(index)} | ({MODEL: machine.model} if machine.model else {})
    if scene.twist in NAMED_TWISTS:
        labels |= {ZONE_LABEL: f"z{index % ZONES}", HOST_LABEL: name}
    return Node(
        name=NodeName(name),
        allocatable=_allocatable(machine, scene),
        labels=tuple(sorted(labels.items())),
        used=_resources(*use),
    )


@cache  # nodes of one machine share one vector, as in the operator
def _allocatable(machine: Machine, scene: Scene) -> Resources:
    offered = _resources(machine.cpu_milli, machine.memory, machine.gpus, PODS_PER_NODE)
    if scene.twist is Twist.RESOURCES:
        return offered + Resources.of({f"{OWN_RESOURCE}{i}": 1 for i in range(scene.gangs)})
    return offered


def _rack(index: int) -> str:
    return f"r{index // RACK:05}"


def _resources(cpu: int, memory: int, gpus: int, pods: int) -> Resources:
    return Resources.of({"cpu": cpu, "memory": memory, GPU: gpus, "pods": pods})


def _gangs(
    scene: Scene, trace: Trace, machines: Sequence[Machine], rng: random.Random
) -> tuple[Gang, ...]:
    asks = shapes_of(scene, trace)
    shapes = [_shape(ask) for ask in asks]
    homes: Sequence[Sequence[str]] = [()] * len(asks)
    if scene.twist is Twist.RACKS:
        homes = [
            sorted({_rack(i) for i, machine in enumerate(machines) if ask.fits(machine)})
            for ask in asks
        ]
    found = []
    for index in range(scene.gangs):
        kind, size = rng.randrange(len(asks)), rng.choice(scene.sizes)
        shape = shapes[kind]
        if homes[kind]:
            rule = ((RACK_LABEL, rng.choice(homes[kind])),)
            shape = Shape(shape.requests, rule, shape.required)
        gang = _gang(index, size, shape, TAKEN_AT - rng.randrange(MOST_AGE))
        if scene.twist in _UNLIKE_TWISTS:
            gang = _unlike(gang, rng)
        if scene.twist is Twist.PRIORITIES:
            gang = _of_priority(gang, index)
        if scene.twist is Twist.RESOURCES:
            gang = _asking_for(gang, f"{OWN_RESOURCE}{index}")
        if scene.twist is Twist.FURTHER:
            gang = replace(gang, min_member=1)
        if scene.twist is Twist.TEMPLATES:
            gang = _awaiting(gang)
        has_rules = scene.twist is Twist.RULES and index % RULED == 0
        found.append(_ruled(gang, rng) if has_rules else gang)
    more = enumerate(single_pods.shapes(scene), scene.gangs)
    found += [_gang(index, 1, shape, TAKEN_AT) for index, shape in more]
    return tuple(found)


def _use(rng: random.Random) -> Use:
    """What others use of a node: like that of no other node."""
    return rng.randint(1_000, 12_000), rng.randint(1_000, 40_000) * traces.MEBI, 0, 1


def _unlike(gang: Gang, rng: random.Random) -> Gang:
    """The gang with members of which no two ask for the same."""

    def shape() -> Shape:
        cpu, memory = rng.randint(500, 8_000), rng.randint(500, 60_000) * traces.MEBI
        return Shape(Resources.of({"cpu": cpu, "memory": memory, "pods": 1}))

    return replace(gang, members=tuple(replace(member, shape=shape()) for member in gang.members))


def _of_priority(gang: Gang, priority: int) -> Gang:
    """The gang with members of this priority."""
    return replace(
        gang, members=tuple(replace(member, priority=priority) for member in gang.members)
    )


def _asking_for(gang: Gang, resource: str) -> Gang:
    """The gang with members that ask for one of this resource, too."""
    more = Resources.of({resource: 1})

    def asking(member: Member) -> Member:
        return replace(member, shape=replace(member.shape, requests=member.shape.requests + more))

    return replace(gang, members=tuple(map(asking, gang.members)))


def _awaiting(gang: Gang) -> Gang:
    """The gang with its first member alone, and a template for the others."""
    first = gang.members[0]
    role = Role("worker", gang.min_member, template=Template(first.shape, first.labels))
    return replace(gang, roles=(role,), members=(replace(first, role=role.name),))


def _shape(ask: Ask) -> Shape:
    requests = _resources(ask.cpu_milli, ask.memory, ask.gpus, 1)
    if not ask.models:
        return Shape(requests)
    return Shape(requests, required=(NodeTerm((Requirement(MODEL, "In", ask.models),)),))


def _ruled(gang: Gang, rng: random.Random) -> Gang:
    """The gang with what its members ask of one another: one of four kinds, drawn."""
    own = PodSelector((Requirement(GANG_LABEL, "In", (gang.key.name,)),), (NAMESPACE,))
    driver = PodSelector(
        (*(own.selector or ()), Requirement(ROLE_LABEL, "In", (DRIVER,))), (NAMESPACE,)
    )
    rules = rng.choice(
        (
            InterPodRules(anti_affinity=(AffinityTerm(HOST_LABEL, own),)),
            InterPodRules(affinity=(AffinityTerm(ZONE_LABEL, own),)),
            InterPodRules(affinity=(AffinityTerm(ZONE_LABEL, driver),)),
            InterPodRules(spread=(TopologySpread(ZONE_LABEL, own, max_skew=1),)),
        )
    )
    shape = replace(gang.members[0].shape, rules=rules)
    members = [replace(member, shape=shape) for member in gang.members]
    if rules.affinity and rules.affinity[0].peers == driver:
        labels = (*gang.members[0].labels, (ROLE_LABEL, DRIVER))
        members[0] = replace(gang.members[0], labels=labels)
    return replace(gang, members=tuple(members))


def _name(index: int) -> str:
    return f"gang-{index:05}"


def _gang(index: int, size: int, shape: Shape, created: float) -> Gang:
    name, members = _name(index), []
    labels = ((GANG_LABEL, name),)
    for n in range(size):
        key = PodKey(NAMESPACE, f"{name}-{n:05}")
        uid = Uid(f"uid-{key.name}")
        members.append(Member(key, uid, "1", shape, created, group=name, labels=labels))
    return Gang(
        GangKey(NAMESPACE, name), Uid(f"uid-{name}"), size, members=tuple(members), created=created
    )
