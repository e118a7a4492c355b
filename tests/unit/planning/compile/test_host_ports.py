"""Very many host ports: beyond a number of columns they are one resource, and no port is shared."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from tutti.gang.room_findings import PortTaken
from tutti.model.ports import HostPort
from tutti.planning.compile import grids
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget
from tutti.verify import plan_checks

from ....harness.builders import Part, gang, node, snapshot_of, space
from ..queueing.test_failures_of_others import quota

if TYPE_CHECKING:
    from tutti.model.decisions import Plan

WHOLE_CLUSTER = (node("n1", cpu=64), node("n2", cpu=64))


def planned(*parts: Part) -> Plan:
    snapshot = snapshot_of(*parts)
    made = plan(snapshot, STRATEGIES["ilp"](), BestFit(), Budget())
    assert plan_checks.violations(snapshot, made) == ()
    return made


def test_no_two_pods_of_a_node_get_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """With four columns for ports; some pods run, and some ports are for one IP only."""
    monkeypatch.setattr(grids, "MOST_PORTS", 4)
    monkeypatch.setattr(grids, "MOST_PORT_CELLS", 0)
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
    assert started > 100


def test_a_pod_with_ports_beyond_the_columns_is_alone_with_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grids, "MOST_PORTS", 1)
    monkeypatch.setattr(grids, "MOST_PORT_CELLS", 0)
    gangs = [gang(f"g{n}").of(1, cpu=1).listening(HostPort(n + 1)) for n in range(4)]
    made = planned(WHOLE_CLUSTER[0], *gangs)
    assert [placement.gang.name for placement in made.placements] == ["g0", "g1"]
    (rejection, _) = made.rejections
    assert PortTaken("3/TCP or another of 3 ports", 1) in rejection.findings


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
