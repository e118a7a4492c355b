"""The result of a Plan for each gang, and the differences between the results of two plans.

These are values only; ``table``, ``json_output`` and ``blocks`` show them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ...gang import finding_text
from ...gang.demand import min_members
from ...model.cluster import Gang, Snapshot
from ...model.decisions import Placement, Plan, Rejection
from ...model.keys import GangKey, NodeName


class GangAnswer(StrEnum):
    """The result of a plan for a gang."""

    STARTS = "starts"
    GROWS = "grows"  # it has started, and more of its members get a node
    RESERVED = "reserved"
    BOUND = "bound"
    EVICTED = "evicted"
    WAITS = "waits"
    OVER = "over"


HAS_ROOM = (GangAnswer.STARTS, GangAnswer.GROWS, GangAnswer.RESERVED, GangAnswer.BOUND)


@dataclass(frozen=True, slots=True)
class GangRow:
    """One gang, with its placement or its rejection."""

    gang: Gang
    answer: GangAnswer
    placement: Placement | None = None  # by this plan
    rejection: Rejection | None = None
    nodes: Mapping[NodeName, int] = field(default_factory=dict)  # members on each node

    @property
    def needed(self) -> int:
        """The number of members that the gang needs to start."""
        return min_members(self.gang)

    @property
    def reason(self) -> str:
        """Why the gang waits, in one word; empty if it does not."""
        return "" if self.rejection is None else self.rejection.reason.value

    @property
    def sentence(self) -> str:
        """Why the gang waits, in one sentence; empty if it does not."""
        return "" if self.rejection is None else finding_text.sentence(self.rejection)


def lines(snapshot: Snapshot, plan: Plan) -> Sequence[GangRow]:
    """A row for every gang, the highest priority first, then in kubectl's order."""
    placed = {placement.gang: placement for placement in plan.placements}
    rejected = {rejection.gang: rejection for rejection in plan.rejections}
    evicted = {eviction.gang for eviction in plan.evictions}
    reservations = {reservation.gang: reservation for reservation in snapshot.reservations}
    rows = []
    for gang in snapshot.gangs:
        placement, reservation = placed.get(gang.key), reservations.get(gang.key)
        is_bound = any(member.counts_as_bound for member in gang.members)
        on: Counter[NodeName] = Counter(
            member.node for member in gang.members if member.node is not None and not member.is_over
        )
        if placement is not None:
            on.update(assignment.node for assignment in placement.assignments)
            on.update(slot.node for slot in placement.slots for _ in range(slot.count))
            answer = GangAnswer.GROWS if is_bound else GangAnswer.STARTS
        elif reservation is not None:
            bound = {member.uid for member in gang.members if member.node is not None}
            on.update(entry.node for entry in reservation.entries if entry.uid not in bound)
            on.update(slot.node for slot in reservation.slots for _ in range(slot.count))
            answer = GangAnswer.EVICTED if reservation.evict else GangAnswer.RESERVED
        elif gang.key in evicted:
            answer = GangAnswer.EVICTED
        elif gang.key in rejected and not is_bound:
            answer = GangAnswer.WAITS
        elif gang.members and gang.is_idle:
            answer = GangAnswer.OVER
        else:
            answer = GangAnswer.BOUND if is_bound else GangAnswer.WAITS
        nodes = dict(sorted(on.items()))
        rows.append(GangRow(gang, answer, placement, rejected.get(gang.key), nodes))
    return sorted(rows, key=lambda line: (-line.gang.priority, line.gang.key))


class ChangeKind(StrEnum):
    """How the result for a gang differs in the second plan."""

    STARTED = "starts now"
    STOPPED = "no longer starts"
    MOVED = "other nodes"
    REASON = "other reason"
    ADDED = "new"
    GONE = "gone"
    OTHER = "other answer"


@dataclass(frozen=True, slots=True)
class GangChange:
    """One gang with another result; a row is None if the plan does not have the gang."""

    gang: GangKey
    kind: ChangeKind
    before: GangRow | None
    after: GangRow | None


def changes(before: Sequence[GangRow], after: Sequence[GangRow]) -> Sequence[GangChange]:
    """The gangs with another result, in the order of the second plan; gangs that are gone last."""
    return list(_changes({row.gang.key: row for row in before}, after))


def _changes(before: Mapping[GangKey, GangRow], after: Sequence[GangRow]) -> Iterator[GangChange]:
    for line in after:
        key = line.gang.key
        row_before = before.get(key)
        if row_before is None:
            yield GangChange(key, ChangeKind.ADDED, None, line)
        elif (kind := _kind(row_before, line)) is not None:
            yield GangChange(key, kind, row_before, line)
    keys_after = {line.gang.key for line in after}
    for key in sorted(before.keys() - keys_after):
        yield GangChange(key, ChangeKind.GONE, before[key], None)


def _kind(before: GangRow, after: GangRow) -> ChangeKind | None:
    had, has = before.answer in HAS_ROOM, after.answer in HAS_ROOM
    if had and has:
        return ChangeKind.MOVED if before.nodes != after.nodes else None
    if has:
        return ChangeKind.STARTED
    if had:
        return ChangeKind.STOPPED
    if before.answer is not after.answer:
        return ChangeKind.OTHER
    return ChangeKind.REASON if before.reason != after.reason else None
