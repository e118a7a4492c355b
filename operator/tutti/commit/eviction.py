"""Gangs that are given up for now: their Jobs are asked first, then their bound members go.

Separate from the commit because nothing here takes room. What is done was written down before, as
a Reservation with ``evict``, so that whoever leads carries it out. If a disruption budget refuses,
the Reservation goes: while it stands the gang is not repaired, and a budget that asks for all of it
would refuse for ever.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial as bind

from ..gang.quantities import count
from ..kube import errors
from ..kube.client import Api
from ..kube.codec import encode
from ..kube.concurrency import TOO_MANY, ConcurrencyLimit, is_away
from ..model.cluster import Member, Reservation
from ..model.decisions import Plan
from ..model.keys import GangKey, Uid
from ..model.lease import LeaderTerm
from ..model.owners import Job
from ..planning import partial_release
from ..reporting.reporter import say
from ..state.cluster_state import ClusterState
from . import progress

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 30.0  # what a Job stands, or what a budget allows, is asked again after this
# How many evictions a budget allows is known only by asking. After a partly refused eviction the
# replacements are not evicted for this long: it would be in vain.
IN_VAIN_SECONDS = 3600.0
SAID_SECONDS = 3600.0  # for which API servers keep an Event


@dataclass(frozen=True, slots=True)
class _JobRead:
    """A Job as it was a moment ago; None where it could not be read."""

    job: Job | None
    until: float


@dataclass(frozen=True, slots=True)
class _EvictionRefusal:
    """Why members of a gang stay, and until when nobody asks again."""

    sentence: str
    until: float
    is_partial: bool = False  # others of the gang had gone
    is_standing: bool = False  # as is the Reservation: those who stay are asked once more


class Evictor:
    """Asks Jobs what they stand, says what will happen, and evicts."""

    def __init__(
        self,
        state: ClusterState,
        api: Api,
        *,
        give_up: Callable[[Reservation, str], Awaitable[None]],
        clock: Callable[[], float],
        in_flight: int,
    ) -> None:
        """``give_up`` deletes a Reservation that is not to be carried out, and says why."""
        self._state = state
        self._give_up = give_up
        self._api = api
        self._clock = clock
        self._gate = ConcurrencyLimit(in_flight)
        self._jobs: dict[tuple[str, str], _JobRead] = {}
        self._announced: dict[Uid, float] = {}  # when the eviction of a gang was said
        self._refusals: dict[Uid, _EvictionRefusal] = {}  # by gang, until it is whole
        self._looked_at = 0.0  # when this cycle's plan was made

    async def spared(self, plan: Plan) -> Plan:
        """The plan without evictions that were refused or that a Job would not survive.

        Raises:
            errors.Unavailable: the API server is away.
        """
        self._looked_at = self._clock()
        plan = self.told(plan)
        members = [member for one in plan.evictions for member in one.members]
        named = _jobs_of(members)
        self._jobs = {key: one for key, one in self._jobs.items() if key in named}
        return partial_release.spared(plan, await self._read(members, is_fresh=False))

    def told(self, plan: Plan) -> Plan:
        """The plan without evictions that were refused, and with a word about each."""
        return partial_release.without(
            plan, {uid: one.sentence for uid, one in self._holding.items()}
        )

    @property
    def _holding(self) -> Mapping[Uid, _EvictionRefusal]:
        """The refusals of gangs that are not asked about in this cycle."""
        return {uid: one for uid, one in self._refusals.items() if one.until > self._looked_at}

    def next_retry(self) -> float | None:
        """In how many seconds something that was refused is worth another look."""
        now = self._clock()
        jobs = (one.until for one in self._jobs.values())
        until = (*jobs, *(one.until for one in self._holding.values()))
        return min((max(0.0, at - now) for at in until), default=None)

    async def execute(self, term: LeaderTerm, decided: Mapping[Uid, Member]) -> None:
        """Evict what standing Reservations name, each member as ``decided`` shows it.

        That is how it was before this cycle asked who leads: if whoever leads next has changed it,
        it stays. A Reservation that a Job would not survive is deleted, and so is one that is
        refused; but once some have gone, the others are asked for once more before that.

        Raises:
            errors.Unavailable: the API server is away.
        """
        now = self._clock()
        seen = self._state.snapshot(now)
        given_up = tuple(held for held in seen.reservations if held.evict)
        steps = progress.next_steps(replace(seen, reservations=given_up), term)
        evicting = [(held, step) for held, step in steps if isinstance(step, progress.Evict)]
        self._refusals = {
            gang.uid: self._refusals[gang.uid]
            for gang in seen.gangs
            if gang.uid in self._refusals and partial_release.is_given_up(gang)
        }
        known = {held.uid for held, _ in evicting} | self._refusals.keys()
        self._announced = {uid: at for uid, at in self._announced.items() if uid in known}
        for held, step in evicting:
            refusal = self._holding.get(held.uid)
            if refusal is None:
                members = tuple(decided[one.uid] for one in step.members if one.uid in decided)
                if members:
                    await self._evict_all(held, members)
            elif not (refusal.is_standing or self._state.refusals.holds_off(held.uid, now)):
                await self._leave(held, refusal)

    async def _evict_all(self, held: Reservation, members: Sequence[Member]) -> None:
        if sentence := partial_release.fatal(members, await self._read(members, is_fresh=True)):
            await self._leave(held, _EvictionRefusal(sentence, self._clock() + AGAIN_SECONDS))
            return
        await self._announce(held, members)
        refused: list[str] = []
        await self._gate.all(bind(self._evict, held.gang, one, refused) for one in members)
        if refused:
            await self._refuse(held, len(held.evict) - len(refused), min(refused))

    async def _refuse(self, held: Reservation, gone: int, sentence: str) -> None:
        """Some have to stay, as the sentence says; so many have gone."""
        now = self._clock()
        known = self._refusals.get(held.uid)
        if not gone:
            await self._leave(held, _EvictionRefusal(sentence, now + AGAIN_SECONDS))
        elif known is None or not known.is_partial:
            until = now + AGAIN_SECONDS
            self._refusals[held.uid] = _EvictionRefusal(
                sentence, until, is_partial=True, is_standing=True
            )
        else:
            sentence += (
                f"; {count(gone, 'other')} had gone, so nobody else is evicted within an hour"
            )
            refusal = _EvictionRefusal(sentence, now + IN_VAIN_SECONDS, is_partial=True)
            await self._leave(held, refusal)

    async def _leave(self, held: Reservation, refusal: _EvictionRefusal) -> None:
        """Leave the gang as it is, so that it can be repaired."""
        logger.warning("gang %s: stays as it is: %s", held.gang, refusal.sentence)
        self._refusals[held.uid] = refusal
        await self._give_up(held, refusal.sentence)

    async def _announce(self, held: Reservation, members: Sequence[Member]) -> None:
        """Say it before it is done, but not each time that it is refused."""
        now = self._clock()
        said_at = self._announced.get(held.uid)
        if said_at is not None and now < said_at + SAID_SECONDS:
            return
        self._announced[held.uid] = now
        sentence = (
            f"{count(len(members), 'bound member')} to evict: others were lost, there is no room "
            "to replace them, and onPartial is Release"
        )
        logger.warning("gang %s: %s", held.gang, sentence)
        about = encode.Regarding.gang(held.gang, held.uid)
        event = encode.Event(about, "Released", sentence, now, warning=True)
        await say(self._api, event)

    async def _evict(self, gang: GangKey, member: Member, refused: list[str]) -> None:
        """Evict one, or add to ``refused`` why it has to stay."""
        try:
            await self._api.evict(member)
        except (errors.Gone, errors.Conflict):
            pass  # it left by itself, or has changed: the watch will tell
        except errors.ApiError as refusal:
            # A webhook or a budget that it does not name may answer 429, too: of this pod alone.
            if is_away(refusal) and refusal.status != TOO_MANY:
                raise
            logger.warning("gang %s: pod %s: not evicted: %s", gang, member.key, refusal)
            refused.append(f"pod {member.key}: {refusal}")

    async def _read(
        self, members: Sequence[Member], *, is_fresh: bool
    ) -> Mapping[tuple[str, str], Job]:
        """The Jobs of these members; ``is_fresh`` trusts no earlier answer."""
        now = self._clock()
        keys = _jobs_of(members)
        for key in sorted(keys):
            known = self._jobs.get(key)
            if is_fresh or known is None or known.until <= now:
                self._jobs[key] = _JobRead(await self._job(*key), now + AGAIN_SECONDS)
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


def _jobs_of(members: Sequence[Member]) -> Collection[tuple[str, str]]:
    """The Jobs that made these members, by namespace and name."""
    return {
        (member.key.namespace, member.owner.name)
        for member in members
        if member.owner is not None and member.owner.is_job
    }
