"""The question that the oracle answers, in words of its own: who asks for what, and where."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tutti.strategies.problem import Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tutti.strategies.problem import Cap, Demand, DemandLevel, Problem

Worth = tuple[tuple[int, int], ...]  # (level, value admitted), highest level first


@dataclass(frozen=True, slots=True)
class Company:
    """Some pods by where they are: those that have a node, and the kinds that join them."""

    place: tuple[int, ...]  # of each node; below zero: none
    there: tuple[int, ...]  # by place


@dataclass(frozen=True, slots=True)
class Bond:
    """Someone else has to be in the place, of each company; or nobody at all anywhere."""

    companies: tuple[int, ...]
    or_alone: bool


@dataclass(frozen=True, slots=True)
class Balance:
    """In the own place at most so many more than in any other, itself left out there."""

    company: int
    most: int
    against_nobody: bool  # instead of the emptiest place


@dataclass(frozen=True, slots=True)
class Kind:
    """So many pods that are alike: what each takes, where it may run, and beside whom."""

    takes: tuple[int, ...]
    where: frozenset[int]
    role: int
    count: int
    joins: frozenset[int] = frozenset()  # companies
    shuns: frozenset[int] = frozenset()  # companies of which no newcomer may share its place
    bonds: tuple[Bond, ...] = ()
    balances: tuple[Balance, ...] = ()


@dataclass(frozen=True, slots=True)
class Together:
    """All pods of these kinds are in one place, and none is outside of every place."""

    place: tuple[int, ...]  # of each node; below zero: none
    kinds: frozenset[int]  # by their number in the gang


@dataclass(frozen=True, slots=True)
class Divided:
    """All pods of these kinds are in groups of ``size``, one perhaps smaller, each in one place."""

    place: tuple[int, ...]  # of each node; below zero: none, and no pod may be there
    kinds: frozenset[int]  # by their number in the gang
    size: int


@dataclass(frozen=True, slots=True)
class Ask:
    """A gang: ``need`` pods of these kinds, so many of each role among them, or none."""

    need: int
    kinds: tuple[Kind, ...]
    least: tuple[int, ...]  # by role
    level: int
    value: int
    most: int | None = None  # pods, if more than needed may start with them
    most_of_role: tuple[int, ...] = ()  # pods by role; none: as many as there are
    together: tuple[Together, ...] = ()
    divided: tuple[Divided, ...] = ()


@dataclass(frozen=True, slots=True)
class Limit:
    """No more than ``most`` of something is used by all gangs together."""

    uses: tuple[tuple[int, ...], ...]  # [ask][kind]: what one pod uses of it
    most: int


@dataclass(frozen=True, slots=True)
class Case:
    """The room of each node by resource, and the gangs that want it."""

    rooms: tuple[tuple[int, ...], ...]
    asks: tuple[Ask, ...]
    companies: tuple[Company, ...] = ()
    limits: tuple[Limit, ...] = ()
    promised: tuple[tuple[Kind, int], ...] = ()  # on a node, among those there; bonds must last

    @property
    def levels(self) -> Sequence[int]:
        """The priorities, highest first."""
        return sorted({ask.level for ask in self.asks}, reverse=True)


def by_number(values: Iterable[tuple[DemandLevel, int]]) -> list[tuple[int, int]]:
    """The same with the oracle's number of each level: its priority, as nobody starves here."""
    return [(level.priority, value) for level, value in values]


def case_of(problem: Problem) -> Case:
    """What a Problem means."""
    return Case(
        rooms=tuple(tuple(row) for row in problem.free.tolist()),
        asks=tuple(_ask(problem, demand) for demand in problem.demands),
        companies=tuple(
            Company(tuple(domain_count.domain.tolist()), tuple(domain_count.there.tolist()))
            for domain_count in problem.rules.domain_counts
        ),
        limits=tuple(_limit(problem, cap) for cap in problem.caps),
        promised=tuple(_promised(problem, *spot) for spot in problem.rules.reserved),
    )


def _limit(problem: Problem, cap: Cap) -> Limit:
    """What runs already stays: it is never more that must go, and new pods get what is left."""
    amounts = cap.amount.tolist()
    uses = tuple(
        tuple(amounts[part.shape] if number in cap.demands else 0 for part in demand.parts)
        for number, demand in enumerate(problem.demands)
    )
    left = cap.limit - cap.in_use
    return Limit(uses, max(0, left))


def _promised(problem: Problem, shape: int, node: int) -> tuple[Kind, int]:
    """One who has a node already: whom it shuns is kept away from there."""
    return replace(_kind(problem, Part(shape, 0, 1)), shuns=frozenset()), node


def _ask(problem: Problem, demand: Demand) -> Ask:
    kinds = tuple(_kind(problem, part) for part in demand.parts)
    return Ask(
        need=demand.need,
        kinds=kinds,
        least=demand.role_minimum,
        level=demand.level.priority,  # nobody starves: that is another promise
        value=demand.value,
        most_of_role=demand.role_maximum,
        together=tuple(
            Together(tuple(problem.domains[rule.level].tolist()), frozenset(rule.parts))
            for rule in demand.same_domain
        ),
        divided=tuple(
            Divided(tuple(problem.domains[rule.level].tolist()), frozenset(rule.parts), rule.size)
            for rule in demand.segments
        ),
    )


def _kind(problem: Problem, part: Part) -> Kind:
    rules, shape = problem.rules, part.shape
    return Kind(
        takes=tuple(problem.requests[shape].tolist()),
        where=frozenset(node for node, may in enumerate(problem.allowed[shape].tolist()) if may),
        role=part.role,
        count=part.available,
        joins=frozenset(
            i for i, domain_count in enumerate(rules.domain_counts) if domain_count.counted[shape]
        ),
        shuns=frozenset(rule.domain_count for rule in rules.anti_affinity if rule.shape == shape),
        bonds=tuple(
            Bond(rule.domain_counts, rule.may_be_first)
            for rule in rules.affinity
            if rule.shape == shape
        ),
        balances=tuple(
            Balance(rule.domain_count, rule.max_skew, rule.from_zero)
            for rule in rules.spread
            if rule.shape == shape
        ),
    )
