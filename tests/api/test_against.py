"""Gangs that greedy schedulers may fail to place, a handful: Tutti places every one."""

from __future__ import annotations

from ..bench.e2e.contenders import NATIVE, TUTTI
from ..conformance.against import byhand
from ..conformance.against.playing import arena
from ..conformance.against.telling import sentences

# One that anybody can place, and four that are lost by putting the first member anywhere.
SOME = ("eight-on-four", "gpu-comes-last", "cpus-beside-gpus", "driver-first", "two-drivers")
PATIENCE = 20.0


def test_gangs_that_can_be_placed_are_placed() -> None:
    cases = [case for case in byhand.CASES if case.name in SOME]
    with arena((TUTTI, NATIVE)) as stage:
        found = stage.play(cases, PATIENCE)
    assert len(found) == 2 * len(SOME)
    assert list(sentences(found, TUTTI)) == []
    assert [turn.place for turn, outcome in found.items() if outcome.is_partial] == []
    # The comparison is a fair one: what is easy is placed by the other, too.
    assert [outcome.is_placed for turn, outcome in found.items() if turn.case is cases[0]] == [
        True,
        True,
    ]
