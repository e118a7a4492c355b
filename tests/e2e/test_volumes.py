"""Gangs get nodes and volumes together, with the real PV controller and a provisioner of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.provisioner import (
    PROVISIONER,
    SELECTED,
    Provisioner,
    claim,
    storage_class,
    volume,
)
from tests.harness.rig import Rig, members, pod_group

if TYPE_CHECKING:
    from collections.abc import Iterator

CLAIMS = "/api/v1/namespaces/ml/persistentvolumeclaims"


@pytest.fixture
def rig() -> Iterator[Rig]:
    """A cluster with the real kube-controller-manager, whose PV controller completes bindings."""
    with Rig.start("controller-manager") as started:
        started.create(
            storage_class("local", "kubernetes.io/no-provisioner"),
            storage_class("disk", PROVISIONER),
        )
        yield started
        deleted = [
            line["requestURI"]
            for line in started.plane.audited()
            if line["verb"].startswith("delete")
            and line["objectRef"]["resource"].startswith("persistentvolume")
        ]
        assert deleted == [], "no claim and no volume is ever deleted"


def mounting(name: str) -> dict[str, Any]:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}


def gang(rig: Rig, name: str, n: int, storage_class: str, **about: Any) -> None:
    """Create a gang with a claim for each member."""
    rig.create(pod_group(name, n), *(claim(f"{name}-{i}", storage_class) for i in range(n)))
    pods = members(name, n, **about)
    rig.create(*({**p, "spec": p["spec"] | mounting(p["metadata"]["name"])} for p in pods))


def chosen(rig: Rig) -> dict[str, str]:
    """The volume of each claim that has one."""
    claims = rig.plane.request("GET", CLAIMS)["items"]
    bound = [one for one in claims if one["spec"].get("volumeName")]
    return {one["metadata"]["name"]: one["spec"]["volumeName"] for one in bound}


def test_a_gang_gets_the_local_volumes_of_the_nodes_that_it_gets(rig: Rig) -> None:
    rig.nodes(3, cpu=8, memory="32Gi")
    # The first node has room, and no volumes.
    places = ["node-001", "node-001", "node-002"]
    rig.create(*(volume(f"pv-{i}", node, "local") for i, node in enumerate(places[:2])))
    gang(rig, "a", 3, "local", cpu=1)
    sentence = rig.until_waiting("a", "NotEnoughRoom")
    assert "volume" in sentence
    assert rig.bound("a") == 0
    rig.create(volume("pv-2", places[2], "local"))
    rig.until_bound("a", 3)
    volumes = chosen(rig)
    assert sorted(volumes.values()) == ["pv-0", "pv-1", "pv-2"]
    for pod in rig.pods("a"):
        number = int(volumes[pod["metadata"]["name"]].removeprefix("pv-"))
        assert pod["spec"]["nodeName"] == places[number]


def test_sixty_four_members_get_a_volume_each_although_a_node_has_none(rig: Rig) -> None:
    rig.nodes(8, cpu=16, memory="64Gi")
    with Provisioner(rig.plane.request, frozenset({"node-000"})) as provisioner:
        gang(rig, "a", 64, "disk", cpu=2)
        rig.until(lambda: provisioner.failures, "the provisioner fails")
        rig.until(
            lambda: any("made no volume" in e["message"] for e in rig.events("a")),
            "the release is said",
        )
        assert rig.bound("a") == 0
        provisioner.fails_on = frozenset()
        rig.until(lambda: rig.bound("a") == 64, "all are bound", seconds=180)
    assert len(set(chosen(rig).values())) == 64


def test_a_gang_on_several_nodes_shares_a_claim_that_is_provisioned_once(rig: Rig) -> None:
    rig.nodes(2, cpu=4, memory="16Gi")
    with Provisioner(rig.plane.request, is_anywhere=True):
        rig.create(pod_group("a", 3), claim("data", "disk"))
        rig.create(*members("a", 3, cpu=2, spec=mounting("data")))
        rig.until_bound("a", 3)
    assert {pod["spec"]["nodeName"] for pod in rig.pods("a")} == {"node-000", "node-001"}
    assert [*chosen(rig)] == ["data"]
    selected = [
        line
        for line in rig.plane.audited()
        if line["verb"] == "patch" and line["objectRef"]["resource"] == "persistentvolumeclaims"
    ]
    assert len(selected) == 1


def test_ephemeral_volumes_have_claims_of_their_own(rig: Rig) -> None:
    rig.nodes(2, cpu=8, memory="32Gi")
    template = {"spec": claim("", "disk")["spec"]}
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    with Provisioner(rig.plane.request):
        rig.create(pod_group("a", 3))
        rig.create(*members("a", 3, cpu=2, spec={"volumes": [scratch]}))
        rig.until_bound("a", 3)
    assert sorted(chosen(rig)) == ["a-0-scratch", "a-1-scratch", "a-2-scratch"]


def test_the_selected_node_of_a_gang_that_is_deleted_goes_and_its_claims_stay(rig: Rig) -> None:
    rig.nodes(2, cpu=8, memory="32Gi")
    gang(rig, "a", 2, "disk", cpu=1)

    def selected() -> list[str]:
        claims = rig.plane.request("GET", CLAIMS)["items"]
        nodes = (one["metadata"].get("annotations", {}).get(SELECTED) for one in claims)
        return [node for node in nodes if node]

    rig.until(lambda: len(selected()) == 2, "both are to be provisioned")
    assert rig.bound("a") == 0
    rig.delete("podgroup", "a")
    rig.until(lambda: not selected(), "no node is selected any more")
    assert len(rig.plane.request("GET", CLAIMS)["items"]) == 2


def test_volumes_are_provisioned_only_where_the_driver_says_it_has_capacity(rig: Rig) -> None:
    rig.nodes(3, cpu=8, memory="32Gi")
    driver = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": PROVISIONER},
        "spec": {"storageCapacity": True},
    }
    capacity = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": "second", "namespace": "ml"},
        "storageClassName": "disk",
        "capacity": "10Gi",
        "nodeTopology": {"matchLabels": {"kubernetes.io/hostname": "node-001"}},
    }
    rig.create(driver)
    gang(rig, "a", 2, "disk", cpu=1)
    rig.until_waiting("a", "NoNodeFits")
    with Provisioner(rig.plane.request):
        rig.create(capacity)
        rig.until_bound("a", 2)
    assert {pod["spec"]["nodeName"] for pod in rig.pods("a")} == {"node-001"}
