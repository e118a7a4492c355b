"""Resources: integer vectors by resource name, in which absent names are zero."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True, slots=True)
class Resources:
    """Amounts by resource name: milli-CPU for ``cpu``, bytes for memory and storage, else counts.

    Zero amounts are dropped and names are sorted, so equal vectors are equal values.
    """

    amounts: tuple[tuple[str, int], ...] = field(default=())

    @classmethod
    def of(cls, amounts: Mapping[str, int]) -> Self:
        """Make a vector from a mapping."""
        return cls(tuple(sorted((name, n) for name, n in amounts.items() if n)))

    @classmethod
    def total(cls, vectors: Iterable["Resources"]) -> Self:
        """Add up any number of vectors in one pass."""
        sums: dict[str, int] = {}
        for vector in vectors:
            for name, n in vector.amounts:
                sums[name] = sums.get(name, 0) + n
        return cls.of(sums)

    def __getitem__(self, name: str) -> int:
        """The amount of one resource; 0 if it is absent."""
        for known, n in self.amounts:
            if known == name:
                return n
        return 0

    def __add__(self, other: "Resources") -> "Resources":
        """Add the amounts of each resource."""
        return Resources.total((self, other))

    def __sub__(self, other: "Resources") -> "Resources":
        """Subtract the amounts of each resource; results may be negative."""
        return Resources.total((self, other.scaled(-1)))

    def scaled(self, factor: int) -> "Resources":
        """Multiply every amount."""
        return Resources(tuple((name, n * factor) for name, n in self.amounts if n * factor))

    def at_least(self, other: "Resources") -> "Resources":
        """Take the larger of the two amounts of each resource."""
        mine, theirs = dict(self.amounts), dict(other.amounts)
        names = mine.keys() | theirs.keys()
        return Resources.of({name: max(mine.get(name, 0), theirs.get(name, 0)) for name in names})

    def fits(self, room: "Resources") -> bool:
        """Whether ``room`` has every requested amount; other resources may be over-committed."""
        return all(n <= room[name] for name, n in self.amounts if n > 0)

    @property
    def names(self) -> tuple[str, ...]:
        """The names with an amount, sorted."""
        return tuple(name for name, _ in self.amounts)


NOTHING = Resources()
