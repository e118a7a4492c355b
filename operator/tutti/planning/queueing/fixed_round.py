"""One round of a plan with queues: the gangs that it starts stay started, on whatever nodes.

In ``round_answer``, in contrast, gangs above a border may also be exchanged for others.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...gang.demand import PlacementRequest
from ...queues.limits import QueueLimit
from ..compile import problems
from ..search import borders, round_answer
from ..search.limits import SearchLimits
from ..search.partial_plan import PartialPlan
from ..search.round_order import Round
from ..search.round_proof import LaterRounds
from .room_choice import RoomChoice, with_nodes


class NotCountedError(Exception):
    """A round cannot be decided by counting alone."""


def decide(
    plan: PartialPlan,
    wants: Sequence[PlacementRequest],
    limits: SearchLimits,
    rows: Sequence[QueueLimit] = (),
    later: LaterRounds | None = None,
) -> PartialPlan:
    """The plan with the best set of these gangs, within further rows; its tally is theirs alone.

    Raises:
        NotCountedError: nodes are to be decided later, and counting does not decide this round.
    """
    if not wants:
        return replace(plan, tally={})
    before = with_rows(plan, rows)
    if (counted := _counted(before, wants, limits)) is not None:
        answer = counted_round(plan, counted, wants, limits)
        if answer is not None:
            return answer
    if plan.unplaced is not None:
        raise NotCountedError
    answer = round_answer.answer_round(before, wants, limits, later)
    totals = room_in_total(before)
    left_out = (want for want in wants if not answer.has_placed(want))
    if any(fits_by_totals(before, want, totals) for want in left_out):
        answer = round_answer.with_border(before, answer, Round(tuple(wants)), limits)
    return fixed(plan, answer, wants)


def _counted(
    plan: PartialPlan, wants: Sequence[PlacementRequest], limits: SearchLimits
) -> PartialPlan | None:
    """The plan in which the best set of these gangs starts; None if counting does not prove it."""
    choice = RoomChoice.of(plan, wants, limits)
    best = None if choice is None else choice.best(problems.levels(wants))
    return None if choice is None or best is None else choice.started(best)


def counted_round(
    plan: PartialPlan,
    counted: PartialPlan,
    wants: Sequence[PlacementRequest],
    limits: SearchLimits,
) -> PartialPlan | None:
    """The answer to a round that counting decides; None if best fit does not place all gangs.

    Nodes are left open if they are to be decided later.
    """
    answer = fixed(plan, counted, wants)
    return answer if plan.unplaced is not None else with_nodes(answer, limits)


def fixed(plan: PartialPlan, answer: PartialPlan, wants: Sequence[PlacementRequest]) -> PartialPlan:
    """The answer to a round, in which these gangs stay started if they start."""
    placed = [borders.as_placed(want, answer.assigned) for want in wants if answer.has_placed(want)]
    above = replace(
        plan.above, wants=(), joined=(*plan.above.joined, *placed), quotas=plan.above.quotas
    )
    quotas = replace(
        answer.quotas,
        limits=tuple(
            replace(limit, held=0) for limit in answer.quotas.limits[: len(plan.quotas.limits)]
        ),
        of_gang=plan.quotas.of_gang,
    )
    return replace(answer, above=above, quotas=quotas)


def room_in_total(plan: PartialPlan) -> NDArray[np.int64]:
    """[resource]: the sum of the room of all nodes beyond what is held or promised."""
    total: NDArray[np.int64] = np.maximum(plan.room, 0).sum(axis=0)
    return total if plan.unplaced is None else total - plan.unplaced


def fits_by_totals(plan: PartialPlan, want: PlacementRequest, totals: NDArray[np.int64]) -> bool:
    """Whether the sum of the room of all nodes is enough for the gang."""
    requests = plan.base.requests
    rows = [plan.base.shapes[group[0].shape] for group in want.alike]
    if len(rows) == 1:
        return bool((requests[rows[0]] * want.need <= totals).all())
    members = np.repeat(requests[rows], [len(group) for group in want.alike], axis=0)
    least = np.sort(members, axis=0)[: want.need].sum(axis=0)
    return bool((least <= totals).all())


def with_rows(plan: PartialPlan, rows: Sequence[QueueLimit] = ()) -> PartialPlan:
    """The plan with these rows beside its limits; what is held of the limits is taken off."""
    quotas, above = plan.quotas, plan.above
    known = above.quotas
    if plan.hold is not None:
        quotas = quotas.held_for(plan.hold.gang.key, plan.hold.requests)
        known = known.held_for(plan.hold.gang.key, plan.hold.requests)
    return replace(
        plan,
        quotas=quotas.with_limits(rows),
        above=replace(above, quotas=known.with_limits(rows)),
        tally={},
    )
