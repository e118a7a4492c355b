"""The least cost of victims by CP-SAT: for clusters in which not all sets can be tried.

The plainest model there is: a Boolean for each item that may end, and for each node the number of
members of the claimant on it. The cost is minimized part by part.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

from ortools.sat.python import cp_model

from ..queue_oracle.model import solved
from . import plans, rules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .plans import LeastCost, State
    from .rules import Item, Job


def least_cost(state: State, job: Job, claim: rules.Claim) -> LeastCost | None:
    """The least cost of victims with which the gang has room; None if no victims suffice.

    Raises:
        NoAnswerError: CP-SAT gave up.
    """
    model = cp_model.CpModel()
    ends = _ends(model, state, claim)
    _add_limits(model, state, job, ends)
    _add_places(model, state, job, ends)
    costs = {
        item: rules.cost(state.world, state.running, frozenset({item}), state.now) for item in ends
    }
    unit = lcm(*(cost[0].denominator for cost in costs.values()))
    parts = (
        sum(int(costs[item][0] * unit) * end for item, end in ends.items()),
        sum(costs[item][1] * end for item, end in ends.items()),
        sum(costs[item][2] * end for item, end in ends.items()),
    )
    least: list[int] = []
    for part in parts:
        if (value := _least(model, part)) is None:
            return None
        model.add(part == value)
        least.append(value)
    return Fraction(least[0], unit), least[1], least[2]


def _ends(
    model: cp_model.CpModel, state: State, claim: rules.Claim
) -> Mapping[Item, cp_model.IntVar]:
    """Whether each item ends; extras end with the minimum of their gang."""
    items = sorted(item for item in claim.items if plans.keeps_budgets(state, frozenset({item})))
    ends = {item: model.new_bool_var(str(item)) for item in items}
    for job in state.running:
        if (minimum := ends.get((job.name, 0))) is not None:
            for extra in job.extras:
                item = job.name, extra.number
                if item in ends:
                    model.add_implication(minimum, ends[item])
                else:
                    ends[item] = minimum
    for name, allowed in state.allowed:
        gone = [
            (job.members if n == 0 else 1) * ends[job.name, n]
            for job in state.running
            for n in (0, *(extra.number for extra in job.extras))
            if name in job.budgets and (job.name, n) in ends
        ]
        model.add(sum(gone) <= allowed)
    return ends


def _add_limits(
    model: cp_model.CpModel, state: State, job: Job, ends: Mapping[Item, cp_model.IntVar]
) -> None:
    """No limit of a resource that the claimant requests is exceeded once the victims have gone."""
    for name in state.world.above(job.team):
        inside = [other for other in state.running if name in state.world.above(other.team)]
        for r, limit in enumerate(state.world.teams[name].limit):
            if limit is None or not job.size[r]:
                continue
            used: list[cp_model.LinearExprT] = [job.size[r]]
            for other in inside:
                used.append(other.size[r] * (1 - ends.get((other.name, 0), 0)))
                used += (
                    other.each[r] * (1 - ends.get((other.name, extra.number), 0))
                    for extra in other.extras
                )
            model.add(sum(used) <= limit)


def _add_places(
    model: cp_model.CpModel, state: State, job: Job, ends: Mapping[Item, cp_model.IntVar]
) -> None:
    """Each member of the claimant has room once the victims, and all that leave, have gone."""
    freed: dict[int, list[tuple[rules.Amounts, cp_model.IntVar]]] = {}
    for other in state.running:
        for node in other.nodes:
            if (end := ends.get((other.name, 0))) is not None:
                freed.setdefault(node, []).append((other.each, end))
        for extra in other.extras:
            if (end := ends.get((other.name, extra.number))) is not None:
                freed.setdefault(extra.node, []).append((other.each, end))
    counts = []
    for node, left in enumerate(state.room(once_gone=True)):
        count = model.new_int_var(0, job.members, f"node {node}")
        for r, n in enumerate(job.each):
            if n:
                more = sum(each[r] * end for each, end in freed.get(node, ()))
                # A node may be too full before: then members may not come, and all else may stay.
                model.add(n * count <= left[r] + more).only_enforce_if(_is_used(model, count))
        counts.append(count)
    model.add(sum(counts) == job.members)


def _is_used(model: cp_model.CpModel, count: cp_model.IntVar) -> cp_model.IntVar:
    used = model.new_bool_var("")
    model.add(count == 0).only_enforce_if(~used)
    return used


def _least(model: cp_model.CpModel, part: cp_model.LinearExprT) -> int | None:
    model.minimize(part)
    return solved(model)
