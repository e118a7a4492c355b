"""Clusters of the oracle as Snapshots, and plans of Tutti as its answers: all that knows Tutti."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tutti.model.cluster import Gang, Member, Namespace, Node, Reservation, Snapshot
from tutti.model.decisions import Objective, Plan, Policy
from tutti.model.keys import GangKey, NodeName, PodKey, Uid
from tutti.model.queues import PastUse, Queue, QueueRecord, RoleAtStart
from tutti.model.resources import Resources
from tutti.model.shapes import Shape
from tutti.planning.plan import plan
from tutti.strategies.best_fit import BestFit
from tutti.verify import plan_checks

from ...harness.builders import AMPLE_BUDGET
from . import world as oracle
from .judging import Answer, Judgement, judge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.strategies.problem import Strategy

    from .world import Amounts, World

NAMESPACE = "ml"
NEVER = 1e9


def judged(world: World, strategy: Strategy) -> tuple[Judgement, Plan]:
    """Plan a cluster and judge the plan; what ``verify`` finds is wrong, too."""
    seen = snapshot(world)
    made = plan(seen, strategy, BestFit(), AMPLE_BUDGET, policy(world))
    judgement = judge(world, answer(made))
    broken = plan_checks.violations(seen, made)
    return judgement._replace(wrong=(*broken, *judgement.wrong)), made


def policy(world: World) -> Policy:
    """What is aimed for; ages count for starvation alone."""
    objective = Objective(world.objective)
    return Policy(objective, age_seconds=NEVER, starvation_seconds=min(world.starving, NEVER))


def answer(plan: Plan) -> Answer:
    """What the plan starts where, by the numbers of pods and nodes."""
    placed = {
        placement.gang.name: {
            int(assignment.pod.name.rpartition("-")[2]): int(assignment.node[1:])
            for assignment in placement.assignments
        }
        for placement in plan.placements
    }
    return Answer(placed, plan.proved)


def snapshot(world: World) -> Snapshot:
    """The cluster; all gangs that run have a record."""
    gangs = tuple(sorted((_gang(gang) for gang in world.gangs), key=lambda gang: gang.key))
    pods = [pod for gang in world.gangs for pod in gang.pods if pod.node is not None]
    nodes = tuple(
        Node(
            NodeName(f"n{i}"),
            _resources(amounts),
            used=Resources.total(_resources(pod.takes) for pod in pods if pod.node == i),
        )
        for i, amounts in enumerate(world.nodes)
    )
    records = tuple(
        sorted((_record(gang) for gang in world.gangs if gang.at_start), key=lambda one: one.gang)
    )
    queues = tuple(sorted(_queues(world), key=lambda queue: queue.name))
    return Snapshot(
        float(world.now),
        nodes,
        gangs,
        namespaces=(Namespace(NAMESPACE),),
        start_records=records,
        queues=queues,
    )


def _queues(world: World) -> Iterator[Queue]:
    for name, team in world.teams.items():
        parent = "" if team.parent == oracle.ROOT else team.parent
        guaranteed, limits = _declared(team.guarantee), _declared(team.limit)
        past = None
        if team.past is not None:
            mean, share, halvings = team.past
            past = PastUse(mean * 10_000, share * 10_000, world.now - 60.0 * halvings, 60.0)
        uid = Uid(name)
        yield Queue(name, uid, parent, guaranteed, limits, team.weight, past_use=past)


def _declared(amounts: tuple[int | None, ...]) -> tuple[tuple[str, int], ...]:
    named = zip(_names(amounts), amounts, strict=True)
    return tuple(sorted((name, n) for name, n in named if n is not None))


def _gang(gang: oracle.Gang) -> Gang:
    members = []
    for i, pod in enumerate(gang.pods):
        key = _pod_key(gang, i)
        created = float(gang.since - pod.age)
        member = Member(key, Uid(str(key)), "1", Shape(_resources(pod.takes)), created)
        node = None if pod.node is None else NodeName(f"n{pod.node}")
        members.append(
            replace(
                member,
                group=gang.name,
                priority=gang.priority,
                node=node,
                bound_at=None if node is None else 0.0,  # before there were Queues
                terminating=pod.leaves,
            )
        )
    queue = "" if gang.team == oracle.ROOT else gang.team
    own, since = GangKey(NAMESPACE, gang.name), float(gang.since)
    return Gang(own, Uid(gang.name), gang.need, created=since, queue=queue, members=tuple(members))


def _record(gang: oracle.Gang) -> Reservation:
    uid = Uid("" if gang.team == oracle.ROOT else gang.team)
    at_start = (RoleAtStart("", gang.need, _resources(gang.at_start)),)
    record = QueueRecord(gang.team, uid, float(gang.start), at_start)
    named = (Uid(str(_pod_key(gang, i))) for i, pod in enumerate(gang.pods) if pod.node is not None)
    key = GangKey(NAMESPACE, gang.name)
    spent = Reservation(key, Uid(gang.name), 1, "tutti", "", 0.0, (), record=record)
    return replace(spent, charged=tuple(named))


def _pod_key(gang: oracle.Gang, number: int) -> PodKey:
    return PodKey(NAMESPACE, f"{gang.name}-{number}")


def _names(amounts: tuple[object, ...]) -> list[str]:
    return [*(f"r{i}" for i in range(len(amounts) - 1)), "pods"]


def _resources(amounts: Amounts) -> Resources:
    return Resources.of(dict(zip(_names(amounts), amounts, strict=True)))
