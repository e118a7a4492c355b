"""Host ports as amounts of resources, so that planning needs no other rule for them.

Two pods of one node may use the same protocol and port if each names a host IP and the IPs differ.
A pod that names no IP (0.0.0.0) needs the port at all IPs (kube-scheduler's NodePorts and
HostPortInfo). So every node has ``WHOLE`` parts of each port, and 1 of each port at each IP. A pod
without an IP takes all parts of the port. A pod with an IP takes one part, and the port at that IP.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ANY_IP = "0.0.0.0"  # noqa: S104 - nothing is bound here; and "::" is an IP like others

# More than the pods that can share a port of one node, and small enough for exact arithmetic.
WHOLE = 2**16

# The API server accepts no resource name with a colon.
_PREFIX = "port:"


@dataclass(frozen=True, slots=True, order=True)
class HostPort:
    """One port of the network of its node that a pod requests."""

    number: int
    protocol: str = "TCP"
    ip: str = ANY_IP

    def __str__(self) -> str:
        """Read as users write it: ``8080/TCP``, ``10.0.0.1:8080/TCP``."""
        where = "" if self.ip == ANY_IP else f"[{self.ip}]:" if ":" in self.ip else f"{self.ip}:"
        return f"{where}{self.number}/{self.protocol}"

    @property
    def resource(self) -> str:
        """The name of the resource that a pod with this port uses up."""
        own = f"{_PREFIX}{self.number}/{self.protocol}"
        return own if self.ip == ANY_IP else f"{own}/{self.ip}"


def requested_amounts(ports: Iterable[HostPort]) -> Mapping[str, int]:
    """The amounts that one pod requests for all its ports; its own ports never conflict."""
    amounts: dict[str, int] = {}
    for port in sorted(set(ports), key=lambda host_port: (host_port.ip != ANY_IP, host_port)):
        shared = HostPort(port.number, port.protocol).resource
        if port.ip == ANY_IP:
            amounts[shared] = WHOLE
        elif amounts.get(shared) != WHOLE:
            amounts[shared] = amounts.get(shared, 0) + 1
            amounts[port.resource] = 1
    return amounts


def is_port(resource: str) -> bool:
    """Whether the resource is a host port."""
    return resource.startswith(_PREFIX)


def offered(resource: str) -> int:
    """How much of a host port every node has; 0 for other resources."""
    if not is_port(resource):
        return 0
    return WHOLE if read(resource).ip == ANY_IP else 1


def read(resource: str) -> HostPort:
    """The port that a resource name stands for."""
    number, protocol, *ip = resource.removeprefix(_PREFIX).split("/", 2)
    return HostPort(int(number), protocol, *ip)


def named(amounts: Mapping[str, int]) -> tuple[HostPort, ...]:
    """The ports that one pod with these amounts requests, sorted."""
    ports = (read(name) for name in amounts if is_port(name))
    return tuple(
        sorted(port for port in ports if port.ip != ANY_IP or amounts[port.resource] >= WHOLE)
    )


def share(used: Mapping[str, int], number: int) -> Mapping[str, int]:
    """The amounts of pod ``number`` if the used ports are divided among several pods.

    Pods that use a port at all IPs come first, then pods that use it at one IP.
    """
    owners: list[HostPort] = []
    for name, n in used.items():
        port = read(name)
        whole = used.get(HostPort(port.number, port.protocol).resource, 0) // WHOLE
        first, last = (0, whole) if port.ip == ANY_IP else (whole, whole + n)
        if first <= number < last:
            owners.append(port)
    return requested_amounts(owners)
