"""What rules between pods have to do with it that a gang waits, in words.

Separate from what room is short of: these sentences count nodes on which there is room.
"""

from collections.abc import Sequence

import numpy as np

from ..gang.demand import PlacementRequest
from ..gang.quantities import count
from ..model.shapes import Shape
from ..strategies.capacity import fits_per_node
from .compile import capacity
from .compile.capacity import MOST_KINDS, FitByShape
from .compile.inter_pod import InterPodCompiler, RuleOutcome


def said(crowds: InterPodCompiler, left: FitByShape, want: PlacementRequest) -> str:
    """Which rules keep the want off nodes that have room, or else which of them it has at all."""
    shapes = (group[0].shape for group in want.alike)
    asked = {shape: own for shape in shapes if (own := crowds.asked(shape))}
    if not asked:
        return ""
    for shape, own in asked.items():
        if whys := _excluded(crowds, left, shape, [one for one in own if one.stays]):
            return f"; {', '.join(whys[:MOST_KINDS])}"
    if capacity.short(left, want) is not None:
        return ""
    whats = dict.fromkeys(one.what for own in asked.values() for one in own)
    return f"; what its pods ask of others: {', '.join(list(whats)[:MOST_KINDS])}"


def _excluded(
    crowds: InterPodCompiler, left: FitByShape, shape: Shape, staying: Sequence[RuleOutcome]
) -> list[str]:
    """How many nodes with room each rule excludes that none before it does, whoever is placed."""
    if not staying:
        return []
    row = left.base.shapes[shape]
    fits = fits_per_node(left.free, left.base.requests[row], crowds.nodes(shape)) > 0
    whys = []
    for one in staying:
        if n := int(np.count_nonzero(fits & ~one.alone)):
            whys.append(f"{count(n, 'node')} excluded by {one.what}")
        fits &= one.alone
    return whys
