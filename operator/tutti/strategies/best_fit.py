"""Best fit, first fit and spread: gang by gang, fast, and without an engine.

Demands are placed in their order, whole or not at all. Best fit prefers nodes that have the least
room left afterwards, and avoids nodes with resources that the members do not request (GPUs). If
there are rules between members, ``best_fit_inter_pod`` places them.

First fit and spread are two simple rules for choosing nodes, for comparison and for small needs.
First fit puts every member on the first node that has room. Spread uses as many nodes as there are,
the emptiest first. Each node gets one member before any node gets a second, so a lost node takes
few members of a gang with it.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .best_fit_inter_pod import WorkBudget, place_by_rules
from .capacity import FreeCapacity, most_placeable
from .greedy import GreedyPlacement, NodeScoring
from .problem import Budget, Outcome, Problem, Shares, Solution

TRY_SECONDS = 3.0  # seconds for each try of a search that makes several tries

__all__ = ["BestFit", "FirstFit", "NodeScoring", "Spread", "best_fit", "most_placeable"]


class BestFit:
    """Greedy and vectorised; never exceeds capacity, but may miss a better admission."""

    name = "bestfit"
    scoring: type[NodeScoring] | None = None

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Admit demand by demand; if all are admitted, the answer is proved.

        Only the search under rules is long enough to need a budget.
        """
        patience = WorkBudget.within(budget)
        shares = best_fit(problem, scoring=self.scoring, patience=patience)
        if patience.is_over and not all(shares):
            why = f"{self.name} used up its budget ({budget.seconds:g} seconds in all)"
            return Solution(Outcome.BUDGET_EXHAUSTED, shares, why)
        outcome = Outcome.PROVED if all(shares) else Outcome.HEURISTIC
        return Solution(outcome, shares)


def best_fit(
    problem: Problem,
    demands: Iterable[int] | None = None,
    standing: Shares | None = None,
    scoring: type[NodeScoring] | None = None,
    patience: WorkBudget | None = None,
) -> Shares:
    """Place these demands (all, if None) in the given order, beside the standing shares.

    ``scoring`` orders the nodes; None is best fit's own order. ``patience`` limits the work under
    rules; None allows the work of ``TRY_SECONDS``.
    """
    problem = with_a_resource(problem)
    answer = list(standing or ((),) * len(problem.demands))
    room = FreeCapacity(problem)
    for index, shares in enumerate(answer):
        room.caps.take_shares(index, shares)
        for share in shares:
            shape = problem.demands[index].parts[share.part].shape
            room.take(shape, np.array([share.node]), np.array([share.count]))
    scores = (scoring or NodeScoring)(problem, room)
    order = range(len(answer)) if demands is None else demands
    if problem.rules:
        patience = patience or WorkBudget.within(Budget(seconds=TRY_SECONDS))
        return place_by_rules(problem, order, answer, room, scores, patience=patience)
    for index in order:
        answer[index] = GreedyPlacement(problem, index, room, scores).shares()
    return tuple(answer)


def with_a_resource(problem: Problem) -> Problem:
    """The same problem; a problem without resources gets one that no shape requests."""
    if problem.requests.shape[1]:
        return problem
    nothing = np.zeros((1, 1), dtype=np.int64)
    return replace(
        problem,
        free=nothing.repeat(len(problem.free), axis=0),
        requests=nothing.repeat(len(problem.requests), axis=0),
    )


class NodeOrder(NodeScoring):
    """Scores nodes by their position alone."""

    def keys(
        self,
        room: FreeCapacity,  # noqa: ARG002 - room does not matter
        shape: int,  # noqa: ARG002 - nor does the shape
        nodes: NDArray[np.intp],
        take: NDArray[np.int64],  # noqa: ARG002 - nor how many
    ) -> list[NDArray[np.float64]]:
        """The position of the node."""
        return [nodes.astype(np.float64)]


class FirstFit(BestFit):
    """Greedy like best fit, but on the first node with room."""

    name = "firstfit"
    scoring = NodeOrder


class EmptiestFirst(NodeScoring):
    """Prefers the emptiest nodes, and places one member at a time on each."""

    at_once = 1

    def keys(
        self,
        room: FreeCapacity,
        shape: int,  # noqa: ARG002 - a node has one score for all shapes
        nodes: NDArray[np.intp],
        take: NDArray[np.int64],  # noqa: ARG002 - it is one
    ) -> list[NDArray[np.float64]]:
        """Free room as shares of the free total, the most first."""
        return [-room.spare[nodes]]


class Spread(BestFit):
    """Greedy like best fit, but it prefers the emptiest nodes."""

    name = "spread"
    scoring = EmptiestFirst
