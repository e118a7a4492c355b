"""One run: the load, until all of it is over; then the judge counts."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...harness.judge import Promise, Verdict, read_audit
from ...harness.judge.audit import binders
from ...harness.kubelet import Kubelet
from ...harness.operator_process import USER
from ...harness.rig import Rig
from . import kubescheduler
from .load import NAMESPACE, ORDINARY, OWN, SHARED, TAINT, Load

if TYPE_CHECKING:
    from collections.abc import Iterator

SECOND = "second"
PATIENCE = 900.0
OVER = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run came to."""

    name: str  # of the gangs' scheduler
    bindings: int  # by the gangs' scheduler
    ordinary: int  # bindings by the other one
    by_gangs: int  # over-commits by the gangs' scheduler; Tutti's, by what it had not seen
    by_ordinary: int  # over-commits by the other one, where the gangs have pods
    visible: int | None  # over-commits by Tutti onto what it had seen; None: nobody can tell
    rejected: int  # pods that the kubelets turned away
    seconds: float

    def __str__(self) -> str:
        """Say it in a line."""
        return (
            f"{self.name}: {self.bindings} bindings beside {self.ordinary} of kube-scheduler, "
            f"{self.by_gangs} collisions by it and {self.by_ordinary} by kube-scheduler, "
            f"{'?' if self.visible is None else self.visible} onto room seen taken: "
            f"{self.per_thousand:.1f} per 1,000; "
            f"{self.rejected} pods turned away by kubelets, {self.seconds:.0f} s"
        )

    @property
    def per_thousand(self) -> float:
        """Over-commits per thousand bindings of both."""
        found = self.by_gangs + self.by_ordinary + (self.visible or 0)
        return 1000 * found / max(1, self.bindings + self.ordinary)


@dataclass(slots=True)
class Run:
    """A cluster under load, and the verdict on it afterwards."""

    rig: Rig
    kubelet: Kubelet
    load: Load
    scheduler: str
    user: str
    verdict: Verdict | None = None
    seconds: float = 0.0

    def play(self) -> None:
        """Create all of the load at once and wait until every pod of it has ended."""
        began = time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            gangs = pool.submit(self.rig.create, *self.load.gang_objects(self.scheduler))
            self.rig.create(*self.load.ordinary_pods())
            gangs.result()
        self.rig.until(self._is_over, "all that was asked for has run", PATIENCE)
        self.seconds = time.monotonic() - began

    def judge(self) -> Figures:
        """Count what the gangs' scheduler did; nothing that happens later is seen."""
        verdict = self.verdict = self.rig.verdict(self.user, self.scheduler)
        bound = binders(read_audit(self.rig.plane.audit_log))
        ordinary = sum(entry.user != self.user for entries in bound.values() for entry in entries)
        mine = f"was bound by {self.user} "
        by_gangs = sum(mine in collision.sentence for collision in verdict.collisions)
        by_ordinary = len(verdict.collisions) - by_gangs
        visible: int | None = len(verdict.of(Promise.CAPACITY))
        if not self.rig.shares_nodes:  # the judge takes it that the scheduler had seen all
            by_gangs, visible = by_gangs + len(verdict.of(Promise.CAPACITY)), None
        return Figures(
            name=self.scheduler,
            bindings=verdict.bindings,
            ordinary=ordinary,
            by_gangs=by_gangs,
            by_ordinary=by_ordinary,
            visible=visible,
            rejected=len(self.kubelet.rejected),
            seconds=self.seconds,
        )

    def completed(self) -> int:
        """How many Jobs have run to their end."""
        path = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
        jobs: list[dict[str, Any]] = self.rig.plane.request("GET", path)["items"]
        return sum("completionTime" in job["status"] for job in jobs)

    def phases(self) -> set[str]:
        """What the PodGroups have come to."""
        path = f"/apis/tutti.dev/v1alpha1/namespaces/{NAMESPACE}/podgroups"
        groups: list[dict[str, Any]] = self.rig.plane.request("GET", path)["items"]
        return {group.get("status", {}).get("phase", "") for group in groups}

    def _is_over(self) -> bool:
        if self.completed() < len(self.load.names()):
            return False
        pods = self.rig.pods(namespace=NAMESPACE)
        return all(pod["status"]["phase"] in OVER for pod in pods)


@contextmanager
def _cluster(load: Load, *, operator: bool) -> Iterator[tuple[Rig, Kubelet]]:
    environment = {"TUTTI_LOG_LEVEL": "debug"}
    with Rig.start("controller-manager", operator=False, environment=environment) as rig:
        rig.shares_nodes = operator
        kubescheduler.start(rig.plane, ORDINARY)
        with Kubelet(rig.plane) as kubelet:
            about = {"cpu": load.cpus, "memory": "64Gi"}
            names = kubelet.nodes(load.nodes, SHARED, labels={"pool": SHARED}, **about)
            names += kubelet.nodes(load.nodes, OWN, labels={"pool": OWN}, taints=(TAINT,), **about)
            if operator:
                rig.operator.start()
            yield rig, kubelet


@contextmanager
def beside_tutti(load: Load) -> Iterator[Run]:
    """Tutti starts the gangs."""
    with _cluster(load, operator=True) as (rig, kubelet):
        yield Run(rig, kubelet, load, "tutti", USER)


@contextmanager
def two_kube_schedulers(load: Load) -> Iterator[Run]:
    """A second kube-scheduler starts the same pods, one by one."""
    with _cluster(load, operator=False) as (rig, kubelet):
        kubescheduler.start(rig.plane, SECOND)
        yield Run(rig, kubelet, load, SECOND, kubescheduler.user_of(SECOND))
