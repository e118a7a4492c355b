"""Where one waiting member could go if it came alone, now: what kube-scheduler's filters answer.

Separate from the plan, which places many at once and judges the end.
"""

import numpy as np

from ..model.cluster import Member, Snapshot
from ..model.keys import NodeName
from ..strategies.room import fits_per_node
from . import looks, reduce
from .crowds import Crowds


def nodes(snapshot: Snapshot, member: Member) -> frozenset[NodeName]:
    """The nodes on which this member could be placed, by room and by all its rules."""
    residents = [one for one in looks.there(snapshot) if one.uid != member.uid]
    roll = looks.roll(snapshot, [member], residents)
    (seen,) = roll.told_apart((member,))
    base = reduce.grid(snapshot, [seen.shape])
    fits = fits_per_node(base.free, base.requests[0], base.allowed[0]) > 0
    for asked in Crowds.of(base, roll, residents).asked(seen.shape):
        fits &= asked.alone
    return frozenset(base.nodes[row].name for row in np.flatnonzero(fits))
