"""Tells jobs that have no pods yet that there is room, so that their pods are created.

Some controllers create the pods of a job only after its status says that there is room. The gangs
of such jobs are planned beside all other gangs as if they had pods, and the jobs that the plan
places are told. Nothing is reserved: the pods are planned again once they exist. The status of such
a gang decides only whether the job is told. Jobs that name another scheduler are left alone.
"""

import logging
import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..gang import demand, slots
from ..kube import errors
from ..kube.client import Api
from ..kube.concurrency import ConcurrencyLimit, is_away
from ..kube.gang_sources import GangObject, JobPods, job_kind
from ..model.cluster import Gang, Role, Snapshot
from ..model.decisions import Plan
from ..model.keys import GangKey, Uid
from ..model.resources import Resources
from ..state.cluster_state import ClusterState

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0  # seconds between two plans that include jobs without pods
AGAIN_SECONDS = 5.0  # seconds until the next try for a job that was tried or could not be told
ENQUEUED_SECONDS = 10.0  # seconds for which an enqueued job counts as if it had its pods
UNREAD_SECONDS = 60.0  # seconds until a job that is gone or could not be read is read again
MOST_JOBS = 100  # in one plan; later plans include the others
MOST_REMEMBERED = 1_000  # jobs whose templates are kept
MOST_PODS_UNFIT = 1_000  # a larger job without room never gets its pods


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A gang without pods, with the roles of its job; a job without roles has only its totals."""

    group: GangObject
    gang: Gang
    roles: tuple[Role, ...]


class Enqueuer:
    """Remembers the pod templates of jobs, and when to look at the jobs again."""

    def __init__(
        self,
        state: ClusterState,
        api: Api,
        *,
        scheduler: str,
        clock: Callable[[], float],
        in_flight: int,
        starvation_seconds: float,
    ) -> None:
        """``scheduler`` is the scheduler name of the jobs that Tutti may enqueue.

        A job that waits for ``starvation_seconds`` is told even without room. Its pods then starve
        as a gang, because Tutti holds room for starved gangs only if they have pods.
        """
        self._state = state
        self._api = api
        self._scheduler = scheduler
        self._clock = clock
        self._gate = ConcurrencyLimit(in_flight)
        self._starvation_seconds = starvation_seconds
        self._pods: dict[tuple[Uid, int], JobPods] = {}  # by gang and generation
        self._foreign: set[Uid] = set()  # gangs of jobs that name another scheduler
        self._tried: dict[Uid, float] = {}  # when a job was last tried
        self._put_off: dict[Uid, float] = {}  # the time until which a job is left alone
        self._enqueued: dict[Uid, tuple[WaitingJob, float]] = {}  # and until when it counts
        self._look_at = 0.0  # when the next plan may include jobs
        self._next: float | None = None

    def next_retry(self) -> float | None:
        """The seconds until there is work without a change of the cluster, or None."""
        return None if self._next is None else max(0.0, self._next - self._clock())

    async def enqueue(
        self, snapshot: Snapshot, plan_of: Callable[[Snapshot], Awaitable[Plan]]
    ) -> None:
        """Tell the jobs that a plan places in the Snapshot with their future pods.

        Raises:
            errors.ApiError: the API server is away.
        """
        now = self._clock()
        self._next = None
        waiting = list(self._state.awaiting_room())
        if waiting and now < self._look_at <= now + LOOK_SECONDS:
            self._next = self._look_at
            return
        uids = {group.uid for group, _ in waiting}
        self._forget_all_but(uids)
        waiting = [one for one in waiting if one[0].uid not in self._foreign]
        if not waiting:
            return
        self._look_at = now + LOOK_SECONDS
        due = [one for one in waiting if not self._is_put_off(one[0].uid, now)]
        jobs = [job for job in await self._read(due, now) if not job.group.unsupported_fields]
        starved = [job for job in jobs if self._is_starved(job.group, job.gang, now)]
        others = [job for job in jobs if job not in starved]
        expected = [job for job in self._expected(snapshot, now) if job.group.uid not in uids]
        with_room = await self._with_room(snapshot, others, expected, plan_of)
        await self._gate.all(partial(self._write_room, job.group) for job in (*starved, *with_room))
        self._enqueued.update((job.group.uid, (job, now + ENQUEUED_SECONDS)) for job in with_room)
        self._next = self._next_moment(waiting, due)

    def _expected(self, snapshot: Snapshot, now: float) -> list[WaitingJob]:
        """The recently enqueued jobs that do not have all the pods that they need yet."""
        members = {gang.uid: len(gang.members) for gang in snapshot.gangs}
        self._enqueued = {
            uid: (job, until)
            for uid, (job, until) in self._enqueued.items()
            if now < until <= now + ENQUEUED_SECONDS
            and members.get(uid, 0) < demand.min_members(job.gang)
        }
        return [job for job, _ in self._enqueued.values()]

    async def _with_room(
        self,
        snapshot: Snapshot,
        jobs: Collection[WaitingJob],
        expected: Collection[WaitingJob],
        plan_of: Callable[[Snapshot], Awaitable[Plan]],
    ) -> list[WaitingJob]:
        """The jobs that fit together, beside the ``expected`` pods.

        A plan places the jobs with roles. Of the jobs without roles, only the sum of their
        resources counts.
        """
        planned = [job for job in jobs if job.roles]
        with_roles = [job for job in expected if job.roles]
        has_sized_job = len(with_roles) < len(expected)
        placed = await self._placed(snapshot, (*planned, *with_roles), plan_of) if planned else ()
        free = _free(snapshot) - Resources.total(job.group.min_resources for job in expected)
        with_room = []
        for job in (*planned, *(job for job in jobs if not job.roles)):
            has_room = job.group.min_resources.fits(free)
            if job.roles:
                has_room = job.gang.key in placed and (has_room or not has_sized_job)
            if has_room:
                with_room.append(job)
                free -= job.group.min_resources
        return with_room

    def _forget_all_but(self, here: Collection[Uid]) -> None:
        """Forget the gangs that no longer wait."""
        self._pods = {key: pods for key, pods in self._pods.items() if key[0] in here}
        self._foreign.intersection_update(here)
        self._tried = {uid: at for uid, at in self._tried.items() if uid in here}
        self._put_off = {uid: until for uid, until in self._put_off.items() if uid in here}

    def _is_put_off(self, uid: Uid, now: float) -> bool:
        """Whether a job is left alone for now; not if the clock went back."""
        return now < self._put_off.get(uid, now) <= now + UNREAD_SECONDS

    def _is_starved(self, group: GangObject, gang: Gang, now: float) -> bool:
        is_old = now - gang.created >= self._starvation_seconds
        may_be_told = not group.unsupported_fields and demand.min_members(gang) <= MOST_PODS_UNFIT
        return is_old and may_be_told

    def _next_moment(
        self, waiting: Iterable[tuple[GangObject, Gang]], due: Collection[tuple[GangObject, Gang]]
    ) -> float | None:
        """When the first job starves, may be tried again, or stops counting."""
        now = self._clock()
        moments = [gang.created + self._starvation_seconds for _, gang in waiting]
        moments += self._put_off.values()
        moments += (until for _, until in self._enqueued.values())
        if len(due) > MOST_JOBS:
            is_all_tried = all(group.uid in self._tried for group, _ in due)
            moments.append(now + (AGAIN_SECONDS if is_all_tried else LOOK_SECONDS))
        return min((at for at in moments if at > now), default=None)

    def _turn(self, group: GangObject, gang: Gang, now: float) -> tuple[Any, ...]:
        """Starved jobs first, then the jobs tried longest ago, of these the highest priority."""
        tried = self._tried.get(group.uid, -math.inf)
        if tried > now:  # the clock went back
            tried = -math.inf
        is_starved = self._is_starved(group, gang, now)
        return not is_starved, tried, -gang.priority, gang.created, gang.key

    async def _read(self, due: Iterable[tuple[GangObject, Gang]], now: float) -> list[WaitingJob]:
        """Up to ``MOST_JOBS`` jobs to try now, with roles; without foreign and unreadable jobs."""
        turn = sorted(due, key=lambda one: self._turn(one[0], one[1], now))[:MOST_JOBS]
        unread = [group for group, _ in turn if (group.uid, group.generation) not in self._pods]
        await self._gate.all(partial(self._read_one, group) for group in unread)
        self._tried.update((group.uid, now) for group, _ in turn)
        jobs = [
            WaitingJob(group, gang, pods.roles)
            for group, gang in turn
            if (pods := self._pods.get((group.uid, group.generation))) is not None
        ]
        self._pods = dict(list(self._pods.items())[-MOST_REMEMBERED:])
        return jobs

    async def _read_one(self, group: GangObject) -> None:
        try:
            pods = await self._api.read_job_pods(group)
        except (errors.BadObject, errors.ApiError) as problem:
            if isinstance(problem, errors.ApiError) and is_away(problem):
                raise
            self._put_off[group.uid] = self._clock() + UNREAD_SECONDS
            if not isinstance(problem, errors.Gone):  # else its PodGroup will go, too
                logger.warning("gang %s: its job cannot be read: %s", group.key, problem)
            return
        if pods.schedulers != {self._scheduler}:
            self._foreign.add(group.uid)
            return
        if pods.problem:
            logger.warning("gang %s: sized by minResources: %s", group.key, pods.problem)
        self._pods[group.uid, group.generation] = pods
        self._state.claim_job(group)

    async def _placed(
        self,
        snapshot: Snapshot,
        jobs: Iterable[WaitingJob],
        plan_of: Callable[[Snapshot], Awaitable[Plan]],
    ) -> frozenset[GangKey]:
        pods = sum(node.offers("pods") for node in snapshot.nodes)
        gangs = {job.gang.key: made for job in jobs if (made := with_pods(job, pods)) is not None}
        if not gangs:
            return frozenset()
        others = (gang for gang in snapshot.gangs if gang.key not in gangs)
        everyone = tuple(sorted((*others, *gangs.values()), key=lambda gang: gang.key))
        plan = await plan_of(replace(snapshot, gangs=everyone))
        return frozenset(p.gang for p in plan.placements if p.gang in gangs)

    async def _write_room(self, group: GangObject) -> None:
        kind = job_kind(group.key.kind)
        if kind is None:
            return
        try:
            written = await self._api.write_status(group.key, kind.status_with_room, group.version)
        except errors.Gone:
            return
        except errors.Conflict:
            self._put_off[group.uid] = self._clock() + LOOK_SECONDS
            return
        except errors.ApiError as problem:
            if is_away(problem):
                raise
            self._put_off[group.uid] = self._clock() + AGAIN_SECONDS
            logger.error("gang %s was not told of its room: %s", group.key, problem)  # noqa: TRY400
            return
        logger.info("gang %s: its pods are made now", group.key)
        self._state.learn_group(written)


def with_pods(job: WaitingJob, most: int) -> Gang | None:
    """The gang of a job with the pods that it needs; None if it needs more than ``most`` pods."""
    gang = replace(job.gang, roles=job.roles)
    numbers: Mapping[str, int] = slots.absent(gang, {})
    if not demand.min_members(gang) <= sum(numbers.values()) <= most:
        return None
    pods = [pod for role, n in numbers.items() for pod in slots.placeholders(gang, role, n)]
    untyped = tuple(replace(role, template=None) for role in job.roles)
    return replace(gang, roles=untyped, members=tuple(pods))


def _free(snapshot: Snapshot) -> Resources:
    """The sum of free room over all ready, schedulable nodes; negative amounts count as zero."""
    return Resources.total(
        Resources(tuple((name, n) for name, n in (node.allocatable - node.used).amounts if n > 0))
        for node in snapshot.nodes
        if node.ready and not node.unschedulable
    )
