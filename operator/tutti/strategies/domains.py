"""Gangs whose members must be in one domain: their regions, and problems without domains.

Best fit tries the domains of a gang one after another. The integer program does not know domains: a
gang becomes one alternative for each domain that it could start in. A cap allows no more of these
alternatives than there are gangs.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from .capacity import caps_by_demand, fits_per_node
from .problem import Cap, Demand, Problem, SameDomain, Share, Shares
from .shape_demand import Array, Flags

Fits = Callable[[int], Array]  # shape -> [node]: how many members fit
NO_DOMAIN = -2  # a level without any domain: no node is in it


@dataclass(frozen=True, slots=True)
class Region:
    """A domain for each rule of a gang, in which its members may be together."""

    domains: tuple[int, ...] = ()  # parallel to Demand.same_domain

    def nodes(self, problem: Problem, demand: Demand, part: int) -> Flags | None:
        """[node]: where members of the part may be; None if anywhere."""
        allowed: Flags | None = None
        for rule, domain in zip(demand.same_domain, self.domains, strict=True):
            if part in rule.parts:
                inside = problem.domains[rule.level] == domain
                allowed = inside if allowed is None else allowed & inside
        return allowed


def regions(problem: Problem, demand: Demand, fits: Fits) -> Iterator[Region]:
    """The regions that counting does not rule out for the demand, the tightest first.

    A demand without such rules has one region, which is everywhere. If no region is left, the
    demand provably cannot start.
    """
    chosen: dict[SameDomain, int] = {}
    # The widest level first: a narrow domain is then within the wide one.
    rules = sorted(demand.same_domain, key=lambda rule: int(problem.domains[rule.level].max()))
    for domains in _choices(problem, demand, fits, rules, chosen):
        region = Region(tuple(domains[rule] for rule in demand.same_domain))
        if could_start(demand, _rooms(problem, demand, fits, region)):
            yield region


def _choices(
    problem: Problem,
    demand: Demand,
    fits: Fits,
    rules: Sequence[SameDomain],
    chosen: Mapping[SameDomain, int],
) -> Iterator[Mapping[SameDomain, int]]:
    """All choices of a domain for each of the rules, added to the ``chosen`` domains."""
    if not rules:
        yield chosen
        return
    rule, domain = rules[0], problem.domains[rules[0].level]
    inside = domain >= 0
    holds, room = np.zeros((2, int(domain.max(initial=-1)) + 1), dtype=np.int64)
    for index in rule.parts:
        part = demand.parts[index]
        most = np.where(_inside(problem, chosen, index, inside), fits(part.shape), 0)[inside]
        sums = np.bincount(domain[inside], most, len(room)).astype(np.int64)
        holds += np.minimum(sums, part.available)
        room += sums
    uncovered = sum(p.available for i, p in enumerate(demand.parts) if i not in rule.parts)
    enough = np.flatnonzero(holds + uncovered >= demand.need)
    order = enough[np.lexsort((room[enough], -np.minimum(holds[enough], demand.need)))]
    numbers = order.tolist() if len(room) else [NO_DOMAIN]
    for number in numbers if rule.domain is None else [rule.domain]:
        yield from _choices(problem, demand, fits, rules[1:], {**chosen, rule: number})


def _inside(problem: Problem, chosen: Mapping[SameDomain, int], part: int, nodes: Flags) -> Flags:
    """The given nodes that are in all chosen domains of the part."""
    for rule, number in chosen.items():
        if part in rule.parts:
            nodes = nodes & (problem.domains[rule.level] == number)
    return nodes


def _rooms(
    problem: Problem, demand: Demand, fits: Fits, region: Region
) -> Sequence[tuple[object, int]]:
    """By part, which room it uses, and how many members of its shape that room holds."""
    known: dict[object, int] = {}
    rooms = []
    for index, part in enumerate(demand.parts):
        rules = zip(demand.same_domain, region.domains, strict=True)
        within = tuple((rule.level, n) for rule, n in rules if index in rule.parts)
        key = (part.shape, within)
        if key not in known:
            most, nodes = fits(part.shape), region.nodes(problem, demand, index)
            known[key] = int((most if nodes is None else most[nodes]).sum())
        rooms.append((key, known[key]))
    return rooms


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
    """Whether these members of the demand keep its domain rules."""
    shares = tuple(shares)
    for rule in demand.same_domain:
        domain = problem.domains[rule.level]
        used = {int(domain[share.node]) for share in shares if share.part in rule.parts}
        if len(used) > 1 or -1 in used or (used and rule.domain not in (None, *used)):
            return False
    return True


def has_domains(problem: Problem) -> bool:
    """Whether members of any gang must be in one domain."""
    return any(demand.same_domain for demand in problem.demands)


def without_domains(problem: Problem) -> Problem:
    """The same gangs without domain rules."""
    demands = tuple(replace(demand, same_domain=()) for demand in problem.demands)
    return replace(problem, demands=demands, domains=())


@dataclass(frozen=True, slots=True, eq=False)
class Alternatives:
    """A problem without domains, with one demand per gang and region that it could start in."""

    problem: Problem
    regions: tuple[Region, ...]  # parallel to the problem's demands
    gangs: tuple[tuple[int, ...], ...]  # parallel: demands that each may stand for
    demands: tuple[Demand, ...]  # of the problem with domains
    domains: tuple[Array, ...]

    @classmethod
    def of(cls, problem: Problem, candidates: Iterable[int], most: int) -> "Alternatives | None":
        """The alternatives of these demands; None if there are more than ``most`` kinds of them.

        Equal gangs share their alternatives: each region has as many as could start there.
        """
        builder = _Builder(problem)
        fits, kinds = empty_fits(problem), 0
        for indices in _types(problem, candidates):
            demand = problem.demands[indices[0]]
            own_regions = list(islice(regions(problem, demand, fits), most - kinds + 1))
            kinds += len(own_regions) if demand.same_domain else 0
            if kinds > most:
                return None
            builder.add(indices, own_regions, fits)
        return builder.built()

    @classmethod
    def one_by_one(cls, problem: Problem, demand: int) -> "Iterator[Alternatives]":
        """One problem for each region of one demand, the tightest first."""
        fits = empty_fits(problem)
        for region in regions(problem, problem.demands[demand], fits):
            builder = _Builder(problem)
            builder.add([demand], [region], fits)
            yield builder.built()

    def with_domains(self, shares: Shares) -> Shares:
        """The shares for the problem with domains; of equal gangs the first ones start."""
        answer: list[tuple[Share, ...]] = [()] * len(self.demands)
        for own, gangs in zip(shares, self.gangs, strict=True):
            if own:
                answer[next(i for i in gangs if not answer[i])] = own
        return tuple(answer)

    def without(self, shares: Shares) -> Shares:
        """The shares for the alternatives, from shares for the problem with domains."""
        answer: list[tuple[Share, ...]] = [()] * len(self.regions)
        for index, own in enumerate(shares):
            fitting = (
                i
                for i, gangs in enumerate(self.gangs)
                if own and not answer[i] and index in gangs and self._is_in(index, own, i)
            )
            if (first := next(fitting, None)) is not None:
                answer[first] = own
        return tuple(answer)

    def _is_in(self, index: int, shares: Sequence[Share], alternative: int) -> bool:
        """Whether the members of a gang are in the region of an alternative."""
        rules = self.demands[index].same_domain
        return all(
            self.domains[rule.level][share.node] == domain
            for rule, domain in zip(rules, self.regions[alternative].domains, strict=True)
            for share in shares
            if share.part in rule.parts
        )


class _Builder:
    """Builds alternatives; a shape that may run only in one region becomes a shape of its own."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._shapes: dict[tuple[int, bytes], int] = {}
        self._origins = list(range(len(problem.requests)))  # [shape]: the copied shape
        self._allowed = list(problem.allowed)
        self._demands: list[Demand] = []
        self._regions: list[Region] = []
        self._gangs: list[tuple[int, ...]] = []
        self._choices: list[tuple[frozenset[int], int]] = []  # alternatives, most members

    def add(self, indices: Sequence[int], own_regions: Sequence[Region], fits: Fits) -> None:
        """Add equal gangs: for each of these regions, as many alternatives as have room there."""
        problem, first = self._problem, len(self._demands)
        demand = problem.demands[indices[0]]
        for region in own_regions:
            masks = [region.nodes(problem, demand, i) for i in range(len(demand.parts))]
            parts = tuple(
                part if nodes is None else replace(part, shape=self._shape(part.shape, nodes))
                for part, nodes in zip(demand.parts, masks, strict=True)
            )
            rooms = dict(_rooms(problem, demand, fits, region))
            most = min(len(indices), max(1, sum(rooms.values()) // demand.need))
            alternative = replace(demand, parts=parts, same_domain=())
            self._demands += [alternative] * most
            self._regions += [region] * most
            self._gangs += [tuple(indices)] * most
        own = frozenset(range(first, len(self._demands)))
        if len(own) > len(indices):
            self._choices.append((own, demand.need * len(indices)))

    def _shape(self, shape: int, nodes: Flags) -> int:
        """The copy of the shape that may run only on these nodes."""
        key = (shape, nodes.tobytes())
        if key not in self._shapes:
            self._shapes[key] = len(self._origins)
            self._origins.append(shape)
            self._allowed.append(self._problem.allowed[shape] & nodes)
        return self._shapes[key]

    def built(self) -> Alternatives:
        """The alternatives as one problem; the caps count each alternative like its gang."""
        problem, ones = self._problem, np.ones(len(self._origins), dtype=np.int64)
        caps = [
            replace(
                cap,
                demands=frozenset(
                    i for i, gangs in enumerate(self._gangs) if gangs[0] in cap.demands
                ),
                amount=cap.amount[self._origins],
            )
            for cap in problem.caps
        ]
        caps += [Cap(own, ones, members) for own, members in self._choices]
        plain = Problem(
            free=problem.free,
            requests=problem.requests[self._origins],
            allowed=np.array(self._allowed).reshape(len(self._origins), len(problem.free)),
            demands=tuple(self._demands),
            caps=tuple(caps),
        )
        return Alternatives(
            plain, tuple(self._regions), tuple(self._gangs), problem.demands, problem.domains
        )


def _types(problem: Problem, candidates: Iterable[int]) -> Iterable[Sequence[int]]:
    """The candidates by type: equal in all but their order, and counted by the same caps."""
    types: dict[tuple[Demand, Sequence[int]], list[int]] = {}
    caps = caps_by_demand(problem)
    for index in candidates:
        key = (problem.demands[index], tuple(caps.get(index, ())))
        types.setdefault(key, []).append(index)
    return types.values()
