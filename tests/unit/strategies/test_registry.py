"""How a strategy is found by its name, and what is said of one that cannot be used."""

import sys
from importlib.metadata import EntryPoint

import pytest

from tutti.strategies import STRATEGIES, StrategyError, load, names, plugins
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget, Outcome, Problem, Share, Shares, Solution

from .generators import gang, problem_of

HERE = __name__
PROBLEM = problem_of([[4]], [[1]], gang(2))
SOUND: Shares = ((Share(0, 0, 2),),)


def point(name: str, attribute: str) -> EntryPoint:
    """An entry point that names something in this module."""
    return EntryPoint(name, f"{HERE}:{attribute}", plugins.GROUP)


class Mine:
    """A strategy of another package."""

    name = "mine"

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Answer as best fit does."""
        return BestFit().solve(problem, budget)


class Moody(Mine):
    """It cannot be made."""

    name = "moody"

    def __init__(self) -> None:
        raise LookupError("no licence")


class Silent(Mine):
    """It cannot be made, and does not say why."""

    name = "silent"

    def __init__(self) -> None:
        raise KeyError


class Nameless:
    """It has no name."""

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Answer as best fit does."""
        return BestFit().solve(problem, budget)


class Curt(Mine):
    """It takes no budget."""

    name = "curt"

    def solve(self, problem: Problem) -> Solution:  # type: ignore[override]
        """Answer as best fit does."""
        return BestFit().solve(problem, Budget())


class Wordy(Mine):
    """It answers in words."""

    name = "wordy"

    def solve(self, problem: Problem, budget: Budget) -> Solution:  # noqa: ARG002 - words suffice
        """Answer anything but a Solution."""
        return "all of them"  # type: ignore[return-value]


def test_every_built_in_strategy_is_loaded_by_its_name() -> None:
    assert {load(name).name for name in STRATEGIES} == set(STRATEGIES) <= set(names())


def test_an_unknown_name_is_answered_with_the_names_there_are() -> None:
    with pytest.raises(StrategyError) as said:
        load("ipl")
    assert str(said.value) == (
        "strategy 'ipl' is not one of bestfit, firstfit, flow, ilp, ilp-highs, spread"
    )


def test_highs_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(StrategyError) as said:
        load("ilp-highs")
    assert str(said.value) == (
        "strategy 'ilp-highs' needs HiGHS: pip install 'highspy<1.15', or use Tutti's image"
    )


def test_flow_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tutti.strategies.flow", raising=False)
    monkeypatch.setitem(sys.modules, "ortools.graph.python.min_cost_flow", None)
    with pytest.raises(StrategyError) as said:
        load("flow")
    assert str(said.value).startswith("strategy 'flow' needs OR-Tools (")
    assert str(said.value).endswith("): pip install 'ortools>=9.15'")


def test_a_strategy_from_outside_answers_under_its_name() -> None:
    found = plugins.load(point("mine", "Mine"))
    assert found.name == "mine"
    assert found.solve(PROBLEM, Budget()) == Solution(Outcome.PROVED, SOUND)


def test_no_package_takes_the_name_of_a_built_in_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {"bestfit": point("bestfit", "Mine"), "mine": point("mine", "Mine")}
    monkeypatch.setattr(plugins, "offered", lambda: taken)
    assert isinstance(load("bestfit"), BestFit)
    assert isinstance(load("mine"), plugins.Guarded)
    assert "mine" in names()


@pytest.mark.parametrize(
    ("name", "attribute", "sentence"),
    [
        ("gone", "Gone", "cannot be made: AttributeError: module"),
        ("moody", "Moody", "cannot be made: LookupError: no licence"),
        ("silent", "Silent", "cannot be made: KeyError"),
        ("hollow", "PROBLEM", "cannot be made: TypeError: 'Problem' object is not callable"),
        ("nameless", "Nameless", "cannot be made: AttributeError: 'Nameless' object has no"),
        ("curt", "Curt", "cannot be made: TypeError: too many positional arguments"),
        ("yours", "Mine", "calls itself 'mine'"),
        ("wordy", "Wordy", "does not work: it answered str, not a Solution with an Outcome"),
    ],
)
def test_a_strategy_that_cannot_be_used_is_refused_with_a_sentence(
    name: str, attribute: str, sentence: str
) -> None:
    with pytest.raises(StrategyError) as said:
        plugins.load(point(name, attribute))
    assert str(said.value).startswith(
        f"strategy {name!r} of entry point '{HERE}:{attribute}' {sentence}"
    )


def test_a_package_that_cannot_be_imported_is_refused_with_a_sentence() -> None:
    with pytest.raises(StrategyError, match="No module named 'nowhere'"):
        plugins.load(EntryPoint("lost", "nowhere:Lost", plugins.GROUP))


def test_an_error_while_solving_is_a_failure_with_its_reason() -> None:
    class Failing(Mine):
        def solve(self, problem: Problem, budget: Budget) -> Solution:  # noqa: ARG002 - none used
            raise ZeroDivisionError("division by zero")

    solution = plugins.Guarded("mine", Failing()).solve(PROBLEM, Budget())
    assert solution == Solution(Outcome.FAILED, ((),), "ZeroDivisionError: division by zero")


@pytest.mark.parametrize(
    ("shares", "outcome", "sentence"),
    [
        (SOUND, "proved", "it answered Solution, not a Solution with an Outcome"),
        ((), Outcome.FAILED, "it gave no reason"),
        ((), Outcome.PROVED, "it answered 0 of 1 demands"),
        (((Share(1, 0, 2),),), Outcome.PROVED, "it named a part or a node that does not exist"),
        (
            ((Share(0, -1, 2),),),
            Outcome.PROVED,
            "it named a part or a node that does not exist",
        ),
        (((Share(0, 0, 3), Share(0, 0, -1)),), Outcome.PROVED, "or a count below 1"),
        (((Share(0, 0, 1),),), Outcome.PROVED, "it admitted a gang in part"),
    ],
)
def test_an_answer_that_breaks_the_protocol_is_a_failure(
    shares: Shares, outcome: Outcome, sentence: str
) -> None:
    class Wrong(Mine):
        def solve(self, problem: Problem, budget: Budget) -> Solution:  # noqa: ARG002 - it is fixed
            return Solution(outcome, shares)

    solution = plugins.Guarded("mine", Wrong()).solve(PROBLEM, Budget())
    assert (solution.outcome, solution.shares) == (Outcome.FAILED, ((),))
    assert sentence in solution.detail


def test_its_own_failure_keeps_its_own_words() -> None:
    class Tired(Mine):
        def solve(self, problem: Problem, budget: Budget) -> Solution:  # noqa: ARG002 - none used
            return Solution(Outcome.FAILED, (), "no more today")

    solution = plugins.Guarded("mine", Tired()).solve(PROBLEM, Budget())
    assert solution == Solution(Outcome.FAILED, ((),), "no more today")
