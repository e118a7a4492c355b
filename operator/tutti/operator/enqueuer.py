"""Tells jobs that have no pods yet that there is room, so that their pods are created.

Some controllers create the pods of a job only after its status says that there is room. The gangs
of such jobs are planned beside all other gangs as if they had pods, and the jobs that the plan
places are told. Nothing is reserved: the pods are planned again once they exist. The status of such
a gang decides only whether the job is told. Jobs that name another scheduler are left alone.
"""

import logging
import math
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from ..gang import demand
from ..kube import errors
from ..kube.client import Api
from ..kube.concurrency import ConcurrencyLimit, is_away
from ..kube.gang_sources import GangObject, JobPods, job_kind
from ..model.cluster import Gang, Snapshot
from ..model.decisions import Plan
from ..model.keys import GangKey, Uid
from ..model.resources import Resources
from ..state import waiting_jobs
from ..state.cluster_state import ClusterState
from ..state.waiting_jobs import PodBudget, WaitingJob, with_pods

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0  # seconds between two plans that include jobs without pods
AGAIN_SECONDS = 5.0  # seconds until the next try for a job that was tried or could not be told
ENQUEUED_SECONDS = 10.0  # seconds for which an enqueued job counts as if it had its pods
UNREAD_SECONDS = 60.0  # seconds until a job that is gone or could not be read is read again
MOST_JOBS = 100  # in one plan; later plans include the others
MOST_REMEMBERED = 1_000  # jobs whose templates are kept
MOST_PODS_UNFIT = 1_000  # a larger job without room never gets its pods


class _Size(NamedTuple):
    """How many pods a job needs, as it was read last."""

    generation: int
    pods: int
    read_at: float


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
        self._sizes: dict[Uid, _Size] = {}  # also of jobs whose templates are not kept
        self._foreign: set[Uid] = set()  # gangs of jobs that name another scheduler
        self._tried: dict[Uid, float] = {}  # when a job was last tried
        self._left_out: dict[Uid, float] = {}  # since when a large job has had no place in a plan
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
        waiting = [pair for pair in waiting if pair[0].uid not in self._foreign]
        if not waiting:
            return
        self._look_at = now + LOOK_SECONDS
        due = [pair for pair in waiting if not self._is_put_off(pair[0].uid, now)]
        expected = [job for job in self._expected(snapshot, now) if job.group.uid not in uids]
        most = waiting_jobs.most_pods(snapshot)
        told = sum(waiting_jobs.pods_in_plan(job.pods, most) for job in expected)
        jobs = await self._read(due, now, most, told)
        jobs = [job for job in jobs if not job.group.unsupported_fields]
        starved = [job for job in jobs if self._is_starved(job.group, job.gang, now)]
        others = [job for job in jobs if job not in starved]
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
        placed = await self._placed(snapshot, planned, with_roles, plan_of)
        promised = Resources.total(job.group.min_resources for job in expected)
        free = waiting_jobs.free_room(snapshot) - promised
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
        self._sizes = {uid: size for uid, size in self._sizes.items() if uid in here}
        self._foreign.intersection_update(here)
        self._tried = {uid: at for uid, at in self._tried.items() if uid in here}
        self._left_out = {uid: at for uid, at in self._left_out.items() if uid in here}
        self._put_off = {uid: until for uid, until in self._put_off.items() if uid in here}

    def _size(self, group: GangObject) -> _Size | None:
        """What is known of the size of a job; None if it was not read since it changed."""
        size = self._sizes.get(group.uid)
        return None if size is None or size.generation != group.generation else size

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
        if len(due) > MOST_JOBS or any(group.uid in self._left_out for group, _ in due):
            is_all_tried = all(group.uid in self._tried for group, _ in due)
            moments.append(now + (AGAIN_SECONDS if is_all_tried else LOOK_SECONDS))
        return min((at for at in moments if at > now), default=None)

    def _turn(self, group: GangObject, gang: Gang, now: float) -> tuple[Any, ...]:
        """The place of a job in the order of jobs to try.

        Starved jobs come first, then those that are left out of plans, then the jobs tried or read
        longest ago, and of these the highest priority. A job that changes is read again, so it does
        not come before others for having been left out.
        """
        tried = _past(self._tried.get(group.uid), now)
        if (size := self._sizes.get(group.uid)) is not None:
            tried = max(tried, _past(size.read_at, now))
        is_starved = self._is_starved(group, gang, now)
        is_left_out = self._size(group) is not None and group.uid in self._left_out
        place = _past(self._left_out[group.uid], now) if is_left_out else math.inf
        return not is_starved, place, tried, -gang.priority, gang.created, gang.key

    def _in_turn(
        self, jobs: Iterable[tuple[GangObject, Gang]], now: float, most: int, told: int
    ) -> list[tuple[GangObject, Gang]]:
        """The first jobs, without the large jobs that have no place beside those before them.

        Jobs that were not read yet, and jobs that no plan includes, need no place. Half of the jobs
        are large at most, so that new small jobs need not wait for them.
        """
        budget = PodBudget(told, MOST_JOBS // 2)
        turn: list[tuple[GangObject, Gang]] = []
        for group, gang in jobs:
            is_planned = not (group.unsupported_fields or self._is_starved(group, gang, now))
            size = self._size(group) if is_planned else None
            pods = 0 if size is None else waiting_jobs.pods_in_plan(size.pods, most)
            if budget.takes(pods):
                turn.append((group, gang))
            else:
                self._left_out.setdefault(group.uid, now)
            if len(turn) == MOST_JOBS:
                break
        return turn

    async def _read(
        self, due: Iterable[tuple[GangObject, Gang]], now: float, most: int, told: int
    ) -> list[WaitingJob]:
        """Up to ``MOST_JOBS`` jobs to try now, with roles; without foreign and unreadable jobs.

        A plan may place jobs of up to ``most`` pods, and has ``told`` pods of jobs in any case.
        """
        ordered = sorted(due, key=lambda pair: self._turn(pair[0], pair[1], now))
        turn = self._in_turn(ordered, now, most, told)
        unread = [pair for pair in turn if (pair[0].uid, pair[0].generation) not in self._pods]
        await self._gate.all(partial(self._read_one, group, gang, now) for group, gang in unread)
        turn = self._in_turn(turn, now, most, told)
        self._tried.update((group.uid, now) for group, _ in turn)
        for group, _ in turn:
            self._left_out.pop(group.uid, None)
        jobs = [
            WaitingJob(group, gang, pods.roles, self._sizes[group.uid].pods)
            for group, gang in turn
            if (pods := self._pods.get((group.uid, group.generation))) is not None
        ]
        self._pods = dict(list(self._pods.items())[-MOST_REMEMBERED:])
        return jobs

    async def _read_one(self, group: GangObject, gang: Gang, now: float) -> None:
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
        needed = waiting_jobs.pods_needed(gang, pods.roles)
        self._sizes[group.uid] = _Size(group.generation, needed, now)
        self._state.claim_job(group)

    async def _placed(
        self,
        snapshot: Snapshot,
        jobs: Iterable[WaitingJob],
        expected: Iterable[WaitingJob],
        plan_of: Callable[[Snapshot], Awaitable[Plan]],
    ) -> frozenset[GangKey]:
        """The gangs that a plan places of these jobs and of the ``expected`` jobs beside them."""
        most = waiting_jobs.most_pods(snapshot)
        gangs = {job.gang.key: made for job in jobs if (made := with_pods(job, most)) is not None}
        if not gangs:
            return frozenset()
        beside = ((job.gang.key, with_pods(job, most)) for job in expected)
        gangs.update((key, made) for key, made in beside if made is not None)
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


def _past(at: float | None, now: float) -> float:
    """A moment; minus infinity if there is none, or if it is to come, as the clock went back."""
    return at if at is not None and at <= now else -math.inf
