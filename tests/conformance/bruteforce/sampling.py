"""Cases by their seeds: what the command, its processes and the test share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import cases, generating

if TYPE_CHECKING:
    from .judge import Verdict

NUDGED = 4  # a byte is taken off in one case of so many
EXPLAINED = 8  # explanations are asked for in one case of so many


class Result(NamedTuple):
    """What came of one seed."""

    seed: int
    verdict: Verdict


def of_seed(seed: int) -> Result:
    """Judge the case of a seed."""
    whole, explains, nudges = generating.manifests(seed), seed % EXPLAINED == 0, seed % NUDGED == 0
    return Result(seed, cases.judged(whole, seed, explains=explains, nudges=nudges))


def fails(kind: str, seed: int, whole: dict[str, Any]) -> bool:
    """Whether a case has a violation of this kind."""
    explains, nudges = kind.startswith("explain"), kind.startswith("nudged")
    try:
        verdict = cases.judged(whole, seed, explains=explains, nudges=nudges)
    except (KeyError, IndexError, ValueError):
        return False  # a case too small to be one
    return any(violation.kind == kind for violation in verdict.violations)
