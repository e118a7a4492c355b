"""Segments for an integer program: a copy of each part for each domain, and how they are linked.

A member of a copy is in the domain of the copy. So the number of members in a domain is a sum of
copies, and the program says of what segments it is made.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from ..problem import Demand, Problem, Segments, Share, Shares
from ..shape_demand import Array, Flags
from .regions import Fits, empty_fits
from .segments import by_domain


@dataclass(frozen=True, slots=True)
class DomainParts:
    """The copies of parts in one domain."""

    parts: tuple[int, ...]  # indices into Demand.parts of the demand with copies
    most_whole: int  # whole segments that the domain could have, by counting
    shape: int | None  # of all these copies; None if they have several
    room: int  # members of this shape that the domain could have, of all gangs


@dataclass(frozen=True, slots=True)
class LinkedCopies:
    """The copies for one rule on segments of a demand.

    ``short`` is the size of the short segment, and 0 if there is none; None if it depends on which
    members start.
    """

    size: int
    short: int | None
    domains: tuple[DomainParts, ...]


@dataclass(frozen=True, slots=True)
class DemandCopies:
    """A demand with copies of its parts."""

    demand: Demand
    origins: tuple[int, ...]  # by part: the part of the original demand
    domains: tuple[int, ...]  # by part: its domain; -1 for a part without segments
    linked: tuple[LinkedCopies, ...]


NO_COPIES: Mapping[int, DemandCopies] = MappingProxyType({})


class SegmentCopies:
    """A problem without segments, in which demands have copies of parts, by domain."""

    def __init__(self, problem: Problem, candidates: Iterable[int]) -> None:
        self._original = problem
        self._copied: dict[tuple[int, int, int], int] = {}  # shape, level, domain -> shape
        self._origins = list(range(len(problem.requests)))
        self._allowed = list(problem.allowed)
        # One shape for each kind of interchangeable members: nodes can be filled in fewer ways.
        self._alike: dict[tuple[bytes, bytes, tuple[int, ...]], int] = {}
        self.by_demand: Mapping[int, DemandCopies] = NO_COPIES
        self.problem = problem
        if in_segments := [i for i in candidates if problem.demands[i].segments]:
            for shape, allowed in enumerate(problem.allowed):
                self._alike.setdefault(self._mark(shape, allowed), shape)
            fits = empty_fits(problem)
            self.by_demand = {i: self._copies(problem.demands[i], fits) for i in in_segments}
            self.problem = self._built()

    def with_copies(self, shares: Shares) -> Shares:
        """The shares for the problem with copies."""
        answer = list(shares)
        for index, copies in self.by_demand.items():
            of_part = {
                part: self._original.domains[own.level]
                for own in self._original.demands[index].segments
                for part in own.parts
            }
            copy_of = {
                key: copy
                for copy, key in enumerate(zip(copies.origins, copies.domains, strict=True))
            }
            answer[index] = tuple(
                replace(share, part=copy_of[share.part, _domain(of_part.get(share.part), share)])
                for share in shares[index]
            )
        return tuple(answer)

    def without_copies(self, shares: Shares) -> Shares:
        """The shares for the problem with segments."""
        answer = list(shares)
        for index, copies in self.by_demand.items():
            answer[index] = tuple(
                replace(share, part=copies.origins[share.part]) for share in shares[index]
            )
        return tuple(answer)

    def _copies(self, demand: Demand, fits: Fits) -> DemandCopies:
        """The demand with its copies; a domain without room for any member has none."""
        covered = {part for own in demand.segments for part in own.parts}
        parts = [part for index, part in enumerate(demand.parts) if index not in covered]
        origins = [index for index in range(len(demand.parts)) if index not in covered]
        domains, linked = [-1] * len(parts), list[LinkedCopies]()
        for own in demand.segments:
            in_domains = []
            for domain, part_rooms in _room_by_domain(self._original, demand, own, fits).items():
                first = len(parts)
                for index in part_rooms:
                    part = demand.parts[index]
                    parts.append(replace(part, shape=self._shape(part.shape, own.level, domain)))
                    origins.append(index)
                    domains.append(domain)
                copies = tuple(range(first, len(parts)))
                most = sum(min(demand.parts[i].available, n) for i, n in part_rooms.items())
                shapes = {parts[copy].shape for copy in copies}
                shape = shapes.pop() if len(shapes) == 1 else None
                room = max(part_rooms.values())
                in_domains.append(DomainParts(copies, most // own.size, shape, room))
            is_whole_gang = len(own.parts) == len(demand.parts)
            short = demand.need % own.size if is_whole_gang else None
            linked.append(LinkedCopies(own.size, short, tuple(in_domains)))
        return DemandCopies(
            replace(demand, parts=tuple(parts), segments=()),
            tuple(origins),
            tuple(domains),
            tuple(linked),
        )

    def _shape(self, shape: int, level: int, domain: int) -> int:
        """The copy of the shape that may run only in this domain, or a shape like it."""
        key = (shape, level, domain)
        if key not in self._copied:
            inside = self._original.domains[level] == domain
            allowed = self._original.allowed[shape] & inside
            new = len(self._origins)
            self._copied[key] = self._alike.setdefault(self._mark(shape, allowed), new)
            if self._copied[key] == new:
                self._origins.append(shape)
                self._allowed.append(allowed)
        return self._copied[key]

    def _mark(self, shape: int, allowed: Flags) -> tuple[bytes, bytes, tuple[int, ...]]:
        """What is equal for members that are interchangeable: requests, nodes, use of caps."""
        problem = self._original
        amounts = tuple(int(cap.amount[shape]) for cap in problem.caps)
        return problem.requests[shape].tobytes(), allowed.tobytes(), amounts

    def _built(self) -> Problem:
        problem = self._original
        demands = list(problem.demands)
        for index, copies in self.by_demand.items():
            demands[index] = copies.demand
        caps = tuple(replace(cap, amount=cap.amount[self._origins]) for cap in problem.caps)
        return replace(
            problem,
            requests=problem.requests[self._origins],
            allowed=np.array(self._allowed),
            demands=tuple(demands),
            caps=caps,
        )


def _domain(domains: Array | None, share: Share) -> int:
    """The domain of a share in segments; -1 for other shares."""
    return -1 if domains is None else int(domains[share.node])


def copies_of(problem: Problem, demand: Demand, fits: Fits) -> int:
    """How many copies of its parts the demand has in a program."""
    return sum(
        len(part_rooms)
        for own in demand.segments
        for part_rooms in _room_by_domain(problem, demand, own, fits).values()
    )


def _room_by_domain(
    problem: Problem, demand: Demand, own: Segments, fits: Fits
) -> Mapping[int, Mapping[int, int]]:
    """By domain and part of the segments: for how many members there is room, if for any."""
    rooms: dict[int, dict[int, int]] = {}
    for index in own.parts:
        totals = by_domain(problem.domains[own.level], fits(demand.parts[index].shape))
        for domain in np.flatnonzero(totals).tolist():
            rooms.setdefault(domain, {})[index] = int(totals[domain])
    return rooms
