"""Gangs that have waited too long go first, and room for one of them is held as it frees up."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.gang import demand, finding_text
from tutti.model.decisions import Plan, Policy, Reason
from tutti.model.ports import HostPort
from tutti.planning.compile import grids
from tutti.planning.plan import plan
from tutti.planning.search import starvation
from tutti.planning.search.limits import SearchLimits
from tutti.planning.search.starvation import PORTIONS
from tutti.planning.search.starvation_trials import MOST_TRIALS, TURN_SECONDS, StarvationSearch
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget, Outcome, Problem, Solution, Strategy

from ....harness.builders import AMPLE_BUDGET, Canned, GangBuilder, Part, gang, node, snapshot_of

BEST_FIT = BestFit()
POLICY = Policy(starvation_seconds=100.0)
LATE = 1_000.0  # the time of all Snapshots here


def planned(
    *parts: Part, policy: Policy = POLICY, by: Strategy = BEST_FIT, at: float = LATE
) -> Plan:
    return plan(snapshot_of(*parts, at=at), by, BEST_FIT, AMPLE_BUDGET, policy)


def started(plan: Plan) -> set[str]:
    return {placement.gang.name for placement in plan.placements}


def told(plan: Plan) -> dict[str, str]:
    return {rejection.gang.name: finding_text.sentence(rejection) for rejection in plan.rejections}


def fresh(of: GangBuilder) -> GangBuilder:
    """The gang as if it had been made a moment ago."""
    return of.but(created=LATE - 1)


def firsts(*parts: Part, policy: Policy = POLICY) -> list[str]:
    """Who goes first, the top priority first."""
    snapshot = snapshot_of(*parts, at=LATE)
    found = [demand.count_members(gang) for gang in snapshot.gangs]
    base = grids.grid(snapshot, (m.shape for census in found for m in census.ready))
    wants = [want for census in found if (want := demand.start_request(census)) is not None]
    trials = StarvationSearch(
        SearchLimits(BEST_FIT, BEST_FIT, AMPLE_BUDGET, policy, LATE), len(wants)
    )
    starved = starvation.starved(snapshot, lambda: base, wants, policy, trials)
    return [one.want.gang.key.name for one in starved]


def test_of_each_priority_the_one_that_has_waited_longest_goes_first() -> None:
    old, older = gang("a").of(1, cpu=1).but(created=5.0), gang("b").of(1, cpu=1)
    top = gang("c").of(1, cpu=1).but(created=9.0).priority(4)
    new = fresh(gang("d").of(1, cpu=1).priority(8))
    assert firsts(node("n1", cpu=4), old, older, top, new) == ["c", "b"]


def test_nobody_goes_first_where_nobody_has_waited_too_long() -> None:
    made = gang("a").of(1, cpu=1)
    assert firsts(node("n1", cpu=4), fresh(made)) == []
    assert firsts(node("n1", cpu=4), made, policy=Policy(starvation_seconds=inf)) == []


def test_a_gang_waits_from_the_moment_that_its_first_member_waits() -> None:
    assert firsts(node("n1", cpu=4), gang("a").of(2, cpu=1).each(created=LATE - 1)) == []
    assert firsts(node("n1", cpu=4), gang("a").of(2, cpu=1).last(1, created=LATE - 1)) == ["a"]


def test_a_gang_that_the_empty_cluster_has_no_room_for_is_passed_over() -> None:
    nine = gang("a").of(9, cpu=1)
    odd = gang("b").of(1, cpu=3).of(1, cpu=3, gpu=1).but(created=5.0)  # each fits alone, on n1
    fine = gang("c").of(4, cpu=1).but(created=9.0)
    nodes = (node("n1", cpu=5, gpu=1), node("n2", cpu=2))
    assert firsts(*nodes, nine, odd, fine) == ["c"]


def test_what_others_run_is_taken_to_stay_and_what_gangs_run_is_not() -> None:
    large = gang("a").of(2, cpu=2)
    full = gang("b").of(4, cpu=1).bound_on(*["n1"] * 4)
    assert firsts(node("n1", cpu=4), large, full) == ["a"]
    assert firsts(node("n1", cpu=4).using(cpu=1), large) == []


def test_a_strategy_without_an_answer_leaves_it_to_the_fallback() -> None:
    failing = Canned(Outcome.FAILED)
    plan = planned(node("n1", cpu=4), gang("a").of(1, cpu=1), by=failing)
    assert started(plan) == {"a"}


# What is missing


@settings(max_examples=200, deadline=None, database=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), min_size=1, max_size=4),
    st.integers(1, 6),
)
def test_no_other_seats_miss_less(nodes: Sequence[tuple[int, int]], count: int) -> None:
    """Each node has seats for so many members, and that much of it is free, in quarters of one."""
    vacant = np.array([[4 * seats] for seats, _ in nodes], dtype=np.int64)
    free = np.minimum(vacant, np.array([[quarters] for _, quarters in nodes], dtype=np.int64))
    allowed = np.ones(len(nodes), dtype=np.bool_)
    request = np.array([4], dtype=np.int64)
    chosen = starvation.members_per_node(vacant, free, allowed, (request, count))
    portions = (free[:, 0] * PORTIONS // 4).tolist()

    def missing(seats: Sequence[int]) -> int:
        return sum(max(0, n * PORTIONS - has) for n, has in zip(seats, portions, strict=True))

    ways = [way for way in product(*(range(n + 1) for n, _ in nodes)) if sum(way) == count]
    if not ways:
        assert chosen.sum() < count
    else:
        assert (chosen <= vacant[:, 0] // 4).all()
        assert chosen.sum() == count
        assert missing(chosen.tolist()) == min(missing(way) for way in ways)


def test_seats_are_taken_where_the_most_of_a_member_has_room_already() -> None:
    vacant = np.array([[8], [8], [8]], dtype=np.int64)
    free = np.array([[1], [3], [1]], dtype=np.int64)
    anywhere = np.ones(3, dtype=np.bool_)
    chosen = starvation.members_per_node(vacant, free, anywhere, (np.array([8], dtype=np.int64), 2))
    assert chosen.tolist() == [1, 1, 0]


# Who gets what


def test_who_has_starved_goes_before_others_of_its_priority_and_after_higher_ones() -> None:
    four = node("n1", cpu=4)
    large, small = gang("z").of(1, cpu=3), fresh(gang("a").of(4, cpu=1))
    assert started(planned(four, large, small)) == {"z"}
    top = fresh(gang("t").of(2, cpu=1).priority(1))
    assert started(planned(four, gang("z").of(1, cpu=4), top, small)) == {"t"}


def test_room_is_held_for_who_has_starved_and_others_are_told() -> None:
    busy = gang("busy").of(2, cpu=2).bound_on("n1", "n2")
    large, small = gang("large").of(2, cpu=4), fresh(gang("small").of(2, cpu=1))
    plan = planned(node("n1", cpu=4), node("n2", cpu=4), busy, large, small)
    assert started(plan) == set()
    assert told(plan) == {
        "large": (
            "2 members need 4 cpu each; room for none; short 2; it has waited longest, so room is "
            "held for it on 2 nodes as it frees up"
        ),
        "small": (
            "2 members need 1 cpu each; room for none; short 2; more room is held for gang "
            "ml/large, which goes first"
        ),
    }
    assert {rejection.reason for rejection in plan.rejections} == {Reason.NOT_ENOUGH_ROOM}
    off = planned(
        node("n1", cpu=4),
        node("n2", cpu=4),
        busy,
        large,
        small,
        policy=Policy(starvation_seconds=inf),
    )
    assert started(off) == {"small"}


def test_no_more_room_is_held_than_is_needed() -> None:
    busy = gang("busy").of(1, cpu=3).bound_on("n1")
    large, small = gang("large").of(2, cpu=3), fresh(gang("small").of(2, cpu=1))
    nodes = (node("n1", cpu=4), node("n2", cpu=5), node("n3", cpu=1).using(cpu=1))
    plan = planned(*nodes, busy, large, small)
    assert started(plan) == {"small"}
    assert {assignment.node for assignment in plan.placements[0].assignments} == {"n2"}


def test_held_room_is_given_to_higher_priorities() -> None:
    busy = gang("busy").of(1, cpu=2).bound_on("n1")
    large, top = gang("large").of(1, cpu=4), fresh(gang("top").of(1, cpu=2).priority(1))
    assert started(planned(node("n1", cpu=4), busy, large, top)) == {"top"}


def test_held_room_is_not_given_to_lower_priorities() -> None:
    busy = gang("busy").of(1, cpu=2).bound_on("n1")
    large, low = gang("large").of(1, cpu=4).priority(1), fresh(gang("low").of(1, cpu=2))
    assert started(planned(node("n1", cpu=4), busy, large, low)) == set()


def test_held_room_is_given_to_lost_members_of_started_gangs() -> None:
    broken = gang("broken").of(2, cpu=2).bound_on("n1")
    plan = planned(node("n1", cpu=4), broken, gang("large").of(1, cpu=4))
    assert started(plan) == {"broken"}
    wide = gang("broken").of(2, cpu=3).bound_on("n1")
    assert told(planned(node("n1", cpu=4), wide, gang("large").of(1, cpu=4)))["broken"] == (
        "1 member to replace lost ones needs 3 cpu; room for none"
    )


def test_held_room_is_not_given_to_further_members() -> None:
    grown = gang("grown").of(2, cpu=2).needing(1).bound_on("n1")
    plan = planned(node("n1", cpu=4), grown, gang("large").of(1, cpu=4))
    assert started(plan) == set()
    assert told(plan)["grown"] == (
        "1 member beyond the 1 needed needs 2 cpu; room for none; more room is held for gang "
        "ml/large, which goes first"
    )


def test_further_members_of_a_higher_priority_may_take_held_room() -> None:
    grown = gang("grown").of(2, cpu=2).needing(1).bound_on("n1").priority(1)
    assert started(planned(node("n1", cpu=4), grown, gang("large").of(1, cpu=4))) == {"grown"}


def test_room_is_held_for_one_gang_at_a_time_the_top_priority_first() -> None:
    busy = gang("busy").of(2, cpu=2).bound_on("n1", "n2")
    top = gang("top").of(1, cpu=4).priority(1)
    low = gang("low").of(1, cpu=4)
    small = fresh(gang("small").of(1, cpu=1))
    plan = planned(node("n1", cpu=4), node("n2", cpu=4), busy, top, low, small)
    assert started(plan) == {"small"}
    assert "held for it on 1 node" in told(plan)["top"]
    assert "as it frees up" not in told(plan)["low"]


def test_room_is_held_for_the_first_that_does_not_start_where_higher_ones_do() -> None:
    busy = gang("busy").of(2, cpu=2).bound_on("n1", "n2")
    top = gang("top").of(1, cpu=1).priority(2)
    low, lowest = gang("low").of(2, cpu=4).priority(1), gang("lowest").of(1, cpu=4)
    small = fresh(gang("small").of(1, cpu=1))
    nodes = (node("n1", cpu=4), node("n2", cpu=4), node("n3", cpu=1))
    plan = planned(*nodes, busy, top, low, lowest, small)
    assert started(plan) == {"top"}
    assert "room is held for it on 2 nodes" in told(plan)["low"]
    assert "held for gang ml/low" in told(plan)["small"]
    assert "as it frees up" not in told(plan)["lowest"]


def test_who_starves_in_a_lower_priority_goes_first_there() -> None:
    top = gang("top").of(1, cpu=2).priority(1)
    low, new = gang("z").of(1, cpu=2), fresh(gang("a").of(2, cpu=1))
    assert started(planned(node("n1", cpu=4), top, low, new)) == {"top", "z"}


def test_a_gang_of_several_shapes_is_given_room_for_each() -> None:
    busy = gang("busy").of(1, cpu=2).bound_on("n1")
    large = gang("large").role("worker", 1, cpu=4).role("driver", 1, cpu=1)
    small = fresh(gang("small").of(1, cpu=1))
    nodes = (node("n1", cpu=4), node("n2", cpu=2).using(cpu=1))
    assert started(planned(*nodes, busy, large, small)) == set()
    roomy = (node("n1", cpu=4), node("n2", cpu=2))
    assert started(planned(*roomy, busy, large, small)) == {"small"}


def test_where_shape_by_shape_ends_in_a_dead_end_a_fixed_placement_is_held() -> None:
    """The large member alone would be seated on n1, which is the small ones' only node."""
    busy = gang("busy").of(1, cpu=3).bound_on("n2")
    drivers = gang("large").role("driver", 2, cpu=2).shaped(node_selector=(("pool", "a"),))
    large = drivers.role("worker", 1, cpu=4)
    nodes = (node("n1", cpu=4).labelled(pool="a"), node("n2", cpu=4))
    small = fresh(gang("small").of(1, cpu=1))
    plan = planned(*nodes, busy, large, small, by=STRATEGIES["ilp"]())
    assert started(plan) == set()
    assert "held for it on 2 nodes" in told(plan)["large"]


class Counting:
    """Best fit, which says that its budget ended where it admits nobody, and takes notes."""

    name = "counting"

    def __init__(self) -> None:
        self.asked: list[tuple[int, float]] = []  # demands, seconds

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Answer, and note what was asked."""
        self.asked.append((len(problem.demands), budget.seconds))
        solution = BEST_FIT.solve(problem, budget)
        if any(solution.shares):
            return solution
        return Solution(Outcome.BUDGET_EXHAUSTED, solution.shares)


def tangled(name: str, large: int = 4, small: int = 5) -> GangBuilder:
    """A gang that counting does not rule out and four nodes of 3 cores cannot hold."""
    return gang(name).of(large, cpu=2).of(small, cpu=1)


def test_once_room_is_held_the_others_are_decided_on_together() -> None:
    busy = gang("busy").of(1, cpu=2).bound_on("n1")
    top, low = gang("top").of(1, cpu=4).priority(2), gang("low").of(1, cpu=1).priority(1)
    by = Counting()
    plan = planned(
        node("n1", cpu=4), node("n2", cpu=2), busy, top, low, fresh(gang("new").of(1)), by=by
    )
    assert started(plan) == {"low", "new"}
    # All of them together, and those beside the hold; best fit saw that either could start.
    assert [demands for demands, _ in by.asked] == [2, 2]


def test_gangs_that_starve_and_start_do_not_part_the_joint_decision() -> None:
    """The first of them alone would sit where only another, or a lower one, fits."""
    first, second = gang("first").priority(9), gang("second").priority(5)
    plan = planned(
        *(node("n0", cpu=6, mem=1), node("n1", cpu=5, mem=5), node("n2", cpu=4, mem=3)),
        first.of(1, cpu=2, mem=1),
        second.of(2, cpu=2, mem=3),
        by=STRATEGIES["ilp"](),
    )
    assert started(plan) == {"first", "second"}
    plan = planned(
        *(node("n0", cpu=4, mem=6), node("n1", cpu=5, mem=4), node("n2", cpu=2, mem=3)),
        first.of(1, cpu=1, mem=1),
        second.of(2, cpu=1, mem=2),
        fresh(gang("new").of(2, cpu=3, mem=2)),
        by=STRATEGIES["ilp"](),
    )
    assert started(plan) == {"first", "second", "new"}


ROOM = [node(f"n{i}", cpu=3) for i in range(4)]
PAIR = [node("n1", cpu=12), node("n2", cpu=12)]


def test_a_starved_gang_that_was_passed_over_too_early_leaves_no_proof() -> None:
    plan = planned(*ROOM, tangled("a"), fresh(gang("b").of(1, cpu=1)), by=Counting())
    assert started(plan) == {"b"}
    assert (plan.proved, "starved" in plan.shortfall) == (False, True)


def test_equal_gangs_are_tried_on_the_empty_cluster_once_and_with_a_share_of_the_time() -> None:
    by = Counting()
    planned(*ROOM, *(tangled(f"g{n}") for n in range(20)), by=by)
    assert [seconds for demands, seconds in by.asked if demands == 1] == [
        AMPLE_BUDGET.seconds / MOST_TRIALS
    ]


def test_no_more_kinds_of_gangs_are_tried_than_there_is_time_for() -> None:
    by = Counting()
    sizes = [(4, n) for n in range(5, 13)] + [(3, n) for n in range(7, 13)]
    kinds = [tangled(f"g{n}", *size) for n, size in enumerate(sizes)]
    plan = planned(*ROOM, *kinds, by=by)
    assert sum(demands == 1 for demands, _ in by.asked) == MOST_TRIALS
    assert not plan.proved


def hopeless(kinds: int) -> list[GangBuilder]:
    """Older gangs that counting does not rule out and two nodes of 12 cores cannot hold."""
    return [gang(f"h{n:03}").of(2, cpu=7).of(1, cpu=5 + (n + 1) / 128) for n in range(kinds)]


@pytest.mark.parametrize("by", ["bestfit", "ilp"])
@pytest.mark.parametrize("kinds", [1, MOST_TRIALS, 10 * MOST_TRIALS])
def test_gangs_that_no_cluster_could_hold_keep_room_from_nobody(kinds: int, by: str) -> None:
    busy, large = gang("busy").of(1, cpu=1).bound_on("n1"), gang("large").of(2, cpu=12)
    new = fresh(gang("new").of(1, cpu=1))
    plan = planned(*PAIR, *hopeless(kinds), busy, large, new, by=STRATEGIES[by]())
    assert "room is held for it on 2 nodes" in told(plan)["large"]
    assert "held for gang ml/large" in told(plan)["new"]


# 6 + 3 + 3 and 4 + 4 + 3 cores would do; best fit begins with 6 + 4.
PACKED = gang("packed").of(3, cpu=3).of(2, cpu=4).of(1, cpu=6)


def test_who_has_a_place_that_best_fit_does_not_find_has_turns_behind_many_without_one() -> None:
    busy = gang("busy").of(1, cpu=2).bound_on("n1")

    def is_held(at: float) -> bool:
        plan = planned(*PAIR, *hopeless(15), busy, PACKED, by=STRATEGIES["ilp"](), at=at)
        assert "not all" in plan.shortfall
        return "room is held" in told(plan)["packed"]

    turns = [n * TURN_SECONDS for n in range(1, 7)]
    held = [is_held(at) for at in turns]
    # Twelve kinds have turns, four at a time.
    assert held == held[:3] * 2
    assert sum(held) == 2
    assert is_held(turns[held.index(True)] + TURN_SECONDS - 1)


def test_the_oldest_is_searched_for_in_every_turn() -> None:
    busy = gang("busy").of(1, cpu=2).bound_on("n1")
    parts: list[Part] = [*PAIR, *hopeless(30), busy, PACKED.each(created=-1.0).but(created=-1.0)]
    for turn in range(1, 5):
        plan = planned(*parts, by=STRATEGIES["ilp"](), at=turn * TURN_SECONDS)
        assert "room is held" in told(plan)["packed"]


def test_the_empty_cluster_has_the_host_ports_of_bound_members_and_not_those_of_others() -> None:
    web = HostPort(80)
    waiting, running = gang("a").of(1, cpu=1).listening(web), gang("b").of(1).listening(web)
    assert firsts(node("n1", cpu=8), waiting, fresh(running).bound_on("n1")) == ["a"]
    assert firsts(node("n1", cpu=8).listening(web), waiting) == []


class Spender:
    """Best fit, which says that it proved nothing short, and uses all the seconds it is given."""

    name = "spender"

    def __init__(self) -> None:
        self.spent: list[float] = []

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """What best fit says, as if proved."""
        self.spent.append(budget.seconds)
        return replace(BEST_FIT.solve(problem, budget), outcome=Outcome.PROVED)


def test_all_searches_of_a_plan_share_its_seconds() -> None:
    """While one that starves does not start, each is asked about alone, and with those after it."""
    starving = [gang(name).of(1, cpu=3).priority(9 - n) for n, name in enumerate("abd")]
    spender = Spender()
    plan = planned(
        node("n1", cpu=4), node("n2", cpu=4), *starving, fresh(gang("c").of(1, cpu=1)), by=spender
    )
    assert set(started(plan)) == {"a", "b", "c"}
    searches = [spent for spent in spender.spent if spent != AMPLE_BUDGET.seconds / MOST_TRIALS]
    assert len(searches) > 4
    assert sum(searches) <= AMPLE_BUDGET.seconds
