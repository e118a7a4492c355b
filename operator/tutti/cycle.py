"""One pass from what is observed to what is bound: the imperative shell around the planner.

``Cycle.run_once`` is the whole story. It is safe to stop at any line and start again from the top:
what was promised is in Reservations, and standing ones take the same path as new ones.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from . import reporting
from .kube import errors
from .kube.client import Api
from .kube.gate import Gate, is_away
from .model.cluster import Entry, Member, Reservation, Snapshot
from .model.decisions import Assignment, Placement, Plan
from .model.keys import GangKey, Origin, PodKey, Uid
from .planning import plan as planning
from .planning import progress, verify
from .strategies.problem import Budget, Strategy
from .world import World

logger = logging.getLogger(__name__)

Clock = Callable[[], float]  # seconds since the epoch

REFUSED_SECONDS = 30.0  # what was refused is asked again, but not at once: rights get granted
CONFLICT_SECONDS = 5.0  # what stands in the way is usually seen and gone within milliseconds


class Cycle:
    """Observe, plan, verify, reserve, bind, report."""

    def __init__(
        self,
        world: World,
        api: Api,
        *,
        strategy: Strategy,
        fallback: Strategy,
        budget: Budget,
        clock: Clock,
        scheduler: str,
        term: str,
        in_flight: int = 32,
    ) -> None:
        """``scheduler`` and ``term`` say whose a Reservation is; ``in_flight`` caps bindings."""
        self._world = world
        self._api = api
        self._strategy = strategy
        self._fallback = fallback
        self._budget = budget
        self._clock = clock
        self._scheduler = scheduler
        self._term = term
        self._gate = Gate(in_flight)
        self._refusals: dict[Uid, _Refusal] = {}  # by gang to reserve for, or pod to bind
        self._reporter = reporting.Reporter(world, api)

    async def run_once(self) -> float | None:
        """Run one cycle; answers when the next is due without a change, in seconds from now.

        Raises:
            errors.ApiError: the API server refuses or cannot be reached; nothing is lost by it.
        """
        # 1 observe
        problems = list(await self._settle())
        snapshot = self._world.snapshot(self._clock())
        # 2 plan
        plan = await asyncio.to_thread(
            planning.plan, snapshot, self._strategy, self._fallback, self._budget
        )
        # 3 verify
        placements = self._verified(snapshot, plan)
        # 4 reserve: the commit point
        problems += await self._reserve(placements)
        # 5 bind
        released, failed = await self._carry_out(placements)
        problems += failed
        # 6 report
        due = await self._report(snapshot, plan, released)
        if problems:
            raise problems[0]
        return due

    async def _settle(self) -> Sequence[errors.ApiError]:
        """Ask about the bindings that were sent and never answered."""
        return await self._gate.all(
            partial(self._look_again, member.key, member.uid) for member in self._world.unsure()
        )

    def _verified(self, snapshot: Snapshot, plan: Plan) -> Sequence[Placement]:
        """The placements that break no promise in the world as it is by now."""
        broken = verify.violations(snapshot, plan)
        for sentence in broken:
            logger.error("left out of the plan, this is a bug of Tutti's: %s", sentence)
        now = self._clock()
        waiting = tuple(p for p in plan.placements if not self._is_held_off(p.uid, now))
        current = self._world.snapshot(now)
        is_unchanged = current == replace(snapshot, taken_at=now)
        return waiting if is_unchanged and not broken else verify.upheld(current, waiting)

    async def _reserve(self, placements: Sequence[Placement]) -> Sequence[errors.ApiError]:
        """Write every gang's placement down before the first of its pods is bound."""
        now = self._clock()
        return await self._gate.all(
            partial(self._reserve_one, placement, now)
            for placement in placements
            if placement.gang.origin is Origin.POD_GROUP
        )

    async def _reserve_one(self, placement: Placement, now: float) -> None:
        reservation = Reservation(
            gang=placement.gang,
            uid=placement.uid,
            generation=placement.generation,
            scheduler=self._scheduler,
            term=self._term,
            reserved_at=now,
            entries=tuple(Entry(a.pod, a.uid, a.node) for a in placement.assignments),
        )
        try:
            standing = await self._api.reserve(reservation)
        except errors.Conflict:
            # One of the gang's stands already: the watch will show it, and it will be carried out.
            sentence = f"a Reservation named {placement.uid} exists already"
            self._hold_off(placement.uid, placement.gang, sentence, CONFLICT_SECONDS)
        except errors.Gone:
            logger.info("gang %s: its namespace or PodGroup is gone", placement.gang)
        except errors.Refused as refusal:
            sentence = f"Reservation refused: {refusal}"
            self._hold_off(placement.uid, placement.gang, sentence, REFUSED_SECONDS)
        else:
            self._world.hold(standing)
            self._refusals.pop(placement.uid, None)

    async def _carry_out(
        self, placements: Sequence[Placement]
    ) -> tuple[Sequence[reporting.Released], Sequence[errors.ApiError]]:
        """Carry out every standing Reservation and bind the gangs of one.

        Answers what was released, and the problems that single calls met.
        """
        now = self._clock()
        snapshot = self._world.snapshot(now)
        released: list[reporting.Released] = []
        bindings: list[tuple[GangKey, Assignment]] = []
        for reservation, step in progress.next_steps(snapshot):
            match step:
                case progress.Bind(assignments):
                    bindings.extend((reservation.gang, one) for one in assignments)
                case progress.Release(sentence):
                    released.append(reporting.Released(reservation, sentence))
                case _:
                    pass
        singles = [p for p in placements if p.gang.origin is Origin.POD]
        for placement in verify.upheld(snapshot, singles) if singles else ():
            bindings.extend((placement.gang, one) for one in placement.assignments)
        problems = list(await self._gate.all(partial(self._give_back, one) for one in released))
        members = progress.members_by_uid(snapshot)
        problems += await self._gate.all(
            partial(self._bind, gang, assignment, members[assignment.uid])
            for gang, assignment in bindings
            if not self._is_held_off(assignment.uid, now)
        )
        problems += await self._finish()
        return released, problems

    async def _finish(self) -> Sequence[errors.ApiError]:
        """Delete the Reservations that have nothing left to bind."""
        steps = progress.next_steps(self._world.snapshot(self._clock()))
        unsure = {member.uid for member in self._world.unsure()}
        done = [
            held
            for held, step in steps
            if isinstance(step, progress.Finish)
            and unsure.isdisjoint(entry.uid for entry in held.entries)
        ]
        return await self._gate.all(partial(self._release, reservation) for reservation in done)

    async def _give_back(self, released: reporting.Released) -> None:
        logger.info("gang %s: released: %s", released.reservation.gang, released.sentence)
        await self._release(released.reservation)

    async def _release(self, reservation: Reservation) -> None:
        with contextlib.suppress(errors.Gone):
            await self._api.release(reservation)
        self._world.unhold(reservation)

    async def _bind(self, gang: GangKey, assignment: Assignment, member: Member) -> None:
        self._world.assume(member, assignment.node)
        try:
            await self._api.bind(assignment)
        except (errors.Conflict, errors.Gone) as answer:
            now = await self._look_again(assignment.pod, assignment.uid)
            if now is not None and now.is_waiting and now.version == assignment.version:
                # Nothing has changed that could explain it, so nothing will tell when it has.
                sentence = f"pod {assignment.pod}: binding refused: {answer}"
                self._hold_off(assignment.uid, gang, sentence, CONFLICT_SECONDS)
        except errors.Refused as refusal:
            self._world.retract(assignment.uid)
            sentence = f"pod {assignment.pod}: binding refused: {refusal}"
            self._hold_off(assignment.uid, gang, sentence, REFUSED_SECONDS)
        except errors.Unavailable as trouble:
            if is_away(trouble):
                raise
            now = await self._look_again(assignment.pod, assignment.uid)
            if now is not None and now.node is None:
                sentence = f"pod {assignment.pod}: binding failed: {trouble}"
                self._hold_off(assignment.uid, gang, sentence, CONFLICT_SECONDS)
        else:
            self._world.confirm(assignment.uid)

    async def _look_again(self, pod: PodKey, uid: Uid) -> Member | None:
        """Read a pod whose binding had no clear answer; only its own state tells what happened."""
        try:
            now = await self._api.read_member(pod)
        except errors.Gone:
            now = None
        if now is None or now.uid != uid:
            self._world.forget(uid)
            return None
        if now.node is not None:
            self._world.assume(now, now.node)
            self._world.confirm(uid)
        else:
            self._world.learn(now)
            self._world.retract(uid)
        return now

    def _hold_off(self, uid: Uid, gang: GangKey, sentence: str, seconds: float) -> None:
        """Ask this no more for a while, and say so: asking again at once is no use."""
        known = self._refusals.get(uid)
        if known is None or known.sentence != sentence:
            logger.error("gang %s: %s", gang, sentence)
        self._refusals[uid] = _Refusal(gang, sentence, self._clock() + seconds)

    def _is_held_off(self, uid: Uid, now: float) -> bool:
        known = self._refusals.get(uid)
        return known is not None and now < known.until

    async def _report(
        self, planned: Snapshot, plan: Plan, released: Sequence[reporting.Released]
    ) -> float | None:
        """Tell people; answers when there is more to say or to try, in seconds from now."""
        now = self._clock()
        snapshot = _with_the_rejected_as(planned, plan, self._world.snapshot(now))
        here = {gang.key for gang in snapshot.gangs}
        self._refusals = {uid: one for uid, one in self._refusals.items() if one.gang in here}
        held_off = [one for one in self._refusals.values() if now < one.until]
        refusals = {one.gang: one.sentence for one in held_off}
        due = await self._reporter.report(snapshot, plan, released, refusals)
        retries = [one.until - now for one in held_off]
        return min((wait for wait in (due, *retries) if wait is not None), default=None)


def _with_the_rejected_as(planned: Snapshot, plan: Plan, now: Snapshot) -> Snapshot:
    """The picture now, but rejected gangs as the planner saw them: the sentences speak of those.

    What has changed since has woken the next cycle.
    """
    rejected = {rejection.gang for rejection in plan.rejections}
    spoken_of = {gang.uid: gang for gang in planned.gangs if gang.key in rejected}
    return replace(now, gangs=tuple(spoken_of.get(gang.uid, gang) for gang in now.gangs))


@dataclass(frozen=True, slots=True)
class _Refusal:
    """What the API server would not do for a gang, and when it is asked again."""

    gang: GangKey
    sentence: str
    until: float
