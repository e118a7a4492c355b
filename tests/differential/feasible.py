"""Where one waiting member could go if it came alone, now: what kube-scheduler's filters answer.

Made of what plans are made of, which places many at once and judges the end.
"""

import numpy as np

from tutti.model.cluster import Member, Snapshot
from tutti.model.keys import NodeName
from tutti.planning import looks, reduce
from tutti.planning.crowds import Crowds
from tutti.strategies.room import fits_per_node


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
