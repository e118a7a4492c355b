"""A dump has the devices and the claims for them, and plans the same."""

import json
import time
from dataclasses import replace

import pytest

from tests.harness.builders import gang, node
from tests.harness.extended import GPU, container, requesting
from tests.harness.fake_devices import (
    DRIVER,
    claim,
    claiming,
    claims_of,
    device_class,
    gpus,
    request,
)
from tests.harness.fakes import Clock, FakeCluster, Life
from tutti import dump
from tutti.dump import load
from tutti.filters.devices import selectors
from tutti.model.cluster import Snapshot
from tutti.model.devices.claims import ClaimName, DeviceClaim, PodClaim
from tutti.model.devices.inventory import (
    Attribute,
    Capacity,
    Counter,
    Device,
    DeviceClass,
    DeviceId,
    DeviceTaint,
    ResourceSlice,
    TaintRule,
)
from tutti.planning.plan import plan
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget

from .test_round_trip import SETUP

READY = [{"type": "Ready", "status": "True"}]
WATCHED = {
    "request": "gpu",
    "driver": DRIVER,
    "pool": "n1",
    "device": "gpu-0",
    "adminAccess": True,
}


async def seen() -> Snapshot:
    """A cluster in which a gang has devices, and another waits for some."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=8), node("n2", cpu=8))
    rich = Device(
        DeviceId(DRIVER, "odd", "x"),
        (
            Attribute(DRIVER, "a", value=True),
            Attribute(DRIVER, "b", 3),
            Attribute(DRIVER, "c", "d"),
            Attribute(DRIVER, "e", "1.2.3", is_version=True),
        ),
        (Capacity(DRIVER, "memory", "80Gi"),),
        (DeviceTaint("k", "v", "NoSchedule"),),
        ("bindingConditions", "devices of several nodes"),
        (Counter("a", "cores", "3"), Counter("a", "memory", "40Gi"), Counter("b", "cores", "1")),
    )
    cluster.put_devices(
        gpus("n1", 2),
        gpus("n2", 1),
        ResourceSlice("odd", DRIVER, "odd", 3, 2, None, (rich,)),
        ResourceSlice("sets", DRIVER, "sets", 3, 2, None, (), rich.counters),
        device_class(),
        DeviceClass("other", ("false",)),
        TaintRule("r", DeviceTaint("k", "", "NoExecute"), pool="elsewhere"),
        TaintRule("s", DeviceTaint("k", "", "NoExecute"), matches_nothing=True),
    )
    first = claiming(gang("a").of(2, cpu=1))
    cluster.put_devices(*claims_of(first))
    cluster.add(first)
    await Life(cluster, Clock()).settle()
    second = claiming(gang("b").of(1, cpu=1))
    toleration = {"key": "k", "operator": "Exists", "tolerationSeconds": 3}
    cluster.put_devices(*claims_of(second, request("one", tolerations=[toleration])))
    cluster.add(second)
    own = (PodClaim("gpu", None, is_own=True), PodClaim("two", "made", is_own=True))
    cluster.add(gang("c").of(1, cpu=1).each(device_claims=own))
    parts = [{"name": "x", "deviceClassName": "gpu"}, {"name": "y", "deviceClassName": "gpu"}]
    every = request("every", allocationMode="All")
    cluster.put_devices(claim("both", every, {"name": "first", "firstAvailable": parts}))
    cluster.add(gang("d").of(2, cpu=99).each(device_claims=(PodClaim("gpu", "both"),)))
    cluster.put_devices(claim("made", owner="u"), claim("odd", constraints=[{}]))
    numa = {"requests": ["gpu"], "matchAttribute": f"{DRIVER}/numa"}
    more = [{"matchAttribute": "x.y/z"}, {"distinctAttribute": "x.y/z", "requests": ["gpu"]}]
    same = claim("same", constraints=[numa, *more])
    cluster.put_devices(same)
    zone = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    for name, allocation in (
        ("far", {"nodeSelector": {"nodeSelectorTerms": [zone]}}),
        ("wide", {"devices": {"results": []}}),
        ("watching", {"devices": {"results": [WATCHED]}}),
    ):
        made = claim(name, *[request(adminAccess=True)] * (name == "watching"))
        made["metadata"]["finalizers"] = ["x/y"]
        made["status"] = {"allocation": allocation}
        cluster.put_devices(made)
    life = Life(cluster, Clock())
    cluster.delete_claim("far")
    life.watch.catch_up()
    return life.state.snapshot(1_000.0)


def _kept(of: DeviceClaim) -> DeviceClaim:
    """A claim with what a dump keeps of unsupported fields: that there are some."""
    return replace(of, unsupported=("devices.constraints[].unsupported",) if of.unsupported else ())


async def test_devices_and_claims_are_read_back() -> None:
    snapshot = await seen()
    text = dump.write(snapshot, SETUP)
    again = load.snapshot_of(dump.read([dump.Text("dump.json", text.encode())]))
    room = replace(snapshot.devices, claims=tuple(map(_kept, snapshot.devices.claims)))
    assert again.devices == room
    assert [gang.members for gang in again.gangs] == [gang.members for gang in snapshot.gangs]
    assert again.nodes == snapshot.nodes
    plans = [plan(of, BestFit(), BestFit(), Budget()) for of in (snapshot, again)]
    assert plans[0].placements == plans[1].placements
    assert [p.gang.name for p in plans[0].placements] == ["b"]
    assert room.claim("ml", "made") is not None
    assert room.claim("ml", "nothing") is None


async def extended() -> Snapshot:
    """A cluster in which pods have their extended resources by claims, or wait for some."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=8), node("n2", cpu=8))
    backing = device_class("new", backs=GPU, created=7.0)
    cluster.put_devices(gpus("n1", 4), device_class(backs=GPU, created=5.0), backing)
    sidecar, init = container(1, "proxy", gpu=1), container(3, "init", gpu=2, is_short_lived=True)
    main = container(5, beside=("cpu", "memory", "zeta.example.com/x"), gpu=1)
    cluster.add(requesting(gang("a").of(1, cpu=1), sidecar, init, main))
    await Life(cluster, Clock()).settle()
    cluster.add(
        requesting(gang("b").of(2, cpu=1), container(0, "init", gpu=2, is_short_lived=True))
    )
    cluster.add(requesting(gang("c").of(1, cpu=1).each(device_claims=(PodClaim("x", "y"),))))
    life = Life(cluster, Clock())
    await life.turn()
    assert not cluster.broken
    return life.state.snapshot(1_000.0)


async def test_extended_resources_are_read_back_with_their_claims() -> None:
    snapshot = await extended()
    text = dump.write(snapshot, SETUP)
    assert '"proxy"' not in text, "names of containers are nobody's business"
    again = load.snapshot_of(dump.read([dump.Text("dump.json", text.encode())]))
    assert again.devices == snapshot.devices
    assert [gang.members for gang in again.gangs] == [gang.members for gang in snapshot.gangs]
    assert again.nodes == snapshot.nodes
    for before, after in zip(snapshot.gangs, again.gangs, strict=True):
        for old, new in zip(before.members, after.members, strict=True):
            assert [of[2:] for of in new.extended_requests] == [
                of[2:] for of in old.extended_requests
            ]
    waits = {gang.key.name: gang.members[0].device_problems for gang in again.gangs}
    assert not waits["a"]
    assert waits["c"] == ("claim y does not exist",)


def test_manifests_are_planned_with_the_claims_that_would_be_made() -> None:
    metadata = {"name": "n1", "uid": "n1"}
    ready = {"allocatable": {"cpu": "8", "pods": "9"}, "conditions": READY}
    device = {"name": "gpu-0"}
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    slice_spec = {"driver": DRIVER, "pool": pool, "nodeName": "n1", "devices": [device]}
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    class_spec = {"extendedResourceName": GPU, "selectors": [selector]}
    resources = {"limits": {GPU: "1"}, "requests": {GPU: "1"}}
    pod = {"schedulerName": "tutti", "containers": [{"name": "m", "resources": resources}]}
    api = "resource.k8s.io/v1"
    items = [
        {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": ready},
        {"apiVersion": api, "kind": "ResourceSlice", "metadata": metadata, "spec": slice_spec},
        {"apiVersion": api, "kind": "DeviceClass", "metadata": metadata, "spec": class_spec},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "name": "a"}, "spec": pod},
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    snapshot = load.snapshot_of(dump.read([dump.Text("all.json", text.encode())]))
    made = plan(snapshot, BestFit(), BestFit(), Budget())
    (assignment,) = made.placements[0].assignments
    (allocation,) = assignment.claims
    assert [str(result.device) for result in allocation.results] == [f"{DRIVER}/n1/gpu-0"]


def test_a_dump_with_a_selector_that_takes_too_much_is_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selectors, "_selectors", {})
    binds = "".join(f"cel.bind(x{i + 1}, [x{i}, x{i}], " for i in range(24))
    hostile = f"cel.bind(x0, [1, 1], {binds}x24 == x24{')' * 25}"
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=8))
    cluster.put_devices(gpus("n1", 2), device_class())
    for name, expression in (("bad", hostile), ("good", "1 > 0")):
        made = claiming(gang(name).of(1, cpu=1))
        cluster.put_devices(*claims_of(made, request("gpu", "gpu", 1, expression)))
        cluster.add(made)
    snapshot = Life(cluster, Clock()).state.snapshot(1_000.0)
    text = dump.write(snapshot, SETUP)
    monkeypatch.setattr(selectors, "_selectors", {})
    began = time.monotonic()
    again = load.snapshot_of(dump.read([dump.Text("dump.json", text.encode())]))
    assert time.monotonic() - began < 20.0
    assert [of.members for of in again.gangs] == [of.members for of in snapshot.gangs]
    unsupported = {of.key.name: of.members[0].unsupported_fields for of in again.gangs}
    assert unsupported == {"bad": (f"spec.resourceClaims ({selectors.TOO_SLOW})",), "good": ()}
    made_plan = plan(again, BestFit(), BestFit(), Budget())
    assert [of.gang.name for of in made_plan.placements] == ["good"]


async def test_no_configuration_for_drivers_is_written() -> None:
    snapshot = await seen()
    own = replace(snapshot.devices.claims[0], config='[{"opaque":"secret"}]')
    room = replace(
        snapshot.devices,
        claims=(own,),
        classes=(replace(snapshot.devices.classes[0], config='[{"opaque":"secret"}]'),),
    )
    text = dump.write(replace(snapshot, devices=room), SETUP)
    assert "secret" not in text
    kinds = [item["kind"] for item in json.loads(text)["items"]]
    assert kinds.count("ResourceClaim") == 1
    assert own.key == ClaimName("ml", "a-0-gpu")
