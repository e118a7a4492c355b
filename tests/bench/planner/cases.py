"""Which cases there are: those that decide, several times over, and a survey of everything else."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from tutti.model.decisions import Objective

from .contenders import BESTFIT, ILP, KUEUE
from .scenes import (
    claiming,
    crowded,
    few_racks,
    grid,
    hard,
    kueue_loads,
    many,
    million,
    networked,
    preempting,
    queued,
    required,
    ruled,
    unlike,
)
from .trials import Case, Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from .scenes import Scene

LARGE_8, LARGE_13, LARGE_ALL, BASE_8 = "x8/50/8", "x8/50/13", "x8/50/all", "x1/50/8"
# Nodes of the small scenes, up to the last that the plain program solves.
PLAIN_SIZES = (8, 16, 32, 64, 96, 128, 160, 192, 224, 256, 320, 384)
PLAIN_RUNG = 64  # of these, what two commits are compared by


def label(case: Case) -> str:
    """By what ``--only`` chooses it."""
    return case.scene.name if case.kind in (Kind.PLAN, Kind.KUEUE) else case.kind.value


def decisive(listed: int, scale: float, strategies: Sequence[str]) -> Sequence[Case]:
    """What the ratios are made of, without the ladder of small scenes; measured in every round."""
    scenes = {scene.name: scene for scene in grid(listed, scale)}
    large = scenes[LARGE_8]
    cases = [
        Case(Kind.PLAN, scenes[name], strategy, objective)
        for name in (LARGE_8, LARGE_13)
        for objective in Objective
        for strategy in strategies
    ]
    more = [scenes[BASE_8], *hard(listed, scale), ruled(listed, scale), many(listed, scale)]
    more += [*unlike(scale), *million(listed, scale)]
    cases += _plans(more, strategies)
    beside = ((Kind.ARGMIN, BESTFIT), (Kind.UNCHANGED, ILP))
    cases += [Case(kind, large, name) for kind, name in beside if name in strategies]
    if ILP in strategies:
        cases.append(Case(Kind.QUEUES, queued(listed, scale), ILP))
        cases.append(Case(Kind.DEVICES, claiming(listed, scale), ILP))
        cases.append(Case(Kind.NETWORK, networked(scale), ILP))
        cases.append(Case(Kind.PREEMPTION, preempting(scale), ILP))
        scenes_of_racks = required(scale)
        cases += [Case(Kind.TOPOLOGY, scene, ILP) for scene in scenes_of_racks]
        cases.append(Case(Kind.REFUSAL, scenes_of_racks[1], ILP))
        cases += [Case(Kind.RACK_PROGRAM, scene, ILP) for scene in few_racks(scale)]
        cases.append(Case(Kind.CYCLE, crowded(scale), ILP))
    return cases


def survey(listed: int, scale: float, strategies: Sequence[str]) -> Sequence[Case]:
    """The rest of the grid; measured once."""
    scenes = [
        scene for scene in grid(listed, scale) if scene.name not in (LARGE_8, LARGE_13, BASE_8)
    ]
    others = [objective for objective in Objective if objective is not Objective.RESOURCES]
    return [
        *_plans(scenes, strategies),
        *(
            Case(Kind.PLAN, scene, strategy, objective)
            for scene in scenes
            if scene.name == LARGE_ALL
            for objective in others
            for strategy in strategies
        ),
    ]


def of_kueue(
    scale: float, strategies: Sequence[str], patterns: Collection[str], *, runs_kueue: bool
) -> Sequence[Case]:
    """Kueue's load; all of it takes long, and is measured only if a pattern chooses it."""
    planners = [name for name in strategies if name in (BESTFIT, ILP)]
    planners += [KUEUE] if runs_kueue else []
    first, *whole = kueue_loads(scale)
    scenes = [first, *(scene for scene in whole if patterns)]
    return [
        Case(Kind.KUEUE, scene, strategy)
        for scene in scenes
        if is_chosen(scene.name, patterns)
        for strategy in planners
    ]


def chosen(cases: Iterable[Case], patterns: Collection[str]) -> Sequence[Case]:
    """The cases whose label matches any of the patterns; all, if there are none."""
    return [case for case in cases if is_chosen(label(case), patterns)]


def is_chosen(name: str, patterns: Collection[str]) -> bool:
    """Whether any of the patterns matches; so it is if there are none."""
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _plans(scenes: Iterable[Scene], strategies: Sequence[str]) -> Sequence[Case]:
    return [Case(Kind.PLAN, scene, strategy) for scene in scenes for strategy in strategies]
