"""Gangs that need one domain of the network, a handful: Tutti places every one that it can."""

from __future__ import annotations

from ..conformance.domains import drawn, scenes
from ..conformance.domains.__main__ import played
from ..conformance.domains.telling import Results, Verdict, misses, wrongs

SEED = 11


def test_gangs_that_have_a_placement_are_placed_alone_and_together() -> None:
    cases = [*drawn.cases(SEED, 8), *scenes.scenes(SEED, 2)]
    assert sum(not case.has_placement for case in cases) == 1
    (outcomes,) = played(["tutti"], cases).values()
    results: Results = [
        (case, {"tutti": outcome}) for case, outcome in zip(cases, outcomes, strict=True)
    ]
    assert misses(results, "tutti") == []
    assert wrongs(results, "tutti") == []
    verdicts = {
        case.has_placement: outcome.verdict(case, case.gangs[0])
        for case, outcome in zip(cases, outcomes, strict=True)
        if outcome is not None
    }
    assert verdicts == {True: Verdict.PLACED, False: Verdict.REFUSED}
