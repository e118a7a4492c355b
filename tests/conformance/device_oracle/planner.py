"""Clusters of the oracle as Tutti sees them, and plans of Tutti as its answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tutti.model.decisions import Objective, Policy
from tutti.model.devices.claims import PodClaim
from tutti.model.devices.inventory import (
    Attribute,
    Counter,
    Device,
    DeviceClass,
    DeviceId,
    DeviceTaint,
    ResourceSlice,
)
from tutti.model.inter_pod import Requirement
from tutti.model.keys import NodeName
from tutti.model.volumes import (
    NO_PROVISIONER,
    Attachment,
    Capacity,
    Claim,
    ClaimKey,
    ClaimRef,
    Driver,
    NodeDrivers,
    Offer,
    StorageClass,
    Volume,
    VolumeRequest,
)
from tutti.planning.plan import plan
from tutti.strategies.best_fit import BestFit
from tutti.verify import plan_checks

from ...harness.builders import AMPLE_BUDGET, LABELS, NAMESPACE, gang, node, resources
from ...harness.fake_devices import claim
from ...harness.fakes import Clock, FakeCluster, Life
from .judging import Judgement, judge
from .lawful import Answer, Given, Level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.model.cluster import Member, Snapshot
    from tutti.model.decisions import Plan
    from tutti.strategies.problem import Strategy

    from ...harness.builders import GangBuilder, NodeBuilder
    from . import world as oracle
    from .world import World

DOMAIN, HOST, ZONE = "example.com", LABELS["hostname"], "topology.kubernetes.io/zone"
MODES, TAINT = ("ReadWriteOnce",), DeviceTaint("broken", "", "NoSchedule")
NEVER = 1e9


def judged(world: World, strategy: Strategy) -> tuple[Judgement, Plan]:
    """Plan a cluster and judge the plan; what ``verify`` finds is wrong, too."""
    seen = snapshot(world)
    made = plan(seen, strategy, BestFit(), AMPLE_BUDGET, policy(world))
    judgement = judge(world, answer(seen, made))
    broken = plan_checks.violations(seen, made)
    return judgement._replace(wrong=(*broken, *judgement.wrong)), made


def policy(world: World) -> Policy:
    """What is aimed for; age counts for nothing, and nobody starves."""
    return Policy(Objective(world.objective), age_seconds=NEVER, starvation_seconds=NEVER)


def answer(seen: Snapshot, plan: Plan) -> Answer:
    """What the plan starts where, and what each claim gets."""
    placed, devices = {}, {}
    for placement in plan.placements:
        placed[placement.gang.name] = {
            _number(one.pod.name): int(one.node[1:]) for one in placement.assignments
        }
        for one in placement.assignments:
            for own in one.claims:
                devices[own.claim] = tuple(
                    Given(*_numbers(result.request), result.device.name) for result in own.results
                )
    return Answer(
        placed,
        devices,
        {choice.claim: choice.volume for made in plan.placements for choice in made.volumes},
        plan.proved,
        tuple(Level(level.priority, level.admitted, level.bound) for level in plan.levels),
        {rejection.gang.name: str(rejection.reason) for rejection in plan.rejections},
        frozenset(
            (known.key.name, _number(member.key.name))
            for known in seen.gangs
            for member in known.members
            if member.unsupported_fields
        ),
    )


def _number(pod: str) -> int:
    return int(pod.rpartition("-")[2])


def _numbers(request: str) -> tuple[int, int]:
    """The numbers of a request and of its option."""
    name, _, option = request.partition("/")
    return int(name[1:]), int(option[1:] or 0)


def snapshot(world: World) -> Snapshot:
    """The cluster as Tutti knows it once it has listed everything."""
    cluster = FakeCluster()
    for i, one in enumerate(world.nodes):
        cluster.add(_node(i, one))
        if one.used:
            cluster.occupy(f"n{i}", resources(pods=1, cpu=one.used))
    _put_devices(cluster, world)
    _put_storage(cluster, world)
    for known in world.gangs:
        cluster.add(_gang(known))
    return Life(cluster, Clock()).state.snapshot(0.0)


def _node(number: int, one: oracle.Node) -> NodeBuilder:
    name = f"n{number}"
    made = node(name, pods=one.pods, cpu=one.cpu).labelled(hostname=name, **{ZONE: one.zone})
    return made.cordoned() if one.is_closed else made


def _gang(known: oracle.Gang) -> GangBuilder:
    made = gang(known.name)
    for pod in known.pods:
        made = made.of(1, role=pod.role, cpu=pod.cpu)
    for role, least in known.least.items():
        made = made.role(role, least, 0)

    def with_claims(member: Member) -> Member:
        pod = known.pods[_number(member.key.name)]
        names = ("missing",) if pod.is_blocked else pod.devices
        claims = tuple(PodClaim(f"claim-{i}", name) for i, name in enumerate(names))
        return replace(member, device_claims=claims, claims=pod.volumes)

    return made.needing(known.need).priority(known.priority).where(with_claims)


def _put_devices(cluster: FakeCluster, world: World) -> None:
    for kind in sorted({device.kind for device in world.devices} | {"gpu", "nic", "fpga"}):
        cluster.put_devices(DeviceClass(kind, (f'device.driver == "{kind}.{DOMAIN}"',)))
    for i, one in enumerate(world.nodes):
        for kind in sorted({device.kind for device in world.at(i)}):
            own = tuple(_device(device) for device in world.at(i) if device.kind == kind)
            sets = _counters(one.counters) if kind == "gpu" else ()
            count = 1 + bool(sets)
            name, driver, place = f"n{i}-{kind}", f"{kind}.{DOMAIN}", NodeName(f"n{i}")
            piece = ResourceSlice(name, driver, place, 1, count, place, own)
            cluster.put_devices(piece)
            if sets:
                cluster.put_devices(replace(piece, name=f"{name}-sets", devices=(), counters=sets))
    owned = {known.own for known in world.claims.values()}
    held = [device for device in world.devices if device.is_held and device.name not in owned]
    if held:
        cluster.put_devices(claim("of-others") | _allocated(held))
    for name, known in world.claims.items():
        requests = [_request(f"r{i}", of) for i, of in enumerate(known.requests)]
        for request in requests if known.is_admin else ():
            request["exactly"]["adminAccess"] = True
        made = claim(name, *requests, constraints=[_tie(tie) for tie in known.ties])
        status = _allocated([world.devices_by_name[known.own]]) if known.own else {}
        cluster.put_devices(made | status)


def _allocated(devices: Sequence[oracle.Device]) -> dict[str, Any]:
    """The status of a claim that has these devices; the node of the first is to be its own."""
    results = [
        {"request": "r0", "driver": of.driver, "pool": of.pool, "device": of.name}
        for of in map(_id, devices)
    ]
    host = {"key": "metadata.name", "operator": "In", "values": [f"n{devices[0].node}"]}
    selector = {"nodeSelectorTerms": [{"matchFields": [host]}]}
    return {"status": {"allocation": {"devices": {"results": results}, "nodeSelector": selector}}}


def _id(device: oracle.Device) -> DeviceId:
    return DeviceId(f"{device.kind}.{DOMAIN}", f"n{device.node}", device.name)


def _device(device: oracle.Device) -> Device:
    attributes = tuple(sorted(Attribute(DOMAIN, k, v) for k, v in device.values.items()))
    taints = (TAINT,) * device.is_broken
    used = tuple(of for of in _counters(device.consumes) if of.quantity != "0")
    return Device(_id(device), attributes, taints=taints, counters=used)


def _counters(amounts: Sequence[int]) -> tuple[Counter, ...]:
    """Each GPU has a set of its own, with memory and engines."""
    names = ("memory", "engines")
    return tuple(
        sorted(Counter(f"gpu-{i // 2}", names[i % 2], str(n)) for i, n in enumerate(amounts))
    )


def _request(name: str, request: oracle.Request) -> dict[str, Any]:
    parts = [_wanted(of) for of in request.options]
    if len(parts) > 1:
        return {
            "name": name,
            "firstAvailable": [{"name": f"p{i}", **part} for i, part in enumerate(parts)],
        }
    mode = {"allocationMode": "All"} if request.count is None else {"count": request.count}
    return {"name": name, "exactly": {**parts[0], **mode}}


def _wanted(of: oracle.Wanted) -> dict[str, Any]:
    if not of.models:
        return {"deviceClassName": of.kind}
    listed = ", ".join(f'"{model}"' for model in of.models)
    text = f'device.attributes["{DOMAIN}"].model in [{listed}]'
    return {"deviceClassName": of.kind, "selectors": [{"cel": {"expression": text}}]}


def _tie(tie: oracle.Tie) -> dict[str, Any]:
    names = [f"r{i}" if option is None else f"r{i}/p{option}" for i, option in tie.parts]
    kind = "distinctAttribute" if tie.is_distinct else "matchAttribute"
    return {"requests": names, kind: f"{DOMAIN}/{tie.attribute}"}


def _put_storage(cluster: FakeCluster, world: World) -> None:
    for name, of in world.classes.items():
        topologies = None if of.zones is None else ((Requirement(ZONE, "In", of.zones),),)
        provisioner = of.driver or NO_PROVISIONER
        cluster.put_storage("classes", StorageClass(name, True, provisioner, topologies))  # noqa: FBT003
        if of.driver:
            cluster.put_storage(
                "drivers", Driver(of.driver, has_capacity=of.capacities is not None)
            )
        for place, size in of.capacities or ():
            cluster.put_storage("capacities", Capacity(name, (_where(place),), size))
    for name, known in world.volume_claims.items():
        key = ClaimKey(NAMESPACE, name)
        request = None if known.is_bound else VolumeRequest(known.storage_class, known.size, MODES)
        volume = known.volume if known.is_bound else ""
        made = Claim(
            key,
            volume,
            known.is_bound,
            known.storage_class,
            for_one_pod=known.is_for_one,
            request=request,
        )
        selected = None if known.selected is None else NodeName(f"n{known.selected}")
        cluster.put_storage("claims", replace(made, selected_node=selected))
    owners = {known.volume: name for name, known in world.volume_claims.items() if known.volume}
    for one in world.volumes:
        owner = owners.get(one.name, "of-others") if one.is_taken else None
        ref = None if owner is None else ClaimRef(ClaimKey(NAMESPACE, owner))
        place = one.zone if one.host is None else one.host
        offer = Offer(one.storage_class, one.size, MODES)
        affinity = ((_where(place),),)
        cluster.put_storage(
            "volumes",
            Volume(
                one.name,
                affinity,
                driver=one.driver,
                handle=one.name * bool(one.driver),
                offer=offer,
                claim=ref,
            ),
        )
    for i, at in enumerate(world.nodes):
        if at.limits:
            cluster.put_storage("nodes", NodeDrivers(NodeName(f"n{i}"), tuple(at.limits.items())))
        for driver, count in at.attached.items():
            for j in range(count):
                name = f"attached-{i}-{j}"
                cluster.put_storage("volumes", Volume(name, driver=driver, handle=name))
                cluster.put_storage("attachments", Attachment(NodeName(f"n{i}"), driver, name))


def _where(place: int | str) -> Requirement:
    if isinstance(place, int):
        return Requirement(HOST, "In", (f"n{place}",))
    return Requirement(ZONE, "In", (place,))
