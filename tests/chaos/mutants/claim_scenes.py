"""``python -m tests.chaos.mutants.claim_scenes``: what is wrong with claims on a few clusters.

First what ``verify`` says, then where claims are not those of the enumeration. A process of its
own, so that PYTHONPATH may name a mutant.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ...conformance.preemption import planner
from ...conformance.preemption.plans import Leaving, State
from ...conformance.preemption.rules import Extra, Job, Team, World


def _team(guarantee: int | None = None, parent: str = "root", limit: int | None = None) -> Team:
    return Team(parent, (guarantee,), (limit,))


def _runs(name: str, team: str, size: int, priority: int = 0, *, start: int = 1) -> Job:
    return Job(name, team, priority, size, (1,), start=start, nodes=(0,) * size)


def _waits(name: str, size: int, priority: int = 0) -> Job:
    return Job(name, "a", priority, size, (1,), since=2)


def _scene(teams: dict[str, Team], room: int, *jobs: Job) -> State:
    return State(World(teams, ((room,),)), jobs, now=5)


A, B = {"a": _team(4)}, {"b": _team()}
ELASTIC = replace(_runs("old", "b", 2), wishes=1, extras=(Extra(1, 0, 1),))
SCENES = (
    _scene(A, 8, _runs("own", "a", 8), _waits("new", 4)),
    _scene(A | B, 8, replace(_runs("old", "b", 8), protected=True), _waits("new", 4)),
    _scene({"a": _team()} | B, 8, _runs("other", "b", 8), _waits("new", 4, 1)),
    _scene(A | {"b": _team(4)}, 6, _runs("covered", "b", 4), _waits("new", 4)),
    _scene(
        {"p": _team(6), "a": _team(2, "p")} | B,
        8,
        *(_runs("above", "a", 5, 9), _runs("old", "b", 3), _waits("new", 2)),
    ),
    _scene(
        {"a": _team(2), "b": _team(4)},
        7,
        *(replace(_runs("first", "b", 2, 5), protected=True), _runs("large", "b", 3, 9)),
        *(_runs("small", "b", 2, start=2), _waits("new", 2)),
    ),
    _scene({"a": _team(1)} | B, 8, _runs("old", "b", 8), _waits("new", 1)),
    _scene(A | B, 3, ELASTIC, _waits("x", 1, 1), _waits("y", 3)),
    _scene({"a": _team(4, limit=3)} | B, 8, _runs("old", "b", 8), _waits("new", 4)),
    _scene(
        A | B,
        8,
        replace(_runs("x", "b", 4, start=4), lost=Fraction(9)),
        *(_runs("y", "b", 4), _waits("new", 4)),
    ),
    _scene(A | B, 8, _runs("x", "b", 4), _runs("y", "b", 4, start=4), _waits("new", 4)),
    replace(
        _scene(
            A | B, 8, _runs("old", "b", 4), replace(_waits("gone", 4), team="b"), _waits("n", 4)
        ),
        leaving=tuple(Leaving((1,), 0, 9, "gone") for _ in range(4)),
    ),
)


def main() -> None:
    """Print a sentence for each fault."""
    for scene in SCENES:
        for sentence in planner.differences(scene, planner.claim(scene)):
            print(sentence)


if __name__ == "__main__":
    main()
