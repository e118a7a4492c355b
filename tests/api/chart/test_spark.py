"""The command of docs/spark.md that turns Spark off, on a real API server by the real Helm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...conformance.spark_jobs import page
from ...harness.operator_process import container_environment
from .places import NAMESPACE

if TYPE_CHECKING:
    from .places import Place

WAIT = " --wait --timeout=60s"


def test_it_takes_back_what_the_page_says_and_tells_the_replicas(shell: Place) -> None:
    """``get`` on ConfigMaps, and no more of them; nothing of it afterwards."""
    shell.install()
    assert _configmaps(shell) == [["get"]]
    shell.run(page.command("helm upgrade") + WAIT)
    shell.rolled_out()
    assert _configmaps(shell) == []
    (pod, *_) = shell.pods()
    shell.run(f"helm uninstall tutti -n {NAMESPACE}{WAIT}")
    assert container_environment(pod["spec"])["TUTTI_SPARK_ENABLED"] == "false"


def _configmaps(shell: Place) -> list[list[str]]:
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/tutti-system.tutti"
    rules = shell.plane.request("GET", path)["rules"]
    return [rule["verbs"] for rule in rules if "configmaps" in rule["resources"]]
