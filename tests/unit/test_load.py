"""The load generator reads a watch without parsing it, and is not fooled by what pods may hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from demo.cluster import Cluster

from ..bench.load.command import main
from ..bench.load.following import bound_pod


def _line(pod: dict[str, Any], kind: str = "MODIFIED") -> bytes:
    """An event as the API server writes it: kind and version first, fields in their order."""
    whole = {"kind": "Pod", "apiVersion": "v1", **pod}
    return json.dumps({"type": kind, "object": whole}, separators=(",", ":")).encode() + b"\n"


def test_a_pod_on_a_node_is_seen() -> None:
    spec = {"containers": [], "nodeName": "node-1"}
    assert bound_pod(_line({"metadata": {"name": "a-0"}, "spec": spec})) == "a-0"


@pytest.mark.parametrize(
    "metadata",
    [
        {"annotations": {"x": '"nodeName":"node-1"'}},
        {"annotations": {"nodeName": 'a"}, "spec": {"nodeName":"b'}},
        {"labels": {"nodeName.example.com/x": "node-1"}},
        {"managedFields": [{"fieldsV1": {"f:spec": {"f:nodeName": {}}}}]},
    ],
)
def test_what_only_looks_like_a_node_is_none(metadata: dict[str, Any]) -> None:
    line = _line({"metadata": {"name": "a-0", **metadata}, "spec": {"containers": []}})
    assert bound_pod(line) is None


@pytest.mark.parametrize("line", [b"", b"\n", b"{}", b'"nodeName":"', b"\xff\xfe" * 100])
def test_a_line_that_is_no_pod_is_none(line: bytes) -> None:
    assert bound_pod(line) is None


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--cluster", "production"],
        ["--cluster", "current", "--gangs", "0"],
        ["--cluster", "current", "--members", "-1"],
        ["--cluster", "current", "--gpus", "many"],
        ["--cluster", "current", "--gangs", "10000", "--members", "5000"],
        ["--cluster", "current", "--seconds", "nan"],
    ],
)
def test_wrong_use_ends_with_two_before_any_cluster_is_looked_for(arguments: list[str]) -> None:
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2
    assert "Traceback" not in done.output


def test_a_kubeconfig_that_is_none_ends_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/dev/null")
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", "/dev/null")
    done = CliRunner().invoke(main, ["--cluster", "current", "--yes"])
    assert done.exit_code == 1
    assert "kubeconfig" in done.output


def test_a_minor_without_native_gangs_that_are_known_ends_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Cluster, "__init__", lambda _: None)
    monkeypatch.setenv("K8S", "1.12")
    done = CliRunner().invoke(main, ["--cluster", "current", "--form", "native", "--yes"])
    assert done.exit_code == 1
    assert "Kubernetes 1.12 is not pinned here; pinned are 1.37, 1.36" in done.output
