"""The effective request of a pod, as Kubernetes computes it."""

from typing import Any

import pytest

from tutti.kube.codec.quantity import LARGEST, QuantityError
from tutti.kube.codec.requests import pod_requests
from tutti.model import ports
from tutti.model.ports import HostPort
from tutti.model.resources import Resources

from ..objects import container, pod

INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]


def requested_amounts(**amounts: int) -> Resources:
    """The expected request, in model units; every pod takes one of ``pods``."""
    return Resources.of({key.replace("__", "-"): n for key, n in amounts.items()} | {"pods": 1})


def listening(*given: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A spec whose one container has these ports."""
    return {**spec, "containers": [{**container(), "ports": list(given)}]}


SPECS: dict[str, tuple[dict[str, Any], Resources]] = {
    "no requests: one pod": ({"containers": [container()]}, requested_amounts()),
    "containers add up": (
        {"containers": [container(cpu="1", memory="1Gi"), container("b", cpu="500m")]},
        requested_amounts(cpu=1500, memory=2**30),
    ),
    "fractions add up before they are rounded": (
        {"containers": [container(cpu="0.5m"), container("b", cpu="0.5m")]},
        requested_amounts(cpu=1),
    ),
    "a larger init container counts": (
        {"containers": [container(cpu="1")], "initContainers": [container("i", cpu="3")]},
        requested_amounts(cpu=3000),
    ),
    "a smaller init container does not": (
        {"containers": [container(cpu="2")], "initContainers": [container("i", cpu="1")]},
        requested_amounts(cpu=2000),
    ),
    "init containers run one after the other": (
        {
            "containers": [container(cpu="1")],
            "initContainers": [container("i", cpu="2"), container("j", cpu="2", memory="5")],
        },
        requested_amounts(cpu=2000, memory=5),
    ),
    "a sidecar adds to the containers": (
        {
            "containers": [container(cpu="1")],
            "initContainers": [container("s", restart="Always", cpu="1")],
        },
        requested_amounts(cpu=2000),
    ),
    "an init container runs beside the sidecars before it": (
        {
            "containers": [container(cpu="1")],
            "initContainers": [
                container("s", restart="Always", cpu="1"),
                container("i", cpu="5"),
                container("t", restart="Always", cpu="2"),
            ],
        },
        requested_amounts(cpu=6000),
    ),
    "and not beside those after it": (
        {
            "containers": [container(cpu="1")],
            "initContainers": [
                container("i", cpu="3"),
                container("t", restart="Always", cpu="2"),
            ],
        },
        requested_amounts(cpu=3000),
    ),
    "overhead adds": (
        {"containers": [container(cpu="1")], "overhead": {"cpu": "250m", "memory": "120Mi"}},
        requested_amounts(cpu=1250, memory=120 * 2**20),
    ),
    "overhead adds to an init container too": (
        {
            "containers": [container(cpu="1")],
            "initContainers": [container("i", cpu="2")],
            "overhead": {"cpu": "250m"},
        },
        requested_amounts(cpu=2250),
    ),
    "the pod's own request replaces the sum, overhead adds": (
        {
            "containers": [container(cpu="1", memory="1Gi", hugepages__2Mi="2Mi")],
            "resources": {"requests": {"cpu": "5", "hugepages-2Mi": "4Mi"}},
            "overhead": {"cpu": "1"},
        },
        requested_amounts(cpu=6000, memory=2**30, hugepages__2Mi=2**22),
    ),
    "the pod's own request is for cpu, memory and huge pages only": (
        {
            "containers": [container(cpu="1")],
            "resources": {"requests": {"example.com/fpga": "5"}},
        },
        requested_amounts(cpu=1000),
    ),
    "a zero for the pod as a whole is a request too": (
        {"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "0"}}},
        requested_amounts(),
    ),
    "every resource counts": (
        {
            "containers": [
                container(ephemeral__storage="1Gi", hugepages__1Gi="2Gi")
                | {"resources": {"requests": {"example.com/fpga": "2", "ephemeral-storage": 1}}}
            ]
        },
        Resources.of({"example.com/fpga": 2, "ephemeral-storage": 1, "pods": 1}),
    ),
    "no resource is taken for a port": (
        {"containers": [{"resources": {"requests": {"port:80/TCP": "1", "cpu": "1"}}}]},
        requested_amounts(cpu=1000),
    ),
    "absurd sums are capped": (
        {"containers": [container(memory="7E"), container("b", memory="7E")]},
        requested_amounts(memory=LARGEST),
    ),
    "nulls mean nothing": (
        {
            "containers": [{"name": "a", "resources": {"requests": None}}],
            "initContainers": None,
            "overhead": None,
            "resources": None,
        },
        requested_amounts(),
    ),
}


@pytest.mark.parametrize(("spec", "want"), SPECS.values(), ids=SPECS)
def test_the_spec_says_what_a_pod_asks_for(spec: dict[str, Any], want: Resources) -> None:
    assert pod_requests(pod(spec)) == want


IP = "10.0.0.1"
PORTS: dict[str, tuple[dict[str, Any], list[HostPort]]] = {
    "a host port": (listening({"containerPort": 80, "hostPort": 8080}), [HostPort(8080)]),
    "ports that stay inside": (listening({"containerPort": 80}, {"containerPort": 81}), []),
    "protocol and host IP": (
        listening({"hostPort": 53, "protocol": "UDP", "hostIP": IP}),
        [HostPort(53, "UDP", IP)],
    ),
    "empty ones mean TCP at any IP": (
        listening({"hostPort": 53, "protocol": "", "hostIP": ""}),
        [HostPort(53)],
    ),
    "a number that is none": (listening({"hostPort": -1}, {"hostPort": 0}), []),
    "in the host's network every port is one": (
        listening({"containerPort": 80}, {"containerPort": 81, "hostPort": 81}, hostNetwork=True),
        [HostPort(80), HostPort(81)],
    ),
    "the host's network without ports": ({"hostNetwork": True, "containers": [container()]}, []),
    "a sidecar's": (
        {
            **listening(),
            "initContainers": [{"restartPolicy": "Always", "ports": [{"hostPort": 80}]}],
        },
        [HostPort(80)],
    ),
    "an init container gives its own back": (
        {**listening(hostNetwork=True), "initContainers": [{"ports": [{"hostPort": 80}]}]},
        [],
    ),
}


@pytest.mark.parametrize(("spec", "want"), PORTS.values(), ids=PORTS)
def test_ports_of_the_node_are_asked_for_like_resources(
    spec: dict[str, Any], want: list[HostPort]
) -> None:
    assert pod_requests(pod(spec)) - requested_amounts() == Resources.of(
        ports.requested_amounts(want)
    )


STATUSES: dict[str, tuple[dict[str, Any], Resources]] = {
    "shrinking: what it still holds counts": (
        {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "5"}}]},
        requested_amounts(cpu=5000),
    ),
    "growing: what it is about to hold counts": (
        {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "1"}}]},
        requested_amounts(cpu=2000),
    ),
    "what the kubelet has set counts as well": (
        {
            "containerStatuses": [
                {
                    "name": "main",
                    "allocatedResources": {"cpu": "1"},
                    "resources": {"requests": {"cpu": "4"}},
                }
            ]
        },
        requested_amounts(cpu=4000),
    ),
    "an infeasible growth does not count": (
        {
            "conditions": INFEASIBLE,
            "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "1"}}],
        },
        requested_amounts(cpu=1000),
    ),
    "an infeasible growth does not count where nothing says what is held, either": (
        {"conditions": INFEASIBLE},
        requested_amounts(),
    ),
    "a deferred growth counts": (
        {
            "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}],
            "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "1"}}],
        },
        requested_amounts(cpu=2000),
    ),
    "a status without resources changes nothing": (
        {"conditions": INFEASIBLE, "containerStatuses": [{"name": "main", "resources": {}}]},
        requested_amounts(),
    ),
    "a status of the whole pod goes before its containers'": (
        {
            "allocatedResources": {"cpu": "3"},
            "resources": {"requests": {"cpu": "3"}},
            "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "9"}}],
        },
        requested_amounts(cpu=3000),
    ),
}


@pytest.mark.parametrize(("status", "want"), STATUSES.values(), ids=STATUSES)
def test_a_pod_that_is_resized_takes_the_most_it_may_hold_once_it_has_a_node(
    status: dict[str, Any], want: Resources
) -> None:
    spec = {"containers": [container(cpu="2")]}
    assert pod_requests(pod({**spec, "nodeName": "n1"}, status)) == want
    assert pod_requests(pod(spec, status)) == requested_amounts(cpu=2000)


def test_a_resized_pod_level_request_takes_the_most_it_may_hold() -> None:
    wanted = {"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "2"}}}
    spec = {**wanted, "nodeName": "n1"}
    status = {"allocatedResources": {"cpu": "4"}, "resources": {"requests": {"cpu": "3"}}}
    assert pod_requests(pod(spec, status)) == requested_amounts(cpu=4000)
    refused = status | {"allocatedResources": {"cpu": "1"}, "conditions": INFEASIBLE}
    assert pod_requests(pod(spec, refused)) == requested_amounts(cpu=3000)
    assert pod_requests(pod(wanted, status)) == requested_amounts(cpu=2000)


@pytest.mark.parametrize("amount", ["-1", "one", [1], True, float("nan")])
def test_a_request_that_cannot_be_read_is_refused(amount: object) -> None:
    with pytest.raises(QuantityError):
        pod_requests(pod({"containers": [container(cpu=amount)]}))
