"""The ratios that decide, from the medians of one run, each against what it must reach."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tutti.model.decisions import Objective
from tutti.strategies.problem import Budget

from ..e2e.verdicts import Sense, Verdict
from . import queue_tree
from .cases import BASE_8, LARGE_8, LARGE_13
from .contenders import BESTFIT, ILP
from .results import Key
from .scenes import (
    claiming,
    crowded,
    few_racks,
    hard,
    many,
    million,
    preempting,
    queued,
    required,
    ruled,
    unlike,
)
from .trials import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from .results import Results
    from .trials import Figures

NEVER = math.inf
_HARD = frozenset(scene.name for scene in hard(1, 1.0))
_UNLIKE = frozenset(scene.name for scene in unlike(1.0))
_PLAIN = frozenset(name for name in _UNLIKE if name.startswith("plain/")) | {
    "port-each",
    "resources",
}
_RULED = frozenset({ruled(1, 1.0).name})
_SHAPES: Mapping[str, str] = {LARGE_8: "8 shapes", LARGE_13: "13 shapes"}
_WHOLE_PLAN: Mapping[str, tuple[float, float]] = {LARGE_8: (1.5, 1.2), LARGE_13: (2.0, 1.5)}
_CPU_HEAVY = frozenset({"64-shapes"})


def verdicts(results: Results) -> Sequence[Verdict]:
    """All rows, in their order; those of cases that were not measured say so."""
    least, most = Sense.AT_LEAST, Sense.AT_MOST
    rows = [
        Verdict(
            f"value of ilp over the bound, {objective}, {_SHAPES[scene]}",
            results.reached(_plan(scene, ILP, objective)),
            least,
            0.99,
            0.999,
        )
        for scene in _SHAPES
        for objective in Objective
    ]
    rows += [
        Verdict(
            f"whole plan of ilp over that of bestfit, {words}",
            _seconds(results, _plan(scene, ILP)) / _seconds(results, _plan(scene, BESTFIT)),
            most,
            *_WHOLE_PLAN[scene],
        )
        for scene, words in _SHAPES.items()
    ]
    growth = _seconds(results, _plan(LARGE_8, ILP)) / _seconds(results, _plan(BASE_8, ILP))
    unchanged = Key(Kind.UNCHANGED, LARGE_8, ILP, Objective.RESOURCES)
    still = results.median(unchanged, lambda one: one.seconds / one.other_seconds)
    queues = Key(Kind.QUEUES, queued(1, 1.0).name, ILP, Objective.RESOURCES)
    slower = results.median(queues, lambda one: one.seconds / one.other_seconds)
    devices = Key(Kind.DEVICES, claiming(1, 1.0).name, ILP, Objective.RESOURCES)
    claims = results.median(devices, lambda one: one.seconds / one.other_seconds)
    reclaim = Key(Kind.PREEMPTION, preempting(1.0).name, ILP, Objective.RESOURCES)
    longer = results.median(reclaim, lambda one: one.seconds / one.other_seconds)
    memory = _largest(results, lambda one: one.peak_megabytes + one.engine_megabytes)
    return (
        *rows,
        Verdict("members/s of bestfit over one argmin per member", _pace(results), least, 1, 10),
        Verdict(_plain_words(results), _plain(results), least, 200, 1_000),
        Verdict("plan time of ilp, 8 times the nodes", growth, most, 10, 4),
        Verdict("cycle with nothing changed over a full plan", still, most, 0.02, 0.002),
        Verdict("whole plan with 100 queues over that without", slower, most, 1.5, 1.1),
        Verdict(
            "part of 100 queues that are at a limit",
            results.median(queues, lambda one: one.at_limit / queue_tree.QUEUES),
            least,
            0.5,
            0.5,
        ),
        Verdict(
            "value of a plan with 100 queues over its bound",
            results.median(queues, _reached),
            least,
            0.99,
            0.999,
        ),
        Verdict(
            "whole plan with devices on half of the nodes over that without", claims, most, 2, 1.2
        ),
        Verdict("plan in which gangs end for another over that without", longer, most, 3, 1.2),
        Verdict("peak RSS of ilp with its engine, MB", memory, most, 800, 400),
        Verdict("slowest hard scene over the budget", _slowest(results, _HARD), most, 1, 1),
        Verdict("largest gap of the hard scenes", _widest(results, _HARD), most, 1, 0.01),
        Verdict("gap with 64 CPU-heavy shapes", _widest(results, _CPU_HEAVY), most, 0.02, 0.005),
        Verdict(
            "pods all unlike: slowest plan over the budget",
            _slowest(results, _UNLIKE, lambda one: one.seconds),
            most,
            1.1,
            0.5,
        ),
        Verdict("plain pods all unlike: largest gap", _widest(results, _PLAIN), most, 0.1, 0.03),
        Verdict(
            "pods all unlike: peak RSS with the engine, MB",
            _peak(results, _UNLIKE),
            most,
            1_000,
            400,
        ),
        Verdict(
            "rules on a fifth of the gangs, over the budget",
            _slowest(results, _RULED),
            most,
            1,
            0.5,
        ),
        Verdict(
            "event loop blocked at most, beside 50,000 pods, s", _blocked(results), most, 0.25, 0.1
        ),
        Verdict(
            "gap with rules on a fifth of the gangs", _widest(results, _RULED), most, 0.03, 0.01
        ),
        *_of_topology(results),
        *_of_a_million(results),
        Verdict("pods planned per second, gangs of 8", _planned(results), least, 10_000, 30_000),
        Verdict(
            "end of Kueue's load with ilp over that with bestfit", _ends(results), most, 1.5, 1
        ),
    )


def _of_topology(results: Results) -> Sequence[Verdict]:
    """What required racks and segments cost, and how good plans with them are."""
    *large, small = (
        Key(Kind.TOPOLOGY, scene.name, ILP, Objective.RESOURCES) for scene in required(1.0)
    )
    values = [results.median(key, _reached) for key in large]
    slower = [results.median(key, lambda one: one.seconds / one.other_seconds) for key in large]
    refusal = Key(Kind.REFUSAL, required(1.0)[1].name, ILP, Objective.RESOURCES)
    growth = _seconds(results, large[1]) / _seconds(results, small)
    share = results.median(refusal, lambda one: one.seconds / one.other_seconds)
    least, most = Sense.AT_LEAST, Sense.AT_MOST
    return (
        Verdict(
            "value with racks and segments over its bound", _worst(min, values), least, 0.97, 0.99
        ),
        Verdict(
            "whole plan with racks and segments over that without", _worst(max, slower), most, 4, 2
        ),
        Verdict("plan with racks and segments, 8 times the nodes", growth, most, 10, 4),
        Verdict("refusal of a gang that no rack holds over a plan", share, most, 0.1, 0.02),
        _of_a_rack_program(results),
    )


def _of_a_rack_program(results: Results) -> Verdict:
    """Whether plans are worth what a program over racks finds; and whether that is the best."""
    keys = [Key(Kind.RACK_PROGRAM, scene.name, ILP, Objective.RESOURCES) for scene in few_racks(1)]
    values = [
        results.median(key, lambda one: one.value / one.other_value if one.other_value else 1.0)
        for key in keys
    ]
    gaps = [
        1 - figures.other_value / figures.other_bound
        for key in keys
        for figures in results.rounds(key)
        if figures.other_bound
    ]
    gap = max(gaps, default=0.0)
    words = f", which has a gap of {gap:.2%}" if gap else ""
    text = f"value over that of a MILP over racks, 48 racks{words}"
    return Verdict(text, _worst(min, values), Sense.AT_LEAST, 1, 1)


def _of_a_million(results: Results) -> Sequence[Verdict]:
    """What a plan beside a million bound pods costs, and how good it is."""
    large, base = (scene.name for scene in million(1, 1.0))
    growth = _seconds(results, _plan(large, ILP)) / _seconds(results, _plan(base, ILP))
    gap, megabytes = _widest(results, {large}), _peak(results, {large})
    return (
        Verdict(
            "plan beside a million pods over that on an eighth of the nodes",
            growth,
            Sense.AT_MOST,
            10,
            5,
        ),
        Verdict("gap beside a million bound pods", gap, Sense.AT_MOST, 0.01, 0.001),
        Verdict("peak RSS beside a million bound pods, MB", megabytes, Sense.AT_MOST, 8_000, 4_000),
    )


def _worst(choose: Callable[[Sequence[float]], float], values: Sequence[float]) -> float:
    """The worst of the figures; not a number if one is missing."""
    return math.nan if any(map(math.isnan, values)) else choose(values)


def _reached(figures: Figures) -> float:
    """The value over the bound of the same plan; not a number where none is known."""
    return (
        math.nan
        if figures.bound is None
        else figures.value / figures.bound
        if figures.bound
        else 1.0
    )


def _plan(scene: str, strategy: str, objective: Objective = Objective.RESOURCES) -> Key:
    return Key(Kind.PLAN, scene, strategy, objective)


def _seconds(results: Results, key: Key) -> float:
    return results.median(key, lambda one: one.seconds)


def _largest(results: Results, figure: Callable[[Figures], float]) -> float:
    """The largest figure of ilp in the large scenes that decide."""
    keys = (_plan(scene, ILP, objective) for scene in _SHAPES for objective in Objective)
    values = [results.median(key, figure) for key in keys]
    return max((value for value in values if not math.isnan(value)), default=math.nan)


def _planned(results: Results) -> float:
    """Pods placed by ilp per second of the whole plan, on empty nodes."""
    return results.median(_plan(many(1, 1.0).name, ILP), lambda one: one.placed / one.seconds)


def _pace(results: Results) -> float:
    """Members placed per second, beside one argmin per member."""
    key = Key(Kind.ARGMIN, LARGE_8, BESTFIT, Objective.RESOURCES)
    ours = results.median(key, lambda one: one.value / one.seconds)
    return ours / results.median(key, lambda one: one.other_value / one.other_seconds)


def _largest_plain(results: Results) -> Key | None:
    """The largest of the small scenes that the plain program solved."""
    solved = {key: case for key, case in results.cases(Kind.PLAIN).items() if results.rounds(key)}
    return max(solved, key=lambda key: solved[key].scene.nodes, default=None)


def _plain(results: Results) -> float:
    """How much faster ilp was; nothing at all if the two ever disagreed on the value."""
    key = _largest_plain(results)
    if key is None:
        return math.nan
    solved = (each for size in results.cases(Kind.PLAIN) for each in results.rounds(size))
    if any(each.value != each.other_value for each in solved):
        return 0.0
    return results.median(key, lambda one: one.other_seconds / one.seconds)


def _plain_words(results: Results) -> str:
    key = _largest_plain(results)
    where = f", {key.scene.removeprefix('small/')} nodes" if key is not None else ""
    return f"times faster than a variable per pod and node{where}"


def _blocked(results: Results) -> float:
    key = Key(Kind.CYCLE, crowded(1.0).name, ILP, Objective.RESOURCES)
    return results.median(key, lambda one: one.blocked_seconds)


def _ends(results: Results) -> float:
    """Of the smallest load that was measured with both."""
    scenes = {key.scene for key in results.cases(Kind.KUEUE)}

    def end(scene: str, strategy: str) -> float:
        key = Key(Kind.KUEUE, scene, strategy, Objective.RESOURCES)
        return results.median(key, lambda one: one.load["end"])

    ratios = (end(scene, ILP) / end(scene, BESTFIT) for scene in sorted(scenes))
    return next((ratio for ratio in ratios if not math.isnan(ratio)), math.nan)


def _of(results: Results, names: Collection[str]) -> Sequence[Key]:
    return [key for key in results.cases() if key.strategy == ILP and key.scene in names]


def _solving(figures: Figures) -> float:
    return figures.stages["solve"]


def _slowest(
    results: Results, names: Collection[str], of: Callable[[Figures], float] = _solving
) -> float:
    """Seconds in the strategy over what it may spend; for ever, if a scene has no figures."""
    return _most(results, names, of) / Budget().seconds


def _peak(results: Results, names: Collection[str]) -> float:
    """The planner's memory with its engine's; without end, if a scene has no figures."""
    return _most(results, names, lambda one: one.peak_megabytes + one.engine_megabytes)


def _most(results: Results, names: Collection[str], of: Callable[[Figures], float]) -> float:
    keys = _of(results, names)
    if any(results.trouble(key) for key in keys):
        return NEVER
    return max((results.median(key, of) for key in keys), default=math.nan)


def _widest(results: Results, names: Collection[str]) -> float:
    """The largest gap to the bound; not one that is known, if a scene has no figures."""
    gaps = [1 - results.reached(key) for key in _of(results, names)]
    return NEVER if any(math.isnan(gap) for gap in gaps) else max(gaps, default=math.nan)
