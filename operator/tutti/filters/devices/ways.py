"""The ways to choose devices of a node for one bundle, so that its constraints hold."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ...model.devices.claims import AttributeName, Selection
from .bundles import Bundle, Kind

MOST_STEPS = 20_000  # choices of devices that are tried on one node
MOST_LOOKS = 400_000  # devices and constraints that are looked at for them
MISSING = -1  # the number of the value that a device does not have
STAND_IN = -2  # of a device that does not exist: all constraints hold for it
OWN = -3  # each stack of a kind has a value of its own

Way = tuple[tuple[int, int], ...]  # the kind of each device of a bundle, and the option it is for


class Constraint(NamedTuple):
    """The devices of these options have one value of an attribute, or each another."""

    attribute: int  # its index
    options: tuple[int, ...]
    is_distinct: bool = False


class Want(NamedTuple):
    """A bundle: the index of the selection and the count of each part, and its constraints.

    An option is a way to answer a part: the part, and the index of what the device must meet.
    Without any, each part has one, its own. A part that takes all devices gets all that are left of
    its selection, if these are as many as its count. With alternatives, it has nothing else.
    """

    parts: tuple[tuple[int, int], ...]
    constraints: tuple[Constraint, ...] = ()
    options: tuple[tuple[int, int], ...] = ()
    takes_all: tuple[int, ...] = ()  # parts
    alternatives: tuple[tuple[int, int], ...] = ()  # the index of a selection, and a count

    @property
    def size(self) -> int:
        """How many devices it gets at most."""
        counts = [n for _, n in self.parts]
        return max((n for _, n in self.alternatives), default=sum(counts))

    @property
    def answers(self) -> Sequence[tuple[int, int]]:
        """The options of all parts."""
        return self.options or [(part, bit) for part, (bit, _) in enumerate(self.parts)]


def wanted(
    bundle: Bundle,
    bits: Mapping[Selection, int],
    attributes: Sequence[AttributeName],
    totals: Mapping[int, int],
) -> Want:
    """A bundle as numbers.

    ``bits`` has the index of each selection, ``totals`` the count of those that take all devices.
    """
    unknown = len(bits)  # the index of a selection that no device meets
    return Want(
        tuple(
            (bit, totals.get(bit, count))
            for selected, count in bundle.parts
            for bit in [bits.get(selected, unknown)]
        ),
        tuple(
            Constraint(attributes.index(of.attribute), of.options, of.is_distinct)
            for of in bundle.constraints
        ),
        tuple((part, bits.get(selected, unknown)) for part, selected in bundle.options),
        tuple(part for part, (selected, _) in enumerate(bundle.parts) if selected.takes_all),
        tuple((bits.get(selected, unknown), count) for selected, count in bundle.alternatives),
    )


class NoLimitsError(Exception):
    """There are too many ways, or no limits say which numbers of bundles fit; it says which."""


def ways(want: Want, kinds: Sequence[Kind], left: Sequence[int]) -> Iterator[Way]:
    """Each choice of devices for a bundle, of which ``left`` are there; equal devices count once.

    Raises:
        NoLimitsError: there are too many.
    """
    if not want.alternatives:
        yield from _Search(want, kinds, left).ways()
    for option, part in enumerate(want.alternatives):
        for way in _Search(Want((part,)), kinds, left).ways():
            yield tuple((kind, option) for kind, _ in way)


class _Search:
    """The devices that are chosen so far, and the values of each constraint."""

    def __init__(self, want: Want, kinds: Sequence[Kind], left: Sequence[int]) -> None:
        self._want, self._kinds, self._left = want, kinds, list(left)
        self._slots = [
            part
            for part, (_, count) in enumerate(want.parts)
            for _ in range(0 if part in want.takes_all else count)
        ]
        answers = want.answers
        self._options = [
            [option for option, (of, _) in enumerate(answers) if of == part]
            for part in range(len(want.parts))
        ]
        self._binding = [
            [(i, of) for i, of in enumerate(want.constraints) if option in of.options]
            for option in range(len(answers))
        ]
        self._meeting = [
            [i for i, kind in enumerate(kinds) if kind.selections >> bit & 1] for _, bit in answers
        ]
        self._by_value: dict[tuple[int, int], dict[int, list[int]]] = {}
        self._values = [Counter[int]() for _ in want.constraints]
        self._chosen: list[tuple[int, int]] = []
        self._steps = self._looks = 0

    def ways(self) -> Iterator[Way]:
        if all(self._takes_all(part) for part in self._want.takes_all):
            yield from self._from(0)

    def _takes_all(self, part: int) -> bool:
        """Take all devices of a part, if that is possible."""
        (option,) = self._options[part]
        kinds = [kind for kind in self._meeting[option] if self._left[kind]]
        if sum(self._left[kind] for kind in kinds) != self._want.parts[part][1]:
            return False
        for kind in kinds:
            for _ in range(self._left[kind]):
                if not self._may_be(kind, option):
                    return False
                self._take(kind, option)
        return True

    def _from(self, at: int) -> Iterator[Way]:
        """All ways to choose devices for the slots from this one on."""
        self._steps += 1
        if self._steps > MOST_STEPS or self._looks > MOST_LOOKS:
            raise NoLimitsError(f"more than {MOST_STEPS} ways to choose devices of a node")
        if at == len(self._slots):
            yield tuple(self._chosen)
            return
        part = self._slots[at]
        is_next = at > 0 and self._slots[at - 1] == part
        first = self._chosen[-1][0] if is_next else 0
        for option in self._options[part]:
            candidates = self._candidates(option)
            for kind in candidates[bisect_left(candidates, first) :]:
                self._looks += 1 + len(self._binding[option])
                if self._left[kind] and self._may_be(kind, option):
                    self._take(kind, option)
                    yield from self._from(at + 1)
                    self._give_back()

    def _candidates(self, option: int) -> Sequence[int]:
        """The kinds that may be for an option; those of one value if a constraint has one."""
        for i, of in self._binding[option]:
            if self._values[i] and not of.is_distinct:
                (value,) = self._values[i]
                return self._having(option, of.attribute).get(value, ())
        return self._meeting[option]

    def _having(self, option: int, attribute: int) -> dict[int, list[int]]:
        """The kinds that may be for an option, by their value of an attribute."""
        if (option, attribute) not in self._by_value:
            known = self._by_value[option, attribute] = {}
            for kind in self._meeting[option]:
                known.setdefault(self._kinds[kind].values[attribute], []).append(kind)
        return self._by_value[option, attribute]

    def _may_be(self, kind: int, option: int) -> bool:
        """Whether all constraints hold with one more device of a kind."""
        for i, of in self._binding[option]:
            value, known = self._value(kind, of), self._values[i]
            if value == MISSING:
                return False
            if of.is_distinct:
                most = len(self._kinds[kind].stacks) if value <= OWN else 1
                if value != STAND_IN and known[value] == most:
                    return False
            elif value != STAND_IN and known.keys() - {value}:
                return False
        return True

    def _value(self, kind: int, of: Constraint) -> int:
        """The value of a kind that a constraint compares; no two kinds have one of their own."""
        value = self._kinds[kind].values[of.attribute]
        return OWN - kind if value == OWN else value

    def _take(self, kind: int, option: int) -> None:
        self._left[kind] -= 1
        self._chosen.append((kind, option))
        for i, of in self._binding[option]:
            if (value := self._value(kind, of)) != STAND_IN:
                self._values[i][value] += 1

    def _give_back(self) -> None:
        kind, option = self._chosen.pop()
        self._left[kind] += 1
        for i, of in self._binding[option]:
            value = self._value(kind, of)
            self._values[i][value] -= 1
            if not self._values[i][value]:
                del self._values[i][value]
