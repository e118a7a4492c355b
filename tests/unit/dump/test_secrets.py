"""A dump holds nothing but what decisions use: whatever else a pod says was never kept."""

import json
from typing import Any

import pytest

from tutti import dump
from tutti.dump import load
from tutti.model.decisions import Policy

SECRET = "do-not-tell-anybody"
PRESENT = {"requests": {"cpu": "2", "nvidia.com/gpu": "1"}}


def pod(name: str, scheduler: str, **spec: Any) -> dict[str, Any]:
    """A pod with a secret in every field that may hold text and that no decision uses."""
    container = {
        "name": SECRET,
        "image": SECRET,
        "command": [SECRET],
        "args": [SECRET],
        "env": [
            {"name": "TOKEN", "value": SECRET},
            {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": SECRET, "key": SECRET}}},
        ],
        "envFrom": [{"secretRef": {"name": SECRET}}, {"configMapRef": {"name": SECRET}}],
        "volumeMounts": [{"name": SECRET, "mountPath": SECRET}],
        "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Auth", "value": SECRET}]}},
        "resources": PRESENT,
        "ports": [{"name": SECRET, "containerPort": 80, "hostPort": 80}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ml",
            "uid": name,
            "resourceVersion": "7",
            "labels": {"tutti.dev/pod-group": "train"},
            "annotations": {"note": SECRET, "tutti.dev/note": SECRET},
            "managedFields": [{"manager": SECRET}],
        },
        "spec": {
            "schedulerName": scheduler,
            "containers": [container],
            "initContainers": [container],
            "imagePullSecrets": [{"name": SECRET}],
            "serviceAccountName": SECRET,
            "hostname": SECRET,
            "volumes": [
                {"name": SECRET, "secret": {"secretName": SECRET}},
                {"name": SECRET, "persistentVolumeClaim": {"claimName": "data"}},
                {"name": SECRET, "csi": {"volumeAttributes": {"password": SECRET}}},
            ],
            **spec,
        },
        "status": {"phase": "Pending", "message": SECRET, "podIP": SECRET},
    }


def kept() -> str:
    """What is written of three such pods, a node, a PodGroup and a Secret."""
    about = {"annotations": {"note": SECRET}, "managedFields": [{"manager": SECRET}]}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "uid": "n1", **about},
        "spec": {"providerID": SECRET},
        "status": {"allocatable": {"cpu": "8"}, "images": [{"names": [SECRET]}]},
    }
    group = {
        "apiVersion": "tutti.dev/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "ml", "uid": "g", **about},
        "spec": {"minMember": 2},
        "status": {"conditions": [{"type": "Reserved", "message": SECRET}]},
    }
    secret = {"apiVersion": "v1", "kind": "Secret", "stringData": {"key": SECRET}}
    pods = [
        pod("waits", "tutti"),
        pod("runs", "tutti", nodeName="n1"),
        pod("foreign", "default-scheduler", nodeName="n1"),
    ]
    text = json.dumps({"kind": "List", "items": [node, group, secret, *pods]})
    assert text.count(SECRET) > 100
    snapshot = load.snapshot_of(dump.read([dump.Text("all", text.encode())]))
    assert len(snapshot.gangs[0].members) == 2
    return dump.write(snapshot, dump.PlannerConfig("tutti", "ilp", Policy(), {}))


def test_no_secret_of_a_pod_is_in_a_dump() -> None:
    assert SECRET not in kept()


@pytest.mark.parametrize("word", ["waits", "runs", "n1", "train", "nvidia.com/gpu"])
def test_what_decides_is_in_it(word: str) -> None:
    assert f'"{word}"' in kept()


def test_labels_are_no_secret_and_stay() -> None:
    assert '"labels":{"tutti.dev/pod-group":"train"}' in kept()


def test_who_else_runs_there_is_not_told() -> None:
    assert "foreign" not in kept()
    assert '"others-0"' in kept()
