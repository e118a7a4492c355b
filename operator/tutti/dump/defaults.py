"""Manifests that no API server has seen, with what it, a controller or a kubelet would fill in.

An object without a uid was never created. It is read as if it had been created, so that Tutti can
plan a file for ``kubectl apply`` without changes.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ..kube import kinds
from ..kube.codec.requests import PODS
from ..model.inter_pod import HOSTNAME
from ..model.keys import ApiKind
from .documents import BadFile, Document
from .inter_pod import PREFERRED, REQUIRED

NAMESPACE = "default"
NAMESPACE_NAME = "kubernetes.io/metadata.name"  # the label that every namespace has
NODE_PODS = "110"  # the default of kubelets
Raw = dict[str, Any]

_CLUSTERWIDE = frozenset(kind.api for kind in kinds.KINDS if not kind.is_namespaced)
# The kinds of which a controller makes pods, and the field that says how many.
WORKLOADS: Mapping[tuple[str, str], str] = {
    ("batch", "Job"): "parallelism",
    ("apps", "Deployment"): "replicas",
    ("apps", "ReplicaSet"): "replicas",
    ("apps", "StatefulSet"): "replicas",
}
MOST_PODS = 100_000  # of all workloads together


def is_new(document: Document) -> bool:
    """Whether the object was never created."""
    return not document.metadata.get("uid")


def pods(document: Document, now: str, allowed: int = MOST_PODS) -> Iterator[Document]:
    """The pods that a controller would make of a workload that was never created.

    ``allowed`` is how many of ``MOST_PODS`` are left for it.

    Raises:
        BadFile: the number of pods is not a valid number, or is larger than ``allowed``.
    """
    spec = _map(document.raw, "spec")
    template = _map(spec, "template")
    count = _count(document, spec, WORKLOADS[document.group, document.kind])
    if document.kind == "Job" and spec.get("completions") is not None:
        count = min(count, _count(document, spec, "completions"))
    if count > allowed:
        problem = f"asks for {count:,} pods, and workloads before it for {MOST_PODS - allowed:,}"
        most = f"together at most {MOST_PODS:,} are allowed: lower some, or plan them apart"
        raise BadFile(_place(document), f"{problem}; {most}")
    own = document.metadata
    name = own.get("name")
    version = document.raw.get("apiVersion")
    owner = {"apiVersion": version, "kind": document.kind, "name": name, "controller": True}
    for number in range(count):
        metadata = {
            **_map(template, "metadata"),
            "name": f"{name}-{number}" if name else "",
            "namespace": own.get("namespace"),
            "ownerReferences": [owner],
        }
        raw = {**template, "metadata": metadata}
        pod = Document(f"{document.place}, pod {number}", "Pod", "", raw)
        yield filled(pod, now)


def _count(document: Document, spec: Mapping[str, Any], field: str) -> int:
    n = spec.get(field, 1)
    if not isinstance(n, int) or isinstance(n, bool) or not 0 <= n <= MOST_PODS:
        raise BadFile(
            _place(document), f"spec.{field}: is not a number of pods up to {MOST_PODS:,}"
        )
    return n


def _place(document: Document) -> str:
    return f"{document.place} ({document.kind} {document.metadata.get('name')})"


def filled(document: Document, now: str) -> Document:
    """The object with the fields that its creation at ``now`` would add."""
    if document.raw.get("metadata") and not document.metadata:
        return document  # the metadata is not a map, which the decoder reports
    metadata = {**document.metadata}
    if ApiKind(document.group, document.kind) not in _CLUSTERWIDE:
        metadata["namespace"] = metadata.get("namespace") or NAMESPACE
    if metadata.get("name"):
        space = metadata.get("namespace", "")
        metadata["uid"] = f"{document.kind}/{space}/{metadata['name']}"
    metadata["resourceVersion"] = "0"
    metadata["creationTimestamp"] = now
    raw: Raw = {**document.raw, "metadata": metadata}
    if document.kind == "Pod":
        raw["spec"] = _pod_spec(_map(raw, "spec"), _map(metadata, "labels"))
    elif document.kind == "Node":
        _label(metadata, HOSTNAME)
        raw["status"] = _node_status(_map(raw, "status"))
    elif document.kind == "Namespace":
        _label(metadata, NAMESPACE_NAME)
    return document._replace(raw=raw)


def _label(metadata: Raw, key: str) -> None:
    """Label an object with its own name, as kubelets and the API server do."""
    labels = metadata.get("labels") or {}
    if isinstance(labels, Mapping):
        metadata["labels"] = {key: metadata.get("name", ""), **labels}


def with_label_keys(spec: Mapping[str, Any], labels: Mapping[str, Any]) -> Raw:
    """The spec of a pod with its label keys merged into the terms, as the API server does."""
    affinity = _map(spec, "affinity")
    merged = {
        kind: _affinity(_map(affinity, kind), labels)
        for kind in ("podAffinity", "podAntiAffinity")
        if isinstance(affinity.get(kind), Mapping)
    }
    return {**spec, "affinity": {**affinity, **merged}} if merged else {**spec}


def _pod_spec(spec: Mapping[str, Any], labels: Mapping[str, Any]) -> Raw:
    """The spec of a pod as the API server completes it: requests from limits, and label keys."""
    full = with_label_keys(spec, labels)
    for kind in ("containers", "initContainers"):
        containers = spec.get(kind)
        if isinstance(containers, list):
            full[kind] = [
                _container(container) if isinstance(container, dict) else container
                for container in containers
            ]
    return full


def _affinity(raw: Mapping[str, Any], labels: Mapping[str, Any]) -> Raw:
    required, preferred = raw.get(REQUIRED), raw.get(PREFERRED)
    full: Raw = {**raw}
    if isinstance(required, list):
        full[REQUIRED] = [_term(term, labels) for term in required]
    if isinstance(preferred, list):
        full[PREFERRED] = [
            {**term, "podAffinityTerm": _term(term.get("podAffinityTerm"), labels)}
            if isinstance(term, Mapping)
            else term
            for term in preferred
        ]
    return full


def _term(raw: Any, labels: Mapping[str, Any]) -> Any:
    """A term with its label keys merged into the selector, as the API server does at creation."""
    selector = raw.get("labelSelector") if isinstance(raw, Mapping) else None
    if not isinstance(selector, Mapping):
        return raw
    own = selector.get("matchExpressions") or []
    merged = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in _words(raw.get(field))
        if key in labels
    ]
    if not merged or not isinstance(own, list):
        return raw
    return {**raw, "labelSelector": {**selector, "matchExpressions": [*own, *merged]}}


def _words(raw: Any) -> list[str]:
    return [word for word in raw if isinstance(word, str)] if isinstance(raw, list) else []


def _container(raw: Raw) -> Raw:
    resources = _map(raw, "resources")
    limits, requests = resources.get("limits"), resources.get("requests") or {}
    if not isinstance(limits, dict) or not isinstance(requests, dict):
        return raw
    return {**raw, "resources": {**resources, "requests": {**limits, **requests}}}


def _node_status(status: Mapping[str, Any]) -> Raw:
    """The status of a node with a healthy kubelet; without ``allocatable``, it is the capacity."""
    offers = status.get("allocatable") or status.get("capacity") or {}
    if isinstance(offers, dict):
        offers = {PODS: NODE_PODS, **offers}
    ready = [{"type": "Ready", "status": "True"}]
    return {**status, "allocatable": offers, "conditions": status.get("conditions") or ready}


def _map(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = raw.get(name)
    return value if isinstance(value, Mapping) else {}
