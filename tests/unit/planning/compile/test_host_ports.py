"""Very many host ports: beyond a number of columns they are one resource, and no port is shared."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from tutti.gang.room_findings import PortTaken
from tutti.model.ports import HostPort
from tutti.planning.compile import grids
from tutti.planning.plan import PORTS_TOGETHER, plan
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.verify import plan_checks

from ....harness.builders import AMPLE_BUDGET, Part, gang, node, snapshot_of, space
from ..queueing.test_failures_of_others import quota

if TYPE_CHECKING:
    from tutti.model.decisions import Plan

WHOLE_CLUSTER = (node("n1", cpu=64), node("n2", cpu=64))


def planned(*parts: Part) -> Plan:
    snapshot = snapshot_of(*parts)
    made = plan(snapshot, STRATEGIES["ilp"](), BestFit(), AMPLE_BUDGET)
    assert plan_checks.violations(snapshot, made) == ()
    return made


def few_columns(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(grids, "MOST_PORTS", most)
    monkeypatch.setattr(grids, "MOST_PORT_CELLS", 0)


@pytest.mark.parametrize("most", [1, 4])
def test_no_two_pods_of_a_node_get_one_port(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few columns for ports; some pods run, and some ports are for one IP only."""
    few_columns(monkeypatch, most)
    chance, started = Random(7), 0

    def some() -> list[HostPort]:
        ips = ("0.0.0.0", "0.0.0.0", "10.0.0.1", "10.0.0.2")
        numbers = chance.sample(range(1, 9), chance.randint(1, 3))
        return [HostPort(number, ip=chance.choice(ips)) for number in numbers]

    for _ in range(60):
        nodes = [node(f"n{n}", cpu=64) for n in range(3)]
        nodes[0] = nodes[0].listening(*some())
        gangs = [gang(f"g{n}").of(chance.randint(1, 2), cpu=1).listening(*some()) for n in range(6)]
        started += len(planned(*nodes, *gangs).placements)
    assert started > 50 * most


def test_ports_that_the_same_pods_want_are_one_column_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On each node one port of a pair is taken, or none; a plan starts as many gangs as before."""
    pairs = [(HostPort(2 * n + 1), HostPort(2 * n + 2)) for n in range(5)]
    gangs = [gang(f"g{n}").of(2, cpu=1).listening(*pair) for n, pair in enumerate(pairs)]
    nodes = [node(f"n{n}", cpu=4).listening(pairs[n][n % 2]) for n in range(5)]
    exact = planned(*nodes, *gangs)
    few_columns(monkeypatch, 5)
    merged = planned(*nodes, *gangs)
    assert (len(merged.placements), merged.proved) == (len(exact.placements), True) == (5, True)
    alone = gang("a").of(1, cpu=1).listening(*pairs[0])
    taken = planned(nodes[0], alone)
    assert PortTaken("1/TCP", 1) in taken.rejections[0].findings
    few_columns(monkeypatch, 1)
    roughly = planned(nodes[0], alone)
    assert PortTaken("1/TCP or another of 2 ports", 1) in roughly.rejections[0].findings


def test_a_pod_with_ports_beyond_the_columns_is_alone_with_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few_columns(monkeypatch, 1)
    gangs = [gang(f"g{n}").of(1, cpu=1).listening(HostPort(n + 1)) for n in range(4)]
    made = planned(WHOLE_CLUSTER[0], *gangs)
    assert [placement.gang.name for placement in made.placements] == ["g0", "g1"]
    assert (made.proved, made.shortfall) == (False, PORTS_TOGETHER)
    (rejection, _) = made.rejections
    assert PortTaken("3/TCP or another of 3 ports", 1) in rejection.findings


def test_pods_with_many_ports_take_no_column_of_pods_with_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few_columns(monkeypatch, 2)
    many = [HostPort(number) for number in range(1, 9)]
    greedy = [gang(f"a{n}").of(1, cpu=99).listening(*many[n:]) for n in range(4)]
    plain = gang("b").of(1, cpu=1).listening(HostPort(9))
    taken = node("n1", cpu=4).listening(*many)
    made = planned(taken, *greedy, plain)
    assert [placement.gang.name for placement in made.placements] == ["b"]


@pytest.mark.parametrize("with_queue", [False, True])
def test_thousands_of_host_ports_are_few_columns(with_queue: bool) -> None:  # noqa: FBT001
    many = [HostPort(number) for number in range(1, 30_001)]
    nodes = [node(f"n{n}", cpu=4) for n in range(200)]
    gangs = [gang("a").of(2, cpu=1).listening(*many), gang("b").of(1, cpu=1)]
    queues = [quota("q", cpu=4)] if with_queue else []
    made = planned(space("ml"), *nodes, *gangs, *queues)
    assert [placement.gang.name for placement in made.placements] == ["a", "b"]
    snapshot = snapshot_of(*nodes, *gangs)
    shapes = [member.shape for one in snapshot.gangs for member in one.members]
    assert grids.grid(snapshot, shapes).free.size < grids.MOST_PORT_CELLS + 10_000
