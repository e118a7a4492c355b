"""Which pods get their extended resources by claims, and what is watched for that."""

from collections.abc import Collection
from dataclasses import replace

import pytest

from tests.harness.builders import GangBuilder, gang, node
from tests.harness.extended import GPU, container, requesting
from tests.harness.fake_devices import CLAIMS, CLASSES, device_class, gpus
from tests.harness.fakes import STREAMS, Clock, FakeCluster, Life, Watch, store_of
from tutti.kube.list_watch import ObjectList
from tutti.model.cluster import Member, PodReservation
from tutti.model.devices.claims import ClaimAllocation, PodClaim
from tutti.model.devices.extended import CLAIM_OF, ContainerRequests, claim_name
from tutti.model.keys import NodeName
from tutti.model.resources import Resources
from tutti.state.cluster_state import ClusterState
from tutti.state.devices.index import UNLISTED

NIC = "nvidia.com/nic"


def cluster_of(made: GangBuilder, *backs: str) -> FakeCluster:
    """A node with devices and a pod; a class for each resource."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=8), made)
    cluster.put_devices(gpus("n1", 2))
    for resource in backs:
        cluster.put_devices(device_class(resource.partition("/")[2], backs=resource))
    return cluster


def pod(*containers: ContainerRequests) -> GangBuilder:
    return requesting(gang("a").of(1, cpu=1), *containers)


def member_of(life: Life) -> Member:
    life.watch.catch_up()
    return life.state.snapshot(0.0).gangs[0].members[0]


def listed(state: ClusterState, cluster: FakeCluster, *but: str) -> None:
    for name in STREAMS:
        if name not in but:
            store = store_of(state, name)
            store.replace(ObjectList(cluster._listed(name)), cluster.version, store.began())


DEVICES = tuple(name for name in STREAMS if name.startswith("devices."))


def wanted(
    *but: str, publishes: bool = False, asks: bool = True, is_on: bool = True
) -> tuple[bool, bool]:
    """Whether classes, and devices, are to be watched, once all is listed but these streams."""
    made = pod() if asks else gang("a").of(1, cpu=1)
    cluster = cluster_of(made, GPU)
    if publishes:
        cluster.add(node("plugin", gpu=1))
    state = ClusterState(lambda: None, reads_devices=is_on)
    listed(state, cluster, *but)
    return state.devices.are_classes_wanted, state.devices.are_wanted


def test_nothing_of_devices_is_watched_in_a_cluster_that_uses_none() -> None:
    assert wanted(*DEVICES, asks=False) == (False, False)
    assert wanted(*DEVICES, publishes=True) == (False, False)
    assert wanted(*DEVICES, is_on=False) == (False, False)


def test_classes_are_watched_before_devices() -> None:
    assert wanted(*DEVICES) == (True, False)
    others = [name for name in DEVICES if name != CLASSES]
    assert wanted(*others) == (True, True)
    assert wanted(*others, publishes=True) == (False, False)


def test_a_pod_waits_until_classes_are_listed_unless_a_node_publishes_its_resource() -> None:
    cluster = cluster_of(pod(), GPU)
    state = ClusterState(lambda: None, reads_devices=True)
    listed(state, cluster, *DEVICES)

    def problems() -> Collection[str]:
        return state.snapshot(0.0).gangs[0].members[0].device_problems

    assert problems() == (UNLISTED,)
    assert not [*state.devices.missing_claims()]
    cluster.add(node("plugin", cpu=8, gpu=1))
    listed(state, cluster, *DEVICES)
    assert problems() == ()


def test_a_pod_has_a_claim_in_place_of_what_no_node_publishes() -> None:
    life = Life(cluster_of(pod(), GPU), Clock())
    member = member_of(life)
    name = claim_name("a-0", member.uid)
    assert member.device_claims == (PodClaim(CLAIM_OF, name, is_own=True),)
    assert member.shape.requests[GPU] == 0
    assert member.device_problems == (f"the claim for its {GPU} is not created yet",)
    (missing,) = life.state.devices.missing_claims()
    assert (missing.name, missing.plan.devices) == (name, 1)


def test_what_nodes_publish_decides_at_every_change() -> None:
    cluster = cluster_of(pod(), GPU)
    life = Life(cluster, Clock())
    assert member_of(life).device_claims
    cluster.add(node("plugin", cpu=8, gpu=1), node("second", cpu=8, gpu=1))
    assert not member_of(life).device_claims
    assert member_of(life).shape.requests[GPU] == 1
    cluster.delete_node("plugin")
    assert not member_of(life).device_claims
    cluster.put_node(node("second", cpu=9).made)
    assert member_of(life).device_claims
    cluster.put_node(node("n1", cpu=9).made)
    assert member_of(life).device_claims


def test_what_classes_back_decides_at_every_change() -> None:
    cluster = cluster_of(pod())
    life = Life(cluster, Clock())
    assert not member_of(life).device_claims
    cluster.put_devices(device_class(backs=GPU))
    assert member_of(life).device_claims
    cluster.put_devices(device_class(backs=NIC))
    assert not member_of(life).device_claims


def test_resources_that_some_nodes_publish_stay_with_nodes() -> None:
    cluster = cluster_of(pod(container(gpu=1, nic=2)), GPU, NIC)
    offers = Resources.of({NIC: 4, "cpu": 8000, "pods": 9})
    cluster.put_node(replace(node("nics").made, allocatable=offers))
    member = member_of(Life(cluster, Clock()))
    assert member.device_claims
    assert (member.shape.requests[GPU], member.shape.requests[NIC]) == (0, 2)


@pytest.mark.parametrize(
    ("containers", "problem"),
    [
        ([container(gpu=2**63 - 1)], "its containers request 9223372036854775807 devices"),
        ([container(gpu=33)], "its containers request 33 devices (nvidia.com/gpu), and a claim"),
        (
            [container(i, f"c{i}", gpu=1) for i in range(33)],
            "more of its containers request nvidia.com/gpu than the 32",
        ),
    ],
)
def test_no_claim_is_made_that_could_never_be_allocated(
    containers: list[ContainerRequests], problem: str
) -> None:
    life = Life(cluster_of(pod(*containers), GPU), Clock())
    (said,) = member_of(life).device_problems
    assert said.startswith(problem)
    assert not [*life.state.devices.missing_claims()]


async def test_a_claim_that_is_not_for_what_the_containers_request_is_not_used() -> None:
    cluster = cluster_of(pod(container(gpu=2)), GPU)
    life = Life(cluster, Clock())
    name = claim_name("a-0", member_of(life).uid)
    for request in ("container-0-request-2", "other"):
        raw = {
            "metadata": {
                "name": name,
                "namespace": "ml",
                "ownerReferences": [{"uid": member_of(life).uid, "controller": True}],
            },
            "spec": {
                "devices": {"requests": [{"name": request, "exactly": {"deviceClassName": "gpu"}}]}
            },
        }
        cluster.put_devices(raw)
        (said,) = member_of(life).device_problems
        assert said == f"claim {name} is not for what its containers request"
    assert not [*life.state.devices.missing_claims()]


async def test_a_claim_stands_for_what_it_was_made_for() -> None:
    """Of two resources, one was published by a node when the claim was made."""
    cluster = cluster_of(pod(container(gpu=1, nic=1)), GPU)
    life = Life(cluster, Clock())
    await life.turn()
    assert [item.value.least_devices for item in cluster.devices.items[CLAIMS].values()] == [1]
    cluster.put_devices(device_class("nic", backs=NIC))
    member = member_of(life)
    assert (member.shape.requests[GPU], member.shape.requests[NIC]) == (0, 1)


async def named_and_released() -> tuple[FakeCluster, Life]:
    """A pod whose status names its claim, and which waits again."""
    cluster = cluster_of(pod(), GPU)
    cluster.change_node("n1", unschedulable=True)
    life = Life(cluster, Clock())
    await life.turn()
    (own,) = cluster.devices.items[CLAIMS].values()
    cluster.change_pod("a-0", extended_claim=own.value.key.name, extended_resources=(GPU,))
    return cluster, life


async def test_a_pod_whose_status_names_its_claim_keeps_it() -> None:
    cluster, life = await named_and_released()
    cluster.put_node(node("n1", cpu=8, gpu=8).made)
    assert member_of(life).device_claims
    cluster.drop_devices(CLASSES, "gpu")
    assert "does not exist" in member_of(life).device_problems[0]


async def test_a_claim_that_is_gone_is_made_again() -> None:
    cluster, life = await named_and_released()
    name = member_of(life).extended_claim
    cluster.put_node(node("n1", cpu=8, gpu=8).made)
    cluster.delete_claim(name)
    assert member_of(life).device_problems == (f"the claim for its {GPU} is not created yet",)
    (missing,) = life.state.devices.missing_claims()
    assert missing.name == name
    cluster.drop_devices(CLASSES, "gpu")
    assert member_of(life).device_problems == (
        "no DeviceClass backs its extended resources any more",
    )
    assert not [*life.state.devices.missing_claims()]


async def test_a_claim_is_made_again_for_what_the_status_says_and_nothing_else() -> None:
    """The status of a pod cannot be changed any more; a node may publish the rest."""
    cluster = cluster_of(pod(container(gpu=1, nic=1)), GPU, NIC)
    cluster.put_node(node("n1", cpu=8, gpu=8).made)
    cluster.change_node("n1", unschedulable=True)
    life = Life(cluster, Clock())
    await life.turn()
    (own,) = cluster.devices.items[CLAIMS].values()
    name = own.value.key.name
    cluster.change_pod("a-0", extended_claim=name, extended_resources=(GPU, NIC))
    assert member_of(life).device_problems == (
        f"claim {name} is not for what its containers request",
    )
    cluster.change_pod("a-0", extended_resources=(NIC,))
    cluster.delete_claim(name)
    member = member_of(life)
    (missing,) = life.state.devices.missing_claims()
    assert [(resource, count) for _, resource, count in missing.plan.counts] == [(NIC, 1)]
    assert (member.shape.requests[GPU], member.shape.requests[NIC]) == (1, 0)


async def test_a_bound_pod_has_what_its_status_says() -> None:
    cluster, life = await named_and_released()
    cluster.change_pod("a-0", node=NodeName("n1"))
    assert member_of(life).shape.requests[GPU] == 0
    cluster = cluster_of(pod().bound_on("n1"), GPU)
    member = member_of(Life(cluster, Clock()))
    assert member.shape.requests[GPU] == 1
    assert not member.device_claims


def test_a_reservation_says_how_a_pod_gets_its_resources() -> None:
    made = pod()
    cluster = cluster_of(made, GPU)
    life = Life(cluster, Clock())
    member = member_of(life)
    devices = life.state.devices.extended
    key, uid, on = member.key, member.uid, NodeName("n1")
    entries = {uid: PodReservation(key, uid, on)}
    devices._reserved = entries.get
    raw = cluster.pods[key]
    assert devices.resolved(raw) == raw
    assert devices.plan(raw) is None
    own = ClaimAllocation(claim_name("a-0", uid), uid)
    entries[uid] = PodReservation(key, uid, on, (own,))
    assert devices.resolved(raw).device_claims
    assert devices.plan(raw) is None
    assert devices.plan(replace(raw, extended_claim="x")) is None


def test_pods_that_are_gone_are_forgotten() -> None:
    cluster = cluster_of(pod(container(gpu=1), container(1, "b", nic=1)))
    second = requesting(gang("b").of(1, cpu=1))
    cluster.add(second)
    life = Life(cluster, Clock())
    assert life.state.devices.are_classes_wanted
    cluster.delete_pod("a-0")
    cluster.delete_pod("b-0")
    life.watch.catch_up()
    assert not life.state.devices.are_classes_wanted


def test_an_amount_that_no_node_can_name_is_left_to_nodes() -> None:
    """A pod whose overhead alone asks for a resource has no container for a claim."""
    cluster = cluster_of(gang("a").of(1, cpu=1, gpu=1), GPU)
    Watch(cluster, ClusterState(lambda: None, reads_devices=True))
    assert not member_of(Life(cluster, Clock())).device_claims
