"""The scene in which gangs end so that others start: by a guarantee, and by priority.

Two queues guarantee all that two pools of nodes have. Gangs of one borrow what the other
guarantees: a whole gang, and members beyond those that an elastic gang needs. Then the other queue
wants its own. In a third queue, which guarantees nothing, a gang makes way for a higher priority.
In a fourth, it does so because of the limit of the queue alone: its nodes have room for both.
Only one set of victims suffices for each claimant, so that every order of events has one end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...harness.controlplane.nodes import node_manifest
from ...harness.rig import members, pod, pod_group

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .rest import Rest

GPU = "nvidia.com/gpu"
URGENT = "urgent"
# What has started before the claimants come, and in the end.
BORROWED: Mapping[str, int] = {"own": 2, "borrows": 4, "elastic": 6, "low": 3, "under": 2}
STARTED: Mapping[str, int] = {
    "own": 2,
    "borrows": 0,
    "elastic": 2,
    "low": 0,
    "under": 0,
    "claims": 4,
    "takes": 4,
    "high": 2,
    "alone": 1,
    "over": 2,
}
# What the status of each queue says in the end; it is written a while after the last binding.
CHARGED: Mapping[str, str] = {
    "queue -nlp": "cpu 4",
    "queue -vision": "cpu 8",
    "queue -spare": "cpu 3",
    "queue -capped": "cpu 2",
}
VALUE = "settings.preemption=Full"
ENVIRONMENT = {"TUTTI_PREEMPTION": "Full"}
GUARANTEES: Mapping[str, Mapping[str, int]] = {
    "nlp": {"cpu": 4, GPU: 2},
    "vision": {"cpu": 8, GPU: 4},
    "spare": {},
}
CAPPED: Mapping[str, int] = {"cpu": 2}


def nodes() -> list[dict[str, Any]]:
    """The room of the third queue and of the fourth."""
    return [
        node_manifest(name, memory="16Gi", labels={"pool": name}, cpu=cpu)
        for name, cpu in (("more", 3), ("wide", 6))
    ]


def queue(
    namespace: str,
    name: str,
    guaranteed: Mapping[str, int],
    limits: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """A Queue of a run, named by its namespace; one without any quota is the default."""
    ours = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    return {
        "apiVersion": "tutti.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": f"{namespace}-{name}"},
        "spec": {
            "namespaces": ours,
            **({} if guaranteed or limits else {"defaultFor": ours}),
            "resources": [
                *({"name": key, "guaranteed": n} for key, n in guaranteed.items()),
                *({"name": key, "limit": n} for key, n in (limits or {}).items()),
            ],
        },
    }


class Scene:
    """The manifests of one namespace."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace

    def gang(
        self,
        name: str,
        queue: str,
        pool: str,
        n: int,
        *,
        least: int = 0,
        gpu: int = 0,
        spec: Mapping[str, Any] | None = None,
    ) -> list[dict[str, Any]]:
        """A PodGroup in its queue, and pods of one core."""
        group = pod_group(name, least or n, namespace=self._namespace)
        group["spec"]["queue"] = f"{self._namespace}-{queue}"
        return [group, *self.pods(name, pool, n, gpu=gpu, spec=spec)]

    def pods(
        self, name: str, pool: str, n: int, *, gpu: int = 0, spec: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Pods of one core."""
        about: dict[str, Any] = {"cpu": 1, **({"gpu": gpu} if gpu else {})}
        where = {"nodeSelector": {"pool": pool}, **(spec or {})}
        return members(name, n, namespace=self._namespace, spec=where, **about)


def objects(namespace: str) -> list[dict[str, Any]]:
    """All that waits when the operator starts."""
    scene = Scene(namespace)
    return [
        *(queue(namespace, name, quotas) for name, quotas in GUARANTEES.items()),
        queue(namespace, "capped", {}, CAPPED),
        *scene.gang("own", "nlp", "gpu", 2, gpu=1),
        *scene.gang("borrows", "nlp", "gpu", 4, gpu=1),
        *scene.gang("elastic", "nlp", "plain", 6, least=2),
        *scene.gang("low", "spare", "more", 3),
        *scene.gang("under", "capped", "wide", 2),
    ]


class Story:
    """What others do: claimants come once gangs borrow, and a victim returns once they run."""

    def __init__(self, request: Callable[..., Any], namespace: str) -> None:
        self._request = request
        self._namespace = namespace
        self._scene = Scene(namespace)
        self._has_claimants = False
        self.is_over = False  # whether nothing more will happen

    def retry(self, rest: Rest) -> None:
        """Do the next thing, if it is time."""
        if not self._has_claimants and BORROWED.items() <= rest.started.items():
            urgent = {"priorityClassName": URGENT}
            self._create(*self._scene.gang("claims", "vision", "gpu", 4, gpu=1))
            self._create(*self._scene.gang("takes", "vision", "plain", 4))
            self._create(*self._scene.gang("high", "spare", "more", 2, spec=urgent))
            self._create(*self._scene.gang("over", "capped", "wide", 2, spec=urgent))
            where = {"nodeSelector": {"pool": "more"}, **urgent}
            self._create(pod("alone", namespace=self._namespace, spec=where, cpu=1))
            self._has_claimants = True
        elif self._has_claimants and not self.is_over and rest.started == STARTED:
            self._create(*self._scene.pods("borrows", "gpu", 4, gpu=1))
            self.is_over = True

    def _create(self, *items: dict[str, Any]) -> None:
        spaces = {
            "Pod": f"/api/v1/namespaces/{self._namespace}/pods",
            "PodGroup": f"/apis/tutti.dev/v1alpha1/namespaces/{self._namespace}/podgroups",
        }
        for item in items:
            self._request("POST", spaces[item["kind"]], item)
