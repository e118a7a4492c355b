"""What a process has cost so far, by /proc."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_TICKS = os.sysconf("SC_CLK_TCK")
_PEAK = re.compile(r"VmHWM:\s+(\d+) kB")


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU with that of its ended children, and the most memory it ever held at one time."""

    cpu_seconds: float
    peak_megabytes: float


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
