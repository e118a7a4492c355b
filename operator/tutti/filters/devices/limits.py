"""Which numbers of bundles the devices of a node have room for, as limits on weighted sums.

Devices that ways join (``ways``) are a *cell*, such as the devices of a NUMA node. What fits in
each cell is found by trying all ways; a node holds what its cells hold together. Limits
``weights * numbers <= bound`` are then chosen so that they admit these numbers and no others.

Beside them, rows (``rows``) count all other requests exactly, if each device of a way is one that
its request shares with no narrower selection. A selection for which that does not hold becomes a
bundle of one device. A bundle whose devices on a node have one value anyway needs no limit there.
So does a selection some of whose devices consume counters.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from . import cells
from .bundles import Kind
from .cells import Need, Numbers
from .counters import Uses
from .ways import MISSING, STAND_IN, NoLimitsError, Want

MOST_KINDS = 512  # of devices on one node that bundles compare
MOST_NUMBERS = 4_096  # different numbers of bundles on one node
MOST_WEIGHTS = {1: 1, 2: 12, 3: 6, 4: 4, 5: 3, 6: 2}  # by how many bundles share devices
MOST_KNOWN = 4_096  # nodes whose limits are cached

_Like = tuple[int, tuple[int, ...], Uses]  # what equal devices have
Weights = tuple[tuple[int, int], ...]  # by index of the bundle; ~i is a device of selection i


class Limits(NamedTuple):
    """The bound of each weighted sum of bundles on a node, and why some bundles have none."""

    bounds: Mapping[Weights, int]
    without: Mapping[int, str]


@lru_cache(maxsize=MOST_KNOWN)
def limits(
    kinds: tuple[Kind, ...],
    wants: tuple[Want, ...],
    loose: int,
    counters: tuple[int, ...] = (),
    left_out: frozenset[int] = frozenset(),
    *,
    order: tuple[int, ...] = (),
) -> Limits:
    """The limits of a node. Each bundle by itself has a bound.

    ``loose`` has the selections of requests that are in no bundle, ``counters`` how much there is
    of each counter, ``left_out`` the bundles that are not tried. If the others together have no
    limits, they are tried in ``order``, and then the smallest first: each that has no limits beside
    those before it is left out, too.
    """
    sharing = loose & consuming(kinds)
    of_one = {~bit: Want(((bit, 1),)) for bit in range(sharing.bit_length()) if sharing >> bit & 1}
    every = {**dict(enumerate(wants)), **of_one}
    tried = {i: want for i, want in every.items() if i not in left_out}

    def bounds_of(counted: Mapping[int, Want]) -> Mapping[Weights, int]:
        uncounted = sum(1 << ~i for i in of_one.keys() - counted.keys())
        return _limits(kinds, counted, loose & ~uncounted, counters)

    without: dict[int, str] = {}
    try:
        bounds = bounds_of(tried)
    except NoLimitsError:
        counted: Mapping[int, Want] = {}
        bounds = {}
        place = {i: n for n, i in enumerate(order)}
        for i in sorted(tried, key=lambda i: (place.get(i, len(place)), every[i].size, i)):
            try:
                bounds = bounds_of({**counted, i: every[i]})
                counted = {**counted, i: every[i]}
            except NoLimitsError as why:
                without[i] = str(why)
    return Limits({**{((i, 1),): 0 for i in every}, **bounds}, without)


def consuming(kinds: Iterable[Kind]) -> int:
    """The selections that a device meets which consumes counters."""
    met = 0
    for kind in kinds:
        met |= kind.selections if kind.counters else 0
    return met


def _limits(
    kinds: Sequence[Kind], wants: Mapping[int, Want], loose: int, counters: Sequence[int]
) -> Mapping[Weights, int]:
    """The bounds of these bundles that are not 0.

    Raises:
        NoLimitsError: there are too many ways, or no limits are exact.
    """
    untied = {i for i, want in wants.items() if _is_untied(want, kinds)}
    while True:
        compared = [want for i, want in wants.items() if i not in untied]
        merged = _merged(kinds, compared)
        merged = cells.joint(merged, cells.stacked(merged, compared))
        if compared and len(merged) > MOST_KINDS:
            raise NoLimitsError(f"more than {MOST_KINDS} kinds of devices on a node")
        there = cells.room(merged, counters)
        own: dict[int, Collection[Need]] = {}
        for i, want in wants.items():
            if i not in untied and (needs := cells.needs(want, merged, there)):
                own[i] = needs
        parts = {i: {bit for bit, _ in wants[i].parts} for i in own}
        bits = {i: {bit for bit, _ in wants[i].parts} for i in untied}
        others = loose | sum(1 << bit for bit in set().union(*bits.values()))
        while crossed := _crossed(merged, own, parts, others):
            for bit in crossed:
                own[~bit] = cells.needs(Want(((bit, 1),)), merged, there)
                parts[~bit] = {bit}
        tied = {i for i in untied if any(~bit in own for bit in bits[i])}
        if not tied:
            break
        untied -= tied
    bounds: dict[Weights, int] = {((i, 1),): _most(wants[i], kinds) for i in untied}
    for group, inside in _groups(own):
        bounds.update(_bounds(group, inside, own, there))
    return bounds


def _is_untied(want: Want, kinds: Sequence[Kind]) -> bool:
    """Whether constraints hold for any devices that a bundle could get, so that rows count it."""
    if want.alternatives:
        return False
    if consuming(kinds) & sum(1 << bit for bit in {bit for bit, _ in want.parts}):
        return False
    for of in want.constraints:
        bits = sum(1 << bit for bit in {want.answers[option][1] for option in of.options})
        values = Counter[int]()
        for kind in kinds:
            if kind.selections & bits and kind.values[of.attribute] != STAND_IN:
                values[kind.values[of.attribute]] += kind.devices
        is_held = max(values.values(), default=0) <= 1 if of.is_distinct else len(values) <= 1
        if MISSING in values or not is_held:
            return False
    return True


def _most(want: Want, kinds: Iterable[Kind]) -> int:
    """A number of bundles that a node with these devices cannot exceed."""
    bits = sum(1 << bit for bit in {bit for bit, _ in want.parts})
    return sum(k.devices for k in kinds if k.selections & bits) // sum(n for _, n in want.parts)


def _merged(kinds: Iterable[Kind], wants: Iterable[Want]) -> Sequence[Kind]:
    """The kinds that differ in attributes which bundles compare."""
    compared = {of.attribute for want in wants for of in want.constraints}
    devices: dict[_Like, int] = {}
    for kind in kinds:
        values = tuple(v if i in compared else MISSING for i, v in enumerate(kind.values))
        like = (kind.selections, values, kind.counters)
        devices[like] = devices.get(like, 0) + kind.devices
    return [Kind(mask, values, n, uses) for (mask, values, uses), n in devices.items()]


def _crossed(
    kinds: Sequence[Kind],
    own: Mapping[int, Collection[Need]],
    parts: Mapping[int, Collection[int]],
    loose: int,
) -> Collection[int]:
    """The selections of loose requests that compete with bundles in a way that rows do not count.

    A device that a bundle gets for a selection counts in the rows of this selection, and so in
    those of each selection that includes it. Others that the device meets are crossed. A bundle
    with alternatives counts in no row.
    """
    meeting: dict[int, set[int]] = {}
    for i, kind in enumerate(kinds):
        for bit in range(kind.selections.bit_length()):
            if kind.selections >> bit & 1:
                meeting.setdefault(bit, set()).add(i)
    return {
        other
        for i, needs in own.items()
        for kind in {at for need in needs for at, _ in need if at < len(kinds)}
        for bit in parts[i] or (None,)
        if bit is None or kinds[kind].selections >> bit & 1
        for other, devices in meeting.items()
        if loose >> other & 1 and ~other not in own
        if kind in devices and (bit is None or not meeting[bit] <= devices)
    }


def _groups(
    own: Mapping[int, Collection[Need]],
) -> Sequence[tuple[Sequence[int], Sequence[Collection[int]]]]:
    """The bundles that share cells, with these cells."""
    joined = cells.joined(own.values())
    groups: list[tuple[list[int], list[Collection[int]]]] = []
    for i, needs in own.items():
        mine: list[Collection[int]] = [cell for cell in joined if cells.inside(cell, needs)]
        sharing = [group for group in groups if any(cell in group[1] for cell in mine)]
        group = sorted([i, *(j for known, _ in sharing for j in known)])
        others = [cell for _, known in sharing for cell in known if cell not in mine]
        groups = [*(known for known in groups if known not in sharing), (group, [*mine, *others])]
    return groups


def _bounds(
    group: Sequence[int],
    shared_cells: Sequence[Collection[int]],
    own: Mapping[int, Collection[Need]],
    there: cells.Room,
) -> Iterator[tuple[Weights, int]]:
    """The limits of bundles that share devices or counters."""
    fitting: set[Numbers] = {(0,) * len(group)}
    for cell in shared_cells:
        here = cells.filled(cell, [cells.inside(cell, own[i]) for i in group], there)
        fitting = {
            tuple(n + more for n, more in zip(known, new, strict=True))
            for known in fitting
            for new in here
        }
        if len(fitting) > MOST_NUMBERS:
            raise NoLimitsError(f"more than {MOST_NUMBERS} ways to fill a node")
    most = [max(numbers) for numbers in zip(*fitting, strict=True)]
    yield from ((((i, 1),), n) for i, n in zip(group, most, strict=True))
    for weights, bound in _cuts(fitting, most):
        yield tuple((i, w) for i, w in zip(group, weights, strict=True) if w), bound


def _cuts(fitting: Collection[Numbers], most: Sequence[int]) -> Iterator[tuple[Numbers, int]]:
    """Weights and bounds that these numbers alone meet, of all up to the most of each."""
    if np.prod([n + 1 for n in most]) == len(fitting):
        return
    if len(most) not in MOST_WEIGHTS:
        raise NoLimitsError(f"more than {len(MOST_WEIGHTS)} of them compete for devices of a node")
    if np.prod([n + 1 for n in most]) > MOST_NUMBERS:
        raise NoLimitsError(f"more than {MOST_NUMBERS} ways to fill a node")
    bad = np.array(sorted({*product(*(range(n + 1) for n in most))} - {*fitting}))
    weights = np.array([*product(range(MOST_WEIGHTS[len(most)] + 1), repeat=len(most))])
    bounds = (weights @ np.array(sorted(fitting)).T).max(axis=1)
    is_cut = weights @ bad.T > bounds[:, None]
    while bad.size and is_cut.any():
        best = int(is_cut.sum(axis=1).argmax())
        yield tuple(weights[best].tolist()), int(bounds[best])
        is_cut = is_cut[:, ~is_cut[best]]
    if is_cut.shape[1]:
        raise NoLimitsError("no sums say which of them fit a node together")
