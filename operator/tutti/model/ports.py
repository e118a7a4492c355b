"""Host ports as amounts of resources: every node has each of them once.

Separate from the arithmetic because it is what makes ports mere arithmetic. Two pods of one node
may use the same protocol and port if each names a host IP, and not the same one; a pod that names
none (0.0.0.0) wants the port at all of them (kube-scheduler's NodePorts and HostPortInfo). So a
port is ``WHOLE`` parts on every node: whoever names no IP takes all of them, whoever names one
takes a part, and that IP, of which there is one. No look at who else is there is needed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ANY_IP = "0.0.0.0"  # noqa: S104 - nothing is bound here; and "::" is an IP like others

# More pods than ever share a port of one node at different IPs, and few enough to be counted.
WHOLE = 2**16

# No name of a resource that the API server takes contains a colon.
_PREFIX = "port:"


@dataclass(frozen=True, slots=True, order=True)
class HostPort:
    """One port that a pod wants of its node's own network."""

    number: int
    protocol: str = "TCP"
    ip: str = ANY_IP

    def __str__(self) -> str:
        """Read as people write it: ``8080/TCP``, ``10.0.0.1:8080/TCP``."""
        where = "" if self.ip == ANY_IP else f"[{self.ip}]:" if ":" in self.ip else f"{self.ip}:"
        return f"{where}{self.number}/{self.protocol}"

    @property
    def resource(self) -> str:
        """The name of the resource of which a pod at this IP takes all there is."""
        own = f"{_PREFIX}{self.number}/{self.protocol}"
        return own if self.ip == ANY_IP else f"{own}/{self.ip}"


def requested_amounts(ports: Iterable[HostPort]) -> Mapping[str, int]:
    """What one pod takes with all its ports; a pod is never in its own way."""
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
    """Whether the resource is one of these."""
    return resource.startswith(_PREFIX)


def offered(resource: str) -> int:
    """How much of it every node has; nothing of what is no port."""
    if not is_port(resource):
        return 0
    return WHOLE if read(resource).ip == ANY_IP else 1


def read(resource: str) -> HostPort:
    """The port that a resource's name means."""
    number, protocol, *ip = resource.removeprefix(_PREFIX).split("/", 2)
    return HostPort(int(number), protocol, *ip)


def named(amounts: Mapping[str, int]) -> tuple[HostPort, ...]:
    """The ports that one pod with these amounts asks for, sorted; of a part, its IP says it."""
    found = (read(name) for name in amounts if is_port(name))
    return tuple(
        sorted(port for port in found if port.ip != ANY_IP or amounts[port.resource] >= WHOLE)
    )


def share(used: Mapping[str, int], number: int) -> Mapping[str, int]:
    """What is used of ports by several pods, dealt out to them: the amounts of one of them.

    First come those that take ports whole, then those that take one IP of them.
    """
    owners: list[HostPort] = []
    for name, n in used.items():
        port = read(name)
        whole = used.get(HostPort(port.number, port.protocol).resource, 0) // WHOLE
        first, last = (0, whole) if port.ip == ANY_IP else (whole, whole + n)
        if first <= number < last:
            owners.append(port)
    return requested_amounts(owners)
