"""Exact and joint: which demands start is one integer program over all of them, solved by CBC.

A function of its arguments unless the clock ends it: it runs the engine in a process of its own,
on temporary files, and stops it when the budget is used up.
"""

# subprocess: PuLP waits for its engine without a limit, so a hanging CBC would stop every cycle.
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import numpy as np
from pulp import LpAffineExpression, LpProblem, LpVariable, PulpError
from pulp.apis.coin_api import COIN_CMD, PULP_CBC_CMD
from pulp.constants import (
    LpConstraintEQ,
    LpConstraintGE,
    LpConstraintLE,
    LpInteger,
    LpMaximize,
    LpSolutionInfeasible,
    LpSolutionIntegerFeasible,
    LpSolutionNoSolutionFound,
    LpSolutionOptimal,
    LpSolutionUnbounded,
    LpStatusInfeasible,
    LpStatusNotSolved,
    LpStatusOptimal,
    LpStatusUnbounded,
    LpStatusUndefined,
)
from pulp.pulp import LpConstraint

from .bestfit import best_fit, tidy
from .counts import distribute, has_all, is_sound, limits, possible, reaches, worth
from .problem import Budget, Outcome, Problem, Shares, Solution

# What CBC says about itself is what a Solution says about itself, row by row. A model here always
# has a solution (admit nothing more), so "infeasible" and "unbounded" are an engine that is wrong.
OUTCOMES: Mapping[tuple[int, int], Outcome] = {
    (LpStatusOptimal, LpSolutionOptimal): Outcome.PROVED,
    (LpStatusOptimal, LpSolutionIntegerFeasible): Outcome.BUDGET_EXHAUSTED,
    (LpStatusNotSolved, LpSolutionNoSolutionFound): Outcome.BUDGET_EXHAUSTED,
    (LpStatusInfeasible, LpSolutionInfeasible): Outcome.FAILED,
    (LpStatusInfeasible, LpSolutionNoSolutionFound): Outcome.FAILED,
    (LpStatusUnbounded, LpSolutionUnbounded): Outcome.FAILED,
    (LpStatusUndefined, LpSolutionNoSolutionFound): Outcome.FAILED,
}

GRACE_SECONDS = 2.0  # for reading and writing files, beyond the limit that CBC keeps itself
CLOSE_ENOUGH = 1e-4  # CBC's integers are whole within 1e-6; further off, the answer is unfinished
DIGIT = 2**15  # weights below this are far from CBC's tolerance of 1e-6
TOO_COARSE = "CBC's arithmetic was too coarse for a proof; a better admission may exist"


@dataclass(frozen=True, slots=True)
class _Answer:
    """What one run of the engine gave; values by variable name, empty without a solution."""

    outcome: Outcome
    values: Mapping[str, float]
    detail: str = ""


class IlpStrategy:
    """The best admission there is, level by level, or an honest word on why it is not proved."""

    name = "ilp"

    def __init__(
        self, engine_path: str | None = None, grace_seconds: float = GRACE_SECONDS
    ) -> None:
        """Use the CBC at this path; None is the one that comes with PuLP."""
        path = engine_path or PULP_CBC_CMD.pulp_cbc_path
        self._engine = COIN_CMD(path=path, msg=False)  # type: ignore[no-untyped-call]
        self._grace_seconds = grace_seconds

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Admit by best fit; where that leaves something out, let the engine find the best."""
        until = monotonic() + budget.seconds
        best, candidates = best_fit(problem), possible(problem)
        if has_all(best, candidates):
            return Solution(Outcome.PROVED, best)
        model = _Model(problem, candidates)
        for level in model.levels:
            if model.could_gain(best, level):
                # Half of the time left, so that the levels below have some, too.
                seconds = (until - monotonic()) / (1 if level == model.levels[-1] else 2)
                answer = self._run(model.aimed_at(level), seconds, budget)
                if answer.outcome is Outcome.FAILED:
                    return Solution(answer.outcome, ((),) * len(best), answer.detail)
                found = model.read(answer.values)
                best = max(best, tidy(problem, found), key=lambda some: worth(problem, some))
                if answer.outcome is Outcome.PROVED and not reaches(problem, found, best, level):
                    answer = replace(answer, outcome=Outcome.BUDGET_EXHAUSTED, detail=TOO_COARSE)
                if answer.outcome is not Outcome.PROVED and not has_all(best, candidates):
                    return Solution(answer.outcome, best, answer.detail)
            model.keep(best, level)
        return Solution(Outcome.PROVED, best)

    def _run(self, model: LpProblem, seconds: float, budget: Budget) -> _Answer:
        """Run the engine once; every way in which it can fail is an answer."""
        spent = f"{budget.nodes} nodes for a priority, {budget.seconds:g} seconds in all"
        late = f"CBC used up its budget ({spent}); a better admission may exist"
        try:
            if seconds <= 0:
                return _Answer(Outcome.BUDGET_EXHAUSTED, {}, late)
            with TemporaryDirectory(prefix="tutti-") as folder:
                answer = self._run_in(Path(folder), model, seconds, budget.nodes)
        except subprocess.TimeoutExpired:
            return _Answer(Outcome.BUDGET_EXHAUSTED, {}, late)
        except OSError as error:
            return _Answer(Outcome.FAILED, {}, f"CBC could not be run: {error}")
        except (ValueError, IndexError, PulpError) as error:
            return _Answer(Outcome.FAILED, {}, f"CBC's answer could not be read: {error}")
        return answer if answer.outcome is Outcome.FAILED else replace(answer, detail=late)

    def _run_in(self, folder: Path, model: LpProblem, seconds: float, nodes: int) -> _Answer:
        """Write the model, run CBC on it, read its answer, as PuLP does it but with a limit."""
        asked, solved = folder / "model.mps", folder / "solution.txt"
        variables, names, constraints, _ = model.writeMPS(str(asked), rename=1)
        # No "threads": serial is CBC's default and the only mode that repeats itself exactly.
        options = f"-max -sec {seconds:.3f} -ratio 0 -allow 0 -timeMode elapsed -maxNodes {nodes}"
        command = [self._engine.path, str(asked), *options.split(), "-solve"]
        command += ["-printingOptions", "all", "-solution", str(solved)]
        ended = subprocess.run(  # noqa: S603 - our own arguments, no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds + self._grace_seconds,
            check=False,
        )
        if ended.returncode != 0:
            return _Answer(Outcome.FAILED, {}, f"CBC ended with status {ended.returncode}")
        if not solved.exists():
            return _Answer(Outcome.FAILED, {}, "CBC ended without a solution file")
        status, values, _, _, _, solution = self._engine.readsol_MPS(  # type: ignore[no-untyped-call]
            str(solved), model, variables, names, constraints
        )
        outcome = OUTCOMES.get((status, solution), Outcome.FAILED)
        has_values = (status, solution) != (LpStatusNotSolved, LpSolutionNoSolutionFound)
        detail = f"CBC answered with status {status} and solution status {solution}"
        return _Answer(outcome, values if has_values else {}, detail)


class _Model:
    """The integer program: which demands start, and how many of each shape go to each node.

    The node counts are per node: sums over nodes would promise placements that do not exist.
    Only where a node has room for all that could come to it are its counts left out.
    """

    def __init__(self, problem: Problem, candidates: Sequence[int]) -> None:
        self._problem, self._limits = problem, limits(problem, candidates)
        self._lp = LpProblem("admission", LpMaximize)  # type: ignore[no-untyped-call]
        self._starts = {index: self._whole(f"a{index}", 1) for index in candidates}
        self._members: dict[tuple[int, int], tuple[LpVariable, int]] = {}
        self._counts: dict[tuple[int, int], LpVariable] = {}
        self._carries = 0
        self.levels = sorted({problem.demands[i].level for i in candidates}, reverse=True)
        for index in candidates:
            self._add_demand(index)
        self._add_nodes()
        self._add_order()

    def aimed_at(self, level: int) -> LpProblem:
        """The program with the level's value as its aim."""
        terms = self._weighed(level, self._on(level))
        self._lp.objective = LpAffineExpression(terms)
        return self._lp

    def could_gain(self, shares: Shares, level: int) -> bool:
        """Whether a candidate of the level is left out."""
        return not has_all(shares, (index for index, _ in self._on(level)))

    def keep(self, shares: Shares, level: int) -> None:
        """Demand that no later answer is worth less on this level than these shares."""
        if self.could_gain(shares, level):
            admitted = [(index, start) for index, start in self._on(level) if shares[index]]
            floor = sum(weight for _, weight in self._weighed(level, admitted))
            self._add_floor(self._weighed(level, self._on(level)), floor)
        else:
            for _, start in self._on(level):
                start.lowBound = 1

    def read(self, values: Mapping[str, float]) -> Shares:
        """The shares that the values stand for; none at all where they do not add up."""
        nothing: Shares = ((),) * len(self._problem.demands)
        whole = {name: round(value) for name, value in values.items()}
        if not values or any(abs(values[name] - n) > CLOSE_ENOUGH for name, n in whole.items()):
            return nothing
        members = {key: whole[v.name] * each for key, (v, each) in self._members.items()}
        counts = {key: whole[variable.name] for key, variable in self._counts.items()}
        shares = distribute(self._problem, self._limits, members, counts)
        return shares if is_sound(self._problem, shares) else nothing

    def _on(self, level: int) -> list[tuple[int, LpVariable]]:
        """The candidates of one level."""
        demands = self._problem.demands
        return [(i, start) for i, start in self._starts.items() if demands[i].level == level]

    def _weighed(
        self, level: int, some: Iterable[tuple[int, LpVariable]]
    ) -> list[tuple[LpVariable, int]]:
        """Candidates with their values, divided by what all values of the level share."""
        demands = self._problem.demands
        unit = gcd(*(demands[index].value for index, _ in self._on(level)))
        return [(start, demands[index].value // unit) for index, start in some]

    def _whole(self, name: str, most: int) -> LpVariable:
        """A whole number between 0 and ``most``."""
        return self._lp.add_variable(name, 0, most, LpInteger)

    def _row(self, terms: Iterable[tuple[LpVariable, int]], sense: int, bound: int) -> None:
        """Demand that the weighed sum is at least, at most or exactly ``bound``."""
        row = LpConstraint(LpAffineExpression(list(terms)), sense, rhs=bound)  # type: ignore[no-untyped-call]
        self._lp.addConstraint(row)

    def _add_floor(self, terms: list[tuple[LpVariable, int]], floor: int) -> None:
        """Demand that the sum is at least ``floor``, exactly however large the weights are.

        In one row, weights near 1e9 made CBC call its own solution infeasible. So they are added
        up digit by digit, as on paper: the low digits, less a carry, and then the rest with it.
        """
        if all(weight < DIGIT for _, weight in terms):
            self._row(terms, LpConstraintGE, floor)
            return
        self._carries += 1
        carry = self._lp.add_variable(f"c{self._carries}", -1, len(terms), LpInteger)
        low = [(variable, weight % DIGIT) for variable, weight in terms]
        self._row([*low, (carry, -DIGIT)], LpConstraintGE, floor % DIGIT)
        high = [(variable, weight // DIGIT) for variable, weight in terms]
        self._add_floor([*high, (carry, 1)], floor // DIGIT)

    def _add_demand(self, index: int) -> None:
        """All that is needed, or nothing: from which parts, and enough of each role."""
        demand, start = self._problem.demands[index], self._starts[index]
        if len(demand.parts) == 1:
            self._members[index, 0] = (start, demand.need)
            return
        chosen = []
        for number, part in enumerate(demand.parts):
            most = min(part.available, demand.need)
            count = self._whole(f"x{index}_{number}", most)
            self._members[index, number] = (count, 1)
            self._row([(count, 1), (start, -most)], LpConstraintLE, 0)
            chosen.append((part.role, count))
        self._row([(start, -demand.need), *((c, 1) for _, c in chosen)], LpConstraintEQ, 0)
        for role, minimum in enumerate(demand.role_minimum):
            if minimum:
                counts = [(count, 1) for own, count in chosen if own == role]
                self._row([(start, -minimum), *counts], LpConstraintGE, 0)

    def _add_nodes(self) -> None:
        """No more members of a shape than places for it, no more places than a node has room."""
        most, crowded = self._limits.most, self._limits.crowded
        for shape, node in np.argwhere(crowded).tolist():
            bound = int(most[shape, node])
            self._counts[shape, node] = self._whole(f"y{shape}_{node}", bound)
        for row in self._limits.rows:
            terms = [(self._counts[shape, row.node], weight) for shape, weight in row.weights]
            self._row(terms, LpConstraintLE, row.bound)
        places: dict[int, list[tuple[LpVariable, int]]] = {}
        for (shape, _), count in self._counts.items():
            places.setdefault(shape, []).append((count, -1))
        members: dict[int, list[tuple[LpVariable, int]]] = {}
        for (index, part), term in self._members.items():
            members.setdefault(self._problem.demands[index].parts[part].shape, []).append(term)
        for shape, terms in members.items():
            elsewhere = int(most[shape][~crowded[shape]].sum())
            merged = LpAffineExpression()  # one demand may have several parts of a shape
            for variable, each in (*terms, *places.get(shape, ())):
                merged.addterm(variable, each)
            self._row(merged.items(), LpConstraintLE, elsewhere)

    def _add_order(self) -> None:
        """Among interchangeable demands the more valuable start first, then the earlier.

        Nothing is lost: two of them could trade their places.
        """
        latest: dict[tuple[object, ...], LpVariable] = {}
        demands = self._problem.demands
        ranked = sorted(self._starts, key=lambda i: (-demands[i].level, -demands[i].value, i))
        for index in ranked:
            demand, start = demands[index], self._starts[index]
            kind = (demand.need, demand.parts, demand.role_minimum)
            if kind in latest:
                self._row([(latest[kind], 1), (start, -1)], LpConstraintGE, 0)
            latest[kind] = start
