"""What rules between pods have to do with it that a gang waits: they count nodes with room."""

from collections.abc import Sequence

import numpy as np

from ..gang.demand import PlacementRequest
from ..gang.room_findings import ExcludedByRules, RulesInForce
from ..model.decisions import Finding
from ..model.shapes import Shape
from ..strategies.capacity import fits_per_node
from .compile import capacity
from .compile.capacity import MOST_KINDS, FitByShape
from .compile.inter_pod import InterPodCompiler, RuleOutcome


def findings(
    compiler: InterPodCompiler, free: FitByShape, want: PlacementRequest
) -> tuple[Finding, ...]:
    """Which rules keep the gang off nodes that have room, or else which rules it has at all."""
    shapes = (group[0].shape for group in want.alike)
    by_shape = {shape: outcomes for shape in shapes if (outcomes := compiler.outcomes(shape))}
    if not by_shape:
        return ()
    for shape, outcomes in by_shape.items():
        if excluded := _excluded(
            compiler, free, shape, [outcome for outcome in outcomes if outcome.is_final]
        ):
            return (ExcludedByRules(tuple(excluded[:MOST_KINDS])),)
    if capacity.short(free, want) is not None:
        return ()
    names = dict.fromkeys(
        outcome.description for outcomes in by_shape.values() for outcome in outcomes
    )
    return (RulesInForce(tuple(names)[:MOST_KINDS]),)


def _excluded(
    compiler: InterPodCompiler, free: FitByShape, shape: Shape, outcomes: Sequence[RuleOutcome]
) -> list[tuple[int, str]]:
    """How many nodes with room each rule excludes that no rule before it does."""
    if not outcomes:
        return []
    row = free.base.shapes[shape]
    fits = fits_per_node(free.free, free.base.requests[row], compiler.nodes(shape)) > 0
    excluded = []
    for outcome in outcomes:
        if n := int(np.count_nonzero(fits & ~outcome.allowed_now)):
            excluded.append((n, outcome.description))
        fits &= outcome.allowed_now
    return excluded
