"""One round: one scheduler, started for it, meets one scenario; what was seen is a value."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from ...harness.controlplane.errors import StartError
from ...harness.operator_process import OperatorError
from ..load.gangs import SCHEDULERS, Form, Load, Member
from . import usage
from .accounts import Account, Measured
from .scenarios import NAMESPACE, PRIORITY_CLASS
from .stage import collection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..load.gangs import Manifest
    from .contenders import Contender
    from .scenarios import Scenario
    from .stage import Stage

_PER_GANG = 1000  # pods that only wait
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
    sizes = {f"{prefix}g{i:04}": n for i, n in enumerate(scenario.sizes)}
    priority = PRIORITY_CLASS if scenario.running else ""
    play = _Play(stage, contender, sizes, _waiting(prefix, scenario.waiting), priority)
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
        if scenario.running:
            stage.clear()


def _waiting(prefix: str, pods: int) -> Mapping[str, int]:
    """Gangs that never have all their members, by how many they have."""
    return {
        f"{prefix}w{i:04}": min(_PER_GANG, pods - i * _PER_GANG)
        for i in range(-(-pods // _PER_GANG))
    }


class _Play:
    """Some gangs of a round: made, followed, removed."""

    def __init__(
        self,
        stage: Stage,
        contender: Contender,
        sizes: Mapping[str, int],
        waiting: Mapping[str, int] = MappingProxyType({}),
        priority: str = "",
    ) -> None:
        self._stage = stage
        self._waiting = waiting
        self._contender = contender
        self._sizes = sizes
        form, labels = contender.form, {"app": "bench"}
        self._load = Load(form, NAMESPACE, Member(), labels, priority_class=priority)
        # A pod alone needs no PodGroup.
        self._single = Load(
            Form.PLAIN, NAMESPACE, Member(), labels, SCHEDULERS[form], priority_class=priority
        )
        self._is_made = False

    def run(self, scenario: Scenario, warm_up: _Play, patience: Patience) -> Measured:
        """Make the gangs while the scheduler is at work, and wait until all are bound."""
        stage = self._stage
        scheduler = self._contender.start(stage.plane, ends_pods=bool(scenario.running))
        try:
            stage.ledger.mark()
            warm_up.make()
            if not stage.until_bound(WARM_UP, _START_SECONDS):
                raise FallenError(f"{self._contender.name} binds nothing")
            if scenario.running:
                warm_up.remove()
                stage.fill(self._contender.form, scenario.running)
            stage.until_quiet()
            before, server = usage.of_all(scheduler.pids), self._server_cpu()
            stage.ledger.mark()
            self.make()
            stage.until_bound(scenario.pods, patience.seconds)
            stage.until_quiet()
            cost = usage.of_all(scheduler.pids)
            server = self._server_cpu() - server
            delay = scheduler.watch_delay()
        finally:
            scheduler.stop()
        account = Account(self._contender, self._sizes, self._group_uids(), stage.ledger.writes())
        cpu = cost.cpu_seconds - before.cpu_seconds
        one = account.measured(scenario, cpu, server, cost.peak_megabytes)
        return replace(one, watch_delay=delay)

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
            cost = usage.of_all(scheduler.pids)
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
            for load in (self._load if n > 1 else self._single,)
            for one in (load.group(name, n), *load.pods(name, n))
        )
        self._stage.create(_mixed([one for one in made if one is not None], self._others()))

    def _others(self) -> list[Manifest]:
        """The pods that only wait, each gang's group before them."""
        load = Load(Form.TUTTI, NAMESPACE, Member(), {"app": "bench"})
        made = (
            one
            for name, n in self._waiting.items()
            for one in (load.group(name, n + 1), *load.pods(name, n))
        )
        return [one for one in made if one is not None]

    def remove(self) -> None:
        """Delete what was made."""
        if self._is_made:
            sizes = {**self._sizes, **self._waiting}
            pods = [f"{name}-{i}" for name, n in sizes.items() for i in range(n)]
            groups = [name for name, n in sizes.items() if n > 1]
            self._stage.remove(groups, pods, self._contender.form)
            self._is_made = False

    def _group_uids(self) -> Mapping[str, str]:
        """The gangs by their PodGroups' uids: some objects are named by those."""
        group = self._load.group("any", 1)
        if group is None:
            return {}
        listed = self._stage.plane.request("GET", collection(group))["items"]
        return {each["metadata"]["uid"]: each["metadata"]["name"] for each in listed}

    def _server_cpu(self) -> float:
        names = ("kube-apiserver", "etcd")
        return usage.of_all(self._stage.plane.process(name).pid for name in names).cpu_seconds


def _mixed(some: Sequence[Manifest], others: Sequence[Manifest]) -> Iterator[Manifest]:
    """All of both, evenly mixed, each in its order."""
    share = len(others) / max(1, len(some))
    for i, one in enumerate(some):
        yield one
        yield from others[round(i * share) : round((i + 1) * share)]
