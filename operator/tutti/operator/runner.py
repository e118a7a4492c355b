"""When cycles run: one at a time, whenever something changed, for as long as we lead.

Separate from the cycle, which knows nothing of waiting, and from ``main``, which only wires.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from ..kube import errors
from ..kube.leader_election import Deposed, Election
from ..model.keys import LeaderTerm
from ..reporting.metrics import CycleResult
from .cycle import Cycle

logger = logging.getLogger(__name__)

FIRST_WAIT = 0.2  # seconds after a cycle that failed
LONGEST_WAIT = 5.0  # an API server that comes back is noticed within this
SETTLE_SECONDS = 0.02  # changes come in bursts: a gang's pods are created together
LONGEST_SETTLE = 0.2  # but no change waits longer for the end of a burst, the last cycle included


class WakeSignal:
    """Wakes the cycle when something changed, once per burst of changes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` gives seconds since any moment."""
        self._clock = clock
        self._changed = asyncio.Event()
        self._since = 0.0  # when the first change came that nobody has looked at

    def wake(self) -> None:
        """Something changed."""
        if not self._changed.is_set():
            self._since = self._clock()
            self._changed.set()

    async def sleep(self, seconds: float | None) -> None:
        """Sleep until something changes or the time is up, then until the burst is over."""
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


class CycleRunner:
    """Runs cycles for ever while we lead, and knows how that goes."""

    def __init__(
        self,
        cycle: Cycle,
        alarm: WakeSignal,
        election: Election,
        *,
        take_over: Callable[[LeaderTerm], Awaitable[None]],
        may_begin: Callable[[], bool],
        patience: float,
        progress: Callable[[], float],
        ended: Callable[[CycleResult], None],
    ) -> None:
        """``take_over`` comes before the first cycle of a term; ``may_begin`` holds cycles back.

        A cycle counts as stuck ``patience`` seconds after it began, or after its plan last came
        further: ``progress`` gives that moment, by the monotonic clock. ``ended`` is told how each
        cycle ended.
        """
        self._cycle = cycle
        self._alarm = alarm
        self._election = election
        self._take_over = take_over
        self._may_begin = may_begin
        self._patience = patience
        self._progress = progress
        self._ended = ended
        self._begun: LeaderTerm = ""
        self._since: float | None = None
        self._stopping = False
        self.trouble = ""

    def stuck(self) -> str:
        """Why the process should be restarted; empty while all is well."""
        if self._since is None:
            return ""
        since = max(self._since, self._progress())
        if time.monotonic() - since > self._patience:
            return f"a cycle has made no progress for more than {self._patience:.0f} s"
        return ""

    def stop(self) -> None:
        """Begin no further cycle."""
        self._stopping = True
        self._alarm.wake()

    async def run_forever(self) -> None:
        """Run a cycle whenever something changed or something is due, while we lead."""
        wait = FIRST_WAIT
        while not self._stopping:
            term = self._election.term
            if not (term and self._may_begin()):
                self.trouble = ""  # a standby has none
                await self._alarm.sleep(None)
                continue
            self._since = time.monotonic()
            try:
                due = await self._once(term)
            except Deposed as why:
                self._since = None
                self._ended(CycleResult.DEPOSED)
                self._election.stand_down(str(why))
            except Exception as problem:  # noqa: BLE001 - a bug in one cycle must not end them all
                self._since = None
                self._ended(CycleResult.FAILED)
                wait = min(wait * 2, LONGEST_WAIT)
                self._say(problem, wait)
                await asyncio.sleep(wait)
            else:
                self.trouble, wait, self._since = "", FIRST_WAIT, None
                self._ended(CycleResult.DONE)
                await self._alarm.sleep(due)

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
