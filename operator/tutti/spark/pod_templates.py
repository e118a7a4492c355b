"""What executors will ask for beside what the properties say: the pod template they are made from.

Follows KubernetesUtils.loadPodFromTemplate and BasicExecutorFeatureStep in Apache Spark: one
container of the template becomes Spark's, and its amounts of cpu and memory are replaced; the
others stay. Separate from ``resources``, which knows properties alone.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from ..dump.defaults import with_label_keys
from ..dump.documents import BadFile, Document, JsonLoader, Text, documents
from ..kube import wire
from ..kube.codec.inter_pod import decode_rules
from ..kube.codec.quantity import QuantityError
from ..kube.codec.requests import PODS, host_ports, pod_requests
from ..kube.codec.shapes import claims, unmodelled
from ..kube.errors import BadObject
from ..kube.gang_sources.spark import NUMBER_LABEL
from ..model.inter_pod import InterPodRules
from ..model.resources import Resources
from .conf import BadProperty
from .resources import PodResources

FILE = "spark.kubernetes.executor.podTemplateFile"
CONTAINER = "spark.kubernetes.executor.podTemplateContainerName"
SHOWN = 40  # characters of a value that is quoted
LENGTH_LIMIT = 65_536  # characters; real ones have a few thousand, and YAML is slow to read
PARTS = ("tolerations", "affinity", "topologySpreadConstraints")  # of a pod, and of a template
SELECTOR = "nodeSelector"
# What is no text in them; where keys are anybody's, all is.
_NUMBERS = ("maxSkew", "minDomains", "tolerationSeconds", "weight")
_FREE = ("labels", "matchLabels", SELECTOR)
_PLAIN = (1e-3, 1e7)  # fractions of this size are written alike by Java and Python
PORTS = "spec.containers[].ports[].hostPort"
NUMBERED = f"a selector of {NUMBER_LABEL}"
UNHELD = "which room cannot be held for yet: name a PodGroup for the executors"
_MILLICORES = "cpu"

Raw = dict[str, Any]


class MergedTemplate(NamedTuple):
    """What a pod template comes to, with the properties."""

    template: Mapping[str, Any]  # of the role
    scheduler: str  # that it names; empty if none
    claims: Sequence[str]  # that its pods share by name, and the template of a role cannot say


def plain(resources: PodResources, labels: Mapping[str, str]) -> Raw:
    """The template of a role whose pods ask for this, and nothing else; Spark adds ``labels``."""
    template: Raw = {"resources": {**resources.limits, **resources.requests}}
    if resources.node_selector:
        template["nodeSelector"] = dict(resources.node_selector)
    return {**template, "labels": {**resources.labels, **labels}}


def merged(
    resources: PodResources, text: str, container: str, labels: Mapping[str, str]
) -> MergedTemplate:
    """The same of pods that are made from a pod template.

    ``container`` is the name of the one that becomes Spark's; without one of that name it is the
    first.

    Raises:
        BadProperty: the template cannot be read, or says what the template of a role cannot.
    """
    document = _document(text)
    spec = _completed_spec(document, resources, container)
    words = _worded(document.metadata.get("labels") or {}, "metadata.labels")
    own = _read({"metadata": {"labels": words}}).metadata.labels
    labels = {**own, **resources.labels, **labels}
    spec = with_label_keys(spec, labels)
    pod = _read({"metadata": {"labels": labels}, "spec": spec})
    if unsupported := sorted({*_unsupported(spec, pod)}):
        _refuse(f"the template uses {', '.join(unsupported)}, {UNHELD}")
    template: Raw = {"resources": _amounts(_requests(pod))}
    selector = {**pod.spec.node_selector, **resources.node_selector}
    parts = {SELECTOR: selector, **{name: spec.get(name) for name in PARTS}}
    template |= {name: part for name, part in parts.items() if part}
    template["labels"] = labels
    _demand_json(template)
    return MergedTemplate(template, pod.spec.scheduler_name, claims(pod.spec))


def is_numbered(rules: InterPodRules) -> bool:
    """Whether they are about single executors by number, which absent ones do not have yet."""
    peers = (rule.peers for rule in (*rules.affinity, *rules.anti_affinity))
    counted = (spread.peers for spread in rules.spread)
    return any(
        requirement.key == NUMBER_LABEL and requirement.values
        for peers_of_rule in (*peers, *counted)
        for requirement in peers_of_rule.selector or ()
    )


def _document(text: str) -> Document:
    if len(text) > LENGTH_LIMIT:
        _refuse(f"the template has {len(text):,} characters, and {LENGTH_LIMIT:,} are read at most")
    try:
        pods = [
            document
            for document in documents(Text("the template", text.encode()), JsonLoader)
            if document.kind != "List"
        ]
    except BadFile as problem:
        raise BadProperty(FILE, "", str(problem)) from problem
    if len(pods) != 1 or pods[0].kind != "Pod":
        _refuse("the template is not one Pod")
    return pods[0]


def _completed_spec(document: Document, resources: PodResources, container: str) -> Raw:
    """The spec as the API server completes it, with what Spark puts into its container."""
    spec = document.raw.get("spec")
    if not isinstance(spec, Mapping):
        _refuse("the template has no spec")
    containers = _maps(spec.get("containers"))
    chosen = next(
        (spec for spec in containers if container and spec.get("name") == container), None
    )
    mine = chosen or next(iter(containers), {})
    parts = {name: part for name, part in spec.items() if name in (*PARTS, SELECTOR)}
    return {
        **spec,
        **_worded(parts, "spec"),
        "containers": [
            *(_completed(container) for container in containers if container is not mine),
            _completed(mine, resources),
        ],
        "initContainers": [
            _completed(container) for container in _maps(spec.get("initContainers"))
        ],
    }


def _worded(value: Any, at: str) -> Any:
    """The value with text where the API has text, whatever is written there.

    Spark reads a template by fabric8's client, whose Jackson takes any scalar for text.
    """
    name = at.rpartition(".")[2]
    if isinstance(value, Mapping):
        if name in _FREE:
            return {_text(key, at): _text(item, f"{at}.{key}") for key, item in value.items()}
        present = {key: item for key, item in value.items() if item is not None}
        return {key: _worded(item, f"{at}.{key}") for key, item in present.items()}
    if isinstance(value, list):
        return [_worded(item, f"{at}[]") for item in value]
    return value if name in _NUMBERS else _text(value, at)


def _text(value: object, at: str) -> str:
    """What Spark takes a scalar for; nothing at all is empty text."""
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value).lower()
    least, most = _PLAIN
    is_plain = isinstance(value, float) and (value == 0 or least <= abs(value) < most)
    if not (isinstance(value, str | int) or is_plain):
        _refuse(f"{at} is {str(value)[:SHOWN]}, which is no text: put it in quotes")
    return str(value)


def _maps(value: object) -> Sequence[Mapping[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        _refuse("the template's containers are no list of containers")
    return value


def _completed(container: Mapping[str, Any], spark_resources: PodResources | None = None) -> Raw:
    """A container as the API server completes it: what has only a limit is requested, too."""
    resources = container.get("resources") or {}
    if not isinstance(resources, Mapping):
        _refuse("the resources of a container are no map")
    requests, limits = (resources.get(kind) or {} for kind in ("requests", "limits"))
    if not isinstance(requests, Mapping) or not isinstance(limits, Mapping):
        _refuse("the resources of a container are no map")
    if spark_resources is not None:
        requests = {**requests, **spark_resources.requests}
        limits = {**limits, **spark_resources.limits}
    return {**container, "resources": {"requests": {**limits, **requests}}}


def _read(raw: Mapping[str, Any]) -> wire.Pod:
    try:
        return wire.parse_one(raw, wire.Pod)
    except BadObject as problem:
        _refuse(f"the template cannot be read: {problem.sentence}")


def _unsupported(spec: Mapping[str, Any], pod: wire.Pod) -> Iterator[str]:
    """What decides where its pods may run and the template of a role cannot say, by field."""
    rules, malformed = decode_rules(pod)
    yield from malformed
    yield from unmodelled(pod.spec)
    # In the host's network Spark's own ports, which no template shows, are the node's.
    if pod.spec.host_network or host_ports(pod.spec):
        yield "spec.hostNetwork" if pod.spec.host_network else PORTS
    # A node by name; a class with node rules and overhead of its own; what becomes requests of
    # the pod as a whole where it says none.
    whole = spec.get("resources")
    alone = {
        "spec.nodeName": pod.spec.node_name,
        "spec.runtimeClassName": spec.get("runtimeClassName"),
        "spec.resources.limits": whole.get("limits") if isinstance(whole, Mapping) else None,
        NUMBERED: is_numbered(rules),
    }
    yield from (field for field, value in alone.items() if value)


def _requests(pod: wire.Pod) -> Resources:
    try:
        return pod_requests(pod)
    except QuantityError as problem:
        _refuse(f"the template's requests cannot be read: {problem}")


def _amounts(resources: Resources) -> Raw:
    """Amounts as quantities; a pod takes one of a node's pods whatever it says."""
    return {
        name: f"{n}m" if name == _MILLICORES else str(n)
        for name, n in resources.amounts
        if name != PODS
    }


def _demand_json(template: Raw) -> None:
    """YAML has values that no API object can hold."""
    try:
        json.dumps(template, allow_nan=False)
    except (TypeError, ValueError) as problem:
        _refuse(f"the template holds what no API object can: {problem}")


def _refuse(why: str) -> NoReturn:
    raise BadProperty(FILE, "", why)
