"""The best value of gangs in racks, by one integer program over racks; shares nothing with plans.

A *piece* is a number of equal members that are in one rack. A gang in one rack is one piece, a gang
in segments has a piece for each segment, and a gang that may be anywhere has a piece for each
member. Any racks will do for the pieces of one gang, and equal pieces are interchangeable, of
whichever gang they are. So the program counts them: how many gangs of a type start, how many pieces
of a kind are in a rack, and how many nodes of a rack are filled in which way.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product
from math import floor, gcd
from typing import TYPE_CHECKING, Any, NamedTuple

from pulp import LpAffineExpression, LpProblem
from pulp.apis.highs_api import HiGHS
from pulp.constants import LpInteger, LpMaximize

from tutti.model.resources import Resources

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tutti.model.cluster import Gang, Node, Snapshot
    from tutti.model.keys import Uid

MOST_RACKS = 48
_ONE_POD = Resources.of({"pods": 1})
_TINY = 1e-6  # of an engine's arithmetic

Filling = tuple[int, ...]  # members on one node, by request
Rack = Counter[tuple[Filling, ...]]  # how many nodes have these maximal fillings


class Best(NamedTuple):
    """The best value that was found, and what no value exceeds; equal if it is proved."""

    value: int
    bound: int


class _Piece(NamedTuple):
    request: Resources  # of each member
    members: int


class _Type(NamedTuple):
    """What gangs of one type have in common."""

    pieces: frozenset[tuple[_Piece, int]]
    value: int


def best(picture: Snapshot, values: Mapping[Uid, int], seconds: float) -> Best:
    """The most that gangs that start together can be worth; ``values`` are by gang.

    Raises:
        ValueError: there are too many racks, or a gang asks for what the program does not know.
    """
    types = Counter(_type(gang, values[gang.uid]) for gang in picture.gangs)
    requests = sorted({piece.request for kind in types for piece, _ in kind.pieces}, key=repr)
    racks = _racks(picture, requests)
    if len(racks) > MOST_RACKS:
        raise ValueError(f"{len(racks)} racks; the program is for at most {MOST_RACKS}")
    unit = gcd(*(kind.value for kind in types)) or 1
    everything = sum(kind.value * count for kind, count in types.items())
    program = LpProblem("racks", LpMaximize)  # type: ignore[no-untyped-call]
    value = LpAffineExpression()
    placed: defaultdict[_Piece, LpAffineExpression] = defaultdict(LpAffineExpression)
    for t, (kind, count) in enumerate(types.items()):
        starts = program.add_variable(f"starts{t}", 0, count, LpInteger)
        value.addterm(starts, kind.value // unit)
        for piece, number in kind.pieces:
            placed[piece].addterm(starts, -number)
    program.objective = value
    for r, rack in enumerate(racks):
        members = _add_nodes(program, f"z{r}", rack, len(requests))
        for p, (piece, total) in enumerate(placed.items()):
            s = requests.index(piece.request)
            room = sum(nodes * max(f[s] for f in fillings) for fillings, nodes in rack.items())
            if most := room // piece.members:
                here = program.add_variable(f"n{r}_{p}", 0, most, LpInteger)
                total.addterm(here, 1)
                members[s].addterm(here, -piece.members)
        for sum_of in members:
            program += sum_of >= 0
    for total in placed.values():
        program += total == 0
    found, bound = _solved(program, seconds)
    return Best(found * unit, min(everything, max(found, bound) * unit))


def _solved(program: LpProblem, seconds: float) -> tuple[int, int]:
    """The value that HiGHS finds, which holds without any tolerance, and its bound."""
    program.solve(HiGHS(msg=False, gapRel=0, gapAbs=0, threads=1, timeLimit=seconds))  # type: ignore[no-untyped-call]
    model: Any = program.solverModel
    for variable in program.variables():
        variable.varValue = round(variable.varValue or 0)
    if not program.valid():  # type: ignore[no-untyped-call]
        raise ArithmeticError("the engine's answer breaks a row of the program")
    assert program.objective is not None
    # PuLP gives HiGHS the objective with its sign changed.
    return round(program.objective.value() or 0), floor(_TINY - model.getInfo().mip_dual_bound)


def _add_nodes(
    program: LpProblem, name: str, rack: Rack, requests: int
) -> Sequence[LpAffineExpression]:
    """Add the nodes of a rack; return by request how many members they then hold."""
    members = [LpAffineExpression() for _ in range(requests)]
    for c, (fillings, nodes) in enumerate(rack.items()):
        used = LpAffineExpression()
        for f, filling in enumerate(fillings):
            so = program.add_variable(f"{name}_{c}_{f}", 0, nodes, LpInteger)
            used.addterm(so, 1)
            for sum_of, count in zip(members, filling, strict=True):
                sum_of.addterm(so, count)
        program += used <= nodes
    return members


def _type(gang: Gang, value: int) -> _Type:
    """What the gang asks of racks."""
    requests = {member.shape.requests.at_least(_ONE_POD) for member in gang.members}
    rules = (*gang.same_domain, *(own.of for own in gang.segments))
    is_plain = len(requests) == 1 and len(rules) < 2 and not any(rule.roles for rule in rules)
    if not is_plain or gang.min_member != len(gang.members):
        raise ValueError(f"{gang.key}: not all members are needed, equal, and under one rule")
    (request,), need = requests, gang.min_member
    size = next((own.size for own in gang.segments), need if gang.same_domain else 1)
    pieces = {_Piece(request, size): need // size, _Piece(request, need % size): 1}
    return _Type(frozenset((p, n) for p, n in pieces.items() if p.members and n), value)


def _racks(picture: Snapshot, requests: Sequence[Resources]) -> Sequence[Rack]:
    """The racks, as far as their nodes have room for any member."""
    (topology,) = picture.topologies
    levels = {rule.level for gang in picture.gangs for rule in gang.same_domain}
    levels |= {own.of.level for gang in picture.gangs for own in gang.segments}
    if not levels <= {topology.levels[-1]}:
        raise ValueError("a gang names another level than the narrowest")
    racks: defaultdict[tuple[str, ...], Rack] = defaultdict(Counter)
    known: dict[Resources, tuple[Filling, ...]] = {}
    for node in picture.nodes:
        labels, room = dict(node.labels), _room(node)
        if room not in known:
            known[room] = tuple(sorted(_fillings(room, requests)))
        if any(map(any, known[room])):
            racks[tuple(labels[level] for level in topology.levels)][known[room]] += 1
    return list(racks.values())


def _room(node: Node) -> Resources:
    return node.allocatable - node.used


def _fillings(room: Resources, requests: Sequence[Resources]) -> Iterator[Filling]:
    """All maximal numbers of members that a node with this room holds."""
    most = [min(room[name] // n for name, n in request.amounts) for request in requests]
    counts = product(*(range(max(0, n) + 1) for n in most))
    fitting = {
        filling
        for filling in counts
        if Resources.total(
            request.scaled(n) for request, n in zip(requests, filling, strict=True)
        ).fits(room)
    }
    for filling in fitting:
        larger = ((*filling[:i], filling[i] + 1, *filling[i + 1 :]) for i in range(len(filling)))
        if fitting.isdisjoint(larger):
            yield filling
