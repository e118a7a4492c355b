"""Devices that share counters: what fits a node, beside a search that tries every device."""

import random
from collections import Counter as Count
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations, product
from typing import NamedTuple

import pytest

from tests.harness.fake_devices import DRIVER, device, gpus
from tutti.filters.devices import bundles, cells, counters, limits, pools, rows
from tutti.filters.devices.counters import Shared, Uses
from tutti.filters.devices.ways import Constraint, Want
from tutti.model.devices.claims import FreeDevice, Selection
from tutti.model.devices.inventory import Counter, Device, DeviceId, ResourceSlice
from tutti.model.keys import NodeName
from tutti.planning.devices import counter_choice


class Scene(NamedTuple):
    """The selections and counters of each device, how much of each there is, and what waits."""

    devices: Sequence[tuple[int, Uses]]
    counters: tuple[int, ...]
    selections: int


def scene(seed: int) -> Scene:
    """Partitions of one or two GPUs, each of which has two counters, and a few whole devices."""
    draw = random.Random(seed)
    width, gpus = draw.randint(1, 3), draw.randint(1, 2)

    def uses() -> Uses:
        gpu = draw.randrange(gpus)
        both = ((2 * gpu, draw.randint(1, 3)), (2 * gpu + 1, draw.randint(1, 2)))
        return both if draw.random() < 0.5 else both[:1]

    devices = [
        (draw.randrange(1, 1 << width), uses() if draw.random() < 0.8 else ())
        for _ in range(draw.randint(2, 7))
    ]
    return Scene(devices, tuple(draw.randint(0, 4) for _ in range(2 * gpus)), width)


def is_possible(made: Scene, wanted: Sequence[int]) -> bool:
    """Whether each request gets a device of its own, and no counter is exceeded."""
    if not wanted:
        return True
    first, *rest = wanted
    for i, (mask, uses) in enumerate(made.devices):
        if mask >> first & 1:
            left = list(made.counters)
            for at, n in uses:
                left[at] -= n
            others = [of for j, of in enumerate(made.devices) if j != i]
            if min(left) >= 0 and is_possible(Scene(others, tuple(left), made.selections), rest):
                return True
    return False


@pytest.mark.parametrize("seed", range(200))
def test_requests_fit_a_node_exactly_if_all_limits_and_rows_hold(seed: int) -> None:
    made = scene(seed)
    kinds = bundles.kinds([(mask, (), uses) for mask, uses in made.devices])
    every = (1 << made.selections) - 1
    known = limits.limits(kinds, (), every, made.counters)
    masks = [mask for mask, _ in made.devices]
    names = rows.rows([Selection("abc"[i]) for i in range(made.selections)], [masks])
    offered = rows.counts(masks, names)
    free = [
        FreeDevice(DeviceId("d", "p", f"{i}"), mask, uses)
        for i, (mask, uses) in enumerate(made.devices)
    ]
    for numbers in product(range(4), repeat=made.selections):
        if sum(numbers) > 4 or any(numbers[~i] for i in known.without):
            continue
        wanted = [bit for bit, n in enumerate(numbers) for _ in range(n)]
        fits = rows.requested(enumerate(numbers), names).fits(offered) and all(
            sum(weight * numbers[~i] for i, weight in weights) <= bound
            for weights, bound in known.bounds.items()
        )
        assert fits is is_possible(made, wanted), numbers
        shared = counter_choice.sharing(wanted, free)
        tied = [bit for bit in wanted if shared >> bit & 1]
        given = counter_choice.chosen(tied, free, made.counters)
        assert (len(given) == len(tied)) is is_possible(made, tied)
        assert_valid(made, tied, given)


def assert_valid(made: Scene, wanted: Sequence[int], given: Sequence[DeviceId]) -> None:
    """Each device is given once and selected, and no counter is exceeded."""
    used = Count[int]()
    for bit, device_id in zip(wanted, given, strict=False):
        mask, uses = made.devices[int(device_id.name)]
        assert mask >> bit & 1
        used.update(dict(uses))
    assert len({*given}) == len(given)
    assert all(used[i] <= most for i, most in enumerate(made.counters))


def pair(draw: random.Random, width: int) -> Want:
    """Two devices, or three, with one value."""
    first = draw.randrange(width), draw.choice((1, 2))
    one_value = Constraint(0, (0, 1), is_distinct=draw.random() < 0.4)
    return Want((first, (draw.randrange(width), 1)), (one_value,))


def is_held(of: Constraint, values: Sequence[bundles.Value]) -> bool:
    return None not in values and len({*values}) == (len(values) if of.is_distinct else 1)


def fit_together(
    devices: Sequence[bundles.Seen], left: tuple[int, ...], wanted: Sequence[Want]
) -> bool:
    """Whether each bundle gets devices of its own that match, and no counter is exceeded."""
    if not wanted:
        return True
    first, *rest = wanted
    bits = [bit for bit, count in first.parts for _ in range(count)]
    for chosen in permutations(range(len(devices)), len(bits)):
        own = [devices[i] for i in chosen]
        used = Count[int]()
        for _, _, uses in own:
            used.update(dict(uses))
        values = [of[0] for _, of, _ in own]
        if (
            all(mask >> bit & 1 for (mask, _, _), bit in zip(own, bits, strict=True))
            and all(is_held(of, values) for of in first.constraints)
            and all(n <= left[i] for i, n in used.items())
        ):
            others = [of for i, of in enumerate(devices) if i not in chosen]
            remaining = tuple(most - used[i] for i, most in enumerate(left))
            if fit_together(others, remaining, rest):
                return True
    return False


@pytest.mark.parametrize("seed", range(100))
def test_bundles_beside_devices_that_consume_counters_have_exact_limits(seed: int) -> None:
    draw = random.Random(seed)
    width = draw.randint(2, 3)
    devices: list[bundles.Seen] = [
        (
            draw.randrange(1, 1 << width),
            (draw.choice((0, 0, 1, 2, None)),),
            ((draw.randrange(2), draw.randint(1, 2)),) if draw.random() < 0.5 else (),
        )
        for _ in range(draw.randint(2, 6))
    ]
    left = draw.randint(1, 3), draw.randint(1, 3)
    want = pair(draw, width)
    known = limits.limits(bundles.kinds(devices), (want,), (1 << width) - 1, left)
    assert not known.without
    masks = [mask for mask, _, _ in devices]
    names = rows.rows([Selection("abc"[i]) for i in range(width)], [masks])
    offered = rows.counts(masks, names)
    for n, *units in product(range(3), *[range(3)] * width):
        if n * 2 + sum(units) > 4:
            continue
        counted = [*enumerate(units), *((bit, n * count) for bit, count in want.parts)]
        amounts = {0: n, **{~bit: count for bit, count in enumerate(units)}}
        fits = rows.requested(counted, names).fits(offered) and all(
            sum(weight * amounts[i] for i, weight in weights) <= bound
            for weights, bound in known.bounds.items()
        )
        singles = [Want(((bit, 1),)) for bit, count in enumerate(units) for _ in range(count)]
        assert fits is fit_together(devices, left, [want] * n + singles)


# A GPU with eight slices of memory: profiles with the slices at which each may be placed.
PROFILES = {1: range(7), 2: (0, 2, 4), 4: (0, 4), 8: (0,)}


def partitions(gpus: int, profiles: Sequence[int]) -> list[tuple[int, Uses]]:
    return [
        (1 << bit, tuple((8 * gpu + at + i, 1) for i in range(size)))
        for gpu in range(gpus)
        for bit, size in enumerate(profiles)
        for at in PROFILES[size]
    ]


@pytest.mark.parametrize(
    ("gpus", "profiles"),
    [(8, (8,)), (8, (1,)), (8, (4, 8)), (8, (2, 4)), (4, (1, 4)), (1, (1, 2, 4))],
)
def test_a_node_with_partitioned_gpus_has_exact_limits(gpus: int, profiles: list[int]) -> None:
    listed = partitions(gpus, profiles)
    kinds = bundles.kinds([(mask, (), uses) for mask, uses in listed])
    known = limits.limits(kinds, (), (1 << len(profiles)) - 1, (1,) * 8 * gpus)
    assert not known.without
    for bit, size in enumerate(profiles):
        assert known.bounds[((~bit, 1),)] == gpus * len(PROFILES[size])
    free = [
        FreeDevice(DeviceId("d", "p", f"{i}"), mask, uses) for i, (mask, uses) in enumerate(listed)
    ]
    wanted = [0] * known.bounds[((-1, 1),)]
    assert len(counter_choice.chosen(wanted, free, (1,) * 8 * gpus)) == len(wanted)


def test_selections_without_limits_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_WEIGHTS", {1: 1})
    limits.limits.cache_clear()
    kinds = bundles.kinds([(mask, (), uses) for mask, uses in partitions(1, (2, 4))])
    known = limits.limits(kinds, (Want(((0, 1),)),), 2, (1,) * 8)
    assert known.without == {0: "more than 1 of them compete for devices of a node"}
    known = limits.limits(kinds, (), 3, (1,) * 8)
    assert known.without == {~0: "more than 1 of them compete for devices of a node"}
    assert known.bounds == {((-1, 1),): 0, ((-2, 1),): 2}
    limits.limits.cache_clear()


def partition(name: str, *counters: Counter, pool: str = "n1") -> Device:
    return replace(device(name, pool), counters=counters)


MEMORY, CORES = Counter("gpu-0", "memory", "80Gi"), Counter("gpu-0", "cores", "7")
OWN = gpus("n1", 0)
SETS = replace(OWN, name="sets", counters=(CORES, MEMORY), slices=2)
HALVES = replace(
    OWN,
    slices=2,
    devices=tuple(
        partition(f"half-{i}", Counter("gpu-0", "cores", "3"), Counter("gpu-0", "memory", "40Gi"))
        for i in range(3)
    ),
)
PLACE = NodeName("n1")


def test_amounts_are_multiples_of_what_all_consumption_is_a_multiple_of() -> None:
    devices = pools.devices([SETS, HALVES])[PLACE]
    known = counters.offered([SETS, HALVES])
    uses = {of.id: ((0, 1), (1, 1)) for of in devices}
    assert counters.shared(devices, known, ()) == Shared(uses, (2, 2), (2, 2))
    held = {devices[0].id}
    assert counters.shared(devices, known, held) == Shared(uses, (2, 2), (1, 1))
    smaller = replace(SETS, counters=(CORES, MEMORY._replace(quantity="40Gi")))
    known = counters.offered([smaller])
    exceeded = counters.shared(devices, known, {of.id for of in devices[:2]})
    assert exceeded.free == (0, 0)
    assert exceeded.blocked == {of.id for of in devices}


def test_what_consumes_nothing_of_a_counter_does_not_compete_for_it() -> None:
    free = partition("free", Counter("gpu-0", "cores", "0"))
    found = counters.shared([free], counters.offered([SETS]), ())
    assert found == Shared({free.id: ()}, (), ())


def test_a_pool_with_counters_that_contradict_each_other_gives_its_node_nothing() -> None:
    assert len(pools.devices([SETS, HALVES])[PLACE]) == 3
    twice = replace(SETS, name="again", slices=3)
    assert pools.devices([replace(SETS, slices=3), replace(HALVES, slices=3), twice]) == {}
    assert pools.devices([replace(HALVES, slices=1)]) == {}
    assert pools.unusable_on([replace(HALVES, slices=1)]) == {PLACE}


@pytest.mark.parametrize("seed", range(60))
def test_devices_are_chosen_in_any_order_of_requests_if_their_limits_are_known(seed: int) -> None:
    """The order decides how many steps the search takes, and the limits know of one order."""
    draw = random.Random(seed)
    width, count = draw.choice((2, 3)), draw.choice((1, 2, 3))
    most = tuple(draw.randint(4, 14) for _ in range(count))
    common = draw.randrange(width)
    free = []
    for i in range(draw.randint(20, 34)):
        bit = common if draw.random() < 0.8 else draw.randrange(width)
        mask = 1 << bit | (1 << draw.randrange(width) if draw.random() < 0.2 else 0)
        used = sorted(draw.sample(range(count), draw.randint(1, count)))
        uses = tuple((counter, draw.randint(1, 4)) for counter in used)
        free.append(FreeDevice(DeviceId("d", "p", f"{i:02}"), mask, uses))
    known = limits.limits(
        bundles.kinds((of.selections, (), of.counters) for of in free), (), (1 << width) - 1, most
    )
    for order in permutations(range(width)):
        given = counter_choice.chosen(order, free, most)
        if not known.without:
            assert len(given) == width or any(known.bounds[(~bit, 1),] == 0 for bit in order)


def test_no_devices_are_chosen_if_there_are_too_many_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    free = [FreeDevice(DeviceId("d", "p", f"{i}"), 1, ((0, 1),)) for i in range(3)]
    assert len(counter_choice.chosen([0, 0], free, (3,))) == 2
    monkeypatch.setattr(cells, "MOST_STEPS", 1)
    cells._filled.cache_clear()
    assert not counter_choice.chosen([0, 0], free, (3,))
    cells._filled.cache_clear()


@pytest.mark.parametrize("pieces", [(SETS, HALVES), (HALVES, SETS)])
def test_a_pool_with_a_negative_amount_gives_its_node_nothing(
    pieces: tuple[ResourceSlice, ResourceSlice],
) -> None:
    first, other = pieces
    negative = Counter("gpu-0", "cores", "-1")
    counted = first.counters and (negative, MEMORY)
    devices = tuple(replace(of, counters=(negative,)) for of in first.devices)
    assert pools.devices([replace(first, counters=counted, devices=devices), other]) == {}


def test_counters_that_devices_of_several_nodes_consume_are_not_supported() -> None:
    elsewhere = replace(HALVES, name="more", node=NodeName("n2"), devices=HALVES.devices[:1])
    pieces = [replace(of, slices=3) for of in (SETS, HALVES, elsewhere)]
    bare = replace(pieces[1], devices=(*HALVES.devices, device("whole", "n1")))
    *shared, whole = pools.devices([pieces[0], bare, pieces[2]])[PLACE]
    assert {of.unsupported for of in shared} == {("consumesCounters at several nodes",)}
    assert not whole.unsupported
    assert whole.id.driver == DRIVER
