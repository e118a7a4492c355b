"""The limits of queues as caps of a Problem, and the use that a plan has added so far.

Running gangs are charged already. Each round adds the gangs that it starts, so no plan exceeds the
room below a limit, in whichever rounds the gangs start. A gang is charged for lost members, too:
their replacements add only what they request beyond that charge.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...gang.demand import PlacementRequest
from ...model.keys import GangKey
from ...model.resources import NOTHING, Resources
from ...model.shapes import Shape
from ...queues.charge import charged
from ...queues.limits import QueueLimit
from ...strategies.problem import Cap
from .grids import AMOUNT_LIMIT, Grid


class Started(NamedTuple):
    """A number of members of one gang and one shape that get a node."""

    gang: GangKey
    shape: Shape
    members: int
    is_repair: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Quotas:
    """The limits that count; ``in_use`` of each includes what the plan has started."""

    limits: tuple[QueueLimit, ...] = ()
    of_gang: Mapping[GangKey, tuple[int, ...]] = field(default_factory=dict)  # indices of limits
    credit_of: Mapping[GangKey, Resources] = field(default_factory=dict)  # for lost members
    # By limits, shape and number of members: what as many equal members of a gang exceed.
    _known: dict[tuple[tuple[int, ...], int, int], "_Exceeded"] = field(
        init=False, repr=False, default_factory=dict
    )

    @classmethod
    def of(
        cls, limits: Iterable[QueueLimit], credit_of: Mapping[GangKey, Resources] | None = None
    ) -> "Quotas":
        """Quotas of these limits, without limits in shadow mode."""
        counting = tuple(limit for limit in limits if not limit.is_shadow)
        return cls(counting, _indices({}, enumerate(counting)), credit_of or {})

    def with_started(self, started: Iterable[Started]) -> "Quotas":
        """The limits after these members have a node."""
        if not self.limits:
            return self
        added, credit_of = [0] * len(self.limits), {**self.credit_of}
        for start in started:
            requests, members = charged(start.shape.requests), start.members
            if start.is_repair and start.gang in credit_of:
                credit, requests = credit_of[start.gang], requests.scaled(members)
                credit_of[start.gang] = (credit - requests).at_least(NOTHING)
                requests, members = (requests - credit).at_least(NOTHING), 1
            for index in self.of_gang.get(start.gang, ()):
                added[index] += requests[self.limits[index].resource] * members
        limits = (
            replace(limit, in_use=limit.in_use + amount) if amount else limit
            for limit, amount in zip(self.limits, added, strict=True)
        )
        return replace(self, limits=tuple(limits), credit_of=credit_of)

    def without_use(self) -> "Quotas":
        """The limits as if nothing were charged."""
        return replace(self, limits=tuple(replace(limit, in_use=0) for limit in self.limits))

    def with_limits(self, new_limits: Sequence[QueueLimit]) -> "Quotas":
        """These limits, and the new ones after them."""
        if not new_limits:
            return self
        of_gang = _indices(self.of_gang, enumerate(new_limits, len(self.limits)))
        return replace(self, limits=(*self.limits, *new_limits), of_gang=of_gang)

    def held_for(self, gang: GangKey, requests: Resources) -> "Quotas":
        """The limits, with the room that is held below them for a gang."""
        limits = list(self.limits)
        for index in self.of_gang.get(gang, ()):
            limits[index] = replace(limits[index], held=requests[limits[index].resource])
        return replace(self, limits=tuple(limits))

    def with_nothing_held(self) -> "Quotas":
        """The limits, with all of their room for any gang."""
        return replace(self, limits=tuple(replace(limit, held=0) for limit in self.limits))

    def may_exceed(self, want: PlacementRequest) -> bool:
        """Whether some choice of members might exceed a limit, or amounts are too large to tell."""
        limits = [self.limits[index] for index in self.of_gang.get(want.gang.key, ())]
        kinds = [charged(group[0].shape.requests) for group in want.alike] if limits else []
        for limit in limits:
            largest = max(kind[limit.resource] for kind in kinds)
            if largest * want.need > limit.room or largest >= AMOUNT_LIMIT // 2:
                return True
        return False

    def exceeded_by_equal(self, want: PlacementRequest) -> Sequence[tuple[QueueLimit, int]] | None:
        """The limits that equal members exceed, each with the amount that they use.

        None if counting is not enough: for unequal members, for repairs, and for amounts that a
        program would round.
        """
        if len(want.alike) > 1 or want.is_repair:
            return None
        indices = self.of_gang.get(want.gang.key, ())
        if not indices:
            return ()
        shape = want.members[0].shape
        key = indices, id(shape), want.need  # thousands of gangs of a queue may be equal
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _Exceeded(shape, self._exceeded(indices, shape, want.need))
        return known.limits

    def _exceeded(
        self, indices: Iterable[int], shape: Shape, members: int
    ) -> Sequence[tuple[QueueLimit, int]] | None:
        requests, exceeded = charged(shape.requests), []
        for index in indices:
            limit = self.limits[index]
            amount = requests[limit.resource]
            if amount >= AMOUNT_LIMIT // 2:
                return None
            if amount * members > limit.room:
                exceeded.append((limit, amount * members))
        return exceeded

    def caps(self, base: Grid, wants: Sequence[PlacementRequest]) -> Iterator["LimitCap"]:
        """The limits that these requests could exceed, each as a cap over them."""
        requests: dict[int, list[int]] = {}
        for number, want in enumerate(wants):
            for index in self.of_gang.get(want.gang.key, ()):
                requests.setdefault(index, []).append(number)
        shapes = {group[0].shape for want in wants for group in want.alike} if requests else set()
        amounts = _Amounts(base, shapes)
        for index, numbers in sorted(requests.items()):
            limit = self.limits[index]
            amount, unit = amounts[limit.resource]
            most = {number: _most_use(base, wants[number], amount) for number in numbers}
            repairs = self._repairs(limit.resource, unit, wants, most)
            for row, credit in _rows(most, repairs):
                room = (limit.room + credit * unit) // unit
                if sum(most[number] for number in row) > room:
                    yield LimitCap(limit, Cap(frozenset(row), amount, room), unit)

    def _repairs(
        self, resource: str, unit: int, wants: Sequence[PlacementRequest], most: Mapping[int, int]
    ) -> Sequence["_Repair"]:
        """The repairs of each gang among these requests, each with the credit for lost members."""
        numbers: dict[GangKey, list[int]] = {}
        for number in most:
            if wants[number].is_repair and wants[number].gang.key in self.credit_of:
                numbers.setdefault(wants[number].gang.key, []).append(number)
        return [
            _Repair(own, self.credit_of[gang][resource] // unit) for gang, own in numbers.items()
        ]


NO_QUOTAS = Quotas()


class _Exceeded(NamedTuple):
    """The answer of ``exceeded_by_equal``; the shape is kept because it is known by its id."""

    shape: Shape
    limits: Sequence[tuple[QueueLimit, int]] | None


def _indices(
    known: Mapping[GangKey, tuple[int, ...]], limits: Iterable[tuple[int, QueueLimit]]
) -> Mapping[GangKey, tuple[int, ...]]:
    """The known indices of limits by gang, and further limits with their indices."""
    of_gang: dict[GangKey, tuple[int, ...]] = {**known}
    for index, limit in limits:
        for gang in limit.gangs:
            of_gang[gang] = (*of_gang.get(gang, ()), index)
    return of_gang


class LimitCap(NamedTuple):
    """A limit, and the same limit as a cap that counts in ``unit``."""

    limit: QueueLimit
    cap: Cap
    unit: int


class _Repair(NamedTuple):
    """The requests that replace lost members of one gang, and the credit for the lost members."""

    numbers: Sequence[int]
    credit: int


def _rows(
    most: Mapping[int, int], repairs: Sequence[_Repair]
) -> Iterator[tuple[Collection[int], int]]:
    """The rows of a limit: the requests that each row counts, and its credit beyond the room.

    Repairs of a gang that can never exceed the gang's credit are in no row. The first row counts
    all requests that are not repairs, without credit. For each other gang with a credit, a row
    counts all remaining requests and adds the credit of that gang alone. So no gang uses the credit
    of another gang. With several such gangs, this is stricter than the limit.
    """
    costly = [
        repair
        for repair in repairs
        if sum(most[number] for number in repair.numbers) > repair.credit
    ]
    free = {number for repair in repairs if repair not in costly for number in repair.numbers}
    all_repairs = {number for repair in repairs for number in repair.numbers}
    yield [number for number in most if number not in all_repairs], 0
    for repair in costly:
        yield [number for number in most if number not in free], repair.credit


class _Amounts(defaultdict[str, tuple[NDArray[np.int64], int]]):
    """By resource: what one member of each shape is charged, and the unit of these amounts.

    The unit is 1, unless one of the ``shapes`` requests so much that a sum could overflow. Then
    amounts are rounded up, so that no limit is exceeded.
    """

    def __init__(self, base: Grid, shapes: Iterable[Shape]) -> None:
        super().__init__()
        self._shapes, self._requesting_shapes = base.shapes, shapes

    def __missing__(self, resource: str) -> tuple[NDArray[np.int64], int]:
        amounts = {shape: charged(shape.requests)[resource] for shape in self._shapes}
        largest = max(amounts[shape] for shape in self._requesting_shapes)
        unit = 2 ** max(0, largest.bit_length() - AMOUNT_LIMIT.bit_length() + 1)
        column = np.zeros(len(self._shapes), dtype=np.int64)
        for shape, row in self._shapes.items():
            column[row] = min(-(-amounts[shape] // unit), AMOUNT_LIMIT)
        self[resource] = column, unit
        return self[resource]


def _most_use(base: Grid, want: PlacementRequest, amount: NDArray[np.int64]) -> int:
    """The most that the request can use."""
    return want.need * max(int(amount[base.shapes[group[0].shape]]) for group in want.alike)
