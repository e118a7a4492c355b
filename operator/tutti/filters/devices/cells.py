"""What fits in the parts of a node that share no device and no counter, by trying all ways.

A *need* is what one bundle takes: devices of some kinds, and amounts of the counters that these
consume. Needs that share something are in one *cell*, such as the devices of a NUMA node.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from .bundles import Kind
from .ways import MOST_STEPS, NoLimitsError, Want, ways

MOST_KNOWN = 4_096  # cells that are cached

Numbers = tuple[int, ...]  # how many of each bundle
# Kinds by index, and counters, whose indexes come after those of all kinds; and how much of each.
Need = tuple[tuple[int, int], ...]


def room(kinds: Sequence[Kind], counters: Sequence[int]) -> tuple[int, ...]:
    """How many devices of each kind there are, then how much of each counter."""
    return (*(kind.devices for kind in kinds), *counters)


def needs(want: Want, kinds: Sequence[Kind], there: Sequence[int]) -> Collection[Need]:
    """What a bundle takes, in all ways that fit a node with this ``room``.

    Raises:
        NoLimitsError: there are too many.
    """
    found: dict[Need, None] = {}
    for way in ways(want, kinds, there):
        taken = Counter(kind for kind, _ in way)
        for kind, _ in way:
            for counter, n in kinds[kind].counters:
                taken[len(kinds) + counter] += n
        if all(n <= there[i] for i, n in taken.items()):
            found[tuple(sorted(taken.items()))] = None
    return found.keys()


def joined(found: Iterable[Collection[Need]]) -> Sequence[set[int]]:
    """The cells: the kinds and counters that needs join."""
    cells: list[set[int]] = []
    for own in found:
        for need in own:
            here = {i for i, _ in need}
            here.update(*(cell for cell in cells if not cell.isdisjoint(here)))
            cells = [*(cell for cell in cells if cell.isdisjoint(here)), here]
    return cells


def inside(cell: Collection[int], own: Collection[Need]) -> Collection[Need]:
    """The needs of a bundle that are in a cell."""
    return [need for need in own if need[0][0] in cell]


def filled(
    cell: Collection[int], own: Sequence[Collection[Need]], there: Sequence[int]
) -> Mapping[Numbers, Sequence[tuple[int, Need]]]:
    """How many of each bundle fit in a cell together, each with needs that fill it so.

    The needs are those of the bundles in the cell. Cells that are alike are computed once.

    Raises:
        NoLimitsError: there are too many ways.
    """
    order = sorted(cell)
    index = {i: at for at, i in enumerate(order)}
    local = tuple(tuple(sorted(tuple((index[i], n) for i, n in need) for need in of)) for of in own)
    found = _filled(local, tuple(there[i] for i in order))
    return {
        numbers: [(at, tuple((order[i], n) for i, n in need)) for at, need in path]
        for numbers, path in found.items()
    }


_Path = tuple[tuple[int, Need], ...]


@lru_cache(maxsize=MOST_KNOWN)
def _filled(own: tuple[tuple[Need, ...], ...], there: tuple[int, ...]) -> Mapping[Numbers, _Path]:
    by_numbers: dict[Numbers, dict[tuple[int, ...], _Path]] = {(0,) * len(own): {there: ()}}
    steps = 0
    for at, found in enumerate(own):
        newest = by_numbers
        while newest:
            more: dict[Numbers, dict[tuple[int, ...], _Path]] = {}
            for numbers, lefts in newest.items():
                grown = (*numbers[:at], numbers[at] + 1, *numbers[at + 1 :])
                steps += len(lefts) * len(found)
                if steps > MOST_STEPS:
                    raise NoLimitsError(f"more than {MOST_STEPS} ways to fill a node")
                remaining = {
                    rest: (*path, (at, need))
                    for left, path in lefts.items()
                    for need in found
                    if (rest := _less(left, need))
                }
                if remaining:
                    more[grown] = remaining
            by_numbers = {**by_numbers, **more}
            newest = more
    return {numbers: next(iter(lefts.values())) for numbers, lefts in by_numbers.items()}


def _less(left: tuple[int, ...], need: Need) -> tuple[int, ...]:
    """What is left without a need; empty if some of it is not there."""
    rest = list(left)
    for i, n in need:
        rest[i] -= n
    return () if min(rest) < 0 else tuple(rest)
