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
    compiler: InterPodCompiler, left: FitByShape, want: PlacementRequest
) -> tuple[Finding, ...]:
    """Which rules keep the gang off nodes that have room, or else which rules it has at all."""
    shapes = (group[0].shape for group in want.alike)
    by_shape = {shape: rules for shape in shapes if (rules := compiler.outcomes(shape))}
    if not by_shape:
        return ()
    for shape, rules in by_shape.items():
        if excluded := _excluded(compiler, left, shape, [rule for rule in rules if rule.stays]):
            return (ExcludedByRules(tuple(excluded[:MOST_KINDS])),)
    if capacity.short(left, want) is not None:
        return ()
    names = dict.fromkeys(rule.what for rules in by_shape.values() for rule in rules)
    return (RulesInForce(tuple(names)[:MOST_KINDS]),)


def _excluded(
    compiler: InterPodCompiler, left: FitByShape, shape: Shape, rules: Sequence[RuleOutcome]
) -> list[tuple[int, str]]:
    """How many nodes with room each rule excludes that no rule before it does."""
    if not rules:
        return []
    row = left.base.shapes[shape]
    fits = fits_per_node(left.free, left.base.requests[row], compiler.nodes(shape)) > 0
    excluded = []
    for rule in rules:
        if n := int(np.count_nonzero(fits & ~rule.alone)):
            excluded.append((n, rule.what))
        fits &= rule.alone
    return excluded
