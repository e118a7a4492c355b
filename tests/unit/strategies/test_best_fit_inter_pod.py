"""Where best fit puts members that have rules between them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tutti.strategies.best_fit import BestFit, FirstFit, Spread, best_fit
from tutti.strategies.best_fit_inter_pod import LOOKS_PER_SECOND, WorkBudget
from tutti.strategies.checks import is_sound
from tutti.strategies.problem import (
    Affinity,
    AntiAffinity,
    Budget,
    Demand,
    DemandLevel,
    DomainCount,
    EvenSpread,
    Outcome,
    Part,
    Problem,
    Rules,
    Share,
)

from .generators import gang, problem_of


def domain_count(
    domain: Sequence[int], counted: Sequence[int], there: Sequence[int] | None = None
) -> DomainCount:
    """These shapes (as flags) by these domains of nodes."""
    found = [0] * (max(domain) + 1) if there is None else there
    return DomainCount(
        np.array(domain, dtype=np.intp),
        np.array(counted, dtype=np.bool_),
        np.array(found, dtype=np.int64),
    )


def with_rules(
    problem: Problem,
    *rules: AntiAffinity | Affinity | EvenSpread,
    domain_counts: tuple[DomainCount, ...],
) -> Problem:
    """The problem under these rules."""
    return replace(
        problem,
        rules=Rules(
            domain_counts,
            tuple(rule for rule in rules if isinstance(rule, AntiAffinity)),
            tuple(rule for rule in rules if isinstance(rule, Affinity)),
            tuple(rule for rule in rules if isinstance(rule, EvenSpread)),
        ),
    )


def per(domain: Sequence[int], shares: Sequence[Share]) -> Counter[int]:
    """Members by domain."""
    found = Counter[int]()
    for share in shares:
        found[domain[share.node]] += share.count
    return found


@pytest.mark.parametrize("strategy", [BestFit(), FirstFit(), Spread()], ids=lambda one: one.name)
def test_a_gang_of_eight_that_keeps_apart_lands_on_eight_nodes(strategy: BestFit) -> None:
    nodes = range(9)
    problem = with_rules(
        problem_of([[9]] * 9, [[1]], gang(8)),
        AntiAffinity(0, 0),
        domain_counts=(domain_count(nodes, [1]),),
    )
    (shares,) = strategy.solve(problem, Budget()).shares
    assert len({share.node for share in shares}) == 8
    assert best_fit(replace(problem, demands=(gang(10),))) == ((),)


@pytest.mark.parametrize("strategy", [BestFit(), FirstFit(), Spread()], ids=lambda one: one.name)
def test_twelve_members_over_three_zones_are_four_in_each(strategy: BestFit) -> None:
    zones = [0, 0, 0, 0, 1, 1, 2, 2]
    problem = with_rules(
        problem_of([[9]] * 8, [[1]], gang(12)),
        EvenSpread(0, 0, 1),
        domain_counts=(domain_count(zones, [1]),),
    )
    (shares,) = strategy.solve(problem, Budget()).shares
    assert per(zones, shares) == {0: 4, 1: 4, 2: 4}


def test_a_spread_takes_what_is_there_into_account() -> None:
    zones = [0, 1, 2]
    problem = with_rules(
        problem_of([[9]] * 3, [[1]], gang(6)),
        EvenSpread(0, 0, 1),
        domain_counts=(domain_count(zones, [1], there=[3, 0, 0]),),
    )
    (shares,) = best_fit(problem)
    assert per(zones, shares) == {1: 3, 2: 3}


def test_a_gang_in_one_zone_goes_to_the_tightest_that_holds_it() -> None:
    zones = [0, 0, 1, 1, 2, 2]
    problem = with_rules(
        problem_of([[1], [1], [4], [4], [3], [3]], [[1]], gang(6)),
        Affinity(0, (0,), may_be_first=True),
        domain_counts=(domain_count(zones, [1]),),
    )
    (shares,) = best_fit(problem)
    assert per(zones, shares) == {2: 6}


def test_workers_share_the_zone_of_the_driver_that_comes_with_them() -> None:
    zones = [0, 1, 1]
    pair = Demand(4, (Part(0, 0, 3), Part(1, 1, 1)), (3, 1), DemandLevel(0), 1)
    # The driver fits tightest where no worker has room.
    problem = with_rules(
        problem_of([[2], [6], [9]], [[3], [2]], pair),
        Affinity(0, (0,), may_be_first=False),
        domain_counts=(domain_count(zones, [0, 1]),),
    )
    (shares,) = best_fit(problem)
    assert per(zones, shares) == {1: 4}


def test_who_has_no_part_in_a_rule_may_be_in_another_zone() -> None:
    zones = [0, 1]
    three = Demand(3, (Part(0, 0, 2), Part(1, 1, 1)), (2, 1), DemandLevel(0), 1)
    problem = with_rules(
        problem_of([[3], [2]], [[1], [3]], three),
        Affinity(0, (0,), may_be_first=True),
        domain_counts=(domain_count(zones, [1, 0]),),
    )
    (shares,) = best_fit(problem)
    assert per(zones, shares) == {0: 1, 1: 2}


def test_members_go_next_to_those_who_are_there() -> None:
    problem = with_rules(
        problem_of([[1], [5]], [[1]], gang(1), gang(2)),
        Affinity(0, (0,), may_be_first=True),
        domain_counts=(domain_count([0, 1], [1], there=[0, 1]),),
    )
    assert best_fit(problem) == ((Share(0, 1, 1),), (Share(0, 1, 2),))


def test_who_needs_others_comes_in_once_they_are_there() -> None:
    problem = with_rules(
        problem_of([[5], [5]], [[1], [1]], gang(1), gang(1, shape=1), gang(40)),
        Affinity(0, (0,), may_be_first=False),
        domain_counts=(domain_count([0, 1], [0, 1]),),
    )
    first, second, third = best_fit(problem)
    assert first[0].node == second[0].node
    assert not third


def test_a_later_gang_does_not_break_the_rule_of_an_earlier_one() -> None:
    problem = with_rules(
        problem_of([[9], [0]], [[1], [1]], gang(1), gang(2, shape=1), gang(1, shape=1)),
        AntiAffinity(0, 0),
        domain_counts=(domain_count([0, 1], [0, 1]),),
    )
    assert best_fit(problem) == ((Share(0, 0, 1),), (), ())
    assert all(best_fit(replace(problem, free=np.array([[9], [3]]))))


def test_a_spread_is_not_left_uneven_by_others_whom_it_counts() -> None:
    zones = [0, 1]
    problem = with_rules(
        problem_of([[9], [1]], [[1], [1]], gang(2), gang(3, shape=1)),
        EvenSpread(0, 0, 1),
        domain_counts=(domain_count(zones, [1, 1]),),
    )
    first, second = best_fit(problem)
    assert per(zones, first) == {0: 1, 1: 1}
    assert not second


def test_members_without_rules_are_placed_as_ever_beside_those_with() -> None:
    both = Demand(4, (Part(0, 0, 2), Part(1, 0, 2)), (0,), DemandLevel(0), 1)
    problem = with_rules(
        problem_of([[3], [1], [9]], [[1], [1]], both),
        AntiAffinity(0, 0),
        domain_counts=(domain_count([0, 1, 2], [1, 0]),),
    )
    (shares,) = best_fit(problem)
    assert is_sound(problem, (shares,))


def test_standing_members_are_kept_apart_from() -> None:
    problem = with_rules(
        problem_of([[9], [9]], [[1]], gang(1), gang(1)),
        AntiAffinity(0, 0),
        domain_counts=(domain_count([0, 1], [1]),),
    )
    standing = ((Share(0, 1, 1),), ())
    assert best_fit(problem, [1], standing) == ((Share(0, 1, 1),), (Share(0, 0, 1),))


def test_looks_at_nodes_are_counted_and_rules_let_nobody_in_once_they_are_spent() -> None:
    plain = replace(gang(2), parts=(Part(1, 0, 2),))
    problem = with_rules(
        problem_of([[9]] * 6, [[1], [1]], gang(3), gang(3), plain),
        AntiAffinity(0, 0),
        domain_counts=(domain_count(range(6), [1, 0]),),
    )
    # A member of the first gangs costs a look at each of the six nodes.
    patience = WorkBudget(4 * 6)
    first, second, third = best_fit(problem, patience=patience)
    assert (len(first), second, sum(share.count for share in third)) == (3, (), 2)
    assert patience.is_over
    assert all(best_fit(problem, patience=WorkBudget(6 * 6 + 1)))


@pytest.mark.parametrize("strategy", [BestFit(), FirstFit(), Spread()], ids=lambda one: one.name)
def test_a_search_that_used_up_its_budget_says_so(strategy: BestFit) -> None:
    problem = with_rules(
        problem_of([[9]] * 6, [[1]], gang(3)),
        AntiAffinity(0, 0),
        domain_counts=(domain_count(range(6), [1]),),
    )
    cut = strategy.solve(problem, Budget(seconds=6 / LOOKS_PER_SECOND))
    assert (cut.outcome, cut.shares) == (Outcome.BUDGET_EXHAUSTED, ((),))
    assert cut.detail.startswith(f"{strategy.name} used up its budget")
    assert strategy.solve(problem, Budget()).outcome is Outcome.PROVED
    without = replace(problem, rules=Rules())
    assert strategy.solve(without, Budget(seconds=0)).outcome is Outcome.PROVED
