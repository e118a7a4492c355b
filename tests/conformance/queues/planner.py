"""Whole plans of Tutti beside the reference: small clusters as Snapshots, and what starts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tutti.model.cluster import Gang, Member, Namespace, Node, Reservation, Snapshot
from tutti.model.decisions import Plan, Policy
from tutti.model.keys import GangKey, NodeName, PodKey, Uid
from tutti.model.queues import QueueRecord, RoleAtStart
from tutti.model.resources import Resources
from tutti.model.shapes import Shape
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.verify import plan_checks

from ...harness.builders import AMPLE_BUDGET, NAMESPACE
from . import histories, plans, reference
from .comparing import queues

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .reference import Amounts, Job, World

NOW = 1000.0
NEVER = 1e9
PATIENT = Policy(age_seconds=NEVER, starvation_seconds=NEVER)


class Judgement(NamedTuple):
    """What is wrong with one plan, and whether it claims to be the best."""

    breaches: list[str]
    is_proved: bool


def judge(world: World, strategy: str) -> Judgement:
    """Hold a plan against all best plans of the reference."""
    seen = snapshot(world)
    made = plan(seen, STRATEGIES[strategy](), STRATEGIES["bestfit"](), AMPLE_BUDGET, PATIENT)
    return Judgement([*_breaches(world, seen, made)], made.proved)


def _breaches(world: World, snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    yield from plan_checks.violations(snapshot, plan)
    names = {placement.gang.name for placement in plan.placements}
    starts = [j for j in world.jobs if j.start is None and j.name in names]
    running = [j for j in world.jobs if j.start is not None]
    if not reference.within_limits(world, running, [*running, *starts]):
        yield "a limit is exceeded"
    best = plans.outcomes(world)
    if plan.proved and frozenset(names) not in best:
        yield f"starts {sorted(names)}, and the best are {[sorted(some) for some in best]}"


def starts(world: World, running: list[Job], queue: list[Job], turn: int) -> list[Job]:
    """What Tutti starts in one turn of a history, placed."""
    seen = snapshot(replace(world, jobs=(*running, *queue)), float(turn))
    policy = Policy(age_seconds=NEVER, starvation_seconds=float(histories.STARVED))
    made = plan(seen, STRATEGIES["ilp"](), STRATEGIES["bestfit"](), AMPLE_BUDGET, policy)
    assert plan_checks.violations(seen, made) == ()
    jobs = {job.name: job for job in queue}
    return [
        replace(
            jobs[placement.gang.name],
            nodes=tuple(int(assignment.node[1:]) for assignment in placement.assignments),
            start=turn,
        )
        for placement in made.placements
    ]


def snapshot(world: World, now: float = NOW) -> Snapshot:
    """The cluster, all gangs with PodGroups, all that run with a record."""
    gangs = sorted((_gang(job) for job in world.jobs), key=lambda gang: gang.key)
    used: dict[int, list[Resources]] = {}
    for job in world.jobs:
        for node in job.nodes:
            used.setdefault(node, []).append(_requests(job.each))
    nodes = tuple(
        Node(
            NodeName(f"n{i}"),
            _resources(amounts, pods=plans.PODS),
            used=Resources.total(used.get(i, [])),
        )
        for i, amounts in enumerate(world.nodes)
    )
    records = [
        Reservation(
            GangKey(NAMESPACE, job.name),
            Uid(job.name),
            1,
            "tutti",
            "",
            0.0,
            (),
            record=_record(job),
        )
        for job in world.jobs
        if job.start is not None
    ]
    return Snapshot(
        now,
        nodes,
        tuple(gangs),
        start_records=tuple(sorted(records, key=lambda held: held.gang)),
        namespaces=(Namespace(NAMESPACE),),
        queues=tuple(sorted(queues(world), key=lambda queue: queue.name)),
    )


def _key(job: Job) -> GangKey:
    return GangKey(NAMESPACE, job.name)


def _gang(job: Job) -> Gang:
    queue = "" if job.team == reference.TOP else job.team
    return Gang(
        _key(job),
        Uid(job.name),
        job.members,
        created=float(job.since),
        queue=queue,
        members=tuple(_members(job)),
    )


def _members(job: Job) -> Iterator[Member]:
    for i in range(job.members + job.extras):
        key = PodKey(NAMESPACE, f"{job.name}-{i}")
        member = Member(key, Uid(str(key)), "1", Shape(_requests(job.each)), float(job.since))
        node = NodeName(f"n{job.nodes[i]}") if job.nodes else None
        bound_at = 0.0 if job.nodes else None  # before there were Queues
        member = replace(member, group=job.name, priority=job.priority)
        yield replace(member, node=node, bound_at=bound_at)


def _record(job: Job) -> QueueRecord:
    requests = _requests(job.each).scaled(job.members)
    uid = Uid("" if job.team == reference.TOP else job.team)
    start = float(job.start or 0)
    return QueueRecord(job.team, uid, start, (RoleAtStart("", job.members, requests),))


def _requests(amounts: Amounts) -> Resources:
    return _resources(amounts, pods=1)


def _resources(amounts: Amounts, *, pods: int) -> Resources:
    return Resources.of({**{str(r): n for r, n in enumerate(amounts)}, "pods": pods})
