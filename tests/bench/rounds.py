"""One round: one scheduler, started for it, meets one scenario; what was seen is a value."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..load.figures import percentile
from ..load.gangs import Load, Member, gang_of
from . import usage
from .scenarios import LARGE
from .stage import NAMESPACE, collection

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .contenders import Contender
    from .ledger import Write
    from .scenarios import Scenario
    from .stage import Stage

WARM_UP = 4  # members of the gang that shows that a scheduler is at work
_START_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What one scheduler did in one round; not a number where there is nothing to say."""

    contender: str
    scenario: str
    pods: int
    bound: int
    pods_per_second: float = math.nan
    created_per_second: float = math.nan
    wait_p50: float = math.nan  # seconds, a gang's last member created to its last binding
    wait_p99: float = math.nan
    start_seconds: float = math.nan  # the scheduler's start to its first binding
    cpu_seconds: float = math.nan
    server_cpu_seconds: float = math.nan  # the API server's and etcd's
    peak_megabytes: float = math.nan
    writes_per_pod: float = math.nan
    large_writes_per_pod: float = math.nan  # of gangs of 64 and more
    writes: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether every pod was bound in time."""
        return self.bound == self.pods


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a round may take before what is not bound counts as never bound."""

    seconds: float


def measure(
    stage: Stage, scenario: Scenario, contender: Contender, prefix: str, patience: Patience
) -> Measured:
    """Play one round, and leave the cluster as it was found."""
    play = _Play(stage, contender, {f"{prefix}g{i:04}": n for i, n in enumerate(scenario.sizes)})
    warm_up = _Play(stage, contender, {f"{prefix}warm": WARM_UP})
    try:
        if scenario.is_start:
            return play.start(scenario)
        return play.run(scenario, warm_up, patience)
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
                raise AssertionError(f"{self._contender.name} binds nothing")
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
        account = _Account(self._contender, self._sizes, self._group_uids(), stage.ledger.writes())
        cpu = cost.cpu_seconds - before.cpu_seconds
        return account.measured(scenario, cpu, server, cost.peak_megabytes)

    def start(self, scenario: Scenario) -> Measured:
        """Start the scheduler with one gang there already; the first binding ends the time."""
        stage = self._stage
        self.make()
        stage.until_quiet()
        server = self._server_cpu()
        stage.ledger.mark()
        began = time.time()
        scheduler = self._contender.start(stage.plane, ready=False)
        try:
            stage.until_bound(scenario.pods, _START_SECONDS)
            stage.until_quiet()
            cost = usage.of(scheduler.pid)
            server = self._server_cpu() - server
        finally:
            scheduler.stop()
        account = _Account(self._contender, self._sizes, {}, stage.ledger.writes())
        return account.started(scenario, began, server, cost)

    def make(self) -> None:
        """Create the groups, and then the pods, gang by gang."""
        self._is_made = True
        groups = (self._load.group(name, n) for name, n in self._sizes.items())
        self._stage.create([group for group in groups if group is not None])
        self._stage.create(
            [pod for name, n in self._sizes.items() for pod in self._load.pods(name, n)]
        )

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


class _Account:
    """The writes of a round, gang by gang."""

    def __init__(
        self,
        contender: Contender,
        sizes: Mapping[str, int],
        uids: Mapping[str, str],
        writes: Iterable[Write],
    ) -> None:
        self._contender = contender
        self._sizes = sizes
        self._uids = uids
        self._created: dict[str, float] = {}
        self._bound: dict[str, float] = {}
        self._kinds: defaultdict[str, int] = defaultdict(int)
        self._large = 0
        for write in writes:
            self._enter(write)

    def _enter(self, write: Write) -> None:
        if write.verb == "create" and write.resource == "pods":
            self._created[write.name] = write.at
        if write.resource == "pods/binding" and gang_of(write.name) in self._sizes:
            self._bound[write.name] = write.at
        if write.user == self._contender.user:
            self._kinds[f"{write.verb} {write.resource}"] += 1
            self._large += self._sizes.get(self._gang_of(write.name), 0) >= LARGE

    def _gang_of(self, name: str) -> str:
        """The gang that an object of any kind belongs to, by its name."""
        # An Event is named after what it is about, with a suffix.
        owner = self._uids.get(name, name).partition(".")[0]
        return owner if owner in self._sizes else gang_of(owner)

    def measured(self, scenario: Scenario, cpu: float, server_cpu: float, peak: float) -> Measured:
        """The figures of a whole round."""
        waits = self._waits()
        first, created = min(self._created.values()), max(self._created.values())
        seconds = max(self._bound.values(), default=math.nan) - first
        return Measured(
            contender=self._contender.name,
            scenario=scenario.name,
            pods=scenario.pods,
            bound=len(self._bound),
            pods_per_second=len(self._bound) / seconds,
            created_per_second=len(self._created) / max(created - first, 1e-3),
            wait_p50=percentile(waits, 50),
            wait_p99=percentile(waits, 99),
            cpu_seconds=cpu,
            server_cpu_seconds=server_cpu,
            peak_megabytes=peak,
            writes_per_pod=sum(self._kinds.values()) / scenario.pods,
            large_writes_per_pod=self._large_writes(),
            writes=dict(self._kinds),
        )

    def _large_writes(self) -> float:
        pods = sum(size for size in self._sizes.values() if size >= LARGE)
        return self._large / pods if pods else math.nan

    def started(
        self, scenario: Scenario, began: float, server_cpu: float, cost: usage.Usage
    ) -> Measured:
        """The figures of a start."""
        return Measured(
            contender=self._contender.name,
            scenario=scenario.name,
            pods=scenario.pods,
            bound=len(self._bound),
            start_seconds=min(self._bound.values(), default=math.nan) - began,
            cpu_seconds=cost.cpu_seconds,
            server_cpu_seconds=server_cpu,
            peak_megabytes=cost.peak_megabytes,
            writes=dict(self._kinds),
        )

    def _waits(self) -> list[float]:
        """Seconds from each gang's last creation to its last binding; for ever if not all are."""
        waits = []
        for name, size in self._sizes.items():
            names = [f"{name}-{i}" for i in range(size)]
            if all(pod in self._bound for pod in names):
                created = max(self._created[pod] for pod in names)
                waits.append(max(self._bound[pod] for pod in names) - created)
            else:
                waits.append(math.inf)
        return waits
