"""What a rejection says of room: what a gang asks for, and what there is of it."""

from dataclasses import dataclass

from ..model.decisions import Finding
from ..model.keys import GangKey, NodeName, PodKey
from ..model.resources import Resources

# What the gang asks for.


@dataclass(frozen=True, slots=True)
class Asked(Finding):
    """So many members need room, each for these requests."""

    members: int
    requests: Resources
    role: str = ""  # of all of them, where the gang's other roles ask for something else
    purpose: str = ""  # what they are for, of a gang that has started
    is_single: bool = False  # the gang is one pod


@dataclass(frozen=True, slots=True)
class MixedAsked(Finding):
    """So many members are needed of several kinds, which do not fit together."""

    needed: int
    kinds: tuple[tuple[int, Resources, "RoomFor"], ...]  # how many there are, and the room for them
    more_kinds: int = 0


# What room there is.


@dataclass(frozen=True, slots=True)
class RoomFor(Finding):
    """So many members fit, on so many nodes."""

    members: int
    nodes: int
    is_unused: bool = False  # and the plan leaves that room


@dataclass(frozen=True, slots=True)
class EmptyClusterRoom(Finding):
    """Without any pod the cluster has room for no more members than these."""

    members: int


@dataclass(frozen=True, slots=True)
class ShortOf(Finding):
    """So many members have no room."""

    members: int


@dataclass(frozen=True, slots=True)
class NoWayTogether(Finding):
    """Each kind of members has room, and the search found none for all together."""


@dataclass(frozen=True, slots=True)
class LargestDomain(Finding):
    """Members must be in one domain of a level, and this one has room for most of them.

    Without ``domain`` no node is in any domain of the level.
    """

    level: str
    domain: str
    members: int
    needed: int


@dataclass(frozen=True, slots=True)
class PortTaken(Finding):
    """A host port is taken on so many of the nodes that fit otherwise."""

    port: str
    nodes: int


@dataclass(frozen=True, slots=True)
class MorePortsTaken(Finding):
    """Further host ports are taken."""

    ports: int


@dataclass(frozen=True, slots=True)
class ExcludedByRules(Finding):
    """Nodes with room that rules between pods exclude: how many, and by which rule."""

    nodes_by_rule: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class RulesInForce(Finding):
    """Rules between pods that the gang's pods have to keep."""

    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoomHeldForIt(Finding):
    """The gang has waited longest, and room on so many nodes is held for it."""

    nodes: int


@dataclass(frozen=True, slots=True)
class RoomHeldForOther(Finding):
    """Room that the gang could use is held for another one."""

    gang: GangKey


# No node could ever hold a member.


@dataclass(frozen=True, slots=True)
class Excluded:
    """Nodes that will not do for a shape: how many, and why, the most frequent obstacle first."""

    nodes: int
    obstacles: tuple[tuple[int, str], ...]
    others: int = 0  # nodes with other obstacles


@dataclass(frozen=True, slots=True)
class LargestNode:
    """The most that any node has of a resource, and which node that is."""

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
