"""The operator's own figures, from the metrics of its pods: cycles, their stages, plans and proofs.

The API server proxies the metrics of a pod (``pods/proxy``), so the user's rights are enough.

Tenants may give their pods the labels of the operator. So a pod counts as the operator's only if
its service account is in the chart's ClusterRoleBinding, which tenants cannot write. A user who
may not list ClusterRoleBindings sees the pods in the namespace of the oldest Lease of the
scheduler's name: tenants may write Leases in their namespaces, but not the time of creation.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ..kube import errors
from ..kube.calls import Call, Right
from ..kube.codec.decode import LEASE_MODE
from .observation import Record, WrongQuestion

SELECTOR = "app.kubernetes.io/name=tutti"  # the pods and the ClusterRoleBinding of the chart
PORT = "probes"
LIST_PODS, GET_PROXY = Right("", "pods", "list"), Right("", "pods/proxy", "get")
LIST_BINDINGS = Right("rbac.authorization.k8s.io", "clusterrolebindings", "list")
TELLING = (  # the rights of which one is enough, in the words of RBAC
    "list clusterrolebindings.rbac.authorization.k8s.io, or to list leases.coordination.k8s.io in "
    "the operator's namespace"
)
MOST_PODS = 5
MOST_BYTES = 1024 * 1024  # bytes of an answer; the metrics of a replica have some 20,000
FORBIDDEN = 403
LINE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
MOST_OF_THEM = 0.95  # share of the times of a stage


class Reader(Protocol):
    """Reads any path of the API server."""

    async def get(
        self, right: Right, path: str, query: Mapping[str, str] | None = None, *, most: int
    ) -> bytes:
        """The body of the response, of ``most`` bytes at most; raises ``errors.ApiError``."""


class Home(NamedTuple):
    """Where pods of the operator are."""

    namespace: str
    account: str = ""  # their service account; empty if it is not known


class Sample(NamedTuple):
    """A line of Prometheus' text format."""

    name: str
    labels: Mapping[str, str]
    value: float


async def read(api: Reader, scheduler: str, namespace: str) -> Sequence[Record]:
    """The figures of every replica that the user may find.

    ``scheduler`` is the name of the Lease, which is looked for in this namespace if the Leases of
    the whole cluster may not be listed.

    Raises:
        WrongQuestion: the operator's pods cannot be listed or told from those of tenants.
    """
    try:
        homes = await _homes(api, scheduler, namespace)
    except errors.ApiError as problem:
        right = f"; you need the right to {TELLING}" if problem.status == FORBIDDEN else ""
        raise WrongQuestion(
            f"Which pods are the operator's cannot be said: {str(problem).rstrip('.')}{right}"
        ) from problem
    try:
        pods = [pod for home in homes for pod in await _pods(api, home)]
    except errors.ApiError as problem:
        raise WrongQuestion(f"The operator's pods cannot be listed: {problem}") from problem
    return [await _replica(api, pod) for pod in pods[:MOST_PODS]]


async def _homes(api: Reader, scheduler: str, namespace: str) -> Sequence[Home]:
    query = {"labelSelector": SELECTOR}
    try:
        bindings = await _list(api, LIST_BINDINGS, LIST_BINDINGS.path(), query)
    except errors.ApiError as problem:
        if problem.status != FORBIDDEN:
            raise
        return await _home_by_lease(api, scheduler, namespace)
    accounts = {
        Home(subject["namespace"], subject["name"])
        for binding in bindings
        for subject in binding.get("subjects") or ()
        if subject["kind"] == "ServiceAccount"
    }
    return sorted(accounts)


async def _home_by_lease(api: Reader, scheduler: str, namespace: str) -> Sequence[Home]:
    """The namespace of the oldest Lease of this name that a Tutti may have written; or none."""
    right, query = Call.LIST_LEASES, {"fieldSelector": f"metadata.name={scheduler}"}
    try:
        leases = await _list(api, right, right.path(), query)
    except errors.ApiError as problem:
        if problem.status != FORBIDDEN:
            raise
        leases = await _list(api, right, right.path(namespace), query)
    written = [lease["metadata"] for lease in leases]
    own = [meta for meta in written if LEASE_MODE in (meta.get("annotations") or {})]
    oldest = sorted(own, key=lambda meta: (meta["creationTimestamp"], meta["namespace"]))[:1]
    return [Home(meta["namespace"]) for meta in oldest]


async def _pods(api: Reader, home: Home) -> Sequence[Any]:
    query = {"labelSelector": SELECTOR}
    return [
        pod
        for pod in await _list(api, LIST_PODS, LIST_PODS.path(home.namespace), query)
        if pod.get("status", {}).get("phase") == "Running"
        and home.account in ("", pod["spec"].get("serviceAccountName"))
    ]


async def _list(api: Reader, right: Right, path: str, query: Mapping[str, str]) -> Sequence[Any]:
    body = await api.get(right, path, query, most=MOST_BYTES)
    items: Sequence[Any] = json.loads(body).get("items") or ()
    return items


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
        path = GET_PROXY.path(namespace, f"{name}:{ports[0]}") + "/metrics"
        body = await api.get(GET_PROXY, path, most=MOST_BYTES)
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

    buckets: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples["tutti_cycle_stage_seconds_bucket"]:
        buckets[sample.labels.get("stage", "")].append(sample)
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
                "within": _within(buckets[stage]),
            }
            for stage, n in times.items()
        ],
    }


def _within(buckets: Sequence[Sample]) -> float | None:
    """The smallest bucket bound with 95 % of a stage's times; None if there is none."""
    bounded = ((_bound(sample.labels.get("le", "")), sample.value) for sample in buckets)
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
