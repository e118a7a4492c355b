"""Spread: members of a gang on as many nodes as there are, the emptiest first.

One member goes to each node before any node gets a second: a lost node takes few of a gang with it.
"""

import numpy as np
from numpy.typing import NDArray

from .bestfit import BestFit, Scoring
from .room import Room


class EmptiestFirst(Scoring):
    """The nodes by the room that they have left, each for one member at a time."""

    at_once = 1

    def keys(
        self,
        room: Room,
        shape: int,  # noqa: ARG002 - the emptiest node is so for all
        nodes: NDArray[np.intp],
        take: NDArray[np.int64],  # noqa: ARG002 - it is one
    ) -> list[NDArray[np.float64]]:
        """Free room as shares of the free total, the most first."""
        return [-room.spare[nodes]]


class Spread(BestFit):
    """Greedy as best fit is, towards the other end."""

    name = "spread"
    scoring = EmptiestFirst
