"""What a process has cost so far, by /proc."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_TICKS = os.sysconf("SC_CLK_TCK")
_PEAK = re.compile(r"VmHWM:\s+(\d+) kB")


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU with that of its ended children, and the most memory it ever held at one time."""

    cpu_seconds: float
    peak_megabytes: float


@dataclass(frozen=True, slots=True)
class Spent:
    """What a scheduler and the servers below it have cost since a meter began."""

    cpu_seconds: float
    server_cpu_seconds: float
    peak_megabytes: float  # of the scheduler, since its start


class Meter:
    """Counts the CPU of a scheduler, and that of the API server and etcd, from now on."""

    def __init__(self, pids: Collection[int], server_pids: Collection[int]) -> None:
        self._pids = pids
        self._server_pids = server_pids
        self._before = of_all(pids).cpu_seconds
        self._server_before = of_all(server_pids).cpu_seconds

    def spent(self) -> Spent:
        """What has been spent by now."""
        usage = of_all(self._pids)
        server = of_all(self._server_pids).cpu_seconds - self._server_before
        return Spent(usage.cpu_seconds - self._before, server, usage.peak_megabytes)


def of_all(pids: Iterable[int]) -> Usage:
    """The usage of running processes together; their peaks need not be at the same time."""
    usages = [of(pid) for pid in pids]
    return Usage(
        sum(usage.cpu_seconds for usage in usages), sum(usage.peak_megabytes for usage in usages)
    )


def of(pid: int) -> Usage:
    """The usage of a running process."""
    place = Path(f"/proc/{pid}")
    # The second field, the name, may hold anything; what follows its last parenthesis is plain.
    fields = (place / "stat").read_text().rpartition(")")[2].split()
    found = _PEAK.search((place / "status").read_text())
    peak = int(found.group(1)) / 1000 if found else 0.0
    return Usage(sum(map(int, fields[11:15])) / _TICKS, peak)
