"""Cover, claims, cost and the measure of rest as plain functions over tuples. Shares no code.

An item is a gang's name with 0 for its minimum, or with the number of one of its extras.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

Amounts = tuple[int, ...]  # by resource
Item = tuple[str, int]
TOP = "root"
PODS = 1000  # that each node may run
OFF, RECLAIM, FULL = "Off", "Reclaim", "Full"


@dataclass(frozen=True)
class Team:
    """A queue: its parent, what it guarantees (None: not said), its limits, its mode, its times."""

    parent: str
    guarantee: tuple[int | None, ...]
    limit: tuple[int | None, ...]
    mode: str = FULL
    most_grace: int | None = None  # above it, gangs that start do not borrow
    least_run: int = 0  # for so long after its start, a gang of the queue is no victim


class Extra(NamedTuple):
    """A member beyond those needed; its number, its node, and since when it runs."""

    number: int
    node: int
    start: int


@dataclass(frozen=True)
class Job:
    """A gang of equal members; without ``start`` it waits."""

    name: str
    team: str
    priority: int
    members: int
    each: Amounts
    wishes: int = 0  # extras that it would run
    never: bool = False  # it says that it must not be ended
    grace: int = 0  # that its members may take to end
    budgets: tuple[str, ...] = ()  # of each of its members, by name
    failures_left: int | None = None  # that its batch Job tolerates; 0: such a Job is not known
    protected: bool = False  # as it is, or was when it started
    single: bool = False
    since: int = 0
    start: int | None = None
    nodes: tuple[int, ...] = ()
    extras: tuple[Extra, ...] = ()
    lost: Fraction = Fraction(0)  # by earlier evictions

    @property
    def size(self) -> Amounts:
        """What its minimum requests."""
        return tuple(self.members * n for n in self.each)


@dataclass(frozen=True)
class World:
    """Nodes and queues; ``top_mode`` is the mode of gangs without a queue.

    ``budgets`` says by name how many members may miss at once, those that wait included.
    """

    teams: dict[str, Team]
    nodes: tuple[Amounts, ...]
    top_mode: str = FULL
    budgets: Mapping[str, int] = field(default_factory=dict)

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

    def mode(self, team: str) -> str:
        """What gangs of the queue may do."""
        return self.top_mode if team == TOP else self.teams[team].mode

    def above(self, team: str) -> list[str]:
        """The queue and all above it, without the root."""
        names = []
        while team != TOP:
            names.append(team)
            team = self.teams[team].parent
        return names

    def guarantee(self, team: str, r: int) -> int:
        """What a queue guarantees: said, or what its children do together."""
        said = self.teams[team].guarantee[r]
        if said is not None:
            return said
        return sum(self.guarantee(n, r) for n, t in self.teams.items() if t.parent == team)


@dataclass(frozen=True)
class Rules:
    """The rules under attack; a rule that is off makes one earlier or wrong statement."""

    counted: bool = True  # who borrows is asked once the claimant is counted
    spares_own: bool = True  # gangs of the own queue with no lower priority
    strips_nobody: bool = True
    own_queue_only: bool = True  # for claims by priority
    protected_first: bool = True
    protected_covered: bool = True  # who cannot be ended may not borrow
    rises: bool = True  # a claim by guarantee raises the measure
    extras_first: bool = True  # a claim by guarantee ends extras of its queue at any priority
    spares_young: bool = True  # gangs within the minimum run time of their queue


RULES = Rules()


class Claim(NamedTuple):
    """What a waiting gang may end: by its guarantee, or by its priority alone."""

    by_guarantee: bool
    items: frozenset[Item]


def order(job: Job, team: str, rules: Rules, now: int) -> tuple[bool, int, int, str]:
    """In which order a queue looks at gangs; one that waits counts as started now."""
    start = now if job.start is None else job.start
    first = rules.protected_first and job.protected and job.team == team
    return (not first, 0 if first else -job.priority, start, job.name)


def cover(world: World, jobs: list[Job], now: int, rules: Rules = RULES) -> dict[Item, str]:
    """Which queue covers each item: one queue after another, the deepest first."""
    covered: dict[Item, str] = {}
    sizes = {(j.name, 0): j.size for j in jobs}
    sizes |= {(j.name, extra.number): j.each for j in jobs for extra in j.extras}
    for team in sorted(world.teams, key=lambda name: (-len(world.above(name)), name)):
        if not any(world.guarantee(team, r) for r in world.lines):
            continue
        inside = [j for j in jobs if team in world.above(j.team)]
        inside.sort(key=lambda job: order(job, team, rules, now))
        for job in inside:
            if (job.name, 0) not in covered and _fits(world, team, covered, sizes, (job.name, 0)):
                covered[job.name, 0] = team
        by_priority = replace(rules, protected_first=False)
        for job in sorted(inside, key=lambda job: order(job, team, by_priority, now)):
            for number in sorted(extra.number for extra in job.extras):
                item = job.name, number
                if item in covered or (job.name, 0) not in covered:
                    continue
                if _fits(world, team, covered, sizes, item):
                    covered[item] = team
    return covered


def _fits(
    world: World, team: str, covered: dict[Item, str], sizes: dict[Item, Amounts], item: Item
) -> bool:
    below = [other for other, by in covered.items() if team in world.above(by)]
    return all(
        sum(sizes[other][r] for other in below) + sizes[item][r] <= world.guarantee(team, r)
        for r in world.lines
        if sizes[item][r]
    )


def is_covered_start(
    world: World, running: list[Job], job: Job, now: int, rules: Rules = RULES
) -> bool:
    """Whether the gang would be covered.

    If it cannot be ended: by its own queue, which still covers the others that cannot.
    """
    before, after = cover(world, running, now, rules), cover(world, [*running, job], now, rules)
    if (job.name, 0) not in after:
        return False
    if job.protected and rules.protected_covered:
        if after[job.name, 0] != job.team:
            return False
        beside = [other for other in running if other.protected and other.team == job.team]
        if any(_by(before, other) and not _by(after, other) for other in beside):
            return False
    if not rules.strips_nobody:
        return True
    return not any(
        (other.name, 0) in before and (other.name, 0) not in after
        for other in running
        if other.team == job.team and other.priority >= job.priority
    )


def _by(covered: dict[Item, str], job: Job) -> bool:
    """Whether the gang's own queue covers its minimum."""
    return covered.get((job.name, 0)) == job.team


def is_protected(world: World, job: Job) -> bool:
    """Whether the gang could not be ended if it started now."""
    if job.never or job.single or not world.teams:
        return job.never
    most = None if job.team == TOP else world.teams[job.team].most_grace
    is_slow = most is not None and job.grace > most
    fails = job.failures_left is not None and job.failures_left <= job.members
    is_kept = any(world.budgets[b] < job.members for b in job.budgets)
    return is_slow or fails or len(job.budgets) > 1 or is_kept


def may_borrow(world: World, job: Job, rules: Rules = RULES) -> bool:
    """Whether the gang may start without cover."""
    return not (world.teams and job.protected and rules.protected_covered)


def is_young(world: World, job: Job, now: int) -> bool:
    """Whether the gang runs within the minimum run time of its own queue."""
    least = 0 if job.team == TOP else world.teams[job.team].least_run
    return job.start is not None and now < job.start + least


def claim(
    world: World, running: list[Job], job: Job, now: int, rules: Rules = RULES
) -> Claim | None:
    """What the gang may end; None if nothing. Who gets a node at this moment is no victim."""
    mode = world.mode(job.team)
    if mode == OFF:
        return None
    counted = [*running, job] if rules.counted else running
    after = cover(world, counted, now, rules)
    borrowing = [
        (other, item)
        for other in running
        if now not in (other.start, *(extra.start for extra in other.extras))
        and not (rules.spares_young and is_young(world, other, now))
        for item in [(other.name, 0), *((other.name, e.number) for e in other.extras)]
        if item not in after and not (other.protected and item[1] == 0)
    ]
    if is_covered_start(world, running, job, now, rules) and (
        not rules.rises or _rises(world, running, job, now, rules)
    ):
        victims = {
            item
            for other, item in borrowing
            if other.team != job.team
            or other.priority < job.priority
            or not rules.spares_own
            or (item[1] and rules.extras_first)
        }
        return Claim(by_guarantee=True, items=frozenset(victims))
    if mode != FULL or not may_borrow(world, job, rules):
        return None
    victims = {
        item
        for other, item in borrowing
        if other.priority < job.priority and (other.team == job.team or not rules.own_queue_only)
    }
    return Claim(by_guarantee=False, items=frozenset(victims))


def _rises(world: World, running: list[Job], job: Job, now: int, rules: Rules) -> bool:
    after = [*running, replace(job, start=now)]
    return measure(world, after, now, rules)[0] > measure(world, running, now, rules)[0]


Measure = tuple[tuple[int, ...], tuple[int, ...]]


def measure(world: World, running: list[Job], now: int, rules: Rules = RULES) -> Measure:
    """Covered items by depth, kind and priority, then members by queue and priority."""
    covered = cover(world, running, now, rules)
    depths = sorted({len(world.above(team)) for team in world.teams}, reverse=True)
    jobs = {job.name: job for job in running}
    priorities = range(9, -1, -1)
    counts = []
    for depth in depths:
        here = [i for i, team in covered.items() if len(world.above(team)) == depth]
        kinds = [_kind(jobs[name], number, covered[name, number]) for name, number in here]
        ranks = [(kind, jobs[name].priority) for kind, (name, _) in zip(kinds, here, strict=True)]
        counts.append(sum(kind == 0 for kind, _ in ranks))
        counts += [ranks.count((kind, p)) for kind in (1, 2) for p in priorities]
    use = [
        sum(j.members + len(j.extras) for j in running if j.team == team and j.priority == p)
        for team in [TOP, *sorted(world.teams)]
        for p in priorities
    ]
    return tuple(counts), tuple(use)


def _kind(job: Job, number: int, team: str) -> int:
    """0 for a protected minimum that its own queue covers, 1 for others, 2 for an extra."""
    if number:
        return 2
    return 0 if job.protected and job.team == team else 1


Cost = tuple[Fraction, int, int, tuple[Item, ...]]
DAY = 24 * 3600  # seconds of the present members' work that earlier ends count for, at most


def cost(world: World, running: list[Job], victims: frozenset[Item], now: int) -> Cost:
    """Work lost, members, gangs, names."""
    work, members, gangs = Fraction(0), 0, 0
    for job in running:
        share = max(
            (
                Fraction(1, PODS * len(world.nodes)),
                *(Fraction(n, t) for n, t in zip(job.each, world.total, strict=True) if t),
            )
        )
        if (job.name, 0) in victims:
            most = DAY * share * (job.members + len(job.extras))
            work += job.members * share * (now - (job.start or 0)) + min(job.lost, most)
            members, gangs = members + job.members, gangs + 1
        for extra in job.extras:
            if (job.name, extra.number) in victims:
                work += share * (now - extra.start)
                members += 1
    return work, members, gangs, tuple(sorted(victims))
