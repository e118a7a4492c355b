"""Kueue's load: as much of everything as its own generator makes, and what is counted of a run."""

from __future__ import annotations

import asyncio
import io
from collections import Counter
from dataclasses import asdict
from itertools import accumulate, count

import pytest
from rich.console import Console

from tutti.queues.tree import QueueTree, findings
from tutti.strategies.best_fit import BestFit

from ..bench.planner import cases, kueue_itself, kueue_load, tables
from ..bench.planner.course import Agenda
from ..bench.planner.kueue_load import BASELINE, LARGE_SCALE, Load
from ..bench.planner.kueue_run import Simulation
from ..bench.planner.results import Measured, Results
from ..bench.planner.scenes import Scene, kueue_loads
from ..bench.planner.trials import Case, Figures, Kind, measured
from ..bench.planner.verdicts import verdicts
from .test_planbench import TRACE

TINY = BASELINE.scaled(0.01)
CYCLE = 0.05  # seconds that each cycle takes where the clock is ours


@pytest.mark.parametrize(
    ("load", "queues", "workloads", "cores"),
    [(BASELINE, 30, 15_000, 600), (LARGE_SCALE, 1_000, 50_000, 20_000)],
)
def test_the_loads_have_as_many_queues_workloads_and_cores_as_those_of_kueue(
    load: Load, queues: int, workloads: int, cores: int
) -> None:
    made = [*kueue_load.queues(load)]
    leaves = [queue for queue in made if queue.parent]
    assert len(leaves) == queues
    assert {queue.limits for queue in leaves} == {(("cpu", 120_000),)}
    assert len(kueue_load.arrivals(load)) == load.workloads == workloads
    assert sum(dict(queue.guaranteed)["cpu"] for queue in leaves) == 1_000 * cores
    cohorts = [queue for queue in made if not queue.parent]
    assert (
        sum(dict(queue.limits)["cpu"] for queue in cohorts) == 1_000 * cores == 1_000 * load.cores
    )
    assert findings(made, {"cpu": 1_000 * cores}) == []
    assert QueueTree.of(made).height == 2


def test_workloads_come_one_interval_after_the_other_in_all_queues_at_once() -> None:
    arrivals = kueue_load.arrivals(BASELINE)
    assert Counter(arrival.of.name for arrival in arrivals) == {
        "small": 10_500,
        "medium": 3_000,
        "large": 1_500,
    }
    assert [arrival.at for arrival in arrivals] == sorted(arrival.at for arrival in arrivals)
    own = [one for one in arrivals if one.queue == "cq-0-cohort-0" and one.of.name == "large"]
    assert [one.at for one in own] == pytest.approx([1.2 * n for n in range(1, 51)])
    assert len({(arrival.queue, arrival.name) for arrival in arrivals}) == 15_000


def test_a_part_of_a_load_has_fewer_cohorts_and_then_fewer_workloads() -> None:
    cohort = BASELINE.scaled(0.2)
    assert (cohort.cohorts, cohort.queues, cohort.workloads) == (1, 6, 3_000)
    assert (TINY.cohorts, TINY.queues, [cls.count for cls in TINY.classes]) == (1, 6, [18, 5, 2])
    assert BASELINE.scaled(1.0) == BASELINE


@pytest.mark.parametrize("load", [TINY, BASELINE, LARGE_SCALE])
def test_no_schedule_within_the_quota_ends_before_the_least_end(load: Load) -> None:
    latest_first = sorted(kueue_load.arrivals(load), reverse=True)
    work = accumulate(one.of.cores * one.of.runtime for one in latest_first)
    bounds = [one.at + left / load.cores for one, left in zip(latest_first, work, strict=True)]
    alone = max(one.at + one.of.runtime for one in latest_first)
    assert kueue_load.least_seconds(load) == pytest.approx(max(alone, *bounds))


@pytest.mark.parametrize("load", [TINY, LARGE_SCALE.scaled(0.005)])
def test_all_workloads_start_within_the_quota_and_end(load: Load) -> None:
    moments = count(0.0, CYCLE)
    simulation = Simulation(load, [*kueue_load.nodes(30)], BestFit(), clock=lambda: next(moments))
    assert asyncio.run(simulation.run()) == ""
    tally = simulation.tally
    assert tally.started == load.workloads
    assert {name: len(waits) for name, waits in tally.waits.items()} == {
        cls.name: cls.count * load.queues for cls in load.classes
    }
    assert tally.planning == pytest.approx(tally.cycles * CYCLE)
    assert min(min(waits) for waits in tally.waits.values()) > 0.99 * CYCLE
    figures = tally.figures(load)
    assert figures["end"] >= kueue_load.least_seconds(load)
    assert 0.0 < figures["quota in use"] <= 1.0
    assert figures["started per second"] == pytest.approx(load.workloads / tally.planning)


def test_workloads_that_no_node_holds_never_start() -> None:
    simulation = Simulation(TINY, [], BestFit())
    assert asyncio.run(simulation.run()) == f"{TINY.workloads} workloads never start"


def test_kueue_itself_gets_the_same_numbers() -> None:
    (cohorts,) = kueue_itself.generator(BASELINE)["cohorts"]
    (queues,) = cohorts["queuesSets"]
    assert (cohorts["count"], queues["count"]) == (5, 6)
    assert (queues["nominalQuota"], queues["borrowingLimit"]) == ("20", "100")
    assert [
        (own["count"], own["creationIntervalMs"], *own["workloads"][0].values())
        for own in queues["workloadsSets"]
    ] == [
        (350, 100, "small", 200, 50, "1"),
        (100, 500, "medium", 500, 100, "5"),
        (50, 1_200, "large", 1_000, 200, "20"),
    ]


def test_what_kueue_counts_of_itself_is_taken_as_it_is() -> None:
    classes = {
        "small": {"averageTimeToAdmissionMs": 9_500, "count": 30, "totalEvictions": 2},
        "large": {"averageTimeToAdmissionMs": 500, "count": 10, "totalEvictions": 1},
    }
    usage = {"cq": {"cpuAverageUsage": 60_000, "nominalQuota": 120_000}}
    summary = {"clusterQueueClasses": usage, "workloadClasses": classes}
    figures = kueue_itself.figures(summary, {"wallMs": 20_000, "maxrss": 1})
    assert (figures.seconds, figures.gangs) == (20.0, 40)
    assert figures.load == {
        "started per second": 2.0,
        "quota in use": 0.5,
        "end": 20.0,
        "evicted": 3,
        "until small": 9.5,
        "until large": 0.5,
    }
    output = io.StringIO()
    results = Results([Measured(_case("ilp"), Figures()), Measured(_case("Kueue"), figures)])
    Console(file=output, width=240).print(tables.kueue(results))
    assert "all of Kueue, with an API server; 3 evictions" in output.getvalue()


def _case(strategy: str, scene: Scene = kueue_loads(0.01)[0]) -> Case:  # noqa: B008 - frozen
    return Case(Kind.KUEUE, scene, strategy)


def test_a_load_is_measured_and_printed_beside_the_figures_that_kueue_publishes() -> None:
    found = [(_case(name), measured(_case(name), TRACE, seed=1)) for name in ("bestfit", "ilp")]
    assert all(figures.gangs == case.scene.gangs > 0 for case, figures in found)
    output = io.StringIO()
    results = Results(Measured(case, figures) for case, figures in found)
    Console(file=output, width=240).print(tables.kueue(results))
    lines = [line.split() for line in output.getvalue().splitlines()]
    assert [line[1] for line in lines if line[:1] == ["kueue"]] == ["bestfit", "ilp", "Kueue,"]
    assert "published, from other machines" in output.getvalue()
    assert "15,000" in output.getvalue()
    (row,) = [row for row in verdicts(results) if row.text.startswith("end of Kueue's load")]
    ends = [figures.load["end"] for _, figures in found]
    assert row.value == ends[1] / ends[0]


def test_a_load_that_did_not_end_has_a_reason_in_place_of_figures() -> None:
    results = Results([Measured(_case("ilp"), Figures(unfinished="did not finish in 9 s"))])
    output = io.StringIO()
    Console(file=output, width=240).print(tables.kueue(results))
    assert "did not finish in 9 s" in output.getvalue()


def test_whole_loads_are_measured_only_if_they_are_named() -> None:
    def names(*patterns: str) -> list[str]:
        agenda = Agenda.of(100, 1.0, ("bestfit", "ilp"), patterns)
        return [name for name in agenda.names if name.startswith("kueue")]

    assert names() == ["kueue"]
    assert names("kueue*") == ["kueue", "kueue/15000", "kueue/50000"]
    assert names("kueue/50000") == ["kueue/50000"]
    assert names("racks") == []
    agenda = Agenda.of(100, 1.0, ("ilp",), ("kueue",), runs_kueue=True)
    assert [case.strategy for case in agenda.survey] == ["ilp", "Kueue"]
    waiting = {
        case.scene.name: case.scene.gangs
        for case in cases.of_kueue(1.0, ("ilp",), ("*",), runs_kueue=False)
    }
    assert waiting == {"kueue": 3_000, "kueue/15000": 15_000, "kueue/50000": 50_000}


def test_scenes_of_kueue_survive_being_written_down() -> None:
    for scene in kueue_loads(0.5):
        assert Scene.of(asdict(scene)) == scene
        assert kueue_load.LOADS[scene.load].scaled(scene.scale).workloads == scene.gangs
