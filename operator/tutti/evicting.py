"""Gangs that are given up for now: their Jobs are asked first, then their bound members go.

Separate from the commit because nothing here takes room. What is done was written down before, as
a Reservation with ``evict``, so that whoever leads carries it out to the end.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial as bind

from .kube import encode, errors
from .kube.client import Api
from .kube.gate import Gate, is_away
from .model.cluster import Member, Reservation
from .model.decisions import Plan
from .model.keys import GangKey, Uid
from .model.lease import Term
from .model.owners import Job
from .planning import partial, progress
from .planning.amounts import count
from .reporting import say
from .world import World

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 30.0  # what a Job stands, or what a budget allows, is asked again after this


@dataclass(frozen=True, slots=True)
class _Read:
    """A Job as it was a moment ago; None where it could not be read."""

    job: Job | None
    until: float


class Evictor:
    """Asks Jobs what they stand, says what will happen, and evicts."""

    def __init__(
        self,
        world: World,
        api: Api,
        *,
        give_up: Callable[[Reservation], Awaitable[None]],
        clock: Callable[[], float],
        in_flight: int,
    ) -> None:
        """``give_up`` deletes a Reservation that is not to be carried out."""
        self._world = world
        self._give_up = give_up
        self._api = api
        self._clock = clock
        self._gate = Gate(in_flight)
        self._jobs: dict[tuple[str, str], _Read] = {}
        self._announced: set[Uid] = set()  # gangs whose eviction was said
        self._refused: dict[Uid, float] = {}  # members that may not be evicted, until when

    async def spared(self, plan: Plan) -> Plan:
        """The plan without evictions that a Job would not survive.

        Raises:
            errors.Unavailable: the API server is away.
        """
        if not plan.evictions:
            self._jobs.clear()
            return plan
        jobs = await self._read([m for one in plan.evictions for m in one.members], is_fresh=False)
        return partial.spared(plan, jobs)

    def again_in(self) -> float | None:
        """In how many seconds something that was refused is worth another look."""
        now = self._clock()
        until = [*(one.until for one in self._jobs.values()), *self._refused.values()]
        return min((max(0.0, at - now) for at in until), default=None)

    async def carry_out(self, term: Term) -> Sequence[errors.ApiError]:
        """Evict what standing Reservations name; one that a Job would not survive is deleted.

        Raises:
            errors.Unavailable: the API server is away.
        """
        now = self._clock()
        seen = self._world.snapshot(now)
        given_up = tuple(held for held in seen.reservations if held.evict)
        steps = progress.next_steps(replace(seen, reservations=given_up), term)
        evicting = [(held, step) for held, step in steps if isinstance(step, progress.Evict)]
        here = {member.uid for _, step in evicting for member in step.members}
        self._announced &= {held.uid for held, _ in evicting}
        self._refused = {u: at for u, at in self._refused.items() if u in here and now < at}
        problems: list[errors.ApiError] = []
        for held, step in evicting:
            members = [member for member in step.members if member.uid not in self._refused]
            if members:
                problems += await self._evict_all(held, members)
        return problems

    async def _evict_all(
        self, held: Reservation, members: Sequence[Member]
    ) -> Sequence[errors.ApiError]:
        if sentence := partial.fatal(members, await self._read(members, is_fresh=True)):
            logger.warning("gang %s: stays as it is: %s", held.gang, sentence)
            return await self._gate.all([bind(self._give_up, held)])
        await self._announce(held, members)
        return await self._gate.all(bind(self._evict, held.gang, one) for one in members)

    async def _announce(self, held: Reservation, members: Sequence[Member]) -> None:
        """Say it before it is done, once."""
        if held.uid in self._announced:
            return
        self._announced.add(held.uid)
        sentence = (
            f"{count(len(members), 'bound member')} evicted: others were lost, there is no room "
            "to replace them, and onPartial is Release"
        )
        logger.warning("gang %s: %s", held.gang, sentence)
        about = encode.Regarding.gang(held.gang, held.uid)
        event = encode.Event(about, "Released", sentence, self._clock(), warning=True)
        await say(self._api, event)

    async def _evict(self, gang: GangKey, member: Member) -> None:
        try:
            await self._api.evict(member)
        except (errors.Gone, errors.Conflict):
            pass  # it left by itself: the watch will tell
        except errors.Refused as refusal:
            logger.warning("gang %s: pod %s: not evicted: %s", gang, member.key, refusal)
            self._refused[member.uid] = self._clock() + AGAIN_SECONDS

    async def _read(
        self, members: Sequence[Member], *, is_fresh: bool
    ) -> Mapping[tuple[str, str], Job]:
        """The Jobs of these members; ``is_fresh`` trusts no earlier answer."""
        now = self._clock()
        keys = {
            (member.key.namespace, member.owner.name)
            for member in members
            if member.owner is not None and member.owner.is_job
        }
        for key in sorted(keys):
            known = self._jobs.get(key)
            if is_fresh or known is None or known.until <= now:
                self._jobs[key] = _Read(await self._job(*key), now + AGAIN_SECONDS)
        read = {key: self._jobs[key].job for key in keys}
        return {key: job for key, job in read.items() if job is not None}

    async def _job(self, namespace: str, name: str) -> Job | None:
        try:
            return await self._api.read_job(namespace, name)
        except errors.ApiError as problem:
            if is_away(problem):
                raise
            logger.warning("Job %s/%s cannot be read: %s", namespace, name, problem)
            return None
