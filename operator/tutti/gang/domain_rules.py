"""The levels of the cluster's network that gangs name, as labels of nodes.

The planner and the checker both read a rule by this module.
"""

from collections.abc import Iterable, Sequence

from ..model.cluster import Gang, Member, Snapshot
from ..model.decisions import Reason, Rejection
from ..model.inter_pod import DomainRule, Topology
from .findings import UnknownLevel


def labels_of(level: str, topologies: Iterable[Topology]) -> tuple[str, ...]:
    """The labels that tell a domain of the level, the widest first; none if no topology has it.

    Where several topologies have the level, the first by name counts.
    """
    for topology in sorted(topologies, key=lambda topology: topology.name):
        if level in topology.levels:
            return topology.levels[: topology.levels.index(level) + 1]
    return ()


def covers(rule: DomainRule, role: str) -> bool:
    """Whether the rule speaks of members of the role."""
    return not rule.roles or role in rule.roles


def unknown_level(gang: Gang, snapshot: Snapshot) -> Rejection | None:
    """Why a gang waits that names a level which no topology has."""
    if not gang.same_domain or not any(member.may_get_a_node for member in gang.members):
        return None
    known = {level for topology in snapshot.topologies for level in topology.levels}
    unknown = sorted({rule.level for rule in gang.same_domain} - known)
    if not unknown:
        return None
    return Rejection(
        gang.key, Reason.UNKNOWN_LEVEL, (UnknownLevel(unknown[0], tuple(sorted(known))),)
    )


def members_on_nodes(gang: Gang) -> Sequence[Member]:
    """The members that fix a domain: they have a node and have not ended."""
    return [member for member in gang.members if member.node is not None and not member.is_over]
