"""Gangs in one rack on a real API server: the Topology comes late, and a replacement returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tutti.operator.kopf_lists import CHECK_SECONDS

from ..harness.rig import Rig, pod_group
from .bodies import crd_of, topology
from .places import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

RACK = "example.com/rack"


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A cluster of two racks: one node, and two nodes."""
    with Rig.start() as started:
        yield started


def test_a_gang_starts_in_one_rack_and_its_replacement_returns_there(rig: Rig) -> None:
    """Without the level it waits; with it, it starts where all of it fits."""
    place = Place(rig)
    for rack, nodes in (("r1", 1), ("r2", 2)):
        labels = {"pool": place.name, RACK: rack}
        rig.nodes(nodes, f"{place.name}-{rack}", labels=labels, cpu=2, memory="32Gi")
    made = pod_group("train", 4, namespace=place.name)
    made["spec"]["topology"] = {"required": RACK}
    rig.create(made)
    place.members("train", 4, cpu=1)
    place.until_waiting("train", "UnknownLevel", f"no Topology has the level {RACK}")
    rig.create(topology(RACK))
    place.until_bound("train", 4)
    large = pod_group("large", 6, namespace=place.name)
    large["spec"]["topology"] = {"required": RACK}
    rig.create(large)
    place.members("large", 6, cpu=1)
    words = f"the largest domain of {RACK} is r1: it has room for 2 of 6 members"
    place.until_waiting("large", "NotEnoughRoom", words)
    place.delete("pod", "train-0")
    place.members("train", 1, first=4, cpu=1)
    place.until_pod_bound("train-4")
    names = {rig.pod(f"train-{i}", place.name)["spec"]["nodeName"] for i in range(1, 5)}
    assert {name.rsplit("-", 2)[-2] for name in names} == {"r2"}


@pytest.mark.parametrize("api", ["kueue.x-k8s.io/v1beta2", "kai.scheduler/v1alpha1"])
def test_a_topology_of_another_project_has_levels_once_its_kind_is_there(
    rig: Rig, api: str
) -> None:
    """The CRD comes while Tutti runs."""
    place = Place(rig)
    group, version = api.split("/")
    level = f"{group}/pod"
    rig.nodes(1, f"{place.name}-p1", labels={"pool": place.name, level: "p1"}, cpu=1, memory="8Gi")
    rig.nodes(2, f"{place.name}-p2", labels={"pool": place.name, level: "p2"}, cpu=1, memory="8Gi")
    made = pod_group("train", 2, namespace=place.name)
    made["spec"]["topology"] = {"required": level}
    rig.create(made)
    place.members("train", 2, cpu=1)
    place.until_waiting("train", "UnknownLevel", f"no Topology has the level {level}")
    rig.plane.install([crd_of(f"topologies.{group}", "Topology", version, "Cluster")])
    rig.create(topology(level, api=api))
    rig.until(lambda: place.bound("train") == 2, "the gang starts", 2 * CHECK_SECONDS)


def test_a_gang_goes_to_one_rack_if_it_can_and_says_so_if_it_cannot(rig: Rig) -> None:
    """Neither gang waits: of two racks the one that holds it all comes first, else both do."""
    place = Place(rig)
    for rack, nodes in (("p1", 1), ("p2", 2)):
        labels = {"pool": place.name, RACK: rack}
        rig.nodes(nodes, f"{place.name}-{rack}", labels=labels, cpu=2, memory="32Gi")
    another = topology(RACK)
    another["metadata"]["name"] = "network-again"
    rig.create(another)
    for name, members in (("tune", 3), ("wide", 3)):
        made = pod_group(name, members, namespace=place.name)
        made["spec"]["topology"] = {"preferred": RACK}
        rig.create(made)
        place.members(name, members, cpu=1)
        place.until_bound(name, members)
    names = {rig.pod(f"tune-{i}", place.name)["spec"]["nodeName"] for i in range(3)}
    assert {name.rsplit("-", 2)[-2] for name in names} == {"p2"}
    sentence = f"every needed member has its node; in 2 domains of {RACK}; 1 was preferred"
    place.until_says("wide", "Reserved", "Reserved", sentence)


def test_segments_by_index_start_and_a_replacement_joins_its_own(rig: Rig) -> None:
    """Racks of 6 and 4 hold 10 as 4 + 2 and 4; a pod without its index keeps the gang waiting."""
    place = Place(rig)
    for rack, cpu in (("s1", 6), ("s2", 5)):
        labels = {"pool": place.name, RACK: rack}
        rig.nodes(1, f"{place.name}-{rack}", labels=labels, cpu=cpu, memory="32Gi")
    another = topology(RACK)
    another["metadata"]["name"] = "network-of-segments"
    rig.create(another)
    made = pod_group("steps", 10, namespace=place.name)
    segments = {"size": 4, "level": RACK, "indexLabel": "example.com/index"}
    made["spec"]["topology"] = {"segments": segments}
    rig.create(made)

    def create(name: str, index: int) -> None:
        pod = place.pod(name, "steps", cpu=1)
        pod["metadata"]["labels"]["example.com/index"] = str(index)
        rig.create(pod)

    for index in range(1, 10):
        create(f"steps-{index}", index)
    rig.create(place.pod("bare", "steps", cpu=1))
    words = "pod bare has no number in the label example.com/index: segments go by it"
    place.until_waiting("steps", "MissingIndex", words)
    place.delete("pod", "bare")
    create("steps-0", 0)
    place.until_bound("steps", 10)

    def rack_of(name: str) -> str:
        on: str = rig.pod(name, place.name)["spec"]["nodeName"]
        return on.rsplit("-", 2)[-2]

    racks = [rack_of(f"steps-{index}") for index in range(10)]
    assert racks == ["s2"] * 4 + ["s1"] * 6
    place.delete("pod", "steps-5")
    create("again", 5)
    place.until_pod_bound("again")
    assert rack_of("again") == "s1"
