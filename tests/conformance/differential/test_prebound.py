"""A claim that has a volume, before the PV controller has bound it."""

from __future__ import annotations

from typing import Any

import pytest

from .comparing import Case, differs
from .oracle import Answer
from .ours import Reading
from .prebound import is_of_a_claim_not_bound_yet
from .scenes import SCHEDULER

HOST = "kubernetes.io/hostname"
RACK = "rack"


def made(api_version: str, kind: str, name: str, space: str = "", **about: Any) -> dict[str, Any]:
    metadata = {"name": name, "uid": f"uid-of-{kind}-{name}", "resourceVersion": "1"}
    metadata |= {"namespace": space} if space else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **about}


def node(name: str, rack: str) -> dict[str, Any]:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True"}]
    item = made("v1", "Node", name, spec={}, status={"allocatable": amounts, "conditions": ready})
    item["metadata"]["labels"] = {HOST: name, RACK: rack}
    return item


def case(nodes: set[str], *, provisioner: str = "a.csi", claim_of: str = "data") -> Case:
    """A pod whose claim has the volume of n0; its class provisions in rack r1, where n1 is."""
    rack = {"matchLabelExpressions": [{"key": RACK, "values": ["r1"]}]}
    where = {"key": HOST, "operator": "In", "values": ["n0"]}
    about = {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "disk",
    }
    objects = [
        *(node(name, rack) for name, rack in (("n0", "r0"), ("n1", "r1"), ("n2", "r2"))),
        made("v1", "Namespace", "ml", spec={}, status={}),
        made(
            "storage.k8s.io/v1",
            "StorageClass",
            "disk",
            provisioner=provisioner,
            volumeBindingMode="WaitForFirstConsumer",
            allowedTopologies=[rack],
        ),
        made(
            "v1",
            "PersistentVolume",
            "pv0",
            spec={
                **about,
                "hostPath": {"path": "/mnt"},
                "claimRef": {"namespace": "ml", "name": claim_of},
                "nodeAffinity": {
                    "required": {"nodeSelectorTerms": [{"matchExpressions": [where]}]}
                },
            },
            status={"phase": "Available"},
        ),
        made(
            "v1",
            "PersistentVolumeClaim",
            "data",
            "ml",
            spec={
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "disk",
                "resources": {"requests": {"storage": "1Gi"}},
            },
            status={"phase": "Pending"},
        ),
    ]
    volume = {"name": "v0", "persistentVolumeClaim": {"claimName": "data"}}
    spec = {
        "schedulerName": SCHEDULER,
        "containers": [{"name": "c0", "image": "pause"}],
        "volumes": [volume],
    }
    pod = made("v1", "Pod", "p", "ml", spec=spec, status={"phase": "Pending"})
    return Case("p", (), objects, pod, Answer(frozenset(nodes)))


def test_tutti_keeps_the_pod_where_the_volume_of_its_claim_is() -> None:
    there = case({"n0"})
    assert not differs(there, Reading(there.objects).answer(there.pod))


@pytest.mark.parametrize(
    ("nodes", "is_known"),
    [({"n0", "n1"}, True), ({"n0", "n1", "n2"}, False), ({"n1"}, False), (set(), False)],
)
def test_only_nodes_for_which_the_class_provisions_come_to_that_of_the_volume(
    nodes: set[str], *, is_known: bool
) -> None:
    assert is_of_a_claim_not_bound_yet(case(nodes)) is is_known


def test_a_class_that_does_not_provision_adds_no_node() -> None:
    static = "kubernetes.io/no-provisioner"
    assert not is_of_a_claim_not_bound_yet(case({"n0", "n1"}, provisioner=static))


def test_a_claim_without_a_volume_is_compared_as_ever() -> None:
    assert not is_of_a_claim_not_bound_yet(case({"n0", "n1"}, claim_of="other"))
