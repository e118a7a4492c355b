"""Whether members of later rounds might let more gangs start in an earlier round.

By affinity and spread, a member may need pods that later rounds place. If no such pod would help,
the proof of a round holds for the whole plan. The result of a round does not depend on proofs.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...gang.demand import MemberCounts, by_shape, min_members
from ...model.cluster import Member
from ...strategies.problem import (
    Demand,
    DemandLevel,
    Outcome,
    Part,
    Problem,
    Solution,
    admitted_value,
)
from ..compile.grids import Grid
from . import bounds
from .round_order import Round

SENTENCE = "who is placed later might have let others start by the rules between pods"
MOST = 200  # later members in one problem; with more, a problem with rules is hardly ever proved


@dataclass(frozen=True, slots=True)
class LaterRounds:
    """The members that may get a node after the whole gangs of a round."""

    base: Grid
    growing: Sequence[MemberCounts]
    remaining: Sequence[Round]

    def might_help(
        self, problem: Problem, solution: Solution, ask: Callable[[Problem], Solution]
    ) -> bool:
        """Whether more gangs of the round might start if some of the later members had a node.

        Later members that no rule of the round counts are left out: they only take room. The others
        are added as demands of one member each, on any nodes. No plan can do more for the round.
        """
        if all(solution.shares) or not (problem.rules.affinity or problem.rules.spread):
            return False
        members = _counted_members(problem, self._by_shape())
        if not members:
            return False
        if solution.outcome is not Outcome.PROVED or sum(members.values()) > MOST:
            return True
        wider = _beside(problem, members)
        answer = ask(wider)
        if answer.outcome is Outcome.FAILED:
            return True
        most = bounds.most(wider, answer)
        return any(most[level] != value for level, value in admitted_value(problem, solution))

    def _by_shape(self) -> Mapping[int, int]:
        """The number of later members of each shape."""
        counts_by_shape = Counter[int]()
        wants = (want for step in self.remaining for want in step.wants)
        groups = [group for want in wants for group in want.alike]
        for growing in (self.growing, *(step.growing for step in self.remaining)):
            groups += _further(growing)
        for group in groups:
            counts_by_shape[self.base.shapes[group[0].shape]] += len(group)
        return counts_by_shape


def _further(growing: Iterable[MemberCounts]) -> Iterable[tuple[Member, ...]]:
    """The members beyond those needed, of each shape as many as there can be."""
    for census in growing:
        spare = len(census.ready) - (0 if census.is_committed else min_members(census.gang))
        yield from (group[:spare] for group in by_shape(census.ready))


def _counted_members(problem: Problem, later: Mapping[int, int]) -> Mapping[int, int]:
    """The later members that rules of the round count, and members that their rules count."""
    rules = problem.rules
    asking = {part.shape for demand in problem.demands for part in demand.parts}
    asking |= {spot.shape for spot in rules.reserved}
    counting = [(rule.shape, index) for rule in rules.affinity for index in rule.domain_counts]
    counting += [(rule.shape, rule.domain_count) for rule in rules.spread]
    shapes: set[int] = set()
    while True:
        counts = [
            rules.domain_counts[index] for shape, index in counting if shape in asking | shapes
        ]
        reached = {shape for shape in later if any(count.counted[shape] for count in counts)}
        if reached == shapes:
            return {shape: later[shape] for shape in sorted(shapes)}
        shapes = reached


def _beside(problem: Problem, members: Mapping[int, int]) -> Problem:
    """The problem with these members as demands of their own, below all other demands."""
    below = DemandLevel(min(demand.level.priority for demand in problem.demands) - 1)
    demands = [
        Demand(1, (Part(shape, 0, 1),), (0,), below, 1)
        for shape, number in members.items()
        for _ in range(number)
    ]
    return replace(problem, demands=(*problem.demands, *demands))
