"""The demand in numbers: pods by class, the cluster's Grid, and a plan without placements."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..gang import demand, timeouts
from ..gang.demand import MemberCounts, PlacementRequest
from ..model.cluster import PlacedPod, Snapshot
from ..model.volumes import is_attaching
from ..strategies.capacity import fits_per_node
from .compile import capacity, grids, pod_classes, standing_reservations
from .compile.capacity import FitByShape
from .compile.grids import Grid
from .compile.inter_pod import InterPodCompiler
from .compile.pod_classes import SelectorIndex
from .compile.quotas import Quotas
from .observed_demand import ObservedDemand
from .search.partial_plan import PartialPlan


@dataclass(frozen=True, slots=True, eq=False)
class CompiledDemand:
    """The numbers that all later stages of a plan start from.

    The members of ``gangs`` have the shapes of their classes. The members of ``Gang`` itself keep
    their preferences.
    """

    snapshot: Snapshot
    placed_pods: Sequence[PlacedPod]  # with the pods that a standing Reservation holds a node for
    index: SelectorIndex
    gangs: Sequence[MemberCounts]  # in the order in which they are considered
    tried: Sequence[MemberCounts]  # the part of ``gangs`` that is not given up
    grid: Grid  # with node rules alone
    blank: PartialPlan  # with rules between pods, and nothing placed
    empty: FitByShape  # every node without its pods
    requests: Sequence[PlacementRequest]  # gangs that have not started and fit the empty cluster

    def may_count_twice(self) -> bool:
        """Whether a limit may keep pods off a node because volumes that pods share count for each.

        That cannot be where a node has enough for all of these pods that it could hold.
        """
        base = self.grid
        counts = Counter(member.shape for gang in self.gangs for member in gang.waiting)
        columns = [i for i, name in enumerate(base.resources) if is_attaching(name)]
        is_shared = any(shape.shares_volumes for shape in counts) or _is_held_twice(self.snapshot)
        if not (columns and is_shared):
            return False
        asked = np.zeros((len(base.nodes), len(columns)), np.int64)
        for shape, n in counts.items():
            row = base.shapes[shape]
            requests = base.requests[row].copy()
            requests[columns] = 0
            most = fits_per_node(base.capacity, requests, base.allowed[row], n)
            asked += most[:, None] * base.requests[row, columns]
        return bool((asked > base.free[:, columns]).any())

    def grid_without_gangs(self) -> Grid:
        """The Grid with the rules between pods as they are once all members of gangs have ended."""
        staying = pod_classes.pods_of_no_gang(self.snapshot)
        return InterPodCompiler.of(self.grid, self.index, staying).grid()


def compile_demand(observed: ObservedDemand, quotas: Quotas) -> CompiledDemand:
    """The demand in numbers, with each member's shape replaced by the shape of its class."""
    snapshot = observed.snapshot
    residents = pod_classes.placed_pods(snapshot)
    promised = standing_reservations.members_with_lasting_rules(snapshot)
    waiting = [member for gang in observed.gangs for member in gang.waiting]
    members = (*waiting, *(member for member, _ in promised))
    index = pod_classes.selector_index(snapshot, members, residents)
    gangs = [_classified(gang, index) for gang in observed.gangs]
    promised = [
        (classified, node) for member, node in promised for classified in index.classify((member,))
    ]
    shapes = [member.shape for gang in gangs for member in gang.waiting]
    grid = grids.grid(snapshot, (*shapes, *(member.shape for member, _ in promised)))
    coming = pod_classes.coming(snapshot)
    inter_pod = InterPodCompiler.of(grid, index, residents, promised, coming)
    blank = PartialPlan.blank(inter_pod, grid.free, quotas)
    empty = FitByShape(grid, grid.capacity)
    tried = [gang for gang in gangs if not timeouts.is_given_up(gang, snapshot.taken_at)]
    requests = _requests(empty, tried)
    return CompiledDemand(snapshot, residents, index, gangs, tried, grid, blank, empty, requests)


def _is_held_twice(snapshot: Snapshot) -> bool:
    """Whether Reservations may hold room for a volume once for each pod that names it."""
    holders = {reservation.gang for reservation in snapshot.reservations}
    gangs = (gang for gang in snapshot.gangs if gang.key in holders)
    return any(member.shape.shares_volumes for gang in gangs for member in gang.members)


def _classified(gang: MemberCounts, index: SelectorIndex) -> MemberCounts:
    """The members, each with the shape of its class."""
    ready, absent = index.classify(gang.ready), index.classify(gang.absent)
    is_unchanged = ready is gang.ready and absent is gang.absent
    return gang if is_unchanged else replace(gang, ready=ready, absent=absent)


def _requests(empty: FitByShape, gangs: Sequence[MemberCounts]) -> Sequence[PlacementRequest]:
    """The gangs that have not started, without the gangs with a member that no node could hold."""
    requests = (request for gang in gangs if (request := demand.start_request(gang)) is not None)
    return [request for request in requests if capacity.nowhere_member(empty, request) is None]
