"""The most that can be admitted, by CP-SAT: one integer per kind of pod and node.

The plainest model there is, with nothing merged and nothing left out: it is to be believed, not
to be fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ortools.sat.python import cp_model

from . import together

if TYPE_CHECKING:
    from .case import Ask, Case, Divided, Limit, Together, Worth


class NoAnswerError(Exception):
    """CP-SAT did not prove an optimum, so there is nothing to compare with."""


def optimum(case: Case, down_to: int | None = None) -> Worth:
    """The most valuable admission, level by level from the top, to the last or to this one.

    Raises:
        NoAnswerError: CP-SAT gave up.
    """
    model = cp_model.CpModel()
    starts = [model.new_bool_var(f"start {number}") for number in range(len(case.asks))]
    used: dict[tuple[int, int], list[cp_model.LinearExprT]] = {}
    placed: list[together.Placed] = []
    of_kinds: list[list[cp_model.LinearExprT]] = []  # [ask][kind]: pods that start
    for start, ask in zip(starts, case.asks, strict=True):
        own = _add_gang(model, case, start, ask, used)
        placed += own
        of_kinds.append([sum(one.number for one in own if one.kind is kind) for kind in ask.kinds])
    for limit in case.limits:
        _add_limit(model, limit, of_kinds)
    for (node, resource), terms in used.items():
        model.add(sum(terms) <= case.rooms[node][resource])
    together.add_rules(model, case, placed)
    found = []
    for level in case.levels:
        if down_to is not None and level < down_to:
            break
        pairs = zip(starts, case.asks, strict=True)
        aim = sum(ask.value * start for start, ask in pairs if ask.level == level)
        best = _most(model, aim)
        model.add(aim == best)
        found.append((level, best))
    return tuple(found)


def _add_gang(
    model: cp_model.CpModel,
    case: Case,
    start: cp_model.IntVar,
    ask: Ask,
    used: dict[tuple[int, int], list[cp_model.LinearExprT]],
) -> list[together.Placed]:
    """All that the gang needs, or nothing; what its pods take is added to ``used``."""
    placed = []
    of_role: dict[int, list[cp_model.IntVar]] = {role: [] for role in range(len(ask.least))}
    for kind in ask.kinds:
        counts = [(node, model.new_int_var(0, kind.count, "")) for node in sorted(kind.where)]
        model.add(sum(count for _, count in counts) <= kind.count)
        of_role[kind.role].extend(count for _, count in counts)
        placed += [together.Placed(kind, node, count) for node, count in counts]
        for node, count in counts:
            for resource, amount in enumerate(kind.takes):
                if amount and case.rooms[node][resource] < amount:
                    model.add(count == 0)
                elif amount:
                    used.setdefault((node, resource), []).append(amount * count)
    _add_places(model, ask, placed)
    everyone = [count for counts in of_role.values() for count in counts]
    if ask.most is None:
        model.add(sum(everyone) == ask.need * start)
    else:
        model.add(sum(everyone) >= ask.need * start)
        model.add(sum(everyone) <= ask.most * start)
    for role, least in enumerate(ask.least):
        model.add(sum(of_role[role]) >= least * start)
    for role, most in enumerate(ask.most_of_role):
        model.add(sum(of_role[role]) <= most)
    return placed


def _add_places(model: cp_model.CpModel, ask: Ask, placed: list[together.Placed]) -> None:
    for rule in ask.together:
        _keep_together(model, ask, rule, placed)
    for divided in ask.divided:
        _divide(model, ask, divided, placed)


def _keep_together(
    model: cp_model.CpModel, ask: Ask, rule: Together, placed: list[together.Placed]
) -> None:
    """Let pods of the rule's kinds be in one place alone, whichever that is."""
    is_chosen = {place: model.new_bool_var("") for place in set(rule.place) if place >= 0}
    model.add_at_most_one(is_chosen.values())
    kinds = [ask.kinds[number] for number in rule.kinds]
    for one in placed:
        if any(one.kind is kind for kind in kinds):
            place = rule.place[one.node]
            flag = is_chosen[place] if place >= 0 else 0
            model.add(one.number <= one.kind.count * flag)


def _divide(
    model: cp_model.CpModel, ask: Ask, rule: Divided, placed: list[together.Placed]
) -> None:
    """Give every pod of the rule's kinds a numbered group; a group is in one place.

    All groups with pods are full, but one.
    """
    kinds = [ask.kinds[number] for number in rule.kinds]
    own = [one for one in placed if any(one.kind is kind for kind in kinds)]
    for one in own:
        if rule.place[one.node] < 0:
            model.add(one.number == 0)
    most = min(ask.need, sum(kind.count for kind in kinds))
    in_groups: dict[int, list[cp_model.IntVar]] = {number: [] for number in range(len(own))}
    is_smaller = []
    for _ in range(-(-most // rule.size)):
        is_at = {place: model.new_bool_var("") for place in set(rule.place) if place >= 0}
        model.add_at_most_one(is_at.values())
        pods = []
        for number, one in enumerate(own):
            if rule.place[one.node] >= 0:
                pods.append(model.new_int_var(0, min(one.kind.count, rule.size), ""))
                model.add(pods[-1] <= rule.size * is_at[rule.place[one.node]])
                in_groups[number].append(pods[-1])
        is_full, is_small = model.new_bool_var(""), model.new_bool_var("")
        model.add(sum(pods) >= rule.size * is_full)
        model.add(sum(pods) <= rule.size * is_full + (rule.size - 1) * is_small)
        is_smaller.append(is_small)
    model.add_at_most_one(is_smaller)
    for number, one in enumerate(own):
        model.add(one.number == sum(in_groups[number]))


def _add_limit(
    model: cp_model.CpModel, limit: Limit, of_kinds: list[list[cp_model.LinearExprT]]
) -> None:
    """Let all pods together use no more than the limit."""
    used = [
        amount * pods
        for uses, numbers in zip(limit.uses, of_kinds, strict=True)
        for amount, pods in zip(uses, numbers, strict=True)
        if amount
    ]
    model.add(sum(used) <= limit.most)


def _most(model: cp_model.CpModel, aim: cp_model.LinearExprT) -> int:
    """The largest value that the aim can have."""
    model.maximize(aim)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    # With every row in the relaxation: gangs that lack room by a little are ruled out by it, and
    # not by trying every order of equal pods.
    solver.parameters.linearization_level = 2
    solver.parameters.max_deterministic_time = 60.0
    status = solver.solve(model)
    if status != cp_model.OPTIMAL:
        raise NoAnswerError(f"CP-SAT ended with {solver.status_name(status)}")
    return round(solver.objective_value)
