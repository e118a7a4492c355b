"""Why a gang waits for its own members: how many exist, and what would bring the others.

Separate from room: these sentences need the gang alone, and nothing is scaled up for them.
"""

from collections.abc import Iterable, Sequence

from ..gang.demand import MemberCounts, is_enough, needed
from ..gang.quantities import count
from ..model.cluster import Gang, Member, Phase
from ..model.decisions import Reason, Rejection

MOST_GATES = 3  # named in one sentence
MOST_CLAIMS = 3  # likewise


def absence(found: MemberCounts) -> Rejection | None:
    """Why the gang cannot ask for room yet; None if it can, or has nothing to ask for."""
    if found.gang.terminating:
        waits = found.ready or found.unmodelled or found.lacking or found.gated
        return _waiting(found, "the PodGroup is being deleted") if waits else None
    if found.gang.is_single:
        return _single(found)
    if found.is_committed:
        return _after_the_start(found)
    if is_enough(found.gang, found.waiting):
        return None
    return _too_few(found)


def _too_few(found: MemberCounts) -> Rejection:
    """Why too few members of a gang that has not started could be bound now."""
    others = found.waiting + found.unmodelled
    if found.unmodelled and is_enough(found.gang, others):
        return _not_modelled(found)
    if found.lacking and is_enough(found.gang, others + found.lacking):
        return _without_volumes(found)
    return _waiting(found, _before_the_start(found))


def _waiting(found: MemberCounts, sentence: str) -> Rejection:
    return Rejection(found.gang.key, Reason.WAITING_FOR_MEMBERS, sentence)


def _not_modelled(found: MemberCounts) -> Rejection:
    fields = sorted({name for member in found.unmodelled for name in member.unmodelled})
    n = len(found.unmodelled)
    who = "the pod uses" if found.gang.is_single else f"{count(n, 'member')} use{'s' * (n == 1)}"
    sentence = f"{who} {', '.join(fields)}, which Tutti does not place yet"
    return Rejection(found.gang.key, Reason.NOT_MODELLED, sentence)


def _without_volumes(found: MemberCounts) -> Rejection:
    sentence = wanting(found.lacking)
    return Rejection(found.gang.key, Reason.WAITING_FOR_VOLUMES, sentence)


def wanting(lacking: Sequence[Member]) -> str:
    """What is wrong with the claims of these members; others than Tutti put it right."""
    whats = list(dict.fromkeys(what for member in lacking for what in member.lacking))
    if len(whats) > MOST_CLAIMS:
        whats[MOST_CLAIMS:] = [f"{len(whats) - MOST_CLAIMS} more"]
    n = len(lacking)
    return f"{count(n, 'pod')} wait{'s' * (n == 1)} for volumes: {', '.join(whats)}"


def _single(found: MemberCounts) -> Rejection | None:
    if unread := next(
        (m.size_unknown_because for m in found.gang.members if m.size_unknown_because), ""
    ):
        return Rejection(found.gang.key, Reason.WAITING_FOR_CONFIGURATION, unread)
    if found.lacking:
        return _without_volumes(found)
    if found.unmodelled:
        return _not_modelled(found)
    said = f"the pod has scheduling gates{_names(found)}"
    return _waiting(found, said) if found.gated else None


def _after_the_start(found: MemberCounts) -> Rejection | None:
    """A started gang lacks members, and too few wait to replace them."""
    lacks = found.missing - len(found.ready)
    if found.lacking:
        return _without_volumes(found)
    if found.unmodelled:
        return _not_modelled(found)
    if lacks <= 0:
        return _waiting(found, beyond(found.surplus)) if found.surplus else None
    there = len(found.bound) + len(found.gang.finished)
    bound = f"{there} of {count(needed(found.gang), 'member')} are bound"
    lost = f"{lacks} lost, and no pod waits to replace {'it' if lacks == 1 else 'them'}"
    if any(role.template is not None for role in found.gang.roles):
        lost = (
            f"{lacks} lost or never made, and no room is held for {'it' if lacks == 1 else 'them'}"
        )
    return _waiting(found, f"{bound}; {lost}{_gates(found, 'more')}")


def _before_the_start(found: MemberCounts) -> str:
    present = found.ready + found.unmodelled + found.lacking + found.gated
    gang = found.gang
    by_role = {role.name: [m for m in present if m.role == role.name] for role in gang.roles}
    short = [
        f"role {role.name}: {len(by_role[role.name])} of {role.min_member} exist"
        for role in gang.roles
        if len(by_role[role.name]) < role.min_member and (role.template is None or not present)
    ]
    total = f"{len(present)} of {count(needed(gang), 'member')} exist"
    advice = "" if is_enough(gang, present) else _advice(needed(gang), present)
    others = f"{_gates(found)}{_failed(found)}{_roleless(found)}{_surplus(found)}{_unread(gang)}"
    return f"{'; '.join(short) or total}{others}{advice}"


def _gates(found: MemberCounts, whose: str = "of them") -> str:
    n = len(found.gated)
    have = "has" if n == 1 else "have"
    return f"; {n} {whose} {have} scheduling gates{_names(found)}" if n else ""


def _names(found: MemberCounts) -> str:
    """The gates that hold members back, so that people know whom to ask."""
    names = sorted({name for member in found.gated for name in member.gates})
    more = [f"{len(names) - MOST_GATES} more"] * (len(names) > MOST_GATES)
    return f" ({', '.join([*names[:MOST_GATES], *more])})"


def _failed(found: MemberCounts) -> str:
    n = sum(member.phase is Phase.FAILED for member in found.gang.members)
    return f"; {n} more {'has' if n == 1 else 'have'} failed" if n else ""


def _roleless(found: MemberCounts) -> str:
    n = len(found.roleless)
    return f"; {count(n, 'pod')} name{'s' * (n == 1)} no role of the gang" if n else ""


def beyond(surplus: Sequence[Member]) -> str:
    """Whom the roles have no place for; they wait for their own siblings, not for room."""
    roles = sorted({member.role for member in surplus})
    whose = f"role{'s' * (len(roles) > 1)} {', '.join(roles)}"
    n = len(surplus)
    each = "has its" if len(roles) == 1 else "have their"
    return f"{whose} {each} maxMember; {n} more wait{'s' * (n == 1)} until a member has ended"


def _surplus(found: MemberCounts) -> str:
    n = len(found.surplus)
    return f"; {n} more {'is' if n == 1 else 'are'} beyond the maxMember of their role" * bool(n)


def _unread(gang: Gang) -> str:
    """Whose absent members must exist although there is a template of them."""
    return "".join(
        f"; no room is held for absent members of role {role.name}, since its template has "
        f"{', '.join(role.unreadable)}"
        for role in gang.roles
        if role.unreadable
    )


def _advice(least: int, present: Iterable[Member]) -> str:
    """What to change in the controllers that make pods too few at a time."""
    owners = {member.owner.kind: member.owner.name for member in present if member.owner}
    said = ""
    if (name := owners.get("StatefulSet")) is not None:
        said += (
            f"; StatefulSet {name}, if OrderedReady, creates one pod at a time: "
            "set podManagementPolicy: Parallel"
        )
    if (name := owners.get("Job")) is not None:
        said += f"; Job {name}: spec.parallelism must be at least minMember ({least})"
    return said
