"""When cycles run: one at a time, after each change, for as long as this replica leads."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from ..kube import errors
from ..kube.calls import Call, Right
from ..kube.client import NO_ANSWER
from ..kube.leader_election import Deposed, Election
from ..model.keys import LeaderTerm
from ..reporting.metrics import CycleResult
from .cycle import Cycle

logger = logging.getLogger(__name__)

FIRST_WAIT = 0.2  # seconds after a cycle that failed
LONGEST_WAIT = 5.0  # seconds; an API server that comes back is noticed within this time
SETTLE_SECONDS = 0.02  # changes come in bursts: the pods of a gang are created together
TIDY_SECONDS = 60.0  # between two times that a standby forgets what is gone
CYCLE_VERBS = ("get", "create", "update", "patch", "delete")  # of the calls of cycles
LONGEST_SETTLE = 0.2  # no change waits longer for its burst to end, cycles included


class WakeSignal:
    """Wakes the cycle when something changed, once per burst of changes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` gives seconds since any moment."""
        self._clock = clock
        self._changed = asyncio.Event()
        self._since = 0.0  # when the first change came that no cycle has seen

    def wake(self) -> None:
        """Record that something changed."""
        if not self._changed.is_set():
            self._since = self._clock()
            self._changed.set()

    async def sleep(self, seconds: float | None) -> None:
        """Sleep until a change comes or ``seconds`` pass; after a change, until its burst ends."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return
        deadline = self._since + LONGEST_SETTLE
        while self._changed.is_set() and self._clock() < deadline:
            self._changed.clear()
            await asyncio.sleep(SETTLE_SECONDS)
        self._changed.clear()


class AnsweredCalls:
    """When the API server last answered a call of a cycle."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` gives seconds since any moment."""
        self._clock = clock
        self.last_at = 0.0

    def record(self, call: Right, status: int) -> None:
        """Take in a call and the HTTP status of its answer.

        Elections, lists and watches go on while a cycle hangs, so their calls do not count.
        """
        is_of_cycle = call.resource != Call.GET_LEASE.resource and call.verb in CYCLE_VERBS
        if is_of_cycle and status != NO_ANSWER:
            self.last_at = self._clock()


class CycleRunner:
    """Runs cycles while this replica leads, and knows whether they fail or hang."""

    def __init__(
        self,
        cycle: Cycle,
        wake_signal: WakeSignal,
        election: Election,
        *,
        take_over: Callable[[LeaderTerm], Awaitable[None]],
        may_begin: Callable[[], bool],
        patience: float,
        progress: Callable[[], float],
        ended: Callable[[CycleResult], None],
    ) -> None:
        """``take_over`` precedes the first cycle of a term; no cycle begins unless ``may_begin``.

        A cycle counts as stuck ``patience`` seconds after it began or last made progress:
        ``progress`` gives that moment, by the monotonic clock. ``ended`` gets the result of each
        cycle.
        """
        self._cycle = cycle
        self._wake_signal = wake_signal
        self._election = election
        self._take_over = take_over
        self._may_begin = may_begin
        self._patience = patience
        self._progress = progress
        self._ended = ended
        self._begun: LeaderTerm = ""
        self._since: float | None = None
        self._tidy_at = 0.0  # when a standby is to forget what is gone
        self._stopping = False
        self.trouble = ""

    def stuck(self) -> str:
        """Why the process should be restarted; empty if no cycle is stuck."""
        if self._since is None:
            return ""
        since = max(self._since, self._progress())
        if time.monotonic() - since > self._patience:
            return f"a cycle has made no progress for more than {self._patience:.0f} s"
        return ""

    def stop(self) -> None:
        """Begin no further cycle."""
        self._stopping = True
        self._wake_signal.wake()

    async def run_forever(self) -> None:
        """Run a cycle after every change, and when one is due, while this replica leads."""
        wait = FIRST_WAIT
        while not self._stopping:
            term = self._election.term if self._may_begin() else ""
            self._since = time.monotonic() if term else None
            try:
                due = await (self._once(term) if term else self._stand_by())
            except Deposed as why:
                self._since = None
                self._ended(CycleResult.DEPOSED)
                if self._election.term == term:  # not won again since the cycle began
                    self._election.stand_down(str(why))
            except Exception as problem:  # noqa: BLE001 - a bug in one cycle must not end them all
                self._since = None
                if term:
                    self._ended(CycleResult.FAILED)
                wait = min(wait * 2, LONGEST_WAIT)
                self._say(problem, wait)
                await asyncio.sleep(wait)
            else:
                self.trouble, wait, self._since = "", FIRST_WAIT, None
                if term:
                    self._ended(CycleResult.DONE)
                await self._wake_signal.sleep(due)

    async def _stand_by(self) -> None:
        """Forget what is gone, if that is due."""
        if self._may_begin() and time.monotonic() >= self._tidy_at:
            self._tidy_at = time.monotonic() + TIDY_SECONDS
            await self._cycle.stand_by()

    async def _once(self, term: LeaderTerm) -> float | None:
        if term != self._begun:
            await self._take_over(term)
            self._begun = term
        return await self._cycle.run_once(term)

    def _say(self, problem: Exception, wait: float) -> None:
        self.trouble = str(problem) or repr(problem)
        is_known = isinstance(problem, errors.ApiError)
        logger.log(
            logging.WARNING if is_known else logging.ERROR,
            "cycle: %s Will try again in %.1f s",
            self.trouble,
            wait,
            exc_info=not is_known,
        )
