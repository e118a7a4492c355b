"""Pods whose extended resources a DeviceClass backs: their claims, and what they are bound with."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.harness.builders import GangBuilder, gang, node, single
from tests.harness.extended import GPU, container, requesting
from tests.harness.fake_devices import CLASSES, device_class, gpus
from tests.harness.fakes import Clock, Crash, FakeCluster, Fault, Life
from tutti.kube import errors
from tutti.model.cluster import Phase
from tutti.model.devices.claims import FINALIZER, DeviceClaim
from tutti.model.devices.extended import claim_name
from tutti.model.keys import Uid
from tutti.model.queues import Queue

from .test_devices import bound, dying_at, holding, reason, settled


def cluster_of(nodes: int = 2, devices: int = 4) -> FakeCluster:
    """Nodes with so many devices each, and a class that backs GPUs."""
    cluster = FakeCluster()
    for i in range(nodes):
        cluster.add(node(f"n{i}", cpu=8).labelled(hostname=f"n{i}"))
        cluster.put_devices(gpus(f"n{i}", devices))
    cluster.put_devices(device_class(backs=GPU))
    return cluster


def train(count: int = 4, gpus_each: int = 2) -> GangBuilder:
    """A gang, each member of which requests so many GPUs."""
    return requesting(gang("a").of(count, cpu=1), container(gpu=gpus_each))


def claims(cluster: FakeCluster) -> list[DeviceClaim]:
    """All claims."""
    return [item.value for item in cluster.devices.items["devices.claims"].values()]


def dying_at_first(call: str) -> Callable[[int, str], Fault | None]:
    """The operator dies at the first call of this name."""
    return lambda _at, name: Fault(Crash()) if name == call else None


async def reserved(cluster: FakeCluster) -> None:
    """The operator dies once the claims of a Reservation are written and nothing is bound."""
    cluster.fault = dying_at_first("bind")
    with pytest.raises(Crash):
        await Life(cluster, Clock()).settle()
    cluster.fault = lambda _at, _name: None


async def test_each_member_gets_its_devices_by_a_claim_that_its_status_names() -> None:
    cluster = cluster_of()
    cluster.add(train())
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (4, 8)
    assert len(claims(cluster)) == 4
    for pod in cluster.pods.values():
        own = cluster.devices.claim(pod.extended_claim)
        assert own.owner == pod.uid
        assert own.nodes == (pod.node,)
        assert [consumer.uid for consumer in own.consumers] == [pod.uid]
        assert FINALIZER in own.finalizers
        metadata = cluster.devices.raw[own.key]["metadata"]
        assert metadata["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
        mapping = {
            "containerName": "main",
            "resourceName": GPU,
            "requestName": "container-0-request-2",
        }
        assert cluster.mapped[pod.uid]["requestMappings"] == [mapping]
    first_bind = cluster.calls.index("bind")
    assert not {"make_claim", "allocate", "name_claim"} & {*cluster.calls[first_bind:]}
    assert not cluster.reservations


@pytest.mark.parametrize("is_committed", [False, True])
async def test_after_a_crash_at_any_call_each_pod_has_one_claim(
    is_committed: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    number = 0
    while True:
        number += 1
        cluster = cluster_of()
        cluster.add(train())
        cluster.fault = dying_at(number, is_committed=is_committed)
        try:
            await Life(cluster, Clock()).settle()
        except Crash:
            cluster.fault = lambda _at, _name: None
            await settled(cluster)
        else:
            break
        assert (bound(cluster), holding(cluster), len(claims(cluster))) == (4, 8, 4), number
        assert not cluster.reservations
    assert number > 20


async def test_a_gang_whose_devices_do_not_all_exist_gets_none() -> None:
    cluster = cluster_of(devices=3)
    cluster.add(train())
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (0, 0)
    why, message = reason(cluster)
    assert why == "NotEnoughRoom"
    assert "devices of gpu" in message
    assert not any(pod.extended_claim for pod in cluster.pods.values())


async def test_a_pod_without_a_group_gets_a_claim_too() -> None:
    cluster = cluster_of()
    cluster.add(requesting(single("one", cpu=1)))
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (1, 1)
    assert not cluster.reservations


async def test_a_resource_that_some_node_publishes_is_left_to_such_nodes() -> None:
    cluster = cluster_of()
    cluster.add(node("plugin", cpu=8, gpu=2), train(2, gpus_each=1))
    await settled(cluster)
    assert {pod.node for pod in cluster.pods.values()} == {"plugin"}
    assert not claims(cluster)


async def test_a_reserved_pod_keeps_its_devices_if_a_node_publishes_the_resource() -> None:
    cluster = cluster_of()
    cluster.add(train(2))
    await reserved(cluster)
    cluster.add(node("plugin", cpu=8, gpu=8))
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (2, 4)
    assert "plugin" not in {pod.node for pod in cluster.pods.values()}


async def test_a_released_gang_gives_its_devices_back_and_keeps_its_claims() -> None:
    cluster = cluster_of(nodes=1)
    cluster.add(train(2))
    await reserved(cluster)
    assert holding(cluster) == 4
    cluster.change_node("n0", unschedulable=True)
    await settled(cluster)
    assert (bound(cluster), holding(cluster), len(claims(cluster))) == (0, 0, 2)
    cluster.add(node("plugin", cpu=8, gpu=8))  # kubelets would look for the claims in the statuses
    await settled(cluster)
    assert bound(cluster) == 0
    cluster.change_node("n0", unschedulable=False)
    await settled(cluster)
    assert (bound(cluster), holding(cluster), len(claims(cluster))) == (2, 4, 2)


async def test_devices_of_pods_that_are_gone_are_free() -> None:
    cluster = cluster_of(nodes=1)
    cluster.add(train(2))
    await settled(cluster)
    for name in ("a-0", "a-1"):
        cluster.delete_pod(name)
    cluster.collect_claims()
    assert not claims(cluster)
    cluster.add(requesting(gang("b").of(2, cpu=1), container(gpu=2)))
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (2, 4)


async def test_a_refused_claim_is_reported_and_tried_again() -> None:
    cluster = cluster_of()
    cluster.add(train(2))
    refusal = errors.Refused("exceeded quota: devices", status=403)
    cluster.fault = lambda _at, name: Fault(refusal) if name == "make_claim" else None
    clock = Clock()
    life = Life(cluster, clock)
    for _ in range(4):
        await life.turn()
        clock.now += 1
    why, message = reason(cluster)
    assert why == "Refused"
    assert "exceeded quota: devices" in message
    cluster.fault = lambda _at, _name: None
    clock.now += 600
    await life.settle()
    assert (bound(cluster), holding(cluster)) == (2, 4)


async def test_a_pod_is_not_bound_if_the_api_server_does_not_keep_the_name_of_its_claim() -> None:
    cluster = cluster_of()
    cluster.add(train(1))
    cluster.drops_claim_names = True
    life = Life(cluster, Clock())
    said = []
    for _ in range(6):
        await life.turn()
        life.clock.now += 1
        said.append(reason(cluster)[1])
    assert (bound(cluster), cluster.calls.count("bind")) == (0, 0)
    assert "DRAExtendedResource is off" in "".join(said)
    cluster.drops_claim_names = False
    life.clock.now += 600
    await life.settle()
    assert (bound(cluster), holding(cluster)) == (1, 2)


async def test_devices_whose_reservation_is_deleted_are_given_back_before_nodes_are_used() -> None:
    cluster = cluster_of(nodes=1)
    cluster.add(train(2))
    cluster.fault = dying_at_first("name_claim")
    with pytest.raises(Crash):
        await Life(cluster, Clock()).settle()
    cluster.fault = lambda _at, _name: None
    assert holding(cluster) == 4
    cluster.delete_reservation("a")
    cluster.add(node("plugin", cpu=8, gpu=8))
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (2, 0)
    assert {pod.node for pod in cluster.pods.values()} == {"plugin"}


async def test_a_claim_whose_namespace_is_gone_is_not_reported() -> None:
    cluster = cluster_of()
    cluster.add(train(1))
    gone = errors.Gone("there is no namespace ml", status=404)
    cluster.fault = lambda _at, name: Fault(gone) if name == "make_claim" else None
    life = Life(cluster, Clock())
    await life.turn()
    assert not life.state.refusals.snapshot(0.0)
    assert not claims(cluster)


async def test_a_pod_whose_status_cannot_be_written_is_not_bound_and_its_gang_neither() -> None:
    cluster = cluster_of()
    cluster.add(train(2))
    conflict = errors.Conflict("it has changed", status=409)
    faults = iter([Fault(conflict)])
    cluster.fault = lambda _at, name: next(faults, None) if name == "name_claim" else None
    life = Life(cluster, Clock())
    await life.turn()
    assert (bound(cluster), holding(cluster)) == (0, 4)
    await life.settle()
    assert (bound(cluster), holding(cluster)) == (2, 4)
    assert not cluster.broken


async def test_a_pod_that_changes_after_its_claim_is_named_is_bound_in_the_next_cycle() -> None:
    cluster = cluster_of()
    cluster.add(train(1))

    def change(name: str) -> None:
        if name == "bind" and cluster.calls.count("bind") == 1:
            cluster.change_pod("a-0", labels=())

    cluster.before = change
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (1, 2)
    assert cluster.calls.count("name_claim") == 1


async def test_another_object_of_the_name_is_not_used() -> None:
    cluster = cluster_of()
    cluster.add(train(1))
    (pod,) = cluster.pods.values()
    stranger = {
        "metadata": {"name": claim_name("a-0", pod.uid), "namespace": "ml"},
        "spec": {"devices": {"requests": [{"name": "x", "exactly": {"deviceClassName": "gpu"}}]}},
    }
    cluster.put_devices(stranger)
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (0, 0)
    assert reason(cluster)[0] == "WaitingForDevices"


async def test_a_class_that_goes_and_comes_decides_again() -> None:
    cluster = cluster_of(nodes=1, devices=1)
    cluster.add(train(1))
    await settled(cluster)
    cluster.drop_devices(CLASSES, "gpu")
    await settled(cluster)
    why, message = reason(cluster)
    assert why == "NoNodeFits"
    assert GPU in message
    cluster.put_devices(device_class(backs=GPU), gpus("n0", 2))
    await settled(cluster)
    assert (bound(cluster), holding(cluster), len(claims(cluster))) == (1, 2, 1)


async def test_a_gated_pod_gets_no_claim() -> None:
    cluster = cluster_of()
    cluster.add(train(1).each(gates=("x",)))
    await settled(cluster)
    assert not claims(cluster)


async def test_finished_pods_ask_for_nothing() -> None:
    cluster = cluster_of(nodes=1)
    cluster.add(train(2))
    await settled(cluster)
    cluster.run_pods(Phase.SUCCEEDED)
    await settled(cluster)
    assert len(claims(cluster)) == 2


async def test_no_pod_is_bound_whose_claim_vanishes_before_it_is_named() -> None:
    """As when somebody removes its finalizer after the allocation."""
    cluster = cluster_of()
    cluster.add(train(1))
    life = Life(cluster, Clock())
    allocate = life.cycle._commit._claims.allocate

    async def vanishing(bindings: Any) -> Any:
        answer = await allocate(bindings)
        for item in [*cluster.devices.items["devices.claims"].values()] if bindings else ():
            life.state.devices.claims.drop(item.uid)
        return answer

    life.cycle._commit._claims.allocate = vanishing  # type: ignore[method-assign]
    await life.turn()
    assert "allocate" in cluster.calls
    assert bound(cluster) == 0


async def test_devices_for_extended_resources_count_towards_no_limit_of_a_queue() -> None:
    """As devices of claims that pods name; a ResourceQuota counts both."""
    cluster = cluster_of()
    cluster.add_queue(Queue("vision", Uid("v"), limits=((GPU, 1),), default_for=()))
    cluster.add(train())
    await settled(cluster)
    assert (bound(cluster), holding(cluster)) == (4, 8)
