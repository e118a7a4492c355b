"""What others say in their tests, and what we answer: plans, divisions and shares.

An amount without a unit is of GPUs. Amounts are counted in hundredths, because some are fractions.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import NamedTuple, Protocol

from tutti.model import queues as modes
from tutti.model.cluster import Node
from tutti.model.decisions import Claim, Placement, Policy
from tutti.model.keys import NodeName, Uid
from tutti.model.queues import Queue, QueueRecord, RoleAtStart, Stop
from tutti.model.resources import Resources
from tutti.model.shapes import Shape
from tutti.planning.plan import plan
from tutti.queues.share import Shares
from tutti.queues.tree import QueueTree
from tutti.strategies import STRATEGIES
from tutti.verify.plan_checks import violations
from tutti.verify.preemption import checks as preemption_checks

from ....harness.builders import (
    AMPLE_BUDGET,
    GangBuilder,
    NodeBuilder,
    Part,
    applied,
    gang,
    reservation,
    snapshot_of,
    space,
)

Amounts = Mapping[str, float]  # by resource
Answer = Mapping[str, float]

MOST_PLANS = 5
PATIENT = Policy(age_seconds=1e9, starvation_seconds=1e9)


class Quota(NamedTuple):
    """What a queue declares; one that drains does so since before all gangs were created."""

    guaranteed: Amounts
    limits: Amounts
    weight: int = 1
    parent: str = ""
    drains: bool = False


class Job(NamedTuple):
    """A gang of equal members, of which the first ``running`` are on a node."""

    queue: str
    each: Amounts
    priority: int = 0
    members: int = 1
    needed: int = 1
    running: int = 0
    nodes: Sequence[int] = (0,)  # of the running members; the last is that of all others
    leaves: bool = False
    is_protected: bool = False
    copies: str = ""  # the name that equal jobs have together


class Question(Protocol):
    """What can be answered by us, too."""

    def answer(self) -> Answer:
        """Our answer."""


class Scene(NamedTuple):
    """Who starts, with how many members. Jobs stand in the order in which they came."""

    queues: Mapping[str, Quota]
    nodes: Sequence[Amounts]
    jobs: Mapping[str, Job]
    are_of_one_age: bool = False

    def answer(self) -> Answer:
        """The number of members that one plan starts, by gang."""
        parts: list[Part] = [space("ml"), *(_node(n, room) for n, room in enumerate(self.nodes))]
        queues = {name: _queue(name, quota) for name, quota in self.queues.items()}
        parts += queues.values()
        for place, (name, job) in enumerate(self.jobs.items()):
            parts += _gang(name, job, queues[job.queue], 0 if self.are_of_one_age else place)
        snapshot = snapshot_of(*parts, at=1000.0)
        made = plan(snapshot, STRATEGIES["ilp"](), STRATEGIES["bestfit"](), AMPLE_BUDGET, PATIENT)
        assert violations(snapshot, made) == ()
        assert made.evictions == ()
        return {placed.gang.name: len(placed.assignments) for placed in made.placements}


class Preemption(NamedTuple):
    """Who starts and who ends, where a gang that waits may have others ended.

    Jobs stand in the order in which they came. What runs started in this order, or at once.
    """

    queues: Mapping[str, Quota]
    nodes: Sequence[Amounts]
    jobs: Mapping[str, Job]
    is_at_once: bool = False

    def answer(self) -> Answer:
        """The members that one plan starts, or claims room for, by gang; negative if they end.

        Plans follow until one claims room, or starts nothing. Which of several copies start or end
        is left open.
        """
        parts: list[Part] = [space("ml"), *(_node(n, room) for n, room in enumerate(self.nodes))]
        queues = {name: _queue(name, quota) for name, quota in self.queues.items()}
        parts += queues.values()
        for place, (name, job) in enumerate(self.jobs.items()):
            created = 0 if self.is_at_once and job.running else place
            parts += _gang(name, job, queues[job.queue], created)
        snapshot = snapshot_of(*parts, at=1000.0)
        policy = replace(PATIENT, preemption=modes.Preemption.FULL)
        names = {name: job.copies or name for name, job in self.jobs.items()}
        changes = Counter[str]()
        for _ in range(MOST_PLANS):
            made = plan(
                snapshot, STRATEGIES["ilp"](), STRATEGIES["bestfit"](), AMPLE_BUDGET, policy
            )
            assert violations(snapshot, made) == ()
            assert preemption_checks.faults(snapshot, made, policy.preemption) == ()
            starts: list[Placement | Claim] = [*made.placements, *made.claims]
            for start in starts:
                changes[names[start.gang.name]] += len(start.assignments)
            for victim in (victim for claim in made.claims for victim in claim.victims):
                changes[names[victim.gang.name]] -= len(victim.members)
            if made.claims or not made.placements:
                return changes
            snapshot = applied(snapshot, made)
        raise AssertionError("the plans do not come to rest")


class Division(NamedTuple):
    """What each queue gets of GPUs: it wants so many, in gangs of one size that came at once."""

    queues: Mapping[str, Quota]
    total: float
    wants: Mapping[str, float]
    size: float

    def answer(self) -> Answer:
        """What the gangs request that one plan starts, by queue."""
        jobs = {
            f"{queue}-{n:03}": Job(queue, {"gpu": self.size})
            for queue, wanted in self.wants.items()
            for n in range(int(wanted / self.size))
        }
        scene = Scene(self.queues, [{"gpu": self.total}], jobs, are_of_one_age=True)
        started = scene.answer()
        return {
            queue: self.size * sum(jobs[name].queue == queue for name in started)
            for queue in self.wants
        }


class Use(NamedTuple):
    """What queues have of a share in the cluster."""

    queues: Mapping[str, Quota]
    totals: Amounts
    uses: Mapping[str, Amounts]
    shown: Sequence[str]

    def answer(self) -> Answer:
        """The shares of some queues in thousandths, rounded up."""
        tree = QueueTree.of(_queue(name, quota) for name, quota in self.queues.items())
        charges = {name: _resources(use) for name, use in self.uses.items()}
        shares = Shares(tree, _hundredths(self.totals), charges)
        below = shares.below()
        return {name: ceil(shares.share(name, below[name]) * 1000) for name in self.shown}


def _hundredths(amounts: Amounts) -> dict[str, int]:
    return {name: round(amount * 100) for name, amount in amounts.items()}


def _resources(amounts: Amounts, pods: int = 0) -> Resources:
    return Resources.of({**_hundredths(amounts), "pods": pods})


def _queue(name: str, quota: Quota) -> Queue:
    guaranteed, limits = (
        tuple(sorted(_hundredths(part).items())) for part in (quota.guaranteed, quota.limits)
    )
    queue = Queue(name, Uid(f"{name}-uid"), quota.parent, guaranteed, limits, quota.weight)
    return replace(queue, stop=Stop.DRAIN, draining_since=0.0) if quota.drains else queue


def _node(place: int, room: Amounts) -> NodeBuilder:
    return NodeBuilder(Node(NodeName(f"n{place}"), _resources(room, pods=500)))


def _gang(name: str, job: Job, queue: Queue, created: float) -> Sequence[Part]:
    """The gang, and the record of its start if it runs."""
    made = gang(name).of(job.members).each(shape=Shape(_resources(job.each, pods=1)))
    made = made.needing(job.needed).priority(job.priority)
    made = made.but(queue=job.queue, created=created, is_protected=job.is_protected)
    if not job.running:
        return (made,)
    places = [*job.nodes, *[job.nodes[-1]] * job.running][: job.running]
    made = made.bound_on(*[f"n{place}" for place in places]).each(terminating=job.leaves)
    return made, _record(made, job, queue, created + 1.0)


def _record(gang: GangBuilder, job: Job, queue: Queue, started: float) -> Part:
    needed = _resources(job.each, pods=1).scaled(job.needed)
    starts = (RoleAtStart("", job.needed, needed),)
    record = QueueRecord(queue.name, queue.uid, started, starts, is_protected=job.is_protected)
    return replace(reservation(gang), record=record)
