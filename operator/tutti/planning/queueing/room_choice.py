"""The gangs that are worth most together in the room and limits of a plan, without a search.

They are chosen by counting: within limits, and within the room for each size that is scarce. If
best fit places all of them beside all that has started, no other choice is worth more. So several
choices may be made one after the other before nodes are looked for.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ...gang.demand import PlacementRequest
from ...strategies.problem import (
    Cap,
    Demand,
    DemandLevel,
    Outcome,
    Part,
    Problem,
    Share,
    Solution,
)
from ..compile import answers, gang_value, problems
from ..compile.grids import Grid
from ..search import borders, round_answer
from ..search.limits import SearchLimits
from ..search.partial_plan import PartialPlan
from .limit_choice import Row, Worth, best_choice
from .room_bound import RoomBound

Wants = Sequence[PlacementRequest]


@dataclass(frozen=True, slots=True, eq=False)
class RoomChoice:
    """What gangs are worth and use; ``best`` chooses among them, and ``started`` starts them."""

    plan: PartialPlan  # its limits include all rows
    wants: Wants
    counts: NDArray[np.int64]  # [want, shape]: how many members would start
    values: Sequence[int]  # by want
    bound: RoomBound  # beside all that has started
    rows: Sequence[Row]  # of the limits

    @classmethod
    def of(
        cls, plan: PartialPlan, wants: Wants, limits: SearchLimits, bound: RoomBound | None = None
    ) -> "RoomChoice | None":
        """The choice; None if counting proves nothing, or if best fit would choose members.

        The ``bound``, if it is known, is that of the plan.
        """
        if limits.strategy is limits.fallback or limits.is_late or not plan.proved:
            return None
        if plan.base.rules or not _are_definite(wants):
            return None
        values = gang_value.worths(plan.base, wants, limits.policy, limits.taken_at)
        counts = _counts(plan.base, wants)
        caps = (limit.cap for limit in plan.quotas.caps(plan.base, wants))
        rows = [Row(_amounts(counts, cap), cap.room) for cap in caps]
        bound = bound or RoomBound.of_plan(plan.above, plan.held_room)
        return cls(plan, wants, counts, values, bound, rows)

    def best(self, levels: Sequence[tuple[int, int]]) -> Wants | None:
        """The best choice by these levels, one for each want; None if it takes too much work."""
        worths = [Worth(*worth) for worth in zip(levels, self.values, strict=True)]
        rows, weights = [*self.rows], self.counts @ self.bound.weights
        room = np.maximum(self.bound.room - self.bound.used, 0)
        while (chosen := best_choice(worths, rows)) is not None:
            missing = weights[chosen].sum(axis=0) - room
            if not (missing > 0).any():
                return [self.wants[number] for number in chosen]
            size = int(np.argmax(missing / np.maximum(self.bound.room, 1)))
            rows.append(Row(dict(enumerate(weights[:, size].tolist())), int(room[size])))
        return None

    def started(self, chosen: Wants) -> PartialPlan:
        """The proved plan in which these gangs start; ``with_nodes`` decides on their nodes.

        Until then they are on the first node. The tally is of all wants.
        """
        plan = self.plan
        levels = problems.levels(self.wants)
        starting = {want.gang.uid for want in chosen}
        tally = dict.fromkeys(levels, 0)
        for want, level, value in zip(self.wants, levels, self.values, strict=True):
            tally[level] += value if want.gang.uid in starting else 0
        shares = (
            tuple(
                Share(part, 0, min(len(group), want.need))
                for part, group in enumerate(problems.parts(want))
            )
            for want in chosen
        )
        solution = Solution(Outcome.PROVED, tuple(shares))
        assignments = answers.assignments(plan.base, chosen, solution)
        return replace(
            plan,
            assigned={**plan.assigned, **{pod.uid: pod for gang in assignments for pod in gang}},
            quotas=plan.quotas.with_started(answers.started(chosen, solution)),
            unplaced=_counts(plan.base, chosen).sum(axis=0) @ plan.base.requests
            + (0 if plan.unplaced is None else plan.unplaced),
            tally={level: (value, value) for level, value in tally.items()},
        )


def with_nodes(plan: PartialPlan, limits: SearchLimits) -> PartialPlan | None:
    """The plan with nodes for all gangs that start; None if best fit does not place all of them.

    Gangs that had nodes may get others.
    """
    wants = borders.staying(plan.above, plan.assigned)
    solution = _placed_together(plan, wants, limits) if _are_definite(wants) else None
    if solution is None:
        return None
    return replace(round_answer.with_joint(plan, wants, solution), unplaced=None)


def _are_definite(wants: Wants) -> bool:
    """Whether each gang can start with one choice of members only, and no domain matters.

    Choices among members of one shape count as one.
    """
    return all(
        not (want.gang.required_levels or want.maximums)
        and (want.need == len(want.members) or not (want.minimums or len(want.alike) > 1))
        for want in wants
    )


def _shape_counts(base: Grid, want: PlacementRequest) -> Counter[int]:
    """How many members of each shape would start, by the row of the shape in the Grid."""
    counts = Counter[int]()
    for group in want.alike:
        counts[base.shapes[group[0].shape]] += min(len(group), want.need)
    return counts


def _counts(base: Grid, wants: Wants) -> NDArray[np.int64]:
    """[want, shape]: how many members of each gang would start."""
    counts = np.zeros((len(wants), len(base.shapes)), dtype=np.int64)
    for number, want in enumerate(wants):
        for shape, count in _shape_counts(base, want).items():
            counts[number, shape] = count
    return counts


def _amounts(counts: NDArray[np.int64], cap: Cap) -> Mapping[int, int]:
    """What each gang would use of a limit, by its place in ``counts``."""
    numbers = sorted(cap.demands)
    amounts: list[int] = (counts[numbers] @ cap.amount).tolist()
    return dict(zip(numbers, amounts, strict=True))


def _placed_together(plan: PartialPlan, wants: Wants, limits: SearchLimits) -> Solution | None:
    """Nodes for all these gangs by best fit, shape by shape; None if some member finds no room.

    Shapes for which nodes have the fewest places come first, whichever gang they are of.
    """
    fit = plan.above.fit_beside(plan.held_room)
    base, shapes = fit.base, [*fit.base.shapes]
    counts = Counter[int]()
    for want in wants:
        counts.update(_shape_counts(base, want))
    order = sorted(counts, key=lambda row: (fit[shapes[row]].members, row))
    level = DemandLevel(0)
    demands = tuple(
        Demand(counts[row], (Part(row, 0, counts[row]),), (0,), level, 1) for row in order
    )
    problem = Problem(np.maximum(fit.free, 0), base.requests, base.allowed, demands)
    solution = limits.fallback.solve(problem, limits.budget)
    if not all(solution.shares):
        return None
    seats = {
        row: iter([share.node for share in shares for _ in range(share.count)])
        for row, shares in zip(order, solution.shares, strict=True)
    }
    shares = []
    for want in wants:
        own: list[Share] = []
        for part, group in enumerate(problems.parts(want)):
            row = base.shapes[group[0].shape]
            nodes = Counter(islice(seats[row], min(len(group), want.need)))
            own += (Share(part, node, count) for node, count in nodes.items())
        shares.append(tuple(own))
    return Solution(Outcome.PROVED, tuple(shares))
