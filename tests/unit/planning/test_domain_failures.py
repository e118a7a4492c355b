"""Failures that other schedulers have with domains of the network, each with its issue there.

Manifests go in, as users write them, and the plan is judged. ``test_domains`` has those whose gangs
need no fields of an API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from tutti import dump
from tutti.dump.load import snapshot_of
from tutti.gang import finding_text
from tutti.kube import wire
from tutti.kube.gang_sources.kubernetes import PodGroup, decode_group
from tutti.model.decisions import Plan, Reason
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget
from tutti.verify import plan_checks

from ...harness import builders

if TYPE_CHECKING:
    from tutti.model.cluster import Snapshot
    from tutti.model.inter_pod import DomainRule

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
    made = plan(snapshot, STRATEGIES["ilp"](), BestFit(), Budget())
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
