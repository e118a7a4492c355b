"""Limits on bundles: exact beside a search that tries every device for every request."""

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest

from tutti.filters.devices import bundles, cells, limits, rows, ways
from tutti.filters.devices.bundles import Kind, Value, kinds
from tutti.filters.devices.limits import Limits
from tutti.filters.devices.ways import Constraint, NoLimitsError, Want
from tutti.model.devices.claims import Selection

Seen = tuple[int, tuple[Value, ...]]


def seen(devices: Sequence[Seen]) -> list[bundles.Seen]:
    return [(mask, values, ()) for mask, values in devices]


class Scene(NamedTuple):
    """The devices of a node, the bundles, and the selections of other requests."""

    devices: Sequence[Seen]
    wants: tuple[Want, ...]
    loose: int
    selections: int


def scene(seed: int) -> Scene:
    draw = random.Random(seed)
    width = draw.randint(1, 3)
    devices = [
        (
            draw.randrange(1, 1 << width) if draw.random() < 0.5 else (1 << width) - 1,
            (draw.choice((0, 0, 1, 1, 2, None)), draw.choice((0, 1, 2, 3) if seed % 2 else (0, 1))),
        )
        for _ in range(draw.randint(1, 6))
    ]

    def want() -> Want:
        count = draw.choice((1, 1, 2))
        parts = tuple((draw.randrange(width), draw.choice((1, 1, 2, 3))) for _ in range(count))
        chosen = [draw.sample(range(count), draw.randint(1, count)) for _ in range(count)]
        constraints = {
            Constraint(
                draw.randrange(2), tuple(sorted(own)), draw.random() < (0.4 if seed % 3 else 1)
            )
            for own in chosen
        }
        return Want(parts, tuple(sorted(constraints)))

    wants = tuple(dict.fromkeys(want() for _ in range(draw.choice((1, 1, 2, 3)))))
    return Scene(devices, wants, draw.randrange(1 << width), width)


def with_alternatives(seed: int) -> Scene:
    """A scene in which a bundle has alternatives for one or more devices, and others have not."""
    made, draw = scene(seed), random.Random(-seed)

    def part() -> tuple[int, int]:
        return draw.randrange(made.selections), draw.choice((1, 1, 2, 2, 3))

    own = [
        Want((), alternatives=tuple(part() for _ in range(draw.choice((2, 2, 3)))))
        for _ in range(draw.choice((1, 1, 2)))
    ]
    others = made.wants[: draw.choice((0, 1))]
    return made._replace(wants=tuple(dict.fromkeys((*own, *others))))


SCENES = (*(scene(seed) for seed in range(350)), *map(with_alternatives, range(150)))


def is_possible(devices: Sequence[Seen], wanted: Sequence[Want]) -> bool:
    """Whether every bundle gets devices of its own that match: tries all ways."""
    if not wanted:
        return True
    first, *rest = wanted
    if first.alternatives:
        return any(is_possible(devices, [Want((part,)), *rest]) for part in first.alternatives)
    slots = [(part, bit) for part, (bit, count) in enumerate(first.parts) for _ in range(count)]
    tried = set()
    for chosen in itertools.permutations(range(len(devices)), len(slots)):
        own = [devices[i] for i in chosen]
        if not all(mask >> bit & 1 for (mask, _), (_, bit) in zip(own, slots, strict=True)):
            continue
        answers = [(part, values) for (_, values), (part, _) in zip(own, slots, strict=True)]
        if {*chosen} not in tried and all(is_held(of, answers) for of in first.constraints):
            tried.add(frozenset(chosen))
            if is_possible([of for i, of in enumerate(devices) if i not in chosen], rest):
                return True
    return False


def is_held(of: Constraint, answers: Sequence[tuple[int, tuple[Value, ...]]]) -> bool:
    values = [values[of.attribute] for part, values in answers if part in of.options]
    wanted = len(values) if of.is_distinct else 1
    return None not in values and len({*values}) == wanted


def cases(made: Scene) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Numbers of bundles, and of devices of each loose selection."""
    devices = len(made.devices)
    several = [range(min(3, devices) + 1) for _ in made.wants]
    free = [range(3 if made.loose >> i & 1 else 1) for i in range(made.selections)]
    for numbers in itertools.product(*several):
        taken = sum(
            n * min((count for _, count in want.alternatives), default=want.size)
            for n, want in zip(numbers, made.wants, strict=True)
        )
        for units in itertools.product(*free):
            if any(numbers) and taken + sum(units) <= devices + 1:
                yield numbers, units


@pytest.mark.parametrize("made", SCENES, ids=range(len(SCENES)))
def test_bundles_and_devices_fit_a_node_exactly_if_all_limits_and_rows_hold(made: Scene) -> None:
    known = limits.limits(kinds(seen(made.devices)), made.wants, made.loose)
    masks = [mask for mask, _ in made.devices]
    names = rows.rows([Selection("abc"[i]) for i in range(made.selections)], [masks])
    offered = rows.counts(masks, names)
    for numbers, units in cases(made):
        if any(numbers[i] for i in known.without):
            continue
        counted = [(bit, n) for bit, n in enumerate(units)]
        wanted = [Want(((bit, 1),)) for bit, n in counted for _ in range(n)]
        for n, want in zip(numbers, made.wants, strict=True):
            counted += [(bit, n * count) for bit, count in want.parts]
            wanted += [want] * n
        amounts = {**dict(enumerate(numbers)), **{~bit: n for bit, n in enumerate(units)}}
        fits = rows.requested(counted, names).fits(offered) and all(
            sum(weight * amounts[i] for i, weight in weights) <= bound
            for weights, bound in known.bounds.items()
        )
        assert fits is is_possible(made.devices, wanted), (numbers, units)


NUMA = [(1, (i // 4,)) for i in range(8)]  # two halves with four devices each


def one_value(count: int) -> Want:
    return Want(((0, count),), (Constraint(0, (0,)),))


def test_two_sizes_share_the_halves_of_a_node() -> None:
    """A half has room for two pairs, or for a set of three."""
    known = limits.limits(kinds(seen(NUMA)), (one_value(2), one_value(3)), 0)
    assert known.bounds == {((0, 1),): 4, ((1, 1),): 2, ((0, 1), (1, 2)): 4}


@pytest.mark.parametrize("loose", [0, 1, 3])
def test_a_node_with_eight_gpus_and_eight_nics_has_exact_limits(loose: int) -> None:
    """Pairs at a root of their own, beside sets of two and four GPUs of one half."""
    node = kinds(seen([(1 << bit, (i // 4, i)) for bit in (0, 1) for i in range(8)]))
    pair = Want(((0, 1), (1, 1)), (Constraint(1, (0, 1)),))
    known = limits.limits(node, (pair, one_value(2), one_value(4)), loose)
    assert not known.without
    assert known.bounds == {
        ((0, 1),): 8,
        ((1, 1),): 4,
        ((2, 1),): 2,
        ((0, 1), (1, 2), (2, 4)): 8,
    }


def test_where_all_devices_have_one_value_rows_count_all_sizes() -> None:
    same = kinds(seen([(1, ("a",))] * 8))
    known = limits.limits(same, tuple(one_value(n) for n in range(1, 9)), 1)
    assert known == Limits({((i, 1),): 8 // (i + 1) for i in range(8)}, {})


def test_a_bundle_that_shares_devices_with_a_tied_one_is_tied_as_well() -> None:
    """All devices have the second value, but the first bundle must not leave a wrong pair."""
    devices = kinds(seen([(3, (0, 0)), (1, (0, 0)), (3, (1, 0)), (1, (1, 0))]))
    wants = (one_value(2), Want(((1, 1),), (Constraint(1, (0,)),)))
    known = limits.limits(devices, wants, 0)
    assert known.bounds == {((0, 1),): 2, ((1, 1),): 2, ((0, 1), (1, 1)): 2}


def test_the_largest_bundles_are_left_out_if_no_limits_are_exact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "MOST_WEIGHTS", {1: 1, 2: 1})
    limits.limits.cache_clear()
    wants = (one_value(3), one_value(2))
    known = limits.limits(kinds(seen(NUMA)), wants, 0)
    assert known.bounds == {((0, 1),): 0, ((1, 1),): 4}
    assert known.without == {0: "no sums say which of them fit a node together"}
    monkeypatch.setattr(limits, "MOST_WEIGHTS", {1: 1})
    limits.limits.cache_clear()
    known = limits.limits(kinds(seen(NUMA)), wants, 0)
    assert known.without == {0: "more than 1 of them compete for devices of a node"}
    limits.limits.cache_clear()


@pytest.mark.parametrize(
    ("where", "name", "most", "words"),
    [
        (ways, "MOST_STEPS", 3, "more than 3 ways to choose devices of a node"),
        (cells, "MOST_STEPS", 1, "more than 1 ways to fill a node"),
        (limits, "MOST_NUMBERS", 2, "more than 2 ways to fill a node"),
        (limits, "MOST_NUMBERS", 14, "more than 14 ways to fill a node"),
        (ways, "MOST_LOOKS", 3, "more than 20000 ways to choose devices of a node"),
        (limits, "MOST_KINDS", 1, "more than 1 kinds of devices on a node"),
    ],
)
def test_caps_are_named(
    monkeypatch: pytest.MonkeyPatch, where: object, name: str, most: int, words: str
) -> None:
    monkeypatch.setattr(where, name, most)
    limits.limits.cache_clear()
    monkeypatch.setattr(cells, "_filled", cells._filled.__wrapped__)
    known = limits.limits(kinds(seen(NUMA)), (one_value(2), one_value(3)), 0)
    limits.limits.cache_clear()
    assert words in known.without.values()


def test_a_part_that_takes_all_has_one_way_or_none() -> None:
    """Devices that do not exist make up for those that other nodes have more of."""
    every = Want(((0, 4),), (Constraint(0, (0,), is_distinct=True),), takes_all=(0,))
    own = [Kind(1, (0,), 1), Kind(1, (1,), 1), Kind(2, (1,), 1), Kind(1, (ways.STAND_IN,), 2)]
    (way,) = ways.ways(every, own, [1, 1, 1, 2])
    assert way == ((0, 0), (1, 0), (3, 0), (3, 0))
    assert not list(ways.ways(every, own, [1, 0, 1, 2]))
    alike = [Kind(1, (0,), 2), *own[1:]]
    assert not list(ways.ways(every, alike, [2, 1, 1, 1]))
    match = every._replace(constraints=(Constraint(0, (0,)),))
    assert not list(ways.ways(match, own, [1, 1, 1, 2]))
    assert list(ways.ways(match, alike, [2, 0, 1, 2]))


def test_of_two_options_each_has_constraints_of_its_own() -> None:
    """The second device is of another value as the first option, or of any as the second."""
    constraint = Constraint(0, (0, 1), is_distinct=True)
    want = Want(((0, 1), (0, 1)), (constraint,), ((0, 0), (1, 0), (1, 1)))
    own = [Kind(1, (0,), 2), Kind(3, (0,), 1), Kind(1, (1,), 1)]
    found = list(ways.ways(want, own, [2, 1, 1]))
    assert ((0, 0), (1, 2)) in found
    assert ((0, 0), (2, 1)) in found
    assert ((0, 0), (1, 1)) not in found


@pytest.mark.parametrize(
    ("heights", "count", "most"), [((8,) * 8, 4, 16), ((3, 1), 2, 1), ((5, 4, 4), 2, 6)]
)
def test_devices_that_must_differ_come_from_stacks(
    heights: tuple[int, ...], count: int, most: int
) -> None:
    """As many virtual functions of different NICs as there are."""
    devices = seen([(1, (i,)) for i, n in enumerate(heights) for _ in range(n)])
    want = Want(((0, count),), (Constraint(0, (0,), is_distinct=True),))
    assert limits.limits(kinds(devices), (want,), 1).bounds == {((0, 1),): most}


def test_constraints_of_which_none_includes_the_other_make_no_stacks() -> None:
    """Of three parts, the first and the last may have one value."""
    pairs = tuple(Constraint(0, own, is_distinct=True) for own in ((0, 1), (1, 2)))
    want = Want(((0, 1), (0, 1), (0, 1)), pairs)
    own = [Kind(1, (0,), 2), Kind(1, (1,), 1)]
    assert cells.stacked(own, [want]) == [[0], [1]]
    assert limits.limits(tuple(own), (want,), 1).bounds == {((0, 1),): 1}
    assert cells.stacked(own, [want._replace(constraints=pairs[:1])]) == [[0, 1]]


def test_ways_take_devices_that_are_left_and_match() -> None:
    two = Want(((0, 1), (1, 1)), (Constraint(0, (0, 1)),))
    own = [Kind(1, (0,), 1), Kind(2, (0,), 2), Kind(2, (1,), 1), Kind(3, (-1,), 1)]
    assert list(ways.ways(two, own, [1, 2, 1, 1])) == [((0, 0), (1, 1))]
    assert list(ways.ways(two, own, [1, 0, 1, 1])) == []
    twice = [((1, 0), (1, 0)), ((1, 0), (2, 0))]
    assert list(ways.ways(Want(((1, 2),)), own, [0, 2, 1, 0])) == twice
    with pytest.raises(NoLimitsError):
        list(ways.ways(Want(((0, 16),)), [Kind(1, (), 1)] * 32, [1] * 32))
