"""Random small clusters, one per seed."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from . import drawing_gangs
from .drawing_gangs import MODELS, PARTITIONS, Features
from .world import GANGS, MEMBERS, RESOURCES, Device, Node, StorageClass, Values, Volume, World

ZONES = ("a", "b")
SIZES = (10, 20, 50)
GPU, NIC, FPGA = "gpu", "nic", "fpga"
LOCAL, DISK, MIXED = "local", "disk", "mixed"  # storage classes
DISKS = "disk.example.com"


def world(seed: int) -> World:
    """The cluster of this seed."""
    chance = Random(f"cluster {seed}")
    has_devices = chance.random() < 0.8
    shows = Features(
        devices=has_devices,
        counters=has_devices and chance.random() < 0.5,
        volumes=not has_devices or chance.random() < 0.5,
        limits=chance.random() < 0.6,
        is_plain=chance.random() < 0.2,
    )
    objective = RESOURCES if shows.are_shares_known else chance.choice((GANGS, MEMBERS))
    nodes = [_node(chance, shows) for _ in range(chance.choice((2, 2, 3, 3, 4, 5)))]
    devices = [
        device
        for number, node in enumerate(nodes)
        for device in (_devices(chance, shows, number, node) if shows.devices else ())
    ]
    classes = _classes(chance, shows, len(nodes)) if shows.volumes else {}
    volumes = _volumes(chance, classes, len(nodes)) if shows.volumes else []
    empty = World(objective, tuple(nodes), (), tuple(devices), {}, tuple(volumes), classes)
    return drawing_gangs.with_gangs(chance, shows, empty)


def _node(chance: Random, shows: Features) -> Node:
    made = Node(
        cpu=chance.choice((2, 4, 4, 6, 8)),
        pods=chance.choice((110, 110, 110, 4)),
        zone=chance.choice(ZONES),
        used=chance.choice((0, 0, 0, 1, 2)),
        is_closed=chance.random() < 0.05,
        counters=_counters(chance) if shows.counters else (),
        limits={DISKS: chance.choice((0, 1, 1, 2))}
        if shows.volumes and shows.limits and chance.random() < 0.8
        else {},
    )
    attached = {DISKS: 1} if made.limits and chance.random() < 0.3 else {}
    return replace(made, attached=attached)


def _counters(chance: Random) -> tuple[int, ...]:
    """The memory and the engines of one or two GPUs."""
    return tuple(n for _ in range(chance.choice((1, 1, 2))) for n in (4, chance.choice((2, 3, 4))))


def _devices(chance: Random, shows: Features, number: int, node: Node) -> list[Device]:
    found = _partitions(chance, number, node) if shows.counters else []
    if not shows.counters:
        found += [_device(chance, GPU, number, i) for i in range(chance.choice((0, 1, 2, 3, 3, 4)))]
    found += [_device(chance, NIC, number, i) for i in range(chance.choice((0, 1, 2, 2, 3)))]
    if chance.random() < 0.2:
        found.append(_device(chance, FPGA, number, 0))
    others = [replace(device, is_held=chance.random() < 0.12) for device in found]
    if shows.are_shares_known or shows.is_plain:
        return others
    return [replace(device, is_broken=chance.random() < 0.04) for device in others]


def _device(
    chance: Random,
    kind: str,
    node: int,
    number: int,
    *,
    consumes: tuple[int, ...] = (),
    of: str = "",
) -> Device:
    """A device of a model that is drawn, if it is no partition; some are at no root."""
    values: Values = {"model": of or chance.choice(MODELS), "port": chance.randrange(4)}
    if chance.random() < 0.9:
        values["root"] = chance.choice((0, 0, 1, "1"))
    return Device(f"n{node}-{kind}-{number}", node, kind, values, consumes)


def _partitions(chance: Random, number: int, node: Node) -> list[Device]:
    """Ways to divide each GPU, which exclude one another by its counters."""
    found: list[Device] = []
    for of in range(0, len(node.counters), 2):
        for _ in range(chance.choice((2, 3, 4, 4, 5))):
            size = chance.choice((*PARTITIONS,))
            amounts = [0] * len(node.counters)
            amounts[of : of + 2] = PARTITIONS[size], chance.choice((0, 1, 1, 2))
            found.append(_device(chance, GPU, number, len(found), consumes=tuple(amounts), of=size))
    if chance.random() < 0.2:  # a GPU that is not divided
        found.append(_device(chance, GPU, number, len(found), of="full"))
    return found


def _classes(chance: Random, shows: Features, nodes: int) -> dict[str, StorageClass]:
    local, mixed = StorageClass(), StorageClass("mixed.example.com", None, _by_node(chance, nodes))
    disk = StorageClass(DISKS)
    if not shows.limits:
        restricted = chance.choice(("zones", "capacities", "nothing"))
        if restricted == "zones":
            disk = StorageClass(DISKS, (chance.choice(ZONES),))
        elif restricted == "capacities":
            some = tuple((zone, chance.choice(SIZES)) for zone in ZONES if chance.random() < 0.7)
            disk = StorageClass(DISKS, None, some)
    return {LOCAL: local, DISK: disk, MIXED: mixed}


def _by_node(chance: Random, nodes: int) -> tuple[tuple[int, int], ...]:
    return tuple((i, chance.choice(SIZES)) for i in range(nodes) if chance.random() < 0.5)


def _volumes(chance: Random, classes: dict[str, StorageClass], nodes: int) -> list[Volume]:
    found: list[Volume] = []
    for host in range(nodes):
        for of in (LOCAL, LOCAL, LOCAL, MIXED):
            if chance.random() < 0.5:
                taken = chance.random() < 0.15
                name = f"pv-{len(found)}"
                found.append(Volume(name, of, chance.choice(SIZES), host, is_taken=taken))
    disk = classes[DISK]
    if disk.zones is None and disk.capacities is None and chance.random() < 0.3:
        name = f"pv-{len(found)}"
        found.append(Volume(name, DISK, 50, None, chance.choice(ZONES)))
    return found
