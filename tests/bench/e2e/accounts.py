"""What a round comes to: its writes, entered gang by gang, and the figures made of them."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from ..load.figures import percentile
from ..load.gangs import gang_of
from .scenarios import LARGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .contenders import Contender
    from .ledger import Write
    from .scenarios import Scenario
    from .usage import Usage


_ENDS = {("create", "pods/eviction"), ("delete", "pods")}


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
    peak_megabytes: float = math.nan  # of the process itself, not of those it starts
    writes_per_pod: float = math.nan
    large_writes_per_pod: float = math.nan  # of gangs of 64 and more
    ended: float = math.nan  # pods of low priority that it ended
    watch_delay: float = math.nan  # seconds until the watch showed a binding, the 99th percentile
    writes: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether every pod was bound in time."""
        return self.bound == self.pods

    @classmethod
    def fallen(cls, contender: str, scenario: Scenario) -> Self:
        """Of a scheduler that did not start, or did not live to the end."""
        return cls(
            contender,
            scenario.name,
            pods=scenario.pods,
            bound=0,
            pods_per_second=0.0,
            wait_p50=math.inf,
            wait_p99=math.inf,
            start_seconds=math.inf,
        )


class Account:
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
        self._ended: set[str] = set()
        for write in writes:
            self._enter(write)

    def _enter(self, write: Write) -> None:
        is_member = gang_of(write.name) in self._sizes
        if write.verb == "create" and write.resource == "pods" and is_member:
            self._created[write.name] = write.at
        if write.resource == "pods/binding" and is_member:
            self._bound[write.name] = write.at
        if write.user in self._contender.users:
            self._kinds[f"{write.verb} {write.resource}"] += 1
            if not is_member and (write.verb, write.resource) in _ENDS:
                self._ended.add(write.name)
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
        seconds = max(self._bound.values(), default=math.inf) - first
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
            ended=len(self._ended) if scenario.running else math.nan,
            writes=dict(self._kinds),
        )

    def _large_writes(self) -> float:
        pods = sum(size for size in self._sizes.values() if size >= LARGE)
        return self._large / pods if pods else math.nan

    def started(self, scenario: Scenario, began: float, server_cpu: float, cost: Usage) -> Measured:
        """The figures of a start; pods/s counts from there."""
        last = max(self._bound.values(), default=math.inf)
        return Measured(
            contender=self._contender.name,
            scenario=scenario.name,
            pods=scenario.pods,
            bound=len(self._bound),
            pods_per_second=len(self._bound) / (last - began) if self._bound else 0.0,
            start_seconds=min(self._bound.values(), default=math.inf) - began,
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
