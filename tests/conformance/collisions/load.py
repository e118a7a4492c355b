"""The pods of one run: gangs as Jobs for one scheduler, ordinary pods for kube-scheduler."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...harness.rig import GROUP_LABEL, pod, pod_group

if TYPE_CHECKING:
    from collections.abc import Iterator

ORDINARY = "ordinary"  # kube-scheduler's name here
NAMESPACE = "ml"
SHARED, OWN = "shared", "own"  # the pools: everybody's, and that of the gangs' scheduler alone
TAINT = {"key": "gangs-only", "value": "true", "effect": "NoSchedule"}
CPUS = (1, 2, 3, 4)
BACKOFF_LIMIT = 50


@dataclass(frozen=True, slots=True)
class Load:
    """How much is asked for; the same seed asks for the same."""

    gangs: int = 30
    members: int = 8
    ordinary: int = 240
    nodes: int = 6  # of each pool
    cpus: int = 32  # of each node
    own_gangs: int = 15
    run_seconds: int = 2
    seed: int = 7

    def names(self) -> list[str]:
        """The gangs, those on nodes of their own too."""
        return [name for name, _ in self._pools()]

    def gang_objects(self, scheduler: str) -> Iterator[dict[str, Any]]:
        """PodGroups and Jobs; for a scheduler without gangs the PodGroups mean nothing."""
        yield from (pod_group(name, self.members, namespace=NAMESPACE) for name in self.names())
        sizes = random.Random(self.seed)
        for name, pool in self._pools():
            yield self._job(name, pool, scheduler, sizes.choice(CPUS))

    def ordinary_pods(self) -> Iterator[dict[str, Any]]:
        """Pods for kube-scheduler, which only the shared nodes take."""
        sizes = random.Random(self.seed + 1)
        for i in range(self.ordinary):
            yield pod(
                f"{ORDINARY}-{i:04}",
                namespace=NAMESPACE,
                scheduler=ORDINARY,
                run_seconds=self.run_seconds,
                cpu=sizes.choice(CPUS),
            )

    def _pools(self) -> Iterator[tuple[str, str]]:
        """Each gang with its pool, mixed."""
        gangs = [(f"{SHARED}-{i:03}", SHARED) for i in range(self.gangs)]
        gangs += [(f"{OWN}-{i:03}", OWN) for i in range(self.own_gangs)]
        random.Random(self.seed).shuffle(gangs)
        yield from gangs

    def _job(self, name: str, pool: str, scheduler: str, cpu: int) -> dict[str, Any]:
        member = pod(name, scheduler=scheduler, run_seconds=self.run_seconds, cpu=cpu)
        spec = {**member["spec"], "restartPolicy": "Never", "nodeSelector": {"pool": pool}}
        if pool == OWN:
            spec["tolerations"] = [{**TAINT, "operator": "Equal"}]
        template = {
            "metadata": {
                "labels": {GROUP_LABEL: name},
                "annotations": member["metadata"]["annotations"],
            },
            "spec": spec,
        }
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "parallelism": self.members,
                "completions": self.members,
                # Whom a kubelet turns away often must not slow its siblings down, nor end the Job.
                "completionMode": "Indexed",
                "backoffLimitPerIndex": BACKOFF_LIMIT,
                "template": template,
            },
        }
