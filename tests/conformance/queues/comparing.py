"""What ``tutti.queues`` answers beside the reference: the only module here that knows Tutti."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from tutti.model.cluster import Phase
from tutti.model.keys import GangKey, NodeName, Uid
from tutti.model.queues import ROOT, PastUse, Queue, QueueRecord, RoleAtStart
from tutti.model.resources import Resources
from tutti.queues import charge, cover, limits, share
from tutti.queues.tree import QueueTree

from ...harness.builders import GPU, gang, member, resources, shape
from . import plans, reference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .charges import Crew
    from .plans import Answer
    from .reference import Amounts, Job, World


def differences(world: World, answer: Answer) -> Iterator[str]:
    """One sentence for each answer that is another than the reference's."""
    tree = _tree(world)
    running = [j for j in world.jobs if j.start is not None]
    waiting = [j for j in world.jobs if j.start is None]
    yield from _of_cover(world, tree, running)
    yield from _of_cover(world, tree, [*running, *answer.starts])
    for some in plans.subsets(waiting):
        ours = cover.would_be_covered(tree, _queued(running), _queued(some))
        if ours != plans.are_covered(world, running, some):
            yield f"would {[j.name for j in some]} be covered: {ours}"
    charges: dict[str, Resources] = {}
    for job in running:
        charges[job.team] = charges.get(job.team, Resources()) + _charge(job)
    shares = share.Shares(tree, _amounts(world.total), charges)
    ours_turns = share.turns(shares, [_borrower(job) for job in waiting])
    if {t.gang.key.name: t.steps for t in ours_turns} != reference.turns(world, running, waiting):
        yield f"turns: {ours_turns}"
    yield from _of_limits(world, tree, running, waiting)


def _of_cover(world: World, tree: QueueTree, jobs: list[Job]) -> Iterator[str]:
    found = cover.walk(tree, _queued(reversed_(jobs)))
    ours = {(gang.name, 0): by for gang, by in found.gangs.items()}
    ours |= {(gang.name, int(pod)): by for (gang, pod), by in found.extras.items()}
    if ours != reference.cover(world, jobs):
        yield f"cover: {ours}"


def _of_limits(
    world: World, tree: QueueTree, running: list[Job], waiting: list[Job]
) -> Iterator[str]:
    queues = {_key(j): j.team for j in world.jobs}
    found = limits.limits(tree, queues, {_key(j): _charge(j) for j in running})
    for job in waiting:
        may = reference.within_limits(world, running, [*running, job])
        if may != (not [*limits.obstacles(found, _key(job), _resources(job.size))]):
            yield f"limits of {job.name}"


def charge_differences(crew: Crew) -> Iterator[str]:
    """Whether Tutti charges a gang otherwise."""
    members = [
        replace(
            member(f"{pod.number:06}", shape(gpu=pod.size)),
            created=float(pod.number),
            node=NodeName("n"),
            terminating=pod.state == "leaves",
            phase=Phase.SUCCEEDED if pod.state == "succeeded" else Phase.RUNNING,
        )
        for pod in crew.pods
    ]
    made = replace(gang(crew.name).needing(crew.need).made, members=tuple(members))
    start = RoleAtStart("", crew.need, resources(gpu=crew.at_start))
    done = min(sum(pod.state == "succeeded" for pod in crew.pods), crew.need)
    record = QueueRecord("q", Uid("q"), 0.0, (start,), succeeded=(("", done),))
    joined = {member.uid: n for n, member in enumerate(members)}
    ours = charge.gang_charge(made, None, record, (), joined).total[GPU]
    if ours != crew.charge:
        yield f"{crew} is charged {crew.charge}, and not {ours}"


def reversed_(jobs: list[Job]) -> list[Job]:
    """In another order: answers do not depend on it."""
    return jobs[::-1]


def _tree(world: World) -> QueueTree:
    return QueueTree.of(queues(world))


def queues(world: World) -> Iterator[Queue]:
    """The queues of a cluster."""
    for name, team in world.teams.items():
        yield Queue(
            name,
            Uid(name),
            "" if team.parent == reference.TOP else team.parent,
            _declared(team.guarantee),
            _declared(team.limit),
            team.weight,
            past_use=None if team.past is None else _past(*team.past),
        )


def _past(mean: int, share: int, halvings: int) -> PastUse:
    return PastUse(mean * 10_000, share * 10_000, -60.0 * halvings, 60.0)


def _declared(amounts: tuple[int | None, ...]) -> tuple[tuple[str, int], ...]:
    return tuple((str(r), n) for r, n in enumerate(amounts) if n is not None)


def _amounts(amounts: Amounts) -> dict[str, int]:
    return {str(r): n for r, n in enumerate(amounts)}


def _resources(amounts: Amounts) -> Resources:
    return Resources.of(_amounts(amounts))


def _key(job: Job) -> GangKey:
    return GangKey("ns", job.name)


def _charge(job: Job) -> Resources:
    return _resources(tuple((job.members + job.extras) * n for n in job.each))


def _queued(jobs: list[Job]) -> list[cover.QueuedGang]:
    return [
        cover.QueuedGang(
            _key(job),
            job.team,
            job.priority,
            _resources(job.size),
            tuple((str(n), _resources(job.each)) for n in range(1, job.extras + 1)),
            started=inf if job.start is None else float(job.start),
        )
        for job in jobs
    ]


def _borrower(job: Job) -> share.Borrower:
    return share.Borrower(_key(job), job.team, job.priority, float(job.since), _resources(job.size))


assert ROOT == reference.TOP
