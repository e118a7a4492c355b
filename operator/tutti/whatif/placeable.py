"""How many of the needed members fit, and what keeps the others out.

A gang with one shape is counted. For several shapes, and for members that must be in domains, a
strategy tries smaller and smaller numbers; best fit answers when the strategy's budget ends.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..filters.topology import Domains, path_of
from ..gang.domain_rules import covers, labels_of
from ..model.shapes import Shape
from ..planning.compile import capacity
from ..planning.compile.grids import Grid
from ..strategies.capacity import fits_per_node
from ..strategies.domains.segments import by_domain
from ..strategies.problem import (
    Demand,
    DemandLevel,
    Outcome,
    Part,
    Problem,
    SameDomain,
    Segments,
)
from .baseline import Baseline, Counts, Table
from .probes import Planner
from .results import Bottleneck, Certainty, Obstacle, Placeable, ShortShape

_Kind = tuple[Shape, tuple[bool, ...]]  # with whether each rule on domains covers the member


@dataclass(frozen=True, slots=True)
class _Parts:
    """The request in two parts: the members that roles need, and members of any role."""

    firm: tuple[Part, ...]  # of role 0
    spare: tuple[Part, ...]  # of role 1, or of a role that has a maximum
    maximums: tuple[int, ...]  # of the roles from 2 on: spare members that may start
    slack: int  # members that may be of any role
    levels: "_Levels"
    is_exact: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Levels:
    """The rules on domains that the parts of a request must keep."""

    domains: tuple[Domains, ...] = ()
    same_domain: tuple[SameDomain, ...] = ()
    segments: tuple[Segments, ...] = ()


def most(baseline: Baseline, grid: Grid, free: Table, planner: Planner) -> Placeable:
    """The most of the needed members that fit into this room together, under these rules.

    They are chosen so that the other members could still make the gang whole, role by role. With
    rules between pods nothing is proved: fewer members may find no place where more do.
    """
    problem = Problem(free.clip(0), grid.requests, grid.allowed, (), grid.rules)
    return _most(baseline, problem, planner, is_thorough=True)


def _most(
    baseline: Baseline, problem: Problem, planner: Planner, *, is_thorough: bool
) -> Placeable:
    bound = _reach(baseline, problem)
    is_counted = len(baseline.shapes) == 1 and not baseline.gang.required_levels
    if not bound or (is_counted and not problem.rules):
        return Placeable(bound, Certainty.of(proved=not baseline.is_ruled))
    parts = _parts(baseline)
    problem = replace(problem, domains=parts.levels.domains)
    fits, too_many, is_proved = 0, bound + 1, True
    while too_many - fits > 1:
        # Most often, as many fit as counting allows.
        number = bound if too_many > bound else (fits + too_many) // 2
        question = replace(problem, demands=(_demand(parts, number),))
        if _fits(question, planner) is True:
            fits = number
            continue
        answer = _proves(question, planner) if is_thorough else None
        if answer is True:
            fits = number
        else:
            too_many, is_proved = number, answer is False and parts.is_exact
    are_known = not (baseline.is_ruled or (baseline.is_started and baseline.gang.segments))
    return Placeable(fits, Certainty.of(proved=is_proved and are_known))


def _fits(problem: Problem, planner: Planner) -> bool:
    solution = planner.fallback.solve(problem, planner.budget)
    return bool(solution.shares and solution.shares[0])


def _proves(problem: Problem, planner: Planner) -> bool | None:
    """Whether the one demand can be met; None if the strategy does not know."""
    solution = planner.strategy.solve(problem, planner.budget)
    if solution.shares and solution.shares[0]:
        return True
    return False if solution.outcome is Outcome.PROVED else None


def _demand(parts: _Parts, number: int) -> Demand:
    """A demand for ``number`` members, with no more spare members than the roles leave."""
    firm = max(0, number - parts.slack)
    minimums = (firm, 0, *[0] * len(parts.maximums))
    maximums = (number, number, *parts.maximums) if parts.maximums else ()
    return Demand(
        number,
        parts.firm + parts.spare,
        minimums,
        level=DemandLevel(0),
        value=1,
        role_maximum=maximums,
        same_domain=parts.levels.same_domain,
        segments=parts.levels.segments,
    )


def _parts(baseline: Baseline) -> _Parts:
    """The oldest members that a role needs are firm; exact if they have one shape."""
    want, shapes = baseline.want, baseline.base.shapes
    minimums = dict(want.minimums)
    by_role: dict[str, list[_Kind]] = {}
    for member in want.members:
        covered = tuple(covers(rule, member.role) for rule in want.gang.required_levels)
        by_role.setdefault(member.role if minimums else "", []).append((member.shape, covered))
    places = dict(want.maximums)
    number_of = {role: number for number, role in enumerate(places, 2)}
    firm, spare = Counter[_Kind](), Counter[tuple[_Kind, int]]()
    is_exact = True
    for role, kinds in by_role.items():
        least = minimums.get(role, 0)
        firm.update(kinds[:least])
        spare.update((kind, number_of.get(role, 1)) for kind in kinds[least:])
        is_exact &= least in (0, len(kinds)) or len(set(kinds)) == 1
    return _Parts(
        tuple(Part(shapes[shape], 0, n) for (shape, _), n in firm.items()),
        tuple(Part(shapes[shape], number, n) for ((shape, _), number), n in spare.items()),
        tuple(n - minimums.get(role, 0) for role, n in places.items()),
        want.need - sum(minimums.values()),
        _levels(baseline, [*firm, *(kind for kind, _ in spare)]),
        is_exact,
    )


def _levels(baseline: Baseline, kinds: Sequence[_Kind]) -> _Levels:
    """The rules of the gang on domains, for parts of these kinds.

    A gang that runs keeps its domain. Where its segments would grow is left out.
    """
    base, gang = baseline.base, baseline.gang
    rules, levels = gang.required_levels, dict[tuple[str, ...], int]()
    same_domain, segments = list[SameDomain](), list[Segments]()
    for index, rule in enumerate(rules):
        labels = labels_of(rule.level, base.topologies)
        parts = tuple(part for part, (_, covered) in enumerate(kinds) if covered[index])
        if not (labels and parts):
            continue
        level = levels.setdefault(labels, len(levels))
        if index < len(gang.same_domain):
            shape, _ = kinds[parts[0]]
            domain = _domain_of(base, shape, labels) if baseline.is_started else None
            same_domain.append(SameDomain(level, parts, domain))
        elif not baseline.is_started:
            size = gang.segments[index - len(gang.same_domain)].size
            segments.append(Segments(level, parts, size))
    domains = tuple(base.domains.domains(labels) for labels in levels)
    return _Levels(domains, tuple(same_domain), tuple(segments))


def _domain_of(base: Grid, shape: Shape, labels: tuple[str, ...]) -> int | None:
    """The domain that the shape's node selector names; None if it names none that exists."""
    selector = dict(shape.node_selector)
    path = tuple(selector.get(label) for label in labels)
    rows = (row for row, node in enumerate(base.nodes) if path_of(node, labels) == path)
    row = next(rows, None)
    return None if row is None else int(base.domains.domains(labels)[row])


def _reach(baseline: Baseline, problem: Problem) -> int:
    """An upper bound by counting each shape by itself; exact for one shape without domains."""
    want = baseline.want
    base = replace(baseline.base, requests=problem.requests, allowed=problem.allowed)
    counts = replace(baseline, base=base).counts(problem.free)
    in_shape = Counter(member.shape for member in want.members)
    in_all = sum(min(n, counts[shape].members) for shape, n in in_shape.items())
    for rule in want.gang.same_domain:
        labels = labels_of(rule.level, base.topologies)
        if labels and not rule.roles:
            in_all = min(in_all, _in_one_domain(base, problem.free, in_shape, labels))
    in_both = Counter((member.role, member.shape) for member in want.members)
    firm = 0
    for role, least in want.minimums:
        reach = (min(n, counts[s].members) for (own, s), n in in_both.items() if own == role)
        firm += min(sum(reach), least)
    slack = want.need - sum(least for _, least in want.minimums)
    return min(want.need, in_all, firm + slack) if want.minimums else min(want.need, in_all)


def _in_one_domain(
    base: Grid, free: Table, in_shape: Mapping[Shape, int], labels: tuple[str, ...]
) -> int:
    """The most of these members that one domain has room for, each shape counted by itself."""
    domains, room = base.domains.domains(labels), np.zeros(1, dtype=np.int64)
    for shape, n in in_shape.items():
        row = base.shapes[shape]
        fits = fits_per_node(free, base.requests[row], base.allowed[row])
        room = room + np.minimum(by_domain(domains, fits), n)
    return int(room.max(initial=0))


def short_shape(baseline: Baseline, counts: Counts) -> ShortShape | None:
    """The shape that lacks most room; None if each shape has room by itself."""
    block = capacity.short(counts, baseline.want)
    if block is None:
        return None
    roles = {member.role for member in block.members} - {""}
    return ShortShape(block.requests, tuple(sorted(roles)), block.forced, block.room.members)


def bottlenecks(baseline: Baseline, beside: Placeable, planner: Planner) -> Sequence[Bottleneck]:
    """Each resource or rule that alone, if plentiful, would let more members in; best first."""
    base = baseline.planned
    free = baseline.free_after_plan.clip(0)
    helpful = []
    for column, name in enumerate(base.resources):
        requests = base.requests.copy()
        requests[:, column] = 0
        problem = Problem(free, requests, base.allowed, (), base.rules)
        admits = _most(baseline, problem, planner, is_thorough=False)
        if admits.members > beside.members:
            helpful.append(Bottleneck(Obstacle.RESOURCE, name, admits))
    if base.rules or not base.allowed.all():
        problem = Problem(free, base.requests, np.ones_like(base.allowed), ())
        admits = _most(baseline, problem, planner, is_thorough=False)
        if admits.members > beside.members:
            helpful.append(Bottleneck(Obstacle.RULES, _avoided_for(baseline), admits))
    return sorted(
        helpful,
        key=lambda bottleneck: (-bottleneck.admits.members, bottleneck.obstacle, bottleneck.name),
    )


def _avoided_for(baseline: Baseline) -> str:
    """The obstacle that keeps the gang's shapes off most nodes."""
    whys = Counter(
        why
        for shape in baseline.shapes
        for why in baseline.base.index.obstacles(shape)
        if why is not None
    )
    for shape in baseline.shapes:
        for outcome in baseline.inter_pod.outcomes(shape):
            allowed = baseline.inter_pod.nodes(shape)
            whys[outcome.description] += int(np.count_nonzero(allowed & ~outcome.allowed_now))
    return min(whys, key=lambda why: (-whys[why], why)).removeprefix("is ")
