"""One pass from what is observed to what is bound: the imperative shell around the planner.

``Cycle.run_once`` is the whole story. It is safe to stop at any line and start again from the top:
what was promised is in Reservations, and standing ones take the same path as new ones.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence

from . import reporting
from .kube import errors
from .kube.client import Api
from .model.cluster import Entry, Member, Reservation, Snapshot
from .model.decisions import Assignment, Placement, Plan
from .model.keys import Origin, PodKey, Uid
from .planning import plan as planning
from .planning import progress, verify
from .strategies.problem import Budget, Strategy
from .world import World

logger = logging.getLogger(__name__)

Clock = Callable[[], float]  # seconds since the epoch


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
        term: str,
        in_flight: int = 32,
    ) -> None:
        """``term`` names this run in the Reservations it creates; ``in_flight`` caps bindings."""
        self._world = world
        self._api = api
        self._strategy = strategy
        self._fallback = fallback
        self._budget = budget
        self._clock = clock
        self._term = term
        self._gate = asyncio.Semaphore(in_flight)
        self._reporter = reporting.Reporter(world, api)

    async def run_once(self) -> float | None:
        """Run one cycle; answers when the next is due without a change, in seconds from now.

        Raises:
            errors.ApiError: the API server refuses or cannot be reached; nothing is lost by it.
        """
        # 1 observe
        await self._settle()
        snapshot = self._world.snapshot(self._clock())
        # 2 plan
        plan = await asyncio.to_thread(
            planning.plan, snapshot, self._strategy, self._fallback, self._budget
        )
        # 3 verify
        placements = self._verified(snapshot, plan)
        # 4 reserve: the commit point
        await self._reserve(placements)
        # 5 bind
        released = await self._carry_out(placements)
        # 6 report
        return await self._reporter.report(self._world.snapshot(self._clock()), plan, released)

    async def _settle(self) -> None:
        """Ask about the bindings that were sent and never answered."""
        for member in self._world.unsure():
            await self._look_again(member.key, member.uid, None)

    def _verified(self, snapshot: Snapshot, plan: Plan) -> Sequence[Placement]:
        """Drop a plan that breaks a promise, and placements that the world has outrun."""
        if broken := verify.violations(snapshot, plan):
            for sentence in broken:
                logger.error("plan dropped, this is a bug of Tutti's: %s", sentence)
            return ()
        now = self._world.snapshot(self._clock())
        if all(a is b for a, b in zip(now.gangs, snapshot.gangs, strict=False)) and (
            now.nodes == snapshot.nodes and len(now.gangs) == len(snapshot.gangs)
        ):
            return plan.placements
        return tuple(p for p in plan.placements if not verify.outrun(now, p))

    async def _reserve(self, placements: Sequence[Placement]) -> None:
        """Write every gang's placement down before the first of its pods is bound."""
        now = self._clock()
        await _all(
            self._reserve_one(placement, now)
            for placement in placements
            if placement.gang.origin is Origin.POD_GROUP
        )

    async def _reserve_one(self, placement: Placement, now: float) -> None:
        reservation = Reservation(
            gang=placement.gang,
            uid=placement.uid,
            generation=placement.generation,
            term=self._term,
            reserved_at=now,
            entries=tuple(Entry(a.pod, a.uid, a.node) for a in placement.assignments),
        )
        try:
            async with self._gate:
                standing = await self._api.reserve(reservation)
        except errors.Conflict:
            # One of the gang's stands already: the watch will show it, and it will be carried out.
            logger.warning("gang %s: a Reservation exists already", placement.gang)
        except errors.Gone:
            logger.info("gang %s: its namespace or PodGroup is gone", placement.gang)
        except errors.Refused as refusal:
            logger.error("gang %s: Reservation refused: %s", placement.gang, refusal)  # noqa: TRY400
            self._reporter.refused(placement.gang, str(refusal))
        else:
            self._world.hold(standing)

    async def _carry_out(self, placements: Sequence[Placement]) -> Sequence[reporting.Released]:
        """Carry out every standing Reservation and bind the gangs of one; answers the released."""
        snapshot = self._world.snapshot(self._clock())
        members = progress.members_by_uid(snapshot)
        released: list[reporting.Released] = []
        bindings: list[Assignment] = []
        for reservation, step in progress.next_steps(snapshot):
            match step:
                case progress.Bind(assignments):
                    bindings.extend(assignments)
                case progress.Release(sentence):
                    logger.info("gang %s: released: %s", reservation.gang, sentence)
                    await self._release(reservation)
                    released.append(reporting.Released(reservation, sentence))
                case progress.Finish():
                    pass
        for placement in placements:
            if placement.gang.origin is Origin.POD:
                bindings.extend(placement.assignments)
        await _all(
            self._bind(assignment, members[assignment.uid])
            for assignment in bindings
            if assignment.uid in members
        )
        await self._finish()
        return released

    async def _finish(self) -> None:
        """Delete the Reservations that have nothing left to bind."""
        steps = progress.next_steps(self._world.snapshot(self._clock()))
        done = [held for held, step in steps if isinstance(step, progress.Finish)]
        await _all(self._release(reservation) for reservation in done)

    async def _release(self, reservation: Reservation) -> None:
        try:
            async with self._gate:
                await self._api.release(reservation)
        except (errors.Gone, errors.Conflict):
            pass  # it is not there any more, or another one is: either way this one is gone
        self._world.unhold(reservation)

    async def _bind(self, assignment: Assignment, member: Member) -> None:
        async with self._gate:
            self._world.assume(member, assignment.node)
            try:
                await self._api.bind(assignment)
            except (errors.Conflict, errors.Gone) as answer:
                await self._look_again(assignment.pod, assignment.uid, answer)
            except errors.Refused as refusal:
                self._world.retract(assignment.uid)
                logger.error("pod %s: binding refused: %s", assignment.pod, refusal)  # noqa: TRY400
            else:
                self._world.confirm(assignment.uid)

    async def _look_again(self, pod: PodKey, uid: Uid, answer: errors.ApiError | None) -> None:
        """Read a pod whose binding had no clear answer; only its own state tells what happened."""
        try:
            now = await self._api.read_member(pod)
        except errors.Gone:
            self._world.forget(uid)
            return
        if now.uid != uid:
            self._world.forget(uid)
        elif now.node is not None:
            self._world.assume(now, now.node)
            self._world.confirm(uid)
        else:
            if answer is not None:
                logger.info("pod %s: not bound: %s Will look again soon", pod, answer)
            self._world.retract(uid)
            self._world.learn(now)


async def _all(calls: Iterable[Coroutine[None, None, None]]) -> None:
    """Run calls side by side to their end, then raise the first problem if there was one."""
    for result in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
