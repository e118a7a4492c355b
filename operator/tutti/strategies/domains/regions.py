"""Gangs whose members must be in one domain: the regions in which a gang could start."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..capacity import fits_per_node
from ..problem import Demand, Problem, SameDomain, Segments, Share
from ..shape_demand import Array, Flags
from ..work import CALL, Work
from . import segments

Fits = Callable[[int], Array]  # shape -> [node]: how many members fit
Chosen = Mapping[SameDomain, int]  # the domains for some of a demand's rules
NO_DOMAIN = -2  # a level without any domain: no node is in it
MOST_CELLS = 4_000_000  # numbers that may be computed for a region, in vain


@dataclass(frozen=True, slots=True)
class Region:
    """A domain for each rule of a gang, in which its members may be together."""

    domains: tuple[int, ...] = ()  # parallel to Demand.same_domain

    def nodes(self, problem: Problem, demand: Demand, part: int) -> Flags | None:
        """[node]: where members of the part may be; None if anywhere.

        Segments are in domains, so their members may be in any domain of the level.
        """
        allowed: Flags | None = None
        for own in demand.segments:
            if part in own.parts:
                allowed = problem.domains[own.level] >= 0
        for rule, domain in zip(demand.same_domain, self.domains, strict=True):
            if part in rule.parts:
                inside = problem.domains[rule.level] == domain
                allowed = inside if allowed is None else allowed & inside
        return allowed


def regions(problem: Problem, demand: Demand, fits: Fits, work: Work) -> Iterator[Region]:
    """The regions that counting does not rule out for the demand, the tightest first.

    A demand without such rules has one region, which is everywhere. If no region is left, the
    demand provably cannot start; but once the ``work`` is over, there may be more regions. Each
    region gives back the work that led to it.
    """
    chosen = {rule: rule.domain for rule in demand.same_domain if rule.domain is not None}
    # The widest level first: a narrow domain is then within the wide one.
    ordered = sorted(demand.same_domain, key=lambda rule: int(problem.domains[rule.level].max()))
    components = _components([rule for rule in ordered if rule not in chosen])
    search = _RegionSearch(problem, demand, fits, work)
    if not search.could_start(chosen):
        return
    # Rules that share no members restrict each other little: each component by itself comes first.
    if len(components) > 1:
        for rules in components:
            if not any(True for _ in search.choices(rules, chosen)):
                return
            work.spent = 0.0
    for domains in search.choices([rule for rules in components for rule in rules], chosen):
        yield Region(tuple(domains[rule] for rule in demand.same_domain))
        work.spent = 0.0


def region_work(problem: Problem, demand: Demand) -> Work:
    """How much may be computed, in vain, for a region of a demand: more than all domains once."""
    rules = len(demand.same_domain)  # each looks at the nodes again once another one has a domain
    own = (
        len(rule.parts) * len(problem.free) * rules
        + (int(problem.domains[rule.level].max(initial=-1)) + 2) * (CALL + len(demand.parts))
        for rule in demand.same_domain
    )
    return Work(MOST_CELLS + sum(own))


def _components(rules: Sequence[SameDomain]) -> Sequence[Sequence[SameDomain]]:
    """The rules in the same order, apart if no member links them."""
    components: list[list[SameDomain]] = []
    for rule in rules:
        linked = [c for c in components if any(_overlap(rule, other) for other in c)]
        joined = [other for component in linked for other in component]
        components = [component for component in components if component not in linked]
        components.append([*sorted(joined, key=rules.index), rule])
    return components


def _overlap(rule: SameDomain, other: SameDomain) -> bool:
    return not set(rule.parts).isdisjoint(other.parts)


class _RegionSearch:
    """A depth-first search for one domain for each rule, with forward checking.

    A choice is left out as soon as counting shows that the demand cannot start with it, or that a
    rule which covers some of the same members has no domain left (R. M. Haralick and G. L. Elliott,
    Increasing Tree Search Efficiency for Constraint Satisfaction Problems, 1980).
    """

    def __init__(self, problem: Problem, demand: Demand, fits: Fits, work: Work) -> None:
        self._problem, self._demand, self._fits, self._work = problem, demand, fits, work
        self._rooms: dict[object, int] = {}

    def choices(
        self, rules: Sequence[SameDomain], chosen: Chosen
    ) -> Iterator[Mapping[SameDomain, int]]:
        """All choices of a domain for each of the rules, added to the ``chosen`` domains."""
        if not rules:
            yield chosen
            return
        rule, *rest = rules
        overlapping = [other for other in rest if _overlap(rule, other)]
        for number in self._domains(rule, chosen):
            if self._work.is_over:
                return
            narrowed = {**chosen, rule: number}
            if self.could_start(narrowed) and self._have_domains(overlapping, narrowed):
                yield from self.choices(rest, narrowed)

    def could_start(self, chosen: Chosen) -> bool:
        """Whether counting does not rule out that the demand starts in the chosen domains."""
        rooms = _rooms_by_part(self._problem, self._demand, self._fits, chosen, self._rooms)
        if could_start(self._demand, rooms):
            return True
        self._work.spend(len(self._demand.parts))
        return False

    def _have_domains(self, rules: Iterable[SameDomain], chosen: Chosen) -> bool:
        """Whether each of the rules has a domain beside the chosen domains, by counting."""
        return all(
            any(
                self._work.is_over or self.could_start({**chosen, rule: number})
                for number in self._domains(rule, chosen)
            )
            for rule in rules
        )

    def _domains(self, rule: SameDomain, chosen: Chosen) -> Sequence[int]:
        """The domains that may hold enough members, the tightest first."""
        problem, demand, domain = self._problem, self._demand, self._problem.domains[rule.level]
        inside = domain >= 0
        holds, room = np.zeros((2, int(domain.max(initial=-1)) + 1), dtype=np.int64)
        looks = 0
        for index in rule.parts:
            part = demand.parts[index]
            nodes = _inside(problem, chosen, index, inside)
            looks += int(np.count_nonzero(nodes))
            sums = segments.by_domain(domain, np.where(nodes, self._fits(part.shape), 0))
            holds += np.minimum(sums, part.available)
            room += sums
        self._work.spend(looks)
        uncovered = sum(p.available for i, p in enumerate(demand.parts) if i not in rule.parts)
        enough = np.flatnonzero(holds + uncovered >= demand.need)
        order = enough[np.lexsort((room[enough], -np.minimum(holds[enough], demand.need)))]
        return [int(number) for number in order] if len(room) else [NO_DOMAIN]


def _inside(problem: Problem, chosen: Chosen, part: int, nodes: Flags) -> Flags:
    """The given nodes that are in all chosen domains of the part."""
    for rule, number in chosen.items():
        if part in rule.parts:
            nodes = nodes & (problem.domains[rule.level] == number)
    return nodes


def rooms(problem: Problem, demand: Demand, fits: Fits, region: Region) -> Mapping[object, int]:
    """By room that parts share: how many members of its shape it holds, segments aside."""
    chosen = dict(zip(demand.same_domain, region.domains, strict=True))
    by_room: dict[object, int] = {}
    _rooms_by_part(problem, replace(demand, segments=()), fits, chosen, by_room)
    return by_room


def _rooms_by_part(
    problem: Problem, demand: Demand, fits: Fits, chosen: Chosen, known: dict[object, int]
) -> Sequence[tuple[object, int]]:
    """By part, which room it uses, and at most how many members of its shape that room holds.

    A rule without a ``chosen`` domain counts as its roomiest domain. Rooms are counted once, and
    kept in ``known``.
    """
    by_part = []
    for index, part in enumerate(demand.parts):
        rules = [rule for rule in demand.same_domain if index in rule.parts]
        within = tuple((rule.level, chosen[rule]) for rule in rules if rule in chosen)
        rest = tuple(rule for rule in rules if rule not in chosen)
        own = next((own for own in demand.segments if index in own.parts), None)
        key = (part.shape, within, rest, own)
        if key not in known:
            nodes = _inside(problem, chosen, index, np.ones(len(problem.free), dtype=np.bool_))
            inside = np.where(nodes, fits(part.shape), 0)
            bounds = [int(inside.sum())]
            for rule in rest:
                totals = segments.by_domain(problem.domains[rule.level], inside)
                bounds.append(int(totals.max(initial=0)))
            if own is not None:
                totals = segments.by_domain(problem.domains[own.level], inside)
                is_alike = _is_alike(demand, own)
                most = segments.most_members(totals, own.size) if is_alike else totals.sum()
                bounds.append(int(most))
            known[key] = min(bounds)
        by_part.append((key, known[key]))
    return by_part


def _is_alike(demand: Demand, own: Segments) -> bool:
    """Whether all members of the segments have one shape and the same rules."""
    first, *others = own.parts
    return all(
        demand.parts[first].shape == demand.parts[other].shape
        and all((first in rule.parts) == (other in rule.parts) for rule in demand.same_domain)
        for other in others
    )


def could_start(demand: Demand, rooms: Sequence[tuple[object, int]]) -> bool:
    """Whether enough members exist and fit, room by room; False is a proof, True is not.

    ``rooms`` says by part which room its members share, and how many members that room holds.
    """
    in_role: dict[tuple[int, object], int] = {}
    available: dict[object, int] = {}
    for part, (room, _) in zip(demand.parts, rooms, strict=True):
        key = (part.role, room)
        in_role[key] = in_role.get(key, 0) + part.available
        available[room] = available.get(room, 0) + part.available
    most = dict(rooms)
    roles = [0] * len(demand.role_minimum)
    for (role, room), count in in_role.items():
        roles[role] += min(count, most[room])
    roles = [min(n, demand.maximum(role)) for role, n in enumerate(roles)]
    by_room = sum(min(count, most[room]) for room, count in available.items())
    placeable = min(sum(roles), by_room)
    return placeable >= demand.need >= sum(demand.role_minimum) and all(
        count >= minimum for count, minimum in zip(roles, demand.role_minimum, strict=True)
    )


def empty_fits(problem: Problem) -> Fits:
    """How many members of a shape fit on each node while no member is placed; counted once."""
    known: dict[int, Array] = {}

    def fits(shape: int) -> Array:
        if shape not in known:
            request, allowed = problem.requests[shape], problem.allowed[shape]
            known[shape] = fits_per_node(problem.free, request, allowed)
        return known[shape]

    return fits


def are_together(problem: Problem, demand: Demand, shares: Iterable[Share]) -> bool:
    """Whether these members of the demand keep its domain rules and are in segments."""
    shares = tuple(shares)
    for rule in demand.same_domain:
        domain = problem.domains[rule.level]
        used = {int(domain[share.node]) for share in shares if share.part in rule.parts}
        if len(used) > 1 or -1 in used or (used and rule.domain not in (None, *used)):
            return False
    return all(
        segments.are_whole(problem.domains[own.level], own, shares) for own in demand.segments
    )


def has_domains(problem: Problem) -> bool:
    """Whether members of any gang must be in one domain, or in segments."""
    return any(demand.names_levels for demand in problem.demands)


def without_domains(problem: Problem) -> Problem:
    """The same gangs without domain rules and segments."""
    demands = tuple(replace(demand, same_domain=(), segments=()) for demand in problem.demands)
    return replace(problem, demands=demands, domains=())
