"""A plan in the making: the result of all rounds so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ...gang.demand import MemberCounts, PlacementRequest
from ...model.decisions import Assignment
from ...model.keys import Uid
from ..compile import answers
from ..compile.answers import PlacedCount
from ..compile.capacity import FitByShape
from ..compile.grids import Grid
from ..compile.inter_pod import InterPodCompiler
from ..compile.quotas import NO_QUOTAS, Quotas
from .borders import Above
from .bounds import Tally
from .starvation import HeldCapacity


@dataclass(frozen=True, slots=True, eq=False)
class PartialPlan:
    """A plan in the making: the members with a node, the room that is left, and what is proved."""

    inter_pod: InterPodCompiler
    base: Grid  # without the nodes that rules between pods forbid now
    free: NDArray[np.int64]
    above: Above  # the state before the first round, and all requests since
    assigned: Mapping[Uid, Assignment] = field(default_factory=dict)
    proved: bool = True
    shortfall: str = ""  # why a requested proof is missing
    hold: HeldCapacity | None = None
    tally: Tally = field(default_factory=dict)  # of the whole gangs
    quotas: Quotas = NO_QUOTAS  # with what the plan has started
    # [resource]: requests of gangs that start and get their nodes later; None if all have nodes.
    unplaced: NDArray[np.int64] | None = None

    @classmethod
    def blank(
        cls, inter_pod: InterPodCompiler, free: NDArray[np.int64], quotas: Quotas = NO_QUOTAS
    ) -> "PartialPlan":
        """The plan in which no member has a node."""
        base = inter_pod.grid()
        above = Above(inter_pod, base, free, FitByShape(base, free), quotas=quotas)
        return cls(inter_pod, base, free, above, quotas=quotas)

    @property
    def room(self) -> NDArray[np.int64]:
        """The free room that may be given away."""
        return self.free - self.held_room

    @property
    def held_room(self) -> NDArray[np.int64] | int:
        """The room that is held for a starved gang."""
        return 0 if self.hold is None else self.hold.room

    def has_placed(self, want: PlacementRequest) -> bool:
        """Whether a member of the request has a node in this plan."""
        return not self.assigned.keys().isdisjoint(want.uids)

    def with_moved_members(
        self, gangs: Sequence[MemberCounts], assigned: Mapping[Uid, Assignment]
    ) -> "PartialPlan":
        """The plan with the same members on other nodes."""
        above = self.above
        rows = {node.name: row for row, node in enumerate(above.base.nodes)}
        members = (member for gang in gangs for member in gang.waiting if member.uid in assigned)
        placed = [
            PlacedCount(member.shape, rows[assigned[member.uid].node], 1) for member in members
        ]
        inter_pod = above.inter_pod.with_placed(placed)
        return replace(
            self,
            inter_pod=inter_pod,
            base=above.base if inter_pod is above.inter_pod else inter_pod.grid(),
            free=answers.room_beside(above.base, above.free, placed),
            assigned=assigned,
        )
