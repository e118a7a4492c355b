"""Whether gangs can be placed at the same time, by CP-SAT; shares nothing with Tutti.

The rules are those of docs/topology.md: all members of a gang in one domain of its level, and in
segments whose members are in one rack each, of which one may be short.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from ortools.sat.python import cp_model

from .cases import Level

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .cases import Gang, Ground

    Variables = dict[tuple[int, int], Any]  # how many members of a size are on a node

_SECONDS = 60.0  # of deterministic time: the same on every machine


def placement(
    nodes: Sequence[Ground], free: Sequence[int], gangs: Sequence[Gang]
) -> Mapping[str, str] | None:
    """A node for each member of all gangs, by the pods' names; None if there is no such placement.

    Raises:
        TimeoutError: it takes too long to know.
    """
    model = cp_model.CpModel()
    numbers = [_add(model, nodes, free, gang) for gang in gangs]
    for n, room in enumerate(free):
        taken = [size * x for of in numbers for (size, m), x in of.items() if m == n]
        model.add(sum(taken) <= room)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = _SECONDS
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise TimeoutError(f"CP-SAT has no answer after {_SECONDS:.0f} s of deterministic time")
    return {
        pod: node
        for gang, of in zip(gangs, numbers, strict=True)
        for pod, node in _named(nodes, gang, {key: solver.value(x) for key, x in of.items()})
    }


def _add(
    model: cp_model.CpModel, nodes: Sequence[Ground], free: Sequence[int], gang: Gang
) -> Variables:
    """The numbers of a gang's members by size and node, with the rules of the gang."""
    counts = Counter(gang.sizes)
    numbers: Variables = {
        (size, n): model.new_int_var(0, min(count, free[n] // size), "")
        for size, count in counts.items()
        for n in range(len(nodes))
    }
    for size, count in counts.items():
        model.add(sum(numbers[size, n] for n in range(len(nodes))) == count)
    chosen = {ground.domain(gang.level): model.new_bool_var("") for ground in nodes}
    model.add_exactly_one(chosen.values())
    for (_, n), number in numbers.items():
        model.add(number == 0).only_enforce_if(chosen[nodes[n].domain(gang.level)].negated())
    if gang.segment:
        _add_segments(model, nodes, gang, numbers)
    return numbers


def _add_segments(
    model: cp_model.CpModel, nodes: Sequence[Ground], gang: Gang, numbers: Variables
) -> None:
    """In each rack a multiple of the segment's size; in one rack the short segment besides."""
    short = len(gang.sizes) % gang.segment
    has_short = []
    for rack in dict.fromkeys(ground.rack for ground in nodes):
        here = sum(x for (_, n), x in numbers.items() if nodes[n].rack == rack)
        whole, is_short = model.new_int_var(0, len(gang.sizes), ""), model.new_bool_var("")
        model.add(here == gang.segment * whole + short * is_short)
        has_short.append(is_short)
    model.add(sum(has_short) <= 1)


def _named(
    nodes: Sequence[Ground], gang: Gang, numbers: Mapping[tuple[int, int], int]
) -> Iterator[tuple[str, str]]:
    """Which pod is on which node, members of one size in order."""
    waiting: defaultdict[int, list[str]] = defaultdict(list)
    for i, size in enumerate(gang.sizes):
        waiting[size].append(gang.member(i))
    for (size, n), number in numbers.items():
        for _ in range(number):
            yield waiting[size].pop(0), nodes[n].name


def faults(
    nodes: Sequence[Ground], free: Sequence[int], gangs: Sequence[Gang], where: Mapping[str, str]
) -> Iterator[str]:
    """What is wrong with the nodes that members have: gangs in part, no one domain, no room."""
    on = {ground.name: ground for ground in nodes}
    left = {ground.name: room for ground, room in zip(nodes, free, strict=True)}
    for gang in gangs:
        names = [gang.member(i) for i in range(len(gang.sizes))]
        bound = [on[where[name]] for name in names if name in where]
        for name, size in zip(names, gang.sizes, strict=True):
            if name in where:
                left[where[name]] -= size
        if not bound:
            continue
        if len(bound) < len(names):
            yield f"{gang.name}: {len(bound)} of {len(names)} members have a node"
        domains = {ground.domain(gang.level) for ground in bound}
        if len(domains) > 1:
            yield f"{gang.name}: in {len(domains)} domains of {gang.level}"
        if gang.segment:
            racks = Counter(ground.domain(Level.RACK) for ground in bound)
            broken = sum(count % gang.segment > 0 for count in racks.values())
            if broken > 1:
                yield f"{gang.name}: {broken} segments of {gang.segment} are not whole"
    yield from (f"{name}: {-room} GPUs too many" for name, room in left.items() if room < 0)
