"""Gangs under one limit: they start, lose members, replace them, grow and end.

Whatever happens, what members hold is never more than what is charged, and never more than the
limit. The charge is stated here once more; ``comparing`` holds Tutti's beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = ("start", "start", "fail", "leave", "gone", "replace", "replace", "grow", "succeed")


@dataclass(frozen=True)
class Pod:
    """A member with a node; members are older or younger than others by their numbers."""

    number: int
    size: int
    state: str = "runs"  # or leaves, succeeded


@dataclass(frozen=True)
class Crew:
    """A gang of one role: how many it needs, what it started with, and its pods."""

    name: str
    need: int
    at_start: int
    pods: tuple[Pod, ...]  # in the order in which they joined

    @property
    def held(self) -> int:
        """What its members hold room for."""
        return sum(pod.size for pod in self.pods if pod.state != "succeeded")

    @property
    def there(self) -> int:
        """How many members it has, with those that succeeded."""
        return sum(pod.state != "leaves" for pod in self.pods)

    def joined_by(self, size: int, number: int = 0) -> Crew:
        """The gang with one more member."""
        return replace(self, pods=(*self.pods, Pod(number, size)))

    @property
    def charge(self) -> int:
        """What it is charged: minimum, extras, and what leaves beyond the lost members."""
        running = [p for p in self.pods if p.state == "runs"]
        left = max(self.need - sum(p.state == "succeeded" for p in self.pods), 0)
        needed = sum(p.size for p in running[:left])
        minimum = max(needed, -(-self.at_start * left // self.need))
        leaving = sum(p.size for p in self.pods if p.state == "leaves")
        extras = sum(p.size for p in running[left:])
        return minimum + extras + max(needed + leaving - minimum, 0)


def history(seed: int, events: int = 40) -> Iterator[tuple[int, list[Crew]]]:
    """The limit and the gangs after each event."""
    chance = Random(seed)
    limit, crews, number = chance.randint(3, 12), list[Crew](), 0
    for event in range(events):
        kind = chance.choice(KINDS)
        number += 10
        age = chance.choice((number, -number))  # it may be older than all that joined before
        if kind == "start":
            need = chance.randint(1, 3)
            sizes = [chance.randint(1, 3) for _ in range(need)]
            pods = tuple(Pod(number + i, size) for i, size in enumerate(sizes))
            new = Crew(f"c{event}", need, sum(sizes), pods)
            if sum(c.charge for c in [*crews, new]) <= limit:
                crews.append(new)
        elif crews:
            crew = chance.choice(crews)
            after = _changed(crew, kind, chance, age)
            others = sum(c.charge for c in crews if c != crew)
            is_ours = kind in ("replace", "grow")
            if not is_ours or others + after.charge <= max(limit, others + crew.charge):
                crews = [after if c == crew else c for c in crews if c != crew or after.held]
        yield limit, crews


def _changed(crew: Crew, kind: str, chance: Random, number: int) -> Crew:
    running = [p for p in crew.pods if p.state == "runs"]
    if kind in ("replace", "grow"):
        is_due = crew.there < crew.need if kind == "replace" else crew.there >= crew.need
        return crew.joined_by(chance.randint(1, 3), number) if is_due else crew
    if kind == "gone":
        return replace(crew, pods=tuple(p for p in crew.pods if p.state != "leaves"))
    if not running:
        return crew
    chosen = chance.choice(running)
    rest = tuple(p for p in crew.pods if p != chosen)
    if kind == "fail":
        return replace(crew, pods=rest)
    state = "leaves" if kind == "leave" else "succeeded"
    return replace(crew, pods=(*rest, replace(chosen, state=state)))


def breaches(seed: int) -> Iterator[str]:
    """What does not hold in one history."""
    for limit, crews in history(seed):
        held, charged = sum(c.held for c in crews), sum(c.charge for c in crews)
        if held > charged:
            yield f"seed {seed}: {held} held, {charged} charged"
        if held > limit:
            yield f"seed {seed}: {held} held of a limit of {limit}"
        for crew, size in product(crews, (1, 3)):
            added = crew.joined_by(size).charge - crew.charge
            if added > size or (crew.there >= crew.need and added < size):
                yield f"seed {seed}: a pod of {size} adds {added} to {crew}"
