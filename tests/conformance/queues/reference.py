"""Queues as plain dictionaries: charge over queues, the walk of cover, shares. Shares no code.

The walk is stated top-down, as a question about one gang at a time, and not as Tutti works it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

Amounts = tuple[int, ...]  # by resource, the lines first
TOP = "root"
Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Team:
    """A queue: its parent, and by resource what it guarantees (None: not said) and its limit."""

    parent: str
    guarantee: tuple[int | None, ...]
    limit: tuple[int | None, ...]
    weight: int = 1
    past: tuple[int, int, int] | None = None  # mean and share in percent, half-lives since


@dataclass(frozen=True)
class Job:
    """A gang of equal members; ``node`` has one entry for each member of one that runs."""

    name: str
    team: str
    priority: int
    members: int
    each: Amounts
    start: int | None = None  # None while it waits
    extras: int = 0
    nodes: tuple[int, ...] = ()
    since: int = 0

    @property
    def size(self) -> Amounts:
        """What its minimum is charged."""
        return tuple(self.members * n for n in self.each)


@dataclass(frozen=True)
class World:
    """A small cluster with its queues."""

    teams: dict[str, Team]
    nodes: tuple[Amounts, ...]
    jobs: tuple[Job, ...]

    @property
    def resources(self) -> range:
        """The resources by number."""
        return range(len(self.nodes[0]))

    @property
    def total(self) -> Amounts:
        """What all nodes have."""
        return tuple(sum(node[r] for node in self.nodes) for r in self.resources)

    @property
    def lines(self) -> list[int]:
        """The resources that some queue guarantees."""
        return [r for r in self.resources if any(t.guarantee[r] for t in self.teams.values())]

    def children(self, team: str) -> list[str]:
        """The queues right below."""
        return sorted(name for name, t in self.teams.items() if t.parent == team)

    def is_at_or_below(self, team: str, above: str) -> bool:
        """Whether a queue is another, or below it."""
        while team not in (above, TOP):
            team = self.teams[team].parent
        return team == above

    def depth(self, team: str) -> int:
        """How far below the root."""
        return 0 if team == TOP else 1 + self.depth(self.teams[team].parent)

    def tier(self, team: str) -> int:
        """How many queues above the leaves are there with several children, at most."""
        below = [self.tier(child) for child in self.children(team)]
        return max(below, default=0) + (len(below) > 1)

    def guarantee(self, team: str, r: int) -> int:
        """What a queue guarantees: said, or what its children do together."""
        if team == TOP:
            return 0
        said = self.teams[team].guarantee[r]
        below = sum(self.guarantee(child, r) for child in self.children(team))
        return below if said is None else said


Item = tuple[str, int]  # a gang and 0 for its minimum, or the number of an extra


def order(job: Job) -> tuple[int, float, str]:
    """In which order the walk looks at gangs: a gang that would start comes after those there."""
    return (-job.priority, float("inf") if job.start is None else job.start, job.name)


def cover(world: World, jobs: list[Job]) -> dict[Item, str]:
    """Which queue covers each item: one queue after another, the deepest first."""
    found: dict[Item, str] = {}
    sizes = {(j.name, n): j.each if n else j.size for j in jobs for n in range(j.extras + 1)}
    for team in sorted(world.teams, key=lambda name: (-world.depth(name), name)):
        if not any(world.guarantee(team, r) for r in world.lines):
            continue
        inside = sorted((j for j in jobs if world.is_at_or_below(j.team, team)), key=order)
        for item in [(j.name, 0) for j in inside]:
            if item not in found and _fits(world, team, found, sizes, item):
                found[item] = team
        for item in [(j.name, n) for j in inside for n in range(1, j.extras + 1)]:
            is_open = item not in found and (item[0], 0) in found
            if is_open and _fits(world, team, found, sizes, item):
                found[item] = team
    return found


def _fits(
    world: World, team: str, found: dict[Item, str], sizes: dict[Item, Amounts], item: Item
) -> bool:
    """Whether an item fits beside all that is covered at or below the queue."""
    below = [other for other, by in found.items() if world.is_at_or_below(by, team)]
    return all(
        not sizes[item][r]
        or sum(sizes[other][r] for other in below) + sizes[item][r] <= world.guarantee(team, r)
        for r in world.lines
    )


def charged(world: World, jobs: list[Job], team: str) -> Amounts:
    """What a queue is charged with all below it; the root by itself is those without a queue."""
    inside = [
        j for j in jobs if (j.team == TOP if team == TOP else world.is_at_or_below(j.team, team))
    ]
    return tuple(sum((j.members + j.extras) * j.each[r] for j in inside) for r in world.resources)


def within_limits(world: World, before: list[Job], after: list[Job]) -> bool:
    """Whether no limit is exceeded that the starts add to."""
    for name, team in world.teams.items():
        old, new = charged(world, before, name), charged(world, after, name)
        for r, limit in enumerate(team.limit):
            if limit is not None and new[r] > limit and new[r] > old[r]:
                return False
    return True


def step(world: World, jobs: list[Job], team: str) -> int:
    """How many whole steps of 5 % a queue has borrowed, by its weight."""
    use = charged(world, jobs, team)
    guaranteed = [world.guarantee(team, r) if r in world.lines else 0 for r in world.resources]
    weight = 1 if team == TOP else world.teams[team].weight
    over = [
        Fraction(max(use[r] - guaranteed[r], 0) * 20, world.total[r] * weight)
        for r in world.resources
        if world.total[r]
    ]
    return int(max(over, default=Fraction(0)))


def path(world: World, team: str) -> list[str]:
    """From the child of the root down to the queue; those without a queue have one step."""
    if team == TOP:
        return [TOP]
    up = [team]
    while world.teams[up[-1]].parent != TOP:
        up.append(world.teams[up[-1]].parent)
    return up[::-1]


def past_steps(world: World, team: str) -> tuple[float, ...]:
    """Whole steps of 5 % that each queue on the path borrowed in the past; root gangs come last."""
    if all(other.past is None for other in world.teams.values()):
        return ()
    if team == TOP:
        return padded(world, (inf,))
    steps: list[float] = []
    for name in path(world, team):
        mean, share, halvings = world.teams[name].past or (0, 0, 0)
        weight = Fraction(1, 2**halvings)
        steps.append(int((mean * weight + share * (1 - weight)) / 5))
    return padded(world, tuple(steps))


def turns(world: World, running: list[Job], waiting: list[Job]) -> dict[str, tuple[int, ...]]:
    """The steps of each borrower, by sorting the queues of one level after another from below."""
    steps: dict[str, tuple[int, ...]] = {job.name: () for job in waiting}
    own = {job.name: path(world, job.team) for job in waiting}
    deepest = max((len(p) for p in own.values()), default=0)
    for level in range(deepest - 1, -1, -1):
        here = {p[level] for p in own.values() if len(p) > level}
        for team in here:
            inside = [j for j in waiting if len(own[j.name]) > level and own[j.name][level] == team]
            inside.sort(
                key=lambda j: (
                    *(padded(world, steps[j.name]), -j.priority),
                    *(past_steps(world, j.team), j.since, j.name),
                )
            )
            there = list(running)
            for job in inside:
                steps[job.name] = (step(world, there, team), *steps[job.name])
                there.append(job)
    return {name: padded(world, found) for name, found in steps.items()}


def padded(world: World, steps: Sequence[Number]) -> tuple[Number, ...]:
    """The last step repeated: a queue is its own only child, down to the deepest level."""
    deepest: int = max((world.depth(team) for team in world.teams), default=0)
    found: list[Number] = list(steps)
    return tuple(found + found[-1:] * (deepest - len(found)))
