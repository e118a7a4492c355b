"""Pods that claim devices: what is written before they are bound, and after every crash."""

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.harness.builders import GangBuilder, gang, node, single
from tests.harness.fake_devices import (
    DRIVER,
    SLICES,
    DeviceValue,
    claim,
    claiming,
    claims_of,
    device,
    device_class,
    gpus,
    request,
)
from tests.harness.fakes import Clock, Crash, FakeCluster, Fault, Life
from tutti.filters.devices import selectors
from tutti.kube import errors
from tutti.kube.codec.devices import ClaimWrite
from tutti.model.devices.claims import FINALIZER, Consumer, DeviceResult, PodClaim
from tutti.model.devices.inventory import Counter, DeviceId, DeviceTaint, TaintRule
from tutti.model.keys import NodeName, Uid


def cluster_of(nodes: int = 2, devices: int = 4, *more: DeviceValue) -> FakeCluster:
    """Nodes with so many devices each, and their class."""
    cluster = FakeCluster()
    for i in range(nodes):
        cluster.add(node(f"n{i}", cpu=8).labelled(hostname=f"n{i}"))
        cluster.put_devices(gpus(f"n{i}", devices))
    cluster.put_devices(device_class(), *more)
    return cluster


def train(count: int = 4) -> GangBuilder:
    """A gang, each member of which names a claim of its own."""
    return claiming(gang("a").of(count, cpu=1))


def ask(cluster: FakeCluster, made: GangBuilder, *requests: dict[str, object]) -> None:
    """Create the claims of a gang, and the gang."""
    cluster.put_devices(*claims_of(made, *requests))
    cluster.add(made)


def bound(cluster: FakeCluster) -> int:
    """How many pods have a node."""
    return sum(pod.node is not None for pod in cluster.pods.values())


def holding(cluster: FakeCluster) -> int:
    """How many devices claims have."""
    claims = [item.value for item in cluster.devices.items["devices.claims"].values()]
    return sum(len(known.allocated or ()) for known in claims)


def dying_at(number: int, *, is_committed: bool = False) -> Callable[[int, str], Fault | None]:
    """The operator dies at this call, before its commit or after it."""
    return lambda at, _name: Fault(Crash(), is_committed) if at == number else None


async def settled(cluster: FakeCluster, clock: Clock | None = None) -> Life:
    """A new operator, once nothing is left to do."""
    life = Life(cluster, clock or Clock())
    await life.settle()
    assert not cluster.broken
    return life


async def tried(cluster: FakeCluster) -> None:
    """A new operator, after some of its cycles: what is refused, it tries again for ever."""
    life = Life(cluster, Clock())
    for _ in range(8):
        await life.turn()
        life.clock.now += 1.0


def reason(cluster: FakeCluster, name: str = "a") -> tuple[str, str]:
    """Why a gang waits."""
    group = next(group for key, group in cluster.groups.items() if key.name == name)
    line = next(line for line in group.status["conditions"] if line["type"] == "Reserved")
    return line["reason"], line["message"]


async def test_each_member_gets_its_devices_before_the_first_is_bound() -> None:
    cluster = cluster_of()
    ask(cluster, train(), request(count=2))
    await settled(cluster)
    assert bound(cluster) == 4
    for pod in cluster.pods.values():
        own = cluster.devices.claim(f"{pod.key.name}-gpu")
        assert len(own.allocated or ()) == 2
        assert own.nodes == (pod.node,)
        assert FINALIZER in own.finalizers
        assert [consumer.uid for consumer in own.consumers] == [pod.uid]
    assert not cluster.reservations
    first_bind = cluster.calls.index("bind")
    assert "allocate" not in cluster.calls[first_bind:]


async def test_a_gang_whose_devices_do_not_all_exist_gets_none() -> None:
    cluster = cluster_of(nodes=2, devices=3)
    ask(cluster, train(), request(count=2))
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (0, 0)
    why, message = reason(cluster)
    assert why == "NotEnoughRoom"
    assert "devices of gpu" in message


async def test_devices_of_other_pods_are_left_alone() -> None:
    cluster = cluster_of(nodes=1, devices=2)
    taken = claim("other", request())
    result = {"request": "gpu", "driver": DRIVER, "pool": "n0", "device": "gpu-0"}
    taken["status"] = {"allocation": {"devices": {"results": [result]}}}
    cluster.put_devices(taken)
    ask(cluster, train(2))
    await settled(cluster)
    assert bound(cluster) == 0
    cluster.delete_claim("other")
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (2, 2)


@pytest.mark.parametrize("at", range(1, 9))
async def test_selectors_are_evaluated_in_a_thread_whenever_they_come(
    monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    evaluated: dict[str, set[int]] = {}
    of_engine = selectors._asked

    def asking(expression: str, *others: Any) -> Any:
        evaluated.setdefault(expression, set()).add(threading.get_ident())
        return of_engine(expression, *others)

    monkeypatch.setattr(selectors, "_asked", asking)
    monkeypatch.setattr(selectors, "_selectors", {})
    cluster = cluster_of()
    reading = f'device.attributes["{DRIVER}"].?index.orValue(0) >= 0'
    ask(cluster, train(), request("gpu", "gpu", 1, reading))
    life = Life(cluster, Clock())

    def arrives(number: int, _name: str) -> None:
        """Show another gang with a new selector, and a device of a new kind, during a call."""
        if number == at:
            late = claiming(gang("late").of(1, cpu=1))
            ask(cluster, late, request("gpu", "gpu", 1, "2 >= 0"))
            cluster.put_devices(gpus("n1", 5, index=1))
            life.watch.catch_up()

    cluster.fault = arrives
    await life.settle()
    assert not cluster.broken
    assert bound(cluster) == 5
    assert {reading, "2 >= 0"} <= evaluated.keys()
    assert threading.get_ident() not in set().union(*evaluated.values())


def hostile(end: str) -> str:
    """An expression of a few hundred characters that takes too much time, or memory."""
    parts = "[x{0}, x{0}]" if end == "x24 == x24" else "x{0} + x{0}"
    binds = "".join(f"cel.bind(x{i + 1}, {parts.format(i)}, " for i in range(24))
    return f"cel.bind(x0, [1, 1], {binds}{end}{')' * 25}"


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        (hostile("x24 == x24"), selectors.TOO_SLOW),
        (hostile("x24.size() > 0"), selectors.TOO_LARGE),
    ],
)
async def test_a_selector_that_takes_too_much_has_its_claims_wait_and_holds_up_nothing(
    monkeypatch: pytest.MonkeyPatch, expression: str, problem: str
) -> None:
    monkeypatch.setattr(selectors, "_selectors", {})
    cluster = cluster_of()
    ask(cluster, claiming(gang("bad").of(1, cpu=1)), request("gpu", "gpu", 1, expression))
    ask(cluster, train(), request("gpu", "gpu", 1, "4 >= 0"))
    pauses, last = [0.0], time.monotonic()

    async def turning() -> None:
        """Note how long the event loop does not turn."""
        nonlocal last
        while True:
            await asyncio.sleep(0.01)
            pauses.append(time.monotonic() - last)
            last = time.monotonic()

    clock = asyncio.create_task(turning())
    began = time.monotonic()
    await settled(cluster)
    clock.cancel()
    assert bound(cluster) == 4
    assert reason(cluster, "bad") == (
        "NotModelled",
        f"1 member uses spec.resourceClaims ({problem}), which Tutti does not place yet",
    )
    assert max(pauses) < 0.5
    assert time.monotonic() - began < 20.0
    engines = [*selectors._engines]
    await settled(cluster)  # as after a restart of the operator, but in the same process
    assert [*selectors._engines] == engines


async def every_crash(
    ask_for: Callable[[FakeCluster], None], *, is_committed: bool, pods: int, devices: int
) -> int:
    """Crash at each call in turn, and start again; answers how many calls there are."""
    number = 0
    while True:
        number += 1
        cluster = cluster_of()
        ask_for(cluster)
        cluster.fault = dying_at(number, is_committed=is_committed)
        try:
            await Life(cluster, Clock()).settle()
        except Crash:
            reserved = [entry for r in cluster.reservations.values() for entry in r.entries]
            cluster.fault = lambda _at, _name: None
            await settled(cluster)
            for entry in reserved:
                for allocation in entry.claims:
                    now = cluster.devices.claim(allocation.claim)
                    assert now.has(allocation.results)
        else:
            return number
        assert (bound(cluster), holding(cluster)) == (pods, devices), number
        assert not cluster.reservations


@pytest.mark.parametrize("is_committed", [False, True])
async def test_after_a_crash_at_any_call_the_same_devices_are_written(
    is_committed: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    def ask_for(cluster: FakeCluster) -> None:
        ask(cluster, train(), request(count=2))

    assert await every_crash(ask_for, is_committed=is_committed, pods=4, devices=8) > 15


async def test_a_pod_without_a_group_gets_a_reservation_too() -> None:
    cluster = cluster_of()
    made = claiming(single("one", cpu=1))
    ask(cluster, made)
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (1, 1)
    assert cluster.calls.count("reserve") == 1
    assert not cluster.reservations


async def test_a_reservation_that_cannot_be_carried_out_gives_the_devices_back() -> None:
    cluster = cluster_of(nodes=1)
    ask(cluster, train(2))
    cluster.fault = lambda _at, name: Fault(Crash()) if name == "bind" else None
    with pytest.raises(Crash):
        await Life(cluster, Clock()).settle()
    assert holding(cluster) == 2
    cluster.fault = lambda _at, _name: None
    cluster.change_node("n0", unschedulable=True)
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (0, 0)
    for name in ("a-0-gpu", "a-1-gpu"):
        assert cluster.devices.claim(name).finalizers == ()
        assert cluster.devices.claim(name).consumers == ()
    cluster.change_node("n0", unschedulable=False)
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (2, 2)


async def test_after_a_crash_while_devices_are_given_back_none_is_lost() -> None:
    number = 0
    while True:
        number += 1
        cluster = cluster_of(nodes=1)
        ask(cluster, train(2))
        cluster.fault = lambda _at, name: Fault(Crash()) if name == "bind" else None
        with pytest.raises(Crash):
            await Life(cluster, Clock()).settle()
        cluster.change_node("n0", unschedulable=True)
        begun = len(cluster.calls)
        cluster.fault = dying_at(begun + number)
        try:
            await Life(cluster, Clock()).settle()
        except Crash:
            cluster.fault = lambda _at, _name: None
            await settled(cluster)
        else:
            break
        assert (bound(cluster), holding(cluster)) == (0, 0), number
        assert not cluster.reservations
    assert number > 6


async def test_devices_whose_reservation_another_client_deleted_are_given_back() -> None:
    cluster = cluster_of(nodes=1)
    ask(cluster, train(2))
    cluster.fault = lambda _at, name: Fault(Crash()) if name == "bind" else None
    with pytest.raises(Crash):
        await Life(cluster, Clock()).settle()
    cluster.fault = lambda _at, _name: None
    cluster.delete_reservation("a")
    cluster.change_node("n0", unschedulable=True)
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (0, 0)


async def test_a_leader_that_wakes_up_late_gives_nobody_the_same_device() -> None:
    """Its allocation names the claim as it was before another leader gave the room back."""
    cluster = cluster_of(nodes=1, devices=2)
    ask(cluster, train(2))
    cluster.fault = lambda _at, name: Fault(Crash()) if name == "allocate" else None
    with pytest.raises(Crash):
        await Life(cluster, Clock()).settle()
    seen = [cluster.devices.claim(name) for name in ("a-0-gpu", "a-1-gpu")]
    assert {own.is_allocated for own in seen} == {False}
    cluster.fault = lambda _at, _name: None
    cluster.change_node("n0", unschedulable=True)
    await settled(cluster)
    assert not cluster.reservations
    for own in seen:
        results = (DeviceResult("gpu", DeviceId(DRIVER, "n0", "gpu-0")),)
        write = ClaimWrite(
            results, NodeName("n0"), (Consumer(Uid("late"), "late"),), {"gpu": device_class()}
        )
        with pytest.raises(errors.Conflict):
            await cluster.allocate(own, write)
    assert holding(cluster) == 0


async def test_a_claim_that_another_client_allocates_first_releases_the_gang() -> None:
    cluster = cluster_of(nodes=1, devices=2)
    ask(cluster, train(1))

    def snatch(name: str) -> None:
        if name == "protect_claim" and not cluster.devices.claim("a-0-gpu").is_allocated:
            result = {"request": "gpu", "driver": DRIVER, "pool": "n0", "device": "gpu-1"}
            own = claim("a-0-gpu", request())
            own["metadata"]["uid"] = cluster.devices.claim("a-0-gpu").uid
            own["metadata"]["finalizers"] = [FINALIZER]
            selector = {
                "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]
            }
            own["status"] = {
                "allocation": {
                    "devices": {"results": [result]},
                    "nodeSelector": {"nodeSelectorTerms": [selector]},
                }
            }
            cluster.before = lambda _name: None
            cluster.put_devices(own)

    cluster.before = snatch
    await settled(cluster)
    assert bound(cluster) == 1
    assert [r.device.name for r in cluster.devices.claim("a-0-gpu").allocated or ()] == ["gpu-1"]


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize(
    ("features", "why", "words"),
    [
        (("suitableNodes",), "NotModelled", "suitableNodes"),
        (None, "WaitingForDevices", "device class gpu, which does not exist"),
    ],
    ids=["unsupported", "gone"],
)
async def test_a_class_that_changes_once_devices_are_chosen_gives_none(
    features: tuple[str, ...] | None, why: str, words: str, *, dies: bool
) -> None:
    """If Tutti supports it no more, or it has gone: the Reservation is lost, and the gang waits."""
    cluster = cluster_of(nodes=1)
    ask(cluster, train(2))
    life = Life(cluster, Clock())

    def change(name: str) -> None:
        if name == "reserve":
            cluster.before = lambda _name: None
            if features is None:
                cluster.drop_devices("devices.classes", "gpu")
            else:
                cluster.put_devices(replace(device_class(), unsupported=features))
            life.watch.catch_up("devices.classes")
            if dies:
                cluster.fault = lambda _at, name: Fault(Crash(), is_committed=name == "reserve")

    cluster.before = change
    if dies:
        with pytest.raises(Crash):
            await life.settle()
        cluster.fault = lambda _at, _name: None
        assert cluster.reservations
        await settled(cluster)
    else:
        await life.settle()
    assert (bound(cluster), holding(cluster), [*cluster.reservations]) == (0, 0, [])
    assert reason(cluster)[0] == why
    assert words in reason(cluster)[1]
    cluster.put_devices(device_class())
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (2, 2)


UNCHANGEABLE = errors.Unchangeable("spec: field is immutable", status=422)


async def test_a_gang_whose_claims_cannot_be_patched_keeps_no_room() -> None:
    """Their finalizer cannot be set, so no allocation was sent before, either."""
    cluster = cluster_of(nodes=1, devices=2)
    ask(cluster, train(2))
    cluster.fault = lambda _at, name: Fault(UNCHANGEABLE) if name == "protect_claim" else None
    await tried(cluster)
    assert (bound(cluster), holding(cluster), len(cluster.reservations)) == (0, 0, 0)
    why, message = reason(cluster)
    assert (why, "field is immutable" in message) == ("Refused", True)


@pytest.mark.parametrize("is_allocated", [True, False])
async def test_a_claim_that_cannot_be_patched_any_more_is_freed_by_a_change_of_its_status(
    is_allocated: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """Unless an allocation that was sent before may come: then its Reservation stands."""
    cluster = cluster_of(nodes=1, devices=2)
    ask(cluster, train(1))
    last = "bind" if is_allocated else "allocate"
    cluster.fault = lambda _at, name: Fault(Crash()) if name == last else None
    with pytest.raises(Crash):
        await Life(cluster, Clock()).settle()
    assert holding(cluster) == is_allocated
    cluster.fault = lambda _at, name: Fault(UNCHANGEABLE) if name == "protect_claim" else None
    cluster.change_node("n0", unschedulable=True)
    await tried(cluster)
    assert (bound(cluster), holding(cluster)) == (0, 0)
    assert len(cluster.reservations) == (not is_allocated)


async def test_a_pod_waits_for_the_claim_of_its_template() -> None:
    cluster = cluster_of()
    cluster.add(gang("a").of(1, cpu=1).each(device_claims=(PodClaim("gpu", None, is_own=True),)))
    await settled(cluster)
    assert reason(cluster) == (
        "WaitingForDevices",
        "1 pod waits for devices: claim gpu is not created yet",
    )


async def test_a_template_s_claim_of_another_pod_is_not_used() -> None:
    cluster = cluster_of()
    cluster.put_devices(claim("stolen", owner="another"))
    own = (PodClaim("gpu", "stolen", is_own=True),)
    cluster.add(gang("a").of(1, cpu=1).each(device_claims=own))
    await settled(cluster)
    assert reason(cluster)[1].endswith("claim stolen was not made for this pod")


async def test_a_tainted_device_is_for_requests_that_tolerate_it() -> None:
    taint = DeviceTaint("broken", "", "NoSchedule")
    rule = TaintRule("aside", taint, pool="n0")
    cluster = cluster_of(1, 2, rule)
    ask(cluster, train(1))
    await settled(cluster)
    assert bound(cluster) == 0
    tolerant = claiming(gang("b").of(1, cpu=1))
    ask(cluster, tolerant, request(tolerations=[{"key": "broken", "operator": "Exists"}]))
    await settled(cluster)
    assert [pod.key.name for pod in cluster.pods.values() if pod.node] == ["b-0"]
    cluster.drop_devices("devices.rules", "aside")
    await settled(cluster)
    assert bound(cluster) == 2


async def test_what_is_not_modelled_is_named() -> None:
    cluster = cluster_of()
    ask(cluster, train(1), request(capacity={"requests": {"memory": "1Gi"}}))
    await settled(cluster)
    assert reason(cluster)[0] == "NotModelled"
    assert "capacity" in reason(cluster)[1]


async def test_pods_with_admin_access_see_devices_that_others_have() -> None:
    cluster = cluster_of(nodes=2, devices=2)
    ask(cluster, train(4))
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (4, 4)
    watching = claiming(gang("b").of(3, cpu=1))
    ask(cluster, watching, request(adminAccess=True, allocationMode="All"))
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (7, 4)
    for member in watching.made.members:
        own = cluster.devices.claim(f"{member.key.name}-gpu")
        assert len(own.administered) == 2
        (home,) = (pod.node for pod in cluster.pods.values() if pod.key == member.key)
        assert own.nodes == (home,)
        raw = cluster.devices.raw[own.key]["status"]["allocation"]["devices"]["results"]
        assert all(result["adminAccess"] for result in raw)


async def test_pods_with_admin_access_wait_for_a_node_that_has_such_devices() -> None:
    cluster = cluster_of(nodes=2, devices=1)
    ask(cluster, train(1), request(count=2, adminAccess=True))
    await settled(cluster)
    why, message = reason(cluster)
    assert why == "NoNodeFits"
    assert "2 gpu with adminAccess; no node has any" in message
    cluster.put_devices(gpus("n1", 2))
    await settled(cluster)
    assert bound(cluster) == 1


@pytest.mark.parametrize("is_committed", [False, True])
async def test_after_a_crash_at_any_call_pods_with_admin_access_get_the_same_devices(
    *, is_committed: bool
) -> None:
    def ask_for(cluster: FakeCluster) -> None:
        ask(cluster, train(), request(count=3, adminAccess=True))

    assert await every_crash(ask_for, is_committed=is_committed, pods=4, devices=0) > 15


async def test_a_request_for_any_device_leaves_the_rare_one_to_the_request_for_it() -> None:
    cluster = FakeCluster()
    cluster.add(node("n0", cpu=8))
    big, small = gpus("n0", 1, size=2), gpus("n0", 1, first=1, size=1)
    cluster.put_devices(replace(big, devices=(*big.devices, *small.devices)), device_class())
    any_one, large = claiming(gang("a").of(1, cpu=1)), claiming(gang("b").of(1, cpu=1))
    ask(cluster, any_one)
    ask(cluster, large, request("gpu", "gpu", 1, f'device.attributes["{DRIVER}"].size > 1'))
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (2, 2)
    assert cluster.devices.claim("b-0-gpu").allocated[0].device.name == "gpu-0"  # type: ignore[index]


def first_of(*classes: str) -> dict[str, object]:
    """A request for one device of one of these classes."""
    parts = [{"name": f"of-{name}", "deviceClassName": name} for name in classes]
    return {"name": "any", "firstAvailable": parts}


async def test_a_request_gets_the_first_of_its_alternatives_that_is_free() -> None:
    cluster = cluster_of(nodes=1, devices=0)
    cluster.put_devices(
        device_class("large", f'device.attributes["{DRIVER}"].?size.orValue("") == "l"'),
        replace(gpus("n0", 1, size="l"), name="large", slices=2),
        replace(gpus("n0", 2, first=1), name="small", slices=2),
    )
    cluster.drop_devices(SLICES, "n0-slice")
    ask(cluster, train(3), first_of("large", "gpu"))
    await settled(cluster)
    given = [cluster.devices.claim(f"a-{i}-gpu").allocated for i in range(3)]
    names = sorted((r.request, r.device.name) for results in given for r in results or ())
    assert names == [("any/of-gpu", "gpu-1"), ("any/of-gpu", "gpu-2"), ("any/of-large", "gpu-0")]


async def test_a_claim_for_all_devices_gets_a_node_of_which_none_is_in_use() -> None:
    cluster = cluster_of(nodes=2, devices=3)
    cluster.put_devices(gpus("n1", 2))
    ask(cluster, train(1))
    await settled(cluster)
    every = claiming(gang("b").of(1, cpu=1))
    cluster.put_devices(*claims_of(every, request(allocationMode="All")))
    cluster.add(every)
    await settled(cluster)
    taken = {pod.key.name: pod.node for pod in cluster.pods.values()}
    assert taken["a-0"] != taken["b-0"]
    (results,) = [cluster.devices.claim("b-0-gpu").allocated]
    assert len(results or ()) == (3 if taken["b-0"] == "n0" else 2)
    ask(cluster, claiming(gang("c").of(1, cpu=1)), request(allocationMode="All"))
    await settled(cluster)
    assert reason(cluster, "c")[0] == "NotEnoughRoom"
    assert "devices of all of gpu" in reason(cluster, "c")[1]


def sharing(name: str, count: int, *, cpu: int = 1) -> GangBuilder:
    """A gang whose members all name one claim."""
    return gang(name).of(count, cpu=cpu).each(device_claims=(PodClaim("gpu", "both"),))


async def test_the_pods_of_a_gang_share_a_claim_on_one_node() -> None:
    cluster = cluster_of(nodes=3)
    cluster.put_devices(claim("both", request(count=3)))
    cluster.add(sharing("a", 8))
    await settled(cluster)
    assert len({pod.node for pod in cluster.pods.values()}) == 1
    assert bound(cluster) == 8
    assert holding(cluster) == 3
    assert len(cluster.devices.claim("both").consumers) == 8


async def test_a_claim_that_has_its_devices_needs_no_class_that_is_supported() -> None:
    """A later pod of the gang uses it, too, and nothing is to be chosen."""
    cluster = cluster_of(nodes=1)
    cluster.put_devices(claim("both"))
    cluster.add(sharing("a", 2))
    await settled(cluster)
    cluster.put_devices(replace(device_class(), unsupported=("suitableNodes",)))
    cluster.add_pod(replace(sharing("a", 3).made.members[2], created=9.0))
    await settled(cluster)
    assert (bound(cluster), [*cluster.reservations]) == (3, [])


async def test_pods_that_share_a_claim_wait_until_one_node_has_room_for_all() -> None:
    cluster = cluster_of(nodes=3)
    cluster.put_devices(claim("both"))
    cluster.add(sharing("a", 3, cpu=3))
    await settled(cluster)
    assert bound(cluster) == holding(cluster) == 0
    assert reason(cluster)[0] == "NotEnoughRoom"
    cluster.add(node("large", cpu=9).labelled(hostname="large"))
    cluster.put_devices(gpus("large", 1))
    await settled(cluster)
    assert {pod.node for pod in cluster.pods.values()} == {"large"}


@pytest.mark.parametrize("is_committed", [False, True])
async def test_after_a_crash_at_any_call_a_shared_claim_gets_the_same_devices(
    is_committed: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    def ask_for(cluster: FakeCluster) -> None:
        cluster.put_devices(claim("both", request(count=2)))
        cluster.add(sharing("a", 3))

    assert await every_crash(ask_for, is_committed=is_committed, pods=3, devices=2) > 7


async def test_a_shared_claim_is_given_back_once_all_of_its_pods_are_released() -> None:
    cluster = cluster_of(nodes=1)
    cluster.put_devices(claim("both"))
    cluster.add(sharing("a", 3))
    cluster.fault = lambda _at, name: Fault(Crash()) if name == "bind" else None
    with pytest.raises(Crash):
        await settled(cluster)
    assert holding(cluster) == 1
    cluster.fault = lambda _at, _name: None
    cluster.change_node("n0", unschedulable=True)
    await settled(cluster)
    assert holding(cluster) == bound(cluster) == 0
    cluster.change_node("n0", unschedulable=False)
    await settled(cluster)
    assert bound(cluster) == 3


async def test_a_claim_that_several_gangs_share_is_not_modelled() -> None:
    cluster = cluster_of()
    cluster.put_devices(claim("both"))
    cluster.add(sharing("a", 2))
    cluster.add(sharing("b", 2))
    await settled(cluster)
    assert reason(cluster)[0] == "NotModelled"
    assert "both, which pods of several gangs that wait share" in reason(cluster)[1]


async def test_the_devices_of_a_claim_have_one_attribute() -> None:
    """A node has room for three pairs of GPUs, each in one NUMA node."""
    cluster = cluster_of(nodes=0)
    cluster.add(node("n0", cpu=8).labelled(hostname="n0"))
    numa = (0, 1, 2, 0, 1, 2, 3)
    devices = tuple(device(f"gpu-{i}", "n0", (), numa=n) for i, n in enumerate(numa))
    cluster.put_devices(replace(gpus("n0", 0), devices=devices))
    made = train(3)
    constraint = {"matchAttribute": f"{DRIVER}/numa"}
    names = [of["metadata"]["name"] for of in claims_of(made)]
    cluster.put_devices(
        *(claim(name, request(count=2), constraints=[constraint]) for name in names)
    )
    cluster.add(made)
    await Life(cluster, Clock()).settle()
    assert (bound(cluster), holding(cluster)) == (3, 6)
    for name in names:
        results = cluster.devices.claim(name).allocated or ()
        assert len({numa[int(result.device.name[-1])] for result in results}) == 1
    late = claiming(gang("b").of(1, cpu=1))
    cluster.put_devices(
        *(
            claim(of["metadata"]["name"], request(count=2), constraints=[constraint])
            for of in claims_of(late)
        )
    )
    cluster.add(late)
    await Life(cluster, Clock()).settle()
    assert bound(cluster) == 3


async def test_partitions_of_a_device_share_its_counters() -> None:
    """A GPU has room for a partition of four slices and one of two, or for three of two."""
    cluster = cluster_of(nodes=0)
    cluster.add(node("n0", cpu=8).labelled(hostname="n0"))
    devices = tuple(
        replace(
            device(f"part-{size}-{at}", "n0", (), size=size),
            counters=tuple(Counter("gpu", f"slice-{at + i}", "1") for i in range(size)),
        )
        for size, places in ((2, (0, 2, 4)), (4, (0, 2)))
        for at in places
    )
    own = replace(gpus("n0", 0), slices=2)
    counters = tuple(Counter("gpu", f"slice-{i}", "1") for i in range(6))
    cluster.put_devices(replace(own, devices=devices), replace(own, name="sets", counters=counters))

    def asking(name: str, count: int, size: int) -> GangBuilder:
        made = claiming(gang(name).of(count, cpu=1))
        selector = f'device.attributes["{DRIVER}"].size == {size}'
        ask(cluster, made, request("gpu", "gpu", 1, selector))
        return made

    asking("a", 2, 2)
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (2, 2)
    asking("b", 1, 4)
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (2, 2)
    asking("c", 1, 2)
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (3, 3)
