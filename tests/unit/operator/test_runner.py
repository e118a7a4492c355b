"""What the probes hear of the cycles: stuck, in trouble, or well."""

import asyncio
import time
from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from tutti.kube import errors
from tutti.kube.calls import Call, Right, Stream
from tutti.kube.client import NO_ANSWER
from tutti.kube.leader_election import Deposed
from tutti.operator.runner import (
    LONGEST_SETTLE,
    TIDY_SECONDS,
    AnsweredCalls,
    CycleRunner,
    WakeSignal,
)

PODS = Stream("Pods", Right("", "pods", "list"), Right("", "pods", "watch"))


class Leader:
    """An election that is won until it is told otherwise."""

    def __init__(self) -> None:
        self.term = "tutti-0/1"

    def stand_down(self, why: str) -> None:
        """End the term."""
        assert why
        self.term = ""


class Cycles:
    """A cycle that does as it is told, once, and then stops the pulse."""

    def __init__(self, does: Callable[[], Any]) -> None:
        self.does = does
        self.pulse: CycleRunner

    async def run_once(self, _term: str) -> None:
        """Do it."""
        self.pulse.stop()
        self.does()


def fails_with(problem: Exception) -> Callable[[], None]:
    """Answer something that raises it."""

    def fail() -> None:
        raise problem

    return fail


ENDS: list[str] = []  # how cycles ended, as the pulse told it


async def _nothing(_term: str) -> None:
    return None


def runner_of(
    cycles: Any,
    election: Any,
    *,
    patience: float,
    progress: Callable[[], float] = lambda: 0.0,
    ends: list[str] = ENDS,
) -> CycleRunner:
    """The runner of these cycles, which may begin at once."""
    cycles.pulse = CycleRunner(
        cycles,
        WakeSignal(),
        election,
        take_over=_nothing,
        may_begin=lambda: True,
        patience=patience,
        progress=progress,
        ended=ends.append,
    )
    return cycles.pulse  # type: ignore[no-any-return]


async def after_one_cycle(does: Callable[[], Any], election: Any) -> CycleRunner:
    """Answer the pulse as it is after a cycle that did this."""
    pulse = runner_of(Cycles(does), election, patience=0.0)
    await pulse.run_forever()
    await asyncio.sleep(0.01)
    return pulse


async def test_who_was_deposed_stands_by_and_is_not_stuck() -> None:
    leader = Leader()
    pulse = await after_one_cycle(fails_with(Deposed("the Lease names another term")), leader)
    assert pulse.stuck() == ""
    assert leader.term == ""


async def test_who_was_deposed_and_has_been_elected_again_leads_on() -> None:
    leader = Leader()

    def fail() -> None:
        leader.term = "tutti-0/3"
        raise Deposed("the Lease names another term")

    await after_one_cycle(fail, leader)
    assert leader.term == "tutti-0/3"


@pytest.mark.parametrize("problem", [errors.Unavailable("away"), RuntimeError("a bug")])
async def test_a_cycle_that_failed_is_in_trouble_and_not_stuck(problem: Exception) -> None:
    pulse = await after_one_cycle(fails_with(problem), Leader())
    assert pulse.stuck() == ""
    assert str(problem) in pulse.trouble
    assert ENDS[-1] == "failed"


async def test_a_cycle_that_runs_for_too_long_is_stuck() -> None:
    seen = []
    ends: list[str] = []
    cycle: Any = None

    def look() -> None:
        seen.append(cycle.pulse.stuck())

    cycle = Cycles(look)
    await runner_of(cycle, Leader(), patience=-1.0, ends=ends).run_forever()
    assert ends == ["done"]
    assert "more than" in seen[0]


async def test_a_cycle_whose_plan_comes_further_is_not_stuck() -> None:
    seen = []
    cycle: Any = None

    def look() -> None:
        seen.append(cycle.pulse.stuck())

    cycle = Cycles(look)
    await runner_of(cycle, Leader(), patience=-1.0, progress=lambda: inf).run_forever()
    assert seen[0] == ""


HANGING_WEBHOOK = 504  # the status of the answer for it


@pytest.mark.parametrize(
    ("call", "status", "is_stuck"),
    [
        (Call.EVICT, HANGING_WEBHOOK, False),
        (Call.CREATE_RESERVATION, 201, False),
        (Call.GET_POD, 404, False),
        (Call.DELETE_RESERVATION, NO_ANSWER, True),
        (Call.GET_LEASE, 200, True),
        (Call.UPDATE_LEASE, 200, True),
        (PODS.lists, 200, True),
        (PODS.watches, 200, True),
    ],
    ids=str,
)
async def test_a_cycle_whose_calls_are_answered_is_not_stuck(
    call: Right, status: int, *, is_stuck: bool
) -> None:
    """Each may take as long as a webhook hangs; the election renews its Lease meanwhile."""
    seen = []
    cycle: Any = None
    answered = AnsweredCalls(lambda: inf)

    def look() -> None:
        seen.append(cycle.pulse.stuck())
        answered.record(call, status)
        seen.append(cycle.pulse.stuck())

    cycle = Cycles(look)
    await runner_of(cycle, Leader(), patience=-1.0, progress=lambda: answered.last_at).run_forever()
    assert [bool(why) for why in seen] == [True, is_stuck]


class StandingBy:
    """A cycle of a replica that does not lead, which ends at the third time that it forgets."""

    def __init__(self) -> None:
        self.times = 0
        self.pulse: CycleRunner

    async def stand_by(self) -> None:
        """Forget, but for a bug at the second time."""
        self.times += 1
        if self.times == 2:
            raise RuntimeError("a bug")
        if self.times == 3:
            self.pulse.stop()


@pytest.mark.parametrize("is_synced", [True, False])
async def test_a_standby_forgets_what_is_gone_once_a_minute_while_things_change(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, is_synced: bool
) -> None:
    now, looks = 1000.0, 0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", time.monotonic)  # as before the next
    monkeypatch.setattr(time, "monotonic", lambda: now)
    leader, cycle, signal = Leader(), StandingBy(), WakeSignal(lambda: now)
    leader.term = ""

    async def sleep(_seconds: float | None) -> None:
        nonlocal now, looks
        now += TIDY_SECONDS / 4
        looks += 1
        if looks == 20:
            cycle.pulse.stop()

    monkeypatch.setattr(signal, "sleep", sleep)
    cycle.pulse = CycleRunner(
        cycle,  # type: ignore[arg-type]
        signal,
        leader,  # type: ignore[arg-type]
        take_over=_nothing,
        may_begin=lambda: is_synced,
        patience=0.0,
        progress=lambda: 0.0,
        ended=ENDS.append,
    )
    await cycle.pulse.run_forever()
    assert (cycle.times, looks) == ((3, 9) if is_synced else (0, 20))
    assert ("a bug" in caplog.text) == is_synced


async def wakes_at_once(alarm: WakeSignal) -> bool:
    """Whether a cycle begins without waiting for the end of a burst."""
    sleeping = asyncio.create_task(alarm.sleep(None))
    await asyncio.sleep(0)
    is_awake = sleeping.done()
    await sleeping
    return is_awake


async def test_a_change_waits_for_the_end_of_its_burst_unless_the_last_cycle_took_as_long() -> None:
    now = 0.0
    alarm = WakeSignal(lambda: now)
    alarm.wake()
    assert not await wakes_at_once(alarm)
    alarm.wake()
    now += LONGEST_SETTLE
    alarm.wake()
    assert await wakes_at_once(alarm)
    alarm.wake()
    assert not await wakes_at_once(alarm), "what comes later begins a burst of its own"
