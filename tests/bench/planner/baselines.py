"""What others would write in an afternoon: the measure that the strategies have to beat.

Both are told the same Problem, and each demand has one part.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

import numpy as np
from pulp import LpAffineExpression, LpProblem
from pulp.apis.coin_api import COIN_CMD, PULP_CBC_CMD
from pulp.constants import LpBinary, LpMaximize, LpSolutionOptimal

if TYPE_CHECKING:
    from tutti.strategies.problem import Problem


def argmin_per_member(problem: Problem) -> int:
    """How many members first-come best fit places, one numpy argmin per member."""
    free, placed = problem.free.copy(), 0
    for demand in problem.demands:
        shape = demand.parts[0].shape
        request, allowed = problem.requests[shape], problem.allowed[shape]
        scarce = int((request / problem.free.sum(axis=0).clip(1)).argmax())
        before, count = free.copy(), 0
        for _ in range(demand.need):
            fits = allowed & (free >= request).all(axis=1)
            node = int(np.where(fits, free[:, scarce], np.iinfo(np.int64).max).argmin())
            if not fits[node]:
                break
            free[node] -= request
            count += 1
        if count < demand.need:
            free = before
        else:
            placed += count
    return placed


def variable_per_pod_and_node(problem: Problem, seconds: float) -> int | None:
    """The most value that can be admitted, by the plainest program; None if time ran out."""
    program = LpProblem("plain", LpMaximize)  # type: ignore[no-untyped-call]
    # Bytes by the hundred billion are beyond an engine's arithmetic, and so are values.
    worth = gcd(*(demand.value for demand in problem.demands))
    units = np.gcd.reduce(problem.requests, axis=0).clip(1)
    requests, free = problem.requests // units, problem.free // units
    used = [[LpAffineExpression() for _ in row] for row in free]
    value = LpAffineExpression()
    for i, demand in enumerate(problem.demands):
        shape = demand.parts[0].shape
        starts = program.add_variable(f"y{i}", cat=LpBinary)
        value.addterm(starts, demand.value // worth)
        for pod in range(demand.need):
            places = []
            for node in np.flatnonzero(problem.allowed[shape]).tolist():
                here = program.add_variable(f"x{i}_{pod}_{node}", cat=LpBinary)
                places.append((here, 1))
                for r in np.flatnonzero(requests[shape]).tolist():
                    used[node][r].addterm(here, int(requests[shape, r]))
            program += LpAffineExpression([*places, (starts, -1)]) == 0
    for expressions, row in zip(used, free.tolist(), strict=True):
        for used_here, room in zip(expressions, row, strict=True):
            if used_here:
                program += used_here <= room
    program.objective = value
    cbc = COIN_CMD(path=PULP_CBC_CMD.pulp_cbc_path, msg=False, timeLimit=seconds, gapRel=0.0)  # type: ignore[no-untyped-call]
    program.solve(cbc)  # type: ignore[no-untyped-call]
    return round(value.value() or 0) * worth if program.sol_status == LpSolutionOptimal else None
