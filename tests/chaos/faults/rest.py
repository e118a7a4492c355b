"""What stands in the cluster when nothing moves any more, for comparing two ends."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import claims, domains, foreign, jobs, preempting, queued
from .scenario import STARTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

CONDITIONS = ("Reserved", "Bound", "Healthy")
_STARTED_IN_QUEUES = {**STARTED, "brief": 1}


@dataclass(frozen=True, slots=True)
class Rest:
    """What has started, what is said about it, and what is still promised."""

    bound: frozenset[str]  # pods with a node, by name, where an unbroken run tells which
    started: Mapping[str, int]  # members that are bound or have succeeded, by gang
    value: Mapping[int, Mapping[str, int]]  # cores and GPUs of those, by priority
    said: Mapping[str, str]  # of each PodGroup and each waiting pod
    reservations: int

    @property
    def is_promised(self) -> bool:
        """Whether it is an end that an unbroken run can reach."""
        scenes = (queued, preempting, jobs)
        charged = [item for scene in scenes for item in scene.CHARGED.items()]
        is_said = all(amount in self.said.get(name, amount) for name, amount in charged)
        if self.started.keys() == claims.STARTED.keys():
            is_said = claims.HELD.items() <= self.said.items()
        if self.started.keys() == jobs.STARTED.keys():
            is_said = is_said and jobs.KEPT.items() <= self.said.items()
        is_gone = queued.GONE not in self.said
        gangs = (preempting, domains, claims, jobs)
        ends = (STARTED, _STARTED_IN_QUEUES, *(scene.STARTED for scene in gangs))
        is_started = self.started in ends
        return is_started and not self.reservations and is_said and is_gone

    def difference(self, other: Rest) -> str:
        """What is not as it is in the other, in words; empty where they are alike."""
        parts = [
            *_changes("members started", self.started, other.started),
            *_changes("value at priority", self.value, other.value),
            *_changes("said of", self.said, other.said),
        ]
        if self.reservations != other.reservations:
            parts.append(f"{self.reservations} Reservations stand")
        return "; ".join(parts)


def look(
    request: Callable[..., Any],
    namespace: str,
    *,
    is_foreign: bool = False,
    is_queued: bool = False,
    is_preempting: bool = False,
    has_domains: bool = False,
    has_claims: bool = False,
    has_jobs: bool = False,
) -> Rest:
    """Read it from the API server."""
    gangs = _STARTED_IN_QUEUES if is_queued else STARTED
    gangs = preempting.STARTED if is_preempting else gangs
    gangs = domains.STARTED if has_domains else gangs
    gangs = claims.STARTED if has_claims else gangs
    gangs = jobs.STARTED if has_jobs else gangs
    pods = request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    ours = f"/apis/tutti.dev/v1alpha1/namespaces/{namespace}"
    groups = request("GET", f"{ours}/podgroups")["items"]
    paths = [
        f"/apis/{version}/namespaces/{namespace}/podgroups"
        for version in (foreign.KUBERNETES, foreign.VOLCANO)
        if is_foreign
    ]
    foreigners = [group for path in paths for group in request("GET", path)["items"]]
    started = [pod for pod in pods if _has_started(pod)]
    counts = Counter(_gang(each) for each in started)
    said = {each["metadata"]["name"]: _said(each) for each in groups}
    said |= {foreigner["metadata"]["name"]: foreign.said(foreigner) for foreigner in foreigners}
    said |= {_name(pod): _why(pod) for pod in pods if "nodeName" not in pod["spec"]}
    said |= queued.said(request, namespace) if is_queued or is_preempting or has_jobs else {}
    said |= claims.said(request, namespace) if has_claims else {}
    said |= jobs.said(request, namespace) if has_jobs else {}
    held = request("GET", f"{ours}/reservations")["items"]
    bound = [pod for pod in pods if "nodeName" in pod["spec"]]
    if has_domains:
        bound = [pod for pod in bound if _gang(pod) != domains.VARYING]
    return Rest(
        bound=frozenset(map(_name, bound)),
        started={gang: counts[gang] for gang in gangs},
        value=_value(started),
        said=said,
        reservations=sum(_holds_room(each) for each in held),
    )


def _holds_room(reservation: Mapping[str, Any]) -> bool:
    """Whether it is more than the record of a start."""
    spec = reservation["spec"]
    return "queue" not in spec or bool(spec.get("placement") or spec.get("evict"))


def _name(pod: Mapping[str, Any]) -> str:
    return jobs.name_of(pod)


def _gang(pod: Mapping[str, Any]) -> str:
    return foreign.gang(pod) or _name(pod)


def _has_started(pod: Mapping[str, Any]) -> bool:
    return "nodeName" in pod["spec"] and pod["status"]["phase"] != "Failed"


def _value(pods: Iterable[Mapping[str, Any]]) -> dict[int, dict[str, int]]:
    value: dict[int, Counter[str]] = {}
    for pod in pods:
        at = value.setdefault(pod["spec"].get("priority", 0), Counter())
        for container in pod["spec"]["containers"]:
            for resource, amount in container["resources"]["requests"].items():
                at[resource] += int(amount)
    return {priority: dict(sorted(amounts.items())) for priority, amounts in value.items()}


def _said(group: Mapping[str, Any]) -> str:
    status = group.get("status", {})
    lines = {line["type"]: line for line in status.get("conditions", ())}
    words = [
        f"{kind}={lines[kind]['status']}/{lines[kind]['reason']}"
        for kind in CONDITIONS
        if kind in lines
    ]
    counts = status.get("members", {})
    return " ".join([str(status.get("phase")), *words, *(f"{k}:{v}" for k, v in counts.items())])


def _why(pod: Mapping[str, Any]) -> str:
    lines = pod["status"].get("conditions", ())
    return next((line["reason"] for line in lines if line["type"] == "PodScheduled"), "")


def _changes(title: str, here: Mapping[Any, object], there: Mapping[Any, object]) -> list[str]:
    return [
        f"{title} {key}: {here.get(key)} instead of {there.get(key)}"
        for key in sorted({*here, *there})
        if here.get(key) != there.get(key)
    ]
