"""An explanation in words: sentences made of the data and nothing else.

Separate from finding it out. A sentence says "proved" only where the data says so.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..gang.quantities import count, format_name, format_resources
from ..model.keys import GangKey
from .gang_state import GangOutcome, GangStanding
from .results import (
    Advice,
    Bottleneck,
    Certainty,
    Diagnosis,
    EndedGangs,
    MoreNodes,
    Obstacle,
    Placeable,
    ShortShape,
    SmallerNeed,
)

MOST_NAMED = 8
AS_FAR_AS_TRIED = "as far as tried"
WOULD = "each of these would start it:"
WOULD_NOT = "these would not:"


class _Change(NamedTuple):
    """One change in words, and whether it would start the gang."""

    sentence: str
    helps: bool = True


def of_standing(found: GangStanding) -> str:
    """What has become of a gang, in one sentence."""
    members = f"{found.bound} of {count(found.needed, 'member')}"
    match found.state:
        case GangOutcome.WAITS:
            return f"{found.gang} waits"
        case GangOutcome.STARTS if found.hindrance:
            return f"{found.gang} would start now, {_nodes(found)}; {found.hindrance}"
        case GangOutcome.STARTS:
            return f"{found.gang} starts in the next cycle: {_nodes(found)}"
        case GangOutcome.RESERVED:
            return f"{found.gang} is reserved and being bound, {members} so far: {_nodes(found)}"
        case GangOutcome.FINISHED:
            return f"{found.gang} has finished"
    has = "has started and lost members" if found.state is GangOutcome.PARTIAL else "is bound"
    sentence = f"{found.gang} {has}, {members}{' bound' * (found.state is GangOutcome.PARTIAL)}"
    where = f": {_nodes(found)}" if found.nodes else ""
    return f"{sentence}{where}; {found.ailment or 'healthy'}"


def _nodes(found: GangStanding) -> str:
    named = [f"{n} on {node}" for node, n in found.nodes[:MOST_NAMED]]
    if (rest := found.nodes[MOST_NAMED:]) != ():
        named.append(f"{sum(n for _, n in rest)} on {count(len(rest), 'more node')}")
    return ", ".join(named)


def of_advice(found: Advice) -> Sequence[str]:
    """Why a gang waits and what would start it: one line each, what would help with a dash."""
    lines = [f"{found.gang} waits: {found.reason}", f"  {found.sentence}"]
    if found.alike:
        lines.append(f"  {_gangs(found.alike)} wait{'s' * (len(found.alike) == 1)} for the same")
    if found.diagnosis is not None:
        lines += (f"  {line}" for line in _lacks(found.diagnosis, found.needed))
        changes = tuple(_changes(found.diagnosis))
        for heading, helps in ((WOULD, True), (WOULD_NOT, False)):
            named = [f"  - {change.sentence}" for change in changes if change.helps is helps]
            lines += [f"  {heading}", *named] if named else []
    return lines


def _lacks(found: Diagnosis, needed: int) -> Iterable[str]:
    yield f"room now for {_placeable(found.beside, needed)}"
    if found.alone.members > found.beside.members:
        yield f"without the other waiting gangs, room for {_placeable(found.alone, needed)}"
    if found.short is not None:
        yield _short(found.short)
    yield from (_bottleneck(bottleneck) for bottleneck in found.bottlenecks)
    if not found.bottlenecks and found.beside.members < needed:
        yield "no single resource is the only obstacle"


def _placeable(found: Placeable, needed: int) -> str:
    how = "proved" if found.certainty is Certainty.PROVED else AS_FAR_AS_TRIED
    return f"{found.members} of the {count(needed, 'member')} needed ({how})"


def _short(found: ShortShape) -> str:
    role = f"role {', '.join(found.roles)}: " * bool(found.roles)
    asked = format_resources(found.requests)
    must = f"{count(found.forced, 'member')} must start with {asked}"
    return f"{role}{must}, and {found.room or 'none'} of them {_have(found.room)} room"


def _have(n: int) -> str:
    return "has" if n == 1 else "have"


def _bottleneck(found: Bottleneck) -> str:
    is_resource = found.obstacle is Obstacle.RESOURCE
    names = format_name(found.name) if is_resource else f"node rules ({found.name})"
    how = "" if found.admits.certainty is Certainty.PROVED else f", {AS_FAR_AS_TRIED}"
    return f"short of {names}: with plenty of it, room for {found.admits.members}{how}"


def _changes(found: Diagnosis) -> Iterable[_Change]:
    yield _more_nodes(found.nodes)
    if found.min_member is not None:
        yield _smaller_need(found.min_member)
    yield _ended(found.ended)
    if found.preferred.gangs:
        yield _preferred(found.preferred)


def _more_nodes(found: MoreNodes) -> _Change:
    if not found.count:
        which = "the 1 kind" if found.kinds == 1 else f"any one of the {found.kinds} kinds"
        return _futile(f"more nodes of {which} present", found.certainty, cut=found.cut)
    more = f"{found.count} more {'node' if found.count == 1 else 'nodes'} like {found.like}"
    if found.certainty is Certainty.PROVED:
        fewer = f"with {found.count - 1} it does not start"
        how = fewer if found.count > 1 else "it does not start without"
        return _Change(f"{more} (proved: {how})")
    return _Change(f"{more} (not proved: fewer may be enough{_cut(cut=found.cut)})")


def _smaller_need(found: SmallerNeed) -> _Change:
    if not found.min_member:
        smaller = f"a smaller minMember, down to {found.floor}"
        return _futile(smaller, found.certainty, cut=found.cut)
    smaller = f"minMember {found.min_member}"
    if found.certainty is Certainty.PROVED:
        return _Change(f"{smaller} (proved: with {found.min_member + 1} it does not start)")
    return _Change(f"{smaller} (not proved: a larger one may be enough{_cut(cut=found.cut)})")


def _ended(found: EndedGangs) -> _Change:
    if found.gangs:
        return _Change(f"the end of {_gangs(found.gangs)} ({_fewer(found.certainty)})")
    some = "any" if found.certainty is Certainty.PROVED else "a few"
    return _futile(f"the end of {some} gangs that Tutti has bound", found.certainty, cut=found.cut)


def _preferred(found: EndedGangs) -> _Change:
    them = "it" if len(found.gangs) == 1 else "them"
    given = f"giving up the room that the plan gives {them}"
    return _Change(f"{_gangs(found.gangs)} {given} ({_fewer(found.certainty)})")


def _futile(change: str, certainty: Certainty, *, cut: bool) -> _Change:
    """What does not help, and how sure that is."""
    how = "proved" if certainty is Certainty.PROVED else AS_FAR_AS_TRIED
    return _Change(f"{change} ({how}{_cut(cut=cut)})", helps=False)


def _fewer(certainty: Certainty) -> str:
    return (
        "proved: fewer are not enough"
        if certainty is Certainty.PROVED
        else "not proved: fewer may be enough"
    )


def _gangs(keys: Sequence[GangKey]) -> str:
    named = [str(key) for key in keys[:MOST_NAMED]]
    if len(keys) > MOST_NAMED:
        named.append(f"{len(keys) - MOST_NAMED} more")
    return " and ".join(", ".join(named).rsplit(", ", 1))


def _cut(*, cut: bool) -> str:
    return "; the search ended early" if cut else ""
