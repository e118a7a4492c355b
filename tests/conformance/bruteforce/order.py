"""Is there a plan that is better by the order that the package's docstring states."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import TYPE_CHECKING, NamedTuple

from . import values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .answers import Answer
    from .cluster import Cluster, Gang, Pod
    from .search import Demand, Located, Rooms, Searcher

TOLERANCE = Fraction(1, 10**9)


class Better(NamedTuple):
    """A better plan: in which coordinate, and what it starts or places."""

    coordinate: str
    says: str
    placed: Sequence[Located]
    is_first: bool  # no round before it has decided anything


@dataclass(frozen=True, eq=False)
class Standing:
    """A plan beside the cluster, and what both mean."""

    cluster: Cluster
    searcher: Searcher
    answer: Answer
    firsts: Mapping[int, Gang]
    is_trimmed: bool = False  # of a role that may not have all its members only the oldest count

    def pods(self, gang: Gang) -> Sequence[Pod]:
        """Those that may be chosen among."""
        return gang.oldest if self.is_trimmed else gang.waiting

    @property
    def waiting(self) -> list[Gang]:
        """Gangs that have not started and could."""
        return [gang for gang in self.cluster.gangs if values.could_start(gang)]

    @property
    def repaired(self) -> list[Gang]:
        """Started gangs that lack members, or may grow; the top priority first."""
        started = [gang for gang in self.cluster.gangs if gang.is_started and gang.waiting]
        return sorted(started, key=lambda gang: -gang.priority)


def better(here: Standing) -> Better | None:
    """Some better plan; None if there is none.

    Raises:
        UndecidedError: that would take too long.
        HeldError: what is held cannot be said for sure.
    """
    found = _better_repairs(here)
    return _better_levels(here) if found is None else found


class HeldError(Exception):
    """The room that is held depends on more than is known here."""


def _better_repairs(here: Standing) -> Better | None:
    gangs = [gang for gang in here.repaired if gang.missing]
    counts = {gang.name: min(gang.missing, len(here.answer.of(gang))) for gang in gangs}
    rooms = here.searcher.rooms()
    for gang in gangs:
        if counts[gang.name] == gang.missing:
            continue
        above = [other for other in gangs if other.priority >= gang.priority]
        demands = [
            here.searcher.repairs(other, here.pods(other), counts[other.name] + (other is gang))
            for other in above
        ]
        if found := here.searcher.place(rooms, demands):
            words = f"one more lost member of {gang.name} could be replaced"
            return Better("repairs", words, found, is_first=True)
    return None


def repairs_of(here: Standing, gang: Gang) -> Sequence[Located]:
    """Which of those placed of a started gang replace lost members: the oldest of each role."""
    placed = sorted(here.answer.of(gang), key=lambda located: located[0].key)
    chosen: list[Located] = []
    for role, n in gang.missing_by_role.items():
        chosen += [one for one in placed if one[0].role == role][:n]
    rest = [one for one in placed if one not in chosen]
    return chosen + rest[: max(gang.missing - len(chosen), 0)]


def _better_levels(here: Standing) -> Better | None:
    gangs = here.waiting
    priorities = sorted({gang.priority for gang in here.cluster.gangs}, reverse=True)
    fixed = [pod for gang in here.repaired for pod, _ in repairs_of(here, gang)]
    base = _Base(here.searcher.rooms(), [here.searcher.exactly(fixed)] if fixed else [], [])
    is_first = not fixed
    for priority in priorities:
        first = here.firsts.get(priority)
        level = [gang for gang in gangs if gang.priority == priority]
        if first is not None and first in level and not here.answer.starts(first):
            options = [gang for gang in base.above(gangs) if gang.priority > priority]
            for chosen in _subsets(options):
                if not _keeps(here, base, chosen, priority):
                    continue
                if placed := _placed(here, base, [*chosen, first], priority):
                    words = f"{first.name}, which goes first, could start"
                    return Better(f"first of {priority}", words, placed, is_first)
            if base.holding is None:
                base = _held_from(here, base, first)
                is_first = False
        found = _better_values(here, base, priority, is_first=is_first)
        if found is not None:
            return found
        is_first = is_first and first is None and not _has_extras(here, priority)
    return None


@dataclass(frozen=True, eq=False)
class _Base:
    """What lower levels stand on: the room, demands that must be met in it, what is placed."""

    rooms: Rooms
    demands: Sequence[Demand]
    beside: Sequence[Located]
    holding: Gang | None = None

    def above(self, gangs: Iterable[Gang]) -> list[Gang]:
        """The gangs that the base leaves open."""
        if self.holding is None:
            return list(gangs)
        most = self.holding.priority
        return [g for g in gangs if g.priority <= most and g is not self.holding]


def _held_from(here: Standing, base: _Base, first: Gang) -> _Base:
    above = before_hold(here, first)
    room = hold_room(here, first)
    left = here.searcher.less(base.rooms, above)
    rooms = tuple(
        tuple(n - h for n, h in zip(own, kept, strict=True))
        for own, kept in zip(left, room, strict=True)
    )
    return _Base(rooms, [], above, first)


def before_hold(here: Standing, first: Gang) -> list[Located]:
    """Whoever has got a node before room was held."""
    above: list[Located] = []
    for gang in here.cluster.gangs:
        if gang.priority > first.priority:
            above += here.answer.of(gang)
        elif gang.is_started:
            own = repairs_of(here, gang)
            if len(own) < len(here.answer.of(gang)) and own:
                raise HeldError
            above += own
    return above


def hold_room(here: Standing, first: Gang) -> list[list[int]]:
    """The room that is held for a gang that does not start.

    Raises:
        HeldError: those placed before may have been moved since, or the gang is of several shapes.
    """
    above = before_hold(here, first)
    if above and here.cluster.has_wishes:
        raise HeldError
    room = values.held(here.searcher, first, here.searcher.less(here.searcher.rooms(), above))
    if room is None:
        raise HeldError
    return room


def holding(here: Standing) -> Gang | None:
    """The gang for which room is held."""
    for _, first in sorted(here.firsts.items(), reverse=True):
        if not here.answer.starts(first):
            return first
    return None


def _has_extras(here: Standing, priority: int) -> bool:
    return any(
        gang.priority == priority and (gang.is_started or len(gang.oldest) > gang.need)
        for gang in here.cluster.gangs
        if gang.waiting
    )


def _better_values(here: Standing, base: _Base, priority: int, *, is_first: bool) -> Better | None:
    options = [gang for gang in base.above(here.waiting) if gang.priority >= priority]
    first = here.firsts.get(priority)
    level = [gang for gang in options if gang.priority == priority and gang is not first]
    worth = {gang.name: values.value(here.cluster, gang) for gang in level}
    have = sum((worth[g.name] for g in level if here.answer.starts(g)), Fraction(0))
    if have >= sum(worth.values()):
        return None
    for chosen in _subsets(options):
        got = sum((worth[g.name] for g in chosen if g in level), Fraction(0))
        if got <= have * (1 + TOLERANCE) or not _keeps(here, base, chosen, priority):
            continue
        if first in options and here.answer.starts(first) and first not in chosen:
            continue
        if found := _placed(here, base, chosen, priority):
            names = ", ".join(g.name for g in chosen if g.priority == priority)
            words = f"{names} could start: {float(got):.9g}, not {float(have):.9g}"
            return Better(f"value of {priority}", words, found, is_first)
    return None


def _subsets(gangs: Sequence[Gang]) -> Iterator[tuple[Gang, ...]]:
    for n in range(len(gangs), -1, -1):
        yield from combinations(gangs, n)


def _keeps(here: Standing, base: _Base, chosen: Sequence[Gang], priority: int) -> bool:
    """Whether a choice is as good above the priority, and starts whom the plan makes grow."""
    gangs = [gang for gang in base.above(here.waiting) if gang.priority > priority]
    for level in {gang.priority for gang in gangs}:
        mine = [gang for gang in gangs if gang.priority == level]
        first = here.firsts.get(level)
        if first in mine and here.answer.starts(first) and first not in chosen:
            return False
        rest = [gang for gang in mine if gang is not first]
        have = [values.value(here.cluster, gang) for gang in rest if here.answer.starts(gang)]
        got = [values.value(here.cluster, gang) for gang in rest if gang in chosen]
        if sum(got) < sum(have) or any(g not in chosen and _grows(here, g) for g in mine):
            return False
    return True


def _grows(here: Standing, gang: Gang) -> bool:
    return here.answer.starts(gang) and len(here.answer.of(gang)) > gang.need


def _placed(
    here: Standing, base: _Base, gangs: Sequence[Gang], priority: int
) -> list[Located] | None:
    """A place for these gangs, and all whom the plan places beyond needs above the priority."""
    demands = list(base.demands)
    for gang in gangs:
        if gang.priority > priority and _grows(here, gang):
            demands.append(here.searcher.exactly([pod for pod, _ in here.answer.of(gang)]))
        else:
            demands.append(here.searcher.whole(gang, here.pods(gang)))
    further: list[Pod] = []
    for gang in here.repaired:
        if gang.priority > priority:
            own = {id(pod) for pod, _ in repairs_of(here, gang)}
            is_above = base.holding is not None and gang.priority > base.holding.priority
            further += [
                pod for pod, _ in here.answer.of(gang) if id(pod) not in own and not is_above
            ]
    if further:
        demands.append(here.searcher.exactly(further))
    return here.searcher.place(base.rooms, demands, base.beside)


def most_members(here: Standing, gang: Gang, rooms: Rooms, beside: Sequence[Located]) -> int:
    """How many of the needed members of a gang fit there together."""
    groups = here.searcher.groups(here.pods(gang))
    least = sum(role.least for role in gang.roles)
    caps = {role.name: gang.need - least + role.least for role in gang.roles}
    for role in gang.roles:
        if (places := gang.places(role.name)) is not None:
            caps[role.name] = min(caps[role.name], places)
    best = 0
    for way in product(*(range(len(group) + 1) for group in groups)):
        if not best < sum(way) <= gang.need:
            continue
        if any(
            sum(n for n, group in zip(way, groups, strict=True) if group[0].role == role) > most
            for role, most in caps.items()
        ):
            continue
        pods = [pod for n, group in zip(way, groups, strict=True) for pod in group[:n]]
        if here.searcher.place(rooms, [here.searcher.exactly(pods)], beside):
            best = sum(way)
    return best
