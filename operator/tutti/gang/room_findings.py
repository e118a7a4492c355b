"""The findings of rejections about room: what a gang requests, and what room there is."""

from dataclasses import dataclass

from ..model.decisions import Finding
from ..model.keys import GangKey, NodeName, PodKey
from ..model.resources import Resources

# What the gang requests.


@dataclass(frozen=True, slots=True)
class Asked(Finding):
    """So many members need room, each for these requests."""

    members: int
    requests: Resources
    role: str = ""  # the role of all these members, if other roles have other requests
    purpose: str = ""  # what the members of a started gang are for
    is_single: bool = False  # the gang is one pod


@dataclass(frozen=True, slots=True)
class MixedAsked(Finding):
    """So many members of several kinds are needed, and they do not fit together."""

    needed: int
    kinds: tuple[tuple[int, Resources, "RoomFor"], ...]  # members, requests and room of each kind
    more_kinds: int = 0


# What room there is.


@dataclass(frozen=True, slots=True)
class RoomFor(Finding):
    """So many members fit, on so many nodes."""

    members: int
    nodes: int
    is_unused: bool = False  # the plan does not use that room


@dataclass(frozen=True, slots=True)
class EmptyClusterRoom(Finding):
    """The empty cluster has room for at most so many members."""

    members: int


@dataclass(frozen=True, slots=True)
class ShortOf(Finding):
    """So many members have no room."""

    members: int


@dataclass(frozen=True, slots=True)
class NoWayTogether(Finding):
    """Each kind of members has room, but the search found no room for all kinds together."""


@dataclass(frozen=True, slots=True)
class LargestDomain(Finding):
    """Members must be in one domain of a level; this is the domain with room for the most members.

    If ``domain`` is empty, no node is in any domain of the level.
    """

    level: str
    domain: str
    members: int
    needed: int


@dataclass(frozen=True, slots=True)
class RoomInSegments(Finding):
    """Members must be in segments; the domains hold so many whole ones, and so many members.

    If the members must be in one wider domain, too, the numbers are those of ``around``, the domain
    of this wider level that has most room for them.
    """

    level: str
    size: int
    whole: int
    members: int
    needed: int
    around_level: str = ""
    around: str = ""


@dataclass(frozen=True, slots=True)
class DomainOfGang(Finding):
    """The gang has started, and its waiting members must be in this domain of a level.

    ``others`` are gangs that have room there of what is scarcest, the ``resource``; those with most
    come first, and ``more`` counts further ones. Pods of no gang have ``outside`` of it, in the
    unit of ``Resources``.
    """

    level: str
    domain: str
    others: tuple[GangKey, ...] = ()
    more: int = 0
    resource: str = ""
    outside: int = 0


@dataclass(frozen=True, slots=True)
class NoDomainsTogether(Finding):
    """It is proved that the gang has no room in any choice of domains of these levels."""

    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PortTaken(Finding):
    """A host port is taken on so many of the nodes that would fit otherwise."""

    port: str
    nodes: int


@dataclass(frozen=True, slots=True)
class MorePortsTaken(Finding):
    """So many further host ports are taken."""

    ports: int


@dataclass(frozen=True, slots=True)
class ExcludedByRules(Finding):
    """Rules between pods exclude nodes with room: how many nodes, by rule."""

    nodes_by_rule: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class RulesInForce(Finding):
    """The pods of the gang have to keep these rules between pods."""

    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoomHeldForIt(Finding):
    """The gang has waited longest, and room on so many nodes is held for it."""

    nodes: int


@dataclass(frozen=True, slots=True)
class RoomHeldForOther(Finding):
    """Room that the gang could use is held for this other gang."""

    gang: GangKey


# No node could ever hold a member.


@dataclass(frozen=True, slots=True)
class Excluded:
    """The nodes that a shape may not use: how many, and why, the most frequent obstacle first."""

    nodes: int
    obstacles: tuple[tuple[int, str], ...]
    others: int = 0  # nodes with other obstacles


@dataclass(frozen=True, slots=True)
class LargestNode:
    """The node that has the most of a resource."""

    resource: str
    request: int
    most: int
    node: NodeName


@dataclass(frozen=True, slots=True)
class NoNodeFits(Finding):
    """No node could hold a member, even if it were empty."""

    member: PodKey | None  # None for an absent member
    role: str
    requests: Resources
    excluded: Excluded  # by the member's node rules
    nodes: int  # in the cluster
    largest: LargestNode | None = None  # where one resource is too small on all other nodes
