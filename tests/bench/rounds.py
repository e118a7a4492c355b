"""One round: one scheduler, started for it, meets one scenario; what was seen is a value."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..controlplane.errors import StartError
from ..load.gangs import Load, Member
from ..operator_process import OperatorError
from . import usage
from .accounts import Account, Measured
from .stage import NAMESPACE, collection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .contenders import Contender
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
    play = _Play(stage, contender, {f"{prefix}g{i:04}": n for i, n in enumerate(scenario.sizes)})
    warm_up = _Play(stage, contender, {f"{prefix}warm": WARM_UP})
    try:
        if scenario.is_start:
            return play.start(scenario, patience)
        return play.run(scenario, warm_up, patience)
    except (StartError, OperatorError, FileNotFoundError, ProcessLookupError) as problem:
        raise FallenError(f"{contender.name}: {problem}") from problem
    finally:
        play.remove()
        warm_up.remove()


class _Play:
    """Some gangs of a round: made, followed, removed."""

    def __init__(self, stage: Stage, contender: Contender, sizes: Mapping[str, int]) -> None:
        self._stage = stage
        self._contender = contender
        self._sizes = sizes
        self._load = Load(contender.form, NAMESPACE, Member(), {"app": "bench"})
        self._is_made = False

    def run(self, scenario: Scenario, warm_up: _Play, patience: Patience) -> Measured:
        """Make the gangs while the scheduler is at work, and wait until all are bound."""
        stage = self._stage
        scheduler = self._contender.start(stage.plane)
        try:
            stage.ledger.mark()
            warm_up.make()
            if not stage.until_bound(WARM_UP, _START_SECONDS):
                raise FallenError(f"{self._contender.name} binds nothing")
            stage.until_quiet()
            before, server = usage.of(scheduler.pid), self._server_cpu()
            stage.ledger.mark()
            self.make()
            stage.until_bound(scenario.pods, patience.seconds)
            stage.until_quiet()
            cost = usage.of(scheduler.pid)
            server = self._server_cpu() - server
        finally:
            scheduler.stop()
        account = Account(self._contender, self._sizes, self._group_uids(), stage.ledger.writes())
        cpu = cost.cpu_seconds - before.cpu_seconds
        return account.measured(scenario, cpu, server, cost.peak_megabytes)

    def start(self, scenario: Scenario, patience: Patience) -> Measured:
        """Start the scheduler with all gangs there already."""
        stage = self._stage
        self.make()
        stage.until_quiet()
        server = self._server_cpu()
        stage.ledger.mark()
        began = time.time()
        scheduler = self._contender.start(stage.plane, ready=False)
        try:
            stage.until_bound(scenario.pods, patience.seconds)
            stage.until_quiet()
            cost = usage.of(scheduler.pid)
            server = self._server_cpu() - server
        finally:
            scheduler.stop()
        account = Account(self._contender, self._sizes, {}, stage.ledger.writes())
        return account.started(scenario, began, server, cost)

    def make(self) -> None:
        """Create gang by gang, each group right before its pods, as users do."""
        self._is_made = True
        made = (
            one
            for name, n in self._sizes.items()
            for one in (self._load.group(name, n), *self._load.pods(name, n))
        )
        self._stage.create([one for one in made if one is not None])

    def remove(self) -> None:
        """Delete what was made."""
        if self._is_made:
            pods = [f"{name}-{i}" for name, n in self._sizes.items() for i in range(n)]
            self._stage.remove(self._sizes, pods, self._contender.form)

    def _group_uids(self) -> Mapping[str, str]:
        """The gangs by their PodGroups' uids: some objects are named by those."""
        group = self._load.group("any", 1)
        if group is None:
            return {}
        listed = self._stage.plane.request("GET", collection(group))["items"]
        return {each["metadata"]["uid"]: each["metadata"]["name"] for each in listed}

    def _server_cpu(self) -> float:
        names = ("kube-apiserver", "etcd")
        processes = [self._stage.plane.process(name) for name in names]
        return sum(usage.of(process.pid).cpu_seconds for process in processes)
