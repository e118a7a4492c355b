"""A control plane on which a release really runs: kube-scheduler places it, kwok starts it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...harness.controlplane import ControlPlane, build, node_manifest
from ...harness.controlplane.pins import chosen_k8s

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
CHART = "charts/tutti"
NAMESPACE = "tutti-system"
USERS = "users"
NODES = 3
# Whether the API server has MutatingAdmissionPolicies of the version that the chart renders.
HAS_POLICIES = chosen_k8s() != "1.35"


class ShellError(AssertionError):
    """A command line failed; what it said."""


class Place:
    """What a person at a shell in the checkout does to the cluster."""

    def __init__(self, plane: ControlPlane, namespace: str = NAMESPACE) -> None:
        """``namespace`` is where the releases are."""
        self.plane = plane
        self.namespace = namespace

    def run(self, line: str) -> str:
        """What a line of shell prints; kubectl and helm are on the path."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line],
            cwd=ROOT,
            env=dict(self.plane.environment),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ShellError(f"{line}\n{done.stderr}")
        return done.stdout

    def helm(self, command: str, release: str = "tutti", rest: str = "") -> str:
        """Helm, and wait until what it installed is there and runs, or is gone."""
        wait = "--wait --timeout=60s"
        said = self.run(f"helm {command} {release} --namespace={self.namespace} {wait} {rest}")
        if command != "uninstall":
            self.rolled_out()
        return said

    def rolled_out(self) -> None:
        """Wait until no pods of an earlier revision are left: Helm waits for new ones alone."""
        self.run(f"kubectl rollout status deployment --namespace={self.namespace} --timeout=60s")

    def install(self, release: str = "tutti", rest: str = "") -> str:
        """Install the chart, the namespace with it."""
        return self.helm("install", release, f"{CHART} --create-namespace {rest}")

    def items(self, path: str) -> list[dict[str, Any]]:
        """The objects of a list."""
        found: list[dict[str, Any]] = self.plane.request("GET", path)["items"]
        return found

    def pods(self, release: str = "tutti") -> list[dict[str, Any]]:
        """The replicas of a release that are not on their way out."""
        label = f"labelSelector=app.kubernetes.io/instance={release}"
        found = self.items(f"/api/v1/namespaces/{self.namespace}/pods?{label}")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def place() -> Iterator[Place]:
    """Three nodes in two zones; the users' namespace."""
    build.binaries(("helm",))  # so that it is linked beside kubectl
    with ControlPlane.start(components=("kwok", "scheduler", "controller-manager")) as plane:
        plane.create_nodes(
            node_manifest(
                f"node-{number}",
                cpu=8,
                memory="16Gi",
                labels={"topology.kubernetes.io/zone": f"zone-{number % 2}"},
            )
            for number in range(NODES)
        )
        plane.create_namespace(USERS)
        yield Place(plane)
