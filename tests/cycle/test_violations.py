"""A plan that breaks a promise is dropped and kept as a dump; the fallback answers in its place."""

import logging
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tutti import dump
from tutti.dump import load
from tutti.dump.violations import LEAST_SECONDS, MOST_FILES, ViolationDumps
from tutti.model.decisions import Policy
from tutti.planning.plan import plan
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget, Outcome, Problem, Share, Solution
from tutti.verify import plan_checks

from ..harness.builders import gang, node, snapshot_of
from ..harness.fakes import Clock, FakeCluster, Life
from . import scenarios

SETUP = dump.PlannerConfig("tutti", "liar", Policy(), {})


@dataclass(frozen=True, slots=True)
class Liar:
    """A strategy that finds room for everybody on the first node."""

    name: str = "liar"

    def solve(self, problem: Problem, budget: Budget) -> Solution:  # noqa: ARG002 - spends nothing
        """Put all that every demand needs on node 0."""
        shares = tuple((Share(0, 0, demand.need),) for demand in problem.demands)
        return Solution(Outcome.PROVED, shares)


def contended() -> FakeCluster:
    """Two gangs for two nodes, of which the first node holds one."""
    cluster = FakeCluster()
    cluster.add(
        node("n1", cpu=2), node("n2", cpu=2), gang("a").of(2, cpu=1), gang("b").of(2, cpu=1)
    )
    return cluster


def lying(cluster: FakeCluster, dumps: ViolationDumps | None, fallback: Liar | None = None) -> Life:
    life = Life(cluster, Clock(), strategy=Liar())
    life.cycle._dumps = dumps
    if fallback is not None:
        life.cycle._fallback = fallback
    return life


async def test_the_fallback_answers_where_the_strategy_lies(tmp_path: Path) -> None:
    cluster = contended()
    await lying(cluster, ViolationDumps(tmp_path, SETUP)).settle()
    assert sorted(scenarios.places(cluster, "a") + scenarios.places(cluster, "b")) == [
        *("n1", "n1"),
        *("n2", "n2"),
    ]
    scenarios.assert_promises(cluster)


async def test_where_both_lie_only_what_is_sound_starts(tmp_path: Path) -> None:
    cluster = contended()
    life = lying(cluster, ViolationDumps(tmp_path, SETUP), Liar("second liar"))
    await life.turn()
    assert scenarios.places(cluster, "a") == ["n1", "n1"]
    assert scenarios.places(cluster, "b") == []
    scenarios.assert_promises(cluster)


async def test_the_dump_holds_the_plan_that_broke_a_promise(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        await lying(contended(), ViolationDumps(tmp_path, SETUP)).turn()
    (kept,) = ViolationDumps(tmp_path, SETUP).files()
    assert f"replay it with: tutti plan -f {kept}" in caplog.text
    assert "liar broke a promise" in caplog.text
    assert kept.stat().st_mode & 0o077 == 0
    found = dump.read([dump.Text(kept.name, kept.read_bytes())])
    snapshot = load.snapshot_of(found)
    broken = plan(snapshot, Liar(), BestFit(), Budget())
    assert plan_checks.violations(snapshot, broken)
    assert found.header is not None
    assert found.header.plan == dump.plan_record(broken)


@pytest.mark.parametrize("place", ["missing", "no directory"])
async def test_a_directory_that_cannot_be_written_stops_nothing(
    tmp_path: Path, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "no directory").write_text("")
    cluster = contended()
    await lying(cluster, ViolationDumps(tmp_path / place, SETUP)).settle()
    assert "no dump of it" in caplog.text
    assert len(scenarios.places(cluster, "b")) == 2


async def test_without_a_directory_nothing_is_written(caplog: pytest.LogCaptureFixture) -> None:
    cluster = contended()
    await lying(cluster, None).settle()
    assert "no dump of it" in caplog.text
    assert len(scenarios.places(cluster, "b")) == 2


def test_dumps_are_few_and_seldom(tmp_path: Path) -> None:
    dumps = ViolationDumps(tmp_path, SETUP)
    of = snapshot_of(node("n1", cpu=1), gang("a").of(1, cpu=1))
    made = plan(of, BestFit(), BestFit(), Budget())
    written = []
    for second in range(0, int(LEAST_SECONDS * 10), 20):
        path = dumps.keep(replace(of, taken_at=float(second)), made)
        written += [] if path is None else [path]
    assert len(written) == 10
    assert dumps.files() == written[-MOST_FILES:]


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    of = snapshot_of(node("n1", cpu=1))
    made = plan(of, BestFit(), BestFit(), Budget())
    path = ViolationDumps(tmp_path, SETUP).keep(of, made)
    assert path is not None
    path.unlink()
    victim = tmp_path / "victim"
    path.symlink_to(victim)
    with pytest.raises(FileExistsError):
        ViolationDumps(tmp_path, SETUP).keep(of, made)
    assert not victim.exists()
