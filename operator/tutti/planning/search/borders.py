"""The border of a round: the round and all rounds above it are decided again together.

A round uses the room that the rounds above it have left. If a gang waits that would fit if the
gangs above were on other nodes, one program decides on all of them. Members that replace lost
members, members beyond those needed, and the gangs that grow start in any case, on any node. It is
open which of the other gangs start.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...gang.demand import PlacementRequest
from ...model.decisions import Policy
from ...model.keys import Uid
from ...strategies.problem import DemandLevel, Outcome, Problem, Solution
from ..compile import capacity, gang_value, problems
from ..compile.capacity import FitByShape
from ..compile.grids import Grid
from ..compile.inter_pod import InterPodCompiler
from ..compile.quotas import NO_QUOTAS, Quotas

SENTENCE = "another place for those above might have let others start"
Worth = tuple[tuple[DemandLevel, int], ...]  # (level, value)


@dataclass(frozen=True, slots=True, eq=False)
class Above:
    """The numbers before the first round, and the requests of all rounds so far."""

    inter_pod: InterPodCompiler
    base: Grid
    free: NDArray[np.int64]
    fit: FitByShape  # of ``base`` and ``free``
    wants: tuple[PlacementRequest, ...] = ()  # whole gangs, whether or not they start
    # Members placed one by one: replacements, and members beyond those needed.
    joined: tuple[PlacementRequest, ...] = ()
    quotas: Quotas = NO_QUOTAS  # with what ran before the plan

    def fit_beside(self, held_room: NDArray[np.int64] | int) -> FitByShape:
        """The room for each shape that is not held, before the first round."""
        if isinstance(held_room, int):
            return self.fit
        return FitByShape(self.base, np.maximum(self.free - held_room, 0))

    def could_start(
        self, wants: Sequence[PlacementRequest], held_room: NDArray[np.int64] | int
    ) -> Sequence[PlacementRequest]:
        """The requests that may start, by counts and limits, in the room that is not held."""
        rooms = self.fit_beside(held_room)
        return [
            want
            for want in wants
            if capacity.short(rooms, want) is None
            and capacity.domain_shortage(rooms, want) is None
            and not problems.exceeded(self.base, want, self.quotas)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """One program over a round and all above it; demands that stay come first, as one level."""

    wants: Sequence[PlacementRequest]
    staying: int  # the number of requests that stay
    problem: Problem

    def worth_of(self, solution: Solution) -> Worth:
        """The value of the started requests that need not stay, by level, the highest first.

        Empty if the solution failed, or if it does not start all requests that have to stay.
        """
        starts = [bool(shares) for shares in solution.shares]
        if solution.outcome is Outcome.FAILED or not all(starts[: self.staying]):
            return ()
        return self._worth(starts)

    def worth(self, placed: Collection[Uid]) -> Worth:
        """The same value for the requests that have a node in the plan so far."""
        return self._worth([any(uid in placed for uid in want.uids) for want in self.wants])

    def _worth(self, starts: Sequence[bool]) -> Worth:
        free = list(zip(self.problem.demands, starts, strict=True))[self.staying :]
        values = {demand.level: 0 for demand, _ in free}
        for demand, is_started in free:
            values[demand.level] += demand.value if is_started else 0
        return tuple(sorted(values.items(), reverse=True))


def joint(
    above: Above,
    placed: Collection[Uid],
    held_room: NDArray[np.int64] | int,
    policy: Policy,
    taken_at: float,
) -> Joint:
    """The program that decides on all requests of ``above``, in the room that is not held."""
    stay = staying(above, placed)
    gangs = {want.gang.uid for want in stay}
    free = [want for want in above.wants if want.gang.uid not in gangs]
    free = list(above.could_start(free, held_room))
    wants = [*stay, *free]
    worths = [*[1] * len(stay), *gang_value.worths(above.base, free, policy, taken_at)]
    room = np.maximum(above.free - held_room, 0)
    problem = problems.problem(above.base, room, wants, worths, above.quotas)
    top = DemandLevel(max(demand.level.priority for demand in problem.demands) + 1)
    first = [replace(demand, level=top) for demand in problem.demands[: len(stay)]]
    demands = (*first, *problem.demands[len(stay) :])
    return Joint(wants, len(stay), replace(problem, demands=demands))


def staying(above: Above, placed: Collection[Uid]) -> Sequence[PlacementRequest]:
    """The members placed one by one; with the rest of their gang if it starts in the same plan."""
    growing = {want.gang.uid for want in above.joined}
    merged = {
        want.gang.uid: as_placed(want, placed)
        for want in above.wants
        if want.gang.uid in growing and any(uid in placed for uid in want.uids)
    }
    alone = (want for want in above.joined if want.gang.uid not in merged)
    return [*alone, *merged.values()]


def as_placed(want: PlacementRequest, placed: Collection[Uid]) -> PlacementRequest:
    """The request for exactly the members that have a node."""
    members = tuple(member for member in want.members if member.uid in placed)
    return PlacementRequest(want.gang, len(members), members)
