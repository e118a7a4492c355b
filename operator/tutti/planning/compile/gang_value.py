"""The value of admitting a gang within its priority, by the objective that the user chooses.

Shares are exact fractions of the cluster's totals. The values made of them are integers, so that
sums of values are exact.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import gcd, lcm
from typing import NamedTuple

from ...gang.demand import PlacementRequest
from ...gang.order import waiting_since
from ...model import ports
from ...model.cluster import Member
from ...model.decisions import Objective, Policy
from ...model.shapes import Shape
from ...model.volumes import counts_volumes
from ...strategies.problem import DemandLevel
from .grids import Grid, footprint
from .problems import levels

SHARE_SCALE = 2**56  # value of a gang that requests the whole cluster, per step of its age
# Values that share no larger unit are rounded to a unit of at most 1 / PRECISION of the cluster: an
# engine cannot tell finer sums apart.
PRECISION = 2**28
SHOWN_SCALE = 10_000_000  # value of a gang that requests the whole cluster, in a Plan
AGE_STEPS = 4  # steps per ``age_seconds`` of waiting: gangs with equal steps have equal weight
MOST_WEIGHT = 16  # limits the weight of age, so that an old gang does not outweigh all other gangs
HALF = 25  # bits of an amount of a Grid, which has at most 50


class _Kind(NamedTuple):
    """What decides the value of a gang."""

    level: DemandLevel
    needed: frozenset[tuple[int, int]]  # (row of a shape in the Grid, members)
    weight: int


def worths(
    base: Grid, wants: Sequence[PlacementRequest], policy: Policy, now: float
) -> Sequence[int]:
    """The value of each request; positive."""
    match policy.objective:
        case Objective.GANGS:
            return [1] * len(wants)
        case Objective.MEMBERS:
            return [want.need for want in wants]
    totals = _totals(base)
    shares: dict[frozenset[tuple[int, int]], Fraction] = {}
    shapes = list(base.shapes)
    first_of = dict[_Kind, _Kind]()  # equal requests share one object
    kinds: list[_Kind] = []
    for want, level in zip(wants, levels(wants), strict=True):
        counts = _needed_counts(base, want)
        needed = frozenset(counts.items())
        if needed not in shares:
            shares[needed] = _share(totals, [(shapes[row], n) for row, n in counts.items()])
        kind = _Kind(level, needed, _weight(want, policy, now))
        kinds.append(first_of.setdefault(kind, kind))
    exact = {kind: shares[kind.needed] * kind.weight for kind in first_of}
    whole = _whole(exact, _finest(totals.values()))
    return [whole[kind] for kind in kinds]


def scale(policy: Policy) -> Fraction:
    """The factor from a value of this module to the value that a Plan shows."""
    is_share = policy.objective is Objective.RESOURCES
    return Fraction(SHOWN_SCALE, SHARE_SCALE) if is_share else Fraction(1)


def _totals(base: Grid) -> Mapping[str, int]:
    """The total that all nodes offer of each resource that counts towards a gang's share.

    Host ports and attached volumes do not count: they only limit how many pods fit on one node.
    """
    # Sums may exceed 64 bits, so both halves of the amounts are added up by themselves.
    high, low = (base.capacity >> HALF).sum(axis=0), (base.capacity % 2**HALF).sum(axis=0)
    sums = [(h << HALF) + n for h, n in zip(high.tolist(), low.tolist(), strict=True)]
    counted = zip(base.resources, sums, base.units, strict=True)
    return {
        name: n if unit == 1 else sum(node.allocatable[name] for node in base.nodes)
        for name, n, unit in counted
        if n > 0 and not (ports.is_port(name) or counts_volumes(name))
    }


def _weight(want: PlacementRequest, policy: Policy, now: float) -> int:
    """The weight 1 + wait / age_seconds, as a whole number of steps of 1 / AGE_STEPS."""
    waited = max(0.0, now - waiting_since(want.gang, want.members))
    return AGE_STEPS + min(int(AGE_STEPS * waited / policy.age_seconds), AGE_STEPS * MOST_WEIGHT)


def _share(totals: Mapping[str, int], shapes: Sequence[tuple[Shape, int]]) -> Fraction:
    """The largest share that these members request of the cluster total of any resource."""
    requested = Counter[str]()
    for shape, count in shapes:
        for name, n in footprint(shape).amounts:
            requested[name] += n * count
    shares = (Fraction(n, totals[name]) for name, n in requested.items() if name in totals)
    return max(shares, default=Fraction(0))


def _needed_counts(base: Grid, want: PlacementRequest) -> Mapping[int, int]:
    """How many members of each shape are needed, by the row of the shape in the Grid."""
    if len(want.alike) == 1:
        return {base.shapes[want.members[0].shape]: min(want.need, len(want.members))}
    return Counter(base.shapes[member.shape] for member in _oldest_needed(want))


def _oldest_needed(want: PlacementRequest) -> Sequence[Member]:
    """The oldest members that satisfy the roles; other members may start if members differ."""
    minimums, places = dict(want.minimums), dict(want.maximums)
    chosen: list[Member] = []
    rest: list[Member] = []
    for member in want.members:
        if (places_left := places.get(member.role)) is not None:
            if not places_left:
                continue
            places[member.role] -= 1
        is_first = minimums.get(member.role, 0) > 0
        (chosen if is_first else rest).append(member)
        if is_first:
            minimums[member.role] -= 1
    return [*chosen, *rest[: want.need - len(chosen)]]


def _finest(totals: Iterable[int]) -> Fraction:
    """The unit of values that share no larger unit; shares of the scarcest resources are exact."""
    parts = 1
    for total in sorted(totals):
        if lcm(parts, total) <= PRECISION:
            parts = lcm(parts, total)
    return Fraction(1, parts * -(-PRECISION // parts))


def _whole(exact: Mapping[_Kind, Fraction], finest: Fraction) -> Mapping[_Kind, int]:
    """The values as integers, in units of 1 / SHARE_SCALE.

    The values of a level are multiples of the largest unit that they share. For example, gangs that
    differ only in GPUs have multiples of one GPU as values. A solver that knows the smallest
    difference proves an optimum much sooner. If the shared unit is too fine for an engine, each
    value is rounded by itself. So no gang's value depends on the requests of other gangs.
    """
    different: dict[DemandLevel, set[Fraction]] = {}
    for kind, value in exact.items():
        different.setdefault(kind.level, set()).add(value)
    scaled = {level: _scaled(values, finest) for level, values in different.items()}
    return {kind: scaled[kind.level][value] for kind, value in exact.items()}


def _scaled(values: Iterable[Fraction], finest: Fraction) -> Mapping[Fraction, int]:
    """The values of one level as integers in units of 1 / SHARE_SCALE, by exact value."""
    unit = _shared_unit(values, finest) or finest
    size = round(unit * SHARE_SCALE)
    return {value: max(1, round(value / unit)) * size for value in values}


def _shared_unit(values: Iterable[Fraction], finest: Fraction) -> Fraction:
    """The largest unit that divides all the values; 0 if it is finer than ``finest``."""
    unit = Fraction(0)
    for value in values:
        above = gcd(unit.numerator * value.denominator, value.numerator * unit.denominator)
        unit = Fraction(above, unit.denominator * value.denominator)
        if unit < finest:
            return Fraction(0)
    return unit
