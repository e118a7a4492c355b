"""What a run does when it is told to stop, and the cycle in hand ends in time, or does not."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from tutti.operator import main
from tutti.state.cluster_state import ClusterState
from tutti.state.reflectors import reflectors_into

if TYPE_CHECKING:
    from collections.abc import Iterator


class Leader:
    """An election that is won; notes when it gives the Lease back."""

    term = ""  # there is nothing to adopt

    def __init__(self, log: list[str]) -> None:
        self._log = log

    async def look(self) -> None:
        """Look once, for as long as the run lasts: no list begins before the stop."""
        await asyncio.Event().wait()

    async def resign(self) -> None:
        """Give the Lease back."""
        self._log.append("resigned")


class Runner:
    """A cycle in hand that ends so many seconds after the stop, or never."""

    def __init__(self, log: list[str], seconds: float | None) -> None:
        self._log = log
        self._seconds = seconds
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Begin no further cycle."""
        self._log.append("told to stop")
        self._stopping.set()

    async def run_forever(self) -> None:
        """Run the one cycle."""
        try:
            await self._stopping.wait()
            if self._seconds is None:
                await asyncio.Event().wait()
            await asyncio.sleep(self._seconds or 0.0)
        except asyncio.CancelledError:
            self._log.append("cycle cut short")
            raise
        self._log.append("cycle ended")


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.CRITICAL):
        yield


async def stopped(seconds: float | None) -> list[str]:
    """Stop a run whose cycle takes so long, and answer what happened."""
    log: list[str] = []
    state = ClusterState(lambda: None)
    nobody: Any = None
    leader: Any = Leader(log)
    runner: Any = Runner(log, seconds)
    run = main._Run(
        nobody,
        reflectors_into(state, "tutti"),
        state=state,
        election=leader,
        takeover=nobody,
        runner=runner,
        demand=nobody,
        registry=nobody,
    )
    asyncio.get_running_loop().call_soon(run._stopping.set)
    await run.until_stopped()
    return log


async def test_the_lease_is_given_back_once_the_cycle_in_hand_has_ended() -> None:
    assert await stopped(0.0) == ["told to stop", "cycle ended", "resigned"]


async def test_a_leader_whose_cycle_does_not_end_in_time_keeps_the_lease(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its calls may be on their way, so a standby waits until the Lease expires."""
    monkeypatch.setattr(main, "STOP_SECONDS", 0.05)
    assert await stopped(None) == ["told to stop", "cycle cut short"]
