"""What kube-scheduler of an older minor does otherwise, after which Tutti does not go."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from tutti.kube.codec.quantity import nanos

from ...harness.controlplane.pins import chosen_k8s

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Manifest = dict[str, Any]

_KINDS = ("podAffinity", "podAntiAffinity")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_OF_WHAT_LACKS = {"NotIn", "DoesNotExist"}
_RESIZE = "PodResizePending"


def as_older(objects: Sequence[Manifest], pod: Manifest) -> tuple[list[Manifest], Manifest]:
    """A cluster and the pod asked about, written so that Tutti finds what an older minor finds.

    The minor is the one that K8S names; for those that Tutti goes after, nothing is changed.
    """
    if chosen_k8s() == "1.37":
        return list(objects), pod
    counted = [_counted(item) if item["kind"] == "Pod" else item for item in objects]
    return counted, _selecting(pod)


def ends_kube_scheduler(objects: Sequence[Manifest], pod: Manifest) -> bool:
    """Whether the minor that K8S names has a kube-scheduler that ends when it is asked about a pod.

    That of 1.35 ends at a request for all devices among which one consumes counters:
    ``checkAvailableCounters`` reads the pool of the device, which is not set for such a request
    (``allocator_experimental.go`` of dynamic-resource-allocation 0.35.4). Any request for all
    counts here, whichever devices it is for.
    """
    if chosen_k8s() != "1.35" or not any(map(_has_counters, objects)):
        return False
    return any(map(_requests_all, _claims(objects, pod)))


def allows_more(objects: Sequence[Manifest], pod: Manifest) -> bool:
    """Whether the minor that K8S names may allow a pod on more nodes than later ones.

    1.35 compares a device with the last device of each request alone where a constraint wants
    distinct attributes: ``distinctAttributeConstraint`` keeps one attribute for a request.
    """
    return chosen_k8s() == "1.35" and any(
        "distinctAttribute" in constraint
        for claim in _claims(objects, pod)
        for constraint in claim["spec"]["devices"].get("constraints", ())
    )


def _claims(objects: Sequence[Manifest], pod: Manifest) -> Iterator[Manifest]:
    """The claims for devices that a pod names; no pod of a scene has a template of one."""
    keys = {
        (pod["metadata"]["namespace"], claim["resourceClaimName"])
        for claim in pod["spec"].get("resourceClaims", ())
    }
    for item in objects:
        if item["kind"] == "ResourceClaim":
            metadata = item["metadata"]
            if (metadata["namespace"], metadata["name"]) in keys:
                yield item


def _has_counters(item: Manifest) -> bool:
    devices = item["spec"].get("devices") or () if item["kind"] == "ResourceSlice" else ()
    return any(device.get("consumesCounters") for device in devices)


def _requests_all(claim: Manifest) -> bool:
    alternatives = (
        alternative
        for request in claim["spec"]["devices"].get("requests", ())
        for alternative in request.get("firstAvailable") or [request.get("exactly") or {}]
    )
    return any(alternative.get("allocationMode") == "All" for alternative in alternatives)


def _selecting(pod: Manifest) -> Manifest:
    """A pod with the namespaces that kube-scheduler of 1.36 lets it select.

    It compares the namespaceSelector of a pod it places with no labels at all, whatever labels the
    namespace has: ``mergeAffinityTermNamespacesIfNotEmpty`` of its interpodaffinity changes a copy
    of the term; 1.37 passes a pointer.
    """
    taken = copy.deepcopy(pod)
    affinity = taken["spec"].get("affinity") or {}
    for kind in _KINDS:
        for term in (affinity.get(kind) or {}).get(_REQUIRED, ()):
            if _selects_what_lacks_all(term.get("namespaceSelector") or {}):
                term["namespaceSelector"] = {}
    return taken


def _selects_what_lacks_all(selector: Manifest) -> bool:
    """Whether a selector selects something, and all that has no labels."""
    expressions = selector.get("matchExpressions") or ()
    return (
        bool(expressions)
        and not selector.get("matchLabels")
        and all(expression["operator"] in _OF_WHAT_LACKS for expression in expressions)
    )


def _counted(pod: Manifest) -> Manifest:
    """A pod that asks in its spec for what 1.36 counts while its containers are resized.

    ``AggregateContainerRequests`` of component-helpers takes the largest of what a container asks
    for, is allocated and has, container by container, and only of one whose status says what it
    has; since 1.37 each of the three is summed up first, and the spec of no container counts once
    the node has called the resize infeasible.
    """
    status = pod["status"]
    if not pod["spec"].get("nodeName"):
        return pod
    said = {
        each["name"]: each
        for kind in ("initContainerStatuses", "containerStatuses")
        for each in status.get(kind) or ()
    }
    conditions = status.get("conditions") or ()
    pending = next((condition for condition in conditions if condition["type"] == _RESIZE), None)
    refused = pending is not None and pending.get("reason") == "Infeasible"
    counted = copy.deepcopy(pod)
    spec, status = counted["spec"], counted["status"]
    sidecars = [
        each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"
    ]
    for container in (*spec["containers"], *sidecars):
        about = said.get(container["name"], {})
        if "resources" in about:
            resources = container.setdefault("resources", {})
            asked = {} if refused else resources.get("requests", {})
            has = about["resources"].get("requests", {})
            resources["requests"] = _most(asked, about.get("allocatedResources", {}), has)
    for kind in ("initContainerStatuses", "containerStatuses"):
        status.pop(kind, None)
    status["conditions"] = [condition for condition in conditions if condition["type"] != _RESIZE]
    return counted


def _most(*amounts: Mapping[str, str]) -> dict[str, str]:
    """The largest quantity of each resource."""
    names = {name for amount in amounts for name in amount}
    return {
        name: max((amount[name] for amount in amounts if name in amount), key=nanos)
        for name in names
    }
