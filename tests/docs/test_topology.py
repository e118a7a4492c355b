"""The manifests of docs/topology.md and docs/spark.md: gangs start in the domains that pages say.

tests/api/test_crds.py sends the same manifests to an API server.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tutti import dump
from tutti.dump.load import snapshot_of
from tutti.model.decisions import Reason
from tutti.planning import plan as planning
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget

from .reference import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tutti.model.decisions import Plan

Json = dict[str, Any]
PAGE, SPARK = ROOT / "docs" / "topology.md", ROOT / "docs" / "spark.md"
BLOCKS, RACKS, NODES, CPUS = "ab", 3, 4, 4  # blocks; racks of each, nodes of each, CPUs of each
SIZES = {"train": 18, "tune": 16, "pretrain": 40}


def manifests(page: Path = PAGE) -> Mapping[str, Json]:
    """The objects of all blocks of YAML that have names, by name."""
    texts = re.findall(r"(?ms)^```yaml\n(.*?)^```", page.read_text())
    made = (manifest for manifest in map(yaml.safe_load, texts) if "metadata" in manifest)
    return {manifest["metadata"]["name"]: manifest for manifest in made}


def nodes(cpus: int, levels: Sequence[str]) -> Iterator[Json]:
    """Racks in blocks of one zone."""
    for block in BLOCKS:
        for rack in range(RACKS):
            for number in range(NODES):
                name = f"{block}-{rack}-{number}"
                labels = dict(zip(levels, ("z", block, f"{rack}"), strict=True))
                status = {
                    "allocatable": {"cpu": f"{cpus}", "memory": "64Gi", "pods": "110"},
                    "conditions": [{"type": "Ready", "status": "True"}],
                }
                metadata = {"name": name, "labels": labels}
                yield {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def roles_of(group: Json) -> Iterable[str]:
    """The role of each member that the gang needs."""
    spec = group["spec"]
    roles = spec.get("roles", [{"name": "", "minMember": spec.get("minMember", 0)}])
    return (role["name"] for role in roles for _ in range(role["minMember"]))


def pods(group: Json) -> Iterator[Json]:
    """The members that a gang needs, with one CPU each, and the labels that the page names."""
    segments = group["spec"].get("topology", {}).get("segments", {})
    for index, role in enumerate(roles_of(group)):
        labels = {"tutti.dev/pod-group": group["metadata"]["name"]}
        labels |= {"tutti.dev/role": role} if role else {}
        labels |= {segments["indexLabel"]: f"{index}"} if segments else {}
        requests = {"resources": {"requests": {"cpu": "1"}}}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{role or 'member'}-{index}", "labels": labels},
            "spec": {"schedulerName": "tutti", "containers": [{"name": "main", **requests}]},
        }


def planned(group: Json, cpus: int = CPUS, members: Iterable[Json] = ()) -> Plan:
    """What a plan does with this gang alone; with ``members`` instead of all that it needs."""
    network = manifests()["network"]
    levels = [level["nodeLabel"] for level in network["spec"]["levels"]]
    items = [network, *nodes(cpus, levels), group, *(members or pods(group))]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    snapshot = snapshot_of(dump.read([dump.Text("page", text.encode())]))
    return planning.plan(snapshot, BestFit(), BestFit(), Budget(10, 10.0))


def racks(plan: Plan) -> Mapping[str, str]:
    """The rack of each member that starts, with its block."""
    (placement,) = plan.placements
    return {one.pod.name: one.node.rpartition("-")[0] for one in placement.assignments}


def test_the_page_has_a_topology_and_these_gangs() -> None:
    found = manifests()
    assert [name for name, made in found.items() if made["kind"] == "Topology"] == ["network"]
    assert set(SIZES) == found.keys() - {"network"}
    assert {name: len(list(roles_of(found[name]))) for name in SIZES} == SIZES


@pytest.mark.parametrize("name", SIZES)
def test_each_gang_starts_in_one_block(name: str) -> None:
    found = racks(planned(manifests()[name]))
    assert len(found) == SIZES[name]
    assert len({rack.partition("-")[0] for rack in found.values()}) == 1


def test_the_workers_are_in_one_rack_and_driver_and_store_in_one() -> None:
    found = racks(planned(manifests()["train"]))
    by_role = {
        role: {rack for name, rack in found.items() if name.rpartition("-")[0] in role}
        for role in (("worker",), ("driver", "store"))
    }
    assert [len(own) for own in by_role.values()] == [1, 1]


def test_a_gang_whose_workers_no_rack_holds_waits() -> None:
    plan = planned(manifests()["train"], CPUS - 1)
    assert [one.reason for one in plan.rejections] == [Reason.NOT_ENOUGH_ROOM]


def test_a_preferred_rack_is_one_and_one_that_is_too_small_is_not_waited_for() -> None:
    tune = manifests()["tune"]
    assert len(set(racks(planned(tune)).values())) == 1
    assert len(set(racks(planned(tune, CPUS - 1)).values())) == 2


def test_room_for_the_executors_is_held_in_the_rack_of_their_driver() -> None:
    group = manifests(SPARK)["nightly"]
    assert "`topology: {required: example.com/rack}`" in SPARK.read_text()
    group["spec"]["topology"] = {"required": "example.com/rack"}
    driver = next(pods(group))
    del driver["metadata"]["labels"]["tutti.dev/role"]
    driver["metadata"]["labels"] |= {"spark-role": "driver", "spark-app-selector": "spark-1"}
    plan = planned(group, cpus=1, members=[driver])
    (placement,) = plan.placements
    assert len(placement.slots) == 2
    held = {slot.node.rpartition("-")[0] for slot in placement.slots}
    assert {*racks(plan).values()} == held
    group["spec"]["roles"][1]["minMember"] = NODES
    plan = planned(group, cpus=1, members=[driver])
    assert [rejection.reason for rejection in plan.rejections] == [Reason.NOT_ENOUGH_ROOM]


def test_each_segment_is_in_one_rack() -> None:
    found = racks(planned(manifests()["pretrain"]))
    by_segment: dict[int, set[str]] = {}
    for name, rack in found.items():
        by_segment.setdefault(int(name.rpartition("-")[2]) // 16, set()).add(rack)
    assert [len(by_segment[number]) for number in range(3)] == [1, 1, 1]
