"""What claims for devices require of pods and nodes, and which pods wait for what."""

from dataclasses import replace
from typing import Any

import pytest

from tests.harness.builders import gang, node
from tests.harness.fake_devices import DRIVER, claim, device, device_class, gpus, request
from tests.harness.fakes import STREAMS, Clock, Crash, FakeCluster, Fault, Life, Watch, store_of
from tutti.filters.devices import limits, rows, selectors
from tutti.kube.list_watch import ObjectList
from tutti.model.cluster import Member
from tutti.model.devices.claims import (
    MOST_CONSUMERS,
    PodClaim,
    counting_sets,
    is_counting_sets,
    is_stand_in,
    selected_by,
)
from tutti.model.devices.inventory import Counter, DeviceClass, DeviceTaint, ResourceSlice
from tutti.model.keys import NodeName, Uid
from tutti.state.cluster_state import ClusterState
from tutti.state.devices import admin_rows, bundle_rows, claim_requirements
from tutti.state.devices.index import TURNED_OFF, UNLISTED

OWN = (PodClaim("gpu", "c"),)
RESULT = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}


def cluster_of(*claims: dict[str, Any], piece: ResourceSlice | None = None) -> FakeCluster:
    cluster = FakeCluster()
    cluster.add(
        node("n1", cpu=8), node("n2", cpu=8), gang("a").of(1, cpu=1).each(device_claims=OWN)
    )
    cluster.put_devices(piece or gpus("n1", 2), device_class(), *claims)
    return cluster


def shown(cluster: FakeCluster) -> tuple[Life, Member]:
    life = Life(cluster, Clock())
    return life, life.state.snapshot(0.0).gangs[0].members[0]


def allocated(*consumers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    raw = claim("c")
    raw["metadata"]["finalizers"] = ["x/y"]
    raw["status"] = {
        "allocation": {"devices": {"results": [RESULT]}, **fields},
        "reservedFor": [*consumers],
    }
    return raw


def test_a_claim_is_a_count_of_devices_and_nodes_have_free_ones() -> None:
    life, member = shown(cluster_of(claim("c", request(count=2))))
    assert member.shape.requests["device:gpu"] == 2
    nodes = life.state.snapshot(0.0).nodes
    assert [(n.allocatable["device:gpu"], n.used["device:gpu"]) for n in nodes] == [(2, 0), (0, 0)]
    one = life.state.node(nodes[0].name)
    assert one is not None
    assert one.allocatable["device:gpu"] == 2


def test_devices_that_come_and_go_are_counted() -> None:
    cluster = cluster_of(claim("c"))
    life, _ = shown(cluster)

    def free() -> list[int]:
        life.watch.catch_up()
        return [
            n.allocatable["device:gpu"] - n.used["device:gpu"]
            for n in life.state.snapshot(0.0).nodes
        ]

    assert free() == [2, 0]
    cluster.put_devices(gpus("n2", 3))
    assert free() == [2, 3]
    other = allocated()
    other["metadata"] = {**other["metadata"], "name": "other", "uid": "other"}
    cluster.put_devices(other)
    assert free() == [1, 3]
    cluster.drop_devices("devices.slices", "n1-slice")
    assert free() == [0, 3]
    cluster.put_devices(gpus("n1", 2))
    assert free() == [1, 3]
    cluster.put_devices(device_class("gpu", "false"))
    assert free() == [0, 0]
    cluster.drop_devices("devices.classes", "gpu")
    assert free() == [0, 0]


def test_a_device_stays_taken_whose_claim_has_parameters_that_are_nested_deeply() -> None:
    deep: list[Any] = []
    for _ in range(150):
        deep = [deep]
    other = allocated({"resource": "pods", "name": "other", "uid": "other"})
    other["metadata"] = {**other["metadata"], "name": "other", "uid": "other"}
    other["spec"]["devices"]["config"] = [{"opaque": {"driver": DRIVER, "parameters": {"a": deep}}}]
    cluster = cluster_of(claim("c"), other)
    life, member = shown(cluster)
    assert member.shape.requests["device:gpu"] == 1
    n1 = life.state.snapshot(0.0).nodes[0]
    assert (n1.allocatable["device:gpu"], n1.used["device:gpu"]) == (2, 1)
    own = claim("c")
    own["spec"]["devices"]["config"] = other["spec"]["devices"]["config"]
    _, member = shown(cluster_of(own))
    fields = ("spec.resourceClaims (devices.config[] (nested too deeply))",)
    assert member.unsupported_fields == fields


def test_no_device_is_read_before_a_pod_names_a_claim() -> None:
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=8), gang("a").of(1, cpu=1))
    cluster.put_devices(gpus("n1", 2), device_class(), claim("c"))
    life = Life(cluster, Clock())
    assert not life.state.devices.are_wanted
    assert not life.state.snapshot(0.0).devices.is_read


def test_without_the_setting_pods_with_claims_are_not_modelled() -> None:
    state = ClusterState(lambda: None)
    Watch(cluster_of(claim("c")), state)
    member = state.snapshot(0.0).gangs[0].members[0]
    assert member.unsupported_fields == (TURNED_OFF,)
    assert not state.devices.are_wanted


def test_until_all_is_listed_pods_with_claims_wait() -> None:
    cluster = cluster_of(claim("c"))
    state = ClusterState(lambda: None, reads_devices=True)
    for name in STREAMS:
        if not name.startswith("devices."):
            store = store_of(state, name)
            store.replace(ObjectList(cluster._listed(name)), cluster.version, store.began())
    assert not state.devices.unevaluated()
    assert state.snapshot(0.0).gangs[0].members[0].device_problems == (UNLISTED,)
    assert state.devices.are_wanted
    cluster.list_into(state)
    ((expression, devices),) = state.devices.unevaluated()
    assert len(devices) == 2
    state.devices.evaluated(selectors.evaluate([(expression, devices)], 60.0))
    assert state.snapshot(0.0).gangs[0].members[0].device_problems == ()
    cluster.put_devices(gpus("n2", 1))
    Watch(cluster, state)
    ((expression, devices),) = state.devices.unevaluated()
    assert len(devices) == 1  # only what changed


def test_claims_are_taken_in_part_by_part_whatever_changes_in_between() -> None:
    cluster = FakeCluster()
    cluster.add(
        node("n1", cpu=8),
        *(gang(name).of(1, cpu=1).each(device_claims=(PodClaim("gpu", name),)) for name in "abc"),
    )
    cluster.put_devices(gpus("n1", 2), device_class(), *map(claim, "abc"))
    state = ClusterState(lambda: None, reads_devices=True)
    watch = Watch(cluster, state)
    parts = state.devices.refresh_in_parts(1)
    next(parts)
    next(parts)
    cluster.drop_devices("devices.claims", "b")
    cluster.put_devices(gpus("n1", 3))
    cluster.delete_pod("c-0")
    watch.catch_up()
    assert sum(1 for _ in parts) == 1
    assert state.snapshot(0.0) == Life(cluster, Clock()).state.snapshot(0.0)
    assert sum(1 for _ in state.devices.refresh_in_parts(1)) == 0


def three_claims() -> FakeCluster:
    """Three pods with a claim each, and a selector of eight characters for each claim."""
    cluster = FakeCluster()
    pods = (gang(of).of(1, cpu=1).each(device_claims=(PodClaim("gpu", of),)) for of in "abc")
    cluster.add(node("n1", cpu=8), *pods)
    cluster.put_devices(gpus("n1", 3), device_class(), odd_class())
    for i, name in enumerate("abc"):
        cluster.put_devices(claim(name, request("gpu", "odd", 1, f"1{i} >= 10")))
    return cluster


def odd_class() -> DeviceClass:
    return DeviceClass("odd")


def problems_of(state: ClusterState) -> list[tuple[str, ...]]:
    """Why the pods wait for their devices."""
    return [of.members[0].device_problems for of in state.snapshot(0.0).gangs if of.members]


def evaluate(state: ClusterState, seconds: float = 60.0) -> list[tuple[str, int]]:
    """Do what a cycle does before its Snapshot; answers what a thread gets."""
    wanted = state.devices.unevaluated()
    if wanted:
        state.devices.evaluated(selectors.evaluate(wanted, seconds))
    return sorted((expression, len(devices)) for expression, devices in wanted)


NUMBERS = ("10 >= 10", "11 >= 10", "12 >= 10")


def test_claims_with_selectors_that_are_not_evaluated_wait_for_the_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selectors, "_selectors", {})
    woken: list[int] = []
    state = ClusterState(lambda: woken.append(1), reads_devices=True)
    assert evaluate(state) == []
    cluster = three_claims()
    Watch(cluster, state)
    waits = [(f"claim {name} has selectors that are not evaluated yet",) for name in "abc"]
    assert problems_of(state) == waits
    woken.clear()
    selectors.evaluate([(text, state.devices._free.all_devices()) for text in NUMBERS[:2]], 60.0)
    assert evaluate(state, 0.0) == [(text, 3) for text in NUMBERS]
    assert problems_of(state) == [(), (), waits[2]]
    assert woken
    assert [len(of.expressions) for of in state.snapshot(0.0).devices.selections] == [1, 1]
    assert evaluate(state) == [(NUMBERS[0], 0), (NUMBERS[1], 0), (NUMBERS[2], 3)]
    assert problems_of(state) == [(), (), ()]
    assert state.snapshot(0.0) == Life(cluster, Clock()).state.snapshot(0.0)
    woken.clear()
    assert evaluate(state) == []
    assert problems_of(state) == [(), (), ()]
    assert not woken


def test_why_selectors_are_not_evaluated_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "_selectors", {})
    state = ClusterState(lambda: None, reads_devices=True)
    Watch(three_claims(), state)
    with monkeypatch.context() as patched:
        patched.setattr(selectors, "_engines", [])
        patched.setattr(selectors, "START_SECONDS", 0.0)
        patched.setattr(selectors, "_PROGRAM", "raise SystemExit")
        evaluate(state)
    why = "no process starts that evaluates them (it ended at once)"
    waits = f"has selectors that are not evaluated yet: {why}"
    assert problems_of(state) == [(f"claim {name} {waits}",) for name in "abc"]
    evaluate(state)
    assert problems_of(state) == [(), (), ()]


def test_devices_that_come_while_others_are_evaluated_are_evaluated_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    of_engine = selectors._asked

    def asking(expression: str, *others: Any) -> Any:
        asked.append(expression)
        return of_engine(expression, *others)

    monkeypatch.setattr(selectors, "_asked", asking)
    monkeypatch.setattr(selectors, "_selectors", {})
    woken: list[int] = []
    state = ClusterState(lambda: woken.append(1), reads_devices=True)
    cluster = three_claims()
    reading = f'device.attributes["{DRIVER}"].?index.orValue(0) < 9'
    cluster.put_devices(claim("a", request("gpu", "odd", 1, reading)))
    watch = Watch(cluster, state)
    assert len(evaluate(state)) == 3
    assert problems_of(state) == [(), (), ()]
    cluster.put_devices(gpus("n2", 5, index=1))
    watch.catch_up()
    asked.clear()
    woken.clear()
    assert problems_of(state) == [("claim a has selectors that are not evaluated yet",), (), ()]
    assert woken
    assert not asked
    assert evaluate(state) == [(NUMBERS[1], 5), (NUMBERS[2], 5), (reading, 8)]
    assert problems_of(state) == [(), (), ()]
    assert {*asked} == {reading}
    asked.clear()
    cluster.put_devices(gpus("n2", 5, index=2))
    watch.catch_up()
    wanted = state.devices.unevaluated()
    cluster.put_devices(gpus("n4", 5, index=4))
    watch.catch_up()
    waits = [("claim a has selectors that are not evaluated yet",), (), ()]
    assert problems_of(state) == waits
    state.devices.evaluated(selectors.evaluate(wanted, 60.0))
    asked.clear()
    assert problems_of(state) == waits
    assert not asked
    assert len(evaluate(state)) == 3
    assert problems_of(state) == [(), (), ()]
    asked.clear()
    cluster.put_devices(gpus("n3", 5, index=1))
    watch.catch_up()
    assert evaluate(state) == [(NUMBERS[1], 5), (NUMBERS[2], 5), (reading, 5)]
    assert not asked


def test_devices_that_come_while_no_claim_waits_are_evaluated_for_the_next_claim(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selectors, "_selectors", {})
    state = ClusterState(lambda: None, reads_devices=True)
    cluster = three_claims()
    reading = f'device.attributes["{DRIVER}"].?index.orValue(0) < 9'
    for name in "abc":
        cluster.put_devices(claim(name, request("gpu", "odd", 1, reading)))
    watch = Watch(cluster, state)
    assert evaluate(state) == [(reading, 3)]
    assert problems_of(state) == [(), (), ()]
    for name in "abc":
        cluster.delete_pod(f"{name}-0")
    cluster.put_devices(gpus("n2", 5, index=1))
    watch.catch_up()
    assert evaluate(state) == []
    assert problems_of(state) == []
    cluster.add(gang("d").of(1, cpu=1).each(device_claims=(PodClaim("gpu", "a"),)))
    watch.catch_up()
    monkeypatch.setattr(selectors, "_asked", pytest.fail)
    assert problems_of(state) == [("claim a has selectors that are not evaluated yet",)]
    monkeypatch.undo()
    assert [(text, len(devices)) for text, devices in state.devices.unevaluated()] == [(reading, 8)]


def test_the_first_expression_that_was_left_comes_first_however_many_come_before_it() -> None:
    state = ClusterState(lambda: None, reads_devices=True)
    Watch(three_claims(), state)
    assert [text for text, _ in state.devices.unevaluated()] == [*NUMBERS]
    state.devices.evaluated(selectors.Evaluated({NUMBERS[0]: ""}, first_left=NUMBERS[1]))
    in_order = [NUMBERS[1], NUMBERS[0], NUMBERS[2]]
    assert [text for text, _ in state.devices.unevaluated()] == in_order


def tied(count: int) -> dict[str, Any]:
    """A claim for so many devices with one value."""
    made = claim("c", request(count=count))
    made["spec"]["devices"]["constraints"] = [{"matchAttribute": "x.y/z"}]
    return made


@pytest.mark.parametrize(
    "own",
    [tied(10**9), claim("c", request(count=10**9, adminAccess=True))],
    ids=["constraint", "admin"],
)
def test_a_claim_for_too_many_devices_takes_no_time(own: dict[str, Any]) -> None:
    """Nobody looks for a billion devices."""
    _, member = shown(cluster_of(own))
    assert member.device_problems == (
        "claim c requests 1000000000 devices, and a claim can have 32",
    )


@pytest.mark.parametrize(
    ("own", "problem"),
    [
        (None, "claim c does not exist"),
        (claim("c", request(of="tpu")), "claim c names device class tpu, which does not exist"),
        (claim("c", request(count=33)), "claim c requests 33 devices, and a claim can have 32"),
        (
            allocated(*({"resource": "pods", "uid": f"{i}"} for i in range(MOST_CONSUMERS))),
            f"claim c is in use by {MOST_CONSUMERS} pods",
        ),
    ],
)
def test_problems_of_a_claim_are_named(own: dict[str, Any] | None, problem: str) -> None:
    _, member = shown(cluster_of(*([own] if own else [])))
    assert member.device_problems == (problem,)


def test_more_pods_than_the_api_allows_cannot_share_a_claim(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(claim_requirements, "MOST_CONSUMERS", 0)
    _, member = shown(cluster_of(claim("c")))
    assert member.device_problems == ("claim c is named by 1 pods, and 0 may share it",)


async def test_a_pod_waits_while_a_reservation_gives_its_claim_to_another() -> None:
    cluster = cluster_of(claim("c"))
    cluster.fault = lambda _at, name: Fault(Crash()) if name == "protect_claim" else None
    with pytest.raises(Crash):
        await Life(cluster, Clock()).settle()
    cluster.fault = lambda _at, _name: None
    *_, late = gang("a").of(2, cpu=1).each(device_claims=OWN).made.members
    cluster.add_pod(late)
    late = Life(cluster, Clock()).state.snapshot(0.0).gangs[0].members[1]
    said = "claim c is reserved for other pods, and does not have its devices yet"
    assert late.device_problems == (said,)


def test_the_first_pod_requests_the_devices_of_a_claim_and_the_others_follow() -> None:
    cluster = cluster_of(claim("c"))
    cluster.change_pod("a-0", gates=("wait",))
    for late in gang("a").of(3, cpu=1).each(device_claims=OWN).made.members[1:]:
        cluster.add_pod(late)
    members = Life(cluster, Clock()).state.snapshot(0.0).gangs[0].members
    assert [member.shape.requests["device:gpu"] for member in members] == [0, 1, 0]
    assert [("device:c", "") in member.labels for member in members] == [False, True, False]
    for member in (members[0], members[2]):
        (term,) = member.shape.rules.affinity
        assert (term.topology, term.peers.namespaces) == ("kubernetes.io/hostname", ("ml",))


def test_a_claim_that_terminates_has_a_problem() -> None:
    cluster = cluster_of(allocated())
    cluster.delete_claim("c")
    assert shown(cluster)[1].device_problems == ("claim c is being deleted",)


SHARED = replace(
    gpus("n1", 1),
    devices=(replace(gpus("n1", 1).devices[0], counters=(Counter("set", "cores", "3"),)),),
    counters=(Counter("set", "cores", "7"),),
)
ODD = replace(
    gpus("n1", 1), devices=(replace(gpus("n1", 1).devices[0], unsupported=("bindsToNode",)),)
)
EITHER = {
    "name": "gpu",
    "firstAvailable": [{"name": name, "deviceClassName": "gpu"} for name in "ab"],
}


@pytest.mark.parametrize(
    ("own", "piece", "field"),
    [
        (
            claim("c", request(adminAccess=True), request("other")),
            None,
            "devices.requests[].exactly.adminAccess beside requests without it",
        ),
        (
            claim("c", request(adminAccess=True)),
            SHARED,
            "devices[].consumesCounters and adminAccess",
        ),
        (
            claim("c", request(adminAccess=True, allocationMode="All")),
            ODD,
            "devices[].bindsToNode",
        ),
        (
            claim("c", request(allocationMode="All")),
            SHARED,
            "devices[].consumesCounters and allocationMode: All",
        ),
        (claim("c", EITHER), SHARED, "devices[].consumesCounters and firstAvailable"),
        (
            claim("c", request("gpu", "gpu", 1, 'ip("::1").family() == 6')),
            None,
            "the CEL function ip",
        ),
        (
            claim("c"),
            ODD,
            "devices[].bindsToNode",
        ),
        (
            allocated(
                nodeSelector={
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
                    ]
                }
            ),
            None,
            "allocated, with a node selector",
        ),
    ],
)
def test_what_is_not_modelled_is_named(
    own: dict[str, Any], piece: ResourceSlice | None, field: str
) -> None:
    _, member = shown(cluster_of(own, piece=piece))
    assert member.unsupported_fields == (f"spec.resourceClaims ({field})",)
    assert "device:gpu" not in member.shape.requests.names


WATCHED = "device:sets:gpu with adminAccess"


def test_nodes_whose_devices_others_have_are_for_claims_for_admin_access() -> None:
    taken = allocated()
    taken["metadata"] = {**taken["metadata"], "name": "other"}
    cluster = cluster_of(claim("c", request(adminAccess=True)), taken, piece=gpus("n1", 1))
    life, member = shown(cluster)
    assert not member.unsupported_fields
    assert member.shape.requests[WATCHED] == 1
    free = {n.name: n.allocatable[WATCHED] for n in life.state.snapshot(0.0).nodes}
    assert free == {"n1": admin_rows.ENOUGH, "n2": 0}
    cluster.put_devices(gpus("n1", 0))
    life.watch.catch_up()
    free = {n.name: n.allocatable[WATCHED] for n in life.state.snapshot(0.0).nodes}
    assert free == {"n1": 0, "n2": 0}


def test_admin_access_beside_other_claims_of_a_pod_is_not_modelled() -> None:
    cluster = cluster_of(claim("c", request(adminAccess=True)), claim("d"))
    cluster.add(gang("b").of(1, cpu=1).each(device_claims=(*OWN, PodClaim("more", "d"))))
    life, _ = shown(cluster)
    (member,) = life.state.snapshot(0.0).gangs[1].members
    assert member.unsupported_fields == (
        "spec.resourceClaims (adminAccess beside claims without it)",
        "spec.resourceClaims (c, which pods of several gangs that wait share)",
    )


def test_too_many_claims_for_admin_access_are_not_modelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admin_rows, "MOST_ROWS", 0)
    _, member = shown(cluster_of(claim("c", request(adminAccess=True))))
    assert member.unsupported_fields == (
        "spec.resourceClaims (adminAccess, asked for in more than 0 ways)",
    )


async def test_a_reservation_for_admin_access_holds_no_device() -> None:
    """Whichever is seen first: the claim or the Reservation."""
    cluster = cluster_of(claim("c", request(adminAccess=True)), piece=gpus("n1", 1))
    cluster.fault = lambda _at, name: Fault(Crash()) if name == "allocate" else None
    with pytest.raises(Crash):
        await Life(cluster, Clock()).settle()
    cluster.fault = lambda _at, _name: None
    (reservation,) = cluster.reservations.values()
    assert [r.device.name for r in reservation.entries[0].claims[0].results] == ["gpu-0"]
    cluster.put_devices(claim("d"))
    cluster.add(gang("b").of(1, cpu=1).each(device_claims=(PodClaim("gpu", "d"),)))
    life = Life(cluster, Clock())
    assert [n.used["device:gpu"] for n in life.state.snapshot(0.0).nodes] == [0, 0]
    cluster.put_devices(gpus("n1", 0))
    life = Life(cluster, Clock())
    own = life.state.snapshot(0.0).gangs[0].members[0]
    assert own.device_problems == (
        "device gpu.example.com/n1/gpu-0 of claim c is gone or in use by now",
    )


async def test_devices_of_a_claim_are_held_as_long_as_one_reservation_has_them() -> None:
    """Pods of another gang have taken the claim over from pods that are gone."""
    cluster = cluster_of(claim("c"))
    cluster.fault = lambda _at, name: Fault(Crash()) if name == "allocate" else None
    with pytest.raises(Crash):
        await Life(cluster, Clock()).settle()
    (first,) = cluster.reservations.values()
    cluster.put_devices(claim("d"))
    cluster.add(gang("b").of(1, cpu=1).each(device_claims=(PodClaim("gpu", "d"),)))
    cluster.delete_pod("a-0")
    life = Life(cluster, Clock())
    entries = tuple(replace(entry, uid=Uid("new")) for entry in first.entries)
    second = replace(
        first, uid=Uid("other"), self_uid=Uid("second"), version="1000000", entries=entries
    )
    life.state.reservations.put(second)

    def held() -> int:
        return sum(n.used["device:gpu"] for n in life.state.snapshot(0.0).nodes)

    assert held() == 1
    life.state.reservations.drop(first)
    assert held() == 1
    life.state.reservations.drop(second)
    assert held() == 0


def test_a_claim_for_all_devices_takes_as_many_of_each_node_with_stand_ins() -> None:
    cluster = cluster_of(claim("c", request(allocationMode="All")), claim("d"))
    cluster.put_devices(gpus("n2", 5))
    more = gang("b").of(1, cpu=1).each(device_claims=(PodClaim("gpu", "d"),))
    cluster.add(more)
    life, member = shown(cluster)
    snapshot = life.state.snapshot(0.0)
    every, one = "device:all of gpu", "device:gpu"
    assert (member.shape.requests[every], member.shape.requests[one]) == (5, 0)
    assert [n.allocatable[every] for n in snapshot.nodes] == [5, 5]
    assert [n.allocatable[one] for n in snapshot.nodes] == [2, 5]
    stand_ins = [[d.id for d in here.free if is_stand_in(d.id)] for here in snapshot.devices.nodes]
    assert list(map(len, stand_ins)) == [3, 0]
    cluster.put_devices(gpus("n2", 1))
    life.watch.catch_up()
    (now,) = life.state.snapshot(0.0).gangs[0].members
    assert now.shape.requests[every] == 2


@pytest.mark.parametrize(
    "piece",
    [
        replace(gpus("n1", 2), slices=2),  # its pool is incomplete
        gpus("n1", 33),  # more than a claim can have
        replace(gpus("n1", 1), devices=(device("g", "n1", (DeviceTaint("k", "", "NoExecute"),)),)),
        gpus("n1", 0),
    ],
)
def test_a_node_of_which_not_all_devices_can_be_had_offers_none_of_them(
    piece: ResourceSlice,
) -> None:
    cluster = cluster_of(claim("c", request(allocationMode="All")), piece=piece)
    life, member = shown(cluster)
    assert member.shape.requests["device:all of gpu"] == 1
    assert life.state.snapshot(0.0).nodes[0].allocatable["device:all of gpu"] == 0
    cluster.put_devices(gpus("n1", 3))
    life.watch.catch_up()
    assert life.state.snapshot(0.0).nodes[0].allocatable["device:all of gpu"] == 3


def test_all_devices_beside_others_may_be_too_many() -> None:
    own = claim("c", request("a", allocationMode="All"), request("b", count=31))
    _, member = shown(cluster_of(own))
    said = "allocationMode: All beside other requests, for more than 32 devices"
    assert member.unsupported_fields == (f"spec.resourceClaims ({said})",)


def test_too_many_overlaps_are_not_modelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST_ROWS", 0)
    _, member = shown(cluster_of(claim("c")))
    assert member.unsupported_fields == (
        "spec.resourceClaims (too many selectors whose devices overlap)",
    )


def test_an_allocated_claim_limits_the_nodes_of_its_pods() -> None:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
    _, member = shown(cluster_of(allocated(nodeSelector={"nodeSelectorTerms": terms})))
    (term,) = member.shape.required or ()
    assert term.fields[0].values == ("n1",)
    assert member.shape.requests["device:gpu"] == 0
    _, member = shown(cluster_of(allocated()))
    assert member.shape.required is None


def numbered(node: str, *numa: int) -> ResourceSlice:
    """A slice of devices in these NUMA nodes."""
    devices = tuple(device(f"gpu-{i}", node, (), numa=n) for i, n in enumerate(numa))
    return ResourceSlice(f"{node}-slice", DRIVER, node, node=NodeName(node), devices=devices)


def pairs(name: str = "c", count: int = 2) -> dict[str, Any]:
    """A claim for so many devices of one NUMA node."""
    return claim(name, request(count=count), constraints=[{"matchAttribute": f"{DRIVER}/numa"}])


def sets(life: Life) -> dict[str, list[int]]:
    """For each resource that counts sets of devices, how many each node has left."""
    nodes = life.state.snapshot(0.0).nodes
    names = {name for of in nodes for name in of.allocatable.names if is_counting_sets(name)}
    return {
        selected_by(name): [of.allocatable[name] - of.used[name] for of in nodes] for name in names
    }


def test_devices_with_one_value_are_counted_as_sets() -> None:
    cluster = cluster_of(pairs(), piece=numbered("n1", 0, 0, 0, 1, 1, 1))
    life, member = shown(cluster)
    ((name, left),) = sets(life).items()
    assert (name.startswith("2 gpu with one numa#"), left) == (True, [2, 0])
    assert [member.shape.requests[n] for n in (counting_sets(name), "device:gpu")] == [1, 2]
    other = allocated()
    other["metadata"] = {**other["metadata"], "name": "other", "uid": "other"}
    other["status"]["allocation"]["devices"]["results"] = [
        {**RESULT, "device": f"gpu-{i}"} for i in (0, 1)
    ]
    cluster.put_devices(other)
    life.watch.catch_up()
    assert sets(life) == {name: [1, 0]}
    cluster.put_devices(numbered("n2", 4, 4))
    life.watch.catch_up()
    assert sets(life) == {name: [1, 1]}


def test_a_limit_on_two_sizes_is_a_resource_where_it_matters() -> None:
    cluster = cluster_of(pairs(), pairs("d", 3), piece=numbered("n1", *[0] * 4, *[1] * 4))
    cluster.put_devices(numbered("n2", 5, 5, 5, 5))
    cluster.add(gang("b").of(1, cpu=1).each(device_claims=(PodClaim("gpu", "d"),)))
    life, _ = shown(cluster)
    (both,) = (name for name in sets(life) if "|" in name)
    assert sets(life)[both][0] == 4
    members = [of.members[0] for of in life.state.snapshot(0.0).gangs]
    assert [member.shape.requests[counting_sets(both)] for member in members] == [1, 2]


def test_constraints_that_no_limits_describe_are_not_modelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "MOST_NUMBERS", 1)
    limits.limits.cache_clear()
    _, member = shown(cluster_of(pairs(), piece=numbered("n1", 0, 0, 1, 1)))
    limits.limits.cache_clear()
    (said,) = member.unsupported_fields
    assert "(devices.constraints[]: more than 1 ways to fill a node, with 2 gpu with" in said
    assert "device:gpu" not in member.shape.requests.names


def test_too_many_limits_are_not_modelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle_rows, "MOST_ROWS", 0)
    _, member = shown(cluster_of(pairs(), piece=numbered("n1", 0, 0, 1, 1)))
    said = "devices.constraints[]: more than 0 limits on constraints"
    assert member.unsupported_fields == (f"spec.resourceClaims ({said})",)


def test_constraints_of_claims_that_are_not_modelled_are_not_counted() -> None:
    odd = request(count=2, selectors=[{}])
    constraint = {"matchAttribute": f"{DRIVER}/numa"}
    life, member = shown(cluster_of(claim("c", odd, constraints=[constraint])))
    assert (sets(life), len(member.unsupported_fields)) == ({}, 1)
    unknown = request("gpu", "gpu", 1, 'ip("::1").family() == 6')
    life, member = shown(cluster_of(claim("c", unknown, constraints=[constraint])))
    assert (sets(life), len(member.unsupported_fields)) == ({}, 1)


def partitioned(cores: str = "7", count: int = 3) -> ResourceSlice:
    """Devices that consume three of seven cores each."""
    uses = (Counter("set", "cores", "3"),)
    piece = gpus("n1", count)
    devices = tuple(replace(of, counters=uses) for of in piece.devices)
    return replace(piece, devices=devices, counters=(Counter("set", "cores", cores),))


def room(life: Life, name: str = counting_sets("gpu")) -> list[tuple[int, int]]:
    life.watch.catch_up()
    nodes = life.state.snapshot(0.0).nodes
    return [(n.allocatable[name], n.used[name]) for n in nodes]


def test_counters_limit_how_many_devices_a_node_has() -> None:
    cluster = cluster_of(claim("c"), piece=partitioned())
    life, member = shown(cluster)
    assert not member.unsupported_fields
    assert member.shape.requests[counting_sets("gpu")] == 1
    assert room(life) == [(2, 0), (0, 0)]
    other = allocated()
    other["metadata"] = {**other["metadata"], "name": "other", "uid": "other"}
    cluster.put_devices(other)
    assert room(life) == [(2, 1), (0, 0)]
    cluster.put_devices(partitioned("2"))
    assert room(life) == [(0, 0), (0, 0)]
    assert room(life, "device:gpu") == [(3, 3), (0, 0)]
    cluster.put_devices(gpus("n1", 2))
    assert room(life, "device:gpu") == [(2, 1), (0, 0)]
    _, member = shown(cluster)
    assert member.shape.requests[counting_sets("gpu")] == 0


async def test_a_reservation_whose_counters_others_took_is_broken() -> None:
    cluster = cluster_of(claim("c"), piece=partitioned())
    cluster.fault = lambda _at, name: Fault(Crash()) if name == "allocate" else None
    with pytest.raises(Crash):
        await Life(cluster, Clock()).settle()
    cluster.fault = lambda _at, _name: None
    cluster.put_devices(partitioned("2"))
    own = Life(cluster, Clock()).state.snapshot(0.0).gangs[0].members[0]
    assert "is gone or in use by now" in own.device_problems[0]


def test_counters_that_no_limits_describe_are_not_modelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "MOST_NUMBERS", 0)
    limits.limits.cache_clear()
    _, member = shown(cluster_of(claim("c"), piece=partitioned()))
    limits.limits.cache_clear()
    (said,) = member.unsupported_fields
    assert "devices[].consumesCounters: more than 0 ways to fill a node, with gpu" in said
