"""What rules between pods have to do with it that a gang waits, in words.

Separate from what room is short of: these sentences count nodes on which there is room.
"""

import numpy as np

from ..model.cluster import Shape
from ..strategies.room import fits_per_node
from . import shortage
from .amounts import count
from .crowds import Crowds
from .demand import Want
from .reduce import by_shape
from .shortage import MOST_KINDS, Rooms


def said(crowds: Crowds, left: Rooms, want: Want) -> str:
    """Which rules keep the want off nodes that have room, or else which of them it has at all."""
    shapes = [group[0].shape for group in by_shape(want.members)]
    for shape in shapes:
        if whys := _excluded(crowds, left, shape):
            return f"; {', '.join(whys[:MOST_KINDS])}"
    if shortage.short(left, want) is not None:
        return ""
    whats = dict.fromkeys(asked.what for shape in shapes for asked in crowds.asked(shape))
    return f"; what its pods ask of others: {', '.join(list(whats)[:MOST_KINDS])}" * bool(whats)


def _excluded(crowds: Crowds, left: Rooms, shape: Shape) -> list[str]:
    """How many nodes with room each rule excludes that none before it does, whoever is placed."""
    row = left.base.shapes[shape]
    asked = [one for one in crowds.asked(shape) if one.stays]
    if not asked:
        return []
    fits = fits_per_node(left.free, left.base.requests[row], crowds.nodes(shape)) > 0
    whys = []
    for one in asked:
        if n := int(np.count_nonzero(fits & ~one.alone)):
            whys.append(f"{count(n, 'node')} excluded by {one.what}")
        fits &= one.alone
    return whys
