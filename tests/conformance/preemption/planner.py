"""What Tutti claims beside the enumeration: states of histories as Snapshots, claims one by one."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from tutti.model import owners
from tutti.model.cluster import (
    DisruptionBudget,
    Gang,
    Member,
    Namespace,
    Node,
    Reservation,
    Snapshot,
)
from tutti.model.decisions import Claim, Policy
from tutti.model.inter_pod import Requirement
from tutti.model.keys import POD, GangKey, NodeName, PodKey, Uid
from tutti.model.queues import Preemption, Queue, QueueRecord, RoleAtStart
from tutti.model.resources import Resources
from tutti.model.shapes import Shape
from tutti.planning import compiled_demand, observed_demand, queued_gangs
from tutti.planning import plan as planning
from tutti.planning.compile.quotas import Quotas
from tutti.planning.queueing import claim_rounds, preemption
from tutti.planning.queueing.ledger import QueueLedger
from tutti.planning.queueing.preemption import ClaimedPlan
from tutti.planning.queueing.victim_pool import PreemptionRules
from tutti.planning.search.limits import SearchLimits
from tutti.strategies import STRATEGIES
from tutti.verify import plan_checks
from tutti.verify.preemption import checks as preemption_checks

from ...harness.builders import AMPLE_BUDGET, NAMESPACE
from . import plans, rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from fractions import Fraction

    from .plans import LeastCost, State
    from .rules import Amounts, Item, Job

    Oracle = Callable[[State, Job, rules.Claim], LeastCost | None]


class Claimed(NamedTuple):
    """The claims of one moment, in the order in which they were decided."""

    seen: Snapshot
    rules: PreemptionRules
    claims: Sequence[Claim]


def claim(state: State, strategy: str = "ilp") -> Claimed:
    """What Tutti claims for the gangs that wait, while no gang starts for free."""
    seen = snapshot(state)
    declared = _declared(state)
    observed = observed_demand.observe(seen)
    queued = queued_gangs.queue_gangs(observed)
    compiled = compiled_demand.compile_demand(
        queued.observed, Quotas.of(queued.limits, queued.credit_of)
    )
    limits = SearchLimits(
        STRATEGIES[strategy](), STRATEGIES["bestfit"](), AMPLE_BUDGET, Policy(), seen.taken_at
    )
    ledger = QueueLedger.of(queued, preemption.charged_gangs(queued), compiled.tried)
    claimed = ClaimedPlan.of(compiled, compiled.blank, ledger, declared, limits)
    claimed = preemption.claim_by_guarantee(claimed, compiled.requests)
    claimed = preemption.claim_by_priority(claimed, compiled.requests)
    return Claimed(seen, declared, claimed.claims)


def starts(state: State) -> set[str]:
    """The gangs that the whole plan of a state starts."""
    strategies = STRATEGIES["ilp"](), STRATEGIES["bestfit"]()
    made = planning.plan(
        snapshot(state), *strategies, AMPLE_BUDGET, Policy(preemption=Preemption.FULL)
    )
    return {placement.gang.name for placement in made.placements}


def faults_of_plans(state: State) -> Iterator[str]:
    """What ``verify`` has against the whole plan of a state, and against the next one.

    In the next one, Reservations stand for the claims, and no victim has gone.
    """
    declared, seen = _declared(state), snapshot(state)
    queues = tuple(
        replace(queue, preemption=declared.modes.get(queue.name, Preemption.OFF))
        for queue in seen.queues
    )
    setting = Preemption.FULL if queues else declared.modes.get("root", Preemption.OFF)
    # A pod without a PodGroup declares nothing: for Tutti it is one that could not be evicted.
    spared = frozenset(
        gang.uid for gang in seen.gangs if gang.is_single and gang.key in declared.protected
    )
    seen = replace(seen, queues=queues, protected=spared)
    for _ in range(2):
        strategies = STRATEGIES["ilp"](), STRATEGIES["bestfit"]()
        made = planning.plan(seen, *strategies, AMPLE_BUDGET, Policy(preemption=setting))
        yield from preemption_checks.faults(seen, made, setting)
        yield from plan_checks.violations(seen, made)
        seen = claim_rounds.with_claims(seen, made.claims)


def differences(
    state: State, claimed: Claimed, least_cost: Oracle = plans.least_cost
) -> Iterator[str]:
    """Where the claims are not those of the oracle, each asked after those before it."""
    protected = {_key(job) for job in state.jobs if job.protected}
    yield from preemption_checks.violations(
        claimed.seen, claimed.claims, claimed.rules.modes, protected
    )
    last = True
    for made in claimed.claims:
        job = next(job for job in state.jobs if job.name == made.gang.name)
        if made.by_guarantee and not last:
            yield f"{job.name} comes too late"
        last = made.by_guarantee
        right = rules.claim(state.world, state.running, job, state.now)
        if right is None or right.by_guarantee is not made.by_guarantee:
            yield f"{job.name} has no such claim"
            return
        ended = victims(state, made)
        yield from _wrong_victims(state, job, right, made, least_cost(state, job, right))
        yield from _wrong_nodes(state, job, ended, _nodes(made))
        state = plans.after_claim(state, job, ended, _nodes(made))
    if not claimed.claims:  # a claim may let others claim in the next plan
        yield from _unmet(state, least_cost)


def carried_out(state: State, claimed: Claimed) -> State:
    """The state of the next moment, in which the victims have gone and the claimants run."""
    for made in claimed.claims:
        job = next(job for job in state.jobs if job.name == made.gang.name)
        state = plans.after_claim(state, job, victims(state, made), _nodes(made))
    return replace(state, now=state.now + 1).with_budgets()


def _nodes(claim: Claim) -> tuple[int, ...]:
    return tuple(int(assignment.node[1:]) for assignment in claim.assignments)


def _wrong_victims(
    state: State, job: Job, right: rules.Claim, claim: Claim, least: LeastCost | None
) -> Iterator[str]:
    """Victims that may not end, or that cost more than others."""
    ended = victims(state, claim)
    single = {(name, n) for name, n in ended if n == 0 or (name, 0) not in ended}
    if not single <= right.items:
        yield f"{job.name} ends {sorted(single - right.items)}, which it may not"
    if least is None:
        yield f"{job.name} has no room by any victims"
        return
    cost = rules.cost(state.world, state.running, ended, state.now)
    if cost[0] != claim.cost:
        yield f"{job.name} says {claim.cost}, and its victims cost {cost[0]}"
    if claim.is_proved and cost[:3] != least:
        yield f"{job.name} ends {sorted(ended)} for {cost[:3]}, and {least} suffices"
    if claim.bound > least[0]:
        yield f"{job.name} has the bound {claim.bound}, and {least} suffices"


def _wrong_nodes(
    state: State, job: Job, ended: frozenset[Item], nodes: tuple[int, ...]
) -> Iterator[str]:
    """A placement that is not whole, or for which there is no room once the victims have gone."""
    if len(nodes) != job.members:
        yield f"{job.name} has {len(nodes)} of {job.members} nodes"
    room = state.room(once_gone=True, without=ended)
    for node in nodes:
        room[node] = [left - n for left, n in zip(room[node], job.each, strict=True)]
    if any(room[node][r] < 0 for node in nodes for r, n in enumerate(job.each) if n):
        yield f"{job.name} has no room"
    if not state.keeps_limits(job, job.size, once_gone=True, without=ended):
        yield f"{job.name} exceeds a limit"


def _unmet(state: State, least_cost: Oracle) -> Iterator[str]:
    """Gangs that claim nothing, although some victims suffice."""
    for job in state.waiting:
        right = rules.claim(state.world, state.running, job, state.now)
        if right is not None and least_cost(state, job, right) is not None:
            yield f"{job.name} claims nothing, and could"


def victims(state: State, claim: Claim) -> frozenset[Item]:
    """The items that a claim ends."""
    jobs = {job.name: job for job in state.jobs}
    ended = set[rules.Item]()
    for victim in claim.victims:
        job = jobs[victim.gang.name]
        numbers = {_pod(job, extra.number): extra.number for extra in job.extras}
        ended |= {
            (job.name, numbers[member.key.name])
            for member in victim.members
            if member.key.name in numbers
        }
        ended |= {(job.name, 0)} if victim.is_whole else set()
    return frozenset(ended)


def snapshot(state: State) -> Snapshot:
    """The cluster, all gangs with their members, all that run with a record."""
    gangs = [_gang(state, job) for job in state.jobs]
    used: dict[NodeName, list[Resources]] = {}
    for gang in gangs:
        for member in gang.members:
            if member.node is not None:
                used.setdefault(member.node, []).append(member.shape.requests)
    nodes = tuple(
        Node(name, _resources(amounts, pods=rules.PODS), used=Resources.total(used.get(name, [])))
        for i, amounts in enumerate(state.world.nodes)
        for name in [NodeName(f"n{i}")]
    )
    records = [
        _start(job, gang)
        for job, gang in zip(state.jobs, gangs, strict=True)
        if state.world.teams and job.start is not None and not job.single
    ]
    return Snapshot(
        float(state.now),
        nodes,
        tuple(sorted(gangs, key=lambda gang: gang.key)),
        start_records=tuple(sorted(records, key=lambda held: held.gang)),
        namespaces=(Namespace(NAMESPACE),),
        queues=tuple(_queue(state, name) for name in sorted(state.world.teams)),
        budgets=tuple(
            DisruptionBudget(
                NAMESPACE,
                name,
                (Requirement(name, "Exists"),),
                allowed,
                state.world.budgets[name],
            )
            for name, allowed in state.allowed
        ),
        jobs={
            (NAMESPACE, job.name): owners.Job(NAMESPACE, job.name, job.failures_left)
            for job in state.jobs
            if job.failures_left
        },
    )


def _declared(state: State) -> PreemptionRules:
    teams = [rules.TOP, *state.world.teams]
    spent: dict[GangKey, Fraction] = {_key(job): job.lost for job in state.jobs if job.lost}
    protected = frozenset(_key(job) for job in state.jobs if job.never)
    modes = {team: Preemption(state.world.mode(team)) for team in teams}
    young = (j for j in state.running if rules.is_young(state.world, j, state.now))
    return PreemptionRules(modes, protected, spent, frozenset(map(_key, young)))


def _key(job: Job) -> GangKey:
    return GangKey(NAMESPACE, job.name, POD) if job.single else GangKey(NAMESPACE, job.name)


def _gang(state: State, job: Job) -> Gang:
    queue = "" if job.team == rules.TOP else job.team
    members = [_member(job, f"{job.name}-{i}", job.since) for i in range(job.members)]
    if job.start is not None:
        members = [
            replace(member, node=NodeName(f"n{node}"), bound_at=float(job.start))
            for member, node in zip(members, job.nodes, strict=True)
        ]
    for extra in job.extras:
        member = _member(job, _pod(job, extra.number), job.since)  # it may have waited for long
        bound_at = float(extra.start)
        members.append(replace(member, node=NodeName(f"n{extra.node}"), bound_at=bound_at))
    for i, leaving in enumerate(one for one in state.leaving if one.job == job.name):
        member = _member(job, f"{job.name}-gone-{i}", job.since)
        member = replace(member, bound_at=0.0, terminating=True)  # of the gang, in each state
        members.append(replace(member, node=NodeName(f"n{leaving.node}")))
    if job.single:
        members = [replace(member, key=PodKey(NAMESPACE, job.name), group="") for member in members]
    return Gang(
        _key(job),
        Uid(job.name),
        job.members,
        created=float(job.since),
        queue=queue,
        is_protected=job.never and not job.single,
        members=tuple(sorted(members, key=lambda member: member.key)),
    )


def _pod(job: Job, number: int) -> str:
    return f"{job.name}-x{number:03}"


def _member(job: Job, name: str, created: int) -> Member:
    key = PodKey(NAMESPACE, name)
    shape = Shape(_requests(job.each))
    return Member(
        key,
        Uid(name),
        "1",
        shape,
        float(created),
        group=job.name,
        priority=job.priority,
        labels=tuple((name, "") for name in sorted(job.budgets)),
        grace_seconds=job.grace,
        owner=None if job.failures_left is None else owners.Owner("Job", job.name, "batch"),
    )


def _start(job: Job, gang: Gang) -> Reservation:
    """What is left of the Reservation that a gang started with: the record, and its pods."""
    record = _record(job, job.start or 0)
    charged = tuple(sorted(member.uid for member in gang.members))
    return Reservation(gang.key, gang.uid, 1, "tutti", "", 0.0, (), record=record, charged=charged)


def _record(job: Job, start: int) -> QueueRecord:
    uid = Uid("" if job.team == rules.TOP else job.team)
    requests = _requests(job.each).scaled(job.members)
    minimum = (RoleAtStart("", job.members, requests),)
    return QueueRecord(job.team, uid, float(start), minimum, job.protected)


def _queue(state: State, name: str) -> Queue:
    team = state.world.teams[name]
    parent = "" if team.parent == rules.TOP else team.parent
    guaranteed, limits = (
        tuple((str(r), n) for r, n in enumerate(declared) if n is not None)
        for declared in (team.guarantee, team.limit)
    )
    most = inf if team.most_grace is None else float(team.most_grace)
    return Queue(
        name,
        Uid(name),
        parent,
        guaranteed,
        limits,
        max_grace_seconds=most,
        min_run_seconds=float(team.least_run),
    )


def _requests(amounts: Amounts) -> Resources:
    return _resources(amounts, pods=1)


def _resources(amounts: Amounts, *, pods: int) -> Resources:
    return Resources.of({**{str(r): n for r, n in enumerate(amounts)}, "pods": pods})
