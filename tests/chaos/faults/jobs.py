"""The scene in which gangs of real Jobs and with real PodDisruptionBudgets borrow.

Once all of them run, what protects two of them is tightened: the budget of ``kept`` allows the
eviction of one pod of two, and the Job ``brittle`` tolerates one more failure. Then a gang comes
that a guarantee covers. Each of the two would be the cheapest victim, but only ``batch`` may end:
its budget counts every eviction down, and its Job makes each pod again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ...harness.controlplane.nodes import node_manifest
from ...harness.rig import pod, pod_group
from .preempting import Scene, queue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .rest import Rest

FIRST: Mapping[str, int] = {"batch": 2, "kept": 2, "brittle": 2}
CORES: Mapping[str, int] = {"batch": 4, "kept": 1, "brittle": 1}  # of each pod: what its end costs
# The work of a gang is its cores times the whole seconds that it has run. So after this time the
# work of ``batch`` is the most, even if it began a second later than the others.
RUN_SECONDS = 2.0
# What an unbroken run starts.
STARTED: Mapping[str, int] = {"batch": 0, "kept": 2, "brittle": 2, "entitled": 2}
CHARGED: Mapping[str, str] = {"queue -law": "cpu 2", "queue -loan": "cpu 4"}
# What is left: evictions that budgets allow, and failures that Jobs have counted.
KEPT: Mapping[str, str] = {
    "budget of kept": "allows 1",
    "budget of batch": "allows 0",
    "Job batch": "2 failed",
    "Job brittle": "0 failed",
}
AGAIN = tuple(f"batch-{index}" for index in range(FIRST["batch"]))  # made by the Job
BUDGETS = "/apis/policy/v1/namespaces/{}/poddisruptionbudgets"
JOBS = "/apis/batch/v1/namespaces/{}/jobs"
PODS = "/api/v1/namespaces/{}/pods"
MADE_SECONDS = 20.0
_JOB_LABEL = "batch.kubernetes.io/job-name"
_INDEX_LABEL = "batch.kubernetes.io/job-completion-index"


def nodes() -> list[dict[str, Any]]:
    """The room that is borrowed: all of it."""
    return [node_manifest("lent", memory="16Gi", labels={"pool": "lent"}, cpu=12)]


def objects(namespace: str) -> list[dict[str, Any]]:
    """All that waits when the operator starts; the Jobs make their pods."""
    scene = Scene(namespace)
    groups = [pod_group(name, n, namespace=namespace) for name, n in FIRST.items()]
    for group in groups:
        group["spec"]["queue"] = f"{namespace}-loan"
    return [
        queue(namespace, "law", {"cpu": 2}),
        queue(namespace, "loan", {}),
        *(_budget(namespace, name) for name in ("batch", "kept")),
        *groups,
        *(_job(namespace, name) for name in ("batch", "brittle")),
        *scene.pods("kept", "lent", FIRST["kept"]),
    ]


def _budget(namespace: str, gang: str) -> dict[str, Any]:
    """A budget that allows the eviction of all pods of a gang."""
    selector = {"matchLabels": {"tutti.dev/pod-group": gang}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": gang, "namespace": namespace},
        "spec": {"minAvailable": 0, "selector": selector},
    }


def _job(namespace: str, gang: str) -> dict[str, Any]:
    """A Job that tolerates the eviction of all of its pods.

    After two failures the Job controller waits 20 s before it makes the pods again, and each more
    would double that.
    """
    about = {"nodeSelector": {"pool": "lent"}, "restartPolicy": "Never"}
    template = pod("any", gang, namespace=namespace, spec=about, cpu=CORES[gang])
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": gang, "namespace": namespace},
        "spec": {
            "completionMode": "Indexed",
            "completions": FIRST[gang],
            "parallelism": FIRST[gang],
            "backoffLimit": 6,
            "template": {
                "metadata": {"labels": template["metadata"]["labels"]},
                "spec": template["spec"],
            },
        },
    }


def addresses(namespace: str) -> dict[str, str]:
    """Where objects of the kinds of this scene are created."""
    return {"PodDisruptionBudget": BUDGETS.format(namespace), "Job": JOBS.format(namespace)}


def await_pods(request: Callable[..., Any], namespace: str) -> None:
    """Wait until the Jobs have made their pods, and the budgets know theirs."""
    _until(
        lambda: (
            len(_items(request, PODS, namespace)) == sum(FIRST.values())
            and all(
                item.get("status", {}).get("expectedPods") == FIRST[item["metadata"]["name"]]
                for item in _items(request, BUDGETS, namespace)
            )
        ),
        "the pods of Jobs are not made, or budgets do not know them",
    )


def remove(request: Callable[..., Any], namespace: str) -> None:
    """Delete the Jobs and budgets of a run, and wait until all pods have gone."""
    request("DELETE", BUDGETS.format(namespace))
    request("DELETE", JOBS.format(namespace) + "?propagationPolicy=Background")

    def is_empty() -> bool:
        request("DELETE", PODS.format(namespace) + "?gracePeriodSeconds=0")
        return not any(_items(request, path, namespace) for path in (JOBS, PODS))

    _until(is_empty, "pods of a Job that was deleted are left")


def _items(request: Callable[..., Any], path: str, namespace: str) -> list[dict[str, Any]]:
    return list(request("GET", path.format(namespace))["items"])


def _until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + MADE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def name_of(pod: Mapping[str, Any]) -> str:
    """The name of a pod; of a Job's, whose names end at random, the Job and the index."""
    labels = pod["metadata"].get("labels", {})
    if _JOB_LABEL in labels and _INDEX_LABEL in labels:
        return f"{labels[_JOB_LABEL]}-{labels[_INDEX_LABEL]}"
    return str(pod["metadata"]["name"])


def said(request: Callable[..., Any], namespace: str) -> dict[str, str]:
    """What the budgets allow, and what the Jobs have counted."""
    lines = {
        f"budget of {item['metadata']['name']}": f"allows {item['status']['disruptionsAllowed']}"
        for item in _items(request, BUDGETS, namespace)
    }
    for item in _items(request, JOBS, namespace):
        status = item.get("status", {})
        ends = [line["type"] for line in status.get("conditions", ()) if line["status"] == "True"]
        words = [f"{status.get('failed', 0)} failed", *ends]
        lines[f"Job {item['metadata']['name']}"] = ", ".join(words)
    return lines


class Story:
    """What others do: protections are tightened once gangs borrow, and then the claimant comes."""

    def __init__(self, request: Callable[..., Any], namespace: str) -> None:
        self._request = request
        self._namespace = namespace
        self._tightened_at: float | None = None
        self._has_claimant = False
        self.is_over = False  # whether nothing more will happen

    def retry(self, rest: Rest) -> None:
        """Do the next thing, if it is time."""
        if self._tightened_at is None:
            if FIRST.items() <= rest.started.items() and rest.said["budget of batch"] == "allows 2":
                self._tighten()
        elif not self._has_claimant:
            # Its controller has seen the change: before, the API server would allow two evictions.
            has_run = time.monotonic() - self._tightened_at >= RUN_SECONDS
            if has_run and rest.said["budget of kept"] == "allows 1":
                self._claim()
        else:
            self.is_over = rest.started == STARTED and all(name in rest.said for name in AGAIN)

    def _tighten(self) -> None:
        self._change(BUDGETS, "kept", minAvailable=1)
        self._change(JOBS, "brittle", backoffLimit=1)
        self._tightened_at = time.monotonic()

    def _claim(self) -> None:
        groups = f"/apis/tutti.dev/v1alpha1/namespaces/{self._namespace}/podgroups"
        group, *pods = Scene(self._namespace).gang("entitled", "law", "lent", 2)
        self._request("POST", groups, group)
        for one in pods:
            self._request("POST", PODS.format(self._namespace), one)
        self._has_claimant = True

    def _change(self, path: str, name: str, **spec: Any) -> None:
        self._request("PATCH", f"{path.format(self._namespace)}/{name}", {"spec": spec})
