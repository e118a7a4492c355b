"""Jobs whose pods are made once there is room for them: which these are, and telling them so.

Their gangs have no pods yet. They are planned beside all others as if they had, and the jobs that
such a plan places are told. Nothing is reserved by it: the pods are planned anew once they exist.
What the status of such a gang says decides nothing but whether it is told.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from ..gang import demand, slots
from ..kube import errors
from ..kube.client import Api
from ..kube.concurrency import ConcurrencyLimit, is_away
from ..kube.gang_sources import GangObject, job_kind
from ..model.cluster import Gang, Role, Snapshot
from ..model.decisions import Plan
from ..model.keys import GangKey, Uid
from ..model.resources import Resources
from ..state.cluster_state import ClusterState

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0  # between two plans that ask for jobs without pods
AGAIN_SECONDS = 5.0  # until a job is looked at again that could not be read or told
MOST_JOBS = 100  # that one plan asks for: the oldest of the highest priority
MOST_PODS_UNFIT = 1_000  # a larger job that has no room never has its pods made


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A gang without pods, with the roles of its job; without roles only the totals are known."""

    group: GangObject
    gang: Gang
    roles: tuple[Role, ...]


class Enqueuer:
    """Remembers what jobs have said of their pods, and when to look again."""

    def __init__(
        self,
        state: ClusterState,
        api: Api,
        *,
        clock: Callable[[], float],
        in_flight: int,
        starvation_seconds: float,
    ) -> None:
        """After ``starvation_seconds`` a job is told that has no room, so that it starves as pods.

        Only gangs that have pods are given the room that is held for starved ones.
        """
        self._state = state
        self._api = api
        self._clock = clock
        self._gate = ConcurrencyLimit(in_flight)
        self._starvation_seconds = starvation_seconds
        self._roles: dict[tuple[Uid, int], tuple[Role, ...]] = {}  # by gang and generation
        self._put_off: dict[Uid, float] = {}  # until when a job is left alone
        self._look_at = 0.0  # when the next plan may ask for jobs
        self._next: float | None = None

    def next_retry(self) -> float | None:
        """In how many seconds there is something to do without a change of the cluster."""
        return None if self._next is None else max(0.0, self._next - self._clock())

    async def enqueue(
        self, snapshot: Snapshot, plan_of: Callable[[Snapshot], Awaitable[Plan]]
    ) -> None:
        """Tell the jobs that have room in a plan of the Snapshot in which they have pods.

        Raises:
            errors.ApiError: the API server is away.
        """
        now = self._clock()
        self._next = None
        waiting = list(self._state.awaiting_room())
        if not waiting:
            self._roles.clear()
            self._put_off.clear()
            return
        if now < self._look_at:
            self._next = self._look_at
            return
        self._look_at = now + LOOK_SECONDS
        jobs = await self._read([one for one in waiting if self._is_due(one[0], now)])
        told = [job for job in jobs if self._is_starved(job, now)]
        if asked := [job for job in jobs if job not in told and job.roles]:
            placed = await self._placed(snapshot, asked, plan_of)
            told += [job for job in asked if job.gang.key in placed]
        told += [job for job in jobs if not job.roles and job not in told and _fits(snapshot, job)]
        await self._gate.all(partial(self._tell, job.group) for job in told)
        self._next = self._next_moment(waiting)

    def _is_due(self, group: GangObject, now: float) -> bool:
        return self._put_off.get(group.uid, now) <= now

    def _is_starved(self, job: WaitingJob, now: float) -> bool:
        is_old = now - job.gang.created >= self._starvation_seconds
        return is_old and demand.min_members(job.gang) <= MOST_PODS_UNFIT

    def _next_moment(self, waiting: Iterable[tuple[GangObject, Gang]]) -> float | None:
        """When a job has starved, or is worth another try."""
        now = self._clock()
        moments = [gang.created + self._starvation_seconds for _, gang in waiting]
        return min((at for at in (*moments, *self._put_off.values()) if at > now), default=None)

    async def _read(self, waiting: list[tuple[GangObject, Gang]]) -> list[WaitingJob]:
        """The first of these jobs, with their roles, as far as these can be read."""
        waiting.sort(key=lambda one: (-one[1].priority, one[1].created, one[1].key))
        first = waiting[:MOST_JOBS]
        here = {(group.uid, group.generation) for group, _ in first}
        self._roles = {key: roles for key, roles in self._roles.items() if key in here}
        unread = [group for group, _ in first if (group.uid, group.generation) not in self._roles]
        await self._gate.all(partial(self._read_one, group) for group in unread)
        return [
            WaitingJob(group, gang, self._roles[group.uid, group.generation])
            for group, gang in first
            if (group.uid, group.generation) in self._roles
        ]

    async def _read_one(self, group: GangObject) -> None:
        roles: tuple[Role, ...] = ()
        try:
            roles = await self._api.read_roles(group)
        except errors.Gone:
            self._put_off[group.uid] = self._clock() + AGAIN_SECONDS
            return  # its PodGroup will go, too
        except errors.BadObject as problem:
            logger.warning("gang %s: sized by minResources: %s", group.key, problem)
        except errors.ApiError as problem:
            if is_away(problem):
                raise
            logger.warning("gang %s: sized by minResources: %s", group.key, problem)
        self._roles[group.uid, group.generation] = roles

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

    async def _tell(self, group: GangObject) -> None:
        kind = job_kind(group.key.kind)
        if kind is None:
            return
        try:
            told = await self._api.write_status(group.key, kind.status_with_room, group.version)
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
        self._state.learn_group(told)


def with_pods(job: WaitingJob, most: int) -> Gang | None:
    """The gang of a job with the pods that it needs; None if these are more than ``most``."""
    gang = replace(job.gang, roles=job.roles)
    numbers: Mapping[str, int] = slots.absent(gang, {})
    if not demand.min_members(gang) <= sum(numbers.values()) <= most:
        return None
    pods = [pod for role, n in numbers.items() for pod in slots.placeholders(gang, role, n)]
    untyped = tuple(replace(role, template=None) for role in job.roles)
    return replace(gang, roles=untyped, members=tuple(pods))


def _fits(snapshot: Snapshot, job: WaitingJob) -> bool:
    """Whether the nodes together have as much free as the controller says that the job needs."""
    free = Resources.total(
        Resources(tuple((name, n) for name, n in (node.allocatable - node.used).amounts if n > 0))
        for node in snapshot.nodes
        if node.ready and not node.unschedulable
    )
    return job.group.min_resources.fits(free)
