"""Typed names, so that two kinds of string cannot be mixed up, and the Lease of who leads.

Separate from the values because every layer needs the names and few need the rest.
"""

from dataclasses import dataclass
from typing import NamedTuple, NewType

NodeName = NewType("NodeName", str)
Uid = NewType("Uid", str)


class PodKey(NamedTuple):
    """The namespace and name of a pod; a recreated pod has the same key and another uid."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Read as kubectl prints it: ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class ApiKind(NamedTuple):
    """The API group and the kind of an object: what tells Tutti's PodGroups from anybody else's."""

    group: str  # empty for the core API
    kind: str

    def __str__(self) -> str:
        """Read as kubectl takes it: ``kind.group``, or the kind alone where it is a core one."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


POD = ApiKind("", "Pod")
POD_GROUP = ApiKind("tutti.dev", "PodGroup")


class GangKey(NamedTuple):
    """The object that declares a gang: a PodGroup, or the one pod of a gang of one.

    Objects of different kinds may share a namespace and a name; ``kind`` keeps their gangs apart.
    """

    namespace: str
    name: str
    kind: ApiKind = POD_GROUP

    def __str__(self) -> str:
        """Read as kubectl prints it: ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class LeaseKey(NamedTuple):
    """The Lease that all replicas of one Tutti share."""

    namespace: str
    name: str


LeaderTerm = str  # one unbroken time of leading; no two are ever the same


@dataclass(frozen=True, slots=True)
class Lease:
    """A coordination.k8s.io Lease; times are RFC 3339 with microseconds, as they were written.

    An empty holder has given it back. An empty version means that there is no such object yet.
    """

    holder: str = ""
    acquired: str = ""
    renewed: str = ""
    seconds: int = 0  # without a renewal, until others may take it
    transitions: int = 0
    version: str = ""  # metadata.resourceVersion

    @property
    def term(self) -> LeaderTerm:
        """The holder and when it acquired the Lease: what a Reservation is signed with."""
        return f"{self.holder}/{self.acquired}" if self.holder else ""
