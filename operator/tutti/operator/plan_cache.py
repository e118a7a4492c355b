"""The last plan, for as long as its answer cannot have changed: all that is kept between cycles.

A plan that starts nothing and evicts nobody is the answer again until something it was made of
changes: a node, or its room; a gang that is not settled, or has a Reservation, or its pods; a
Reservation; whoever a rule between pods may count, while there is one; or until a moment that it
named. Whoever is started changes a node's room, so such a plan is never kept. Gangs that waited
longer meanwhile may be worth more, but no more of them fits.
"""

from dataclasses import replace

from ..model.cluster import Snapshot
from ..model.decisions import Plan

UNPROVED_SECONDS = 30.0  # a search that was cut short may find more the next time


def _basis(snapshot: Snapshot) -> Snapshot:
    """What a plan is made of: all of a Snapshot but the moment, and the gangs passed over."""
    passed_over = snapshot.settled - {held.uid for held in snapshot.reservations}
    gangs = tuple(gang for gang in snapshot.gangs if gang.uid not in passed_over)
    return replace(snapshot, taken_at=0.0, gangs=gangs)


class PlanCache:
    """Remembers one plan. Unchanged objects are compared by identity, so a look costs little."""

    def __init__(self) -> None:
        self._basis: Snapshot | None = None
        self._plan = Plan()
        self._until = 0.0

    def keep(self, snapshot: Snapshot, plan: Plan) -> None:
        """Take in the plan that was made of a Snapshot."""
        self._basis = None
        if plan.placements or plan.evictions or plan.claims:
            return
        self._basis, self._plan = _basis(snapshot), plan
        cut_short = snapshot.taken_at + UNPROVED_SECONDS if plan.shortfall else float("inf")
        self._until = min(
            cut_short, float("inf") if plan.next_change_at is None else plan.next_change_at
        )

    def plan(self, snapshot: Snapshot) -> Plan | None:
        """The plan, if it would be made again; None if it has to be made."""
        if self._basis is None or snapshot.taken_at >= self._until:
            return None
        return self._plan if _basis(snapshot) == self._basis else None
