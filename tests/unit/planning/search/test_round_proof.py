"""When a plan of several rounds is proved although its members have rules for one another."""

from dataclasses import dataclass, field

import pytest

from tutti.gang import finding_text
from tutti.model.decisions import Plan, Policy, Reason
from tutti.planning.plan import plan
from tutti.planning.search import round_proof
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget, Outcome, Problem, Solution, Strategy
from tutti.verify import plan_checks

from ....harness.builders import AMPLE_BUDGET, GangBuilder, Part, gang, peers, snapshot_of
from ..neighbours import host, labels

ILP = STRATEGIES["ilp"]()
GPUS = host("z2-0", "z2", cpu=0, gpu=9)  # for whoever parts the rounds, and nobody else
GROWN = gang("e").of(2, gpu=1).needing(1).priority(2)


def planned(*parts: Part, by: Strategy = ILP) -> Plan:
    snapshot = snapshot_of(GPUS, GROWN, *parts)
    made = plan(snapshot, by, BestFit(), AMPLE_BUDGET, Policy())
    assert plan_checks.violations(snapshot, made) == ()
    return made


def started(plan: Plan) -> set[str]:
    return {placement.gang.name for placement in plan.placements} - {"e"}


def follower(app: str = "b", *, cpu: float = 6) -> GangBuilder:
    """Whoever wants one of an app near."""
    return gang("w").of(1, cpu=cpu).labelled(app="a").near("zone", peers(app=app)).priority(2)


def leader(name: str = "b", *, cpu: float = 1) -> GangBuilder:
    return gang(name).of(1, cpu=cpu).labelled(app=name)


ZONES = (host("z0-0", "z0", cpu=1), host("z1-0", "z1", cpu=7))


def test_whoever_might_follow_one_of_a_later_round_leaves_no_proof() -> None:
    plan = planned(*ZONES, follower(), leader())
    assert started(plan) == {"b"}
    assert not plan.proved
    (said,) = plan.rejections
    assert (said.gang.name, said.reason) == ("w", Reason.BUDGET_EXHAUSTED)
    assert finding_text.sentence(said).endswith(round_proof.SENTENCE)
    assert all(level.bound is None for level in plan.levels)


def test_one_that_would_not_help_leaves_the_proof() -> None:
    elsewhere = leader().shaped(node_selector=(("zone", "z0"),))
    plan = planned(*ZONES, follower(), elsewhere)
    assert (started(plan), plan.proved) == ({"b"}, True)
    assert [level.bound for level in plan.levels] == [level.admitted for level in plan.levels]


def test_whom_no_rule_counts_takes_no_proof_away() -> None:
    """The gang that waits spreads its own members alone."""
    spread = gang("w").of(3, cpu=1).even("zone").priority(2)
    nodes = host("z0-0", "z0", cpu=9), host("z1-0", "z1", cpu=9).cordoned()
    plan = planned(*nodes, spread, gang("b").of(1, cpu=1))
    assert (started(plan), plan.proved) == ({"b"}, True)


def test_those_whom_a_follower_needs_in_turn_are_asked_about_too() -> None:
    between = leader().near("zone", peers(app="c"))
    nodes = host("z0-0", "z0", cpu=1), host("z1-0", "z1", cpu=8)
    assert not planned(*nodes, follower(), between, leader("c")).proved


def test_members_beyond_those_needed_may_be_who_is_followed() -> None:
    grown = gang("g").role("worker", 1, cpu=1).role("leader", 0, 1, cpu=1).needing(1).priority(2)
    assert not planned(*ZONES, follower("x"), grown.only("g-1", labels=labels(app="x"))).proved
    assert planned(*ZONES, follower("x"), grown).proved


@pytest.mark.parametrize("more", [0, 1])
def test_so_many_that_no_proof_is_to_be_had_are_not_asked_about(more: int) -> None:
    many = gang("b").of(round_proof.MOST + more, cpu=0).labelled(app="b")
    plan = planned(*ZONES, follower(), many.shaped(node_selector=(("zone", "z0"),)))
    assert plan.proved == (not more)


@dataclass(slots=True)
class Failing:
    """The strategy ``ilp`` once, and no answer from then on."""

    asked: list[int] = field(default_factory=list)
    name: str = "failing"

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Answer, or not."""
        self.asked.append(len(problem.demands))
        if len(self.asked) > 1:
            return Solution(Outcome.FAILED, (), "no engine")
        return ILP.solve(problem, budget)


def test_where_the_second_question_has_no_answer_there_is_no_proof() -> None:
    failing = Failing()
    elsewhere = leader().shaped(node_selector=(("zone", "z0"),))
    plan = planned(*ZONES, follower(), elsewhere, by=failing)
    assert not plan.proved
    assert failing.asked[:2] == [2, 3]


def test_those_of_one_round_follow_each_other() -> None:
    plan = planned(*ZONES, follower(), leader().priority(2))
    assert (started(plan), plan.proved) == ({"w", "b"}, True)
