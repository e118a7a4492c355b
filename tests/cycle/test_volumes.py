"""Claims that wait for their pod are bound after the Reservation and before the first pod."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pytest

from tutti.kube import errors
from tutti.model.cluster import Reservation
from tutti.model.inter_pod import Requirement
from tutti.model.keys import NodeName
from tutti.model.volumes import (
    NO_PROVISIONER,
    Claim,
    ClaimKey,
    ClaimRef,
    NodeDrivers,
    Offer,
    StorageClass,
    Volume,
    VolumeRequest,
    attaching,
)
from tutti.strategies.ilp.strategy import IlpStrategy

from ..harness import builders
from ..harness.builders import NAMESPACE, gang, node, single
from ..harness.fakes import Clock, Crash, FakeCluster, Fault, Life
from . import scenarios

HOST = "kubernetes.io/hostname"
MODES = ("ReadWriteOnce",)
moments = pytest.mark.parametrize("is_committed", [False, True], ids=["before", "after"])


def host(name: str, cpu: int = 4) -> builders.NodeBuilder:
    """A node with its hostname."""
    return node(name, cpu=cpu).labelled(**{HOST: name})


@dataclass
class Controllers:
    """The PV controller, and a provisioner that fails for some nodes."""

    cluster: FakeCluster
    fails_on: set[str] = field(default_factory=set)
    hangs_on: set[str] = field(default_factory=set)
    failed: list[str] = field(default_factory=list)

    def __call__(self) -> None:
        """Do what there is to do."""
        volumes = [i.value for i in self.cluster.storage.get("storage.volumes", {}).values()]
        for item in list(self.cluster.storage.get("storage.claims", {}).values()):
            claim = item.value
            if claim.is_bound:
                continue
            if mine := [volume for volume in volumes if volume.is_for(claim)]:
                self._bind(claim, mine[0].name)
            elif claim.selected_node is not None and claim.selected_node not in self.hangs_on:
                self._provision(claim)

    def _bind(self, claim: Claim, volume: str) -> None:
        bound = replace(
            claim, volume=volume, is_bound=True, request=None, selected_node=None, version=""
        )
        self.cluster.put_storage("claims", bound)

    def _provision(self, claim: Claim) -> None:
        place = str(claim.selected_node)
        if place in self.fails_on:
            self.failed.append(place)
            self.cluster.put_storage("claims", replace(claim, selected_node=None))
            return
        name = f"pvc-{claim.key.name}"
        volume = local(name, place, storage_class=claim.storage_class)
        if claim.storage_class == "network":
            volume = replace(volume, affinity=None)  # every node reaches it
        self.cluster.put_storage("volumes", replace(volume, claim=ClaimRef(claim.key, claim.uid)))
        self._bind(claim, name)


def local(name: str, place: str, size: int = 10, storage_class: str = "local") -> Volume:
    """A volume of one node."""
    way = (Requirement(HOST, "In", (place,)),)
    return Volume(name, (way,), offer=Offer(storage_class, size, MODES))


def claim(name: str, size: int = 10, storage_class: str = "local") -> Claim:
    """A claim that waits for its pod."""
    request = VolumeRequest(storage_class, size, MODES)
    return Claim(ClaimKey(NAMESPACE, name), storage_class=storage_class, request=request)


def cluster_of(*parts: builders.NodeBuilder | builders.GangBuilder) -> FakeCluster:
    """A cluster with three classes."""
    cluster = FakeCluster()
    cluster.put_storage("classes", StorageClass("local", waits=True, provisioner=NO_PROVISIONER))
    for name in ("disk", "network"):
        storage_class = StorageClass(name, waits=True, provisioner="csi.example.com")
        cluster.put_storage("classes", storage_class)
    cluster.add(*parts)
    cluster.work = Controllers(cluster)
    return cluster


def claims_of(cluster: FakeCluster, storage_class: str, size: int = 10) -> FakeCluster:
    """The cluster, in which each pod without a node has a claim of its own name."""
    for pod in list(cluster.pods.values()):
        if pod.node is None:
            cluster.put_storage("claims", claim(pod.key.name, size, storage_class))
            cluster.change_pod(pod.key.name, claims=(pod.key.name,))
    return cluster


def static() -> FakeCluster:
    """A gang of three with a claim each; n3 has room and no volumes."""
    cluster = cluster_of(host("n1"), host("n2"), host("n3", cpu=40), gang("a").of(3, cpu=1))
    for name, place in (("pv1", "n1"), ("pv2", "n1"), ("pv3", "n2")):
        cluster.put_storage("volumes", local(name, place))
    return claims_of(cluster, "local")


def dynamic() -> FakeCluster:
    """A gang whose volumes are provisioned."""
    return claims_of(cluster_of(host("n1"), host("n2"), gang("a").of(3, cpu=2)), "disk")


def mixed() -> FakeCluster:
    """Two gangs, of which one uses local volumes, and a single pod."""
    cluster = cluster_of(
        host("n1"), host("n2"), gang("a").of(2, cpu=1), gang("b").of(2, cpu=1), single("s", cpu=1)
    )
    claims_of(cluster, "disk")
    for name in ("a-0", "a-1"):
        cluster.put_storage("claims", claim(name))
    for name, place in (("pv1", "n1"), ("pv2", "n2")):
        cluster.put_storage("volumes", local(name, place))
    return cluster


def sharing(cluster: FakeCluster, storage_class: str) -> FakeCluster:
    """The cluster, in which all pods without a node name one claim."""
    cluster.put_storage("claims", claim("data", storage_class=storage_class))
    for pod in list(cluster.pods.values()):
        if pod.node is None:
            cluster.change_pod(pod.key.name, claims=("data",))
    return cluster


def shared() -> FakeCluster:
    """Two gangs and a single pod on two nodes, which name one claim for a volume to be made."""
    pods = gang("a").of(3, cpu=2), gang("b").of(1, cpu=1), single("s", cpu=1)
    return sharing(cluster_of(host("n1"), host("n2"), *pods), "network")


def shared_on_one_node() -> FakeCluster:
    """A gang that has room on one node, from which alone its members reach the claim they share."""
    nodes = host("n1", cpu=3), host("n2"), host("n3")
    return sharing(cluster_of(*nodes, gang("a").of(3, cpu=1)), "disk")


SCENARIOS: Mapping[str, Callable[[], FakeCluster]] = {
    scenario.__name__: scenario for scenario in (static, dynamic, mixed, shared, shared_on_one_node)
}
for_each_scenario = pytest.mark.parametrize("name", SCENARIOS)


def bound_nodes(cluster: FakeCluster) -> dict[str, str | None]:
    """The node of each pod."""
    return {pod.key.name: pod.node for pod in cluster.pods.values()}


def assert_whole(cluster: FakeCluster) -> None:
    """Every pod is bound, every promise was kept, and no claim names a node any more."""
    scenarios.assert_promises(cluster)
    assert None not in bound_nodes(cluster).values()
    assert len(taken_volumes(cluster)) == len(cluster.storage["storage.claims"])


def taken_volumes(cluster: FakeCluster) -> set[str]:
    """The volumes of bound claims; each has one."""
    claims = [item.value for item in cluster.storage["storage.claims"].values()]
    taken = [one.volume for one in claims if one.is_bound]
    assert len(taken) == len(set(taken))
    return set(taken)


def failing_at(number: int, fault: Fault) -> Callable[[int, str], Fault | None]:
    """A fault at the call of that number."""
    return lambda at, _: fault if at == number else None


@for_each_scenario
async def test_claims_are_bound_before_the_first_pod(name: str) -> None:
    cluster = SCENARIOS[name]()
    await Life(cluster, Clock()).settle()
    assert_whole(cluster)
    writes = [call for call in cluster.calls if call in {"reserve", "bind_claim", "select_node"}]
    assert writes[0] == "reserve"


@for_each_scenario
@moments
async def test_a_crash_at_any_call_ends_as_an_unbroken_run_does(
    name: str, *, is_committed: bool
) -> None:
    whole = SCENARIOS[name]()
    await Life(whole, Clock()).settle()
    for number in range(1, len(whole.calls) + 1):
        cluster, clock = SCENARIOS[name](), Clock()
        cluster.fault = failing_at(number, Fault(Crash(), is_committed))
        with pytest.raises(Crash):
            await Life(cluster, clock).settle()
        await Life(cluster, clock).settle()
        assert_whole(cluster)


@for_each_scenario
@pytest.mark.parametrize(
    "what", [errors.Unavailable("away.", status=500), errors.Conflict("late.", status=409)]
)
async def test_a_call_that_fails_once_changes_nothing(name: str, what: errors.ApiError) -> None:
    whole = SCENARIOS[name]()
    await Life(whole, Clock()).settle()
    for number in range(1, len(whole.calls) + 1):
        cluster = SCENARIOS[name]()
        cluster.fault = failing_at(number, Fault(what))
        await Life(cluster, Clock()).settle()
        assert_whole(cluster)


async def test_a_provisioner_that_gives_up_releases_the_gang_which_starts_elsewhere() -> None:
    cluster, clock = dynamic(), Clock()
    controllers = Controllers(cluster, fails_on={"n1"})
    cluster.work = controllers
    life = Life(cluster, clock)
    for _ in range(30):
        await life.turn()
        clock.now += 40.0
    assert scenarios.half_bound(cluster) == []
    assert cluster.broken == []
    assert set(bound_nodes(cluster).values()) == {None}
    # After each failure Tutti waits longer.
    assert 3 < len(controllers.failed) < 30
    said = " ".join(str(event["message"]) for event in cluster.events.values())
    assert "the provisioner of class disk made no volume for claim a-" in said
    controllers.fails_on.clear()
    await life.settle()
    assert_whole(cluster)


async def test_a_volume_that_was_made_before_a_failure_stays_and_decides_the_next_node() -> None:
    cluster, clock = dynamic(), Clock()
    controllers = Controllers(cluster, hangs_on={"n2"})
    cluster.work = controllers
    life = Life(cluster, clock, IlpStrategy())
    for _ in range(6):
        await life.turn()
    made = taken_volumes(cluster)
    assert 0 < len(made) < 3
    clock.now += 601.0
    for _ in range(3):
        await life.turn()
    assert taken_volumes(cluster) == made
    assert "in time" in " ".join(str(event["message"]) for event in cluster.events.values())
    controllers.hangs_on.clear()
    await life.settle()
    assert_whole(cluster)
    assert made < taken_volumes(cluster)


async def test_a_claim_that_pods_share_is_provisioned_once_and_other_pods_wait_for_it() -> None:
    cluster, clock = shared(), Clock()
    controllers = Controllers(cluster, hangs_on={"n1", "n2"})
    cluster.work = controllers
    life = Life(cluster, clock)
    await life.turn()
    cluster.add(host("n3"), gang("late").of(1, cpu=1))
    cluster.change_pod("late-0", claims=("data",))
    for _ in range(3):
        await life.turn()
    assert set(bound_nodes(cluster).values()) == {None}
    said = " ".join(str(event["message"]) for event in cluster.events.values())
    assert "claim data is being bound for other pods that name it" in said
    controllers.hangs_on.clear()
    await life.settle()
    assert_whole(cluster)
    assert cluster.calls.count("select_node") == 1
    assert {"n1", "n2", "n3"} == set(bound_nodes(cluster).values())


async def test_the_selected_node_of_a_claim_that_gangs_share_goes_with_the_last_of_them() -> None:
    pods = gang("a").of(1, cpu=1), gang("b").of(1, cpu=1)
    cluster = sharing(cluster_of(host("n1"), *pods), "network")
    cluster.work = Controllers(cluster, hangs_on={"n1"})
    life = Life(cluster, Clock())
    for expected in ("n1", "n1", None):
        for _ in range(3):
            await life.turn()
        (item,) = cluster.storage["storage.claims"].values()
        assert item.value.selected_node == expected
        if cluster.groups:
            key = min(cluster.groups)
            cluster.delete_group(key.name)
            cluster.collect()


async def test_gangs_whose_shared_claim_nobody_provisions_are_released_together() -> None:
    cluster, clock = shared(), Clock()
    controllers = Controllers(cluster, hangs_on={"n1", "n2"})
    cluster.work = controllers
    life = Life(cluster, clock)
    for _ in range(3):
        await life.turn()
    reserved = set(cluster.reservations)
    clock.now += 601.0
    await life.turn()
    assert reserved.isdisjoint(cluster.reservations)
    # At once: the next leader would not know that Tutti has selected the node.
    (item,) = cluster.storage["storage.claims"].values()
    assert item.value.selected_node is None
    assert set(bound_nodes(cluster).values()) == {None}
    controllers.hangs_on.clear()
    await life.settle()
    assert_whole(cluster)


async def test_a_gang_goes_on_when_those_that_it_shared_a_claim_with_are_gone() -> None:
    pods = gang("a").of(1, cpu=4), gang("b").of(1, cpu=4)
    cluster = sharing(cluster_of(host("n1"), host("n2"), *pods), "network")
    controllers = Controllers(cluster, hangs_on={"n1", "n2"})
    cluster.work = controllers
    life = Life(cluster, Clock())
    await life.turn()
    (item,) = cluster.storage["storage.claims"].values()
    by_node = {entry.node: r.gang for r in cluster.reservations.values() for entry in r.entries}
    first = by_node.pop(item.value.selected_node)
    (other,) = by_node.values()
    cluster.delete_group(first.name)
    cluster.delete_pod(f"{first.name}-0")
    cluster.collect()
    for _ in range(2):
        await life.turn()
    assert [reservation.gang for reservation in cluster.reservations.values()] == [other]
    controllers.hangs_on.clear()
    await life.settle()
    assert set(bound_nodes(cluster)) == {f"{other.name}-0"}
    assert set(bound_nodes(cluster).values()) == set(by_node)
    assert "planning again" not in str(list(cluster.events.values()))


async def test_a_gang_waits_for_room_on_the_nodes_that_reach_the_volume_its_members_share() -> None:
    nodes = host("n1", cpu=2), host("n2", cpu=2)
    cluster = sharing(cluster_of(*nodes, gang("a").of(3, cpu=1)), "disk")
    life = Life(cluster, Clock())
    for _ in range(6):
        await life.turn()
    assert set(bound_nodes(cluster).values()) == {None}
    assert taken_volumes(cluster) == {"pvc-data"}
    (made,) = (item.value for item in cluster.storage["storage.volumes"].values())
    ((place,),) = (requirement.values for way in made.affinity for requirement in way)
    cluster.put_node(host(place, cpu=3).made)
    await life.settle()
    assert_whole(cluster)
    assert set(bound_nodes(cluster).values()) == {place}


async def test_the_selected_node_of_a_released_gang_is_removed() -> None:
    cluster, clock = dynamic(), Clock()
    cluster.work = Controllers(cluster, hangs_on={"n1", "n2"})
    life = Life(cluster, clock)
    for _ in range(4):
        await life.turn()
    selected = [i.value.selected_node for i in cluster.storage["storage.claims"].values()]
    assert None not in selected
    cluster.delete_group("a")
    cluster.collect()
    await life.turn()
    await life.turn()
    selected = [i.value.selected_node for i in cluster.storage["storage.claims"].values()]
    assert selected == [None, None, None]


async def test_a_volume_that_another_claim_took_is_left_to_it() -> None:
    cluster, clock = static(), Clock()
    other = ClaimRef(ClaimKey("etl", "other"), "u")

    def take(call: str) -> None:
        if call == "bind_claim" and cluster.stored("volumes", "pv1").claim is None:
            cluster.put_storage("volumes", replace(cluster.stored("volumes", "pv1"), claim=other))

    cluster.before = take
    life = Life(cluster, clock)
    await life.settle()
    assert cluster.broken == []
    assert set(bound_nodes(cluster).values()) == {None}
    assert cluster.stored("volumes", "pv1").claim == other
    cluster.before = lambda _: None
    cluster.put_storage("volumes", local("pv4", "n2"))
    await life.settle()
    assert cluster.broken == []
    assert None not in bound_nodes(cluster).values()
    assert "pv1" not in taken_volumes(cluster)


async def test_a_leader_that_wakes_up_late_starts_no_half_of_a_gang() -> None:
    """It writes the claim of its own Reservation, which the next leader has released."""
    cluster, clock = dynamic(), Clock()
    cluster.work = Controllers(cluster, hangs_on={"n1", "n2"})
    first = Life(cluster, clock)
    await first.turn()
    late = cluster.stored("claims", ClaimKey(NAMESPACE, "a-0"))
    second = Life(cluster, clock, identity="tutti-1")
    for _ in range(3):
        await second.turn()
    clock.now += 601.0
    await second.turn()
    with pytest.raises(errors.Conflict):
        await cluster.select_node(late, NodeName("n2"))
    # A claim that nobody has touched since takes the late write, and the gang follows it.
    fresh = cluster.stored("claims", ClaimKey(NAMESPACE, "a-0"))
    if fresh.selected_node is None:
        await cluster.select_node(fresh, NodeName("n2"))
    second.watch.catch_up()
    cluster.work = Controllers(cluster)
    await second.settle()
    assert_whole(cluster)


async def test_a_late_write_for_a_gang_that_was_released_is_taken_back() -> None:
    """The leader dies as it selects nodes; a write of it arrives after the next has released."""
    cluster, clock = dynamic(), Clock()
    cluster.work = Controllers(cluster, hangs_on={"n1", "n2"})
    first = Life(cluster, clock)
    cluster.fault = lambda _, call: Fault(Crash()) if call == "select_node" else None
    with pytest.raises(Crash):
        await first.settle()
    cluster.fault = lambda _number, _name: None
    key = ClaimKey(NAMESPACE, "a-0")
    late = cluster.stored("claims", key)
    (reservation,) = cluster.reservations.values()
    node = next(one.node for one in reservation.volumes if one.claim == "a-0")
    cluster.delete_pod("a-1")
    second = Life(cluster, clock)
    for _ in range(3):
        await second.turn()
    assert not cluster.reservations
    await cluster.select_node(late, node)
    for _ in range(2):
        await second.turn()
    assert cluster.stored("claims", key).selected_node is None


@pytest.mark.parametrize("storage_class", ["disk", "local"])
async def test_a_gang_that_is_made_again_takes_its_claims_over(storage_class: str) -> None:
    """Its Reservation is created before that of the gang that is gone has been deleted."""
    cluster, clock = cluster_of(host("n1"), host("n2"), gang("a").of(2, cpu=1)), Clock()
    cluster.work = lambda: None
    cluster.put_storage("volumes", local("pv1", "n1"))
    cluster.put_storage("volumes", local("pv2", "n2"))
    claims_of(cluster, storage_class)
    life = Life(cluster, clock)
    for _ in range(3):
        await life.turn()
    cluster.delete_group("a")
    for name in ("a-0", "a-1"):
        cluster.delete_pod(name)
    cluster.add(gang("b").of(2, cpu=1))
    for number in range(2):
        cluster.change_pod(f"b-{number}", claims=(f"a-{number}",))
    life.watch.catch_up()
    for _ in range(4):
        await life.turn()
    assert [reservation.gang.name for reservation in cluster.reservations.values()] == ["b"]
    assert cluster.calls.count("reserve") == 2
    said = " ".join(str(event["message"]) for event in cluster.events.values())
    assert "made no volume" not in said
    cluster.work = Controllers(cluster)
    await life.settle()
    assert_whole(cluster)


async def test_where_the_crd_has_no_volumes_no_pod_is_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, clock = static(), Clock()
    stores = FakeCluster.reserve

    async def reserve(of: FakeCluster, reservation: Reservation) -> Reservation:
        return await stores(of, replace(reservation, volumes=()))

    monkeypatch.setattr(FakeCluster, "reserve", reserve)
    life = Life(cluster, clock)
    for _ in range(6):
        await life.turn()
        clock.now += 2.0
    assert set(bound_nodes(cluster).values()) == {None}
    assert cluster.broken == []
    (group,) = cluster.groups.values()
    assert "has no field volumes" in str(group.status)


async def test_a_right_that_is_missing_is_said_and_nothing_is_bound() -> None:
    cluster, clock = static(), Clock()
    no = Fault(errors.Refused("persistentvolumes is forbidden", status=403))
    cluster.fault = lambda _, name: no if name == "bind_claim" else None
    life = Life(cluster, clock)
    for _ in range(6):
        await life.turn()
        clock.now += 40.0
    assert set(bound_nodes(cluster).values()) == {None}
    (group,) = cluster.groups.values()
    assert "persistentvolumes is forbidden" in str(group.status)
    cluster.fault = lambda _number, _name: None
    await life.settle()
    assert_whole(cluster)


async def test_a_tenant_whose_claims_overlap_keeps_no_older_gang_from_starting() -> None:
    """The volumes go to one gang after the other, and never to both."""
    cluster = cluster_of(host("n1"), gang("old").of(2, cpu=1), gang("young").of(2, cpu=1))
    for pod in list(cluster.pods.values()):
        is_old = pod.group == "old"
        cluster.change_pod(pod.key.name, claims=(pod.key.name,), created=1.0 if is_old else 2.0)
        made = claim(pod.key.name, 10 if is_old else 20)
        modes = MODES if is_old else ()
        request = VolumeRequest("local", 10 if is_old else 20, modes)
        cluster.put_storage("claims", replace(made, request=request))
    for i in range(2):
        cluster.put_storage("volumes", local(f"pv{i}", "n1", 20))
    await Life(cluster, Clock()).settle()
    assert taken_volumes(cluster) == {"pv0", "pv1"}
    nodes = bound_nodes(cluster)
    assert {name: nodes[name] for name in sorted(nodes)} == {
        "old-0": "n1",
        "old-1": "n1",
        "young-0": None,
        "young-1": None,
    }
    for i in range(2, 4):
        cluster.put_storage("volumes", local(f"pv{i}", "n1", 20))
    await Life(cluster, Clock()).settle()
    assert set(bound_nodes(cluster).values()) == {"n1"}
    assert taken_volumes(cluster) == {f"pv{i}" for i in range(4)}


# Claims for one pod (ReadWriteOncePod).


def shares(cluster: FakeCluster, *pods: str, of: str = "data", is_bound: bool = True) -> None:
    """Let these pods name one claim for one pod."""
    made = replace(claim(of, storage_class="disk"), for_one_pod=True)
    if is_bound:
        cluster.put_storage("volumes", Volume(f"pv-{of}", claim=ClaimRef(made.key, made.uid)))
        made = replace(made, volume=f"pv-{of}", is_bound=True, request=None)
    cluster.put_storage("claims", made)
    for name in pods:
        cluster.change_pod(name, claims=(of,))


def ran(cluster: FakeCluster) -> set[str]:
    """The pods that have a node."""
    return {name for name, at in bound_nodes(cluster).items() if at is not None}


def told(cluster: FakeCluster, name: str) -> tuple[str, str]:
    """Why a gang waits."""
    group = next(group for key, group in cluster.groups.items() if key.name == name)
    line = next(line for line in group.status["conditions"] if line["type"] == "Reserved")
    return line["reason"], line["message"]


@pytest.mark.parametrize("is_bound", [True, False], ids=["with a volume", "without a volume"])
async def test_of_the_gangs_that_share_a_claim_for_one_pod_one_starts_after_the_other(
    *, is_bound: bool
) -> None:
    first, second = gang("a").of(2, cpu=1), gang("b").of(2, cpu=1).priority(1)
    cluster = cluster_of(host("n1"), host("n2"), first, second)
    shares(cluster, "a-0", "b-1", is_bound=is_bound)
    life = Life(cluster, Clock(), IlpStrategy())
    await life.settle()
    scenarios.assert_promises(cluster)
    assert ran(cluster) == {"b-0", "b-1"}
    at = bound_nodes(cluster)["b-1"]
    sentence = f"claim data is for one pod (ReadWriteOncePod), and pod b-1 on node {at} has it"
    assert told(cluster, "a") == ("WaitingForVolumes", f"1 pod waits for volumes: {sentence}")
    cluster.delete_pod("b-1")
    await life.settle()
    assert ran(cluster) == {"b-0", "a-0", "a-1"}


async def test_a_gang_that_needs_two_pods_with_one_claim_for_one_pod_says_so() -> None:
    cluster = cluster_of(host("n1"), host("n2"), gang("a").of(3, cpu=1), gang("b").of(1, cpu=1))
    shares(cluster, "a-0", "a-2")
    await Life(cluster, Clock(), IlpStrategy()).settle()
    assert ran(cluster) == {"b-0"}
    assert told(cluster, "a") == (
        "WaitingForVolumes",
        (
            "3 members must start together, but 2 name claim data, which one pod at a time may use "
            "(ReadWriteOncePod): give each pod a claim of its own, or all of them one with "
            "ReadWriteMany"
        ),
    )


async def test_a_gang_that_needs_one_pod_with_a_claim_for_one_pod_starts_with_one() -> None:
    cluster = cluster_of(host("n1"), host("n2"), gang("a").of(3, cpu=1).needing(2))
    shares(cluster, "a-0", "a-2")
    await Life(cluster, Clock(), IlpStrategy()).settle()
    scenarios.assert_promises(cluster)
    assert len(ran(cluster)) == 2
    assert "a-1" in ran(cluster)


async def test_a_claim_for_one_pod_that_a_reservation_holds_is_for_no_other_pod() -> None:
    """The first gang waits for its volume, with a Reservation; the other has room."""
    cluster = cluster_of(host("n1"), host("n2"), gang("a").of(1, cpu=1))
    cluster.work = Controllers(cluster, hangs_on={"n1", "n2"})
    shares(cluster, "a-0", is_bound=False)
    life = Life(cluster, Clock(), IlpStrategy())
    for _ in range(3):
        await life.turn()
    assert [reservation.gang.name for reservation in cluster.reservations.values()] == ["a"]
    cluster.add(gang("b").of(1, cpu=1))
    cluster.change_pod("b-0", claims=("data",))
    for _ in range(3):
        await life.turn()
    assert [reservation.gang.name for reservation in cluster.reservations.values()] == ["a"]
    why, message = told(cluster, "b")
    assert why == "WaitingForVolumes"  # no new node would help
    assert "excluded by claim data, which one pod at a time may use (ReadWriteOncePod)" in message
    cluster.work = Controllers(cluster)
    await life.settle()
    assert ran(cluster) == {"a-0"}
    scenarios.assert_promises(cluster)


async def test_a_volume_that_pods_share_counts_once_on_a_node_once_they_are_there() -> None:
    cluster = cluster_of(host("n1", 40), gang("a").of(2, cpu=1), gang("b").of(1, cpu=1))
    cluster.put_storage("nodes", NodeDrivers(NodeName("n1"), (("csi.example.com", 2),)))
    for name in ("all", "own"):
        made = replace(claim(name), volume=f"pv-{name}", is_bound=True, request=None)
        cluster.put_storage("claims", made)
        volume = Volume(f"pv-{name}", driver="csi.example.com", handle=name)
        cluster.put_storage("volumes", replace(volume, claim=ClaimRef(made.key, made.uid)))
    for name in ("a-0", "a-1"):
        cluster.change_pod(name, claims=("all",))
    cluster.change_pod("b-0", claims=("own",))
    life = Life(cluster, Clock(), IlpStrategy())
    await life.settle()
    scenarios.assert_promises(cluster)
    assert ran(cluster) == {"a-0", "a-1", "b-0"}
    (at,) = life.state.snapshot(0.0).nodes
    assert at.used[attaching("csi.example.com")] == 2
