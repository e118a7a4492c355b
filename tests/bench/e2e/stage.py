"""The cluster of one scenario: an API server, its nodes, and the pods that are bound already."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ...harness import operator_process
from ...harness.controlplane.cluster import ControlPlane
from ...harness.controlplane.nodes import node_manifest
from ..load.gangs import SCHEDULERS, Form, Load, Member
from .ledger import Ledger
from .scenarios import GPUS_PER_NODE, NAMESPACE, PRIORITY_CLASS
from .writing import Server, write_all, written

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from .contenders import Contender
    from .scenarios import Scenario

BEFORE, RUNNING = "before", "running"
_NODES = "/api/v1/nodes"
_WORKLOADS = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/workloads"
_MERGE = "application/merge-patch+json"
_POLICY = Path(__file__).with_name("audit-policy.yaml")
_COSCHEDULING_CRD = Path(__file__).with_name("coscheduling-crd.yaml")
_PRIORITY_CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": PRIORITY_CLASS},
    "value": 1000,
}
_QUIET_SECONDS = 1.5
_LOOK_SECONDS = 0.05


class Stage:
    """What a round plays on: objects are written here, and the ledger tells what became of them."""

    def __init__(self, plane: ControlPlane, ledger: Ledger) -> None:
        self.plane = plane
        self.ledger = ledger
        self._server = Server(plane.server, plane.tls())

    def create(self, manifests: Iterable[Mapping[str, Any]]) -> None:
        """Create objects, which must be new, as fast as the API server takes them."""
        self.write(
            written("POST", f"{collection(manifest)}?fieldValidation=Ignore", manifest)
            for manifest in manifests
        )

    def write(self, requests: Iterable[bytes]) -> None:
        """Send ready-made requests."""
        write_all(self._server, requests)

    def remove(self, groups: Iterable[str], pods: Iterable[str], form: Form) -> None:
        """Delete pods at once, and every group of this form."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        names = tuple(pods)
        if form is Form.KUEUE:
            # Kueue would take its finalizers away, but has ended.
            self._release(f"{path}/{name}" for name in names)
        self.write(written("DELETE", f"{path}/{name}?gracePeriodSeconds=0") for name in names)
        for name in groups:
            manifest = Load(form, NAMESPACE, Member(), {}).group(name, 1)
            if form is Form.KUEUE:
                self._release([f"{_WORKLOADS}/{name}"])
                self.write([written("DELETE", f"{_WORKLOADS}/{name}")])
            if manifest is not None:
                self.write([written("DELETE", f"{collection(manifest)}/{name}")])

    def fill(self, form: Form, n: int) -> None:
        """Create pods of low priority that run, one for each GPU, and that a scheduler may end."""
        load = Load(Form.PLAIN, NAMESPACE, Member(), {"app": RUNNING}, SCHEDULERS[form])
        self.create(
            pod | {"spec": pod["spec"] | {"nodeName": _node_name(i // GPUS_PER_NODE)}}
            for i, pod in enumerate(load.pods(RUNNING, n))
        )

    def clear(self) -> None:
        """Delete all pods of low priority that still run."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        self.plane.request("DELETE", f"{path}?labelSelector=app%3D{RUNNING}&gracePeriodSeconds=0")

    def _release(self, paths: Iterable[str]) -> None:
        """Take all finalizers away."""
        free = {"metadata": {"finalizers": None}}
        self.write(written("PATCH", path, free, _MERGE) for path in paths)

    def until_bound(self, n: int, seconds: float) -> bool:
        """Whether so many bindings are seen within this time, counted from the ledger's mark."""
        deadline = time.monotonic() + seconds
        while self.ledger.bound < n:
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_SECONDS)
            self.ledger.follow()
        return True

    def until_quiet(self, seconds: float = 30.0) -> None:
        """Wait until nobody writes any more."""
        now = time.monotonic()
        deadline, last = now + seconds, now
        while (now := time.monotonic()) < min(deadline, last + _QUIET_SECONDS):
            if self.ledger.follow():
                last = now
            time.sleep(_LOOK_SECONDS)


def collection(manifest: Mapping[str, Any]) -> str:
    """The path under which an object is created."""
    version, kind = manifest["apiVersion"], manifest["kind"]
    prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = manifest["metadata"].get("namespace")
    place = f"/namespaces/{quote(namespace)}" if namespace else ""
    plural = "priorityclasses" if kind == "PriorityClass" else f"{kind.lower()}s"
    return f"{prefix}{place}/{plural}"


def install_coscheduling(plane: ControlPlane) -> None:
    """Let the API server know the PodGroups of scheduler-plugins."""
    plane.install_crds(_COSCHEDULING_CRD)


@contextmanager
def staged(scenario: Scenario, contenders: Collection[Contender]) -> Iterator[Stage]:
    """A control plane with the scenario's nodes, and nothing else that runs."""
    features = {"native-gang"} & {name for contender in contenders for name in contender.components}
    with ControlPlane.start(components=features, audit_policy=_POLICY) as plane:
        values = ("settings.preemption=Full",) if scenario.running else ()
        operator_process.install(plane, *values)
        install_coscheduling(plane)
        plane.create_namespace(NAMESPACE)
        ledger = Ledger(plane.audit_log)
        try:
            stage = Stage(plane, ledger)
            _populate(stage, scenario)
            yield stage
        finally:
            ledger.close()


def _populate(stage: Stage, scenario: Scenario) -> None:
    names = [_node_name(i) for i in range(scenario.nodes)]
    stage.create(node_manifest(name, cpu=64, memory="256Gi", gpus=GPUS_PER_NODE) for name in names)
    # Admission gives every new node the taint "not ready"; no controller is there to take it.
    open_up = {"spec": {"taints": None}}
    stage.write(written("PATCH", f"{_NODES}/{name}", open_up, _MERGE) for name in names)
    stage.create(_bound_pods(names, scenario.bound_before))
    if scenario.running:
        stage.create([_PRIORITY_CLASS])


def _node_name(number: int) -> str:
    return f"node-{number:05}"


def _bound_pods(nodes: list[str], n: int) -> Iterator[dict[str, Any]]:
    member = Member(gpus=0, cpu="100m", memory="128Mi")
    load = Load(Form.PLAIN, NAMESPACE, member, {"app": BEFORE})
    for i, pod in enumerate(load.pods(BEFORE, n)):
        pod["spec"] = pod["spec"] | {"nodeName": nodes[i % len(nodes)]}
        yield pod
