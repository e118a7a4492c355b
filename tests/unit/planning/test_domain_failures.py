"""Failures that other schedulers have with domains of the network, each with its issue there.

Manifests go in, as users write them, and the plan is judged. ``test_domains`` has those whose gangs
need no fields of an API.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tutti import dump
from tutti.dump.load import snapshot_of
from tutti.gang import finding_text
from tutti.kube import wire
from tutti.kube.gang_sources import volcano
from tutti.kube.gang_sources.kubernetes import PodGroup, decode_group
from tutti.model.decisions import Plan, Reason
from tutti.model.inter_pod import DomainRule
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.verify import plan_checks

from ...harness import builders
from ...harness.builders import AMPLE_BUDGET
from ...harness.fake_devices import claiming, claims_of, device_class, gpus
from ...harness.fakes import Clock, FakeCluster, Life

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.kube.gang_sources.base import GangObject
    from tutti.model.cluster import Snapshot
    from tutti.strategies.problem import Budget, Problem, Solution

Raw = dict[str, Any]
BLOCK, RACK = "example.com/block", "example.com/rack"
TOPOLOGY: Raw = {
    "apiVersion": "tutti.dev/v1alpha1",
    "kind": "Topology",
    "metadata": {"name": "network"},
    "spec": {"levels": [{"nodeLabel": BLOCK}, {"nodeLabel": RACK}]},
}


def node(name: str, cpu: int) -> Raw:
    """A node; the block and the rack are the first parts of its name."""
    block, rack, _ = name.split("-")
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {BLOCK: block, RACK: rack}},
        "status": {"allocatable": {"cpu": str(cpu), "pods": "110"}},
    }


def pod(name: str, *, role: str = "") -> Raw:
    labels = {"tutti.dev/pod-group": "train"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ml",
            "labels": labels | ({"tutti.dev/role": role} if role else {}),
        },
        "spec": {
            "schedulerName": "tutti",
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
        },
    }


def pod_group(**spec: Any) -> Raw:
    about = {"name": "train", "namespace": "ml"}
    return {
        "apiVersion": "tutti.dev/v1alpha1",
        "kind": "PodGroup",
        "metadata": about,
        "spec": spec,
    }


def planned(*manifests: Raw) -> Plan:
    text = dump.Text("cluster.yaml", yaml.safe_dump_all(manifests).encode())
    return judged(snapshot_of(dump.read([text])))


def judged(snapshot: Snapshot) -> Plan:
    made = plan(snapshot, STRATEGIES["ilp"](), BestFit(), AMPLE_BUDGET)
    assert plan_checks.violations(snapshot, made) == ()
    return made


def racks(made: Plan) -> set[str]:
    """The racks in which the one gang that starts is, each with its block."""
    (placement,) = made.placements
    return {assignment.node.rpartition("-")[0] for assignment in placement.assignments}


def test_kueue_9361_a_required_and_a_preferred_level_go_together() -> None:
    """Kueue refuses both annotations on the same pods."""
    nodes = [node("b1-r1-0", 2), node("b2-r1-0", 2), node("b2-r2-0", 2), node("b2-r3-0", 3)]
    gang = pod_group(minMember=5, topology={"required": BLOCK, "preferred": RACK})
    made = planned(TOPOLOGY, *nodes, gang, *(pod(f"p{i}") for i in range(5)))
    assert len(racks(made)) == 2
    assert {name.partition("-")[0] for name in racks(made)} == {"b2"}


def test_kueue_11953_three_roles_are_in_one_rack_together() -> None:
    """Kueue's podset-group-name takes groups of exactly two."""
    nodes = [node("b1-r1-0", 2), node("b1-r2-0", 3), node("b1-r3-0", 2)]
    roles = ["driver", "store", "worker"]
    gang = pod_group(
        roles=[{"name": role, "minMember": 1} for role in roles],
        topology={"roleGroups": [{"roles": roles, "required": RACK}]},
    )
    made = planned(TOPOLOGY, *nodes, gang, *(pod(role, role=role) for role in roles))
    assert racks(made) == {"b1-r2"}


def test_kueue_10406_single_pods_leave_the_rack_whole_that_a_gang_needs() -> None:
    """Kueue scatters pods of one GPU over racks; here they are decided together with the gang."""
    nodes = [node(f"b1-r{rack}-{i}", 1) for rack in range(3) for i in range(2)]
    gang = pod_group(minMember=2, topology={"required": RACK})
    singles = [pod(f"single-{i}") for i in range(4)]
    for single in singles:
        del single["metadata"]["labels"]["tutti.dev/pod-group"]
    made = planned(TOPOLOGY, *nodes, gang, *singles, pod("p0"), pod("p1"))
    assert len(made.placements) == 5
    assert not made.rejections


def test_grove_648_all_parts_of_a_job_share_the_block_that_holds_them_all() -> None:
    """Grove makes several PodGangs of one job, and each may choose a block of its own."""
    nodes = [node(f"b1-r{rack}-0", 3) for rack in (1, 2)]
    nodes += [node(f"b2-r{rack}-0", 4) for rack in (1, 2, 3)]
    roles = ["prefill", "decode", "router"]
    within: Raw = {"required": RACK}
    gang = pod_group(
        roles=[{"name": role, "minMember": 3, "topology": within} for role in roles],
        topology={"required": BLOCK},
    )
    pods = [pod(f"{role}-{i}", role=role) for role in roles for i in range(3)]
    made = planned(TOPOLOGY, *nodes, gang, *pods)
    assert racks(made) == {"b2-r1", "b2-r2", "b2-r3"}
    assert not planned(TOPOLOGY, *nodes[:-1], gang, *pods).placements


@pytest.mark.parametrize(("devices_in_r2", "expected"), [(3, {"r2"}), (2, set())])
def test_kai_577_a_gang_starts_in_the_rack_that_has_devices_for_all_its_claims(
    devices_in_r2: int, expected: set[str]
) -> None:
    """KAI finds nodes for 17 members, and devices for the claims of 5 of them."""
    cluster = FakeCluster()
    cluster.put_devices(device_class())
    for rack, devices in (("r1", 2), ("r2", devices_in_r2)):
        for i in range(3):
            name = f"{rack}-{i}"
            cluster.add(builders.node(name, cpu=1).labelled(**{RACK: rack}))
            if i < devices:
                cluster.put_devices(gpus(name, 1))
    gang = claiming(builders.gang("a").of(3, cpu=1))
    cluster.add(gang)
    for claim in claims_of(gang):
        cluster.put_devices(claim)
    free = Life(cluster, Clock()).state.snapshot(0.0)
    (made,) = free.gangs
    ruled = replace(made, same_domain=(DomainRule(RACK),))
    snapshot = replace(free, gangs=(ruled,), topologies=(builders.topology(RACK),))
    placements = judged(snapshot).placements
    assert {a.node[:2] for p in placements for a in p.assignments} == expected


class Counting:
    """The strategy ``ilp``, and how many problems it has been given."""

    name = "counting"

    def __init__(self) -> None:
        self.solved = 0
        self._inner = STRATEGIES["ilp"]()

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Count a problem, and solve it."""
        self.solved += 1
        return self._inner.solve(problem, budget)


MANY_DOMAINS = 3000  # racks of two nodes, in blocks of ten racks


def network(has_room: Callable[[int], bool]) -> list[builders.Part]:
    """So many racks; those that have room have it for two members, the others for one."""
    parts: list[builders.Part] = [builders.topology(BLOCK, RACK)]
    for rack in range(MANY_DOMAINS):
        where = {BLOCK: f"b{rack // 10}", RACK: f"r{rack}"}
        first, second = (builders.node(f"r{rack}-{i}", cpu=1).labelled(**where) for i in range(2))
        parts += [first, second if has_room(rack) else second.using(cpu=1)]
    return parts


def by_few_problems(*parts: builders.Part) -> Plan:
    """The plan, made by solving few problems: not one for each domain."""
    strategy = Counting()
    snapshot = builders.snapshot_of(*parts)
    made = plan(snapshot, strategy, BestFit(), AMPLE_BUDGET)
    assert strategy.solved < 10
    assert plan_checks.violations(snapshot, made) == ()
    return made


def test_volcano_5811_a_gang_finds_the_one_rack_of_3000_that_has_room() -> None:
    gang = builders.gang("a").of(2, cpu=1).together(RACK)
    made = by_few_problems(*network(lambda rack: rack == 1234), gang)
    assert {a.node for p in made.placements for a in p.assignments} == {"r1234-0", "r1234-1"}


def test_volcano_4899_a_thousand_segments_find_their_racks() -> None:
    """Volcano tries each HyperNode from the lowest tier for each of 1,000 groups."""
    gang = builders.gang("a").of(2000, cpu=1).in_segments(2, RACK)
    made = by_few_problems(*network(lambda rack: rack % 3 == 0), gang)
    by_rack = Counter(a.node.partition("-")[0] for p in made.placements for a in p.assignments)
    assert by_rack == {f"r{rack}": 2 for rack in range(0, MANY_DOMAINS, 3)}


def of_volcano(**spec: Any) -> GangObject:
    """A PodGroup of Volcano for two members."""
    about = {"name": "a", "namespace": "ml", "uid": "u"}
    body = {"metadata": about, "spec": {"minMember": 2, **spec}}
    read = volcano.decode_group(wire.parse_one(body, volcano.PodGroup))
    assert read is not None
    return read


def three_racks(nodes_in_r3: int) -> list[builders.Part]:
    """Racks of one node each, the third of so many; a node has room for one member."""
    names = ["r1-0", "r2-0", *(f"r3-{i}" for i in range(nodes_in_r3))]
    nodes = [builders.node(n, cpu=2).labelled(**{BLOCK: "b1", RACK: n[:2]}) for n in names]
    return [*nodes, builders.topology(BLOCK, RACK)]


BY_NAME: Raw = {"mode": "hard", "highestTierName": RACK}


@pytest.mark.parametrize("form", ["a gang of Volcano", "segments of Tutti"])
def test_volcano_5189_a_tier_by_its_name_is_never_left(form: str) -> None:
    """Volcano does not restrict parts of a job whose tier is named, and not numbered."""
    pair = builders.gang("a").of(2, cpu=2)
    if form == "a gang of Volcano":
        pair = pair.but(same_domain=of_volcano(networkTopology=BY_NAME).same_domain)
    else:
        pair = pair.in_segments(2, RACK)
    assert racks(judged(builders.snapshot_of(*three_racks(2), pair))) == {"r3"}
    (rejection,) = judged(builders.snapshot_of(*three_racks(1), pair)).rejections
    assert rejection.reason is Reason.NOT_ENOUGH_ROOM


def test_volcano_5189_parts_of_a_job_wait_rather_than_start_without_their_tier() -> None:
    """What ``partitionPolicy`` of a vcjob becomes in its PodGroup, Tutti does not place by."""
    parts = {"name": "t0", "subGroupSize": 2, "minSubGroups": 1, "networkTopology": BY_NAME}
    group = of_volcano(subGroupPolicy=[parts])
    pair = builders.gang("a").of(2, cpu=2).but(unsupported_fields=group.unsupported_fields)
    (rejection,) = judged(builders.snapshot_of(*three_racks(2), pair)).rejections
    assert rejection.reason is Reason.NOT_MODELLED
    assert "spec.subGroupPolicy" in finding_text.sentence(rejection)


def native() -> tuple[DomainRule, ...]:
    """The domain rules of a PodGroup of Kubernetes that names a rack."""
    body = {
        "metadata": {"name": "a", "namespace": "ml", "uid": "u"},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 4}},
            "schedulingConstraints": {"topology": [{"key": RACK}]},
        },
    }
    return decode_group(wire.parse_one(body, PodGroup)).same_domain


def test_a_pod_group_of_kubernetes_starts_in_one_domain_of_its_key() -> None:
    nodes = [
        builders.node(name, cpu=cpu).labelled(**{BLOCK: "b1", RACK: name[:2]})
        for name, cpu in {"r1-0": 3, "r2-0": 2, "r2-1": 2}.items()
    ]
    gang = builders.gang("a").of(4, cpu=1).but(same_domain=native())
    snapshot = builders.snapshot_of(*nodes, gang, builders.topology(BLOCK, RACK))
    assert racks(judged(snapshot)) == {"r2"}


def test_a_key_of_kubernetes_that_no_topology_has_keeps_the_gang_waiting() -> None:
    gang = builders.gang("a").of(4, cpu=1).but(same_domain=native())
    snapshot = builders.snapshot_of(builders.node("n", cpu=8), gang)
    (rejection,) = judged(snapshot).rejections
    assert rejection.reason is Reason.UNKNOWN_LEVEL
    sentence = f"no Topology has the level {RACK}: there is none"
    assert finding_text.sentence(rejection) == sentence
