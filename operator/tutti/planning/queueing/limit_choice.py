"""The gangs that are worth most together within rows, exactly; nodes are left out.

If nodes have room for these gangs, no other choice is worth more, so no integer program is needed.
The rows are eliminated one after the other, rows over few gangs first. A choice among the gangs of
a row is dropped if another choice uses no more of the other rows and is worth no less. Source:
Bertelè and Brioschi, Nonserial Dynamic Programming (1972).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heapify, heappop, heappush
from math import gcd
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_LISTED = 8  # gangs whose choices are all listed at once
MOST_PAIRS = 500_000  # choices that are compared at once
MOST_WORK = 3_000_000  # choices that are compared in all
TABLE = 2  # the most rows for which dominated choices are found by a table
MOST_CELLS = 250_000  # of such a table
LARGEST = 2**62  # larger sums are Python integers
STEPS, SLOWER = 100, 30  # subgradient steps, and the number after which they are half as long
ROUNDING = 1e-9  # the largest error of sums of floats, as a part of the bound

Indices = NDArray[np.intp]
Amounts = NDArray[np.int64]
Floats = NDArray[np.float64]
Values = NDArray[Any]  # int64, or objects where sums are large


class Worth(NamedTuple):
    """The worth of a gang; any value of a level counts more than all values of lower levels."""

    level: tuple[int, int]
    value: int  # positive


class Row(NamedTuple):
    """A row: the chosen gangs use at most ``room`` together; ``amounts`` are by gang."""

    amounts: Mapping[int, int]
    room: int


def best_choice(worths: Sequence[Worth], rows: Sequence[Row]) -> Sequence[int] | None:
    """The gangs of the best choice, sorted; None if finding it takes too much work.

    Of gangs that are worth the same and use the same of all rows, the first are chosen.
    """
    too_large = {gang for row in rows for gang, n in row.amounts.items() if n > row.room}
    counted = [
        {gang: n for gang, n in row.amounts.items() if n and gang not in too_large} for row in rows
    ]
    binding = [
        Row(amounts, row.room)
        for row, amounts in zip(rows, counted, strict=True)
        if sum(amounts.values()) > row.room
    ]
    rows_of: dict[int, list[int]] = {
        gang: [] for gang in range(len(worths)) if gang not in too_large
    }
    for number, row in enumerate(binding):
        for gang in row.amounts:
            rows_of[gang].append(number)
    chosen = [gang for gang, own in rows_of.items() if not own]
    elimination = _Elimination(binding)
    for gangs in _components(rows_of, len(binding)):
        values = _combined([worths[gang] for gang in gangs])
        try:
            chosen += elimination.best(gangs, rows_of, values)
        except _TooMuchWorkError:
            return None
    return _earliest(chosen, worths, rows)


def _earliest(chosen: Iterable[int], worths: Sequence[Worth], rows: Sequence[Row]) -> Sequence[int]:
    """The same choice, with the first of the gangs that are worth and use the same."""
    use: list[list[tuple[int, int]]] = [[] for _ in worths]
    for number, row in enumerate(rows):
        for gang, amount in row.amounts.items():
            use[gang].append((number, amount))
    kinds = [(worth, *own) for worth, own in zip(worths, use, strict=True)]
    left = Counter(kinds[gang] for gang in chosen)
    earliest = []
    for gang, kind in enumerate(kinds):
        if left[kind]:
            left[kind] -= 1
            earliest.append(gang)
    return earliest


def _components(rows_of: Mapping[int, Sequence[int]], rows: int) -> Iterator[Sequence[int]]:
    """The gangs that some row counts, in components: no row counts gangs of two components."""
    parents = list(range(rows))

    def first(row: int) -> int:
        while parents[row] != row:
            parents[row] = row = parents[parents[row]]
        return row

    for own in rows_of.values():
        for row in own[1:]:
            parents[first(row)] = first(own[0])
    components: dict[int, list[int]] = defaultdict(list)
    for gang, own in rows_of.items():
        if own:
            components[first(own[0])].append(gang)
    yield from components.values()


def _combined(worths: Sequence[Worth]) -> Values:
    """The worths as single numbers; comparing their sums compares level by level."""
    of_level: dict[tuple[int, int], list[int]] = defaultdict(list)
    for worth in worths:
        of_level[worth.level].append(worth.value)
    units: dict[tuple[int, int], tuple[int, int]] = {}
    weight = 1
    for level, values in sorted(of_level.items()):
        unit = gcd(*values)
        units[level] = weight, unit
        weight *= 1 + sum(values) // unit
    numbers = [units[level][0] * (value // units[level][1]) for level, value in worths]
    return np.array(numbers, dtype=np.int64 if weight < LARGEST else object)


@dataclass(frozen=True, slots=True, eq=False)
class _Choices:
    """Choices among some gangs: what each uses of rows, what it is worth, and how it is made up.

    A choice combines one choice of each of ``parts``. Without parts, the bits of its place say
    which of ``gangs`` it chooses.
    """

    rows: tuple[int, ...]  # the rows that are not eliminated
    use: Amounts  # [choice, row]
    value: Values  # [choice]
    loss: Floats  # [choice]: by how much it stays below the bound, at least
    places: tuple[Indices, ...]  # [part][choice]
    parts: tuple["_Choices", ...] = ()
    gangs: Sequence[int] = ()

    def chosen(self, choice: int) -> Iterator[int]:
        """The gangs of one choice."""
        left: list[tuple[_Choices, int]] = [(self, choice)]
        while left:
            some, place = left.pop()
            if some.parts:
                left += zip(some.parts, (int(own[place]) for own in some.places), strict=True)
            else:
                bits = int(some.places[0][place])
                yield from (gang for n, gang in enumerate(some.gangs) if bits >> n & 1)

    def without(self, row: int, prices: "_Prices") -> "_Choices":
        """The choices once this row is eliminated; no gang outside the choices is in the row."""
        columns = [n for n, own in enumerate(self.rows) if own != row]
        loss = self.loss + prices.unused(row, self.use[:, self.rows.index(row)])
        in_gap = np.flatnonzero(loss <= prices.gap)
        in_gap = in_gap[_undominated(self.use[in_gap][:, columns], self.value[in_gap])]
        rows = tuple(self.rows[n] for n in columns)
        use = self.use[in_gap][:, columns]
        return _Choices(rows, use, self.value[in_gap], loss[in_gap], (in_gap,), (self,))


class _TooMuchWorkError(Exception):
    """There are too many choices to compare them all."""


class _Elimination:
    """The rows, and the work that is left, in choices to compare."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._work = MOST_WORK

    def best(
        self, gangs: Sequence[int], rows_of: Mapping[int, Sequence[int]], values: Values
    ) -> Sequence[int]:
        """The best choice among the gangs of a component.

        Raises:
            _TooMuchWorkError: finding it would compare too many choices.
        """
        rows = sorted({row for gang in gangs for row in rows_of[gang]}, key=self._size)
        prices = _Prices.of({row: self._rows[row] for row in rows}, gangs, values)
        alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for place, gang in enumerate(gangs):
            alike[tuple(rows_of[gang])].append(place)
        left = [
            self._listed(own, gangs, places[start : start + MOST_LISTED], prices)
            for own, places in alike.items()
            for start in range(0, len(places), MOST_LISTED)
        ]
        for row in rows:
            joined = self._joined([choices for choices in left if row in choices.rows], prices)
            others = [choices for choices in left if row not in choices.rows]
            left = [*others, joined.without(row, prices)]
        (last,) = left
        return [*last.chosen(0)]

    def _size(self, row: int) -> tuple[int, int]:
        return len(self._rows[row].amounts), row

    def _listed(
        self, rows: tuple[int, ...], gangs: Sequence[int], places: Sequence[int], prices: "_Prices"
    ) -> _Choices:
        """The choices among a few gangs that the same rows count."""
        own = [gangs[place] for place in places]
        amounts = np.array([[self._rows[row].amounts[gang] for row in rows] for gang in own])
        bits, members = _subsets(len(own))
        use, value = members @ amounts, members @ prices.values[places]
        loss = prices.loss(members, places)
        is_within = (use <= [self._rows[row].room for row in rows]).all(axis=1)
        in_gap = np.flatnonzero(is_within & (loss <= prices.gap))
        in_gap = in_gap[_undominated(use[in_gap], value[in_gap])]
        return _Choices(rows, use[in_gap], value[in_gap], loss[in_gap], (bits[in_gap],), gangs=own)

    def _joined(self, some: Sequence[_Choices], prices: "_Prices") -> _Choices:
        """All of these joined into one; the shortest are joined first."""
        heap = [(len(choices.value), n, choices) for n, choices in enumerate(some)]
        heapify(heap)
        number = len(heap)
        while len(heap) > 1:
            (*_, first), (*_, second) = heappop(heap), heappop(heap)
            joined = self._pair(first, second, prices)
            heappush(heap, (len(joined.value), number, joined))
            number += 1
        return heap[0][-1]

    def _pair(self, first: _Choices, second: _Choices, prices: "_Prices") -> _Choices:
        """All pairs that keep the rows and may be part of the best choice.

        Raises:
            _TooMuchWorkError: there are too many pairs.
        """
        pairs = len(first.value) * len(second.value)
        self._work -= pairs
        if pairs > MOST_PAIRS or self._work < 0:
            raise _TooMuchWorkError
        loss = np.add.outer(first.loss, second.loss).ravel()
        in_gap = np.flatnonzero(loss <= prices.gap)
        firsts, seconds = in_gap // len(second.value), in_gap % len(second.value)
        rows = tuple(sorted({*first.rows, *second.rows}))
        use = np.zeros((len(in_gap), len(rows)), dtype=np.int64)
        for choices, places in ((first, firsts), (second, seconds)):
            use[:, [rows.index(row) for row in choices.rows]] += choices.use[places]
        is_within = (use <= [self._rows[row].room for row in rows]).all(axis=1)
        use, firsts, seconds = use[is_within], firsts[is_within], seconds[is_within]
        value = first.value[firsts] + second.value[seconds]
        best = _undominated(use, value)
        loss = loss[in_gap][is_within][best]
        parts = firsts[best], seconds[best]
        return _Choices(rows, use[best], value[best], loss, parts, (first, second))


@dataclass(frozen=True, slots=True, eq=False)
class _Prices:
    """Prices of rows; choices that stay further below the bound than the best one are left out.

    The bound is the price of all rooms, plus what each gang is worth beyond its own price. By weak
    duality, no choice is worth more. A choice stays below the bound by the price of the room that
    it does not use, and by the gains that it gives up.
    """

    values: Values  # [gang]
    gains: Floats  # [gang]: the value less the price
    of_rows: Mapping[int, float]
    rooms: Mapping[int, int]
    gap: float  # between the bound and the worth of a known choice

    @classmethod
    def of(cls, rows: Mapping[int, Row], gangs: Sequence[int], values: Values) -> "_Prices":
        """Good prices, found by subgradients.

        All prices are 0 if values are large integers, or if all choices are listed at once.
        """
        rooms = {row: own.room for row, own in rows.items()}
        if values.dtype == object or len(gangs) <= MOST_LISTED:
            return cls(values, np.zeros(len(gangs)), dict.fromkeys(rows, 0.0), rooms, np.inf)
        place = {gang: n for n, gang in enumerate(gangs)}
        amounts = np.zeros((len(rows), len(gangs)))
        for n, row in enumerate(rows.values()):
            for gang, amount in row.amounts.items():
                amounts[n, place[gang]] = amount
        room, worth = np.array([*rooms.values()], dtype=np.float64), values.astype(np.float64)
        known = _filled(amounts, room, worth, worth / amounts.max(axis=0))
        prices: Floats = np.zeros(len(rows))
        least, best = np.inf, prices
        for step in range(min(STEPS, len(gangs))):
            gains = worth - prices @ amounts
            bound = prices @ room + np.maximum(gains, 0.0).sum()
            if bound < least:
                least, best = bound, prices
            unused = room - amounts @ (gains > 0)
            length = float((bound - known) / max(unused @ unused, 1.0))
            prices = np.maximum(prices - length / (1 + step / SLOWER) * unused, 0.0)
        priced = best @ amounts
        known = max(known, _filled(amounts, room, worth, worth / np.maximum(priced, 1e-9)))
        gap = least - known + ROUNDING * least
        of_rows = dict(zip(rows, best.tolist(), strict=True))
        return cls(values, worth - priced, of_rows, rooms, float(gap))

    def loss(self, members: Amounts, places: Sequence[int]) -> Floats:
        """The gains that choices among a few gangs give up."""
        gains = self.gains[places]
        lost: Floats = gains.clip(0).sum() - members @ gains
        return lost

    def unused(self, row: int, use: Amounts) -> Floats:
        """The price of what choices do not use of a row."""
        left: Floats = (self.rooms[row] - use).astype(np.float64) * self.of_rows[row]
        return left


@cache
def _subsets(gangs: int) -> tuple[Indices, Amounts]:
    """All sets of a few gangs, as bits and as [set, gang]: 1 for the gangs of the set."""
    bits = np.arange(2**gangs)
    return bits, bits[:, None] >> np.arange(gangs) & 1


def _filled(amounts: Floats, room: Floats, worth: Floats, order: Floats) -> float:
    """The worth of a greedy choice: each gang that still fits, the highest ``order`` first."""
    left, value, uses = room.tolist(), 0.0, amounts.T.tolist()
    for gang in np.argsort(-order, kind="stable").tolist():
        after = [n - use for n, use in zip(left, uses[gang], strict=True)]
        if min(after) >= 0:
            left = after
            value += worth[gang]
    return value


def _undominated(use: Amounts, value: Values) -> Indices:
    """The choices that no other choice dominates; of equal choices, one.

    A choice dominates another if it uses no more of any row and is worth no less. With many rows or
    many choices, some dominated choices stay.
    """
    columns = _different(use)
    if not columns:
        return np.array([value.argmax()])
    if value.dtype == object:
        value = np.unique(value, return_inverse=True)[1]
    order: Indices = np.lexsort((-value, *columns[::-1]))
    if len(columns) == 1:
        value = value[order]
        is_more = np.ones(len(order), dtype=np.bool_)
        is_more[1:] = value[1:] > np.maximum.accumulate(value)[:-1]
        return order[is_more]
    is_first = np.zeros(len(order), dtype=np.bool_)
    is_first[:1] = True
    for column in columns:
        own = column[order]
        is_first[1:] |= own[1:] != own[:-1]
    order = order[is_first]
    value = value[order]
    if len(columns) > TABLE:
        return order
    firsts, x = np.unique(columns[0][order], return_inverse=True)
    seconds, y = np.unique(columns[1][order], return_inverse=True)
    if len(firsts) * len(seconds) > MOST_CELLS:
        return order
    table = np.full((len(firsts) + 1, len(seconds) + 1), -1, dtype=np.int64)
    table[x + 1, y + 1] = value
    most = np.maximum.accumulate(np.maximum.accumulate(table, axis=0), axis=1)
    return order[value > np.maximum(most[x, y + 1], most[x + 1, y])]


def _different(use: Amounts) -> Sequence[Amounts]:
    """The columns, each once if several are equal."""
    columns: list[Amounts] = []
    for column in use.T:
        if not any((column == other).all() for other in columns):
            columns.append(column)
    return columns
