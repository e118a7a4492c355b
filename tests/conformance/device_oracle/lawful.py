"""Is a plan lawful: whole gangs, room, devices and counters, volumes; counted one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .world import Device, DeviceClaim, Pod, Request, World


class Given(NamedTuple):
    """A device that is given for an option of a request."""

    request: int
    option: int
    device: str


class Level(NamedTuple):
    """What a plan says of a priority."""

    priority: int
    admitted: float
    bound: float | None


@dataclass(frozen=True)
class Answer:
    """What a plan starts where, what claims get, and what it says of itself."""

    placed: Mapping[str, Mapping[int, int]]  # by gang: pods by number, and their nodes
    devices: Mapping[str, tuple[Given, ...]] = field(default_factory=dict)  # by claim
    volumes: Mapping[str, str] = field(default_factory=dict)  # by claim; empty: made there
    is_proved: bool = True
    levels: tuple[Level, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)  # of gangs that wait
    unmodelled: frozenset[tuple[str, int]] = frozenset()  # pods that Tutti does not model


def faults(world: World, answer: Answer) -> Iterator[str]:
    """A sentence for each law that the plan breaks."""
    devices, volumes = set[str](), set[str]()
    for name, nodes in answer.placed.items():
        gang = world.gang(name)
        pods = [gang.pods[i] for i in nodes]
        if len(pods) < gang.need:
            yield f"{name} starts with {len(pods)} of {gang.need} pods"
        for role, least in gang.least.items():
            if sum(pod.role == role for pod in pods) < least:
                yield f"{name} starts with too few of role {role}"
        for i, node in nodes.items():
            if gang.pods[i].is_blocked or world.nodes[node].is_closed:
                yield f"pod {i} of {name} may not be on node {node}"
            devices.update(gang.pods[i].devices)
            volumes.update(v for v in gang.pods[i].volumes if not world.volume_claims[v].is_bound)
    for names, given in ((devices, {*answer.devices}), (volumes, {*answer.volumes})):
        yield from (
            f"claim {name}: nobody waits for it, or it gets nothing" for name in names ^ given
        )
    if devices == {*answer.devices} and volumes == {*answer.volumes}:
        yield from _room_faults(world, answer)
        yield from _device_faults(world, answer)
        yield from _volume_faults(world, answer)


def on_nodes(world: World, answer: Answer) -> Iterator[tuple[Pod, int]]:
    """The pods that start, and their nodes."""
    for name, nodes in answer.placed.items():
        gang = world.gang(name)
        yield from ((gang.pods[i], node) for i, node in nodes.items())


def _room_faults(world: World, answer: Answer) -> Iterator[str]:
    cpu, pods = Counter[int](), Counter[int]()
    for pod, number in on_nodes(world, answer):
        cpu[number] += pod.cpu
        pods[number] += 1
    for i, node in enumerate(world.nodes):
        if (cpu[i] and cpu[i] > node.free_cpu) or (pods[i] and pods[i] > node.free_pods):
            yield f"node {i} has not the room"


def _device_faults(world: World, answer: Answer) -> Iterator[str]:
    known, homes = world.devices_by_name, dict[str, set[int]]()
    for pod, node in on_nodes(world, answer):
        for name in pod.devices:
            homes.setdefault(name, set()).add(node)
    times = Counter(
        one.device
        for name, given in answer.devices.items()
        for one in (() if world.claims[name].is_admin else given)
    )
    for device, n in times.items():
        if n > 1 or known[device].is_held:
            yield f"device {device} is given {n} times, or others have it"
    for name in answer.devices:
        yield from (
            f"claim {name}: {why}" for why in _claim_faults(world, answer, name, homes[name])
        )
    yield from _counter_faults(world, [known[device] for device in times])


def _claim_faults(world: World, answer: Answer, name: str, homes: set[int]) -> Iterator[str]:
    """What is wrong with what a claim gets, whose pods are on these nodes."""
    claim, given, known = world.claims[name], answer.devices[name], world.devices_by_name
    devices = [claim.own] if claim.own else [one.device for one in given]
    gang, first = world.sharers(name)[0]
    if {known[device].node for device in devices} != homes or len(homes) > 1:
        yield "its pods and its devices are not on one node"
    elif claim.own:
        yield from (f"it has a device, and gets {one.device}" for one in given)
    elif first not in answer.placed.get(gang, {}):
        yield "the oldest of its pods does not start"
    elif len({*devices}) < len(devices) or any(known[device].is_broken for device in devices):
        yield "it gets a device twice, or one that is broken"
    else:
        yield from _wrong(world, claim, given)


def _wrong(world: World, claim: DeviceClaim, given: Sequence[Given]) -> Iterator[str]:
    """What is wrong with the devices that a claim gets on a node."""
    known = world.devices_by_name
    node = known[given[0].device].node
    for i, request in enumerate(claim.requests):
        own = [one for one in given if one.request == i]
        some = [known[one.device] for one in own]
        if len({one.option for one in own}) != 1:
            yield f"request {i} gets nothing, or devices for several options"
        elif not all(request.options[own[0].option].selects(device) for device in some):
            yield f"request {i} gets a device that will not do"
        elif len(some) != _count(world, request, node):
            yield f"request {i} gets {len(some)} devices"
    for tie in claim.ties:
        values = [
            known[one.device].values.get(tie.attribute)
            for one in given
            if tie.covers(one.request, one.option)
        ]
        most = len(values) if tie.is_distinct else min(1, len(values))
        if None in values or len({*values}) != most:
            yield f"its devices do not keep the constraint on {tie.attribute}"


def _count(world: World, request: Request, node: int) -> int:
    if request.count is not None:
        return request.count
    return sum(request.options[0].selects(device) for device in world.at(node))


def _counter_faults(world: World, given: Sequence[Device]) -> Iterator[str]:
    for i, node in enumerate(world.nodes):
        taken = [device for device in given if device.node == i and device.consumes]
        held = [device for device in world.at(i) if device.is_held and device.consumes]
        for number, most in enumerate(node.counters):
            if taken and sum(device.consumes[number] for device in (*taken, *held)) > most:
                yield f"counter {number} of node {i} is exceeded"


def _volume_faults(world: World, answer: Answer) -> Iterator[str]:
    times = Counter(volume for volume in answer.volumes.values() if volume)
    yield from (f"volume {name} is given {n} times" for name, n in times.items() if n > 1)
    yield from _attach_faults(world, answer)
    for pod, node in on_nodes(world, answer):
        for name in pod.volumes:
            claim = world.volume_claims[name]
            got = claim.volume if claim.is_bound else answer.volumes[name]
            if claim.volume:
                volume = world.by_name[claim.volume]
                if got != claim.volume or not volume.is_reached(node, world.nodes[node]):
                    yield f"claim {name}: it has volume {claim.volume}, and gets {got} on {node}"
                continue
            left = [v for v in world.volumes if world.will_do(claim, v, node) and not times[v.name]]
            if not got and (left or not world.can_make(claim, node)):
                yield f"claim {name}: no volume is to be made on {node}, where {len(left)} are left"
            if got and not world.will_do(claim, world.by_name[got], node):
                yield f"claim {name}: volume {got} will not do on {node}"
            elif got and any(volume.size < world.by_name[got].size for volume in left):
                yield f"claim {name}: a volume smaller than {got} is left"


def _attach_faults(world: World, answer: Answer) -> Iterator[str]:
    """Claims for one pod that several use, and nodes with more volumes than their limit."""
    users = Counter(name for pod, _ in on_nodes(world, answer) for name in pod.volumes)
    for name in users.keys() - world.shared_volumes:
        if users[name] > 1:
            yield f"claim {name} is for one pod, and {users[name]} use it"
    attached = {(node, name) for pod, node in on_nodes(world, answer) for name in pod.volumes}
    attaching = Counter((node, world.driver(world.volume_claims[name])) for node, name in attached)
    for (i, driver), n in attaching.items():
        of = world.nodes[i]
        if driver in of.limits and n > of.limits[driver] - of.attached.get(driver, 0):
            yield f"node {i} takes {n} more volumes of {driver}"
