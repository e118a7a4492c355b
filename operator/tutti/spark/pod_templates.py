"""The pod template that executors are created from, merged with the properties.

Source: KubernetesUtils.loadPodFromTemplate and BasicExecutorFeatureStep in Apache Spark. One
container of the template becomes Spark's, and Spark replaces its amounts of cpu and memory. The
other containers stay. ``resources`` knows only the properties.
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
from ..kube.codec.shapes import EPHEMERAL, claims, unmodelled
from ..kube.errors import BadObject
from ..kube.gang_sources.spark import NUMBER_LABEL
from ..model.inter_pod import InterPodRules
from ..model.resources import Resources
from .conf import BadProperty
from .resources import PodResources

FILE = "spark.kubernetes.executor.podTemplateFile"
CONTAINER = "spark.kubernetes.executor.podTemplateContainerName"
SHOWN = 40  # characters of a value that is quoted
LENGTH_LIMIT = 65_536  # characters; real templates have a few thousand, and YAML is slow to read
# The parts of a pod spec that a role template also has.
PARTS = ("tolerations", "affinity", "topologySpreadConstraints")
SELECTOR = "nodeSelector"
# The fields in these parts that are numbers; and the fields with free keys, which are all text.
_NUMBERS = ("maxSkew", "minDomains", "tolerationSeconds", "weight")
_FREE = ("labels", "matchLabels", SELECTOR)
_PLAIN = (1e-3, 1e7)  # Java and Python write fractions of this size in the same way
PORTS = "spec.containers[].ports[].hostPort"
NUMBERED = f"a selector of {NUMBER_LABEL}"
UNHELD = "which room cannot be held for yet: name a PodGroup for the executors"
_MILLICORES = "cpu"

Raw = dict[str, Any]


class MergedTemplate(NamedTuple):
    """A pod template merged with the properties."""

    template: Mapping[str, Any]  # of the role
    scheduler: str  # the scheduler that it names; empty if none
    claims: Sequence[str]  # claims that all its pods name; a role template cannot express them


def plain(resources: PodResources, labels: Mapping[str, str]) -> Raw:
    """The role template of pods with these resources alone; Spark adds ``labels``."""
    template: Raw = {"resources": {**resources.limits, **resources.requests}}
    if resources.node_selector:
        template["nodeSelector"] = dict(resources.node_selector)
    return {**template, "labels": {**resources.labels, **labels}}


def merged(
    resources: PodResources, text: str, container: str, labels: Mapping[str, str]
) -> MergedTemplate:
    """The role template of pods that are created from a pod template.

    ``container`` names the container that becomes Spark's; if there is none of that name, it is the
    first.

    Raises:
        BadProperty: the pod template cannot be read, or a role template cannot express it.
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
    """Whether rules select executors by number, which absent executors do not have yet."""
    peers = (rule.peers for rule in (*rules.affinity, *rules.anti_affinity))
    counted = (spread.peers for spread in rules.spread)
    return any(
        requirement.key == NUMBER_LABEL and requirement.values
        for peers_of_rule in (*peers, *counted)
        for requirement in peers_of_rule.selector or ()
    )


def _document(text: str) -> Document:
    """The template as a Pod, which Spark reads it as; Kubeflow's Spark operator names no kind."""
    if len(text) > LENGTH_LIMIT:
        _refuse(f"the template has {len(text):,} characters, and {LENGTH_LIMIT:,} are read at most")
    try:
        pods = [
            document
            for document in documents(Text("the template", text.encode()), JsonLoader, "Pod")
            if document.kind != "List"
        ]
    except BadFile as problem:
        raise BadProperty(FILE, "", str(problem)) from problem
    if len(pods) != 1 or pods[0].kind != "Pod":
        _refuse("the template is not one Pod")
    return pods[0]


def _completed_spec(document: Document, resources: PodResources, container: str) -> Raw:
    """The spec as the API server completes it, with the resources of Spark in its container."""
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
    """The value with text for every field that is text in the API.

    Spark reads a template with the fabric8 client, whose Jackson reads any scalar as text.
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
    """The text as which Spark reads a scalar; None is empty text."""
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
    """A container as the API server completes it: a limit without a request becomes a request."""
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
    """The fields that restrict the nodes of its pods and that no role template can express."""
    rules, malformed = decode_rules(pod)
    yield from malformed
    yield from unmodelled(pod.spec)
    if any(EPHEMERAL in volume for volume in pod.spec.volumes):
        yield f"spec.volumes[].{EPHEMERAL}"  # no template has the claims of its pods
    # With hostNetwork, Spark's own ports are host ports, too, and no template shows them.
    if pod.spec.host_network or host_ports(pod.spec):
        yield "spec.hostNetwork" if pod.spec.host_network else PORTS
    # A node by name; a RuntimeClass, which may have node rules and overhead; and limits of the pod
    # as a whole, which become its requests if it has none.
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
    """The amounts as quantities, without ``pods``, of which every pod takes one."""
    return {
        name: f"{n}m" if name == _MILLICORES else str(n)
        for name, n in resources.amounts
        if name != PODS
    }


def _demand_json(template: Raw) -> None:
    """Refuse a template with YAML values that no API object can have."""
    try:
        json.dumps(template, allow_nan=False)
    except (TypeError, ValueError) as problem:
        _refuse(f"the template holds what no API object can: {problem}")


def _refuse(why: str) -> NoReturn:
    raise BadProperty(FILE, "", why)
