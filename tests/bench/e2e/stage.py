"""The cluster of one scenario: an API server, its nodes, and the pods that are bound already."""

from __future__ import annotations

import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...harness import operator_process
from ...harness.controlplane.api import collection
from ...harness.controlplane.cluster import ControlPlane
from ...harness.controlplane.nodes import node_manifest
from ..load.gangs import SCHEDULERS, Form, Load, Member, gang_of
from .changes import (
    NO_FINALIZERS,
    PODS,
    WORKLOADS,
    creation,
    group_deletion,
    merge,
    opening,
    pod_deletion,
)
from .ledger import Ledger
from .scenarios import FEW, FEW_NODES, GPUS_PER_NODE, NAMESPACE, PRIORITY_CLASS
from .writing import Server, Writer, write_all, written

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from .contenders import Contender
    from .scenarios import Scenario

BEFORE, RUNNING = "before", "running"
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
        self.write(map(creation, manifests))

    def write(self, requests: Iterable[bytes]) -> None:
        """Send ready-made requests."""
        write_all(self._server, requests)

    def writer(self) -> Writer:
        """Lasting connections to write over a long time."""
        return Writer(self._server)

    @property
    def server_pids(self) -> Sequence[int]:
        """The processes of the API server and etcd."""
        return [self.plane.process(name).pid for name in ("kube-apiserver", "etcd")]

    def remove(self, groups: Iterable[str], pods: Iterable[str], form: Form) -> None:
        """Delete pods at once, and every group of this form."""
        members, gangs = tuple(pods), tuple(groups)
        workloads = [f"{WORKLOADS}/{name}" for name in gangs] if form is Form.KUEUE else []
        if form is Form.KUEUE:
            # Kueue would take its finalizers away, but has ended.
            self._write_unless_gone(
                merge(path, NO_FINALIZERS)
                for path in (*(f"{PODS}/{name}" for name in members), *workloads)
            )
        load = Load(form, NAMESPACE, Member(), {})
        manifests = (load.group(name, 1) for name in gangs)
        self._write_unless_gone(map(pod_deletion, members))
        self._write_unless_gone(written("DELETE", path) for path in workloads)
        self._write_unless_gone(group_deletion(group) for group in manifests if group is not None)

    def remove_all(self, form: Form) -> None:
        """Delete every pod and group of this form that is still there."""
        group = Load(form, NAMESPACE, Member(), {}).group("any", 1)
        place = collection(group) if group else WORKLOADS if form is Form.KUEUE else None
        self.remove(self._names(place) if place else (), self._names(PODS), form)

    def _write_unless_gone(self, requests: Iterable[bytes]) -> None:
        """Send requests about objects that may be gone already."""
        with closing(self.writer()) as writer:
            writer.send(requests)

    def _names(self, path: str) -> Sequence[str]:
        items = self.plane.request("GET", path)["items"]
        return [item["metadata"]["name"] for item in items]

    def fill(self, form: Form, n: int) -> None:
        """Create pods of low priority that run, one for each GPU, and that a scheduler may end."""
        load = Load(Form.PLAIN, NAMESPACE, Member(), {"app": RUNNING}, SCHEDULERS[form])
        self.create(
            pod | {"spec": pod["spec"] | {"nodeName": _node_name(i // GPUS_PER_NODE)}}
            for i, pod in enumerate(load.pods(RUNNING, n))
        )

    def clear(self) -> None:
        """Delete all pods of low priority that still run."""
        self.plane.request("DELETE", f"{PODS}?labelSelector=app%3D{RUNNING}&gracePeriodSeconds=0")

    def until_bound(self, n: int, seconds: float) -> bool:
        """Whether so many bindings are seen within this time, counted from the ledger's mark."""
        deadline = time.monotonic() + seconds
        while self.ledger.bound < n:
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_SECONDS)
            self.ledger.follow()
        return True

    def until_whole(self, sizes: Mapping[str, int], seconds: float, quiet_seconds: float) -> None:
        """Wait until all members of these gangs are bound, but not for longer than this.

        Nor, either, if no pod at all has been bound for the quiet seconds.
        """
        now = last = time.monotonic()
        deadline, unbound = now + seconds, sum(sizes.values())
        while unbound and time.monotonic() < min(deadline, last + quiet_seconds):
            time.sleep(_LOOK_SECONDS)
            self.ledger.follow()
            for binding in self.ledger.bindings():
                last = time.monotonic()
                unbound -= gang_of(binding.name) in sizes

    def until_quiet(self, seconds: float = 30.0) -> None:
        """Wait until nobody writes any more."""
        now = time.monotonic()
        deadline, last = now + seconds, now
        while (now := time.monotonic()) < min(deadline, last + _QUIET_SECONDS):
            if self.ledger.follow():
                last = now
            time.sleep(_LOOK_SECONDS)


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
    few = FEW_NODES if scenario.never else 0
    labels = [FEW] * few + [None] * (len(names) - few)
    nodes = [
        node_manifest(name, cpu=64, memory="256Gi", gpus=GPUS_PER_NODE, labels=label)
        for name, label in zip(names, labels, strict=True)
    ]
    stage.create(nodes)
    stage.write(map(opening, nodes))
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
