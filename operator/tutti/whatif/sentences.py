"""An explanation in words, made only from the data.

A sentence says "proved" only where the data says so.
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


def of_standing(standing: GangStanding) -> str:
    """The state of a gang, in one sentence."""
    members = f"{standing.bound} of {count(standing.needed, 'member')}"
    match standing.state:
        case GangOutcome.WAITS:
            return f"{standing.gang} waits"
        case GangOutcome.STARTS if standing.hindrance:
            return f"{standing.gang} would start now, {_nodes(standing)}; {standing.hindrance}"
        case GangOutcome.STARTS:
            return f"{standing.gang} starts in the next cycle: {_nodes(standing)}"
        case GangOutcome.RESERVED:
            return (
                f"{standing.gang} is reserved and being bound, {members} so far: {_nodes(standing)}"
            )
        case GangOutcome.FINISHED:
            return f"{standing.gang} has finished"
    has = "has started and lost members" if standing.state is GangOutcome.PARTIAL else "is bound"
    sentence = (
        f"{standing.gang} {has}, {members}{' bound' * (standing.state is GangOutcome.PARTIAL)}"
    )
    where = f": {_nodes(standing)}" if standing.nodes else ""
    covered = "" if standing.cover is None else f"; {standing.cover}"
    return f"{sentence}{where}; {standing.ailment or 'healthy'}{covered}"


def _nodes(standing: GangStanding) -> str:
    on_nodes = [f"{n} on {node}" for node, n in standing.nodes[:MOST_NAMED]]
    if (rest := standing.nodes[MOST_NAMED:]) != ():
        on_nodes.append(f"{sum(n for _, n in rest)} on {count(len(rest), 'more node')}")
    notes = [*map(str, standing.domains), *([standing.preference] if standing.preference else [])]
    return "; ".join([", ".join(on_nodes), *notes])


def of_advice(advice: Advice) -> Sequence[str]:
    """Why a gang waits and what would start it: one line each, changes with a dash."""
    lines = [f"{advice.gang} waits: {advice.reason}", f"  {advice.sentence}"]
    if advice.alike:
        lines.append(f"  {_gangs(advice.alike)} wait{'s' * (len(advice.alike) == 1)} for the same")
    if advice.diagnosis is not None:
        lines += (f"  {line}" for line in _lacks(advice.diagnosis, advice.needed))
        changes = tuple(_changes(advice.diagnosis))
        for heading, helps in ((WOULD, True), (WOULD_NOT, False)):
            bullets = [f"  - {change.sentence}" for change in changes if change.helps is helps]
            lines += [f"  {heading}", *bullets] if bullets else []
    return lines


def _lacks(diagnosis: Diagnosis, need: int) -> Iterable[str]:
    yield f"room now for {_placeable(diagnosis.beside, need)}"
    if diagnosis.alone.members > diagnosis.beside.members:
        yield f"without the other waiting gangs, room for {_placeable(diagnosis.alone, need)}"
    if diagnosis.short is not None:
        yield _short(diagnosis.short)
    yield from (_bottleneck(bottleneck) for bottleneck in diagnosis.bottlenecks)
    if not diagnosis.bottlenecks and diagnosis.beside.members < need:
        yield "no single resource is the only obstacle"


def _placeable(placeable: Placeable, need: int) -> str:
    how = "proved" if placeable.certainty is Certainty.PROVED else AS_FAR_AS_TRIED
    return f"{placeable.members} of the {count(need, 'member')} needed ({how})"


def _short(shape: ShortShape) -> str:
    role = f"role {', '.join(shape.roles)}: " * bool(shape.roles)
    requests = format_resources(shape.requests)
    must = f"{count(shape.forced, 'member')} must start with {requests}"
    return f"{role}{must}, and {shape.room or 'none'} of them {_have(shape.room)} room"


def _have(n: int) -> str:
    return "has" if n == 1 else "have"


def _bottleneck(bottleneck: Bottleneck) -> str:
    is_resource = bottleneck.obstacle is Obstacle.RESOURCE
    names = format_name(bottleneck.name) if is_resource else f"node rules ({bottleneck.name})"
    how = "" if bottleneck.admits.certainty is Certainty.PROVED else f", {AS_FAR_AS_TRIED}"
    return f"short of {names}: with plenty of it, room for {bottleneck.admits.members}{how}"


def _changes(diagnosis: Diagnosis) -> Iterable[_Change]:
    yield _more_nodes(diagnosis.nodes)
    if diagnosis.min_member is not None:
        yield _smaller_need(diagnosis.min_member)
    yield _ended(diagnosis.ended)
    if diagnosis.preferred.gangs:
        yield _preferred(diagnosis.preferred)


def _more_nodes(nodes: MoreNodes) -> _Change:
    if not nodes.count:
        kinds = "the 1 kind" if nodes.kinds == 1 else f"any one of the {nodes.kinds} kinds"
        return _futile(f"more nodes of {kinds} present", nodes.certainty, cut=nodes.cut)
    addition = f"{nodes.count} more {'node' if nodes.count == 1 else 'nodes'} like {nodes.like}"
    if nodes.certainty is Certainty.PROVED:
        fewer = f"with {nodes.count - 1} it does not start"
        how = fewer if nodes.count > 1 else "it does not start without"
        return _Change(f"{addition} (proved: {how})")
    return _Change(f"{addition} (not proved: fewer may be enough{_cut(cut=nodes.cut)})")


def _smaller_need(need: SmallerNeed) -> _Change:
    if not need.min_member:
        smaller = f"a smaller minMember, down to {need.floor}"
        return _futile(smaller, need.certainty, cut=need.cut)
    smaller = f"minMember {need.min_member}"
    if need.certainty is Certainty.PROVED:
        return _Change(f"{smaller} (proved: with {need.min_member + 1} it does not start)")
    return _Change(f"{smaller} (not proved: a larger one may be enough{_cut(cut=need.cut)})")


def _ended(gangs: EndedGangs) -> _Change:
    if gangs.gangs:
        return _Change(
            f"the end of {_gangs(gangs.gangs)}{_where(gangs)} ({_fewer(gangs.certainty)})"
        )
    number = "any" if gangs.certainty is Certainty.PROVED else "a few"
    return _futile(
        f"the end of {number} gangs that Tutti has bound", gangs.certainty, cut=gangs.cut
    )


def _preferred(gangs: EndedGangs) -> _Change:
    them = "it" if len(gangs.gangs) == 1 else "them"
    room = f"giving up the room that the plan gives {them}"
    return _Change(f"{_gangs(gangs.gangs)} {room}{_where(gangs)} ({_fewer(gangs.certainty)})")


def _where(gangs: EndedGangs) -> str:
    return f": it then starts in {gangs.domain}" if gangs.domain else ""


def _futile(change: str, certainty: Certainty, *, cut: bool) -> _Change:
    """A change that does not help, and whether that is proved."""
    how = "proved" if certainty is Certainty.PROVED else AS_FAR_AS_TRIED
    return _Change(f"{change} ({how}{_cut(cut=cut)})", helps=False)


def _fewer(certainty: Certainty) -> str:
    return (
        "proved: fewer are not enough"
        if certainty is Certainty.PROVED
        else "not proved: fewer may be enough"
    )


def _gangs(keys: Sequence[GangKey]) -> str:
    names = [str(key) for key in keys[:MOST_NAMED]]
    if len(keys) > MOST_NAMED:
        names.append(f"{len(keys) - MOST_NAMED} more")
    return " and ".join(", ".join(names).rsplit(", ", 1))


def _cut(*, cut: bool) -> str:
    return "; the search ended early" if cut else ""
