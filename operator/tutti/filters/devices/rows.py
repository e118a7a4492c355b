"""Free devices as counts: integer resources of nodes, with which a plan is exact.

Pods that request devices fit a node exactly if, for every set of selections, they request no more
devices than the node has free that meet one of the set (Hall's marriage theorem; a request for n
devices counts n times). Each set that can matter is a resource. A set does not matter if a larger
one is met by the same devices, or if it falls apart into two that no device has in common: the
others imply it. So nested selections need one resource each, and any overlap stays exact.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from ...model.devices.claims import Selection, counting
from ...model.resources import Resources

MOST_ROWS = 256  # resources that count devices, in all; more would make every plan slow
MOST_PASSED = 32  # groups that are passed over because they do not fit; then no later one is tried
MOST_KNOWN = 1_024  # parts whose rows are cached

Mask = int  # a set of selections: one bit for each, in the order of the selections


class TooManyRowsError(Exception):
    """So many selections overlap that counting them would take more than ``MOST_ROWS``."""


def rows(
    selections: Sequence[Selection], patterns: Iterable[Collection[Mask]], wanted: Mask = -1
) -> Mapping[Mask, str]:
    """The sets of selections that matter, each with the name of its resource.

    A pattern has the selections that each device of a node meets; equal devices count once.
    ``wanted`` has the selections that requests are for; by default, all.

    Raises:
        TooManyRowsError: there are more than ``MOST_ROWS``.
    """
    sets = {1 << i for i in range(len(selections)) if wanted >> i & 1}
    for part in _parts(patterns, wanted):
        if len(sets) > MOST_ROWS:
            break
        sets.update(_closed(part))
    if len(sets) > MOST_ROWS:
        raise TooManyRowsError
    return {mask: counting("|".join(_labels(mask, selections))) for mask in sorted(sets)}


def fitting_rows(
    selections: Sequence[Selection], patterns: Collection[Collection[Mask]], groups: Sequence[Mask]
) -> tuple[Mask, Mapping[Mask, str]]:
    """The wanted selections that are counted, and their rows; the groups are in order.

    If they are too many, groups are left out as ``fitting`` says.
    """
    kept = union(groups)
    parts = _parts(patterns, kept)

    def named(wanted: Mask) -> Mapping[Mask, str] | None:
        try:
            return rows(selections, parts, wanted)
        except TooManyRowsError:
            return None

    if (names := named(kept)) is None:
        kept = fitting(groups, lambda wanted: named(wanted) is not None)
        names = rows(selections, parts, kept)
    return kept, names


def _parts(patterns: Iterable[Collection[Mask]], wanted: Mask) -> Collection[frozenset[Mask]]:
    """The parts of patterns that have no selection in common; each once, though many nodes have it.

    A selection that shares its devices with no other is in no part: it is a row by itself.
    """
    all_parts: set[frozenset[Mask]] = set()
    for own in {frozenset(mask & wanted for mask in pattern) for pattern in patterns}:
        parts: list[tuple[Mask, list[Mask]]] = []
        for mask in own:
            if mask & mask - 1:
                joined = [part for part in parts if part[0] & mask]
                parts = [part for part in parts if not part[0] & mask]
                every = [mask, *(other_mask for _, masks in joined for other_mask in masks)]
                parts.append((union(every), every))
        alone = [mask for mask in own if mask and not mask & mask - 1]
        for whole, masks in parts:
            all_parts.add(frozenset((*masks, *(mask for mask in alone if mask & whole))))
    return all_parts


def fitting(
    groups: Sequence[Mask],
    fits: Callable[[Mask], bool],
    passed: int = MOST_PASSED,
    guess: int = 1,
) -> Mask:
    """The groups that fit together, in order; up to ``passed`` that do not fit are passed over.

    It takes fewest calls if exactly the first ``guess`` groups fit.

    ``fits`` says whether items can be counted together; if it holds for some items, it holds for
    fewer.
    """
    kept, begin = 0, 0
    for _ in range(passed + 1):
        known, beyond = begin, len(groups) + 1  # so many fit, so many do not
        step = 0  # doubled as long as all fit: groups that do not fit often follow each other
        middle = min(begin + guess, len(groups))
        while beyond - known > 1:
            if fits(kept | union(groups[begin:middle])):
                known, step = middle, max(2 * step, 1)
            else:
                beyond = middle
            middle = min(known + max(step, 1), (known + beyond) // 2)
        kept |= union(groups[begin:known])
        begin, guess = known + 1, 1
        if begin >= len(groups):
            break
    return kept


def union(groups: Iterable[Mask]) -> Mask:
    """The items of all groups."""
    every = 0
    for mask in groups:
        every |= mask
    return every


def _labels(mask: Mask, selections: Sequence[Selection]) -> Iterator[str]:
    return (selected.label for i, selected in enumerate(selections) if mask >> i & 1)


@lru_cache(maxsize=MOST_KNOWN)
def _closed(pattern: frozenset[Mask]) -> Collection[Mask]:
    """The sets of selections that matter on a node whose devices have these selections.

    Such a set has all selections that no device meets but those which meet one of the set. So its
    devices tell it from others, and devices are united here instead of selections.
    """
    met: dict[int, Mask] = {}  # the selections that exactly these devices meet
    for i in range(max(pattern).bit_length()):
        devices = sum(1 << number for number, mask in enumerate(pattern) if mask >> i & 1)
        met[devices] = met.get(devices, 0) | 1 << i
    met.pop(0, None)
    united, new = {*met}, {*met}
    while new:
        new = {one | other for one in new for other in met if one & other} - united
        united |= new
        if len(united) > MOST_ROWS:
            raise TooManyRowsError
    return {sum(mask for devices, mask in met.items() if not devices & ~whole) for whole in united}


def counts(masks: Iterable[Mask], names: Mapping[Mask, str]) -> Resources:
    """How many devices with these selections count for each resource."""
    seen = list(masks)
    return Resources.of(
        {name: sum(1 for mask in seen if mask & chosen) for chosen, name in names.items()}
    )


def requested(counted: Iterable[tuple[int, int]], names: Mapping[Mask, str]) -> Resources:
    """What requests take of each resource; each is the index of its selection, and a count."""
    pairs = list(counted)
    return Resources.of(
        {
            name: sum(count for index, count in pairs if chosen >> index & 1)
            for chosen, name in names.items()
        }
    )
