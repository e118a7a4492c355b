"""A small cluster with queues: what gangs are charged, what the walk covers, whose turn it is.

Written from ``docs/queues.md``. Amounts are tuples by resource; the last resource counts pods.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Amounts = tuple[int, ...]
ROOT = "root"


def plus(*amounts: Amounts) -> Amounts:
    """The sum; at least one amount is given."""
    return tuple(map(sum, zip(*amounts, strict=True)))


def at_least(first: Amounts, second: Amounts) -> Amounts:
    """The larger of the two, resource by resource."""
    return tuple(map(max, first, second))


def minus(first: Amounts, second: Amounts) -> Amounts:
    """The difference, and zero where it would be below."""
    return tuple(max(a - b, 0) for a, b in zip(first, second, strict=True))


@dataclass(frozen=True)
class Team:
    """A queue; None is an amount that it does not declare."""

    parent: str
    guarantee: tuple[int | None, ...]
    limit: tuple[int | None, ...]
    weight: int
    past: tuple[int, int, int] | None = None  # mean and share in percent, half-lives since


@dataclass(frozen=True)
class Pod:
    """A member: what it requests, its node if it has one, and whether it terminates."""

    takes: Amounts
    node: int | None = None
    leaves: bool = False
    age: int = 0  # seconds for which it was there before its gang


@dataclass(frozen=True)
class Gang:
    """A gang; pods are in the order in which they joined, those that wait come last.

    ``at_start`` is what it started with, if it runs.
    """

    name: str
    team: str
    priority: int
    since: int
    need: int
    pods: tuple[Pod, ...]
    start: float = inf
    at_start: Amounts = ()

    @property
    def waiting(self) -> tuple[int, ...]:
        """The indices of pods without a node."""
        return tuple(i for i, pod in enumerate(self.pods) if pod.node is None)

    @property
    def minimum(self) -> Amounts:
        """What is charged when it starts with its oldest pods."""
        return plus(*(pod.takes for pod in self.pods[: self.need]))

    @property
    def missing(self) -> int:
        """How many members a gang that runs has lost."""
        there = sum(pod.node is not None and not pod.leaves for pod in self.pods)
        return max(self.need - there, 0) if self.at_start else 0


@dataclass(frozen=True)
class Charge:
    """What one gang is charged, in the parts that the walk takes."""

    minimum: Amounts
    extras: tuple[Amounts, ...]
    leaving: Amounts

    @property
    def total(self) -> Amounts:
        """All of it."""
        return plus(self.minimum, self.leaving, *self.extras)


def charge(gang: Gang) -> Charge:
    """The charge of a gang of which pods hold room."""
    nothing = tuple(0 for _ in gang.pods[0].takes)
    staying = [pod.takes for pod in gang.pods if pod.node is not None and not pod.leaves]
    leaving = plus(nothing, *(pod.takes for pod in gang.pods if pod.leaves))
    amounts = plus(nothing, *staying[: gang.need])
    minimum = at_least(amounts, gang.at_start or nothing)
    return Charge(minimum, tuple(staying[gang.need :]), minus(plus(amounts, leaving), minimum))


@dataclass(frozen=True)
class Entry:
    """A gang as the walk sees it."""

    name: str
    team: str
    priority: int
    start: float
    minimum: Amounts
    extras: tuple[Amounts, ...] = ()

    @property
    def place(self) -> tuple[int, float, str]:
        """Where it comes in the walk."""
        return (-self.priority, self.start, self.name)


def entry(gang: Gang) -> Entry:
    """A gang that runs."""
    own = charge(gang)
    return Entry(gang.name, gang.team, gang.priority, gang.start, own.minimum, own.extras)


def start_of(gang: Gang) -> Entry:
    """A gang that would start."""
    return Entry(gang.name, gang.team, gang.priority, inf, gang.minimum)


@dataclass(frozen=True)
class World:
    """Queues, nodes and gangs."""

    teams: Mapping[str, Team]
    nodes: tuple[Amounts, ...]
    gangs: tuple[Gang, ...]
    now: int
    starving: float  # after so long a wait a gang has starved
    objective: str
    sums: dict[tuple[str, int], int] = field(default_factory=dict, init=False, compare=False)

    @cached_property
    def total(self) -> Amounts:
        """What all nodes have."""
        return plus(*self.nodes)

    @cached_property
    def lines(self) -> tuple[int, ...]:
        """The resources of which some queue guarantees more than zero."""
        return tuple(
            r
            for r in range(len(self.nodes[0]))
            if any(team.guarantee[r] for team in self.teams.values())
        )

    def chain(self, team: str) -> tuple[str, ...]:
        """The queue and those above it, without the root."""
        found: list[str] = []
        while team != ROOT:
            found.append(team)
            team = self.teams[team].parent
        return tuple(found)

    def guarantee(self, team: str, r: int) -> int:
        """What a queue guarantees: declared, or by its children together."""
        if team == ROOT:
            return 0
        if (team, r) not in self.sums:
            declared = self.teams[team].guarantee[r]
            below = (n for n, other in self.teams.items() if other.parent == team)
            self.sums[team, r] = (
                sum(self.guarantee(name, r) for name in below) if declared is None else declared
            )
        return self.sums[team, r]

    @cached_property
    def walked(self) -> Sequence[str]:
        """The queues that cover anything, in the order of the walk."""
        names = sorted(self.teams, key=lambda name: (-len(self.chain(name)), name))
        return [name for name in names if any(self.guarantee(name, r) for r in self.lines)]

    @cached_property
    def tiers(self) -> Sequence[int]:
        """The tiers of the queues that cover anything, the lowest first."""
        return sorted({self.tier(name) for name in self.walked})

    def tier(self, team: str) -> int:
        """0 for a leaf, that of an only child, or one more than the highest of the children."""
        below = [self.tier(name) for name, other in self.teams.items() if other.parent == team]
        return below[0] if len(below) == 1 else 1 + max(below, default=-1)

    @cached_property
    def height(self) -> int:
        """The depth of the deepest queue."""
        return max((len(self.chain(name)) for name in self.teams), default=0)

    def past(self, team: str) -> tuple[float, ...]:
        """What the queues from the top down to this one have borrowed in the past, in steps."""
        if not any(one.past for one in self.teams.values()):
            return ()
        steps = [_past_steps(self.teams[name].past) for name in self.chain(team)[::-1]] or [inf]
        return tuple(steps + steps[-1:] * (self.height - len(steps)))

    def value(self, gang: Gang) -> Fraction:
        """What it is worth to start the gang, within its priority."""
        if self.objective == "gangs":
            return Fraction(1)
        if self.objective == "members":
            return Fraction(gang.need)
        parts = (Fraction(n, t) for n, t in zip(gang.minimum, self.total, strict=True) if t)
        return max(parts)


def _past_steps(past: tuple[int, int, int] | None) -> float:
    first, share, halvings = past or (0, 0, 0)
    mean = Fraction(first)
    for _ in range(halvings):
        mean = (mean + share) / 2
    return mean // 5


Item = tuple[str, int]  # a gang, and 0 for its minimum or the number of an extra


def walk(world: World, entries: Iterable[Entry]) -> dict[Item, str]:
    """Which queue covers each item."""
    covered: dict[Item, str] = {}
    gangs = sorted(entries, key=lambda one: one.place)
    used = {team: [0] * len(world.nodes[0]) for team in (*world.teams, ROOT)}  # with all below
    for team in world.walked:
        inside = [gang for gang in gangs if team in world.chain(gang.team)]
        items = [(one.name, 0, one.minimum) for one in inside]
        items += [(one.name, i, x) for one in inside for i, x in enumerate(one.extras, 1)]
        for name, number, amounts in items:
            is_open = (name, number) not in covered and (not number or (name, 0) in covered)
            if is_open and all(
                not amounts[r] or used[team][r] + amounts[r] <= world.guarantee(team, r)
                for r in world.lines
            ):
                covered[name, number] = team
                for above in world.chain(team):
                    for r, n in enumerate(amounts):
                        used[above][r] += n
    return covered


def are_covered(
    world: World, running: Sequence[Entry], starts: Sequence[Entry], tier: float = inf
) -> bool:
    """Whether the walk covers all starts up to this tier, and no queue's starts strip its gangs."""
    found = walk(world, (*running, *starts))
    for start in starts:
        if (start.name, 0) not in found or world.tier(found[start.name, 0]) > tier:
            return False
    for one in running:
        own = [s for s in starts if s.team == one.team]
        above = [s for s in own if s.priority > one.priority]
        had = len(above) < len(own) and (one.name, 0) in walk(world, (*running, *above))
        if had and (one.name, 0) not in walk(world, (*running, *own)):
            return False
    return True


def charged(
    world: World, charges: Mapping[str, Amounts], gangs: Iterable[Gang]
) -> dict[str, Amounts]:
    """What each queue is charged with all below it; the root what is in no queue."""
    nothing = tuple(0 for _ in world.nodes[0])
    found = dict.fromkeys((*world.teams, ROOT), nothing)
    for gang in gangs:
        for team in world.chain(gang.team) or (ROOT,):
            found[team] = plus(found[team], charges.get(gang.name, nothing))
    return found


@dataclass(frozen=True)
class Turn:
    """A gang, or one extra of it, that waits to borrow."""

    name: str
    team: str
    priority: int
    since: float
    takes: Amounts


def turns(
    world: World, use: Mapping[str, Amounts], waiting: Sequence[Turn]
) -> dict[str, tuple[int, ...]]:
    """The steps of each, from the top; ``use`` is what queues are charged with all below them."""
    steps: dict[str, list[int]] = {one.name: [] for one in waiting}
    order = sorted(
        waiting, key=lambda one: (-one.priority, world.past(one.team), one.since, one.name)
    )
    rank = {one.name: i for i, one in enumerate(order)}

    def long(name: str) -> list[int]:
        own = steps[name]
        return own + own[-1:] * (world.height - len(own))

    for team in (*sorted(world.teams, key=lambda name: -len(world.chain(name))), ROOT):
        inside = [o for o in order if team in (world.chain(o.team) or (ROOT,))]
        used = use[team]
        for one in sorted(inside, key=lambda o: (long(o.name), rank[o.name])):
            steps[one.name].insert(0, _step(world, team, used))
            used = plus(used, one.takes)
    return {name: tuple(long(name)) for name in steps}


def _step(world: World, team: str, used: Amounts) -> int:
    weight = 1 if team == ROOT else world.teams[team].weight
    parts = [
        Fraction(20 * (n - (world.guarantee(team, r) if r in world.lines else 0)), total * weight)
        for r, (n, total) in enumerate(zip(used, world.total, strict=True))
        if total
    ]
    return int(max([Fraction(0), *parts]))
