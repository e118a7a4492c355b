"""Why each gang that got no placement waits: one reason and one sentence per gang.

Separate from the decision, which never reads them. A sentence says what was asked for, what was
found and what is short; it claims a proof only where there is one.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ..gang import demand
from ..gang.demand import MemberCounts, PlacementRequest
from ..gang.quantities import count
from ..model.cluster import Gang, Member
from ..model.decisions import Reason, Rejection
from ..model.keys import Uid
from ..model.shapes import Shape
from . import inter_pod_obstacles, missing_members
from .compile import capacity
from .compile.capacity import FitByShape
from .compile.inter_pod import InterPodCompiler
from .search.limits import NO_PROGRESS, Progress
from .search.starvation import HeldCapacity


@dataclass(frozen=True, slots=True, eq=False)
class ExplainContext:
    """What the decision was made on, and what it left.

    ``shortfall`` is why the search ended without a proof; empty if it was not cut short.
    """

    empty: FitByShape  # every node without its pods
    before: FitByShape  # when whole gangs were considered
    left: FitByShape  # once the whole plan is carried out
    behind: FitByShape  # of that, what is not held
    crowds: InterPodCompiler  # once the whole plan is carried out
    placed: Collection[Uid]
    shortfall: str = ""
    hold: HeldCapacity | None = None

    def left_for(self, gang: Gang) -> FitByShape:
        """What the gang could take of the room that is left."""
        is_held_back = self.hold is not None and self.hold.holds_back(gang)
        return self.behind if is_held_back else self.left


def rejections(
    evidence: ExplainContext, found: Sequence[MemberCounts], progress: Progress = NO_PROGRESS
) -> tuple[Rejection, ...]:
    """Why each of the gangs waits, in their order; nothing about those that lack nothing."""
    known: dict[Shape, str] = {}  # many gangs share a shape, and this looks at every node
    answers = []
    for census in found:
        progress.step()
        if (answer := _rejection(evidence, census, known)) is not None:
            answers.append(_of_class(answer, census.gang))
    return tuple(answers)


def _of_class(rejection: Rejection, gang: Gang) -> Rejection:
    """Whoever names a PriorityClass that does not exist is told what counts instead."""
    if not gang.priority_class or gang.class_value is not None:
        return rejection
    unknown = f"PriorityClass {gang.priority_class} does not exist"
    instead = f"so its pods' highest priority, {gang.priority}, counts"
    return replace(rejection, sentence=f"{rejection.sentence}; {unknown}, {instead}")


def _rejection(
    evidence: ExplainContext, census: MemberCounts, known: dict[Shape, str]
) -> Rejection | None:
    if any(member.uid in evidence.placed for member in census.waiting):
        return None
    oldest = demand.within_maximums(census)
    if census.is_committed and census.waiting and not census.gang.terminating:
        answer = _of_started(evidence, oldest, known)
        return replace(answer, only_extra_members=census.missing <= 0)
    want = demand.whole(census)
    if want is None:
        return missing_members.absence(oldest)
    if (member := capacity.nowhere_member(evidence.empty, want)) is not None:
        return _nowhere(evidence, want, member, known)
    left = evidence.left_for(census.gang)
    sentence = capacity.not_enough_room(evidence.empty, left, want)
    sentence += inter_pod_obstacles.said(evidence.crowds, left, want) + _held(evidence, want)
    might_fit = capacity.short(evidence.before, want) is None
    return _no_room(evidence, want, sentence, might_fit=might_fit)


def _of_started(
    evidence: ExplainContext, census: MemberCounts, known: dict[Shape, str]
) -> Rejection:
    """A started gang whose waiting members, lost ones' successors or extras, have no room."""
    shape = census.waiting[0].shape
    want = PlacementRequest(census.gang, 1, tuple(m for m in census.waiting if m.shape == shape))
    if (member := capacity.nowhere_member(evidence.empty, want)) is not None:
        return _nowhere(evidence, want, member, known)
    beyond = f"beyond the {demand.needed(census.gang)} needed"
    purpose = "to replace lost ones" if census.missing > 0 else beyond
    is_repair = census.missing > 0
    left = evidence.left if is_repair else evidence.left_for(census.gang)
    sentence = capacity.single_members(want.members, purpose, left)
    sentence += inter_pod_obstacles.said(evidence.crowds, left, want)
    sentence += "" if is_repair else _held(evidence, want)
    might_fit = evidence.before[shape].members > 0
    return _no_room(evidence, want, sentence, might_fit=might_fit)


def _held(evidence: ExplainContext, want: PlacementRequest) -> str:
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


def _nowhere(
    evidence: ExplainContext, want: PlacementRequest, member: Member, known: dict[Shape, str]
) -> Rejection:
    if member.shape not in known:
        known[member.shape] = capacity.nowhere(evidence.empty.base, member.shape)
    who = f"member {member.key}" if member.key.name else f"an absent member of role {member.role}"
    sentence = f"no node of the kinds present fits {who}: {known[member.shape]}"
    return Rejection(want.gang.key, Reason.NO_NODE_FITS, sentence)


def _no_room(
    evidence: ExplainContext, want: PlacementRequest, sentence: str, *, might_fit: bool
) -> Rejection:
    if evidence.shortfall and might_fit:
        unproved = f"{sentence}; not proved to be the best choice: {evidence.shortfall}"
        return Rejection(want.gang.key, Reason.BUDGET_EXHAUSTED, unproved)
    return Rejection(want.gang.key, Reason.NOT_ENOUGH_ROOM, sentence)
