"""The operator's own figures, from the metrics of its pods: cycles, their stages, plans and proofs.

The API server proxies the metrics of a pod (``pods/proxy``), so the user's rights are enough.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ..kube import errors
from ..kube.calls import Right
from .observation import Record, WrongQuestion

SELECTOR = "app.kubernetes.io/name=tutti"  # the pods of the chart's Deployment
PORT = "probes"
LIST_PODS, GET_PROXY = Right("", "pods", "list"), Right("", "pods/proxy", "get")
MOST_PODS = 5
FORBIDDEN = 403
LINE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
MOST_OF_THEM = 0.95  # share of the times of a stage


class Reader(Protocol):
    """Reads any path of the API server."""

    async def get(self, right: Right, path: str, query: Mapping[str, str] | None = None) -> bytes:
        """The body of the response; raises ``errors.ApiError``."""


class Sample(NamedTuple):
    """A line of Prometheus' text format."""

    name: str
    labels: Mapping[str, str]
    value: float


async def read(api: Reader, namespace: str) -> Sequence[Record]:
    """The figures of every replica, of the whole cluster or else of this namespace.

    Raises:
        WrongQuestion: the pods cannot be listed.
    """
    try:
        pods = await _pods(api, namespace)
    except errors.ApiError as problem:
        raise WrongQuestion(f"The operator's pods cannot be listed: {problem}") from problem
    return [await _replica(api, pod) for pod in pods[:MOST_PODS]]


async def _pods(api: Reader, namespace: str) -> Sequence[Any]:
    query = {"labelSelector": SELECTOR}
    try:
        body = await api.get(LIST_PODS, LIST_PODS.path(), query)
    except errors.ApiError as problem:
        if problem.status != FORBIDDEN:
            raise
        body = await api.get(LIST_PODS, LIST_PODS.path(namespace), query)
    pods = json.loads(body).get("items") or ()
    return [pod for pod in pods if pod.get("status", {}).get("phase") == "Running"]


async def _replica(api: Reader, pod: Any) -> Record:
    """The figures of a pod; or why there are none, and the right that is missing."""
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    ports = [
        port["containerPort"]
        for container in pod["spec"]["containers"]
        for port in container.get("ports") or ()
        if port.get("name") == PORT
    ]
    record = {"pod": f"{namespace}/{name}", "figures": None, "problem": "", "right": ""}
    if not ports:
        return {**record, "problem": f"The pod has no port named {PORT}."}
    try:
        body = await api.get(
            GET_PROXY, GET_PROXY.path(namespace, f"{name}:{ports[0]}") + "/metrics"
        )
    except errors.ApiError as problem:
        right = f"get pods/proxy in namespace {namespace}" if problem.status == FORBIDDEN else ""
        return {**record, "problem": str(problem), "right": right}
    return {**record, "figures": figures(body.decode(errors="replace"))}


def figures(text: str) -> Record:
    """The figures of cycles and plans in the metrics of a replica."""
    samples: dict[str, list[Sample]] = defaultdict(list)
    for sample in _samples(text):
        samples[sample.name].append(sample)

    def by_label(name: str, label: str) -> Mapping[str, float]:
        known = (sample for sample in samples[name] if math.isfinite(sample.value))
        return {sample.labels.get(label, ""): sample.value for sample in known}

    def number(name: str) -> float | None:
        return next((s.value for s in samples[name] if math.isfinite(s.value)), None)

    times = by_label("tutti_cycle_stage_seconds_count", "stage")
    seconds = by_label("tutti_cycle_stage_seconds_sum", "stage")
    modes = by_label("tutti_mode", "mode")
    return {
        "leads": number("tutti_lease_held") == 1,
        "mode": next((mode for mode, value in modes.items() if value == 1), ""),
        "cycles": by_label("tutti_cycles_total", "result"),
        "plans": by_label("tutti_plans_total", "outcome"),
        "gap": number("tutti_plan_gap_ratio"),
        "stages": [
            {
                "stage": stage,
                "times": n,
                "seconds": seconds.get(stage, 0.0),
                "within": _within(samples["tutti_cycle_stage_seconds_bucket"], stage),
            }
            for stage, n in times.items()
        ],
    }


def _within(buckets: Sequence[Sample], stage: str) -> float | None:
    """The smallest bucket bound with 95 % of a stage's times; None if there is none."""
    own = [sample for sample in buckets if sample.labels.get("stage") == stage]
    bounded = ((_bound(sample.labels.get("le", "")), sample.value) for sample in own)
    counts = sorted((bound, n) for bound, n in bounded if bound is not None)
    total = counts[-1][1] if counts else 0
    bounds = (bound for bound, n in counts if total and n >= MOST_OF_THEM * total)
    bound = next(bounds, math.inf)
    return bound if math.isfinite(bound) else None


def _bound(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _samples(text: str) -> Iterator[Sample]:
    for line in text.splitlines():
        match = LINE.fullmatch(line)
        if match is not None:
            try:
                value = float(match[3])
            except ValueError:
                continue
            yield Sample(match[1], dict(LABEL.findall(match[2] or "")), value)
