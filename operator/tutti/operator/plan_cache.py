"""The last plan, while it is still valid: the only thing that is kept between cycles.

Only a plan without placements, evictions and claims is kept: a gang that starts changes the room of
nodes. The plan is valid until one of its inputs changes, or until a moment that the plan names. The
inputs are nodes and their room, Reservations, the gangs that are not settled or have a Reservation,
the pods of these gangs, and the pods that rules between pods count. The value of a waiting gang may
grow with time, but no more gangs fit because of that.
"""

from dataclasses import replace

from ..model.cluster import Snapshot
from ..model.decisions import Plan

UNPROVED_SECONDS = 30.0  # a search that was cut short may find more the next time


def _basis(snapshot: Snapshot) -> Snapshot:
    """The inputs of a plan: a Snapshot without its time and the gangs that are passed over."""
    passed_over = snapshot.settled - {held.uid for held in snapshot.reservations}
    gangs = tuple(gang for gang in snapshot.gangs if gang.uid not in passed_over)
    return replace(snapshot, taken_at=0.0, gangs=gangs)


class PlanCache:
    """Remembers one plan. Unchanged objects are compared by identity, so a lookup costs little."""

    def __init__(self) -> None:
        self._basis: Snapshot | None = None
        self._plan = Plan()
        self._since = self._until = 0.0

    def keep(self, snapshot: Snapshot, plan: Plan) -> None:
        """Keep the plan that was made of a Snapshot, if it starts and ends nothing."""
        self._basis = None
        if plan.placements or plan.evictions or plan.claims:
            return
        self._basis, self._plan = _basis(snapshot), plan
        self._since = snapshot.taken_at
        cut_short = snapshot.taken_at + UNPROVED_SECONDS if plan.shortfall else float("inf")
        self._until = min(
            cut_short, float("inf") if plan.next_change_at is None else plan.next_change_at
        )

    def plan(self, snapshot: Snapshot) -> Plan | None:
        """The kept plan, if planning would give it again; else None."""
        # Otherwise the clock went back: it would be long until then.
        is_valid = self._since - UNPROVED_SECONDS <= snapshot.taken_at < self._until
        if self._basis is None or not is_valid:
            return None
        return self._plan if _basis(snapshot) == self._basis else None
