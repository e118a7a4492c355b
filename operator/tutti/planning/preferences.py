"""Better nodes for those who start anyway: wishes choose among equal admissions.

What a pod would rather have is taken off its shape before anything is decided, so no strategy sees
it. Once it is settled who starts, members move to nodes that suit them better, or two of them
change places; room, rules and who starts stay as they are. Improved, not proved: as long as the sum
of all scores grows and work is left.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..gang import slots
from ..gang.demand import MemberCounts
from ..model.cluster import Member
from ..model.decisions import Assignment
from ..model.keys import Uid
from ..model.shapes import NO_WISHES, Effect, Shape
from .compile.grids import Grid
from .local_search import LocalSearch, MemberPlace, MoveContext

WORK = 20_000_000  # nodes that are looked at; seconds, once the cluster is large


def plain(found: Sequence[MemberCounts]) -> Sequence[MemberCounts]:
    """The same with members who wish for nothing: what is decided on first."""
    known: dict[int, Shape] = {}
    ready = [_plain(one.ready, known) for one in found]
    absent = [_plain(one.absent, known) for one in found]
    return [
        one
        if one.ready is here and one.absent is others
        else replace(one, ready=here, absent=others)
        for one, here, others in zip(found, ready, absent, strict=True)
    ]


def _plain(members: tuple[Member, ...], known: dict[int, Shape]) -> tuple[Member, ...]:
    if all(member.shape.wishes is NO_WISHES for member in members):
        return members

    def changed(member: Member) -> Member:
        shape = known.setdefault(id(member.shape), replace(member.shape, wishes=NO_WISHES))
        return replace(member, shape=shape)

    return slots.mapped(members, changed)


def improved(
    ground: MoveContext,
    wishing: Sequence[MemberCounts],
    found: Sequence[MemberCounts],
    assigned: Mapping[Uid, Assignment],
    work: int = WORK,
) -> Mapping[Uid, Assignment]:
    """The same members on nodes that suit them no worse; ``found`` are those of ``wishing``, plain.

    Where too many depend on one another, they are looked at as if each were alone.
    """
    if not assigned or not _is_asked(ground, wishing):
        return assigned
    choice = LocalSearch(ground, seats(ground.base, wishing, found, assigned), work)
    if not choice.is_open:
        return assigned
    best = choice.total()
    moved: Mapping[Uid, int] = {}
    while choice.sweep() and (total := choice.total()) > best:
        best, moved = total, choice.moved()
    nodes = ground.base.nodes
    better = {uid: replace(assigned[uid], node=nodes[row].name) for uid, row in moved.items()}
    return {**assigned, **better}


def _is_asked(ground: MoveContext, wishing: Sequence[MemberCounts]) -> bool:
    """Whether anybody's wishes could speak of those who wait."""
    return (
        any(one.shape.wishes is not NO_WISHES for census in wishing for one in census.waiting)
        or any(one.likings for one in ground.residents)
        or any(
            taint.effect == Effect.PREFER_NO_SCHEDULE
            for node in ground.base.nodes
            for taint in node.taints
        )
    )


def seats(
    base: Grid,
    wishing: Sequence[MemberCounts],
    found: Sequence[MemberCounts],
    assigned: Mapping[Uid, Assignment],
) -> Sequence[MemberPlace]:
    """Those who were given a node."""
    rows = {node.name: row for row, node in enumerate(base.nodes)}
    pairs = zip(wishing, found, strict=True)
    members = (each for one, two in pairs for each in zip(one.waiting, two.waiting, strict=True))
    return [
        MemberPlace(member, base.shapes[plainly.shape], rows[assigned[member.uid].node])
        for member, plainly in members
        if member.uid in assigned
    ]
