"""`make load` and `make bench-e2e` as their users call them, at a tiny scale."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..bench.e2e.writing import Server, Writer, write_all, written
from ..harness.controlplane import ControlPlane, node_manifest
from ..harness.controlplane.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PODS = "/api/v1/namespaces/ml/pods"


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane.start(components=("kwok", "scheduler")) as plane:
        plane.create_namespace("ml")
        plane.create([node_manifest("node-1", cpu=8, memory="32Gi", gpus=6)])
        yield plane


def _load(plane: ControlPlane, *arguments: str) -> subprocess.CompletedProcess[str]:
    usual = ("--cluster", "current", "--form", "plain", "--namespace", "ml")
    return subprocess.run(
        [sys.executable, "-m", "tests.bench.load", *usual, *arguments],
        cwd=ROOT,
        env={**os.environ, "KUBECONFIG": str(plane.kubeconfig)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_load_is_bound_measured_and_removed(plane: ControlPlane) -> None:
    done = _load(plane, "--gangs", "3", "--members", "2", "--gpus", "1", "--yes", "-o", "json")
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert (seen["pods"], seen["bound"], seen["gangs"], seen["whole"]) == (6, 6, 3, 3)
    assert seen["pods_per_second"] > 0
    assert seen["wait_p50"] <= seen["wait_p99"]
    assert plane.request("GET", PODS)["items"] == []


def test_what_does_not_fit_is_said_and_removed_too(plane: ControlPlane) -> None:
    done = _load(plane, "--gangs", "2", "--members", "4", "--gpus", "1", "--yes", "--seconds", "10")
    assert done.returncode == 1
    assert "6 of 8" in done.stdout
    assert "not all were bound" in done.stderr
    assert plane.request("GET", PODS)["items"] == []


def test_nothing_is_created_unless_somebody_agrees(plane: ControlPlane) -> None:
    done = _load(plane)
    assert done.returncode == 2
    assert "Nothing was created" in done.stderr
    assert plane.request("GET", PODS)["items"] == []


def test_a_cluster_without_the_crds_is_told_so_before_anything_is_created(
    plane: ControlPlane,
) -> None:
    done = _load(plane, "--form", "tutti", "--yes")
    assert done.returncode == 1
    assert "does not serve tutti.dev/v1alpha1" in done.stderr


def test_other_peoples_pods_in_the_namespace_stay(plane: ControlPlane) -> None:
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
    theirs = {"name": "theirs", "namespace": "ml", "labels": {"tutti.dev/load": "mine"}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    plane.create([{"apiVersion": "v1", "kind": "Pod", "metadata": theirs, "spec": spec}])
    assert _load(plane, "--gangs", "1", "--yes").returncode == 0
    names = [pod["metadata"]["name"] for pod in plane.request("GET", PODS)["items"]]
    assert names == ["theirs"]


def test_a_refused_write_is_raised_and_long_answers_are_read_whole(plane: ControlPlane) -> None:
    server = Server(plane.server, plane.tls())
    body = {"metadata": {"name": "twice"}}
    create = written("POST", "/api/v1/namespaces", body)
    write_all(server, [create, *[written("GET", "/openapi/v3/api/v1")] * 2], in_flight=1)
    with pytest.raises(RequestError, match="twice") as refusal:
        write_all(server, [create] * 3)
    assert refusal.value.status == 409


def test_a_writer_passes_over_what_is_gone_and_raises_what_is_refused(
    plane: ControlPlane,
) -> None:
    server = Server(plane.server, plane.tls())
    create = written("POST", "/api/v1/namespaces", {"metadata": {"name": "thrice"}})
    patch = written("PATCH", "/api/v1/namespaces/none", {}, "application/merge-patch+json")
    with closing(Writer(server, in_flight=2)) as writer:
        writer.send([written("DELETE", "/api/v1/namespaces/none"), patch])
        writer.send([create])
    assert plane.request("GET", "/api/v1/namespaces/thrice")["metadata"]["name"] == "thrice"
    writer = Writer(server, in_flight=2)
    writer.send([create])
    with pytest.raises(RequestError, match="thrice"):
        writer.close()
    writer = Writer(server, in_flight=2)
    writer.send([written("POST", PODS.replace("ml", "none"), {"metadata": {"name": "lost"}})])
    with pytest.raises(RequestError, match="404"):
        writer.close()


def _measured(*arguments: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.bench.e2e", "--scale", "0.004", "--rounds", "1"),
            *(*arguments, "-o", "json"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rounds: list[dict[str, Any]] = json.loads(done.stdout)["rounds"]
    return rounds


def test_the_benchmark_measures_every_scenario_at_a_tiny_scale() -> None:
    rounds = _measured("--schedulers", "tutti,kube-scheduler,bind-loop", "--scenarios", "a,d")
    assert [(one["contender"], one["scenario"]) for one in rounds] == [
        ("tutti", "a"),
        ("kube-scheduler", "a"),
        ("bind-loop", "a"),
        ("tutti", "d"),
        ("kube-scheduler", "d"),
    ]
    for one in rounds:
        assert one["bound"] == one["pods"]
        # The kernel counts in ticks of 10 ms, and so few bindings may take others less.
        assert one["cpu_seconds"] > 0 or (one["contender"] != "tutti" and one["scenario"] == "a")
        assert one["peak_megabytes"] > 10
        figure = "pods_per_second" if one["scenario"] == "a" else "start_seconds"
        assert one[figure] > 0


def test_the_benchmark_measures_full_clusters_and_gangs_that_come_and_end() -> None:
    full, churn = _measured("--schedulers", "tutti", "--scenarios", "j,k", "--minutes", "0.3")
    assert (full["whole"], full["starving"], full["never_bound"]) == (10, 0, 0)
    assert full["bound"] == full["pods"] == 80
    assert churn["started"] > 0
    assert 0 < churn["utilisation"] < 1
    assert churn["wait_p50"] <= churn["wait_p99"]
