"""The schedulers that are compared, each as one process beside the same API server."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from prometheus_client.parser import text_string_to_metric_families

from ...harness import operator_process
from ...harness.controlplane.api import collection
from ...harness.operator_process import OperatorProcess
from ..load.gangs import KUEUE_QUEUE_NAME, Form
from . import bind_loop
from .changes import NO_FINALIZERS
from .scenarios import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...harness.controlplane.cluster import ControlPlane
    from ...harness.controlplane.processes import Process

TUTTI = "tutti"
PLAIN = "kube-scheduler"
NATIVE = "native-gangs"
COSCHEDULING = "coscheduling"
VOLCANO = "volcano"
KUEUE = "kueue"
BIND_LOOP = bind_loop.NAME  # no scheduler: what the API server can take
GANG_SCHEDULERS = (NATIVE, COSCHEDULING, VOLCANO, KUEUE)  # Tutti is compared with the best


_ADMISSION = "/apis/admissionregistration.k8s.io/v1"


class Running(Protocol):
    """A scheduler at work."""

    @property
    def pids(self) -> Sequence[int]:
        """Its processes."""

    def stop(self) -> None:
        """End it."""

    def watch_delay(self) -> float:
        """Seconds until the watch showed a binding, the 99th percentile; nan if unknown."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A scheduler: the form of its gangs, and which users it is in the audit log."""

    name: str
    form: Form
    users: frozenset[str]
    components: tuple[str, ...] = ()  # of the control plane; none for Tutti and the loop

    def start(
        self,
        plane: ControlPlane,
        *,
        ready: bool = True,
        ends_pods: bool = False,
        fills_nodes: bool = False,
    ) -> Running:
        """Start it, and wait until it is ready unless told otherwise.

        Only Tutti has to be told that it may end pods, and only Kueue that nodes may be full.
        """
        if self.name == BIND_LOOP:
            return bind_loop.BindLoop(plane)
        if self.components:
            return _Component(plane, self.components, ready=ready, fills_nodes=fills_nodes)
        return _Operator(plane, _ENDS_PODS if ends_pods else {}, ready=ready)


# Pods end without the caps on harm, which other schedulers do not have.
_ENDS_PODS = {
    "TUTTI_PREEMPTION": "Full",
    "TUTTI_EVICTIONS_PER_CYCLE": "0",
    "TUTTI_EVICTIONS_PER_HOUR": "0",
}
_KUBE_SCHEDULER = frozenset({"system:kube-scheduler"})
CONTENDERS: Mapping[str, Contender] = {
    each.name: each
    for each in (
        Contender(TUTTI, Form.TUTTI, frozenset({operator_process.USER})),
        Contender(PLAIN, Form.PLAIN, _KUBE_SCHEDULER, ("scheduler",)),
        Contender(NATIVE, Form.NATIVE, _KUBE_SCHEDULER, ("scheduler", "native-gang")),
        Contender(COSCHEDULING, Form.COSCHEDULING, frozenset({"coscheduling"}), ("coscheduling",)),
        Contender(
            VOLCANO,
            Form.VOLCANO,
            frozenset({"vc-scheduler", "vc-controller-manager"}),
            ("volcano-scheduler",),
        ),
        # It lets pods go, and kube-scheduler places them: both count.
        Contender(KUEUE, Form.KUEUE, _KUBE_SCHEDULER | {"kueue"}, ("scheduler", "kueue")),
        Contender(BIND_LOOP, Form.PLAIN, frozenset({bind_loop.USER})),
    )
}


class _Operator:
    """`tutti run` with the chart's rights."""

    def __init__(self, plane: ControlPlane, environment: Mapping[str, str], *, ready: bool) -> None:
        self._operator = OperatorProcess(plane, environment=environment)
        self._operator.start(ready=ready)

    @property
    def pids(self) -> Sequence[int]:
        assert self._operator.process is not None
        return (self._operator.process.pid,)

    def stop(self) -> None:
        self._operator.stop()

    def watch_delay(self) -> float:
        return quantile(self._operator.probe("metrics"), "tutti_watch_delay_seconds", 0.99)


class _Component:
    """A scheduler that the control plane knows."""

    def __init__(
        self, plane: ControlPlane, names: tuple[str, ...], *, ready: bool, fills_nodes: bool
    ) -> None:
        self._plane = plane
        before = len(plane.processes)
        plane.add(*names, ready=ready)
        self._queue = tuple(_kueue_queue(by_node=fills_nodes)) if KUEUE in names else ()
        plane.apply(self._queue)
        self._processes: Sequence[Process] = plane.processes[before:]

    @property
    def pids(self) -> Sequence[int]:
        return tuple(process.pid for process in self._processes)

    def stop(self) -> None:
        # The API server refuses pods while a webhook of theirs does not answer.
        for kind in ("mutating", "validating"):
            self._plane.request("DELETE", f"{_ADMISSION}/{kind}webhookconfigurations")
        for process in self._processes:
            self._plane.remove(process)
        # Kueue's next start reads them in a version to which Kueue alone can convert them.
        for manifest in self._queue:
            path = f"{collection(manifest)}/{manifest['metadata']['name']}"
            self._plane.request("PATCH", path, NO_FINALIZERS)
            self._plane.request("DELETE", path)

    def watch_delay(self) -> float:
        return math.nan


def _kueue_queue(*, by_node: bool) -> Iterator[Mapping[str, Any]]:
    """The queue of the pods, whose quota never ends.

    By node, Kueue lets a gang go once nodes have room for all its pods (topology-aware scheduling).
    """
    api = "kueue.x-k8s.io/v1beta2"
    covered = ("cpu", "memory", "nvidia.com/gpu")
    flavor = {
        "name": "any",
        "resources": [{"name": name, "nominalQuota": "1P"} for name in covered],
    }
    group = {"coveredResources": covered, "flavors": [flavor]}
    nodes = {"nodeLabels": {"kubernetes.io/os": "linux"}, "topologyName": "nodes"}
    levels = {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}
    for kind, metadata, spec in (
        *([("Topology", {"name": "nodes"}, levels)] if by_node else []),
        ("ResourceFlavor", {"name": "any"}, nodes if by_node else {}),
        ("ClusterQueue", {"name": "all"}, {"namespaceSelector": {}, "resourceGroups": [group]}),
        (
            "LocalQueue",
            {"name": KUEUE_QUEUE_NAME, "namespace": NAMESPACE},
            {"clusterQueue": "all"},
        ),
    ):
        yield {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def quantile(text: str, name: str, share: float) -> float:
    """The upper bound of the bucket in which this share of a histogram ends; nan for none."""
    samples = [
        (float(sample.labels["le"]), sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == f"{name}_bucket"
    ]
    most = max((count for _, count in samples), default=0.0)
    ends = (bound for bound, count in sorted(samples) if count >= share * most)
    return next(ends) if most else math.nan
