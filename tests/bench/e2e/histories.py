"""What became of each gang of a round: when its members were created and bound, and ended."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..load.figures import overlap
from ..load.gangs import gang_of
from .ledger import HARNESS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .ledger import Write

# Verb and resource of what ends a pod before its containers have ended.
ENDS = frozenset({("create", "pods/eviction"), ("delete", "pods")})
_CREATION, _BINDING = ("create", "pods"), ("create", "pods/binding")
_COMPLETION = ("patch", "pods/status")


@dataclass(slots=True)
class History:
    """One gang; times are seconds since the epoch by member, and each member has one GPU."""

    size: int
    created: dict[str, float] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)

    @property
    def created_at(self) -> float:
        """When the last member was created; infinite if some were not."""
        return _last(self.created, self.size)

    @property
    def whole_at(self) -> float:
        """When the last member was bound; infinite unless all were bound at one time."""
        last = _last(self.bound, self.size)
        return last if last <= min(self.ended.values(), default=math.inf) else math.inf

    @property
    def ended_at(self) -> float:
        """When the last member ended; infinite if some did not."""
        return _last(self.ended, self.size)

    @property
    def wait(self) -> float:
        """Seconds from the creation of the last member to the gang's being whole."""
        return math.inf if math.isinf(self.whole_at) else self.whole_at - self.created_at

    def gpu_seconds(self, begin: float, end: float) -> float:
        """What bound members that had not ended held between these times."""
        return sum(
            overlap(at, self.ended.get(pod, math.inf), begin, end) for pod, at in self.bound.items()
        )

    def partial_gpu_seconds(self, begin: float, end: float) -> float:
        """What they held of it while the gang was not whole."""
        return self.gpu_seconds(begin, min(end, self.whole_at))


def histories(sizes: Mapping[str, int], writes: Iterable[Write]) -> Mapping[str, History]:
    """The history of each of these gangs by its name, in the order of ``sizes``."""
    gangs = {name: History(size) for name, size in sizes.items()}
    for write in writes:
        if (gang := gangs.get(gang_of(write.name))) is None:
            continue
        change = (write.verb, write.resource)
        if change == _CREATION:
            gang.created.setdefault(write.name, write.at)
        elif change == _BINDING:
            gang.bound.setdefault(write.name, write.at)
        elif change in ENDS or (change == _COMPLETION and write.user == HARNESS):
            gang.ended.setdefault(write.name, write.at)
    return gangs


def _last(times: Mapping[str, float], size: int) -> float:
    return max(times.values()) if len(times) == size else math.inf
