"""What fits in the parts of a node that share no device and no counter, by trying all ways.

A *need* is what one bundle takes: devices of some kinds, and amounts of the counters that these
consume. Needs that share something are in one *cell*, such as the devices of a NUMA node.

Kinds that differ only in values that must be distinct, and that no other kind has, are *stacks* of
one kind, such as the virtual functions of each NIC. Devices that must differ come from as many of
its stacks, the highest ones: no other choice leaves room for more (an exchange of two devices shows
this, as for degree sequences: Gale and Ryser, 1957).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from .bundles import Kind
from .ways import MOST_STEPS, OWN, NoLimitsError, Want, Way, ways

MOST_KNOWN = 4_096  # cells that are cached

Numbers = tuple[int, ...]  # how many of each bundle
Stacks = tuple[int, ...]
# Kinds by index, and counters, whose indexes come after those of all kinds; and how much of each.
# Of a kind with stacks: how many devices from different stacks, several times.
Need = tuple[tuple[int, int | Stacks], ...]
Room = tuple[int | Stacks, ...]


def stacked(kinds: Sequence[Kind], wants: Collection[Want]) -> Sequence[Sequence[int]]:
    """The indexes of the kinds that are stacks of one kind for these bundles."""
    constraints = [of for want in wants for of in want.constraints]
    distinct = {of.attribute for of in constraints if of.is_distinct}
    distinct -= {of.attribute for of in constraints if not of.is_distinct}
    times = Counter((a, kind.values[a]) for a in distinct for kind in kinds)
    groups: dict[Kind, list[int]] = {}
    for i, kind in enumerate(kinds):
        values = tuple(
            OWN if a in distinct and value >= 0 and times[a, value] == 1 else value
            for a, value in enumerate(kind.values)
        )
        groups.setdefault(Kind(kind.selections, values, 0, kind.counters), []).append(i)
    if not all(map(_are_nested, wants)):
        return [[i] for i in range(len(kinds))]
    return [*groups.values()]


def _are_nested(want: Want) -> bool:
    """Whether of two constraints on different values, one includes the other, or none of it."""
    own = [{*of.options} for of in want.constraints if of.is_distinct]
    return all(a <= b or b <= a or a.isdisjoint(b) for a in own for b in own)


def joint(kinds: Sequence[Kind], stacks: Sequence[Sequence[int]]) -> Sequence[Kind]:
    """The kinds with their stacks."""
    return [_joint([kinds[i] for i in own]) for own in stacks]


def _joint(own: Sequence[Kind]) -> Kind:
    first, heights = own[0], [kind.devices for kind in own]
    if len(own) == 1:
        return first
    values = tuple(
        of[0] if len({*of}) == 1 else OWN for of in zip(*(kind.values for kind in own), strict=True)
    )
    return Kind(
        first.selections, values, sum(heights), first.counters, tuple(sorted(filter(None, heights)))
    )


def room(kinds: Sequence[Kind], counters: Sequence[int]) -> Room:
    """How many devices of each kind there are, then how much of each counter."""
    return (*(kind.stacks or kind.devices for kind in kinds), *counters)


def draws(way: Way, want: Want, kinds: Sequence[Kind]) -> Iterator[tuple[int, list[int]]]:
    """The options that devices of a kind are for; each time from different stacks of it."""
    for i in dict.fromkeys(kind for kind, _ in way):
        groups: dict[tuple[int, ...], list[int]] = {}
        sets = [
            of.options
            for of in want.constraints
            if of.is_distinct and kinds[i].values[of.attribute] == OWN
        ]
        for at, (kind, option) in enumerate(way):
            if kind == i:
                widest = max((own for own in sets if option in own), key=len, default=(~at,))
                groups.setdefault(widest, []).append(option)
        yield from ((i, options) for options in groups.values())


def needs(want: Want, kinds: Sequence[Kind], there: Room) -> Collection[Need]:
    """What a bundle takes, in all ways that fit a node with this ``room``.

    Raises:
        NoLimitsError: there are too many.
    """
    fitting: dict[Need, None] = {}
    for way in ways(want, kinds, [kind.devices for kind in kinds]):
        taken = Counter(kind for kind, _ in way if not kinds[kind].stacks)
        for kind, _ in way:
            for counter, n in kinds[kind].counters:
                taken[len(kinds) + counter] += n
        from_stacks: dict[int, list[int]] = {}
        for kind, options in draws(way, want, kinds):
            if kinds[kind].stacks:
                from_stacks.setdefault(kind, []).append(len(options))
        need: Need = tuple(
            sorted([*taken.items(), *((i, tuple(sorted(n))) for i, n in from_stacks.items())])
        )
        if _less(there, need):
            fitting[need] = None
    return fitting.keys()


def joined(by_bundle: Iterable[Collection[Need]]) -> Sequence[set[int]]:
    """The cells: the kinds and counters that needs join."""
    cells: list[set[int]] = []
    for own in by_bundle:
        for need in own:
            here = {i for i, _ in need}
            here.update(*(cell for cell in cells if not cell.isdisjoint(here)))
            cells = [*(cell for cell in cells if cell.isdisjoint(here)), here]
    return cells


def inside(cell: Collection[int], own: Collection[Need]) -> Collection[Need]:
    """The needs of a bundle that are in a cell."""
    return [need for need in own if need[0][0] in cell]


def filled(
    cell: Collection[int], own: Sequence[Collection[Need]], there: Room
) -> Mapping[Numbers, Sequence[tuple[int, Need]]]:
    """How many of each bundle fit in a cell together, each with needs that fill it so.

    The needs are those of the bundles in the cell. Cells that are alike are computed once.

    Raises:
        NoLimitsError: there are too many ways.
    """
    order = sorted(cell)
    index = {i: at for at, i in enumerate(order)}
    local = tuple(tuple(sorted(tuple((index[i], n) for i, n in need) for need in of)) for of in own)
    paths = _filled(local, tuple(there[i] for i in order))
    return {
        numbers: [(at, tuple((order[i], n) for i, n in need)) for at, need in path]
        for numbers, path in paths.items()
    }


_Path = tuple[tuple[int, Need], ...]


@lru_cache(maxsize=MOST_KNOWN)
def _filled(own: tuple[tuple[Need, ...], ...], there: Room) -> Mapping[Numbers, _Path]:
    by_numbers: dict[Numbers, dict[Room, _Path]] = {(0,) * len(own): {there: ()}}
    steps = 0
    for at, own_needs in enumerate(own):
        newest = by_numbers
        while newest:
            more: dict[Numbers, dict[Room, _Path]] = {}
            for numbers, lefts in newest.items():
                grown = (*numbers[:at], numbers[at] + 1, *numbers[at + 1 :])
                steps += len(lefts) * len(own_needs)
                if steps > MOST_STEPS:
                    raise NoLimitsError(f"more than {MOST_STEPS} ways to fill a node")
                remaining = {
                    rest: (*path, (at, need))
                    for left, path in lefts.items()
                    for need in own_needs
                    if (rest := _less(left, need))
                }
                if remaining:
                    more[grown] = remaining
            by_numbers = {**by_numbers, **more}
            newest = more
    return {numbers: next(iter(lefts.values())) for numbers, lefts in by_numbers.items()}


def _less(left: Room, need: Need) -> Room:
    """What is left without a need; empty if some of it is not there."""
    rest = list(left)
    for i, n in need:
        own = rest[i]
        if isinstance(own, int):
            own -= n if isinstance(n, int) else sum(n)
            if own < 0:
                return ()
        else:
            for drawn in (n,) if isinstance(n, int) else n:
                if drawn > len(own):
                    return ()
                at = len(own) - drawn
                own = tuple(sorted(m for m in (*own[:at], *(m - 1 for m in own[at:])) if m))
        rest[i] = own
    return tuple(rest)
