"""From requests of gangs to a Problem: the demands of one round, their levels and their caps."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...filters.topology import Domains
from ...gang import domain_rules
from ...gang.demand import PlacementRequest
from ...model.cluster import Member
from ...model.decisions import Assignment
from ...model.inter_pod import DomainRule
from ...model.keys import Uid
from ...model.shapes import Shape
from ...queues.limits import QueueLimit
from ...strategies.capacity import least_use
from ...strategies.problem import Cap, Demand, DemandLevel, Part, Problem, SameDomain, Segments
from .grids import Grid
from .quotas import NO_QUOTAS, Quotas

NO_MINIMUM = (0,)  # for the only role of a gang without roles
NOBODY: Mapping[Uid, Assignment] = MappingProxyType({})


class ExceededLimit(NamedTuple):
    """A limit, and the least amount that a request would add to its use."""

    limit: QueueLimit
    wanted: int


def problem(
    base: Grid,
    free: NDArray[np.int64],
    wants: Sequence[PlacementRequest],
    worths: Sequence[int],
    quotas: Quotas = NO_QUOTAS,
    *,
    placed: Mapping[Uid, Assignment] = NOBODY,
) -> Problem:
    """The Problem of one round: these requests with these values, in the room that is free now.

    Members that are ``placed`` fix the domains of their gangs.
    """
    levels_used = _LevelNumbers(base, placed)
    return Problem(
        free=free,
        requests=base.requests,
        allowed=base.allowed,
        demands=tuple(
            replace(
                _demand(base, want, level, worth),
                same_domain=levels_used.rules(want),
                segments=levels_used.segments(want),
            )
            if want.gang.required_levels
            else _demand(base, want, level, worth)
            for want, level, worth in zip(wants, levels(wants), worths, strict=True)
        ),
        rules=base.rules,
        caps=(*_caps(base, wants), *(row.cap for row in quotas.caps(base, wants))),
        domains=levels_used.domains(),
    )


class _LevelNumbers:
    """The levels of domains that the gangs of a Problem name, numbered in order of appearance."""

    def __init__(self, base: Grid, placed: Mapping[Uid, Assignment]) -> None:
        self._base, self._placed = base, placed
        self._numbers: dict[tuple[str, ...], int] = {}

    def rules(self, want: PlacementRequest) -> tuple[SameDomain, ...]:
        """The rules on which members of the request must be in one domain.

        A gang that has started has none: its members have the domain as a node rule.
        """
        if any(member.counts_as_bound for member in want.gang.members):
            return ()
        rules = []
        for rule in want.gang.same_domain:
            labels, covered = self._labels(rule), _covered(want, rule)
            if covered and labels:
                fixed = self._fixed(want, rule, labels)
                rules.append(SameDomain(self._number(labels), covered, fixed))
        return tuple(rules)

    def segments(self, want: PlacementRequest) -> tuple[Segments, ...]:
        """The rules on segments; none for a gang that has started, as for ``rules``."""
        if any(member.counts_as_bound for member in want.gang.members):
            return ()
        rules = []
        for rule in want.gang.segments:
            labels, covered = self._labels(rule.of), _covered(want, rule.of)
            if covered and labels:
                rules.append(Segments(self._number(labels), covered, rule.size))
        return tuple(rules)

    def _labels(self, rule: DomainRule) -> tuple[str, ...]:
        return domain_rules.labels_of(rule.level, self._base.topologies)

    def _number(self, labels: tuple[str, ...]) -> int:
        return self._numbers.setdefault(labels, len(self._numbers))

    def _fixed(
        self, want: PlacementRequest, rule: DomainRule, labels: tuple[str, ...]
    ) -> int | None:
        """The domain of the gang's members that are already placed; None if none is placed."""
        own = {member.uid for member in want.members}
        for member in want.gang.members if self._placed else ():
            place = self._placed.get(member.uid) if member.uid not in own else None
            if place is not None and domain_rules.covers(rule, member.role):
                row = self._base.index.rows[place.node]
                return int(self._base.domains.domains(labels)[row])
        return None

    def domains(self) -> tuple[Domains, ...]:
        """[level][node]: the domains of the levels that were named."""
        return tuple(self._base.domains.domains(labels) for labels in self._numbers)


def exceeded(base: Grid, want: PlacementRequest, quotas: Quotas) -> Sequence[ExceededLimit]:
    """The limits that the request exceeds, whichever of its members start."""
    if (equal := quotas.exceeded_by_equal(want)) is not None:
        return [ExceededLimit(*exceeded) for exceeded in equal] if equal else ()
    if not quotas.may_exceed(want) or not (rows := [*quotas.caps(base, [want])]):
        return ()
    (level,) = levels([want])
    demand = _demand(base, want, level, 1)
    uses = [(row, least_use(demand, row.cap)) for row in rows]
    return [ExceededLimit(row.limit, use * row.unit) for row, use in uses if use > row.cap.room]


def levels(wants: Sequence[PlacementRequest]) -> Sequence[DemandLevel]:
    """The level of each request; equal levels are one object."""
    shared = dict[DemandLevel, DemandLevel]()
    own = (DemandLevel(want.gang.priority, want.is_starved) for want in wants)
    return [shared.setdefault(level, level) for level in own]


def _caps(base: Grid, wants: Sequence[PlacementRequest]) -> tuple[Cap, ...]:
    """The maximums of roles, as caps, for gangs whose members are requested one by one.

    The first request for a gang has the number of places for it and all later requests.
    """
    members = dict[tuple[Uid, str], list[int]]()
    places = dict[tuple[Uid, str], int]()
    for index, want in enumerate(wants):
        for role, n in () if want.minimums else want.maximums:
            key = (want.gang.uid, role)
            members.setdefault(key, []).append(index)
            places[key] = max(n, places.get(key, 0))
    ones = np.ones(len(base.shapes), dtype=np.int64)
    return tuple(Cap(frozenset(own), ones, places[key]) for key, own in members.items())


def _covered(want: PlacementRequest, rule: DomainRule) -> tuple[int, ...]:
    """The parts of the request whose members the rule covers."""
    groups = enumerate(parts(want))
    return tuple(i for i, group in groups if domain_rules.covers(rule, group[0].role))


def parts(want: PlacementRequest) -> tuple[tuple[Member, ...], ...]:
    """The members of the request by role and shape, in the order of the oldest member of each."""
    has_roles = want.minimums or want.gang.required_levels
    if not has_roles or len({member.role for member in want.members}) == 1:
        return want.alike
    groups = dict[tuple[str, Shape], list[Member]]()
    for member in want.members:
        groups.setdefault((member.role, member.shape), []).append(member)
    return tuple(tuple(group) for group in groups.values())


def _demand(base: Grid, want: PlacementRequest, level: DemandLevel, worth: int) -> Demand:
    minimums = want.minimums or (("", 0),)
    roles = {role: i for i, (role, _) in enumerate(minimums)}
    maximums = dict(want.maximums) if want.minimums else {}
    return Demand(
        need=want.need,
        parts=tuple(
            Part(
                shape=base.shapes[group[0].shape],
                role=roles[group[0].role] if want.minimums else 0,
                available=len(group),
            )
            for group in parts(want)
        ),
        role_minimum=tuple(least for _, least in want.minimums) or NO_MINIMUM,
        level=level,
        value=worth,
        role_maximum=tuple(maximums.get(role, want.need) for role in roles) if maximums else (),
    )
