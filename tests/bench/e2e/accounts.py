"""What a round comes to: its writes, entered gang by gang, and the figures made of them."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from ..load.figures import percentile
from ..load.gangs import gang_of
from .histories import ENDS, histories
from .scenarios import LARGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .contenders import Contender
    from .ledger import Write
    from .scenarios import Scenario
    from .usage import Spent, Usage


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
    wait_longest: float = math.nan
    whole: float = math.nan  # gangs that fit, and all of whose members were bound
    starving: float = math.nan  # gangs that fit, and were never whole
    never_bound: float = math.nan  # pods bound of gangs that never fit
    started: float = math.nan  # gangs that became whole in the time that counts
    utilisation: float = math.nan  # share of all GPUs that bound pods had until they ended
    partial_gpu_seconds: float = math.nan  # held by gangs that were not whole
    late_seconds: float = math.nan  # the most by which the benchmark made or ended a gang late
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
            wait_longest=math.inf,
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
        every = tuple(writes)
        self.gangs = histories(sizes, every)
        self._contender = contender
        self._sizes = sizes
        self._uids = uids
        self._bound = [at for gang in self.gangs.values() for at in gang.bound.values()]
        self._kinds: defaultdict[str, int] = defaultdict(int)
        self._large = 0
        self._ended: set[str] = set()
        for write in every:
            if write.user in contender.users:
                self._enter(write)

    def _enter(self, write: Write) -> None:
        self._kinds[f"{write.verb} {write.resource}"] += 1
        if gang_of(write.name) not in self._sizes and (write.verb, write.resource) in ENDS:
            self._ended.add(write.name)
        self._large += self._sizes.get(self._gang_of(write.name), 0) >= LARGE

    def _gang_of(self, name: str) -> str:
        """The gang that an object of any kind belongs to, by its name."""
        # An Event is named after what it is about, with a suffix.
        owner = self._uids.get(name, name).partition(".")[0]
        return owner if owner in self._sizes else gang_of(owner)

    def measured(self, scenario: Scenario, spent: Spent) -> Measured:
        """The figures of a whole round."""
        waits = [gang.wait for gang in self.gangs.values()]
        created = [at for gang in self.gangs.values() for at in gang.created.values()]
        first = min(created)
        seconds = max(self._bound, default=math.inf) - first
        return Measured(
            contender=self._contender.name,
            scenario=scenario.name,
            pods=scenario.pods,
            bound=len(self._bound),
            pods_per_second=len(self._bound) / seconds,
            created_per_second=len(created) / max(max(created) - first, 1e-3),
            wait_p50=percentile(waits, 50),
            wait_p99=percentile(waits, 99),
            cpu_seconds=spent.cpu_seconds,
            server_cpu_seconds=spent.server_cpu_seconds,
            peak_megabytes=spent.peak_megabytes,
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
        last = max(self._bound, default=math.inf)
        return Measured(
            contender=self._contender.name,
            scenario=scenario.name,
            pods=scenario.pods,
            bound=len(self._bound),
            pods_per_second=len(self._bound) / (last - began) if self._bound else 0.0,
            start_seconds=min(self._bound, default=math.inf) - began,
            cpu_seconds=cost.cpu_seconds,
            server_cpu_seconds=server_cpu,
            peak_megabytes=cost.peak_megabytes,
            writes=dict(self._kinds),
        )
