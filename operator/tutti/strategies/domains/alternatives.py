"""Problems without domains: a gang becomes one alternative for each region that it could start in.

A cap allows no more of these alternatives than there are gangs. Segments stay rules of the gangs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from ..capacity import caps_by_demand
from ..problem import Cap, Demand, Problem, Share, Shares
from ..shape_demand import Array, Flags
from ..work import Work
from .regions import Fits, Region, empty_fits, region_work, regions, rooms
from .segment_copies import copies_of


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
        """The alternatives of these demands; None if there may be more than ``most`` kinds of them.

        Equal gangs share their alternatives: each region has as many as could start there. A gang
        with segments counts once for each domain that could have segments of it.
        """
        builder = _Builder(problem)
        fits, kinds = empty_fits(problem), 0
        for indices in _types(problem, candidates):
            demand = problem.demands[indices[0]]
            work = region_work(problem, demand)
            own_regions = list(islice(regions(problem, demand, fits, work), most - kinds + 1))
            kinds += len(own_regions) if demand.same_domain else 0
            kinds += len(own_regions) * len(indices) * copies_of(problem, demand, fits)
            if kinds > most or work.is_over:
                return None
            builder.add(indices, own_regions, fits)
        return builder.built()

    @classmethod
    def one_by_one(cls, problem: Problem, demand: int, work: Work) -> "Iterator[Alternatives]":
        """One problem for each region of one demand, the tightest first, until the work is over."""
        fits = empty_fits(problem)
        for region in regions(problem, problem.demands[demand], fits, work):
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
            room = rooms(problem, demand, fits, region)
            most = min(len(indices), max(1, sum(room.values()) // demand.need))
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
            domains=problem.domains,
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
