"""Gangs whose members must be in one domain: the regions in which a gang could start."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..capacity import fits_per_node
from ..problem import Demand, Problem, SameDomain, Segments, Share
from ..shape_demand import Array, Flags
from . import segments

Fits = Callable[[int], Array]  # shape -> [node]: how many members fit
NO_DOMAIN = -2  # a level without any domain: no node is in it


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
        if could_start(demand, _rooms_by_part(problem, demand, fits, region)):
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


def rooms(problem: Problem, demand: Demand, fits: Fits, region: Region) -> Mapping[object, int]:
    """By room that parts share: how many members of its shape it holds, segments aside."""
    plain = replace(demand, segments=())
    return dict(_rooms_by_part(problem, plain, fits, region))


def _rooms_by_part(
    problem: Problem, demand: Demand, fits: Fits, region: Region
) -> Sequence[tuple[object, int]]:
    """By part, which room it uses, and how many members of its shape that room holds."""
    known: dict[object, int] = {}
    by_part = []
    for index, part in enumerate(demand.parts):
        rules = zip(demand.same_domain, region.domains, strict=True)
        within = tuple((rule.level, n) for rule, n in rules if index in rule.parts)
        own = next((own for own in demand.segments if index in own.parts), None)
        key = (part.shape, within, own)
        if key not in known:
            most, nodes = fits(part.shape), region.nodes(problem, demand, index)
            inside = most if nodes is None else np.where(nodes, most, 0)
            known[key] = int(inside.sum())
            if own is not None and _is_alike(demand, own):
                totals = segments.by_domain(problem.domains[own.level], inside)
                known[key] = segments.most_members(totals, own.size)
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
