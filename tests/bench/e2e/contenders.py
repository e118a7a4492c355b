"""The schedulers that are compared, each as one process beside the same API server."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from prometheus_client.parser import text_string_to_metric_families

from ...harness import operator_process
from ...harness.operator_process import OperatorProcess
from ..load.gangs import Form

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...harness.controlplane.cluster import ControlPlane
    from ...harness.controlplane.processes import Process

TUTTI = "tutti"
PLAIN = "kube-scheduler"
NATIVE = "native-gangs"
COSCHEDULING = "coscheduling"


class Running(Protocol):
    """A scheduler at work."""

    @property
    def pid(self) -> int:
        """Its process."""

    def stop(self) -> None:
        """End it."""

    def watch_delay(self) -> float:
        """Seconds until the watch showed a binding, the 99th percentile; nan if unknown."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A scheduler: the form of its gangs, and who it is in the audit log."""

    name: str
    form: Form
    user: str
    components: tuple[str, ...] = ()  # of the control plane; none for Tutti

    def start(self, plane: ControlPlane, *, ready: bool = True) -> Running:
        """Start it, and wait until it is ready unless told otherwise."""
        if self.components:
            return _Component(plane, self.components, ready=ready)
        return _Operator(plane, ready=ready)


CONTENDERS: Mapping[str, Contender] = {
    each.name: each
    for each in (
        Contender(TUTTI, Form.TUTTI, operator_process.USER),
        Contender(PLAIN, Form.PLAIN, "system:kube-scheduler", ("scheduler",)),
        Contender(NATIVE, Form.NATIVE, "system:kube-scheduler", ("scheduler", "native-gang")),
        Contender(COSCHEDULING, Form.COSCHEDULING, "coscheduling", ("coscheduling",)),
    )
}


class _Operator:
    """`tutti run` with the chart's rights."""

    def __init__(self, plane: ControlPlane, *, ready: bool) -> None:
        self._operator = OperatorProcess(plane)
        self._operator.start(ready=ready)

    @property
    def pid(self) -> int:
        assert self._operator.process is not None
        return self._operator.process.pid

    def stop(self) -> None:
        self._operator.stop()

    def watch_delay(self) -> float:
        return quantile(self._operator.probe("metrics"), "tutti_watch_delay_seconds", 0.99)


class _Component:
    """A scheduler that the control plane knows."""

    def __init__(self, plane: ControlPlane, names: tuple[str, ...], *, ready: bool) -> None:
        self._plane = plane
        self._process: Process = plane.add(*names, ready=ready)

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        self._plane.remove(self._process)

    def watch_delay(self) -> float:
        return math.nan


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
