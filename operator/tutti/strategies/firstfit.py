"""First fit: every member on the first node that takes it; what others are compared with."""

import numpy as np
from numpy.typing import NDArray

from .bestfit import BestFit, Scoring
from .room import Room


class InOrder(Scoring):
    """The nodes in their order."""

    def keys(
        self,
        room: Room,  # noqa: ARG002 - room does not matter
        shape: int,  # noqa: ARG002 - nor does who asks
        nodes: NDArray[np.intp],
        take: NDArray[np.int64],  # noqa: ARG002 - nor how many
    ) -> list[NDArray[np.float64]]:
        """The number of the node."""
        return [nodes.astype(np.float64)]


class FirstFit(BestFit):
    """Greedy as best fit is, without a thought for what is left over."""

    name = "firstfit"
    scoring = InOrder
