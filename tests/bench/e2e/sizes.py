"""The gangs of a round: their names, and how many members each has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from .scenarios import FITTING_PER_NEVER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .scenarios import Scenario

_PER_GANG = 1000  # pods that only wait


@dataclass(frozen=True, slots=True)
class Sizes:
    """Members by gang, with a prefix of the round in the names."""

    fitting: Mapping[str, int]
    never: Mapping[str, int] = field(default_factory=dict)  # they select too few nodes
    waiting: Mapping[str, int] = field(default_factory=dict)  # some members never come

    @classmethod
    def of(cls, scenario: Scenario, prefix: str) -> Self:
        """The gangs of a scenario."""
        return cls(
            {f"{prefix}g{i:04}": n for i, n in enumerate(scenario.sizes)},
            {f"{prefix}n{i:04}": n for i, n in enumerate(scenario.never)},
            waiting(prefix, scenario.waiting),
        )

    @property
    def all(self) -> Mapping[str, int]:
        """Every gang."""
        return {**self.fitting, **self.never, **self.waiting}

    def in_turn(self) -> Iterator[tuple[str, int]]:
        """Gangs that fit and gangs that never fit, evenly mixed: the first never fits, if any."""
        fitting = [*self.fitting.items()]
        for i, gang in enumerate(self.never.items()):
            yield gang
            yield from fitting[i * FITTING_PER_NEVER : (i + 1) * FITTING_PER_NEVER]
        yield from fitting[len(self.never) * FITTING_PER_NEVER :]


def waiting(prefix: str, pods: int) -> Mapping[str, int]:
    """Gangs that never have all their members, by how many they have."""
    return {
        f"{prefix}w{i:04}": min(_PER_GANG, pods - i * _PER_GANG)
        for i in range(-(-pods // _PER_GANG))
    }
