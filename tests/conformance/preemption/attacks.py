"""Histories of plans, with ends, arrivals and edits between them, and what must hold in all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING

from . import events, instances, plans, rules
from .rules import RULES, TOP, Rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .plans import Ended, Plan, State

EVENTS = 12  # from outside, in one history
MOST_PLANS = 60  # between two of them, until nothing changes any more


@dataclass
class Report:
    """What went wrong in one history, and what happened in it."""

    breaches: list[str] = field(default_factory=list)
    tally: Counter[str] = field(default_factory=Counter)
    states: list[State] = field(default_factory=list)  # before plans with claims, and some others


def history(seed: int, rule: Rules = RULES) -> Report:
    """Play one history; ``rule`` may be a wrong one, and the page's own must show."""
    report, chance = Report(), Random(seed * 7919)
    state = instances.state(seed)
    delays = chance.random() < 0.4
    teams = state.world.teams
    for event in range(EVENTS):
        is_edited = state.world.teams != teams
        state = _come_to_rest(report, state, chance, rule, delays=delays, is_edited=is_edited)
        if event < EVENTS - 1:
            before, state = state, events.outside(state, chance, event)
            _count(report, before, state)
    report.tally["histories"] += 1
    report.tally["of three levels"] += any(
        len(state.world.above(team)) == 3 for team in state.world.teams
    )
    return report


def _count(report: Report, before: State, after: State) -> None:
    """Count the nodes that are lost, and the jumps in time after which other rules apply."""
    young = [j for j in before.running if rules.is_young(before.world, j, before.now)]
    grown = any(not rules.is_young(after.world, j, after.now) for j in young)
    report.tally["nodes lost"] += len(before.world.nodes) > len(after.world.nodes)
    report.tally["jumps past a minimum run time"] += after.now > before.now and grown
    report.tally["jumps past starvation"] += len(after.starved) > len(before.starved)


def _come_to_rest(
    report: Report, state: State, chance: Random, rule: Rules, *, delays: bool, is_edited: bool
) -> State:
    seen = set[object]()
    for _ in range(MOST_PLANS):
        state = state.with_budgets()
        made = plans.plan(state, chance, rule, delays=delays)
        report.breaches += _breaches(state, made)
        report.tally["plans"] += 1
        if made.ended or state.leaving or (state.waiting and state.now % 5 == 0):
            report.states.append(state)
        for ended in made.ended:
            kind = "by guarantee" if ended.claim.by_guarantee else "by priority"
            report.tally[f"claims {kind}"] += bool(ended.victims)
            report.tally["claims of starved gangs"] += ended.claimant == made.first
            report.tally["claims on room of leaving members"] += not ended.victims
            report.tally[f"evictions {kind}"] += len(ended.victims)
            report.tally["extras ended"] += sum(n > 0 for _, n in ended.victims)
        after, key = made.state, _key(made.state)
        is_quiet = after == state and not state.leaving
        if not is_quiet and key in seen and key != _key(state):
            report.breaches.append("a state repeats: gangs are ended in circles")
            return after
        seen.add(key)
        state = _later(after)
        if is_quiet:
            report.breaches += _breaches_at_rest(state, is_edited=is_edited)
            return state
    report.breaches.append("no rest")
    return state


def _key(state: State) -> object:
    """What a state is but for the clock: who runs, in which order they started, who leaves."""
    starts = sorted({j.start for j in state.running if j.start is not None})
    runs = frozenset(
        (j.name, j.nodes, starts.index(j.start or 0), len(j.extras)) for j in state.running
    )
    return runs, frozenset(member.job for member in state.leaving)


def _later(state: State) -> State:
    now = state.now + 1
    leaving = tuple(member for member in state.leaving if member.until > now)
    return replace(state, now=now, leaving=leaving)


def _breaches(before: State, plan: Plan) -> Iterator[str]:
    after, now = plan.state, before.now
    world = before.world
    old, new = (rules.measure(world, s.running, now) for s in (before, after))
    ends_any = any(ended.victims for ended in plan.ended)
    if ends_any and new <= old:
        yield f"a plan that ends gangs does not raise the measure: {old} and {new}"
    for room in after.room(once_gone=True):
        if min(room) < 0:
            yield "a node is given twice"
    yield from _beyond_budgets(before, plan)
    ran = {j.name for j in after.running}
    gone = Counter[str]()
    for ended in plan.ended:
        if ended.claimant not in ran:
            yield f"gangs end for {ended.claimant}, which does not start"
        gone.update(name for name, number in ended.victims if number == 0)
        yield from _unlawful(ended)
        yield from _spared(ended)
        yield from _stripped(ended)
    if before.running and any(n > 1 for n in gone.values()):
        yield "a gang is ended twice"
    for job in before.running:
        there = next(j for j in after.jobs if j.name == job.name)
        if there.start is None and job.name not in gone:
            yield f"{job.name} is ended, and nobody claims it"
        if there.start is not None and len(there.nodes) != there.members:
            yield f"{job.name} is half a gang"


def _beyond_budgets(before: State, plan: Plan) -> Iterator[str]:
    """Budgets of which more members end than they allow, counted from who runs at the end."""
    allowed = dict(before.allowed)
    ended = {name for made in plan.ended for name, _ in made.victims}
    for job in before.running:
        there = next(j for j in plan.state.jobs if j.name == job.name)
        ends = job.members if there.start is None else 0
        ends += len({*job.extras} - {*there.extras})
        if job.name in ended and len(job.budgets) > 1:
            yield f"{job.name} ends, and its members have two budgets"
        for name in job.budgets:
            allowed[name] -= ends
    if any(n < 0 for n in allowed.values()):
        yield "more members of a budget end than it allows"


def _unlawful(ended: Ended) -> Iterator[str]:
    """Victims that policy protects, by statements that know nothing of claims."""
    state = ended.before
    jobs = {job.name: job for job in state.jobs}
    claimant = jobs[ended.claimant]
    world = state.world
    if ended.victims and world.mode(claimant.team) == rules.OFF:
        yield f"{claimant.name} may end nobody"
    covered_now = rules.cover(world, state.running, state.now)
    for name, number in sorted(ended.victims):
        victim = jobs[name]
        if victim.protected and number == 0:
            yield f"{name} must not be ended"
        if rules.is_young(world, victim, state.now):
            yield f"{name} has not run for as long as its queue says"
        is_extra = ended.claim.by_guarantee and number > 0
        has_rank = victim.team == claimant.team and victim.priority >= claimant.priority
        if has_rank and not is_extra:
            yield f"{claimant.name} ends {name} of its queue, which has no lower priority"
        if victim.team != claimant.team and _is_safe(state, victim, number):
            yield f"{claimant.name} ends {name}, which the guarantee of its own queue covers"
        is_other = victim.team != claimant.team
        if is_other and world.mode(claimant.team) != rules.FULL and not ended.claim.by_guarantee:
            yield f"{claimant.name} ends {name} of another queue by priority"
        if not ended.claim.by_guarantee and (name, number) in covered_now:
            after = rules.cover(world, [*state.running, claimant], state.now)
            if (claimant.name, 0) not in after:
                yield f"{claimant.name} ends {name} by priority, which is covered"


def _stripped(ended: Ended) -> Iterator[str]:
    """Gangs of the claimant's queue that lose their cover to it and have no lower priority."""
    state = ended.before
    claimant = next(j for j in state.jobs if j.name == ended.claimant)
    before = rules.cover(state.world, state.running, state.now)
    after = rules.cover(state.world, [*state.running, claimant], state.now)
    for job in state.running if ended.claim.by_guarantee else ():
        is_above = job.team == claimant.team and job.priority >= claimant.priority
        if is_above and (job.name, 0) in before and (job.name, 0) not in after:
            yield f"{job.name} loses its cover to {claimant.name}"


def _is_safe(state: State, victim: rules.Job, number: int) -> bool:
    """Whether the victim fits its own queue's guarantee beside all that runs there."""
    if victim.team == TOP:
        return False
    mine = [j for j in state.running if j.team == victim.team]
    guarantee = [state.world.guarantee(victim.team, r) for r in state.world.resources]
    if not any(guarantee[r] for r in state.world.lines):
        return False
    for r in state.world.lines:
        use = sum(j.size[r] + (len(j.extras) * j.each[r] if number else 0) for j in mine)
        if use > guarantee[r]:
            return False
    return True


def _spared(ended: Ended) -> Iterator[str]:
    """Victims without whom the claimant would have room as well, by item."""
    state = ended.before
    job = next(j for j in state.jobs if j.name == ended.claimant)
    for item in sorted(ended.victims):
        if item[1] and (item[0], 0) in ended.victims:
            continue
        others = ended.victims - {item}
        if plans.room_with(state, job, others) is not None:
            yield f"{item} can be spared"


def _breaches_at_rest(state: State, *, is_edited: bool) -> Iterator[str]:
    """On one node with nothing beside guarantees: who would be covered does not wait.

    It may wait while room is held for a starved gang, or gangs run within their minimum run time.
    Gangs of its own queue with no lower priority may hold the room. Once guarantees were edited, so
    may gangs that cannot be ended and were covered before, and so may victims that budgets keep.
    """
    world = state.world
    tops = [name for name, team in world.teams.items() if team.parent == TOP]
    if len(world.nodes) > 1 or world.lines != list(world.resources):
        return
    if state.starved or any(rules.is_young(world, job, state.now) for job in state.running):
        return
    if any(limit is not None for team in world.teams.values() for limit in team.limit):
        return
    most = [sum(_reach(world, name, r) for name in tops) for r in world.lines]
    if any(n > node for n, node in zip(most, world.nodes[0], strict=True)):
        return
    covered = rules.cover(world, state.running, state.now)
    for job in state.waiting:
        if world.mode(job.team) == rules.OFF:
            continue
        if not rules.is_covered_start(world, state.running, job, state.now):
            continue
        own = [j for j in state.running if j.team == job.team and j.priority >= job.priority]
        stuck = [j for j in state.running if j.protected and (j.name, 0) not in covered]
        if all((j.name, 0) in covered for j in own) and not (
            (stuck and is_edited) or _is_kept_by_budgets(state, job)
        ):
            yield f"{job.name} waits, and its guarantee would cover it"


def _is_kept_by_budgets(state: State, job: rules.Job) -> bool:
    """Whether budgets keep something of what the gang may end."""
    claim = rules.claim(state.world, state.running, job, state.now)
    return claim is not None and not plans.keeps_budgets(state, claim.items)


def _reach(world: rules.World, team: str, r: int) -> int:
    """What a queue and those below it can cover at most."""
    children = [name for name, t in world.teams.items() if t.parent == team]
    return max(world.guarantee(team, r), sum(_reach(world, child, r) for child in children))
