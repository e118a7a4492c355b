"""A live cluster as a file: what is in it, what is not, who can read it, and what it replays to."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tutti import dump
from tutti.dump import load
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.strategies.problem import Budget

from ..harness.operator_process import ROOT
from ..harness.rig import Rig, members, pod, pod_group

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "do-not-tell-anybody"
READER = "reader"
LISTED = (
    ("", "namespaces"),
    ("", "nodes"),
    ("", "pods"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("scheduling.k8s.io", "podgroups"),
    ("tutti.dev", "queues"),
    ("tutti.dev", "topologies"),
    ("tutti.dev", "podgroups"),
    ("tutti.dev", "reservations"),
)
RIGHTS = "rbac.authorization.k8s.io"


def _reader() -> list[dict[str, Any]]:
    """An account that may list what decisions are made from, and nothing else."""
    role = {"apiGroup": RIGHTS, "kind": "ClusterRole", "name": READER}
    rules = [{"apiGroups": [g], "resources": [kind], "verbs": ["list"]} for g, kind in LISTED]
    who = {"kind": "ServiceAccount", "name": READER, "namespace": "ml"}
    about = {"metadata": {"name": READER}, "apiVersion": f"{RIGHTS}/v1"}
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": READER, "namespace": "ml"},
        },
        {**about, "kind": "ClusterRole", "rules": rules},
        {**about, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": [who]},
    ]


def _told(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The pods with secrets wherever a pod can carry one."""
    for each in pods:
        each["metadata"]["annotations"] |= {"note": SECRET}
        (container,) = each["spec"]["containers"]
        container["env"] = [{"name": "TOKEN", "value": SECRET}]
        container["args"] = [SECRET]
        container["envFrom"] = [{"secretRef": {"name": SECRET, "optional": True}}]
        volume = {"name": "keys", "secret": {"secretName": SECRET, "optional": True}}
        each["spec"]["volumes"] = [volume]
    return pods


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """Two gangs, one of which runs and one waits, a pod of nobody's, and secrets in all of them."""
    with Rig.start() as started:
        started.plane.apply(_reader())
        started.create(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": SECRET, "namespace": "ml"},
                "stringData": {"key": SECRET},
            }
        )
        started.nodes(3, cpu=8, memory="32Gi")
        others = pod("other", scheduler="default-scheduler", cpu=1)
        others["spec"]["nodeName"] = "node-000"
        started.create(pod_group("runs", 4), *_told(members("runs", 4, cpu=2)), *_told([others]))
        started.until_bound("runs", 4)
        started.create(pod_group("waits", 4), *_told(members("waits", 4, cpu=5)))
        started.until_waiting("waits", "NotEnoughRoom")
        yield started


@pytest.fixture(scope="module")
def taken(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dump, taken with the reader's rights."""
    path = tmp_path_factory.mktemp("dump") / "now.json"
    kubeconfig = rig.plane.kubeconfig_for_service_account("ml", READER)
    done = _tutti("dump", "--kubeconfig", str(kubeconfig), "-o", str(path))
    assert done.returncode == 0, done.stderr
    return path


def _tutti(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "operator")}
    command = [sys.executable, "-m", "tutti", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_dump_tells_no_secrets(taken: Path) -> None:
    """Neither values nor the names of what holds them."""
    assert SECRET not in taken.read_text()
    assert "waits-3" in taken.read_text()


def test_kubectl_reads_a_dump(rig: Rig, taken: Path) -> None:
    """The List, its annotations and every item in it."""
    printed = rig.plane.kubectl("apply", "--dry-run=client", "-f", str(taken))
    for words in ("podgroup.tutti.dev/waits", "pod/runs-0", "node/node-002", "pod/others-0"):
        assert words in printed
    found = rig.plane.kubectl("get", "--ignore-not-found", "-o", "name", "-f", str(taken))
    assert "podgroup.tutti.dev/runs" in found.splitlines()


def test_the_plan_in_it_is_reproduced_a_hundred_times_in_any_order(taken: Path) -> None:
    """With the strategy that made it, from the file alone."""
    body = json.loads(taken.read_text())
    kept = json.loads(body["metadata"]["annotations"]["tutti.dev/plan"])
    assert [rejection["gang"] for rejection in kept["rejections"]] == ["ml/waits"]
    for seed in range(100):
        random.Random(seed).shuffle(body["items"])
        found = dump.read([dump.Text("now.json", json.dumps(body).encode())])
        assert found.header is not None
        again = plan(
            load.snapshot_of(found),
            STRATEGIES[found.header.setup.strategy](),
            STRATEGIES["bestfit"](),
            Budget(),
            found.header.setup.policy,
        )
        assert json.loads(json.dumps(dump.plan_record(again))) == kept
    done = _tutti("plan", "-f", str(taken))
    assert done.returncode == 0
    assert "the plan is the one in the dump" in done.stderr


def test_what_kubectl_prints_is_planned_like_a_dump(rig: Rig, taken: Path, tmp_path: Path) -> None:
    """The same answers from `kubectl get -o yaml`."""
    kinds = "nodes,namespaces,pods,priorityclasses,podgroups.tutti.dev,reservations.tutti.dev"
    kinds += ",queues.tutti.dev,topologies.tutti.dev"
    printed = tmp_path / "all.yaml"
    printed.write_text(rig.plane.kubectl("get", kinds, "-A", "-o", "yaml"))
    seen = [
        json.loads(_tutti("plan", "-o", "json", "-f", str(path)).stdout)["gangs"]
        for path in (taken, printed)
    ]
    assert seen[0] == seen[1]
    assert {each["gang"]: each["answer"] for each in seen[0]} == {
        "ml/runs": "bound",
        "ml/waits": "waits",
    }


def test_more_nodes_let_the_gang_start(taken: Path) -> None:
    """As the planner would decide if they were there."""
    done = _tutti("plan", "-f", str(taken), "--add-nodes", "2", "--like", "node-001")
    assert "ml/waits  starts now" in done.stdout


def test_without_rights_it_is_said_in_one_line(rig: Rig) -> None:
    """Which right is missing is the API server's sentence."""
    rig.plane.kubectl("create", "serviceaccount", "nobody", "-n", "ml")
    kubeconfig = rig.plane.kubeconfig_for_service_account("ml", "nobody")
    done = _tutti("dump", "--kubeconfig", str(kubeconfig))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("tutti dump: podgroups.tutti.dev is forbidden")
