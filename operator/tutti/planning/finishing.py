"""Members that ended well and were cleared away: a gang that is finishing is not a broken one.

They count for as long as some other member does; a PodGroup that is used again starts anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..model.cluster import Gang, Phase
from . import demand

UNDER_WAY = ("Bound", "Running")  # the phases in which a gang may have begun to finish


def with_finished(gang: Gang, roles: Sequence[str]) -> Gang:
    """The gang with its members of these roles that have finished and are gone."""
    if not roles or not any(member.counts_as_bound for member in gang.members):
        return gang
    known = {role.name for role in gang.roles}
    return replace(gang, finished=tuple(role for role in roles if not known or role in known))


def recalled(gang: Gang, status: Mapping[str, object]) -> tuple[str, ...]:
    """The roles of those that only a status written before a restart still tells of.

    No more than the gang lacks, and none in place of one that has finished since it was written:
    better to miss a finished member than not to miss a lost one.
    """
    counts = status.get("members")
    said = counts.get("succeeded") if isinstance(counts, Mapping) else None
    if status.get("phase") not in UNDER_WAY or not isinstance(said, int):
        return ()
    found = demand.census(gang)
    gone = said - sum(member.phase is Phase.SUCCEEDED for member in found.bound)
    lacking = [role for role, n in found.missing_by_role.items() for _ in range(n)]
    lacking += [""] * (found.missing - len(lacking))
    return tuple(lacking[: max(gone, 0)])
