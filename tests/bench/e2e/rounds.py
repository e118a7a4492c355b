"""One round: one scheduler, started for it, meets one scenario; what was seen is a value."""

from __future__ import annotations

import time
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...harness.controlplane.errors import StartError
from ...harness.operator_process import OperatorError
from ..load.gangs import Form
from . import usage
from .accounts import Account
from .churn import Span, with_churn
from .histories import histories
from .plays import Play
from .replay import Replay
from .scenarios import PRIORITY_CLASS
from .sizes import Sizes
from .starving import QUIET_SECONDS, with_starving
from .usage import Meter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .accounts import Measured
    from .contenders import Contender, Running
    from .scenarios import Scenario
    from .stage import Stage

WARM_UP = 4  # members of the gang that shows that a scheduler is at work
_START_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a round may take before what is not bound counts as never bound."""

    seconds: float


class FallenError(Exception):
    """A scheduler bound nothing at all."""


def measure(
    stage: Stage, scenario: Scenario, contender: Contender, prefix: str, patience: Patience
) -> Measured:
    """Play one round, and leave the cluster as it was found.

    Raises:
        FallenError: the scheduler did not start, or did not live to the end.
    """
    played = _Round(stage, scenario, contender, prefix)
    try:
        if scenario.is_start:
            return played.start(patience)
        if scenario.arrivals:
            return played.churn()
        return played.run(patience)
    except (StartError, OperatorError, FileNotFoundError, ProcessLookupError) as problem:
        raise FallenError(f"{contender.name}: {problem}") from problem
    finally:
        played.remove()


class _Round:
    """One scheduler and the gangs that it meets."""

    def __init__(self, stage: Stage, scenario: Scenario, contender: Contender, prefix: str) -> None:
        self._stage = stage
        self._scenario = scenario
        self._contender = contender
        self._sizes = Sizes.of(scenario, prefix)
        priority = PRIORITY_CLASS if scenario.running else ""
        self._play = Play(stage, contender, self._sizes, priority)
        self._warm_up = Play(stage, contender, Sizes({f"{prefix}warm": WARM_UP}))

    def run(self, patience: Patience) -> Measured:
        """Make the gangs while the scheduler is at work, and wait until all are bound."""
        stage, scenario, sizes = self._stage, self._scenario, self._sizes
        with self._at_work() as scheduler:
            meter = Meter(scheduler.pids, stage.server_pids)
            stage.ledger.mark()
            self._play.make()
            if scenario.never:
                stage.until_whole(sizes.fitting, patience.seconds, QUIET_SECONDS)
            else:
                stage.until_bound(scenario.pods, patience.seconds)
            end = time.time()
            stage.until_quiet()
            spent = meter.spent()
            delay = scheduler.watch_delay()
        writes = tuple(stage.ledger.writes())
        account = Account(self._contender, sizes.fitting, self._play.group_uids(), writes)
        measured = replace(account.measured(scenario, spent), watch_delay=delay)
        if not scenario.never:
            return measured
        never = histories(sizes.never, writes)
        return with_starving(measured, account.gangs.values(), never.values(), end)

    def churn(self) -> Measured:
        """Let gangs arrive and end; the cost, too, is of the time that counts."""
        stage, scenario, sizes = self._stage, self._scenario, self._sizes
        arrivals = dict(zip(sizes.fitting, scenario.arrivals, strict=True))
        with self._at_work() as scheduler, closing(stage.writer()) as writer:
            stage.ledger.mark()
            span = Span(time.time(), scenario.minutes * 60)
            replay = Replay(self._play, arrivals, span.began, stage.ledger, writer)
            replay.until(span.counts_from)
            meter = Meter(scheduler.pids, stage.server_pids)
            replay.until(span.end)
            spent = meter.spent()
        stage.ledger.follow()
        account = Account(self._contender, sizes.fitting, {}, stage.ledger.writes())
        measured = account.measured(scenario, spent)
        return with_churn(measured, account.gangs, arrivals, span, scenario.gpus)

    def start(self, patience: Patience) -> Measured:
        """Start the scheduler with all gangs there already.

        If pods wait, the cost is that until the gangs are bound: to write why 50,000 pods wait
        takes minutes, and a scheduler that writes faster would seem to cost more.
        """
        stage, scenario = self._stage, self._scenario
        if self._contender.form is Form.VOLCANO:
            self._contender.start(stage.plane).stop()  # it brings the kind of its gangs
        self._play.make()
        stage.until_quiet()
        servers = Meter((), stage.server_pids)
        stage.ledger.mark()
        began = time.time()
        scheduler = self._contender.start(stage.plane, ready=False)
        try:
            stage.until_bound(scenario.pods, patience.seconds)
            if not scenario.waiting:
                stage.until_quiet()
            cost = usage.of_all(scheduler.pids)
            server = servers.spent().server_cpu_seconds
        finally:
            scheduler.stop()
        account = Account(self._contender, self._sizes.fitting, {}, stage.ledger.writes())
        return account.started(scenario, began, server, cost)

    @contextmanager
    def _at_work(self) -> Iterator[Running]:
        """The scheduler once it has bound a gang, and nobody writes any more."""
        stage, scenario = self._stage, self._scenario
        scheduler = self._contender.start(
            stage.plane, ends_pods=bool(scenario.running), fills_nodes=scenario.fills_nodes
        )
        try:
            stage.ledger.mark()
            self._warm_up.make()
            if not stage.until_bound(WARM_UP, _START_SECONDS):
                raise FallenError(f"{self._contender.name} binds nothing")
            if scenario.running:
                self._warm_up.remove()
                stage.fill(self._contender.form, scenario.running)
            if scenario.fills_nodes:
                # All GPUs are for the gangs that are measured.
                self._warm_up.complete()
            stage.until_quiet()
            yield scheduler
        finally:
            scheduler.stop()

    def remove(self) -> None:
        """Delete what is there of it."""
        if self._scenario.arrivals:
            self._stage.remove_all(self._contender.form)
            return
        self._play.remove()
        self._warm_up.remove()
        if self._scenario.running:
            self._stage.clear()
