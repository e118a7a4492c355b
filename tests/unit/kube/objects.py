"""API objects as ``kubectl get -o json`` shows them, and short ways to vary them."""

import copy
from collections.abc import Mapping
from typing import Any

from tutti.kube import wire

Json = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "train-0",
        "generateName": "train-",
        "namespace": "ml",
        "uid": "7d1c0b1e-1111-4f6e-9d8e-000000000001",
        "resourceVersion": "4711",
        "creationTimestamp": "2026-01-01T00:00:10Z",
        "labels": {"tutti.dev/pod-group": "train", "tutti.dev/role": "worker", "app": "t"},
        "annotations": {"note": "ignored"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Thing", "name": "other", "uid": "o"},
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": "train",
                "uid": "j",
                "controller": True,
                "blockOwnerDeletion": True,
            },
        ],
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {".": {}}}}],
    },
    "spec": {
        "schedulerName": "tutti",
        "priority": 1000,
        "restartPolicy": "Never",
        "nodeSelector": {"pool": "gpu"},
        "containers": [
            {
                "name": "main",
                "image": "busybox",
                "resources": {
                    "limits": {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"},
                    "requests": {"cpu": "1500m", "memory": "4Gi", "nvidia.com/gpu": "1"},
                },
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
            }
        ],
        "volumes": [
            {"name": "scratch", "emptyDir": {}},
            {"name": "kube-api-access", "projected": {"sources": []}},
        ],
        "tolerations": [
            {
                "key": "node.kubernetes.io/not-ready",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            },
            {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
        ],
    },
    "status": {
        "phase": "Pending",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "WaitingForMembers",
                "message": "1 of 2 exist",
                "lastProbeTime": None,
                "lastTransitionTime": "2026-01-01T00:00:11Z",
            }
        ],
        "qosClass": "Burstable",
    },
}

NODE: Json = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "node-a",
        "uid": "n-1",
        "resourceVersion": "12",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"pool": "gpu", "kubernetes.io/hostname": "node-a"},
    },
    "spec": {
        "podCIDR": "10.0.0.0/24",
        "unschedulable": True,
        "taints": [
            {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
            {
                "key": "node.kubernetes.io/unschedulable",
                "effect": "NoSchedule",
                "timeAdded": "2026-01-01T00:00:00Z",
            },
        ],
    },
    "status": {
        "capacity": {"cpu": "64"},
        "allocatable": {
            "cpu": "63900m",
            "memory": "257Gi",
            "ephemeral-storage": "95551679124",
            "hugepages-2Mi": "0",
            "nvidia.com/gpu": "8",
            "pods": "110",
        },
        "conditions": [
            {"type": "MemoryPressure", "status": "False"},
            {"type": "Ready", "status": "True", "reason": "KubeletReady"},
        ],
        "images": [{"names": ["busybox"], "sizeBytes": 1}],
    },
}

GROUP: Json = {
    "apiVersion": "tutti.dev/v1alpha1",
    "kind": "PodGroup",
    "metadata": {
        "name": "train",
        "namespace": "ml",
        "uid": "g-1",
        "resourceVersion": "99",
        "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    },
    "spec": {
        "minMember": 9,
        "roles": [{"name": "driver", "minMember": 1}, {"name": "worker", "minMember": 8}],
    },
    "status": {"phase": "Waiting", "members": {"needed": 9, "seen": 2}},
}

RESERVATION: Json = {
    "apiVersion": "tutti.dev/v1alpha1",
    "kind": "Reservation",
    "metadata": {"name": "g-1", "namespace": "ml", "uid": "r-1", "resourceVersion": "100"},
    "spec": {
        "podGroup": {"name": "train", "uid": "g-1", "generation": 3},
        "schedulerName": "tutti",
        "term": "tutti-0@2026-01-01T00:00:00Z",
        "reservedAt": "2026-01-01T00:01:00Z",
        "placement": [
            {"node": "node-b", "slots": {"worker": 3}},
            {"node": "node-a", "pods": [{"name": "train-1", "uid": "u1"}]},
            {"node": "node-a", "pods": [{"name": "train-0", "uid": "u0"}]},
        ],
    },
}


def merged(base: Json, changes: Mapping[str, Any]) -> Json:
    """A deep copy with changes merged in: maps merge, everything else replaces."""
    result = copy.deepcopy(base)
    for key, value in changes.items():
        old = result.get(key)
        if isinstance(old, dict) and isinstance(value, Mapping):
            result[key] = merged(old, value)
        else:
            result[key] = value
    return result


def pod(
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **metadata: object,
) -> wire.Pod:
    """The pod above with changes."""
    changes = {"spec": spec or {}, "status": status or {}, "metadata": metadata}
    return wire.parse_one(merged(POD, changes), wire.Pod)


def container(name: str = "main", *, restart: str = "", **requests: object) -> Json:
    """A container with requests; double underscores stand for a dash."""
    amounts = {key.replace("__", "-"): value for key, value in requests.items()}
    json: Json = {"name": name, "resources": {"requests": amounts}}
    return json | ({"restartPolicy": restart} if restart else {})


def node_affinity(*terms: object) -> dict[str, Any]:
    """A required node affinity."""
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


def naming(*names: str, operator: str = "In") -> dict[str, Any]:
    """A term as DaemonSet pods carry it."""
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": list(names)}]}
