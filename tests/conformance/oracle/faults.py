"""What a Solution breaks of what its protocol promises, counted in plain Python."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .breaches import broken_rules
from .case import case_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.strategies.problem import Problem, Share, Solution

    from .case import Ask, Case, Worth


def faults(problem: Problem, solution: Solution) -> list[str]:
    """One sentence for each broken promise: whole, allowed, and never over what is free."""
    return list(_faults(case_of(problem), solution))


def worth(problem: Problem, solution: Solution) -> Worth:
    """The value admitted on each level, highest level first."""
    case = case_of(problem)
    pairs = list(zip(case.asks, solution.shares, strict=True))
    return tuple(
        (level, sum(ask.value for ask, shares in pairs if shares and ask.level == level))
        for level in case.levels
    )


def _faults(case: Case, solution: Solution) -> Iterator[str]:
    if len(solution.shares) != len(case.asks):
        yield f"{len(solution.shares)} answers to {len(case.asks)} demands"
        return
    taken = Counter[tuple[int, int]]()
    for number, (ask, shares) in enumerate(zip(case.asks, solution.shares, strict=True)):
        for fault in _of_one(ask, shares):
            yield f"demand {number}: {fault}"
        for share in shares:
            for resource, amount in enumerate(ask.kinds[share.part].takes):
                taken[share.node, resource] += amount * share.count
    for (node, resource), amount in sorted(taken.items()):
        room = case.rooms[node][resource]
        if amount > max(room, 0):
            yield f"node {node}: {amount} of resource {resource} taken, {room} free"
    for number, limit in enumerate(case.limits):
        used = sum(
            uses[share.part] * share.count
            for uses, shares in zip(limit.uses, solution.shares, strict=True)
            for share in shares
        )
        if used > limit.most:
            yield f"cap {number}: {used} used, {limit.most} allowed"
    yield from broken_rules(case, solution)


def _of_one(ask: Ask, shares: tuple[Share, ...]) -> Iterator[str]:
    for share in shares:
        if share.count <= 0:
            yield f"a share of {share.count}"
        if share.node not in ask.kinds[share.part].where:
            yield f"part {share.part} may not run on node {share.node}"
    if len({(share.part, share.node) for share in shares}) < len(shares):
        yield "two shares of one part on one node"
    if shares:
        yield from _not_whole(ask, shares)
    for rule in ask.together:
        places = {rule.place[share.node] for share in shares if share.part in rule.kinds}
        if len(places) > 1 or any(place < 0 for place in places):
            yield f"kinds {sorted(rule.kinds)} in places {sorted(places)}"
    yield from _not_divided(ask, shares)


def _not_divided(ask: Ask, shares: tuple[Share, ...]) -> Iterator[str]:
    for divided in ask.divided:
        pods = Counter[int]()
        for share in shares:
            if share.part in divided.kinds:
                pods[divided.place[share.node]] += share.count
        if any(place < 0 for place in pods):
            yield f"kinds {sorted(divided.kinds)} outside of every place"
        left_over = {place: n for place, n in pods.items() if n != n // divided.size * divided.size}
        if len(left_over) > 1:
            yield f"no groups of {divided.size} and a smaller one: {sorted(pods.items())}"


def _not_whole(ask: Ask, shares: tuple[Share, ...]) -> Iterator[str]:
    chosen, roles = Counter[int](), Counter[int]()
    for share in shares:
        chosen[share.part] += share.count
        roles[ask.kinds[share.part].role] += share.count
    if chosen.total() != ask.need:
        yield f"{chosen.total()} of {ask.need} members"
    for part, count in chosen.items():
        if count > ask.kinds[part].count:
            yield f"{count} of {ask.kinds[part].count} members of part {part}"
    for role, least in enumerate(ask.least):
        if roles[role] < least:
            yield f"{roles[role]} of {least} members of role {role}"
    for role, most in enumerate(ask.most_of_role):
        if roles[role] > most:
            yield f"{roles[role]} members of role {role}, {most} allowed"
