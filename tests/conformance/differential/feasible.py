"""Where one waiting member could go if it came alone, now: what kube-scheduler's filters answer.

Made of what plans are made of, which places many at once and judges the end. Also where it would
go, by the scores that choose among these nodes.
"""

import numpy as np
from numpy.typing import NDArray

from tutti.model.cluster import Member, PlacedPod, Snapshot
from tutti.model.keys import NodeName
from tutti.planning import local_search
from tutti.planning.compile import grids, pod_classes
from tutti.planning.compile.inter_pod import InterPodCompiler
from tutti.planning.scores import WEIGHTS, MemberClass, Scorer, Weights
from tutti.strategies.capacity import fits_per_node


def nodes(snapshot: Snapshot, member: Member) -> frozenset[NodeName]:
    """The nodes on which this member could be placed, by room and by all its rules."""
    base, fits = _fits(snapshot, member, _others(snapshot, member))
    return _named(base, fits)


def best(snapshot: Snapshot, member: Member, weights: Weights = WEIGHTS) -> frozenset[NodeName]:
    """Those of them that have the best score."""
    residents = _others(snapshot, member)
    base, fits = _fits(snapshot, member, residents)
    index = local_search.preferred_groups(snapshot, residents, [member.shape])
    kind = MemberClass(0, member.shape, index.among(member.key.namespace, member.labels))
    scorer = Scorer(base.nodes, index, [kind], [fits], weights)
    scorer.begin(residents)
    scores = scorer.scores(0)
    return _named(base, fits & (scores == scores[fits].max(initial=-1)))


def _others(snapshot: Snapshot, member: Member) -> list[PlacedPod]:
    return [pod for pod in pod_classes.placed_pods(snapshot) if pod.uid != member.uid]


def _fits(
    snapshot: Snapshot, member: Member, residents: list[PlacedPod]
) -> tuple[grids.Grid, NDArray[np.bool_]]:
    index = pod_classes.selector_index(snapshot, [member], residents)
    (seen,) = index.classify((member,))
    base = grids.grid(snapshot, [seen.shape])
    fits = fits_per_node(base.free, base.requests[0], base.allowed[0]) > 0
    for outcome in InterPodCompiler.of(base, index, residents).outcomes(seen.shape):
        fits &= outcome.allowed_now
    return base, fits


def _named(base: grids.Grid, chosen: NDArray[np.bool_]) -> frozenset[NodeName]:
    return frozenset(base.nodes[row].name for row in np.flatnonzero(chosen))
