"""Why each gang that got no placement waits: one reason and one sentence per gang.

Separate from the decision, which never reads them. A sentence says what was asked for, what was
found and what is short; it claims a proof only where there is one.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ..model.cluster import Gang, Member
from ..model.decisions import Reason, Rejection
from ..model.keys import Uid
from ..model.shapes import Shape
from . import attendance, demand, obstacles, shortage
from .amounts import count
from .crowds import Crowds
from .demand import Census, Want
from .shortage import Rooms
from .starving import Hold


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What the decision was made on, and what it left.

    ``shortfall`` is why the search ended without a proof; empty if it was not cut short.
    """

    empty: Rooms  # every node without its pods
    before: Rooms  # when whole gangs were considered
    left: Rooms  # once the whole plan is carried out
    behind: Rooms  # of that, what is not held
    crowds: Crowds  # once the whole plan is carried out
    placed: Collection[Uid]
    shortfall: str = ""
    hold: Hold | None = None

    def left_for(self, gang: Gang) -> Rooms:
        """What the gang could take of the room that is left."""
        is_held_back = self.hold is not None and self.hold.holds_back(gang)
        return self.behind if is_held_back else self.left


def rejections(evidence: Evidence, found: Sequence[Census]) -> tuple[Rejection, ...]:
    """Why each of the gangs waits, in their order; nothing about those that lack nothing."""
    known: dict[Shape, str] = {}  # many gangs share a shape, and this looks at every node
    answers = (_rejection(evidence, census, known) for census in found)
    pairs = zip(answers, found, strict=True)
    return tuple(_of_class(answer, one.gang) for answer, one in pairs if answer is not None)


def _of_class(rejection: Rejection, gang: Gang) -> Rejection:
    """Whoever names a PriorityClass that does not exist is told what counts instead."""
    if not gang.priority_class or gang.class_value is not None:
        return rejection
    unknown = f"PriorityClass {gang.priority_class} does not exist"
    instead = f"so its pods' highest priority, {gang.priority}, counts"
    return replace(rejection, sentence=f"{rejection.sentence}; {unknown}, {instead}")


def _rejection(evidence: Evidence, census: Census, known: dict[Shape, str]) -> Rejection | None:
    if any(member.uid in evidence.placed for member in census.waiting):
        return None
    if census.is_committed and census.waiting and not census.gang.terminating:
        answer = _of_started(evidence, census, known)
        return replace(answer, is_beyond=census.missing <= 0)
    want = demand.whole(census)
    if want is None:
        return attendance.absence(census)
    if (member := shortage.nowhere_member(evidence.empty, want)) is not None:
        return _nowhere(evidence, want, member, known)
    left = evidence.left_for(census.gang)
    sentence = shortage.not_enough_room(evidence.empty, left, want)
    sentence += obstacles.said(evidence.crowds, left, want) + _held(evidence, want)
    might_fit = shortage.short(evidence.before, want) is None
    return _no_room(evidence, want, sentence, might_fit=might_fit)


def _of_started(evidence: Evidence, census: Census, known: dict[Shape, str]) -> Rejection:
    """A started gang whose waiting members, lost ones' successors or extras, have no room."""
    shape = census.waiting[0].shape
    want = Want(census.gang, 1, tuple(m for m in census.waiting if m.shape == shape))
    if (member := shortage.nowhere_member(evidence.empty, want)) is not None:
        return _nowhere(evidence, want, member, known)
    beyond = f"beyond the {demand.needed(census.gang)} needed"
    purpose = "to replace lost ones" if census.missing > 0 else beyond
    is_repair = census.missing > 0
    left = evidence.left if is_repair else evidence.left_for(census.gang)
    sentence = shortage.single_members(want.members, purpose, left)
    sentence += obstacles.said(evidence.crowds, left, want)
    sentence += "" if is_repair else _held(evidence, want)
    might_fit = evidence.before[shape].members > 0
    return _no_room(evidence, want, sentence, might_fit=might_fit)


def _held(evidence: Evidence, want: Want) -> str:
    """What held room has to do with it that the gang waits."""
    hold = evidence.hold
    if hold is None:
        return ""
    if hold.gang.key == want.gang.key:
        where = count(hold.nodes, "node")
        return f"; it has waited longest, so room is held for it on {where} as it frees up"
    left = evidence.left_for(want.gang)
    shapes = {member.shape for member in want.members}
    if all(left[shape].members == evidence.left[shape].members for shape in shapes):
        return ""
    return f"; more room is held for gang {hold.gang.key}, which goes first"


def _nowhere(evidence: Evidence, want: Want, member: Member, known: dict[Shape, str]) -> Rejection:
    if member.shape not in known:
        known[member.shape] = shortage.nowhere(evidence.empty.base, member.shape)
    who = f"member {member.key}" if member.key.name else f"an absent member of role {member.role}"
    sentence = f"no node of the kinds present fits {who}: {known[member.shape]}"
    return Rejection(want.gang.key, Reason.NO_NODE_FITS, sentence)


def _no_room(evidence: Evidence, want: Want, sentence: str, *, might_fit: bool) -> Rejection:
    if evidence.shortfall and might_fit:
        unproved = f"{sentence}; not proved to be the best choice: {evidence.shortfall}"
        return Rejection(want.gang.key, Reason.BUDGET_EXHAUSTED, unproved)
    return Rejection(want.gang.key, Reason.NOT_ENOUGH_ROOM, sentence)
