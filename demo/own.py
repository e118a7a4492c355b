"""A stage of its own: a control plane on loopback with 40 nodes and the operator beside it.

Everything is in one temporary directory and in processes that die with this one.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from tests.harness.controlplane import build
from tests.harness.controlplane.cluster import ControlPlane
from tests.harness.controlplane.components import needed_binaries
from tests.harness.controlplane.nodes import RUN_SECONDS, node_manifest
from tests.harness.controlplane.pins import chosen_k8s
from tests.harness.judge import Witness, judge
from tests.harness.operator_process import OperatorProcess

from tutti.cli.output.picture import NodeRow

from . import installing, kubectl
from .chronicle import GROUP
from .cluster import Cluster, DemoError, Manifest
from .stage import GPU, Stage, amount, block_of, by_node, example

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .screen import Screen

COMPONENTS = ("kwok", "controller-manager")
KINDS = (("h100", 10, 8, 128, "1Ti"), ("a100", 14, 8, 96, "768Gi"), ("l4", 16, 4, 48, "192Gi"))
# Pods of other people, so that the cluster is not empty: kind, node, GPUs of each.
OTHERS: tuple[tuple[str, int, tuple[int, ...]], ...] = (
    ("a100", 0, (4, 2)),
    ("a100", 3, (8,)),
    ("a100", 7, (1,)),
    ("l4", 0, (1, 1)),
    ("l4", 1, (4,)),
    ("l4", 6, (2,)),
    ("l4", 9, (1, 1, 1)),
)
NAMESPACE, OTHERS_NAMESPACE = "demo", "others"
PAUSE = "registry.k8s.io/pause:3.10"
NODES_SECONDS = 60.0


class OwnStage(Stage):
    """The demo's own control plane; pods run as long as the demo says."""

    has_queues = True

    def __init__(
        self, plane: ControlPlane, operator: OperatorProcess, witness: Witness, run_seconds: int
    ) -> None:
        self._witness = witness
        self.cluster = Cluster(plane.kubeconfig)
        self.namespace = NAMESPACE
        self.unit = "GPU"
        self._plane = plane
        self._operator = operator
        self._run_seconds = run_seconds

    def manifests(self, gang: str) -> list[Manifest]:
        """The example as it is in examples/demo."""
        return example(gang, NAMESPACE)

    def finish(self, gang: str) -> None:
        """Tell kwok how long the gang's pods work, counted from their start."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        for pod in self.cluster.items(f"{path}?labelSelector={GROUP}={gang}"):
            started = datetime.fromisoformat(pod["status"]["startTime"]).timestamp()
            seconds = max(self._run_seconds, round(time.time() - started) + 2)
            change = {"metadata": {"annotations": {RUN_SECONDS: str(seconds)}}}
            self.cluster.request("PATCH", f"{path}/{pod['metadata']['name']}", change)

    def rows(self) -> list[NodeRow]:
        """All nodes with their GPUs, kind by kind."""
        placed = by_node(self.cluster.items("/api/v1/pods"))
        rows = []
        for node in self.cluster.items("/api/v1/nodes"):
            name = node["metadata"]["name"]
            taken = ((pod, amount(pod, GPU)) for pod in placed.get(name, ()))
            rows.append(
                NodeRow(
                    name,
                    node["metadata"]["labels"]["accelerator"],
                    int(node["status"]["allocatable"][GPU]),
                    tuple(block_of(pod, gpus, NAMESPACE) for pod, gpus in taken if gpus),
                )
            )
        order = [kind for kind, *_ in KINDS]
        return sorted(rows, key=lambda row: (order.index(row.kind), row.name))

    def judged(self) -> str:
        """What the tests' judge says of the audit log and of its own watch."""
        self._witness.stop()
        verdict = judge(
            self._witness.history(),
            audit=self._plane.audit_log,
            operator_user=f"system:serviceaccount:{installing.NAMESPACE}:{installing.ACCOUNT}",
            scheduler_name="tutti",
        )
        if verdict.violations:
            raise DemoError(f"the judge found a broken promise: {verdict.summary()}")
        return (
            f"{verdict.bindings} bindings and {verdict.gangs} gangs were watched from outside and "
            "judged: each gang whole or not at all, no node over-committed."
        )

    def exports(self) -> tuple[str, ...]:
        """The administrator's kubeconfig, and where kubectl is unless PATH has a recent one."""
        kubeconfig = f"export KUBECONFIG={self._plane.kubeconfig}"
        if version := kubectl.recent_version(self._plane.k8s):
            return (f"# kubectl {version} of your PATH will do", kubeconfig)
        return (
            f"# your PATH has no kubectl that fits Kubernetes {self._plane.k8s}; this one does",
            kubeconfig,
            f'export PATH={self._plane.bin}:"$PATH"',
        )

    def operator_log(self) -> str:
        """The end of the operator's log."""
        return self._operator.tail()


def wanted_binaries(minor: str, *, stay: bool) -> set[str]:
    """The binaries that a stage of this minor version starts, and kubectl if the user needs it."""
    needs_kubectl = stay and not kubectl.recent_version(minor)
    return {*needed_binaries(COMPONENTS), *(("kubectl",) if needs_kubectl else ())}


@contextmanager
def own_stage(screen: Screen, run_seconds: int, *, stay: bool) -> Iterator[Stage]:
    """The stage, all of it gone when the block ends, however it ends.

    kubectl is built only if the user is to ``stay`` and PATH has no recent kubectl.
    """
    minor = chosen_k8s()
    build.binaries(wanted_binaries(minor, stay=stay), k8s=minor)  # prints its own progress
    place = Path(tempfile.mkdtemp(prefix="tutti-demo-"))
    plane: ControlPlane | None = None
    operator: OperatorProcess | None = None
    watching = ExitStack()
    try:
        (place / "control-plane").mkdir()
        with screen.step("start etcd, kube-apiserver, kube-controller-manager, kwok", 6):
            plane = ControlPlane.start(
                place / "control-plane", components=COMPONENTS, clients=(), k8s=minor
            )
        with screen.step("install Tutti's CRDs, ServiceAccount and ClusterRole", 1):
            _install(plane)
            plane.create_namespace(NAMESPACE)
            plane.create_namespace(OTHERS_NAMESPACE)
        with screen.step(f"create {sum(kind[1] for kind in KINDS)} nodes with 256 GPUs", 2):
            _create_nodes(plane)
        with screen.step("start the operator: python -m tutti run", 2):
            operator = OperatorProcess(
                plane,
                environment={
                    "TUTTI_LEASE_NAMESPACE": installing.NAMESPACE,
                    "TUTTI_PREEMPTION": "Reclaim",
                },
                kubeconfig=plane.kubeconfig_for_service_account(
                    installing.NAMESPACE, installing.ACCOUNT
                ),
            )
            witness = watching.enter_context(Witness(plane.kubeconfig))
            operator.start()
        yield OwnStage(plane, operator, witness, run_seconds)
    finally:
        try:
            watching.close()
        finally:
            with screen.step("stop everything and remove its files", 3):
                _stop(place, plane, operator)


def _install(plane: ControlPlane) -> None:
    cluster = Cluster(plane.kubeconfig)
    manifests = installing.manifests(installing.Found(crds=frozenset()), preempts=True)
    for manifest in manifests:
        cluster.create(manifest)
    installing.await_established(cluster, manifests)


def _stop(place: Path, plane: ControlPlane | None, operator: OperatorProcess | None) -> None:
    """End the processes in order; what was interrupted while it was being started, by force."""
    ours = psutil.Process().children(recursive=True)
    if operator is not None:
        operator.kill()
    if plane is not None:
        plane.stop()
    for process in ours:
        with suppress(psutil.NoSuchProcess):
            process.kill()  # psutil knows a process by its start, too, so no stranger is hit
    psutil.wait_procs(ours, timeout=10)
    shutil.rmtree(place, ignore_errors=True)


def _create_nodes(plane: ControlPlane) -> None:
    plane.create(
        node_manifest(
            f"{kind}-{number:02}",
            cpu=cpu,
            memory=memory,
            gpus=gpus,
            labels={"accelerator": kind, "node.kubernetes.io/instance-type": kind},
        )
        for kind, count, gpus, cpu, memory in KINDS
        for number in range(count)
    )
    deadline = time.monotonic() + NODES_SECONDS
    while not all(_is_usable(node) for node in plane.request("GET", "/api/v1/nodes")["items"]):
        if time.monotonic() > deadline:
            raise DemoError(f"the nodes are not ready after {NODES_SECONDS:.0f} s")
        time.sleep(0.1)
    plane.create(
        _other(f"{kind}-{number:02}", each, gpus)
        for kind, number, pods in OTHERS
        for each, gpus in enumerate(pods)
    )


def _is_usable(node: Manifest) -> bool:
    conditions = node["status"].get("conditions", [])
    is_ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    return is_ready and not node["spec"].get("taints")


def _other(node: str, number: int, gpus: int) -> Manifest:
    """A pod that somebody else's scheduler has put on a node."""
    resources = {"requests": {"cpu": "2"}, "limits": {GPU: str(gpus)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"on-{node}-{number}", "namespace": OTHERS_NAMESPACE},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "image": PAUSE, "resources": resources}],
        },
    }
