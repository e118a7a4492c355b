"""Pods without a gang that come beside the gangs of a scene: small in room, and hard to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.model import ports
from tutti.model.inter_pod import Requirement
from tutti.model.resources import Resources
from tutti.model.shapes import NodeTerm, Shape, Toleration

from . import traces
from .scenes import MOST_PORTS, PORT_PODS, Twist

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .scenes import Scene

FIRST_PORT = 10_000
INVENTED_PODS, INVENTED_PER_NODE = 3, 10  # pods, and resources of each for every node
LONG_PODS = 20  # of each of three kinds
TERMS_PER_NODE, TOLERATIONS_PER_NODE, VALUES_PER_NODE = 8, 15, 40
HOST_LABEL = "kubernetes.io/hostname"


def shapes(scene: Scene) -> Iterator[Shape]:
    """The shapes of the pods; none for most scenes."""
    match scene.twist:
        case Twist.PORTS:
            yield _with_ports(range(FIRST_PORT, FIRST_PORT + MOST_PORTS))
        case Twist.PORT_EACH:
            yield from (_with_ports([FIRST_PORT + n]) for n in range(PORT_PODS))
        case Twist.INVENTED:
            yield from (_with_resources(pod, scene.nodes) for pod in range(INVENTED_PODS))
        case Twist.LONG_SPECS:
            for pod in range(LONG_PODS):
                yield from _with_long_specs(pod, scene.nodes)


def _requests(**more: int) -> Resources:
    return Resources.of({"cpu": 1_000, "memory": traces.GIBI, "pods": 1, **more})


def _with_ports(numbers: Iterable[int]) -> Shape:
    """A small pod that wants these host ports."""
    wanted = ports.requested_amounts(ports.HostPort(number) for number in numbers)
    return Shape(_requests(**wanted))


def _with_resources(pod: int, nodes: int) -> Shape:
    """A small pod that wants resources of its own that no node has."""
    names = (f"example.com/invented-{pod}-{n}" for n in range(INVENTED_PER_NODE * nodes))
    return Shape(_requests(**dict.fromkeys(names, 1)))


def _with_long_specs(pod: int, nodes: int) -> Iterator[Shape]:
    """Small pods that may go to many nodes, which their specs name one by one."""

    def host(n: int) -> str:
        return f"node-{n:06}" if n < nodes // 2 else f"no-node-{pod}-{n}"

    terms = (
        NodeTerm((Requirement(HOST_LABEL, "In", (host(n),)),))
        for n in range(TERMS_PER_NODE * nodes)
    )
    yield Shape(_requests(), required=tuple(terms))
    tolerations = (Toleration(f"key-{pod}-{n}") for n in range(TOLERATIONS_PER_NODE * nodes))
    yield Shape(_requests(), tolerations=tuple(tolerations))
    values = tuple(host(n) for n in range(VALUES_PER_NODE * nodes))
    yield Shape(_requests(), required=(NodeTerm((Requirement(HOST_LABEL, "In", values),)),))
