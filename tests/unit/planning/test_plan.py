"""Which gangs start, on what terms, and what the plan says of itself."""

from dataclasses import dataclass, field, replace

from tutti.model.cluster import Phase
from tutti.model.decisions import Level, Objective, Plan, Policy, Reason
from tutti.model.resources import Resources
from tutti.model.shapes import Shape
from tutti.planning.plan import plan
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget, DemandLevel, Outcome, Problem, Solution, Strategy

from ...harness.builders import (
    Canned,
    Overlooking,
    Part,
    gang,
    node,
    reservation,
    single,
    snapshot_of,
)

BEST_FIT = BestFit()


def planned(*parts: Part, by: Strategy = BEST_FIT) -> Plan:
    return plan(snapshot_of(*parts), by, BEST_FIT, Budget())


def placed(plan: Plan) -> dict[str, dict[str, str]]:
    """Who goes where, by gang."""
    return {
        p.gang.name: {assignment.pod.name: assignment.node for assignment in p.assignments}
        for p in plan.placements
    }


def reasons(plan: Plan) -> dict[str, Reason]:
    return {r.gang.name: r.reason for r in plan.rejections}


def test_a_gang_that_fits_is_placed_whole() -> None:
    plan = planned(node("n1", cpu=4), gang("a").of(4, cpu=1).but(generation=3))
    assert placed(plan) == {"a": dict.fromkeys(["a-0", "a-1", "a-2", "a-3"], "n1")}
    assert plan.placements[0].generation == 3
    assert plan.proved


def test_a_gang_that_does_not_fit_whole_is_not_placed_at_all() -> None:
    plan = planned(node("n1", cpu=4), gang("a").of(5, cpu=1))
    assert placed(plan) == {}
    assert reasons(plan) == {"a": Reason.NOT_ENOUGH_ROOM}


def test_a_higher_priority_goes_first() -> None:
    old, urgent = gang("a").of(3, cpu=1), gang("b").of(3, cpu=1).priority(1).but(created=9.0)
    assert placed(planned(node("n1", cpu=4), old, urgent)).keys() == {"b"}


def test_a_gang_of_one_is_placed_like_any_other() -> None:
    assert placed(planned(node("n1", cpu=4), single("p", cpu=1))) == {"p": {"p": "n1"}}


def test_a_pod_and_a_group_of_the_same_name_are_planned_apart() -> None:
    plan = planned(node("n1", cpu=4), single("a", cpu=1), gang("a").of(1, cpu=1))
    assert len(plan.placements) == 2


def test_a_bound_gang_asks_for_nothing() -> None:
    plan = planned(node("n1", cpu=4), gang("a").of(2, cpu=1).bound_on("n1", "n1"))
    assert plan == Plan()


def test_a_gang_with_a_standing_reservation_is_left_to_it() -> None:
    held = gang("a").of(2, cpu=1)
    plan = planned(node("n1", cpu=4), held, reservation(held, ("a-0", "n1"), ("a-1", "n1")))
    assert plan == Plan()


def test_reserved_room_is_used_room() -> None:
    held = gang("a").of(2, cpu=1)
    standing = reservation(held, ("a-0", "n1"), ("a-1", "n1"))
    plan = planned(node("n1", cpu=4), held, standing, gang("b").of(3, cpu=1))
    assert reasons(plan) == {"b": Reason.NOT_ENOUGH_ROOM}


def test_a_lost_member_is_replaced_before_any_other_gang_starts() -> None:
    started = gang("a").of(3, cpu=2).needing(3).bound_on("n1", "n1")
    urgent = gang("b").of(1, cpu=1).priority(9)
    plan = planned(node("n1", cpu=6), started, urgent)
    assert placed(plan) == {"a": {"a-2": "n1"}}
    assert reasons(plan) == {"b": Reason.NOT_ENOUGH_ROOM}


def test_a_repair_that_has_no_room_for_one_shape_takes_another() -> None:
    started = gang("a").of(1, cpu=1).of(1, cpu=9).of(1, cpu=1).needing(2).bound_on("n1")
    assert placed(planned(node("n1", cpu=4), started)) == {"a": {"a-2": "n1"}}


def test_a_repair_without_room_says_so_and_stops_nobody() -> None:
    started = gang("a").of(2, cpu=3).bound_on("n1")
    plan = planned(node("n1", cpu=4), started, gang("b").of(1, cpu=1))
    assert placed(plan).keys() == {"b"}
    assert reasons(plan) == {"a": Reason.NOT_ENOUGH_ROOM}
    assert plan.proved


def test_further_members_come_after_all_whole_gangs() -> None:
    elastic = gang("a").of(4, cpu=1).needing(1)
    plan = planned(node("n1", cpu=4), elastic, gang("b").of(2, cpu=1).but(created=9.0))
    assert placed(plan) == {"a": {"a-0": "n1", "a-1": "n1"}, "b": {"b-0": "n1", "b-1": "n1"}}


def test_repairs_and_further_members_of_one_gang_are_one_placement() -> None:
    started = gang("a").of(4, cpu=1).needing(2).bound_on("n1")
    plan = planned(node("n1", cpu=8), started)
    assert placed(plan) == {"a": {"a-1": "n1", "a-2": "n1", "a-3": "n1"}}
    assert len(plan.placements) == 1


def test_a_younger_member_starts_where_an_older_one_of_its_role_fits_nowhere() -> None:
    mixed = gang("a").role("worker", 1, 1, cpu=9).of(2, role="worker", cpu=1).at_most(1)
    plan = planned(node("n1", cpu=4), mixed.needing(1))
    assert placed(plan) == {"a": {"a-1": "n1"}}
    assert plan.proved


def test_a_younger_member_joins_where_an_older_one_of_its_role_fits_nowhere() -> None:
    mixed = gang("a").role("worker", 1, 1, cpu=1).of(1, role="worker", cpu=9)
    started = mixed.of(3, role="worker", cpu=1).at_most(3).needing(1).bound_on("n1")
    assert placed(planned(node("n1", cpu=9), started)) == {"a": {"a-2": "n1", "a-3": "n1"}}


def test_a_younger_member_replaces_a_lost_one_where_an_older_one_fits_nowhere() -> None:
    mixed = gang("a").role("x", 1, 1, cpu=1).role("y", 1, 1, cpu=9).at_most(1)
    lost = mixed.of(1, role="y", cpu=1).needing(2).only("a-0", node="n1")
    assert placed(planned(node("n1", cpu=4), lost)) == {"a": {"a-2": "n1"}}


def test_members_that_join_in_two_rounds_keep_the_maximum_of_their_role() -> None:
    first = gang("a").role("w", 1, 4, cpu=1).at_most(3).needing(2).priority(1)
    plan = planned(node("n1", cpu=4), first, gang("b").of(1, cpu=1))
    assert {gang: len(own) for gang, own in placed(plan).items()} == {"a": 3, "b": 1}
    assert plan.proved


def test_the_oldest_members_start_where_all_of_a_role_fit() -> None:
    plan = planned(node("n1", cpu=9), gang("a").role("w", 1, 3, cpu=1).at_most(2).needing(2))
    assert placed(plan) == {"a": {"a-0": "n1", "a-1": "n1"}}


def test_which_members_start_is_chosen_where_they_differ() -> None:
    mixed = gang("a").of(2, cpu=9).of(2, cpu=1).needing(2)
    assert placed(planned(node("n1", cpu=4), mixed)) == {"a": {"a-2": "n1", "a-3": "n1"}}


def test_a_member_promised_by_another_gangs_reservation_is_not_placed_twice() -> None:
    old, new = gang("a").of(1, cpu=1), gang("b").of(2, cpu=1)
    entries = reservation(new, ("b-0", "n1")).entries
    moved = replace(reservation(old), entries=entries)  # its label was changed after the commit
    plan = planned(node("n1", cpu=8), old, new, moved)
    assert reasons(plan) == {"b": Reason.WAITING_FOR_MEMBERS}


def test_a_strategys_proof_is_the_plans() -> None:
    cluster = (node("n1", cpu=4), gang("a").of(3, cpu=1), gang("b").of(3, cpu=1))
    assert planned(*cluster, by=Canned(Outcome.PROVED)).proved
    assert not planned(*cluster, by=Canned(Outcome.HEURISTIC)).proved


def test_a_heuristic_that_was_chosen_owes_no_proof() -> None:
    plan = planned(node("n1", cpu=4), gang("a").of(3, cpu=1), gang("b").of(3, cpu=1))
    assert not plan.proved
    assert plan.shortfall == ""
    assert reasons(plan) == {"b": Reason.NOT_ENOUGH_ROOM}


def test_where_all_start_nothing_better_exists() -> None:
    roomy = (node("n1", cpu=8), gang("a").of(3, cpu=1), gang("b").of(3, cpu=1))
    for outcome in (Outcome.HEURISTIC, Outcome.BUDGET_EXHAUSTED):
        plan = planned(*roomy, by=Canned(outcome))
        assert (plan.proved, plan.shortfall) == (True, "")


def test_a_spent_budget_is_said_where_a_better_choice_may_exist() -> None:
    cluster = (
        node("n1", cpu=4),
        gang("a").of(3, cpu=1),
        gang("b").of(3, cpu=1),
        gang("c").of(5, cpu=1),
    )
    plan = planned(*cluster, by=Canned(Outcome.BUDGET_EXHAUSTED))
    assert not plan.proved
    assert plan.shortfall == "canned used up its budget"
    assert reasons(plan) == {"b": Reason.BUDGET_EXHAUSTED, "c": Reason.NOT_ENOUGH_ROOM}


def test_a_budgets_own_words_are_kept() -> None:
    cluster = (node("n1", cpu=4), gang("a").of(3, cpu=1), gang("b").of(3, cpu=1))
    plan = planned(*cluster, by=Canned(Outcome.BUDGET_EXHAUSTED, "20000 nodes were searched"))
    assert plan.shortfall == "20000 nodes were searched"


def test_if_the_strategy_fails_the_fallback_answers_and_the_plan_says_why() -> None:
    cluster = (node("n1", cpu=4), gang("a").of(3, cpu=1), gang("b").of(3, cpu=1))
    plan = planned(*cluster, by=Canned(Outcome.FAILED, "cbc is not there"))
    assert placed(plan).keys() == {"a"}
    assert not plan.proved
    assert plan.shortfall == "canned failed (cbc is not there), bestfit answered"
    assert reasons(plan) == {"b": Reason.BUDGET_EXHAUSTED}


def test_a_failure_is_said_even_where_all_start() -> None:
    plan = planned(node("n1", cpu=4), gang("a").of(3, cpu=1), by=Canned(Outcome.FAILED))
    assert placed(plan).keys() == {"a"}
    assert (plan.proved, plan.shortfall) == (
        False,
        "canned failed (no reason given), bestfit answered",
    )


def test_if_nobody_answers_nothing_starts() -> None:
    broken = Canned(Outcome.FAILED, "broken")
    snapshot = snapshot_of(node("n1", cpu=4), gang("a").of(3, cpu=1))
    made = plan(snapshot, broken, broken, Budget())
    assert made.placements == ()
    assert reasons(made) == {"a": Reason.BUDGET_EXHAUSTED}


def test_what_an_unproved_search_overlooked_is_tried_again() -> None:
    plan = planned(node("n1", cpu=4), gang("a").of(2, cpu=1), by=Overlooking())
    assert placed(plan).keys() == {"a"}


def test_further_members_come_before_gangs_of_lower_priority() -> None:
    elastic = gang("a").of(4, cpu=1).needing(1).priority(1)
    plan = planned(node("n1", cpu=4), elastic, gang("b").of(2, cpu=1))
    assert placed(plan).keys() == {"a"}
    assert len(placed(plan)["a"]) == 4
    assert reasons(plan) == {"b": Reason.NOT_ENOUGH_ROOM}


def test_further_members_of_a_started_gang_come_before_gangs_of_lower_priority() -> None:
    elastic = gang("a").of(4, cpu=1).needing(1).priority(1).bound_on("n1")
    plan = planned(node("n1", cpu=4), elastic, gang("b").of(2, cpu=1))
    assert placed(plan).keys() == {"a"}


def test_no_more_members_of_a_role_join_than_it_may_have() -> None:
    elastic = gang("a").role("worker", 1, 6).at_most(3).needing(1)
    plan = planned(node("n1", cpu=9), elastic)
    assert placed(plan) == {"a": dict.fromkeys(["a-0", "a-1", "a-2"], "n1")}


def test_a_full_role_keeps_its_waiting_members_from_nothing_else() -> None:
    full = gang("a").role("worker", 1, 3, cpu=1).at_most(1).bound_on("n1").needing(1)
    plan = planned(node("n1", cpu=4), full, gang("b").of(3, cpu=1))
    assert placed(plan).keys() == {"b"}
    assert reasons(plan) == {"a": Reason.WAITING_FOR_MEMBERS}


def test_a_member_that_ends_makes_place_for_the_next_of_its_role() -> None:
    full = gang("a").role("worker", 1, 3, cpu=1).at_most(1).bound_on("n1").needing(1)
    over = full.only("a-0", phase=Phase.SUCCEEDED)
    assert placed(planned(node("n1", cpu=4), over)) == {"a": {"a-1": "n1"}}


def test_the_priority_of_its_class_counts_and_not_that_of_its_pods() -> None:
    low = gang("a").of(3, cpu=1).priority(9).of_class("low", 1)
    high = gang("b").of(3, cpu=1).of_class("high", 5)
    assert placed(planned(node("n1", cpu=4), low, high)).keys() == {"b"}
    unknown = low.of_class("lwo", None)
    assert placed(planned(node("n1", cpu=4), unknown, high)).keys() == {"a"}


def test_what_is_admitted_is_counted_by_priority_beside_the_bound() -> None:
    gangs = Policy(Objective.GANGS)
    snapshot = snapshot_of(
        node("n1", cpu=4),
        gang("a").of(3, cpu=1).priority(1),
        gang("b").of(3, cpu=1),
        gang("c").of(2, cpu=1),
        gang("never").of(1, cpu=9),
    )
    bounded = Canned(Outcome.HEURISTIC, bounds=((DemandLevel(1), 1), (DemandLevel(0), 2)))
    proved = Canned(Outcome.PROVED)
    for strategy, bound in ((bounded, 2), (proved, 0), (BEST_FIT, None)):
        made = plan(snapshot, strategy, BEST_FIT, Budget(), gangs)
        assert made.levels == (Level(1, 1, 1 if bound is not None else None), Level(0, 0, bound))


def test_what_a_second_look_finds_counts_too() -> None:
    plan = planned(
        node("n1", cpu=4), gang("a").of(2, cpu=1), gang("b").of(1, cpu=1).priority(1),
        by=Overlooking(),
    )  # fmt: skip
    assert [(level.priority, level.bound) for level in plan.levels] == [(1, None), (0, None)]
    assert all(level.admitted > 0 for level in plan.levels)


def test_a_gang_that_was_bound_and_members_beyond_those_needed_are_no_admission() -> None:
    grown = gang("a").of(4, cpu=1).bound_on("n1", "n1").needing(2)
    assert planned(node("n1", cpu=4), grown).levels == ()


@dataclass(slots=True)
class Thrifty:
    """Best fit, and a note of what it was allowed to spend."""

    allowed: list[float] = field(default_factory=list)
    name: str = "thrifty"

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Answer as best fit does."""
        self.allowed.append(budget.seconds)
        return BEST_FIT.solve(problem, budget)


def test_the_rounds_share_the_seconds_that_a_search_may_take() -> None:
    thrifty = Thrifty()
    elastic = [gang(f"g{n}").of(2, cpu=1).needing(1).priority(n) for n in range(3)]
    plan(snapshot_of(node("n1", cpu=8), *elastic), thrifty, BEST_FIT, Budget(seconds=30.0))
    assert thrifty.allowed == [6.0, 6.0, 6.0]  # two borders might have been searched, too


def test_a_plan_is_not_proved_where_a_request_was_rounded() -> None:
    large = node("n1").but(allocatable=Resources.of({"x": 2**52, "pods": 110}))

    def made(amount: int) -> Plan:
        return planned(large, gang("a").of(3).each(shape=Shape(Resources.of({"x": amount}))))

    exact, rounded = made(2**50), made(2**50 + 1)
    assert [len(placed(one)["a"]) for one in (exact, rounded)] == [3, 3]
    assert (exact.proved, exact.shortfall) == (True, "")
    assert not rounded.proved
    assert "more than 1 Pi" in rounded.shortfall
