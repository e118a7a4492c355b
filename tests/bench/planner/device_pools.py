"""GPUs as devices of dynamic resource allocation, on every second node that has some.

Every second gang claims them: each of its members has a claim of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tutti.kube import kinds
from tutti.kube.list_watch import Item, ObjectList
from tutti.model.devices.claims import (
    ClaimName,
    Consumer,
    DeviceClaim,
    DeviceRequest,
    DeviceResult,
    PodClaim,
)
from tutti.model.devices.inventory import Attribute, Device, DeviceClass, DeviceId, ResourceSlice
from tutti.model.keys import NodeName, Uid
from tutti.model.resources import Resources
from tutti.model.shapes import Shape
from tutti.state.cluster_state import ClusterState

from .cycles import show
from .pictures import GPU, MODEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tutti.kube.kinds import AnyKind
    from tutti.model.cluster import Gang, Member, Node, Snapshot

DRIVER, CLASS, REQUEST = "gpu.example.com", "gpu", "gpu"
ATTRIBUTE = "model"
OTHERS = "others"  # the namespace of the claims of pods that run


@dataclass(frozen=True, slots=True)
class Pools:
    """A Snapshot without the GPUs that are devices, and the devices and claims."""

    picture: Snapshot
    slices: tuple[ResourceSlice, ...]
    claims: tuple[DeviceClaim, ...]


def pools(picture: Snapshot) -> Pools:
    """The same cluster with every second node with GPUs, and every second gang, changed over."""
    with_gpus = [node.name for node in picture.nodes if node.allocatable[GPU]]
    chosen = {*with_gpus[1::2]}
    moved = [node for node in picture.nodes if node.name in chosen]
    gangs = [*picture.gangs]
    claiming = {gang.uid for gang in gangs[1::2]}
    claims = [_claim_in_use(node) for node in moved if node.used[GPU]]
    claims += [_claim(member) for gang in gangs if gang.uid in claiming for member in gang.members]
    nodes = tuple(_without_gpus(n) if n.name in chosen else n for n in picture.nodes)
    waiting = tuple(_claiming(gang) if gang.uid in claiming else gang for gang in gangs)
    changed = replace(picture, nodes=nodes, gangs=waiting)
    return Pools(changed, tuple(map(_slice, moved)), tuple(claims))


def cluster_state(picture: Snapshot, pools: Pools | None = None) -> ClusterState:
    """All of it as an operator knows it after its first lists."""
    state = ClusterState(lambda: None, reads_devices=pools is not None)
    known: dict[AnyKind, Iterable[tuple[str, object]]] = {}
    if pools is not None:
        selector = f'device.driver == "{DRIVER}"'
        known[kinds.DEVICE_CLASS] = [(CLASS, DeviceClass(CLASS, (selector,)))]
        known[kinds.RESOURCE_SLICE] = [(item.name, item) for item in pools.slices]
        known[kinds.DEVICE_CLAIM] = [(claim.uid, claim) for claim in pools.claims]
        known[kinds.TAINT_RULE] = ()
    for kind, values in known.items():
        store = state.stores[kind]
        store.replace(
            ObjectList(Item(Uid(uid), 1, value) for uid, value in values), 1, store.began()
        )
    show(state, picture)
    return state


def _without_gpus(node: Node) -> Node:
    return replace(node, allocatable=_others(node.allocatable), used=_others(node.used))


def _others(amounts: Resources) -> Resources:
    return Resources(tuple(amount for amount in amounts.amounts if amount[0] != GPU))


def _device(node: NodeName, number: int) -> DeviceId:
    return DeviceId(DRIVER, str(node), f"gpu-{number}")


def _slice(node: Node) -> ResourceSlice:
    """All GPUs of a node, of which pods that run may have some."""
    labels: Mapping[str, str] = dict(node.labels)
    model = (Attribute(DRIVER, ATTRIBUTE, labels.get(MODEL, "")),)
    devices = (Device(_device(node.name, i), model) for i in range(node.allocatable[GPU]))
    name = f"{node.name}-gpus"
    return ResourceSlice(name, DRIVER, str(node.name), node=node.name, devices=tuple(devices))


def _claim_in_use(node: Node) -> DeviceClaim:
    """The claim of pods that run on a node, for all GPUs that they use."""
    name = f"used-{node.name}"
    results = tuple(DeviceResult(REQUEST, _device(node.name, i)) for i in range(node.used[GPU]))
    return DeviceClaim(
        ClaimName(OTHERS, name),
        Uid(name),
        (DeviceRequest(REQUEST, CLASS, len(results)),),
        allocated=results,
        nodes=(node.name,),
        consumers=(Consumer(Uid(f"uid-{name}"), name),),
    )


def _claim(member: Member) -> DeviceClaim:
    """The claim of a member for as many GPUs as it requests, of the models that it accepts."""
    terms = [term for of in member.shape.required or () for term in of.labels if term.key == MODEL]
    models = ", ".join(f'"{value}"' for term in terms for value in term.values)
    selectors = (f'device.attributes["{DRIVER}"].{ATTRIBUTE} in [{models}]',) if models else ()
    name = f"{member.key.name}-gpu"
    wanted = DeviceRequest(REQUEST, CLASS, member.shape.requests[GPU], selectors)
    key = ClaimName(member.key.namespace, name)
    return DeviceClaim(key, Uid(name), (wanted,), owner=member.uid)


def _claiming(gang: Gang) -> Gang:
    """The gang whose members have claims in place of the resource."""
    return replace(gang, members=tuple(map(_with_claim, gang.members)))


def _with_claim(member: Member) -> Member:
    own = PodClaim(REQUEST, f"{member.key.name}-gpu", is_own=True)
    shape = Shape(_others(member.shape.requests))
    return replace(member, shape=shape, device_claims=(own,))
