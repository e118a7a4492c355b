"""Which numbers of bundles the devices of a node have room for, as limits on weighted sums.

A *way* is a choice of devices for one bundle. Devices that ways join are a *cell*, such as the
devices of a NUMA node. What fits in each cell is found by trying all ways; a node holds what its
cells hold together. Limits ``weights * numbers <= bound`` are then chosen so that they admit these
numbers and no others. Beside them, rows (``rows``) count all other requests exactly, if each
device of a way is one that its request shares with no narrower selection. A selection for which
that does not hold becomes a bundle of one device. Where all of that would be too much, or no limits
are exact, nothing is said (``NoLimitsError``).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from .bundles import Kind

MOST_STEPS = 20_000  # choices of devices that are tried on one node
MOST_NUMBERS = 4_096  # different numbers of bundles on one node
MOST_WEIGHTS = {1: 1, 2: 12, 3: 6, 4: 4}  # the largest weight, by how many bundles there are
MOST_KNOWN = 4_096  # nodes whose limits are cached


class Want(NamedTuple):
    """A bundle: the index of the selection and the count of each part, and what must match.

    Each match has the index of the attribute, and its parts.
    """

    parts: tuple[tuple[int, int], ...]
    matches: tuple[tuple[int, tuple[int, ...]], ...] = ()


Way = tuple[int, ...]  # the kind of each device of a bundle, part after part
Numbers = tuple[int, ...]  # how many of each bundle
Weights = tuple[tuple[int, int], ...]  # by index of the bundle; ~i is a device of selection i


MISSING = -1  # the number of the value that a device does not have


class NoLimitsError(Exception):
    """There are too many ways, or no limits on sums say which numbers of bundles fit."""


def ways(want: Want, kinds: Sequence[Kind], left: Sequence[int]) -> Iterator[Way]:
    """Each choice of devices for a bundle, of which ``left`` are there; equal devices count once.

    Raises:
        NoLimitsError: there are too many.
    """
    slots = [part for part, (_, count) in enumerate(want.parts) for _ in range(count)]
    matches = [
        [(i, attribute) for i, (attribute, parts) in enumerate(want.matches) if part in parts]
        for part in range(len(want.parts))
    ]
    remaining, chosen, values = list(left), list[int](), dict[int, int]()
    steps = 0

    def extended() -> Iterator[Way]:
        nonlocal steps
        steps += 1
        if steps > MOST_STEPS:
            raise NoLimitsError
        at = len(chosen)
        if at == len(slots):
            yield tuple(chosen)
            return
        part = slots[at]
        first = chosen[-1] if at and slots[at - 1] == part else 0
        for kind in range(first, len(kinds)):
            known = [(i, kinds[kind].values[attribute]) for i, attribute in matches[part]]
            if (
                remaining[kind]
                and kinds[kind].selections >> want.parts[part][0] & 1
                and all(of == values.get(i, of) != MISSING for i, of in known)
            ):
                new = [(i, of) for i, of in known if i not in values]
                values.update(new)
                remaining[kind] -= 1
                chosen.append(kind)
                yield from extended()
                chosen.pop()
                remaining[kind] += 1
                for i, _ in new:
                    del values[i]

    return extended()


@lru_cache(maxsize=MOST_KNOWN)
def limits(kinds: tuple[Kind, ...], wants: tuple[Want, ...], loose: int) -> Mapping[Weights, int]:
    """The limits of a node: the bound of each weighted sum of bundles.

    ``loose`` has the selections of requests that are in no bundle. Each bundle by itself has a
    limit.

    Raises:
        NoLimitsError: there are too many ways, or no limits are exact.
    """
    counts = [kind.devices for kind in kinds]
    found = {i: _all_ways(want, kinds, counts) for i, want in enumerate(wants)}
    own = {i: of for i, of in found.items() if of}
    parts = {i: {bit for bit, _ in wants[i].parts} for i in own}
    while crossed := _crossed(kinds, own, parts, loose):
        for bit in crossed:
            own[~bit] = _all_ways(Want(((bit, 1),)), kinds, counts)
            parts[~bit] = {bit}
    bounds: dict[Weights, int] = {((i, 1),): 0 for i in range(len(wants))}
    for group, cells in _groups(own):
        bounds.update(_bounds(group, cells, own, counts))
    return bounds


def _all_ways(want: Want, kinds: Sequence[Kind], counts: Sequence[int]) -> Collection[Way]:
    """The ways of a bundle, each as the sorted kinds of its devices."""
    return {tuple(sorted(way)) for way in ways(want, kinds, counts)}


def _crossed(
    kinds: Sequence[Kind],
    own: Mapping[int, Collection[Way]],
    parts: Mapping[int, Collection[int]],
    loose: int,
) -> Collection[int]:
    """The selections of loose requests that compete with bundles in a way that rows do not count.

    A device that a bundle gets for a selection counts in the rows of this selection, and so in
    those of each selection that includes it. Others that the device meets are crossed.
    """
    meeting: dict[int, set[int]] = {}
    for i, kind in enumerate(kinds):
        for bit in range(kind.selections.bit_length()):
            if kind.selections >> bit & 1:
                meeting.setdefault(bit, set()).add(i)
    return {
        other
        for i, found in own.items()
        for kind in {kind for way in found for kind in way}
        for bit in parts[i]
        if kinds[kind].selections >> bit & 1
        for other, devices in meeting.items()
        if loose >> other & 1 and ~other not in own
        if kind in devices and not meeting[bit] <= devices
    }


def _groups(
    own: Mapping[int, Collection[Way]],
) -> Sequence[tuple[Sequence[int], Sequence[Collection[int]]]]:
    """The bundles that share cells, with these cells: the kinds of devices that ways join."""
    cells: list[set[int]] = []
    for found in own.values():
        for way in found:
            joined = set(way).union(*(cell for cell in cells if not cell.isdisjoint(way)))
            cells = [*(cell for cell in cells if cell.isdisjoint(way)), joined]
    groups: list[tuple[list[int], list[Collection[int]]]] = []
    for i, found in own.items():
        mine = [cell for cell in cells if any(way[0] in cell for way in found)]
        sharing = [group for group in groups if any(cell in group[1] for cell in mine)]
        group = sorted([i, *(j for known, _ in sharing for j in known)])
        others = [cell for _, known in sharing for cell in known if cell not in mine]
        groups = [*(known for known in groups if known not in sharing), (group, [*mine, *others])]
    return groups


def _bounds(
    group: Sequence[int],
    cells: Sequence[Collection[int]],
    own: Mapping[int, Collection[Way]],
    counts: Sequence[int],
) -> Iterator[tuple[Weights, int]]:
    """The limits of bundles that share devices."""
    fitting: set[Numbers] = {(0,) * len(group)}
    for cell in cells:
        inside = [[way for way in own[i] if way[0] in cell] for i in group]
        here = _numbers(inside, [n if kind in cell else 0 for kind, n in enumerate(counts)])
        fitting = {
            tuple(n + more for n, more in zip(known, new, strict=True))
            for known in fitting
            for new in here
        }
        if len(fitting) > MOST_NUMBERS:
            raise NoLimitsError
    most = [max(numbers) for numbers in zip(*fitting, strict=True)]
    yield from ((((i, 1),), n) for i, n in zip(group, most, strict=True) if i >= 0)
    for weights, bound in _cuts(fitting, most):
        yield tuple((i, w) for i, w in zip(group, weights, strict=True) if w), bound


def _numbers(inside: Sequence[Collection[Way]], counts: Sequence[int]) -> Collection[Numbers]:
    """How many of each bundle fit in a cell together, from its ways there: tries all."""
    left_by_numbers = {(0,) * len(inside): {tuple(counts)}}
    steps = 0
    for at, found in enumerate(inside):
        newest = left_by_numbers
        while newest:
            more: dict[Numbers, set[tuple[int, ...]]] = {}
            for numbers, lefts in newest.items():
                grown = (*numbers[:at], numbers[at] + 1, *numbers[at + 1 :])
                steps += len(lefts) * len(found)
                if steps > MOST_STEPS:
                    raise NoLimitsError
                remaining = {rest for left in lefts for way in found if (rest := _less(left, way))}
                if remaining:
                    more[grown] = remaining
            left_by_numbers = {**left_by_numbers, **more}
            newest = more
    return left_by_numbers.keys()


def _less(left: tuple[int, ...], way: Way) -> tuple[int, ...]:
    """What is left without the devices of a way; empty if some are not there."""
    rest = list(left)
    for kind in way:
        rest[kind] -= 1
    return () if min(rest) < 0 else tuple(rest)


def _cuts(fitting: Collection[Numbers], most: Sequence[int]) -> Iterator[tuple[Numbers, int]]:
    """Weights and bounds that these numbers alone meet, of all up to the most of each."""
    if np.prod([n + 1 for n in most]) == len(fitting):
        return
    if len(most) not in MOST_WEIGHTS or np.prod([n + 1 for n in most]) > MOST_NUMBERS:
        raise NoLimitsError
    bad = np.array(sorted({*product(*(range(n + 1) for n in most))} - {*fitting}))
    weights = np.array([*product(range(MOST_WEIGHTS[len(most)] + 1), repeat=len(most))])
    bounds = (weights @ np.array(sorted(fitting)).T).max(axis=1)
    is_cut = weights @ bad.T > bounds[:, None]
    while bad.size and is_cut.any():
        best = int(is_cut.sum(axis=1).argmax())
        yield tuple(weights[best].tolist()), int(bounds[best])
        is_cut = is_cut[:, ~is_cut[best]]
    if is_cut.shape[1]:
        raise NoLimitsError
