"""The last plan, for as long as its answer cannot have changed: all that is kept between cycles.

A plan that starts nothing and evicts nobody is the answer again until something it was made of
changes: a node, or its room; a gang that is not settled, or has a Reservation, or its pods; a
Reservation; whoever a rule between pods may count, while there is one; or until a moment that it
named. Whoever is started changes a node's room, so such a plan is never kept. Gangs that waited
longer meanwhile may be worth more, but no more of them fits.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ..model.cluster import (
    ApiRefusal,
    Gang,
    Member,
    Namespace,
    Node,
    PlacedPod,
    Reservation,
    Snapshot,
)
from ..model.decisions import Plan
from ..model.keys import Uid

UNPROVED_SECONDS = 30.0  # a search that was cut short may find more the next time


@dataclass(frozen=True, slots=True)
class _Basis:
    """What a plan is made of, the moment aside."""

    nodes: tuple[Node, ...]
    gangs: tuple[Gang, ...]
    reservations: tuple[Reservation, ...]
    strays: tuple[Member, ...]
    residents: tuple[PlacedPod, ...]
    namespaces: tuple[Namespace, ...]
    bereft: frozenset[Uid]
    refused: Mapping[Uid, ApiRefusal]

    @classmethod
    def of(cls, snapshot: Snapshot) -> "_Basis":
        """Of this Snapshot."""
        passed_over = snapshot.settled - {held.uid for held in snapshot.reservations}
        gangs = tuple(gang for gang in snapshot.gangs if gang.uid not in passed_over)
        return cls(
            snapshot.nodes,
            gangs,
            snapshot.reservations,
            snapshot.strays,
            snapshot.residents,
            snapshot.namespaces,
            snapshot.bereft,
            snapshot.refused,
        )


class PlanCache:
    """Remembers one plan. Unchanged objects are compared by identity, so a look costs little."""

    def __init__(self) -> None:
        self._basis: _Basis | None = None
        self._plan = Plan()
        self._until = 0.0

    def keep(self, snapshot: Snapshot, plan: Plan) -> None:
        """Take in the plan that was made of a Snapshot."""
        self._basis = None
        if plan.placements or plan.evictions:
            return
        self._basis, self._plan = _Basis.of(snapshot), plan
        cut_short = snapshot.taken_at + UNPROVED_SECONDS if plan.shortfall else float("inf")
        self._until = min(cut_short, float("inf") if plan.due is None else plan.due)

    def plan(self, snapshot: Snapshot) -> Plan | None:
        """The plan, if it would be made again; None if it has to be made."""
        if self._basis is None or snapshot.taken_at >= self._until:
            return None
        return self._plan if _Basis.of(snapshot) == self._basis else None
