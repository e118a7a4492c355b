"""A large gang among an endless stream of small ones, planned again at every departure.

Whenever a small gang ends, another has come already: without held room the large one never starts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.model.decisions import Plan, Policy
from tutti.model.keys import Uid
from tutti.model.queues import Queue
from tutti.planning.plan import plan
from tutti.planning.search.starvation_trials import MOST_TRIALS
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget, Problem, Solution, Strategy
from tutti.verify.plan_checks import violations

from ...harness.builders import (
    AMPLE_BUDGET,
    GangBuilder,
    NodeBuilder,
    Overlooking,
    Part,
    gang,
    node,
    single,
    snapshot_of,
    space,
    topology,
)

NODES = ("n0", "n1", "n2")
GPUS = 2  # of each node
SLOTS = len(NODES) * GPUS  # small gangs that run at a time
QUEUE = 4  # small gangs that wait at any time
LARGE = gang("large").of(2, gpu=GPUS)  # needs two whole nodes
PATIENT = Policy(starvation_seconds=10.0)
BEST_FIT = BestFit()

# The bound, for small gangs that end in the order in which they started. "Missing" is how many GPUs
# are in use on the two nodes where the fewest are. It never grows while room is held: the nodes
# with held room give none of it away, and others are chosen only where no more is missing. It is
# 2 * GPUS at most. While it stays the same, the choice can change only to nodes that come earlier:
# of two out of three nodes, twice. While the choice stays the same too, SLOTS departures see
# everything off the chosen nodes that ran on them, and then nothing is missing.
CHOICES = 3
BOUND = 2 * GPUS * CHOICES * SLOTS


@dataclass(slots=True)
class Stream:
    """Small gangs that come and go, and the large one that waits; a second per departure."""

    policy: Policy
    strategy: Strategy = BEST_FIT
    large: GangBuilder = LARGE
    hopeless: Sequence[GangBuilder] = ()  # older ones without a place in any cluster
    nodes: Sequence[NodeBuilder] = tuple(node(name, gpu=GPUS, cpu=1) for name in NODES)
    now: float = 0.0
    running: list[tuple[str, str]] = field(default_factory=list)  # name and node, oldest first
    waiting: list[tuple[str, float]] = field(default_factory=list)  # name and creation

    def fill(self) -> None:
        """Let small gangs take all there is before the large one comes."""
        names = [made.made.name for made in self.nodes] * GPUS
        self.running = [(f"early-{i}", name) for i, name in enumerate(names)]

    def depart(self, which: int = 0) -> bool:
        """Let a small gang end, and plan; answers whether the large one starts."""
        self.now += 1.0
        del self.running[which]
        while len(self.waiting) < QUEUE:
            self.waiting.append((f"s-{self.now:06.0f}-{len(self.waiting)}", self.now))
        made = self._planned()
        where = {p.gang.name: str(p.assignments[0].node) for p in made.placements}
        self.running += [(name, where[name]) for name, _ in self.waiting if name in where]
        self.waiting = [one for one in self.waiting if one[0] not in where]
        return "large" in where

    def missing(self) -> int:
        """How many GPUs are in use on the two nodes where the fewest are."""
        used = [sum(on == name for _, on in self.running) for name in NODES]
        return sum(sorted(used)[:2])

    def _planned(self) -> Plan:
        small = [single(name, gpu=1).bound_on(on) for name, on in self.running]
        queued = [single(name, gpu=1).each(created=at).but(created=at) for name, at in self.waiting]
        gangs = *small, *queued, *self.hopeless, self.large
        snapshot = snapshot_of(*self.nodes, topology("rack"), *gangs, at=self.now)
        return plan(snapshot, self.strategy, BEST_FIT, AMPLE_BUDGET, self.policy)


def departures(stream: Stream, most: int) -> int | None:
    """After how many the large gang starts; None if not within so many."""
    stream.fill()
    return next((n for n in range(1, most + 1) if stream.depart()), None)


def test_a_large_gang_among_an_endless_stream_starts_within_the_bound() -> None:
    began = int(PATIENT.starvation_seconds)
    taken = departures(Stream(PATIENT), began + BOUND)
    assert taken is not None
    assert taken >= began


def test_gangs_that_no_cluster_could_hold_do_not_loosen_the_bound() -> None:
    """Counting alone rules none out: there is room for one GPU six times, for two thrice."""
    sizes = [(ones, pairs) for ones in range(1, 7) for pairs in range(1, 4) if ones + 2 * pairs > 6]
    hopeless = [gang(f"h{a}{b}").of(a, gpu=1).of(b, gpu=2).but(created=-1.0) for a, b in sizes]
    assert len(hopeless) > MOST_TRIALS
    assert departures(Stream(PATIENT, hopeless=hopeless), 10 + BOUND) is not None


def test_without_the_guard_the_same_gang_starves() -> None:
    assert departures(Stream(Policy(starvation_seconds=inf)), 2 * BOUND) is None


def test_the_exact_strategy_keeps_the_bound_too() -> None:
    stream = Stream(PATIENT, STRATEGIES["ilp"]())
    assert departures(stream, int(PATIENT.starvation_seconds) + BOUND) is not None


def test_a_gang_of_several_shapes_starts_too() -> None:
    large = gang("large").role("driver", 1, cpu=1).role("worker", 2, gpu=GPUS)
    assert departures(Stream(PATIENT, large=large), 10 + BOUND) is not None
    assert departures(Stream(Policy(starvation_seconds=inf), large=large), 10 + BOUND) is None


RACKED = tuple(node(f"n{i}", gpu=GPUS, cpu=1).labelled(rack=f"r{i % 3}") for i in range(3 * 2))
# Room is held for one placement, which needs no room anywhere else. Small gangs end in the order in
# which they started, so after as many departures as run at a time, all that ran on its nodes when
# room was first held have left, and its room is free.
RACKED_BOUND = len(RACKED) * GPUS


@pytest.mark.parametrize("by", ["bestfit", "ilp"])
@pytest.mark.parametrize(
    "large",
    [
        gang("large").role("a", 2, gpu=GPUS).role("b", 1, gpu=GPUS).together("rack", "a"),
        gang("large")
        .role("a", 2, gpu=GPUS)
        .role("b", 2, gpu=1)
        .together("rack", "a")
        .together("rack", "b"),
        gang("large").of(4, gpu=GPUS).in_segments(2, "rack"),
        gang("large").of(3, gpu=GPUS).in_segments(2, "rack"),
        gang("large").of(2, gpu=GPUS).together("rack"),
    ],
    ids=["a rule for a role", "rules for two roles", "segments", "a short segment", "one rack"],
)
def test_a_gang_that_needs_domains_starts_within_its_bound(large: GangBuilder, by: str) -> None:
    exact = STRATEGIES[by]()
    stream = Stream(PATIENT, exact, large=large, nodes=RACKED)
    assert departures(stream, 10 + RACKED_BOUND) is not None
    careless = Stream(Policy(starvation_seconds=inf), exact, large=large, nodes=RACKED)
    assert departures(careless, 10 + RACKED_BOUND) is None


@settings(max_examples=25, deadline=None, database=None)
@given(st.lists(st.integers(0, SLOTS - 1), min_size=40, max_size=60))
def test_what_is_missing_never_grows_whoever_departs(order: Sequence[int]) -> None:
    stream = Stream(PATIENT)
    stream.fill()
    for _ in range(int(PATIENT.starvation_seconds)):
        stream.depart()
    before = stream.missing()
    for which in order:
        if not stream.running:
            break
        if stream.depart(which % len(stream.running)):
            assert before <= 1
            return
        assert 0 < stream.missing() <= before
        before = stream.missing()


class OnlyWhereAllNodesAreAlike:
    """A heuristic that misses every place where some node has less room than the others."""

    name = "only where all nodes are alike"

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Answer as best fit does, or admit nobody."""
        is_alike = (problem.free == problem.free[0]).all()
        return BEST_FIT.solve(problem, budget) if is_alike else Overlooking().solve(problem, budget)


@pytest.mark.parametrize("queues", [(), (Queue("all", Uid("q"), default_for=()),)])
def test_a_gang_that_the_search_misses_starts_as_in_the_empty_cluster(
    queues: tuple[Queue, ...],
) -> None:
    pair = gang("large").role("a", 2, gpu=GPUS).role("b", 1, gpu=GPUS).together("rack", "a")
    others = single("runs", gpu=1).bound_on("n5"), gang("late").of(1, gpu=1).but(created=5.0)
    parts: tuple[Part, ...] = *RACKED, topology("rack"), space("ml"), *queues, *others, pair
    snapshot = snapshot_of(*parts, at=60.0)
    blind = OnlyWhereAllNodesAreAlike()
    made = plan(snapshot, blind, blind, AMPLE_BUDGET, PATIENT)
    assert [placement.gang.name for placement in made.placements] == ["large"]
    assert violations(snapshot, made) == ()
    taken = single("taken", gpu=1).bound_on("n0")
    made = plan(snapshot_of(*parts, taken, at=60.0), blind, blind, AMPLE_BUDGET, PATIENT)
    assert made.placements == ()
