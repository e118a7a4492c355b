"""Figures of a picture: gangs by state, and the room, all of it accounted for."""

from collections import Counter
from dataclasses import replace

from hypothesis import given

from tutti.model.cluster import Phase, Snapshot
from tutti.model.inter_pod import Topology
from tutti.model.volumes import attaching
from tutti.reporting.utilisation import GangState, Utilisation, levels, rooms, state_of, states

from ...harness.builders import NodeBuilder, gang, node, reservation, snapshot_of, topology
from ...harness.generators import snapshots

GPU = "nvidia.com/gpu"


def test_each_gang_is_what_it_has_come_to() -> None:
    lost = gang("lost").of(2, cpu=1).bound_on("n1")
    over = gang("over").of(1, cpu=1).each(phase=Phase.SUCCEEDED)
    gangs = (gang("new"), gang("waits").of(2, cpu=1), lost, over)
    snapshot = snapshot_of(node("n1", cpu=9), *gangs, gang("runs").of(1, cpu=1).bound_on("n1"))
    found = {one.key.name: state_of(one, snapshot) for one in snapshot.gangs}
    assert found == {
        "new": GangState.WAITING,
        "waits": GangState.WAITING,
        "lost": GangState.DEGRADED,
        "over": None,
        "runs": GangState.STARTED,
    }
    assert states(snapshot) == {**Counter(filter(None, found.values())), GangState.RESERVED: 0}


def test_room_is_allocated_reserved_free_or_stranded() -> None:
    snapshot = snapshot_of(
        node("full", cpu=2, gpu=4, memory=8, pods=9).using(cpu=2, gpu=1),
        node("open", cpu=8, gpu=4, memory=8, pods=9).using(cpu=1, gpu=1),
        node("shut", cpu=8, gpu=4, memory=8, pods=9).cordoned(),
    )
    assert rooms(snapshot)["nvidia.com/gpu"] == Utilisation(12, 2, 0, 10, 3 + 4)
    assert rooms(snapshot)["cpu"] == Utilisation(18_000, 3_000, 0, 15_000, 8_000)


@given(snapshots())
def test_what_is_free_was_offered_and_is_not_promised(seen: Snapshot) -> None:
    for room in rooms(seen).values():
        assert 0 <= room.stranded <= room.free <= room.allocatable
        assert room.free >= room.allocatable - room.allocated - room.reserved


@given(snapshots())
def test_every_gang_has_one_state_or_has_ended(seen: Snapshot) -> None:
    open_ones = [gang for gang in seen.gangs if state_of(gang, seen) is not None]
    assert sum(states(seen).values()) == len(open_ones)
    settled = replace(seen, settled=frozenset())
    assert states(settled) == states(seen)


def racked(zone: str, rack: str, number: int) -> NodeBuilder:
    """A node with four GPUs in a rack of a zone."""
    name = f"{zone}-{rack}-{number}"
    return node(name, cpu=8, memory=8, gpu=4).labelled(zone=zone, rack=rack)


def networked() -> Snapshot:
    """Two racks of one name in two zones, and nodes of no rack and of no zone."""
    half = gang("half").of(1, cpu=1, memory=1, gpu=1).bound_on("a-r-1")
    held = gang("held").of(1, cpu=1, memory=1, gpu=4)
    return snapshot_of(
        racked("a", "r", 1),
        racked("a", "r", 2),
        racked("a", "s", 1),
        racked("b", "r", 1),
        racked("b", "r", 2).cordoned(),
        node("loose", cpu=8, memory=8, gpu=4).labelled(zone="a"),
        node("nowhere", cpu=8, memory=8, gpu=4).labelled(rack="r"),
        half,
        held,
        reservation(held, ("held-0", "b-r-1")),
        topology("zone", "rack"),
    )


def test_room_of_a_level_is_that_of_each_of_its_domains() -> None:
    zones, racks = levels(networked())
    assert (zones.topology, zones.level, racks.level) == ("network", "zone", "rack")
    found = {
        path: (room.nodes, room.free[GPU], room.whole_nodes[GPU])
        for level in (zones, racks)
        for path, room in level.domains.items()
    }
    assert found == {
        ("a",): (4, 15, 3),
        ("b",): (2, 0, 0),
        ("a", "r"): (2, 7, 1),
        ("a", "s"): (1, 4, 1),
        ("b", "r"): (2, 0, 0),
    }


def test_the_domain_with_most_room_is_named_and_of_equal_ones_the_first() -> None:
    zones, racks = levels(networked())
    assert zones.largest_free(GPU) == (15, ("a",))
    assert racks.largest_free(GPU) == (7, ("a", "r"))
    assert racks.largest_whole_nodes(GPU) == (1, ("a", "r"))
    assert racks.largest_free("cpu") == (15_000, ("a", "r"))
    assert racks.largest_whole_nodes("cpu") == (0, ("a", "r")), "of devices alone"


def test_a_level_that_no_node_has_holds_nothing_and_no_topology_has_no_level() -> None:
    (level,) = levels(snapshot_of(node("n1", cpu=1), topology("pod")))
    assert (level.domains, level.largest_free("cpu")) == ({}, (0, ()))
    assert levels(snapshot_of(node("n1", cpu=1))) == ()


def test_ports_and_volumes_are_no_room_of_a_domain() -> None:
    busy = node("n1", cpu=2, memory=2, **{attaching("csi"): 9}).labelled(zone="a")
    (level,) = levels(snapshot_of(busy, topology("zone")))
    assert level.domains["a",].free.names == ("cpu", "memory", "pods")


def test_topologies_of_one_name_in_two_groups_are_told_apart() -> None:
    """A metric with two equal label sets cannot be scraped."""
    own = topology("zone")
    seen = snapshot_of(
        node("n1", cpu=2).labelled(zone="a"), own, replace(own, group="kai.scheduler")
    )
    assert [level.topology for level in levels(seen)] == ["network", "network of kai.scheduler"]


@given(snapshots())
def test_the_domains_of_a_level_have_no_more_than_the_cluster(seen: Snapshot) -> None:
    whole = rooms(seen)
    named = replace(seen, topologies=(Topology("network", ("zone", "rack")),))
    for level in levels(named):
        for name, room in whole.items():
            assert sum(own.free[name] for own in level.domains.values()) <= (
                room.free - room.stranded
            )
