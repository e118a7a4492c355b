"""What gangs ask for, read off a Snapshot: the first stage of a plan.

Members that came for the room of a standing Reservation have taken it before anything is planned.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ..gang import demand, order, refusals
from ..gang.demand import MemberCounts
from ..model.cluster import Snapshot
from ..model.decisions import Rejection
from ..model.keys import GangKey
from .compile import slot_assignment
from .compile.slot_assignment import SlotAssignments


@dataclass(frozen=True, slots=True, eq=False)
class ObservedDemand:
    """The gangs to decide on, in the order considered, and those that must not be planned now."""

    slots: SlotAssignments  # with the Snapshot in which members that came have their slots
    refused: Mapping[GangKey, Rejection]  # gangs that the API server is not to be asked for yet
    gangs: Sequence[MemberCounts]

    @property
    def snapshot(self) -> Snapshot:
        """The Snapshot that the rest of the plan is made of."""
        return self.slots.snapshot


def observe(snapshot: Snapshot) -> ObservedDemand:
    """What each gang asks for now."""
    slots = slot_assignment.filled(snapshot)
    refused = refusals.rejections(slots.snapshot)
    return ObservedDemand(slots, refused, _gangs(slots, refused))


def _gangs(slots: SlotAssignments, refused: Collection[GangKey]) -> Sequence[MemberCounts]:
    """The gangs to decide on; a gang with a Reservation is being carried out.

    A gang whose Reservation is open for absent members may be repaired, and grow, all the same; if
    it lacks no member any more, their room is given back.
    """
    snapshot = slots.snapshot
    reserved = {held.gang for held in snapshot.reservations if held.uid not in slots.open}
    promised = {entry.uid for held in snapshot.reservations for entry in held.entries}
    gangs = order.considered(
        gang
        for gang in snapshot.gangs
        if (gang.uid not in snapshot.settled or gang.uid in slots.open)
        and not (gang.key in reserved or gang.key in refused)
    )
    counts = [demand.count_members(gang, promised, slots.room(gang)) for gang in gangs]
    return [
        members if slots.awaits(members.gang) else replace(members, absent=()) for members in counts
    ]
