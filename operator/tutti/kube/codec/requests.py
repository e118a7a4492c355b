"""The effective request of a pod, as Kubernetes computes it.

Source: PodRequests in k8s.io/component-helpers/resource/helpers.go with the options that
kube-scheduler sets. The status of a pod counts if the pod has a node (NodeInfo), and not if it
waits for one (NodeResourcesFit). Sums are in billionths and are rounded up once, at the end. An
amount beyond 64 bits counts as the largest amount, which fits on no node.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from ...model import ports
from ...model.devices.extended import ContainerRequests, is_extended
from ...model.resources import Resources
from .. import wire
from .quantity import BILLION, nanos, rounded_up

PODS = "pods"  # every pod takes one of the ``pods`` of its node
HUGE_PAGES = "hugepages-"
_KNOWN = 4096  # requests of extended resources that are cached
_MOST_SHARED = 64  # resources that a pod with such requests names
ALWAYS = "Always"  # the restart policy that makes an init container a sidecar

Nanos = dict[str, int]  # billionths by resource name
Lookup = Callable[[wire.Container, wire.ContainerStatus | None], wire.Quantities]


def pod_requests(pod: wire.Pod) -> Resources:
    """The amounts that a pod takes of a node; raises ``QuantityError``."""
    spec = pod.spec
    requests = _containers(pod)
    if any(_is_pod_level(name) for name in spec.resources.requests):
        requests.update(_pod_level(pod))
    _add(requests, _nanos(spec.overhead))
    amounts = {
        name: rounded_up(name, amount)
        for name, amount in requests.items()
        if not ports.is_port(name)
    }
    amounts[PODS] = 1
    if used_ports := host_ports(spec):
        amounts.update(ports.requested_amounts(used_ports))
    return Resources.of(amounts)


def extended_requests(spec: wire.PodSpec) -> tuple[ContainerRequests, ...]:
    """What the containers of a pod request of extended resources; raises ``QuantityError``.

    Amounts that are no whole number are left out, as in kube-scheduler.
    """
    init = len(spec.init_containers)
    requests = [
        ContainerRequests(
            position,
            container.name,
            tuple(sorted(container.resources.requests)),
            counts,
            is_short_lived=position < init and container.restart_policy != ALWAYS,
        )
        for position, container in enumerate((*spec.init_containers, *spec.containers))
        if (counts := _counts(container.resources.requests))
    ]
    if sum(len(of.names) for of in requests) > _MOST_SHARED:
        return tuple(requests)
    return _shared(tuple(requests)) if requests else ()


def _counts(requests: wire.Quantities) -> tuple[tuple[str, int], ...]:
    """The whole amounts of extended resources, by name; sorted."""
    amounts = [(name, nanos(amount)) for name, amount in requests.items() if is_extended(name)]
    return tuple(
        sorted(
            (name, amount // BILLION)
            for name, amount in amounts
            if amount and amount % BILLION == 0
        )
    )


@lru_cache(maxsize=_KNOWN)
def _shared(requests: tuple[ContainerRequests, ...]) -> tuple[ContainerRequests, ...]:
    """The same requests as one object, for all pods that have them."""
    return requests


def host_ports(spec: wire.PodSpec) -> Sequence[ports.HostPort]:
    """The host ports that a pod uses as long as it runs: kube-scheduler's ``GetHostPorts``.

    With ``hostNetwork`` every container port is a host port; the API server sets it at creation.
    """
    lasting = (
        container for container in spec.init_containers if container.restart_policy == ALWAYS
    )
    numbers = [
        (port.host_port or port.container_port * spec.host_network, port)
        for container in (*spec.containers, *lasting)
        for port in container.ports
    ]
    return [
        ports.HostPort(number, port.protocol or "TCP", port.host_ip or ports.ANY_IP)
        for number, port in numbers
        if number > 0
    ]


def _containers(pod: wire.Pod) -> Nanos:
    """The requests of the containers; during a resize, the larger of the old and new amounts."""
    status = pod.status
    requests = _aggregate(pod, _in_spec)
    if not (_is_placed(pod) and (_says_resources(status) or _is_infeasible(status))):
        return requests
    if status.allocated_resources is not None and status.resources and status.resources.requests:
        allocated = _nanos(status.allocated_resources)
        actual = _nanos(status.resources.requests)
    else:
        infeasible = _is_infeasible(status)
        allocated = _aggregate(pod, _unless(_allocated, infeasible=infeasible))
        actual = _aggregate(pod, _unless(_actual, infeasible=infeasible))
    if _is_infeasible(status):
        requests = {}
    _raise_to(requests, allocated)
    _raise_to(requests, actual)
    return requests


def _pod_level(pod: wire.Pod) -> Nanos:
    """The requests of the pod as a whole, which replace the sum over its containers."""
    status = pod.status
    requests = _nanos(pod.spec.resources.requests)
    if _is_placed(pod) and status.resources is not None:
        if _is_infeasible(status):
            requests = {}
        _raise_to(requests, _nanos(status.resources.requests))
        _raise_to(requests, _nanos(status.allocated_resources or {}))
    return {name: amount for name, amount in requests.items() if _is_pod_level(name)}


def _is_pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith(HUGE_PAGES)


def _aggregate(pod: wire.Pod, lookup: Lookup) -> Nanos:
    """The sum over containers and sidecars, or more if an init container needs more.

    An init container counts together with the sidecars before it.
    """
    statuses = _by_name(pod.status)
    total: Nanos = {}
    for container in pod.spec.containers:
        _add(total, _nanos(lookup(container, statuses.get(container.name))))
    sidecars: Nanos = {}
    peak: Nanos = {}
    for container in pod.spec.init_containers:
        requests = _nanos(lookup(container, statuses.get(container.name)))
        if container.restart_policy == ALWAYS:
            _add(total, requests)
            _add(sidecars, requests)
            _raise_to(peak, sidecars)
        else:
            _add(requests, sidecars)
            _raise_to(peak, requests)
    _raise_to(total, peak)
    return total


def _in_spec(container: wire.Container, _: wire.ContainerStatus | None) -> wire.Quantities:
    return container.resources.requests


def _allocated(status: wire.ContainerStatus) -> wire.Quantities | None:
    return status.allocated_resources


def _actual(status: wire.ContainerStatus) -> wire.Quantities | None:
    if status.resources is not None and status.resources.requests:
        return status.resources.requests
    return status.allocated_resources


def _unless(
    read: Callable[[wire.ContainerStatus], wire.Quantities | None], *, infeasible: bool
) -> Lookup:
    """Fall back to the spec, unless the node has refused the requests of the spec."""

    def lookup(container: wire.Container, status: wire.ContainerStatus | None) -> wire.Quantities:
        amounts = None if status is None else read(status)
        if amounts is not None:
            return amounts
        return {} if infeasible else container.resources.requests

    return lookup


def _by_name(status: wire.PodStatus) -> Mapping[str, wire.ContainerStatus]:
    init = {container.name: container for container in status.init_container_statuses}
    return init | {container.name: container for container in status.container_statuses}


def _is_placed(pod: wire.Pod) -> bool:
    return bool(pod.spec.node_name)


def _says_resources(status: wire.PodStatus) -> bool:
    return status.resources is not None or any(
        container.allocated_resources is not None or container.resources is not None
        for container in (*status.container_statuses, *status.init_container_statuses)
    )


def _is_infeasible(status: wire.PodStatus) -> bool:
    """Whether the node reports that a resize is impossible."""
    pending = (condition for condition in status.conditions if condition.type == "PodResizePending")
    return next((condition.reason == "Infeasible" for condition in pending), False)


def _nanos(amounts: wire.Quantities) -> Nanos:
    return {name: nanos(amount) for name, amount in amounts.items()}


def _add(total: Nanos, amounts: Nanos) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Nanos, least: Nanos) -> None:
    for name, amount in least.items():
        # An explicit 0 counts: a pod-level 0 replaces the sum over the containers.
        if name not in total or amount > total[name]:
            total[name] = amount
