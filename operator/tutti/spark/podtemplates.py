"""What executors will ask for beside what the properties say: the pod template they are made from.

Follows KubernetesUtils.loadPodFromTemplate and BasicExecutorFeatureStep in Apache Spark: one
container of the template becomes Spark's, and its amounts of cpu and memory are replaced; the
others stay. Separate from ``asking``, which knows properties alone.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from ..kube import wire
from ..kube.dump.documents import BadFile, Text, documents
from ..kube.errors import BadObject
from ..kube.quantity import QuantityError
from ..kube.requests import PODS, pod_requests
from ..model import ports
from ..model.resources import Resources
from .asking import Asked
from .conf import BadProperty

FILE = "spark.kubernetes.executor.podTemplateFile"
CONTAINER = "spark.kubernetes.executor.podTemplateContainerName"
_MILLICORES = "cpu"

Raw = dict[str, Any]


def plain(asked: Asked) -> Raw:
    """The template of a role whose pods ask for this, and nothing else."""
    template: Raw = {"resources": {**asked.limits, **asked.requests}}
    if asked.node_selector:
        template["nodeSelector"] = dict(asked.node_selector)
    return template


def merged(asked: Asked, text: str, container: str) -> tuple[Raw, str]:
    """The same of pods that are made from a pod template, and the scheduler that it names.

    ``container`` is the name of the one that becomes Spark's; without one of that name it is the
    first.

    Raises:
        BadProperty: the template cannot be read.
    """
    spec = _spec(text)
    containers = _maps(spec.get("containers"))
    chosen = next((one for one in containers if container and one.get("name") == container), None)
    mine = chosen or next(iter(containers), {})
    pod = {
        **spec,
        "containers": [
            *(_completed(one) for one in containers if one is not mine),
            _completed(mine, asked),
        ],
        "initContainers": [_completed(one) for one in _maps(spec.get("initContainers"))],
    }
    found = _read(pod)
    template: Raw = {"resources": _amounts(_requests(found))}
    selector = {**found.spec.node_selector, **asked.node_selector}
    chosen_parts = {name: spec.get(name) for name in ("tolerations", "affinity")}
    template |= {
        name: part for name, part in (("nodeSelector", selector), *chosen_parts.items()) if part
    }
    _demand_json(template)
    return template, found.spec.scheduler_name


def _spec(text: str) -> Mapping[str, Any]:
    try:
        found = [
            one for one in documents(Text("the template", text.encode())) if one.kind != "List"
        ]
    except BadFile as problem:
        raise BadProperty(FILE, "", str(problem)) from problem
    if len(found) != 1 or found[0].kind != "Pod":
        _refuse("the template is not one Pod")
    spec = found[0].raw.get("spec")
    if not isinstance(spec, Mapping):
        _refuse("the template has no spec")
    return spec


def _maps(value: object) -> Sequence[Mapping[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        _refuse("the template's containers are no list of containers")
    return value


def _completed(container: Mapping[str, Any], asked: Asked | None = None) -> Raw:
    """A container as the API server completes it: what has only a limit is requested, too."""
    resources = container.get("resources") or {}
    if not isinstance(resources, Mapping):
        _refuse("the resources of a container are no map")
    requests, limits = (resources.get(kind) or {} for kind in ("requests", "limits"))
    if not isinstance(requests, Mapping) or not isinstance(limits, Mapping):
        _refuse("the resources of a container are no map")
    if asked is not None:
        requests, limits = {**requests, **asked.requests}, {**limits, **asked.limits}
    return {**container, "resources": {"requests": {**limits, **requests}}}


def _read(spec: Mapping[str, Any]) -> wire.Pod:
    try:
        return wire.parse_one({"spec": spec}, wire.Pod)
    except BadObject as problem:
        _refuse(f"the template cannot be read: {problem.sentence}")


def _requests(pod: wire.Pod) -> Resources:
    try:
        return pod_requests(pod)
    except QuantityError as problem:
        _refuse(f"the template's requests cannot be read: {problem}")


def _amounts(found: Resources) -> Raw:
    """Amounts as quantities; a pod takes one of a node's pods whatever it says."""
    return {
        name: f"{n}m" if name == _MILLICORES else str(n)
        for name, n in found.amounts
        if name != PODS and not ports.is_port(name)
    }


def _demand_json(template: Raw) -> None:
    """YAML has values that no API object can hold."""
    try:
        json.dumps(template, allow_nan=False)
    except (TypeError, ValueError) as problem:
        _refuse(f"the template holds what no API object can: {problem}")


def _refuse(why: str) -> NoReturn:
    raise BadProperty(FILE, "", why)
