"""``tutti explain`` on a live cluster: what it says is so, and what it advises works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from ..harness.operator_process import ROOT
from ..harness.rig import Rig, members, pod_group

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUDGETS = "/apis/policy/v1/namespaces/ml/poddisruptionbudgets"


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A gang that runs, and one that waits for more nodes."""
    with Rig.start() as started:
        started.nodes(3, cpu=8, memory="32Gi")
        started.create(pod_group("runs", 4), *members("runs", 4, cpu=2))
        started.until_bound("runs", 4)
        started.create(pod_group("waits", 4), *members("waits", 4, cpu=5))
        started.until_waiting("waits", "NotEnoughRoom")
        yield started


def explain(rig: Rig, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "operator")}
    kubeconfig = ("--kubeconfig", str(rig.plane.kubeconfig))
    command = [sys.executable, "-m", "tutti", *words[:1], *kubeconfig, *words[1:]]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def data(rig: Rig, gang: str) -> dict[str, Any]:
    """What is said of one gang, as data."""
    done = explain(rig, "explain", gang, "-o", "json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["gangs"]
    return dict(found)


def test_a_gang_that_runs_is_said_to_be_bound(rig: Rig) -> None:
    """Where its members are."""
    done = explain(rig, "explain", "ml/runs")
    assert done.returncode == 0
    assert done.stdout.startswith("ml/runs is bound, 4 of 4 members: ")
    assert done.stdout.endswith("; healthy\n")


def test_a_gang_that_is_not_there_ends_with_1(rig: Rig) -> None:
    """In one line."""
    done = explain(rig, "explain", "ml/nobody")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tutti explain: there is no gang ml/nobody\n"


def test_a_live_cluster_and_its_dump_are_explained_alike(rig: Rig, tmp_path: Path) -> None:
    """All that waits, without a name."""
    path = tmp_path / "now.json"
    assert explain(rig, "dump", "-o", str(path)).returncode == 0
    live = explain(rig, "explain")
    assert live.stdout.startswith("ml/waits waits: NotEnoughRoom\n")
    assert explain(rig, "explain", "-f", str(path)).stdout == live.stdout


def test_the_sentence_is_the_one_in_the_condition(rig: Rig) -> None:
    """The operator and the command plan alike."""
    said = data(rig, "ml/waits")["advice"]
    line = rig.condition("waits", "Reserved")
    assert (said["reason"], said["sentence"]) == (line["reason"], line["message"])


def test_who_would_end_is_said_of_an_operator_that_ends_nobody(rig: Rig, tmp_path: Path) -> None:
    """With the PodDisruptionBudgets of the cluster, which such an operator does not read."""
    urgent = {"priorityClassName": "system-cluster-critical"}
    rig.create(pod_group("urgent", 3), *members("urgent", 3, cpu=8, spec=urgent))
    rig.until_waiting("urgent", "NotEnoughRoom")
    why = ("explain", "ml/urgent")
    told = "it starts once 4 pods of ml/runs have ended: its priority is higher"
    assert told not in explain(rig, *why).stdout
    assert told in explain(rig, *why, "--preemption", "Full").stdout
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "ml"},
        "spec": {
            "minAvailable": 4,
            "selector": {"matchLabels": {"tutti.dev/pod-group": "runs"}},
        },
    }
    rig.plane.request("POST", BUDGETS, budget)
    path = tmp_path / "now.json"
    assert explain(rig, "dump", "--preemption", "Full", "-o", str(path)).returncode == 0
    for said in (
        explain(rig, *why, "--preemption", "Full").stdout,
        explain(rig, *why, "-f", str(path)).stdout,
    ):
        assert "gang ml/runs cannot end for it: PodDisruptionBudget ml/keep allows 0" in said
    for gone in (f"{BUDGETS}/keep", "/apis/tutti.dev/v1alpha1/namespaces/ml/podgroups/urgent"):
        rig.plane.request("DELETE", gone)
    for number in range(3):
        rig.plane.request("DELETE", f"/api/v1/namespaces/ml/pods/urgent-{number}")


def test_the_nodes_advised_start_the_gang(rig: Rig) -> None:
    """One fewer does not, as it is proved; this ends the wait, so it comes last."""
    advised = data(rig, "ml/waits")["advice"]["diagnosis"]["nodes"]
    assert advised["like"].startswith("node-")
    assert advised["certainty"] == "proved"
    assert advised["count"] > 1
    rig.nodes(advised["count"] - 1, "new", cpu=8, memory="32Gi")
    rig.until(
        lambda: data(rig, "ml/waits")["advice"]["diagnosis"]["nodes"]["count"] == 1,
        "one node is missing still",
    )
    assert rig.bound("waits") == 0
    rig.nodes(1, "last", cpu=8, memory="32Gi")
    rig.until_bound("waits", 4)
