"""One measurement, in this process: a plan, or two answers side by side.

What is admitted is counted here from the Plan alone, once the time is taken.
"""

from __future__ import annotations

import gc
import math
import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from operator import itemgetter
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from tutti.gang import demand, order
from tutti.model.decisions import Objective, Plan, Policy
from tutti.model.queues import Preemption
from tutti.operator.plan_cache import PlanCache
from tutti.planning import plan
from tutti.planning.compile import gang_value, grids, problems
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget, Outcome, Problem, admitted_value
from tutti.verify import plan_checks
from tutti.verify.preemption import checks as preemption_checks

from . import baselines, contenders, kueue_load, network, queue_tree, rack_program, racks
from .pictures import GPU, TAKEN_AT, snapshot
from .scenes import Scene, Twist, small
from .stopwatch import NAMES, Stopwatch, Watched

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from fractions import Fraction

    from tutti.model.cluster import Snapshot
    from tutti.model.keys import Uid
    from tutti.strategies.problem import Strategy

    from .traces import Trace

WARM_UP_NODES = 16
TURNS = 3
PLAIN_SECONDS = 60.0
RACK_PROGRAM_SECONDS = 60.0
KUEUE_SECONDS = 3_600.0  # for one of Kueue's loads, beside the patience
_PEAK = re.compile(r"VmHWM:\s+(\d+) kB")


class Kind(StrEnum):
    """What is measured in a scene."""

    PLAN = "plan"  # order, reduce, solve, split, verify
    ARGMIN = "argmin"  # bestfit beside one argmin per member
    PLAIN = "plain"  # ilp beside a program with a variable per pod and node
    UNCHANGED = "unchanged"  # a cycle with nothing changed beside a full plan
    QUEUES = "queues"  # a plan with queues beside one of the same gangs without
    DEVICES = "devices"  # a plan with devices and claims beside one with counts of GPUs
    NETWORK = "network"  # a plan with preferred racks beside one of the same gangs without
    PREEMPTION = "preemption"  # a plan in which gangs end for another beside one without victims
    TOPOLOGY = "topology"  # a plan with required racks and segments beside one without
    RACK_PROGRAM = "rack-program"  # a plan with racks beside one program over racks
    REFUSAL = "refusal"  # a plan of one gang without room beside one of all gangs
    KUEUE = "kueue"  # gangs that come, run and end, planned cycle after cycle
    CYCLE = "cycle"  # beside many pods: one of them changed, and nothing did


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to measure."""

    kind: Kind
    scene: Scene
    strategy: str
    objective: Objective = Objective.RESOURCES


@dataclass(frozen=True, slots=True)
class Figures:
    """What one measurement gave; of ``unfinished`` ones nothing else counts."""

    seconds: float = 0.0
    stages: Mapping[str, float] = field(default_factory=dict)
    members: int = 0  # that wait
    value: int = 0
    bound: int | None = None  # no admission is worth more, as far as the strategy knows
    gangs: int = 0  # admitted
    placed: int = 0  # members
    gpus: int = 0  # that they ask for
    proved: bool = False
    shortfall: str = ""
    peak_megabytes: float = 0.0  # of the planner's process
    engine_megabytes: float = 0.0  # of the largest process that it started
    other_seconds: float = 0.0  # of what stands beside it
    other_value: int = 0
    other_bound: int | None = None  # no answer of it is worth more; None if it says none
    blocked_seconds: float = 0.0  # the longest that a cycle kept the event loop from anything else
    at_limit: int = 0  # queues that keep a gang waiting because of their limits
    ended: int = 0  # gangs that end so that others start
    cost: float = 0.0  # of these ends, over the bound
    where: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # gangs are, and room
    load: Mapping[str, float] = field(default_factory=dict)  # what became of Kueue's load
    unfinished: str = ""  # why there are no figures


def measured(case: Case, trace: Trace, seed: int) -> Figures:
    """Measure one case, once what it needs is loaded."""
    if case.strategy == contenders.KUEUE:
        from . import kueue_itself  # noqa: PLC0415 - only here it is needed

        return kueue_itself.measured(kueue_load.of(case.scene))
    _planned(snapshot(small(WARM_UP_NODES), trace, seed), contenders.made(case.strategy), case)
    if case.kind is Kind.KUEUE:
        return _run(_kueue(case))
    picture = snapshot(case.scene, trace, seed)
    gc.collect()
    _forget_the_peak()
    return _MEASURES[case.kind](picture, case)


def _run(measuring: Coroutine[None, None, Figures]) -> Figures:
    """What an event loop measures; a planner alone has none, nor its memory."""
    import asyncio  # noqa: PLC0415 - only here it is needed

    return asyncio.run(measuring)


def _planned(picture: Snapshot, strategy: Strategy, case: Case) -> Plan:
    """The whole plan, as the operator asks for it."""
    return plan.plan(picture, strategy, BestFit(), Budget(), Policy(case.objective))


def _plan(picture: Snapshot, case: Case) -> Figures:
    stopwatch = Stopwatch()
    strategy = Watched(contenders.made(case.strategy), stopwatch)
    with stopwatch.attached():
        start = perf_counter()
        plan = _planned(picture, strategy, case)
        broken = plan_checks.violations(picture, plan)
        seconds = perf_counter() - start
    peak = _peak_megabytes()
    if broken:
        return Figures(unfinished=f"wrong: {broken[0]}")
    stages = {name: stopwatch.seconds.get(name, 0.0) for name in NAMES}
    stages["rest"] = seconds - sum(stages.values())
    figures = _admitted(picture, plan, Policy(case.objective))
    figures = replace(figures, seconds=seconds, stages=stages, peak_megabytes=peak)
    if case.scene.twist is Twist.PRIORITIES:
        level = plan.open_level or plan.levels[-1]
        return replace(figures, value=level.admitted, bound=level.bound)
    scale = gang_value.scale(Policy(case.objective))
    return replace(figures, bound=_bound(strategy, figures.value, scale))


def _admitted(picture: Snapshot, plan: Plan, policy: Policy) -> Figures:
    """What the plan admits, and what that is worth."""
    by_gang = _values(picture, policy)
    scale = gang_value.scale(policy)
    shape = {m.uid: m.shape for gang in picture.gangs for m in gang.members}
    chosen = [
        assignment.uid for placement in plan.placements for assignment in placement.assignments
    ]
    return Figures(
        members=sum(len(gang.members) for gang in picture.gangs),
        value=round(scale * sum(by_gang[placement.uid] for placement in plan.placements)),
        gangs=len(plan.placements),
        placed=len(chosen),
        gpus=sum(shape[uid].requests[GPU] for uid in chosen),
        proved=plan.proved,
        shortfall=plan.shortfall,
    )


def _values(picture: Snapshot, policy: Policy) -> Mapping[Uid, int]:
    """What each gang that waits is worth."""
    wants = [
        want for gang in picture.gangs if (want := demand.start_request(demand.count_members(gang)))
    ]
    shapes = (member.shape for want in wants for member in want.members)
    worths = gang_value.worths(grids.grid(picture, shapes), wants, policy, picture.taken_at)
    return {want.gang.uid: worth for want, worth in zip(wants, worths, strict=True)}


def _bound(strategy: Watched, admitted: int, scale: Fraction) -> int | None:
    """What the joint decision said that no answer exceeds; all gangs are of one priority.

    Where nothing was asked, nothing could start.
    """
    if not strategy.answers:
        return admitted
    problem, solution = strategy.answers[0]
    if solution.bounds:
        return round(scale * sum(most for _, most in solution.bounds))
    if solution.outcome is Outcome.PROVED:
        return round(scale * sum(worth for _, worth in admitted_value(problem, solution)))
    return None


def _argmin(picture: Snapshot, case: Case) -> Figures:
    """Members placed, and seconds, of the strategy and of one argmin per member."""
    problem = _problem(picture, Policy(case.objective))
    strategy = contenders.made(case.strategy)
    start = perf_counter()
    solution = strategy.solve(problem, Budget())
    between = perf_counter()
    placed = baselines.argmin_per_member(problem)
    end = perf_counter()
    return Figures(
        seconds=between - start,
        value=sum(share.count for shares in solution.shares for share in shares),
        other_seconds=end - between,
        other_value=placed,
    )


def _plain(picture: Snapshot, case: Case) -> Figures:
    """The value admitted, and seconds, of the strategy and of the plainest program."""
    problem = _problem(picture, Policy(case.objective))
    strategy = contenders.made(case.strategy)
    start = perf_counter()
    solution = strategy.solve(problem, Budget())
    between = perf_counter()
    found = baselines.variable_per_pod_and_node(problem, PLAIN_SECONDS)
    end = perf_counter()
    if found is None:
        return Figures(unfinished=f"the plain program was not solved in {PLAIN_SECONDS:g} s")
    return Figures(
        seconds=between - start,
        value=sum(worth for _, worth in admitted_value(problem, solution)),
        other_seconds=end - between,
        other_value=found,
    )


def _problem(picture: Snapshot, policy: Policy) -> Problem:
    """All waiting gangs as one Problem."""
    gangs = order.considered(picture.gangs)
    wants = [want for gang in gangs if (want := demand.start_request(demand.count_members(gang)))]
    shapes = (member.shape for want in wants for member in want.members)
    base = grids.grid(picture, shapes)
    worths = gang_value.worths(base, wants, policy, picture.taken_at)
    return problems.problem(base, base.free, wants, worths)


def _unchanged(picture: Snapshot, case: Case) -> Figures:
    """A full plan's seconds; and, once it is carried out, those of a cycle that finds no change."""
    from ...harness.builders import applied  # noqa: PLC0415 - it loads what a planner's memory is free of

    strategy = contenders.made(case.strategy)
    start = perf_counter()
    plan = _planned(picture, strategy, case)
    full = perf_counter() - start
    left = applied(picture, plan)
    settled = frozenset(gang.uid for gang in left.gangs if demand.is_settled(gang))
    left = replace(left, settled=settled)
    kept, before = PlanCache(), replace(left, taken_at=left.taken_at + 1)
    kept.keep(before, _planned(before, strategy, case))
    now = replace(left, taken_at=left.taken_at + 2)
    start = perf_counter()
    if kept.plan(now) is None:
        _planned(now, strategy, case)
    seconds = perf_counter() - start
    return Figures(
        seconds=seconds, other_seconds=full, value=_waiting(left), other_value=_waiting(picture)
    )


def _queues(picture: Snapshot, case: Case) -> Figures:
    """A whole plan with queues; and, beside it, one of the same gangs without.

    Both are made in turn, and the fastest of each counts: an operator plans again and again.
    """
    without = queue_tree.without_queues(picture)
    turns = [(_timed(without, case), _timed(picture, case)) for _ in range(TURNS)]
    if broken := [why for turn in turns for *_, faults in turn for why in faults]:
        return Figures(unfinished=f"wrong: {broken[0]}")
    plain, plain_seconds, _ = min((own for own, _ in turns), key=itemgetter(1))
    found, seconds, _ = min((own for _, own in turns), key=itemgetter(1))
    policy = Policy(case.objective)
    bounds = [level.bound for level in found.levels]
    return replace(
        _admitted(picture, found, policy),
        seconds=seconds,
        other_seconds=plain_seconds,
        bound=None if None in bounds else sum(bound or 0 for bound in bounds),
        other_value=_admitted(without, plain, policy).value,
        at_limit=queue_tree.at_a_limit(found),
    )


def _devices(picture: Snapshot, case: Case) -> Figures:
    """A whole plan with devices; and, beside it, one of the same gangs with counts of GPUs.

    What blocks the event loop is the first Snapshot after the first lists, which counts the free
    devices; the operator takes the claims in part by part before it.
    """
    from tutti.operator.cycle import PODS_AT_ONCE  # noqa: PLC0415 - as ``device_pools``

    from . import device_pools  # noqa: PLC0415 - it loads what a planner's memory is free of

    pools = device_pools.pools(picture)
    without = device_pools.cluster_state(picture).snapshot(TAKEN_AT)
    plain, plain_seconds, plain_broken = _timed(without, case)
    state = device_pools.cluster_state(pools.picture, pools)
    gc.collect()
    blocked, start = 0.0, perf_counter()
    for _ in state.devices.refresh_in_parts(PODS_AT_ONCE):
        blocked, start = max(blocked, perf_counter() - start), perf_counter()
    seen = state.snapshot(TAKEN_AT)
    blocked = max(blocked, perf_counter() - start)
    found, seconds, broken = _timed(seen, case)
    if broken or plain_broken:
        return Figures(unfinished=f"wrong: {(*broken, *plain_broken)[0]}")
    bounds = [level.bound for level in found.levels]
    return replace(
        _admitted(seen, found, Policy(case.objective)),
        value=sum(level.admitted for level in found.levels),
        bound=None if None in bounds else sum(bound or 0 for bound in bounds),
        seconds=seconds,
        other_seconds=plain_seconds,
        other_value=sum(level.admitted for level in plain.levels),
        blocked_seconds=blocked,
    )


def _network(picture: Snapshot, case: Case) -> Figures:
    """A whole plan of gangs that prefer a rack; and, beside it, one of the same gangs without."""
    without = network.without_preferences(picture)
    plain, plain_seconds, plain_broken = _timed(without, case)
    found, seconds, broken = _timed(picture, case)
    if broken or plain_broken:
        return Figures(unfinished=f"wrong: {(*broken, *plain_broken)[0]}")
    policy = Policy(case.objective)
    return replace(
        _admitted(picture, found, policy),
        seconds=seconds,
        other_seconds=plain_seconds,
        other_value=_admitted(without, plain, policy).value,
        where={
            "before": network.largest(picture.nodes),
            "without preference": network.spread(without, plain),
            "with preference": network.spread(picture, found),
        },
    )


def _topology(picture: Snapshot, case: Case) -> Figures:
    """A whole plan of gangs with required racks and segments; and one of the same gangs without."""
    without = racks.without_topology(picture)
    plain, plain_seconds, plain_broken = _timed(without, case)
    found, seconds, broken = _timed(picture, case)
    if broken or plain_broken:
        return Figures(unfinished=f"wrong: {(*broken, *plain_broken)[0]}")
    bounds = [level.bound for level in found.levels]
    return replace(
        _admitted(picture, found, Policy(case.objective)),
        value=sum(level.admitted for level in found.levels),
        bound=None if None in bounds else sum(bound or 0 for bound in bounds),
        seconds=seconds,
        other_seconds=plain_seconds,
        other_value=sum(level.admitted for level in plain.levels),
    )


def _rack_program(picture: Snapshot, case: Case) -> Figures:
    """A whole plan of gangs with required racks and segments; and the best value by racks."""
    made, seconds, broken = _timed(picture, case)
    if broken:
        return Figures(unfinished=f"wrong: {broken[0]}")
    policy = Policy(case.objective)
    scale, values = gang_value.scale(policy), _values(picture, policy)
    start = perf_counter()
    best = rack_program.best(picture, values, RACK_PROGRAM_SECONDS)
    other_seconds = perf_counter() - start
    bounds = [level.bound for level in made.levels]
    return replace(
        _admitted(picture, made, policy),
        bound=None if None in bounds else sum(bound or 0 for bound in bounds),
        seconds=seconds,
        other_seconds=other_seconds,
        other_value=round(scale * best.value),
        other_bound=round(scale * best.bound),
    )


def _refusal(picture: Snapshot, case: Case) -> Figures:
    """A plan of one gang that no rack holds, and a plan of all gangs of the scene."""
    whole, whole_seconds, whole_broken = _timed(picture, case)
    refused, seconds, broken = _timed(racks.with_too_large_a_gang(picture), case)
    if broken or whole_broken:
        return Figures(unfinished=f"wrong: {(*broken, *whole_broken)[0]}")
    return Figures(
        seconds=seconds,
        other_seconds=whole_seconds,
        value=len(refused.placements),
        other_value=len(whole.placements),
        proved=refused.proved,
    )


def _preemption(picture: Snapshot, case: Case) -> Figures:
    """A whole plan in which gangs end for another; and, beside it, one without preemption."""
    _, plain_seconds, plain_broken = _timed(picture, case)
    found, seconds, broken = _timed(picture, case, Preemption.RECLAIM)
    if broken or plain_broken or not found.claims:
        return Figures(unfinished=f"wrong: {(*broken, *plain_broken, 'nobody claims')[0]}")
    cost, bound = (sum(c.cost for c in found.claims), sum(c.bound for c in found.claims))
    return Figures(
        seconds=seconds,
        other_seconds=plain_seconds,
        ended=sum(len(claim.victims) for claim in found.claims),
        cost=float(cost / bound) if bound else math.inf,
    )


def _timed(
    picture: Snapshot, case: Case, preemption: Preemption = Preemption.OFF
) -> tuple[Plan, float, Sequence[str]]:
    """A whole plan, the seconds in which it was made and checked, and what is wrong with it."""
    strategy, policy = contenders.made(case.strategy), Policy(case.objective, preemption=preemption)
    gc.collect()
    start = perf_counter()
    made = plan.plan(picture, strategy, BestFit(), Budget(), policy)
    broken = plan_checks.violations(picture, made)
    broken += preemption_checks.faults(picture, made, preemption)
    return made, perf_counter() - start, broken


async def _kueue(case: Case) -> Figures:
    """What becomes of Kueue's load, and the seconds that all cycles take."""
    from . import kueue_run  # noqa: PLC0415 - it loads what a planner's memory is free of

    load = kueue_load.of(case.scene)
    nodes = tuple(kueue_load.nodes(case.scene.nodes))
    simulation = kueue_run.Simulation(load, nodes, contenders.made(case.strategy))
    _forget_the_peak()
    trouble = await simulation.run()
    peak, tally = _peak_megabytes(), simulation.tally
    return Figures(
        seconds=tally.planning,
        members=load.workloads,
        gangs=tally.started,
        placed=tally.started,
        peak_megabytes=peak,
        load=tally.figures(load),
        unfinished=trouble,
    )


def _cycle(picture: Snapshot, case: Case) -> Figures:
    return _run(_cycles(picture, case))


async def _cycles(picture: Snapshot, case: Case) -> Figures:
    """A cycle after one pod changed and one after nothing did, once all that fits has started."""
    from .cycles import Operator  # noqa: PLC0415 - it loads what a planner's memory is free of

    operator = Operator(picture, contenders.made(case.strategy))
    plan, _ = await operator.decide()  # which takes in all pods at once, as after a start
    operator.bind(plan)
    _, second = await operator.decide()
    _, still = await operator.decide()
    operator.change()
    _, changed = await operator.decide()
    return Figures(
        seconds=changed.seconds,
        other_seconds=still.seconds,
        value=sum(len(placement.assignments) for placement in plan.placements),
        other_value=operator.residents,
        blocked_seconds=max(one.blocked for one in (second, still, changed)),
    )


def _waiting(picture: Snapshot) -> int:
    """Members without a node."""
    return sum(member.is_waiting for gang in picture.gangs for member in gang.members)


def _forget_the_peak() -> None:
    """Count the peak from now on, where the kernel allows it; else building the scene counts."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _peak_megabytes() -> float:
    found = _PEAK.search(Path("/proc/self/status").read_text())
    return int(found.group(1)) / 1000 if found else 0.0


_MEASURES: Mapping[Kind, Callable[[Snapshot, Case], Figures]] = {
    Kind.PLAN: _plan,
    Kind.ARGMIN: _argmin,
    Kind.PLAIN: _plain,
    Kind.UNCHANGED: _unchanged,
    Kind.QUEUES: _queues,
    Kind.DEVICES: _devices,
    Kind.NETWORK: _network,
    Kind.PREEMPTION: _preemption,
    Kind.TOPOLOGY: _topology,
    Kind.RACK_PROGRAM: _rack_program,
    Kind.REFUSAL: _refusal,
    Kind.CYCLE: _cycle,
}
