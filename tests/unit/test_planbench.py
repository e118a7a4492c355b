"""The planner's benchmark: what its scenes are made of, its clocks, and what a ratio comes to."""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from dataclasses import asdict, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from rich.console import Console

from tutti.filters.node_rules import fits_node
from tutti.model import ports
from tutti.model.decisions import Objective, Policy
from tutti.operator.main import GC_THRESHOLD
from tutti.planning import plan as planning
from tutti.queues.tree import QueueTree, findings
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget
from tutti.verify import plan_checks

from ..bench.e2e.verdicts import Sense
from ..bench.planner import (
    against,
    baselines,
    borrowers,
    cases,
    child,
    contenders,
    device_pools,
    pictures,
    plots,
    queue_tree,
    tables,
    traces,
    trials,
)
from ..bench.planner.__main__ import main
from ..bench.planner.course import Agenda
from ..bench.planner.isolation import Source, alone
from ..bench.planner.results import Key, Measured, Results, plain_values
from ..bench.planner.scenes import (
    MOST_PORTS,
    PORT_PODS,
    Scene,
    Shapes,
    Twist,
    claiming,
    crowded,
    few_racks,
    grid,
    hard,
    many,
    million,
    networked,
    preempting,
    queued,
    required,
    ruled,
    small,
    unlike,
)
from ..bench.planner.stopwatch import NAMES, STAGES, Stopwatch
from ..bench.planner.traces import Ask, Machine, Trace
from ..bench.planner.trials import Case, Figures, Kind
from ..bench.planner.verdicts import verdicts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.table import Table

    from tutti.model.cluster import Snapshot

GIBI = 2**30
GPU = pictures.GPU
TRACE = traces.generated(200, 400, seed=1)


def _scene(name: str, scale: float = 0.01) -> Scene:
    scenes = {one.name: one for one in (*grid(200, scale), *hard(200, scale), ruled(200, scale))}
    return replace(scenes[name], gangs=min(scenes[name].gangs, 20))


def _picture(name: str) -> Snapshot:
    return pictures.snapshot(_scene(name), TRACE, seed=1)


# Traces


def _csv(folder: Path, name: str, *lines: str) -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def test_lists_are_read_by_their_columns_and_shares_of_a_gpu_count_as_a_whole_one(
    tmp_path: Path,
) -> None:
    nodes = _csv(tmp_path, "n.csv", "sn,cpu_milli,memory_mib,gpu,model", "a,96000,1024,8,G2")
    pods = _csv(
        tmp_path,
        "p.csv",
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec",
        "a,4000,2048,1,460,",
        "b,4000,2048,0,1500,G2|T4",
        "c,4000,2048,8,1000,",
    )
    trace = traces.read(nodes, pods, seed=1)
    assert trace.machines == (Machine(96_000, GIBI, 8, "G2"),)
    assert trace.asks == (
        Ask(4_000, 2 * GIBI, 1),
        Ask(4_000, 2 * GIBI, 2, ("G2", "T4")),
        Ask(4_000, 2 * GIBI, 8),
    )


def test_a_list_without_models_and_shares_is_a_list(tmp_path: Path) -> None:
    nodes = _csv(tmp_path, "n.csv", "cpu_milli,memory_mib,gpu", "1000,1024,0")
    pods = _csv(tmp_path, "p.csv", "cpu_milli,memory_mib,num_gpu", "1000,1024,0.5")
    assert traces.read(nodes, pods, seed=1) == Trace(
        (Machine(1000, GIBI, 0),), (Ask(1000, GIBI, 1),)
    )


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["cpu_milli,gpu", "1,2"], "there is no column memory_mib"),
        (["cpu_milli,memory_mib,gpu"], "there are no rows"),
        (["cpu_milli,memory_mib,gpu", "1,2,3", "1,many,3"], "line 3: could not convert"),
        (["cpu_milli,memory_mib,gpu", "1,2,-3"], "line 2: -3 is less than nothing"),
        (["cpu_milli,memory_mib,gpu", "1,2"], "line 2"),
    ],
)
def test_a_file_that_is_no_such_list_is_named_with_its_line(
    tmp_path: Path, lines: Sequence[str], complaint: str
) -> None:
    path = _csv(tmp_path, "n.csv", *lines)
    with pytest.raises(traces.TraceError, match=complaint) as caught:
        traces.read(path, None, seed=1)
    assert str(path) in str(caught.value)


def test_generated_clusters_are_the_same_for_the_same_seed_and_mixed() -> None:
    first, again, other = (traces.generated(500, 1_000, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len(first.machines) == 500
    assert len(first.asks) == 1_000
    assert {0, 1, 2, 4, 8} == {machine.gpus for machine in first.machines}
    assert len(first.shapes(least_gpus=2)) == 13
    assert all(any(ask.fits(machine) for machine in first.machines) for ask in first.shapes())


def test_shapes_come_by_frequency() -> None:
    often, seldom = Ask(1, 1, 2), Ask(1, 1, 8)
    trace = Trace((), (seldom, often, often, Ask(1, 1, 0)))
    assert trace.shapes(least_gpus=2) == [often, seldom]
    assert len(trace.shapes()) == 3


def test_most_of_many_shapes_ask_for_no_gpu() -> None:
    shapes = traces.many_shapes(64, seed=1)
    assert len(set(shapes)) == 64
    assert sum(not shape.gpus for shape in shapes) == 48


# Scenes


def test_the_grid_is_what_was_asked_for() -> None:
    scenes = {scene.name: scene for scene in grid(1_523, 1.0)}
    assert {scene.nodes for scene in scenes.values()} == {1_523, 6_092, 12_184}
    assert {scene.full for scene in scenes.values()} == {0.5, 0.8}
    assert {scene.gangs for scene in scenes.values()} == {900}
    assert {min(scene.sizes) for scene in scenes.values()} == {2}
    assert {max(scene.sizes) for scene in scenes.values()} == {64}
    assert len(scenes) == 18
    assert {cases.LARGE_8, cases.LARGE_13, cases.LARGE_ALL, cases.BASE_8} <= set(scenes)


def test_the_hard_scenes_are_what_was_asked_for() -> None:
    scenes = {scene.name: scene for scene in hard(1_523, 1.0)}
    assert scenes["one-gang"].sizes == (5_000,)
    assert scenes["100k"].nodes == 100_000
    assert scenes["racks"].twist is Twist.RACKS
    assert scenes["64-shapes"].shapes is Shapes.MANY
    assert all(scene.nodes >= 12_184 for scene in scenes.values())


@pytest.mark.parametrize(
    "scene",
    [*grid(10, 0.5), *hard(10, 0.5), ruled(10, 0.5), *unlike(0.5), *million(10, 0.5)],
    ids=lambda one: one.name,
)
def test_a_scene_survives_being_written_down(scene: Scene) -> None:
    assert Scene.of(json.loads(json.dumps(asdict(scene)))) == scene


@pytest.mark.parametrize("name", ["x8/50/8", "x8/80/13", "x1/50/all"])
def test_nodes_are_as_full_as_the_scene_says_and_never_fuller_than_they_are(name: str) -> None:
    scene = replace(_scene(name), nodes=100)
    picture = pictures.snapshot(scene, TRACE, seed=1)
    used = sum(node.used[pictures.GPU] for node in picture.nodes)
    there = sum(node.allocatable[pictures.GPU] for node in picture.nodes)
    assert abs(used - scene.full * there) <= 8
    for node in picture.nodes:
        assert node.used.fits(node.allocatable)
        assert node.allocatable["pods"] == 110


def test_unlike_pods_all_ask_for_something_else_and_nodes_have_all_other_room() -> None:
    scenes = {scene.name: scene for scene in unlike(1.0)}
    for name in ("plain/1000", "unlike-gangs"):
        picture = pictures.snapshot(scenes[name], TRACE, seed=1)
        asked = [member.shape.requests for gang in picture.gangs for member in gang.members]
        assert len(set(asked)) == len(asked) == scenes[name].gangs * scenes[name].sizes[0]
        assert len({node.used for node in picture.nodes}) == len(picture.nodes)
    empty = pictures.snapshot(scenes["plain/equal"], TRACE, seed=1)
    assert len({node.used for node in empty.nodes}) == 1


def test_one_pod_wants_very_many_host_ports() -> None:
    scene = next(scene for scene in unlike(1.0) if scene.name == "host-ports")
    *others, last = pictures.snapshot(scene, TRACE, seed=1).gangs
    assert len(others) == scene.gangs
    (member,) = last.members
    assert sum(map(ports.is_port, member.shape.requests.names)) == MOST_PORTS


def test_thousands_of_names_priorities_and_members_are_scenes_of_their_own() -> None:
    seen = {
        scene.name: pictures.snapshot(scene, TRACE, seed=1)
        for scene in unlike(0.1)
        if scene.twist in (Twist.PORT_EACH, Twist.PRIORITIES, Twist.RESOURCES, Twist.FURTHER)
    }
    wanted = [gang.members[0].shape.requests.names for gang in seen["port-each"].gangs]
    named = [name for names in wanted for name in names if ports.is_port(name)]
    assert len(set(named)) == len(named) == PORT_PODS
    assert len({gang.priority for gang in seen["priorities"].gangs}) == 100
    offered = seen["resources"].nodes[0].allocatable
    own = [set(gang.members[0].shape.requests.names) for gang in seen["resources"].gangs]
    assert all(len([n for n in names if n.startswith(pictures.OWN_RESOURCE)]) == 1 for names in own)
    assert len(set.union(*own)) == 100 + len({"cpu", "memory", "pods"})
    assert all(offered[name] for name in set.union(*own))
    (grows,) = seen["further"].gangs
    assert (grows.min_member, len(grows.members)) == (1, 2_000)


def test_specs_of_a_hundred_thousand_lines_are_scenes_of_their_own() -> None:
    seen = {
        scene.name: pictures.snapshot(scene, TRACE, seed=1)
        for scene in unlike(0.1)
        if scene.twist in (Twist.INVENTED, Twist.LONG_SPECS, Twist.TEMPLATES)
    }
    invented = seen["invented-resources"]
    pods = [gang.members[0].shape.requests.names for gang in invented.gangs[-3:]]
    assert [len(names) for names in pods] == [3 + 10 * len(invented.nodes)] * 3
    assert len(set.union(*map(set, pods))) == 3 + 30 * len(invented.nodes)
    long_specs = seen["long-specs"]
    nodes = len(long_specs.nodes)
    terms, tolerations, values = (gang.members[0].shape for gang in long_specs.gangs[-3:])
    assert terms.required is not None
    assert values.required is not None
    assert len(terms.required) == 8 * nodes
    assert len(tolerations.tolerations) == 15 * nodes
    assert len(values.required[0].labels[0].values) == 40 * nodes
    assert sum(fits_node(terms, node) is None for node in long_specs.nodes) == nodes // 2
    assert sum(fits_node(values, node) is None for node in long_specs.nodes) == nodes // 2
    for gang in seen["templates"].gangs:
        (role,) = gang.roles
        assert (len(gang.members), gang.min_member, role.min_member) == (1, 500, 500)
        assert role.template is not None


def test_a_fifth_of_the_gangs_have_rules_about_their_own_members() -> None:
    picture = pictures.snapshot(replace(ruled(1_523, 1.0), nodes=16), TRACE, seed=1)
    kinds = Counter[str]()
    for gang in picture.gangs:
        first, second, *_ = gang.members
        for member in gang.members:
            rules, own = member.shape.rules, dict(member.labels)[pictures.GANG_LABEL]
            about = [rule.peers for rule in (*rules.affinity, *rules.anti_affinity)]
            for peers in (*about, *(rule.peers for rule in rules.spread)):
                assert peers.selector
                assert own in peers.selector[0].values
        for name in ("affinity", "anti_affinity", "spread"):
            kinds[name] += bool(getattr(second.shape.rules, name))
        kinds["driver"] += second.shape != first.shape
    assert kinds["affinity"] + kinds["anti_affinity"] + kinds["spread"] == 180
    assert min(kinds.values()) > 20


def test_the_same_seed_gives_the_same_picture_and_another_one_another() -> None:
    scene = _scene("x8/50/8")
    first, again, other = (pictures.snapshot(scene, TRACE, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_list_is_copied_or_sampled_to_the_size_of_the_scene() -> None:
    few, many = replace(small(16), full=0.0), replace(small(400), full=0.0)
    assert len(pictures.snapshot(few, TRACE, 1).nodes) == 16
    nodes = pictures.snapshot(many, TRACE, 1).nodes
    assert [node.allocatable for node in nodes[:200]] == [node.allocatable for node in nodes[200:]]


def test_gangs_have_the_sizes_and_shapes_of_their_scene() -> None:
    picture = _picture("x8/50/13")
    shapes = {member.shape for gang in picture.gangs for member in gang.members}
    assert {len(gang.members) for gang in picture.gangs} <= {2, 4, 8, 16, 32, 64}
    assert all(gang.min_member == len(gang.members) for gang in picture.gangs)
    assert all(shape.requests[pictures.GPU] > 1 for shape in shapes)
    assert all(0 < picture.taken_at - gang.created <= pictures.MOST_AGE for gang in picture.gangs)
    assert Policy().starvation_seconds > pictures.MOST_AGE


@pytest.mark.parametrize(
    ("shapes", "gpus"), [(Shapes.SINGLE, {1}), (Shapes.PAIR, {2}), (Shapes.EIGHT, {2, 4, 8})]
)
def test_shapes_ask_for_the_gpus_that_their_name_says(shapes: Shapes, gpus: set[int]) -> None:
    asks = pictures.shapes_of(replace(small(16), shapes=shapes), TRACE)
    assert {ask.gpus for ask in asks} <= gpus
    assert asks


def test_models_become_a_rule_about_labels() -> None:
    trace = Trace(
        (Machine(9_000, GIBI, 2, "a"), Machine(9_000, GIBI, 2, "b")), (Ask(1, 1, 2, ("b",)),)
    )
    picture = pictures.snapshot(replace(small(2), full=0.0, gangs=1, sizes=(1,)), trace, seed=1)
    placed = planning.plan(picture, BestFit(), BestFit(), Budget()).placements
    (node,) = (assignment.node for placement in placed for assignment in placement.assignments)
    labels = {node.name: dict(node.labels) for node in picture.nodes}
    assert labels[node][pictures.MODEL] == "b"


def test_no_two_nodes_have_the_same_room_in_the_scene_of_that_name() -> None:
    picture = _picture("distinct")
    assert len({node.allocatable - node.used for node in picture.nodes}) == len(picture.nodes)


def test_every_gang_is_bound_to_one_rack_that_could_hold_a_member() -> None:
    picture = _picture("racks")
    racks = Counter(dict(node.labels)[pictures.RACK_LABEL] for node in picture.nodes)
    assert max(racks.values()) <= 32
    for gang in picture.gangs:
        (rules,) = {member.shape.node_selector for member in gang.members}
        ((key, rack),) = rules
        homes = [node for node in picture.nodes if (key, rack) in node.labels]
        assert any(gang.members[0].shape.requests.fits(node.allocatable) for node in homes)


def test_a_generated_scene_needs_no_list() -> None:
    scene = replace(_scene("100k"), nodes=300)
    empty = Trace((Machine(1, 1, 0),), TRACE.asks)
    picture = pictures.snapshot(scene, empty, seed=1)
    assert sum(node.allocatable[pictures.GPU] for node in picture.nodes) > 300


def test_a_million_pods_are_ten_on_each_node_that_has_room() -> None:
    large, base = million(1_523, 1.0)
    assert (large.nodes, base.nodes, large.gangs, base.gangs) == (100_000, 12_184, 5_000, 5_000)
    picture = pictures.snapshot(replace(large, nodes=100, gangs=6), TRACE, seed=1)
    for node in picture.nodes:
        free = node.allocatable - node.used
        has_no_room = free["cpu"] < 200 or free["memory"] < GIBI // 2
        assert node.used["pods"] >= 10 or has_no_room
    assert all(node.used.fits(node.allocatable) for node in picture.nodes)


def test_all_gangs_fit_where_nothing_is_contended() -> None:
    picture = pictures.snapshot(_scene("uncontended", scale=0.1), TRACE, seed=1)
    found = planning.plan(picture, BestFit(), BestFit(), Budget())
    assert len(found.placements) == len(picture.gangs)


# Clocks


def test_what_a_stage_spends_in_another_counts_there() -> None:
    moments = iter([0.0, 1.0, 4.0, 10.0])
    watch = Stopwatch(lambda: next(moments))
    inner = watch.timed("inner", lambda: "answer")
    outer = watch.timed("outer", inner)
    assert outer() == "answer"
    assert watch.seconds == {"outer": 7.0, "inner": 3.0}


def test_a_call_that_fails_is_timed_too() -> None:
    moments = iter([0.0, 2.0])
    watch = Stopwatch(lambda: next(moments))

    def fails() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        watch.timed("stage", fails)()
    assert watch.seconds == {"stage": 2.0}


def test_the_planner_is_as_it_was_once_it_is_no_longer_timed() -> None:
    before = plan_checks.violations
    watch = Stopwatch()
    with watch.attached():
        assert plan_checks.violations is not before
    assert plan_checks.violations is before


@pytest.mark.parametrize("name", contenders.known())
def test_every_stage_is_seen_in_a_plan_that_starts_some_gangs_and_leaves_others(name: str) -> None:
    case = Case(Kind.PLAN, replace(_scene("x8/50/8"), nodes=40), name)
    figures = trials.measured(case, TRACE, seed=1)
    assert figures.unfinished == ""
    assert 0 < figures.gangs < case.scene.gangs
    assert set(figures.stages) == set(NAMES)
    assert all(figures.stages[stage] > 0 for stage in STAGES)
    assert sum(figures.stages.values()) == pytest.approx(figures.seconds)


# Trials


def test_a_plan_is_counted_by_what_it_places() -> None:
    case = Case(Kind.PLAN, replace(_scene("x8/50/8"), nodes=40), "bestfit", Objective.MEMBERS)
    figures = trials.measured(case, TRACE, seed=1)
    picture = pictures.snapshot(case.scene, TRACE, seed=1)
    found = planning.plan(picture, BestFit(), BestFit(), Budget(), Policy(Objective.MEMBERS))
    chosen = {
        assignment.uid for placement in found.placements for assignment in placement.assignments
    }
    members = [m for gang in picture.gangs for m in gang.members if m.uid in chosen]
    assert figures.value == figures.placed == len(members)
    assert figures.gpus == sum(m.shape.requests[pictures.GPU] for m in members)
    assert figures.members == sum(len(gang.members) for gang in picture.gangs)
    assert figures.peak_megabytes > 10


def test_of_many_priorities_the_first_without_a_proof_counts() -> None:
    """Best fit proves nothing, so no bound is known."""
    (scene,) = (one for one in unlike(0.1) if one.twist is Twist.PRIORITIES)
    scene = replace(scene, nodes=2, gangs=20)
    exact, quick = (
        trials.measured(Case(Kind.PLAN, scene, name), TRACE, seed=1) for name in ("ilp", "bestfit")
    )
    assert exact.proved
    assert exact.bound == exact.value
    assert quick.bound is None


def test_the_exact_strategy_reaches_its_bound_and_the_quick_one_does_not_exceed_it() -> None:
    scene = replace(_scene("x8/50/8"), nodes=40)
    exact, quick = (
        trials.measured(Case(Kind.PLAN, scene, name), TRACE, seed=1) for name in ("ilp", "bestfit")
    )
    assert exact.bound == exact.value >= quick.value > 0
    assert exact.proved


def test_one_argmin_per_member_places_no_more_than_there_is_room_for() -> None:
    figures = trials.measured(Case(Kind.ARGMIN, small(40), "bestfit"), TRACE, seed=1)
    assert (
        0
        < figures.other_value
        <= sum(len(gang.members) for gang in pictures.snapshot(small(40), TRACE, 1).gangs)
    )
    assert figures.seconds > 0
    assert figures.other_seconds > 0


def test_the_plainest_program_finds_the_same_value() -> None:
    figures = trials.measured(Case(Kind.PLAIN, small(10), "ilp"), TRACE, seed=1)
    assert figures.unfinished == ""
    assert figures.value == figures.other_value > 0


def test_a_program_that_is_not_solved_in_time_has_no_value() -> None:
    problem = trials._problem(pictures.snapshot(small(12), TRACE, 1), Policy())
    assert baselines.variable_per_pod_and_node(problem, seconds=0.0) is None


def test_a_cycle_with_nothing_changed_is_measured_once_the_plan_is_carried_out() -> None:
    case = Case(Kind.UNCHANGED, replace(_scene("x8/50/8"), nodes=40), "ilp")
    figures = trials.measured(case, TRACE, seed=1)
    assert 0 < figures.value < figures.other_value
    assert figures.seconds > 0
    assert figures.other_seconds > 0


def test_cycles_are_measured_beside_others_pods_and_once_all_that_fits_has_started() -> None:
    case = Case(Kind.CYCLE, crowded(0.01), "ilp")
    figures = trials.measured(case, TRACE, seed=1)
    assert figures.unfinished == ""
    assert figures.value > 0
    assert figures.other_value == 10 * case.scene.nodes + figures.value
    assert figures.other_seconds > 0
    assert 0 < figures.blocked_seconds < figures.seconds + figures.other_seconds + 60
    results = _results((replace(case, scene=crowded(1.0)), figures))
    assert _word(results, "event loop blocked")[0] == figures.blocked_seconds
    assert "one of others' pods changed" in _text(tables.comparisons(results))


def _with_queues() -> Case:
    return Case(Kind.QUEUES, replace(queued(100, 1.0), nodes=2_000, gangs=300), "ilp")


def test_the_scene_of_queues_has_all_gangs_in_leaves_of_three_levels_and_some_run() -> None:
    picture = pictures.snapshot(_with_queues().scene, TRACE, seed=1)
    tree = QueueTree.of(picture.queues)
    assert len(picture.queues) == queue_tree.QUEUES == 100
    assert (tree.height, [*findings(picture.queues, {GPU: 10**9})]) == (3, [])
    assert all(tree.is_leaf(gang.queue) for gang in picture.gangs)
    assert len({gang.queue for gang in picture.gangs if gang.members[0].node is None}) > 60
    running = [gang for gang in picture.gangs if gang.members[0].node is not None]
    assert len(running) == len(picture.gangs) - 300 == len(picture.start_records) > 10
    without = queue_tree.without_queues(picture)
    assert (without.gangs, without.queues) == (picture.gangs, ())


def test_plans_with_queues_are_measured_beside_plans_without() -> None:
    case = _with_queues()
    figures = trials.measured(case, TRACE, seed=1)
    assert figures.unfinished == ""
    assert figures.at_limit >= queue_tree.QUEUES / 2
    assert 0 < figures.value < figures.other_value
    bound = 2 * figures.value
    results = _results((case, replace(figures, seconds=3.0, other_seconds=2.0, bound=bound)))
    assert _word(results, "whole plan with 100 queues") == (1.5, "reached")
    assert _word(results, "value of a plan with 100 queues") == (0.5, "not reached")
    part = figures.at_limit / queue_tree.QUEUES
    assert _word(results, "part of 100 queues") == (part, "reached, and the aim")
    assert f"{figures.at_limit} of 100 queues at a limit" in _text(tables.comparisons(results))


def test_without_a_bound_nobody_knows_how_good_a_plan_with_queues_is() -> None:
    results = _results((_with_queues(), Figures(seconds=3.0, other_seconds=2.0)))
    assert _word(results, "value of a plan with 100 queues")[1] == "not measured"


def test_plans_with_preferred_racks_are_measured_beside_plans_without() -> None:
    case = Case(Kind.NETWORK, networked(0.2), "ilp")
    picture = pictures.snapshot(case.scene, TRACE, seed=1)
    assert (len(picture.nodes), len(picture.gangs)) == (504, 16)
    figures = trials.measured(case, TRACE, seed=1)
    assert figures.unfinished == ""
    assert figures.value == figures.other_value > 0
    before, without, with_preference = figures.where.values()
    assert with_preference["racks a gang"] < without["racks a gang"]
    assert with_preference["rack"] <= before["rack"]
    lines = _text(tables.domains(_results((case, figures)))).splitlines()
    assert [line.split()[-1] for line in lines[4:7]] == [
        str(int(row["zone"])) for row in figures.where.values()
    ]


def test_half_of_the_gpus_are_devices_that_half_of_the_gangs_claim() -> None:
    picture = pictures.snapshot(_claiming().scene, TRACE, 1)
    made = device_pools.pools(picture)
    gpus = sum(node.allocatable[GPU] for node in picture.nodes)
    left = sum(node.allocatable[GPU] for node in made.picture.nodes)
    assert 0.4 * gpus < left < 0.6 * gpus
    assert sum(len(item.devices) for item in made.slices) == gpus - left
    used = [claim for claim in made.claims if claim.is_allocated]
    before, after = (sum(node.used[GPU] for node in of.nodes) for of in (picture, made.picture))
    assert sum(len(claim.allocated or ()) for claim in used) == before - after > 0
    members = [member for gang in made.picture.gangs for member in gang.members]
    names = {claim.key.name for claim in made.claims if not claim.is_allocated}
    assert names == {own.claim for member in members for own in member.device_claims}
    assert all(bool(pod.device_claims) is (pod.shape.requests[GPU] == 0) for pod in members)


def test_a_claim_selects_the_models_that_its_pod_accepts() -> None:
    gang = pictures._gang(0, 1, pictures._shape(Ask(1, 1, 2, ("a", "b"))), 0.0)
    (request,) = device_pools._claim(gang.members[0]).requests
    assert request.count == 2
    assert request.selectors == ('device.attributes["gpu.example.com"].model in ["a", "b"]',)


def test_plans_with_devices_are_measured_beside_plans_without() -> None:
    figures = trials.measured(_claiming(), TRACE, seed=1)
    assert figures.unfinished == ""
    assert figures.bound is not None
    assert 0 < figures.value <= figures.bound
    results = _results((_claiming(), replace(figures, seconds=3.0, other_seconds=2.0)))
    assert _word(results, "whole plan with devices") == (1.5, "reached")


def _claiming() -> Case:
    return Case(Kind.DEVICES, claiming(100, 0.2), "ilp")


def test_plans_in_which_gangs_end_are_measured_beside_plans_without() -> None:
    case = Case(Kind.PREEMPTION, preempting(0.04), "ilp")
    picture = pictures.snapshot(case.scene, TRACE, seed=1)
    *running, waits = sorted(picture.gangs, key=lambda gang: gang.members[0].node is None)
    assert (len(picture.nodes), len(running), len(waits.members)) == (78, 200, 64)
    assert all(node.used[GPU] == node.allocatable[GPU] for node in picture.nodes[:-1])
    figures = trials.measured(case, TRACE, seed=1)
    assert figures.unfinished == ""
    assert figures.ended >= 64 / max(borrowers.SIZES)
    assert figures.cost == 1  # proved by counting
    results = _results((case, replace(figures, seconds=3.0, other_seconds=2.0)))
    assert _word(results, "plan in which gangs end for another") == (1.5, "reached")
    text = _text(tables.comparisons(results))
    assert f"{figures.ended} gangs end, for 1 times the bound of their cost" in text


def test_a_plan_in_which_no_gang_ends_has_no_figures() -> None:
    case = Case(Kind.PREEMPTION, small(16), "ilp")
    assert trials.measured(case, TRACE, seed=1).unfinished == "wrong: nobody claims"


def test_plans_with_required_racks_are_measured_beside_plans_without() -> None:
    scenes = required(0.1)
    measured = []
    for scene, kind in ((scenes[1], Kind.TOPOLOGY), (scenes[1], Kind.REFUSAL)):
        case = Case(kind, scene, "ilp")
        figures = trials.measured(case, TRACE, seed=1)
        assert figures.unfinished == ""
        measured.append((case, figures))
    (_, plan), (_, refusal) = measured
    assert 0 < plan.value <= (plan.bound or 0)
    assert (refusal.value, refusal.proved) == (0, True)
    assert refusal.other_value > 0


def test_figures_of_required_racks_are_judged() -> None:
    *large, small = (Case(Kind.TOPOLOGY, scene, "ilp") for scene in required(1.0))
    refusal = Case(Kind.REFUSAL, required(1.0)[1], "ilp")
    plan = Figures(seconds=3.0, other_seconds=2.0, value=98, bound=100)
    results = _results(
        *((case, plan) for case in large),
        (small, replace(plan, seconds=1.0)),
        (refusal, Figures(seconds=1.0, other_seconds=4.0)),
    )
    assert _word(results, "value with racks") == (0.98, "reached")
    assert _word(results, "whole plan with racks") == (1.5, "reached, and the aim")
    assert _word(results, "plan with racks") == (3.0, "reached, and the aim")
    assert _word(results, "refusal") == (0.25, "not reached")


def test_plans_in_few_racks_are_measured_beside_a_program_over_racks() -> None:
    cases = [Case(Kind.RACK_PROGRAM, scene, "ilp") for scene in few_racks(0.2)]
    measured = [trials.measured(case, TRACE, seed=1) for case in cases]
    for figures in measured:
        assert figures.unfinished == ""
        assert figures.value <= figures.other_value <= (figures.bound or 0)
        assert figures.other_bound == figures.other_value
    assert any(figures.value for figures in measured)


def test_plans_must_be_worth_what_the_program_over_racks_is() -> None:
    text = "value over that of a MILP over racks, 48 racks"
    equal = Figures(seconds=1.0, value=96, bound=98, other_value=96, other_bound=96)
    first, *others = [Case(Kind.RACK_PROGRAM, scene, "ilp") for scene in few_racks(1.0)]

    def judged(figures: Figures) -> tuple[str, float, str]:
        results = _results((first, figures), *((case, equal) for case in others))
        (row,) = [row for row in verdicts(results) if row.text.startswith(text)]
        return row.text, row.value, row.word

    assert judged(equal) == (text, 1.0, "reached, and the aim")
    assert judged(replace(equal, value=72)) == (text, 0.75, "not reached")
    unsolved = replace(equal, other_bound=100)
    assert judged(unsolved) == (f"{text}, which has a gap of 4.00%", 1.0, "reached, and the aim")
    (_, _, word) = judged(Figures(unfinished="did not finish in 120 s"))
    assert word == "not measured"
    console = Console(width=300, file=io.StringIO(), record=True)
    console.print(tables.comparisons(_results((first, unsolved))))
    assert "bounds: 98 of the plan, 100 of the program" in console.export_text()


def test_a_case_in_a_process_of_its_own_admits_what_it_would_admit_here() -> None:
    case = Case(Kind.PLAN, small(16), "bestfit", Objective.GANGS)
    source = Source(seed=3)
    far, near = alone(case, source, limit=math.inf), child.answer(child.asked(case, source))
    assert far.unfinished == ""
    assert (far.value, far.gpus, far.placed) == (near.value, near.gpus, near.placed)


def test_a_process_of_its_own_collects_garbage_as_the_operator_does() -> None:
    assert child.GC_THRESHOLD == GC_THRESHOLD


def test_commits_before_there_were_loads_know_the_other_scenes() -> None:
    case = Case(Kind.PLAN, small(16), "bestfit")
    scene = json.loads(child.asked(case, Source()))["scene"]
    assert scene.keys().isdisjoint({"load", "scale"})
    assert Scene.of(scene) == case.scene
    loaded = replace(case.scene, load="kueue", scale=0.5)
    assert Scene.of(loaded.plain) == loaded


def test_a_case_that_takes_too_long_is_ended() -> None:
    case = Case(Kind.PLAN, small(16), "bestfit")
    assert alone(case, Source(), limit=0.01).unfinished == "did not finish in 0.01 s"


def test_a_case_that_breaks_says_why() -> None:
    case = Case(Kind.PLAN, small(16), "nobody")
    assert alone(case, Source(), limit=math.inf).unfinished == "failed: KeyError: 'nobody'"


# Agenda


def test_every_scene_is_measured_by_every_strategy() -> None:
    names = ("bestfit", "ilp")
    agenda = Agenda.of(1_523, 1.0, names, ())
    measured = {
        (case.scene.name, case.strategy)
        for case in (*agenda.decisive, *agenda.survey)
        if case.kind is Kind.PLAN
    }
    hard_scenes = (*hard(1_523, 1.0), ruled(1_523, 1.0), *unlike(1.0))
    others = (*hard_scenes, many(1_523, 1.0), *million(1_523, 1.0))
    scenes = [scene.name for scene in (*grid(1_523, 1.0), *others)]
    assert measured == {(scene, name) for scene in scenes for name in names}
    assert agenda.climbs


def test_large_scenes_are_measured_for_every_objective() -> None:
    agenda = Agenda.of(1_523, 1.0, ("ilp",), ())
    for name in (cases.LARGE_8, cases.LARGE_13, cases.LARGE_ALL):
        found = [
            case.objective
            for case in (*agenda.decisive, *agenda.survey)
            if case.scene.name == name and case.kind is Kind.PLAN
        ]
        assert sorted(found) == sorted(Objective)


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (("racks",), ["racks"]),
        (("x1/80/*",), ["x1/80/8", "x1/80/13", "x1/80/all"]),
        (("plain", "argmin"), ["argmin", "plain"]),
        (("nothing-like-it",), []),
    ],
)
def test_only_what_matches_is_measured(patterns: tuple[str, ...], names: Sequence[str]) -> None:
    assert list(Agenda.of(100, 1.0, ("bestfit", "ilp"), patterns).names) == names


def test_what_needs_a_strategy_that_is_not_chosen_is_left_out() -> None:
    assert not {"plain", "unchanged"} & set(Agenda.of(100, 1.0, ("bestfit",), ()).names)


# Results


def _case(name: str, strategy: str, objective: Objective = Objective.RESOURCES) -> Case:
    return Case(Kind.PLAN, _scene(name, scale=1.0), strategy, objective)


def _figures(seconds: float = 1.0, value: int = 90, bound: int | None = 100) -> Figures:
    stages = dict.fromkeys(NAMES, 0.0) | {"solve": seconds}
    return Figures(
        seconds=seconds, stages=stages, value=value, bound=bound, gangs=3, peak_megabytes=300
    )


def _results(*pairs: tuple[Case, Figures]) -> Results:
    return Results(Measured(case, figures) for case, figures in pairs)


def test_the_least_bound_of_any_strategy_holds_for_all() -> None:
    results = _results(
        (_case("racks", "bestfit"), _figures(value=80, bound=None)),
        (_case("racks", "ilp"), _figures(bound=120)),
        (_case("racks", "ilp-highs"), _figures(bound=100)),
    )
    key = Key(Kind.PLAN, "racks", "bestfit", Objective.RESOURCES)
    assert results.bound(key) == 100
    assert results.reached(key) == 0.8


def test_of_many_priorities_a_bound_holds_for_its_own_strategy() -> None:
    (scene,) = (one for one in unlike(1.0) if one.twist is Twist.PRIORITIES)
    exact, quick = (Case(Kind.PLAN, scene, name) for name in ("ilp", "bestfit"))
    results = _results((exact, _figures()), (quick, _figures(value=80, bound=None)))
    first, second = results.cases()
    assert results.reached(first) == 0.9
    assert math.isnan(results.reached(second))


def test_medians_leave_out_what_did_not_finish() -> None:
    case = _case("racks", "ilp")
    late = Figures(unfinished="did not finish in 9 s")
    results = _results((case, _figures(1)), (case, late), (case, _figures(3)), (case, _figures(2)))
    (key,) = results.cases()
    assert results.median(key, lambda one: one.seconds) == 2
    assert results.trouble(key) == "did not finish in 9 s"


def _word(results: Results, start: str) -> tuple[float, str]:
    (row,) = (row for row in verdicts(results) if row.text.startswith(start))
    return row.value, row.word


def test_pods_planned_per_second_are_those_of_the_whole_plan_of_ilp() -> None:
    case = Case(Kind.PLAN, many(1_523, 1.0), "ilp")
    results = _results((case, replace(_figures(2.0, 0), placed=20_000)))
    assert _word(results, "pods planned per second") == (10_000, "reached")


def test_a_plan_beside_a_million_pods_is_held_against_fewer_nodes() -> None:
    large, base = (Case(Kind.PLAN, scene, "ilp") for scene in million(1_523, 1.0))
    results = _results((large, _figures(9.0, 995, 1000)), (base, _figures(1.5)))
    assert _word(results, "plan beside a million pods") == (6.0, "reached")
    assert _word(results, "gap beside a million")[1] == "reached"
    assert _word(results, "peak RSS beside a million") == (300, "reached, and the aim")


def test_ratios_that_nobody_measured_say_so() -> None:
    assert {row.word for row in verdicts(_results())} == {"not measured"}


@pytest.mark.parametrize(
    ("value", "word"), [(1000, "reached, and the aim"), (990, "reached"), (989, "not reached")]
)
def test_the_value_admitted_is_held_against_the_bound(value: int, word: str) -> None:
    case = _case(cases.LARGE_8, "ilp", Objective.GANGS)
    results = _results((case, _figures(value=value, bound=1000)))
    assert _word(results, "value of ilp over the bound, gangs, 8") == (value / 1000, word)


def test_ilp_is_held_against_bestfit_and_against_itself_on_fewer_nodes() -> None:
    results = _results(
        (_case(cases.LARGE_8, "ilp"), _figures(1.5)),
        (_case(cases.LARGE_8, "bestfit"), _figures(1.0)),
        (_case(cases.BASE_8, "ilp"), _figures(0.1)),
    )
    assert _word(results, "whole plan of ilp over that of bestfit, 8") == (1.5, "reached")
    assert _word(results, "plan time of ilp") == (15.0, "not reached")
    assert _word(results, "peak RSS of ilp") == (300, "reached, and the aim")


def test_members_per_second_are_those_that_were_placed() -> None:
    case = Case(Kind.ARGMIN, _scene(cases.LARGE_8), "bestfit")
    figures = Figures(seconds=1.0, value=100, other_seconds=10.0, other_value=50)
    assert _word(_results((case, figures)), "members/s") == (20.0, "reached, and the aim")


def _plain(nodes: int, value: int, unfinished: str = "") -> tuple[Case, Figures]:
    figures = Figures(
        seconds=0.05, other_seconds=nodes, value=value, other_value=7, unfinished=unfinished
    )
    return Case(Kind.PLAIN, small(nodes), "ilp"), figures


def test_the_largest_scene_that_the_plain_program_solved_decides() -> None:
    results = _results(_plain(4, 7), _plain(12, 7), _plain(16, 7, "not solved"))
    value, word = _word(results, "times faster than a variable per pod and node, 12 nodes")
    assert value == pytest.approx(240)
    assert word == "reached"


def test_a_program_that_disagrees_on_the_value_is_no_victory() -> None:
    results = _results(_plain(4, 8), _plain(12, 7))
    assert _word(results, "times faster") == (0.0, "not reached")


def test_a_cycle_with_nothing_changed_is_held_against_a_full_plan() -> None:
    case = Case(Kind.UNCHANGED, _scene(cases.LARGE_8), "ilp")
    results = _results((case, Figures(seconds=0.01, other_seconds=1.0)))
    assert _word(results, "cycle with nothing changed") == (0.01, "reached")


def test_a_hard_scene_without_figures_or_bound_is_never_within_the_budget() -> None:
    good, late = (
        (_case("racks", "ilp"), _figures(3.0, 99)),
        (
            _case("64-shapes", "ilp"),
            Figures(unfinished="did not finish in 9 s"),
        ),
    )
    assert _word(_results(good), "slowest hard scene") == (0.1, "reached, and the aim")
    assert _word(_results(good), "largest gap")[0] == pytest.approx(0.01)
    assert _word(_results(good), "rules on a fifth")[1] == "not measured"
    rules = _case("rules", "ilp"), _figures(6.0, 98)
    assert _word(_results(good, rules), "rules on a fifth") == (0.2, "reached, and the aim")
    assert _word(_results(good, rules), "gap with rules")[0] == pytest.approx(0.02)
    assert _word(_results(good, late), "slowest hard scene") == (math.inf, "not reached")
    assert _word(_results(good, late), "largest gap") == (math.inf, "not reached")


# Printing


def _text(table: Table) -> str:
    output = io.StringIO()
    Console(file=output, width=240).print(table)
    return output.getvalue()


def test_tables_show_medians_gaps_and_what_did_not_finish() -> None:
    results = _results(
        (_case("racks", "ilp"), _figures(2.5)),
        (_case("racks", "bestfit"), Figures(unfinished="did not finish in 9 s")),
    )
    text = _text(tables.plans(results))
    assert "10.00%" in text
    assert "2.500" in text
    assert "CBC" in text
    assert "did not finish in 9 s" in text
    beside = _text(tables.comparisons(_results(_plain(4, 7))))
    assert "0.050" in beside
    assert "4.000" in beside


def test_ratios_at_another_scale_decide_nothing() -> None:
    rows = verdicts(_results())
    assert "decides nothing" in _text(tables.ratios(rows, 0.5))
    assert "decides nothing" not in _text(tables.ratios(rows, 1.0))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.9991, "0.9991"), (1, "1"), (12.345, "12.35"), (4321.0, "4,321"), (math.inf, "never")],
)
def test_ratios_are_written_as_finely_as_they_matter(value: float, text: str) -> None:
    assert tables.ratio(value) == text


def test_json_holds_every_round() -> None:
    measured = [Measured(_case("racks", "ilp"), _figures(), n) for n in (0, 1)]
    values = json.loads(json.dumps(plain_values(measured)))
    assert [value["round"] for value in values] == [0, 1]
    assert values[0]["engine"] == "CBC"
    assert values[0]["stages"]["solve"] == 1.0


def test_plots_are_written_for_what_was_measured(tmp_path: Path) -> None:
    results = _results(
        (_case(cases.BASE_8, "ilp"), _figures()), (_case(cases.LARGE_8, "ilp"), _figures(3))
    )
    written = plots.write(results, tmp_path / "new")
    assert [path.name for path in written] == ["growth.png", "stages.png", "value.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)
    assert plots.write(_results(), tmp_path) == []


def test_one_command_measures_prints_and_draws(tmp_path: Path) -> None:
    what = ["--scale", "0.01", "--rounds", "1", "--only", "one-gang", "--strategies", "bestfit"]
    result = CliRunner().invoke(main, [*what, "-o", "json", "--plots", str(tmp_path)])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [one["scene"] for one in found["measured"]] == ["one-gang"]
    assert found["settings"]["scale"] == 0.01
    assert "reached" in {row["verdict"] for row in found["ratios"]} | {"reached"}
    assert (tmp_path / "stages.png").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--only", "nothing"], "nothing is called so; there are x8/50/8"),
        (["--strategies", "nobody"], "nobody; there are bestfit"),
        (["--nodes", "missing.csv"], "does not exist"),
        (["--scale", "2"], "2.0 is not in the range"),
    ],
)
def test_a_wrong_option_is_refused_in_a_sentence(arguments: Sequence[str], complaint: str) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert complaint in " ".join(result.output.replace("│", "").split())


def test_a_file_that_is_no_list_is_refused_with_its_name(tmp_path: Path) -> None:
    path = _csv(tmp_path, "n.csv", "a,b", "1,2")
    result = CliRunner().invoke(main, ["--nodes", str(path), "--list"])
    assert result.exit_code == 2
    assert "there is no column cpu_milli" in result.output


def test_all_names_can_be_listed() -> None:
    result = CliRunner().invoke(main, ["--list", "--strategies", "bestfit,ilp"])
    assert result.exit_code == 0
    assert {"x8/50/8", "racks", "plain", "argmin", "unchanged"} <= set(result.output.split())
    assert set(STRATEGIES) <= set(contenders.known())


def test_consecutive_scenes_of_the_plain_program_grow() -> None:
    assert all(before < after for before, after in pairwise(cases.PLAIN_SIZES))


# Against another commit


def test_another_tree_is_measured_by_its_own_operator(tmp_path: Path) -> None:
    case = Case(Kind.PLAN, small(16), "bestfit")
    figures = alone(case, Source(), limit=math.inf, tree=tmp_path)
    assert figures.unfinished.startswith("failed: ")


def test_a_commit_that_git_does_not_know_is_refused() -> None:
    result = CliRunner().invoke(main, ["--against", "no-such-commit", "--only", "one-gang"])
    assert result.exit_code == 2
    assert "no-such-commit" in result.output


def test_another_commit_gives_tables_only(tmp_path: Path) -> None:
    what = ["--against", "HEAD", "--only", "one-gang", "--plots", str(tmp_path)]
    result = CliRunner().invoke(main, what)
    assert result.exit_code == 2
    assert "prints tables" in result.output


def test_every_case_is_measured_here_and_there_and_who_is_first_turns(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[bool] = []

    def alone_there(_case: Case, _source: Source, _limit: float, tree: Path) -> Figures:
        asked.append(tree == tmp_path)
        return _figures(2.0 if tree == tmp_path else 3.0)

    monkeypatch.setattr(against, "alone", alone_there)
    pair = against.played(
        [_case(cases.BASE_8, "ilp"), _case(cases.LARGE_8, "ilp")],
        Source(),
        rounds=2,
        patience=1,
        tree=tmp_path,
        console=Console(file=io.StringIO()),
    )
    assert asked == [True, False, False, True, False, True, True, False]
    text = _text(against.beside(pair))
    assert "1.5" in text
    assert "slower" in text


def test_a_comparison_that_is_interrupted_has_what_was_measured_on_both_sides(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = 0

    def alone_there(*_about: object) -> Figures:
        nonlocal asked
        asked += 1
        if asked == 4:
            raise KeyboardInterrupt
        return _figures(float(asked))

    monkeypatch.setattr(against, "alone", alone_there)
    pair = against.played(
        [_case(cases.BASE_8, "ilp"), _case(cases.LARGE_8, "ilp")],
        Source(),
        rounds=1,
        patience=1,
        tree=tmp_path,
        console=Console(file=io.StringIO()),
    )
    assert not pair.is_whole
    (key,) = [key for kind in Kind for key in pair.here.cases(kind)]
    assert [side.median(key, lambda one: one.seconds) for side in (pair.here, pair.there)] == [2, 1]


@pytest.mark.parametrize(
    ("here", "there", "times", "word"),
    [
        ((2.0, 1.0), (1.9, 1.0), 2.0 / 1.9, "kept"),
        ((2.4, 1.0), (2.0, 1.0), 1.2, "worse"),
    ],
)
def test_a_ratio_may_be_a_tenth_worse_than_there(
    here: tuple[float, float], there: tuple[float, float], times: float, word: str
) -> None:
    ours, theirs = (
        _results(
            (_case(cases.LARGE_8, "ilp"), _figures(ilp)),
            (_case(cases.LARGE_8, "bestfit"), _figures(bestfit)),
        )
        for ilp, bestfit in (here, there)
    )
    pair = against.Pair(ours, theirs)
    row = next(row for row in against.worse(pair) if row.text.startswith("whole plan of ilp"))
    assert row.times == pytest.approx(times)
    assert row.word == word
    assert word in _text(against.ratios([row]))


@pytest.mark.parametrize(("sense", "times"), [(Sense.AT_LEAST, 2.0), (Sense.AT_MOST, 0.5)])
def test_what_is_worse_depends_on_which_side_is_good(sense: Sense, times: float) -> None:
    assert against.Worse("", 1.0, 2.0, sense).times == times
    assert against.Worse("", 1.0, 1.0, sense).times == 1
    assert against.Worse("", 0.0, 0.0, sense).word == "kept"
    assert against.Worse("", math.nan, 0.0, sense).word == "not measured"
