"""Domains as numbers: what counting leaves, what the program proves, and where it stops."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from pulp import LpProblem

from tutti.strategies import greedy
from tutti.strategies.best_fit import BestFit
from tutti.strategies.checks import possible
from tutti.strategies.domains import alternatives
from tutti.strategies.domains import regions as domains
from tutti.strategies.domains.alternatives import Alternatives
from tutti.strategies.domains.regions import Region, empty_fits, region_work, regions
from tutti.strategies.ilp import strategy as ilp
from tutti.strategies.ilp.engine import Answer, SolverLimits
from tutti.strategies.ilp.strategy import IlpStrategy
from tutti.strategies.problem import (
    Budget,
    Demand,
    DemandLevel,
    Outcome,
    Part,
    Problem,
    SameDomain,
    Share,
)
from tutti.strategies.work import Work

from ...conformance.oracle.case import by_number, case_of
from ...conformance.oracle.comparing import compared, wrong_bounds
from ...conformance.oracle.faults import faults, worth
from ...conformance.oracle.optimum import optimum
from ...conformance.topology.instances import problem
from .generators import cap, gang, problem_of


def with_racks(
    problem: Problem, *racks: int, rules: tuple[SameDomain, ...] | None = None
) -> Problem:
    """The problem with one level; all members of each gang in one domain, if no rules are given."""
    demands = tuple(
        replace(
            demand,
            same_domain=(SameDomain(0, tuple(range(len(demand.parts)))),)
            if rules is None
            else rules,
        )
        for demand in problem.demands
    )
    return replace(problem, demands=demands, domains=(np.array(racks, dtype=np.intp),))


class Broken:
    """An engine that fails, or gives up."""

    name = "broken"

    def __init__(self, outcome: Outcome = Outcome.FAILED) -> None:
        self._outcome = outcome

    def run(self, program: LpProblem, effort: SolverLimits, *, relaxed: bool = False) -> Answer:
        """Answer nothing."""
        del program, effort, relaxed
        return Answer(self._outcome, {}, "it broke")


def knotted(racks: int) -> Problem:
    """One gang of three members of 3 and three of 2: each kind fits on 5, 5 and 4, not both."""
    demand = Demand(6, (Part(0, 0, 3), Part(1, 0, 3)), (0,), DemandLevel(0), 1)
    free = [[5], [5], [4]] * racks
    problem = problem_of(free, [[3], [2]], demand)
    return with_racks(problem, *(n // 3 for n in range(3 * racks)))


def test_regions_come_the_tightest_first() -> None:
    problem = with_racks(problem_of([[9], [4], [6], [2], [9]], [[1]], gang(4)), 0, 1, 2, 3, -1)
    work = region_work(problem, problem.demands[0])
    found = list(regions(problem, problem.demands[0], empty_fits(problem), work))
    assert found == [Region((1,)), Region((2,)), Region((0,))]


def test_where_there_is_no_domain_only_those_start_that_need_none() -> None:
    parts = (Part(0, 0, 2), Part(0, 1, 1))
    demand = Demand(1, parts, (0, 1), DemandLevel(0), 1)
    problem = problem_of([[4]], [[1]], demand)
    role = with_racks(problem, -1, rules=(SameDomain(0, (0,)),))
    whole = with_racks(problem, -1)
    for strategy in (BestFit(), IlpStrategy()):
        assert worth(role, strategy.solve(role, Budget())) == ((0, 1),)
        assert worth(whole, strategy.solve(whole, Budget())) == ((0, 0),)


def test_a_domain_that_is_fixed_is_the_only_one() -> None:
    problem = problem_of([[4], [4]], [[1]], gang(2))
    fixed = with_racks(problem, 0, 1, rules=(SameDomain(0, (0,), domain=1),))
    for strategy in (BestFit(), IlpStrategy()):
        (shares,) = strategy.solve(fixed, Budget()).shares
        assert {share.node for share in shares} == {1}
    assert not domains.are_together(fixed, fixed.demands[0], [Share(0, 0, 2)])
    assert domains.are_together(fixed, fixed.demands[0], ())


def test_equal_gangs_share_their_alternatives() -> None:
    problem = with_racks(problem_of([[4], [2], [9]], [[1]], *[gang(2)] * 3), 0, 1, -1)
    found = Alternatives.of(problem, range(3), 2)
    assert found is not None
    # One fits into the rack of two, and two into the rack of four: three, so no cap is needed.
    assert sorted(region.domains for region in found.regions) == [(0,), (0,), (1,)]
    assert found.problem.caps == ()
    assert Alternatives.of(problem, range(3), 1) is None


def test_an_answer_in_alternatives_is_the_same_answer() -> None:
    problem = with_racks(problem_of([[4], [4]], [[1]], *[gang(2)] * 2, gang(3)), 0, 1)
    found = Alternatives.of(problem, range(3), 9)
    assert found is not None
    answer = ((Share(0, 1, 2),), (), (Share(0, 0, 3),))
    assert found.with_domains(found.without(answer)) == answer


def test_a_cap_counts_every_alternative_as_its_gang() -> None:
    problem = with_racks(problem_of([[4], [4], [4]], [[1]], *[gang(3)] * 3), 0, 1, 2)
    limited = cap(problem, 6, 0, 1, 2)
    assert worth(limited, IlpStrategy().solve(limited, Budget())) == ((0, 6),)


@pytest.mark.parametrize("first", [1, 61])
def test_above_the_stated_size_the_bound_holds(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ilp, "MOST_ALTERNATIVES", 0)
    exact, outcomes = IlpStrategy(), set()
    for seed in range(first, first + 60):
        asked = problem(seed)
        solution, best = exact.solve(asked, Budget()), optimum(case_of(asked))
        assert faults(asked, solution) == []
        assert list(wrong_bounds(by_number(solution.bounds), best)) == []
        outcomes.add(solution.outcome)
        assert solution.outcome is not Outcome.PROVED or worth(asked, solution) == best
    assert outcomes == {Outcome.PROVED, Outcome.BUDGET_EXHAUSTED}


def test_above_the_stated_size_it_says_why_there_is_no_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ilp, "MOST_ALTERNATIVES", 0)
    problem = with_racks(problem_of([[3], [3], [3], [3]], [[1]], *[gang(4)] * 3), 0, 0, 1, 1)
    solution = IlpStrategy().solve(problem, Budget())
    assert solution.outcome is Outcome.BUDGET_EXHAUSTED
    assert ilp.TOO_MANY_DOMAINS in solution.detail


def test_one_gang_is_searched_for_in_every_domain() -> None:
    """Racks that counting leaves and no placement fits, and at last one that has a place."""
    problem = knotted(12)
    roomy = replace(problem, free=np.concatenate([problem.free[:-3], [[5], [5], [5]]]))
    for asked in (problem, roomy):
        answer = compared(asked, IlpStrategy())
        assert (answer.wrong, answer.is_proved) == ((), True)


def test_one_gang_whose_search_has_no_time_is_not_proved_impossible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(ilp, "LevelSearch")  # no time to build a program for any domain
    solution = IlpStrategy().solve(knotted(3), Budget(seconds=0.0))
    assert solution.outcome is Outcome.BUDGET_EXHAUSTED
    assert list(wrong_bounds(by_number(solution.bounds), optimum(case_of(knotted(3))))) == []


def test_one_gang_is_not_proved_impossible_by_an_engine_that_gives_up() -> None:
    solution = IlpStrategy(Broken(Outcome.BUDGET_EXHAUSTED)).solve(knotted(3), Budget())
    assert solution.outcome is Outcome.BUDGET_EXHAUSTED
    assert solution.bounds == ((DemandLevel(0), 1),)


def test_an_engine_that_breaks_is_a_failure() -> None:
    broken = IlpStrategy(Broken())
    joint = with_racks(problem_of([[4], [4]], [[1]], gang(3), gang(3), gang(2)), 0, 1)
    both = replace(joint, demands=(*joint.demands[:2], replace(joint.demands[2], value=9)))
    for asked in (knotted(2), both):
        solution = broken.solve(asked, Budget())
        assert (solution.outcome, solution.detail) == (Outcome.FAILED, "it broke")


def test_members_of_several_levels_keep_the_narrow_domain_in_the_wide_one() -> None:
    for first, second in pairwise(range(40, 60)):
        asked = problem(first * second)
        assert faults(asked, BestFit().solve(asked, Budget())) == []


def in_16_racks(*rules: SameDomain, least: int = 0) -> Problem:
    """One gang with a part for each rule, and two more parts that no rack has room for together."""
    parts = [Part(0, role, 1) for role in range(len(rules) - 1)]
    parts += [Part(1, len(parts), 4), Part(2, len(parts) + 1, 4)]
    minimum = (*[1] * (len(rules) + 1),)
    demand = Demand(least or sum(minimum), tuple(parts), minimum, DemandLevel(0), 1)
    free = [[9, 1] if rack % 2 else [1, 9] for rack in range(16)]
    asked = problem_of(free, [[1, 0], [2, 0], [0, 2]], demand)
    return with_racks(asked, *range(16), rules=rules)


def test_a_rule_without_a_domain_is_seen_before_the_others_are_combined() -> None:
    """Nine rules with 16 domains, and one without: 16⁹ choices, of which counting needs no two."""
    own = [SameDomain(0, (part,)) for part in range(9)]
    for last in (SameDomain(0, (9, 10)), SameDomain(0, tuple(range(11)))):
        asked = in_16_racks(*own, last)
        work = region_work(asked, asked.demands[0])
        assert list(regions(asked, asked.demands[0], empty_fits(asked), work)) == []
        assert not work.is_over
        solution = IlpStrategy().solve(asked, Budget())
        assert (solution.outcome, solution.shares) == (Outcome.PROVED, ((),))


def within(asked: Problem, numbers: Sequence[int]) -> Problem:
    """The problem of one gang, with only the domain of this number for each of its rules."""
    (demand,) = asked.demands
    pairs = [*zip(demand.same_domain, numbers, strict=True)]
    domains = [np.where(asked.domains[rule.level] == number, 0, -1) for rule, number in pairs]
    first = len(asked.domains)
    rules = tuple(replace(rule, level=first + i) for i, (rule, _) in enumerate(pairs))
    own = replace(demand, same_domain=rules)
    return replace(asked, demands=(own,), domains=(*asked.domains, *domains))


@pytest.mark.parametrize("segments", [False, True])
def test_counting_rules_out_no_region_in_which_a_gang_starts(segments: bool) -> None:  # noqa: FBT001
    checked = 0
    for seed in range(150):
        asked = problem(seed, gangs=1, segments=segments)
        (demand,) = asked.demands
        levels = (range(int(asked.domains[rule.level].max()) + 1) for rule in demand.same_domain)
        work = region_work(asked, demand)
        left = set(regions(asked, demand, empty_fits(asked), work))
        assert not work.is_over
        for numbers in product(*levels):
            fixed = within(asked, numbers)
            starts = any(value for _, value in optimum(case_of(fixed)))
            assert not starts or Region(numbers) in left
            checked += starts
    assert checked > 50


def test_too_many_choices_of_domains_are_not_taken_for_a_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = in_16_racks(SameDomain(0, (0,)), SameDomain(0, (1, 2)))
    for module in (ilp, alternatives, greedy, domains):
        monkeypatch.setattr(module, "region_work", lambda *_: Work(2_000))
    assert list(possible(asked)) == [0]
    assert Alternatives.of(asked, [0], 300) is None
    solution = IlpStrategy().solve(asked, Budget())
    assert (solution.outcome, solution.shares) == (Outcome.BUDGET_EXHAUSTED, ((),))
    assert ilp.TOO_MANY_DOMAINS in solution.detail


def two_rules_that_no_rack_keeps(free_roles: int) -> Problem:
    """Racks have room for x and y, or for x and z; a rule is for x and y, another for x and z."""
    parts = [Part(0, role, 1) for role in range(free_roles)]
    x, y, z = range(free_roles, free_roles + 3)
    parts += [Part(1, x, 1), Part(2, y, 1), Part(3, z, 1)]
    minimum = (*[1] * len(parts),)
    demand = Demand(len(parts), tuple(parts), minimum, DemandLevel(0), 1)
    free = [[99, 1, 1, 0] if rack % 2 else [99, 1, 0, 1] for rack in range(16)]
    asked = problem_of(free, [[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]], demand)
    own = [SameDomain(0, (part,)) for part in range(free_roles)]
    return with_racks(asked, *range(16), rules=(*own, SameDomain(0, (x, y)), SameDomain(0, (x, z))))


def test_rules_that_no_domain_keeps_are_seen_before_other_rules_are_combined() -> None:
    asked = two_rules_that_no_rack_keeps(9)
    work = region_work(asked, asked.demands[0])
    assert list(regions(asked, asked.demands[0], empty_fits(asked), work)) == []
    assert not work.is_over
    solution = IlpStrategy().solve(asked, Budget())
    assert (solution.outcome, solution.shares) == (Outcome.PROVED, ((),))


def test_choices_that_are_ruled_out_one_by_one_are_counted_as_work() -> None:
    """All roles in one zone: each choice of their racks turns out again to leave none."""
    asked = two_rules_that_no_rack_keeps(6)
    (demand,) = asked.demands
    zone = SameDomain(1, tuple(range(len(demand.parts))))
    demand = replace(demand, same_domain=(zone, *demand.same_domain))
    zones = np.zeros(16, dtype=np.intp)
    asked = replace(asked, demands=(demand,), domains=(*asked.domains, zones))
    work = region_work(asked, demand)
    assert list(regions(asked, demand, empty_fits(asked), work)) == []
    assert work.is_over
    assert list(possible(asked)) == [0]


def test_a_single_rule_is_tried_in_every_domain_however_many() -> None:
    """Only the last of 5,000 hosts has room for a member of each role."""
    demand = Demand(5, (Part(0, 0, 8), Part(1, 1, 1)), (4, 1), DemandLevel(0), 1)
    free = [[8, 0]] * 4_999 + [[8, 1]]
    asked = problem_of(free, [[1, 0], [0, 1]], demand)
    hosts = with_racks(asked, *range(5_000), rules=(SameDomain(0, (0, 1)),))
    assert worth(hosts, BestFit().solve(hosts, Budget())) == ((0, 1),)


def test_racks_are_looked_for_in_every_block_however_many() -> None:
    """Only the last of 300 blocks has a rack for all members; all have room for them, in pieces."""
    parts = tuple(Part(role % 2, role, 1) for role in range(40))
    demand = Demand(40, parts, (1,) * 40, DemandLevel(0), 1)
    free = [[20, 0], [0, 20]] * 299 + [[20, 20], [0, 0]]
    asked = problem_of(free, [[1, 0], [0, 1]], demand)
    block, rack = (SameDomain(level, tuple(range(40))) for level in (0, 1))
    nodes = np.arange(600, dtype=np.intp)
    nested = replace(
        asked, demands=(replace(demand, same_domain=(block, rack)),), domains=(nodes // 2, nodes)
    )
    assert worth(nested, BestFit().solve(nested, Budget())) == ((0, 1),)
