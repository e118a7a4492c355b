"""First fit and spread: two simple rules of choosing nodes, to compare with and for small needs.

First fit puts every member on the first node that takes it. Spread uses as many nodes as there are,
the emptiest first: one member goes to each node before any node gets a second, so a lost node takes
few members of a gang with it.
"""

import numpy as np
from numpy.typing import NDArray

from .best_fit import BestFit, NodeScoring
from .capacity import FreeCapacity


class NodeOrder(NodeScoring):
    """The nodes in their order."""

    def keys(
        self,
        room: FreeCapacity,  # noqa: ARG002 - room does not matter
        shape: int,  # noqa: ARG002 - nor does the shape
        nodes: NDArray[np.intp],
        take: NDArray[np.int64],  # noqa: ARG002 - nor how many
    ) -> list[NDArray[np.float64]]:
        """The number of the node."""
        return [nodes.astype(np.float64)]


class FirstFit(BestFit):
    """Greedy like best fit, but it ignores what is left over."""

    name = "firstfit"
    scoring = NodeOrder


class EmptiestFirst(NodeScoring):
    """The nodes by the room that they have left, each for one member at a time."""

    at_once = 1

    def keys(
        self,
        room: FreeCapacity,
        shape: int,  # noqa: ARG002 - the emptiest node is so for all
        nodes: NDArray[np.intp],
        take: NDArray[np.int64],  # noqa: ARG002 - it is one
    ) -> list[NDArray[np.float64]]:
        """Free room as shares of the free total, the most first."""
        return [-room.spare[nodes]]


class Spread(BestFit):
    """Greedy like best fit, but it prefers the emptiest nodes."""

    name = "spread"
    scoring = EmptiestFirst
