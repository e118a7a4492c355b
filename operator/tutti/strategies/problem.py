"""The numbers that strategies see, and the protocol that all strategies have.

There are no names, labels or clocks: a Problem is a Snapshot reduced to arrays, and a Solution is
counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Part:
    """Interchangeable members of one gang: ``available`` pods of one shape in one role."""

    shape: int  # index into Problem.requests
    role: int  # index into Demand.role_minimum
    available: int


class DemandLevel(NamedTuple):
    """A priority, or the starved gang of a priority, which comes before its other gangs."""

    priority: int
    is_starved: bool = False


@dataclass(frozen=True, slots=True)
class SameDomain:
    """All members of these parts get nodes in one domain of a level, whichever domain it is.

    A node whose domain is -1 is in no domain, and none of these members may go there.
    """

    level: int  # index into Problem.domains
    parts: tuple[int, ...]  # indices into Demand.parts
    domain: int | None = None  # the required domain; None if any will do


@dataclass(frozen=True, slots=True)
class Segments:
    """The members of these parts are divided into segments, each in one domain of a level.

    All segments have ``size`` members; one may have fewer. So the number of these members in a
    domain is a multiple of ``size``, in all domains but one. None of them may go to a node whose
    domain is -1.
    """

    level: int  # index into Problem.domains
    parts: tuple[int, ...]  # indices into Demand.parts
    size: int  # positive


@dataclass(frozen=True, slots=True)
class Demand:
    """A gang as numbers: choose exactly ``need`` members from its parts, or none at all.

    At least ``role_minimum[r]`` and at most ``role_maximum[r]`` members come from role r. A gang
    without roles has one role with minimum 0. If ``role_maximum`` is empty, no role has a maximum.
    Every rule of ``same_domain`` and ``segments`` holds for the members that are chosen. No part is
    in two rules of ``segments``.
    """

    need: int
    parts: tuple[Part, ...]
    role_minimum: tuple[int, ...]
    level: DemandLevel  # larger comes first
    value: int  # value of admitting it within its level; positive
    role_maximum: tuple[int, ...] = ()
    same_domain: tuple[SameDomain, ...] = ()
    segments: tuple[Segments, ...] = ()

    @property
    def names_levels(self) -> bool:
        """Whether its members may not be on just any nodes together, because of domains."""
        return bool(self.same_domain or self.segments)

    def maximum(self, role: int) -> int:
        """The most members of a role that may start."""
        return min(self.need, self.role_maximum[role]) if self.role_maximum else self.need


@dataclass(frozen=True, slots=True, eq=False)
class Cap:
    """A limit on what some demands use together of one resource: one row of a program.

    The sum of ``amount[shape]`` over all placed members of these demands is at most ``room``.
    Running members already count in ``in_use``. If ``in_use`` is at the limit or above it, only
    members without an amount are placed.
    """

    demands: frozenset[int]  # indices into Problem.demands
    amount: NDArray[np.int64]  # [shape]: what one member uses; not negative
    limit: int
    in_use: int = 0

    @property
    def room(self) -> int:
        """The amount that is left; never negative, so no cap makes a Problem infeasible."""
        return max(self.limit - self.in_use, 0)


class Placed(NamedTuple):
    """A shape that has members on a node; their number does not matter."""

    shape: int
    node: int


@dataclass(frozen=True, slots=True, eq=False)
class DomainCount:
    """The members and pods that one selector counts, by domain of one topology.

    A node whose domain is -1 is in no domain, and pods on it are not counted.
    """

    domain: NDArray[np.intp]  # [node]: its domain, or -1
    counted: NDArray[np.bool_]  # [shape]: whether its members count
    there: NDArray[np.int64]  # [domain]: pods that count and have a node already


@dataclass(frozen=True, slots=True)
class AntiAffinity:
    """Members of the shape share no domain with any other counted member.

    This is required anti-affinity. It binds both sides: no counted member may join them later
    either. On nodes without a domain it always holds. ``Problem.allowed`` keeps members off pods
    that have a node already; the rule does not use ``DomainCount.there``.
    """

    shape: int
    domain_count: int  # index into Rules.domain_counts


@dataclass(frozen=True, slots=True)
class Affinity:
    """Members of the shape have another counted pod in their domain, for each of the counts.

    This is required affinity: there is one count per term, and all count the same members. The rule
    forbids nodes without a domain. If ``may_be_first``, the shape counts itself, and a member may
    also go to an empty domain as long as no other member or pod is counted in any domain.
    """

    shape: int
    domain_counts: tuple[int, ...]  # indices into Rules.domain_counts
    may_be_first: bool


@dataclass(frozen=True, slots=True)
class EvenSpread:
    """The domain of a member counts at most ``max_skew`` more pods than any other domain.

    This is topology spread (DoNotSchedule). The domain's count includes the member, if the rule
    counts it; the count of the emptiest domain leaves the member out. Every domain is compared,
    including domains where members may not go. With ``from_zero``, there are fewer domains than
    ``minDomains``, so the least count is 0. The rule forbids nodes without a domain.
    """

    shape: int
    domain_count: int
    max_skew: int
    from_zero: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """The rules between members, which must hold once every member has its node.

    Each member is judged as if it came last. Source: the filters InterPodAffinity and
    PodTopologySpread of kube-scheduler.

    ``reserved`` are members that have a node by an earlier decision and are not bound yet. Their
    affinity and spread hold now, and must hold in the end. ``DomainCount.there`` counts them like
    all pods that have a node.
    """

    domain_counts: tuple[DomainCount, ...] = ()
    anti_affinity: tuple[AntiAffinity, ...] = ()
    affinity: tuple[Affinity, ...] = ()
    spread: tuple[EvenSpread, ...] = ()
    reserved: tuple[Placed, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is any rule."""
        return bool(self.anti_affinity or self.affinity or self.spread)


NO_RULES = Rules()


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Free room, shapes and demands; demands come in the order in which they are considered."""

    free: NDArray[np.int64]  # [node, resource]; may be negative if overcommitted
    requests: NDArray[np.int64]  # [shape, resource]
    allowed: NDArray[np.bool_]  # [shape, node]: whether it may run there, room aside
    demands: tuple[Demand, ...]
    rules: Rules = NO_RULES
    caps: tuple[Cap, ...] = ()
    domains: tuple[NDArray[np.intp], ...] = ()  # [level][node]: its domain, or -1


@dataclass(frozen=True, slots=True)
class Budget:
    """The effort that a strategy may spend: the solver's own work; the clock is a safety net."""

    nodes: int = 500  # branch-and-bound nodes per priority level; more rarely find better plans
    seconds: float = 30.0  # wall time of the whole search


class Outcome(StrEnum):
    """Whether a solution is proved to be the best one."""

    PROVED = "proved"
    HEURISTIC = "heuristic"
    BUDGET_EXHAUSTED = "budget exhausted"
    FAILED = "failed"  # no answer: the engine is missing or broke


@dataclass(frozen=True, slots=True)
class Share:
    """A number of members of one part of a demand on one node."""

    part: int
    node: int
    count: int


Shares = tuple[tuple[Share, ...], ...]  # parallel to Problem.demands


@dataclass(frozen=True, slots=True)
class Solution:
    """Shares per demand; an empty tuple is a demand that is not admitted."""

    outcome: Outcome
    shares: Shares
    detail: str = ""  # for FAILED and BUDGET_EXHAUSTED: what happened, in one sentence
    # (level, upper bound of its value), for the levels with a known bound
    bounds: tuple[tuple[DemandLevel, int], ...] = ()


class Strategy(Protocol):
    """A way to get from a Problem to a Solution."""

    @property
    def name(self) -> str:
        """The name by which settings choose the strategy."""

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Answer with whole demands only, never over ``free`` or a cap, only where ``allowed``.

        The rules between members and the domain rules hold in the answer.
        """


def admitted_value(problem: Problem, solution: Solution) -> Sequence[tuple[DemandLevel, int]]:
    """The value admitted per level, highest level first; solutions are compared by it."""
    values = {demand.level: 0 for demand in problem.demands}
    for demand, shares in zip(problem.demands, solution.shares, strict=True):
        values[demand.level] += demand.value if shares else 0
    return sorted(values.items(), reverse=True)
