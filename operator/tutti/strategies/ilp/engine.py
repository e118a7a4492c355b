"""The engines that solve an integer program: CBC in its own process, HiGHS in this one.

Both search for the best answer within a number of branch-and-bound nodes; the clock is the last
limit. Their answers are trusted only as far as they can be checked.
"""

# subprocess: PuLP waits for its engine without a limit, so a hanging CBC would stop every cycle.
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, Protocol

from pulp import LpProblem, PulpError
from pulp.apis.coin_api import COIN_CMD, PULP_CBC_CMD
from pulp.apis.highs_api import HiGHS
from pulp.constants import (
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

from ..problem import Outcome

# The outcome of a Solution, by the status and solution status of an engine. A program here always
# has a solution (admit nothing more), so "infeasible" and "unbounded" mean that the engine is
# wrong.
OUTCOMES: Mapping[tuple[int, int], Outcome] = {
    (LpStatusOptimal, LpSolutionOptimal): Outcome.PROVED,
    (LpStatusOptimal, LpSolutionIntegerFeasible): Outcome.BUDGET_EXHAUSTED,
    (LpStatusNotSolved, LpSolutionNoSolutionFound): Outcome.BUDGET_EXHAUSTED,
    (LpStatusInfeasible, LpSolutionInfeasible): Outcome.FAILED,
    (LpStatusInfeasible, LpSolutionNoSolutionFound): Outcome.FAILED,
    (LpStatusUnbounded, LpSolutionUnbounded): Outcome.FAILED,
    (LpStatusUndefined, LpSolutionNoSolutionFound): Outcome.FAILED,
}

_HIGHS_OUTCOMES: Mapping[str, Outcome] = {
    "Optimal": Outcome.PROVED,
    "Time limit reached": Outcome.BUDGET_EXHAUSTED,
    "Solution limit reached": Outcome.BUDGET_EXHAUSTED,  # also the status at the limit of nodes
    "Iteration limit reached": Outcome.BUDGET_EXHAUSTED,
}
_FEASIBLE = 2  # highspy's kSolutionStatusFeasible

LEAST_SECONDS = 0.01  # the least time for CBC once its program is written
# What each attempt turns off; which attempt ends soon differs from program to program.
ATTEMPTS: Sequence[Sequence[str]] = ((), ("-cuts", "off"), ("-preprocess", "off"))
WITHOUT_CUTS = 1  # for programs that hardly prove anything: cuts take time, and find no answer
GRACE_SECONDS = 2.0  # for reading and writing files, beyond CBC's own limit
VERSION_SECONDS = 30.0  # for a run that only says the version of CBC
# CBC's "Continuous objective value" has only six digits, so it may be below the true value.
_BOUND = re.compile(rb"^Upper bound:\s+(-?[\d.e+]+)", re.MULTILINE)
_VERSION = re.compile(rb"^Version:\s+(\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SolverLimits:
    """The limits of one run of an engine."""

    nodes: int
    seconds: float
    attempt: int = 0  # index into ATTEMPTS: each searches in another way


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one run; ``values`` are by variable name, and empty without a solution."""

    outcome: Outcome
    values: Mapping[str, float]
    detail: str = ""
    bound: float | None = None  # upper bound of all solutions, by the engine
    prices: Mapping[str, float] = field(default_factory=dict)  # of a relaxation's rows, by name


class Engine(Protocol):
    """An engine that maximises a program."""

    @property
    def name(self) -> str:
        """The name of the engine in messages."""

    def run(self, program: LpProblem, effort: SolverLimits, *, relaxed: bool = False) -> Answer:
        """Run once; a failure is an answer, too, and raises nothing.

        With ``relaxed``, values need not be integers, and the answer has prices.
        """


class Cbc:
    """COIN-OR's CBC, which comes with PuLP."""

    name = "CBC"

    def __init__(self, path: str | None = None, grace_seconds: float = GRACE_SECONDS) -> None:
        """Use the CBC at this path; None means the CBC that comes with PuLP."""
        self._path = path or PULP_CBC_CMD.pulp_cbc_path
        self._grace_seconds = grace_seconds

    def version(self, seconds: float = VERSION_SECONDS) -> str:
        """The version of CBC, from a run of it; or a message that says why there is none."""
        try:
            ended = _run([self._path, "-quit"], seconds)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"could not be run: {error}"
        match = _VERSION.search(ended.stdout)
        return match.group(1).decode() if match else f"ended with status {ended.returncode}"

    def run(self, program: LpProblem, effort: SolverLimits, *, relaxed: bool = False) -> Answer:
        """See ``Engine.run``."""
        if effort.seconds <= 0:
            return Answer(Outcome.BUDGET_EXHAUSTED, {})
        try:
            with TemporaryDirectory(prefix="tutti-") as folder:
                return self._run_in(Path(folder), program, effort, relaxed=relaxed)
        except subprocess.TimeoutExpired:
            return Answer(Outcome.BUDGET_EXHAUSTED, {})
        except OSError as error:
            return Answer(Outcome.FAILED, {}, f"CBC could not be run: {error}")
        except (ValueError, IndexError, PulpError) as error:
            return Answer(Outcome.FAILED, {}, f"CBC's answer could not be read: {error}")

    def _run_in(
        self, folder: Path, program: LpProblem, effort: SolverLimits, *, relaxed: bool
    ) -> Answer:
        """Write the program, run CBC on it, read its answer; like PuLP, but with a time limit."""
        until = monotonic() + effort.seconds
        model_file, solution_file = folder / "model.mps", folder / "solution.txt"
        engine = COIN_CMD(path=self._path, msg=False, mip=not relaxed)  # type: ignore[no-untyped-call]
        variables, names, rows, _ = program.writeMPS(str(model_file), rename=1, mip=not relaxed)
        seconds = max(LEAST_SECONDS, until - monotonic())  # writing took some time
        command = [self._path, str(model_file), "-max", "-sec", f"{seconds:.3f}"]
        command += ATTEMPTS[effort.attempt]
        # No "threads": serial is CBC's default, and the only mode that repeats itself exactly.
        options = f"-ratio 0 -allow 0 -timeMode elapsed -maxNodes {effort.nodes} -solve"
        command += [*options.split(), "-printingOptions", "all", "-solution", str(solution_file)]
        ended = _run(command, seconds + self._grace_seconds)
        if ended.returncode != 0:
            return Answer(Outcome.FAILED, {}, f"CBC ended with status {ended.returncode}")
        if not solution_file.exists():
            return Answer(Outcome.FAILED, {}, "CBC ended without a solution file")
        status, values, _, prices, _, solution = engine.readsol_MPS(  # type: ignore[no-untyped-call]
            str(solution_file), program, variables, names, rows
        )
        outcome = OUTCOMES.get((status, solution), Outcome.FAILED)
        has_values = (status, solution) != (LpStatusNotSolved, LpSolutionNoSolutionFound)
        detail = f"CBC answered with status {status} and solution status {solution}"
        bound = min((abs(float(number)) for number in _BOUND.findall(ended.stdout)), default=None)
        return Answer(outcome, values if has_values else {}, detail, bound, prices)


def _run(command: list[str], seconds: float) -> subprocess.CompletedProcess[bytes]:
    """Run CBC for at most ``seconds``; return its standard output."""
    return subprocess.run(  # noqa: S603 - our own arguments, no shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=seconds,
        check=False,
    )


class Highs:
    """HiGHS, from the optional package highspy; it runs in a thread of this process."""

    name = "HiGHS"

    def run(self, program: LpProblem, effort: SolverLimits, *, relaxed: bool = False) -> Answer:
        """See ``Engine.run``; HiGHS stops at its limits by itself.

        PuLP builds the model. PuLP does not know the node limit when it reads answers, so that is
        done here.
        """
        if effort.seconds <= 0:
            return Answer(Outcome.BUDGET_EXHAUSTED, {})
        solver = HiGHS(
            msg=False,
            mip=not relaxed,
            gapRel=0,
            gapAbs=0,
            threads=1,
            timeLimit=effort.seconds,
            mip_max_nodes=effort.nodes,
            random_seed=effort.attempt,
        )
        if not solver.available():  # type: ignore[no-untyped-call]
            return Answer(Outcome.FAILED, {}, "HiGHS is not installed: pip install 'highspy<1.15'")
        solver.createAndConfigureSolver(program)  # type: ignore[no-untyped-call]
        solver.buildSolverModel(program)  # type: ignore[no-untyped-call]
        model: Any = program.solverModel
        variables = program.variables()
        model.run()
        status = model.modelStatusToString(model.getModelStatus())
        info, solution = model.getInfo(), model.getSolution()
        outcome = _HIGHS_OUTCOMES.get(status, Outcome.FAILED)
        is_feasible = info.primal_solution_status == _FEASIBLE
        names = [variable.name for variable in variables]
        rows = [str(constraint.name) for constraint in program.constraints()]
        bound = abs(info.objective_function_value if relaxed else info.mip_dual_bound)
        return Answer(
            outcome=outcome,
            values=dict(zip(names, solution.col_value, strict=True)) if is_feasible else {},
            detail=f"HiGHS answered {status!r}",
            bound=bound if isfinite(bound) else None,  # stopped before it had a bound
            # PuLP gives HiGHS the objective with its sign changed.
            prices={row: -dual for row, dual in zip(rows, solution.row_dual, strict=True)},
        )
