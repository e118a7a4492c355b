"""Typed names, so that two kinds of string cannot be mixed up, and the Lease of the leader."""

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
    """The API group and the kind of an object; the PodGroups of several projects differ in it."""

    group: str  # empty for the core API
    kind: str

    def __str__(self) -> str:
        """Read as kubectl takes it: ``kind.group``, or the kind alone for the core API."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


POD = ApiKind("", "Pod")
POD_GROUP = ApiKind("tutti.dev", "PodGroup")


class GangKey(NamedTuple):
    """The object that declares a gang: a PodGroup, or the pod of a gang of one.

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


LeaderTerm = str  # identifies one unbroken time as leader; no two terms are the same


@dataclass(frozen=True, slots=True)
class Lease:
    """A coordination.k8s.io Lease; times are RFC 3339 with microseconds, as they were written.

    An empty holder means that the last one gave it back. An empty version means that the object
    does not exist yet.
    """

    holder: str = ""
    acquired: str = ""
    renewed: str = ""
    seconds: int = 0  # so long after the last renewal, another replica may take it
    transitions: int = 0
    version: str = ""  # metadata.resourceVersion
    mode: str = ""  # of the Tutti that acquired it last; empty if none or an older one did

    @property
    def term(self) -> LeaderTerm:
        """The holder and when it acquired the Lease; Reservations are signed with it."""
        return f"{self.holder}/{self.acquired}" if self.holder else ""
