"""One plan by enumeration: starts, claims by guarantee, borrowers, claims by priority."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain, combinations
from typing import TYPE_CHECKING, NamedTuple

from . import rules
from .rules import RULES, Amounts, Extra, Item, Job, Rules, World

if TYPE_CHECKING:
    from random import Random


LeastCost = tuple[Fraction, int, int]  # work lost, members, whole gangs
STARVATION = 100  # after so long, a gang that waits has starved


class Leaving(NamedTuple):
    """A member that terminates: what it requests, where, until when, and of which gang."""

    each: Amounts
    node: int
    until: int
    job: str


@dataclass(frozen=True)
class State:
    """A cluster at a moment: all gangs, and the members that still leave."""

    world: World
    jobs: tuple[Job, ...]
    leaving: tuple[Leaving, ...] = ()
    now: int = 1
    allowed: tuple[tuple[str, int], ...] = ()  # how many more members each budget lets end

    @property
    def running(self) -> list[Job]:
        """The gangs that run."""
        return [job for job in self.jobs if job.start is not None]

    @property
    def waiting(self) -> list[Job]:
        """The gangs that wait and whose members have all gone, by priority and age."""
        gone = {member.job for member in self.leaving}
        waiting = [j for j in self.jobs if j.start is None and j.name not in gone]
        return sorted(waiting, key=lambda j: (-j.priority, j.since, j.name))

    @property
    def starved(self) -> list[Job]:
        """The gangs that have waited for so long that one of them goes first."""
        return [job for job in self.waiting if self.now - job.since >= STARVATION]

    def with_budgets(self) -> State:
        """The same with what budgets allow now; members that wait or leave miss already."""
        missing = [(j, j.members) for j in self.jobs if j.start is None]
        by_name = {job.name: job for job in self.jobs}
        missing += [(by_name[m.job], 1) for m in self.leaving if by_name[m.job].start is not None]
        allowed = {
            name: max(most - sum(n for job, n in missing if name in job.budgets), 0)
            for name, most in self.world.budgets.items()
        }
        return replace(self, allowed=tuple(sorted(allowed.items())))

    def with_job(self, job: Job) -> State:
        """The same with one gang as it is now."""
        return replace(self, jobs=tuple(job if j.name == job.name else j for j in self.jobs))

    def room(self, *, once_gone: bool, without: frozenset[Item] = frozenset()) -> list[list[int]]:
        """What nodes have left: now, or once all have gone that leave; without these items."""
        left = [list(node) for node in self.world.nodes]
        used = [(j.each, n) for j in self.running if (j.name, 0) not in without for n in j.nodes]
        used += [
            (j.each, e.node)
            for j in self.running
            for e in j.extras
            if not {(j.name, 0), (j.name, e.number)} & without
        ]
        used += [] if once_gone else [(member.each, member.node) for member in self.leaving]
        for each, node in used:
            for r, n in enumerate(each):
                left[node][r] -= n
        return left

    def keeps_limits(
        self,
        job: Job,
        wanted: Amounts,
        *,
        once_gone: bool,
        without: frozenset[Item] = frozenset(),
    ) -> bool:
        """Whether no limit above the gang is exceeded if it is charged this, too."""
        teams = {j.name: j.team for j in self.jobs}
        charges = [(j.team, j.size) for j in self.running if (j.name, 0) not in without]
        charges += [
            (j.team, j.each)
            for j in self.running
            for e in j.extras
            if not {(j.name, 0), (j.name, e.number)} & without
        ]
        charges += [] if once_gone else [(teams[m.job], m.each) for m in self.leaving]
        for name in self.world.above(job.team):
            for r, limit in enumerate(self.world.teams[name].limit):
                used = sum(size[r] for team, size in charges if name in self.world.above(team))
                if limit is not None and wanted[r] and used + wanted[r] > limit:
                    return False
        return True


class Ended(NamedTuple):
    """The claim of a gang that the plan places, and the victims that it ends."""

    claimant: str
    claim: rules.Claim
    victims: frozenset[Item]
    before: State


@dataclass
class Plan:
    """A plan in the making."""

    state: State
    chance: Random
    rules: Rules = RULES
    delays: bool = False
    is_least: bool = True  # otherwise any victims that suffice
    first: str = ""  # the starved gang that goes first
    held: frozenset[int] = frozenset()  # the nodes that are held for it
    ended: list[Ended] = field(default_factory=list)

    def in_order(self) -> list[Job]:
        """The gangs that wait: the starved gang, then by priority and age."""
        return sorted(self.state.waiting, key=lambda job: job.name != self.first)

    def room(self) -> list[list[int]]:
        """What nodes have left for starts, beside what is held."""
        room = self.state.room(once_gone=False)
        return [[-1 for _ in left] if n in self.held else left for n, left in enumerate(room)]


def plan(state: State, chance: Random, rule: Rules = RULES, *, delays: bool = False) -> Plan:
    """Go through all stages; ``chance`` decides what the page leaves open.

    It also decides which starved gang goes first, and which nodes are held for it: Φ must rise
    whatever these are.
    """
    plan = Plan(state, chance, rule, delays)
    if state.starved:
        plan.first = chance.choice(state.starved).name
    for job in plan.in_order():
        is_covered = rules.is_covered_start(state.world, plan.state.running, job, state.now, rule)
        borrows_first = job.name == plan.first and rules.may_borrow(state.world, job, rule)
        if is_covered or borrows_first:
            _start(plan, job)
        if job.name == plan.first and job in plan.state.waiting:
            nodes = range(len(state.world.nodes))
            plan.held = frozenset(chance.sample(nodes, chance.randint(0, len(nodes))))
    _grow(plan, only_covered=True)
    for job in plan.in_order():
        _claim(plan, job, by_guarantee=True)
    order = plan.state.waiting
    chance.shuffle(order)
    for job in order:
        if rules.may_borrow(state.world, job, rule):
            _start(plan, job)
    _grow(plan, only_covered=False)
    for job in plan.in_order():
        _claim(plan, job, by_guarantee=False)
    return plan


def places(job: Job, room: list[list[int]], members: int) -> tuple[int, ...] | None:
    """A node for each of so many members; None if there is no room."""
    left = [list(node) for node in room]
    found: list[int] = []
    for index, node in enumerate(left):
        while len(found) < members and all(n <= node[r] for r, n in enumerate(job.each) if n):
            found.append(index)
            for r, n in enumerate(job.each):
                node[r] -= n
    return tuple(found) if len(found) == members else None


def _start(plan: Plan, job: Job) -> None:
    state = plan.state
    nodes = places(job, plan.room(), job.members)
    # Room that a claimant waits for is counted twice here: as its own, and as of those who leave.
    if nodes is not None and state.keeps_limits(job, job.size, once_gone=False):
        plan.state = state.with_job(replace(job, start=state.now, nodes=nodes))


def _grow(plan: Plan, *, only_covered: bool) -> None:
    for job in sorted(plan.state.running, key=lambda j: (-j.priority, j.name)):
        grown = job
        while len(grown.extras) < job.wishes:
            state = plan.state
            number = 1 + max((e.number for e in grown.extras), default=0)
            nodes = places(job, plan.room(), 1)
            if nodes is None or not state.keeps_limits(job, job.each, once_gone=False):
                break
            extra = Extra(number, nodes[0], state.now)
            larger = replace(grown, extras=(*grown.extras, extra))
            after = state.with_job(larger)
            covered = rules.cover(state.world, after.running, state.now, plan.rules)
            if only_covered and (job.name, number) not in covered:
                break
            if not only_covered and plan.chance.random() < 0.2:
                break
            grown, plan.state = larger, after


def _claim(plan: Plan, job: Job, *, by_guarantee: bool) -> None:
    state = plan.state
    claim = rules.claim(state.world, state.running, job, state.now, plan.rules)
    if claim is None or claim.by_guarantee is not by_guarantee:
        return
    answer = cheapest(state, job, claim)
    if answer is None:
        return
    victims, nodes = answer
    plan.ended.append(Ended(job.name, claim, victims, state))
    until = state.now + (plan.chance.randint(1, 3) if plan.delays else 0)
    plan.state = after_claim(state, job, victims, nodes, until)


def cheapest(
    state: State, job: Job, claim: rules.Claim
) -> tuple[frozenset[Item], tuple[int, ...]] | None:
    """The least victims with which the gang has room, and its nodes; by trying all sets."""
    best = None
    for victims in victim_sets(state, claim):
        cost = rules.cost(state.world, state.running, victims, state.now)
        if best is not None and cost >= best[0]:
            continue
        nodes = room_with(state, job, victims)
        if nodes is not None:
            best = cost, victims, nodes
    return None if best is None else best[1:]


def least_cost(state: State, job: Job, claim: rules.Claim) -> LeastCost | None:
    """The least cost of victims with which the gang has room, by trying all sets."""
    best = cheapest(state, job, claim)
    return None if best is None else rules.cost(state.world, state.running, best[0], state.now)[:3]


def room_with(state: State, job: Job, victims: frozenset[Item]) -> tuple[int, ...] | None:
    """Nodes for the gang once these victims, and all that leave, have gone."""
    if not state.keeps_limits(job, job.size, once_gone=True, without=victims):
        return None
    return places(job, state.room(once_gone=True, without=victims), job.members)


def victim_sets(state: State, claim: rules.Claim) -> set[frozenset[Item]]:
    """All sets of victims: who loses the minimum loses all extras."""
    extras = {j.name: [(j.name, e.number) for e in j.extras] for j in state.running}
    items = sorted(claim.items)
    subsets = chain.from_iterable(combinations(items, n) for n in range(len(items) + 1))
    sets = {
        frozenset(some) | {extra for name, n in some if n == 0 for extra in extras[name]}
        for some in subsets
    }
    return {some for some in sets if keeps_budgets(state, some)}


def keeps_budgets(state: State, victims: frozenset[Item]) -> bool:
    """Whether budgets let all of these end; a member with two budgets never ends."""
    left = dict(state.allowed)
    for job in state.running:
        ends = {
            member for item in victims if item[0] == job.name for member in members_of(job, item)
        }
        if ends and len(job.budgets) > 1:
            return False
        for name in job.budgets:
            left[name] -= len(ends)
    return all(n >= 0 for n in left.values())


def members_of(job: Job, item: Item) -> list[Item]:
    """The members that end with an item, as numbers: negative ones are of the minimum."""
    if item[1]:
        return [item]
    minimum = [(job.name, -1 - i) for i in range(job.members)]
    return [*minimum, *((job.name, extra.number) for extra in job.extras)]


def after_claim(
    state: State, job: Job, victims: frozenset[Item], nodes: tuple[int, ...], until: int = 0
) -> State:
    """The state once the claimant is decided on and its victims have begun to leave."""
    jobs, leaving = [], list(state.leaving)
    for other in state.jobs:
        is_over = (other.name, 0) in victims
        gone = [e for e in other.extras if (other.name, e.number) in victims or is_over]
        places = (*(other.nodes if is_over else ()), *(e.node for e in gone))
        leaving += [Leaving(other.each, node, until, other.name) for node in places]
        left = tuple(e for e in other.extras if e not in gone)
        counted = with_failures(other, len(places))
        if is_over:
            ended = frozenset({(other.name, 0)})
            work = rules.cost(state.world, [other], ended, state.now)[0]
            waiting = replace(counted, start=None, nodes=(), extras=(), lost=work)
            jobs.append(replace(waiting, protected=rules.is_protected(state.world, waiting)))
        elif other.name == job.name:
            jobs.append(replace(job, start=state.now, nodes=nodes))
        else:
            jobs.append(replace(counted, extras=left))
    staying = tuple(member for member in leaving if member.until > state.now)
    allowed = dict(state.allowed)
    for other in state.running:
        ends = {item for item in victims if item[0] == other.name}
        members = {member for item in ends for member in members_of(other, item)}
        for name in other.budgets:
            allowed[name] -= len(members)
    return replace(state, jobs=tuple(jobs), leaving=staying, allowed=tuple(sorted(allowed.items())))


def with_failures(job: Job, failures: int) -> Job:
    """The gang whose batch Job has counted so many failed members; it tolerates one at least."""
    if not job.failures_left:
        return job
    return replace(job, failures_left=max(job.failures_left - failures, 1))
