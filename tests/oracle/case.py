"""The question that the oracle answers, in words of its own: who asks for what, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.strategies.problem import Demand, Problem

Worth = tuple[tuple[int, int], ...]  # (level, value admitted), highest level first


@dataclass(frozen=True, slots=True)
class Kind:
    """So many pods that are alike: what each takes, and the nodes where it may run."""

    takes: tuple[int, ...]
    where: frozenset[int]
    role: int
    count: int


@dataclass(frozen=True, slots=True)
class Ask:
    """A gang: ``need`` pods of these kinds, so many of each role among them, or none."""

    need: int
    kinds: tuple[Kind, ...]
    least: tuple[int, ...]  # by role
    level: int
    value: int


@dataclass(frozen=True, slots=True)
class Case:
    """The room of each node by resource, and the gangs that want it."""

    rooms: tuple[tuple[int, ...], ...]
    asks: tuple[Ask, ...]

    @property
    def levels(self) -> Sequence[int]:
        """The priorities, highest first."""
        return sorted({ask.level for ask in self.asks}, reverse=True)


def case_of(problem: Problem) -> Case:
    """What a Problem means."""
    return Case(
        rooms=tuple(tuple(row) for row in problem.free.tolist()),
        asks=tuple(_ask(problem, demand) for demand in problem.demands),
    )


def _ask(problem: Problem, demand: Demand) -> Ask:
    kinds = tuple(
        Kind(
            takes=tuple(problem.requests[part.shape].tolist()),
            where=frozenset(
                node for node, may in enumerate(problem.allowed[part.shape].tolist()) if may
            ),
            role=part.role,
            count=part.available,
        )
        for part in demand.parts
    )
    return Ask(demand.need, kinds, demand.role_minimum, demand.level, demand.value)
