"""The data that questions about one waiting gang start from: its request, and the free room.

Room is counted three times: as in the Snapshot, without the room of gangs that go before by the
plan, and without the room of all gangs of the plan. It is negative on an overcommitted node.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..gang import demand, refusals, slots, timeouts
from ..gang.demand import MemberCounts, PlacementRequest
from ..model.cluster import Gang, Member, Snapshot
from ..model.decisions import Placement, Plan
from ..model.keys import GangKey, NodeName, Uid
from ..model.resources import NOTHING, Resources
from ..model.shapes import Shape
from ..planning.compile import grids, pod_classes, standing_reservations
from ..planning.compile.capacity import Fit
from ..planning.compile.end_state import MemberOnNode
from ..planning.compile.grids import Grid
from ..planning.compile.inter_pod import InterPodCompiler
from ..planning.compile.pod_classes import SelectorIndex
from ..planning.compile.standing_reservations import has_lasting_rules
from ..planning.observed_demand import FixedDomains
from ..strategies.capacity import fits_per_node

Table = NDArray[np.int64]  # [node, resource]
Counts = Mapping[Shape, Fit]  # how many members of each shape fit, and on how many nodes


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """One gang that waits for room, and the room in the cluster."""

    snapshot: Snapshot
    plan: Plan
    want: PlacementRequest
    base: Grid
    index: Mapping[NodeName, int]  # the row of each node
    free_now: Table
    free_for_gang: Table  # without the room of gangs that go before this gang
    free_after_plan: Table  # without all room that the plan gives away
    inter_pod: InterPodCompiler  # with the pods that the plan places
    standing: Grid  # with the rules between pods as they are
    planned: Grid  # with the rules once the plan is carried out

    @property
    def gang(self) -> Gang:
        """The gang that waits."""
        return self.want.gang

    @property
    def is_started(self) -> bool:
        """Whether the gang has started, and waits for replacements or further members."""
        return has_started(self.want.gang)

    @property
    def is_ruled(self) -> bool:
        """Whether rules between pods restrict where its members may go."""
        return any(self.inter_pod.outcomes(shape) for shape in self.shapes)

    @property
    def shapes(self) -> Sequence[Shape]:
        """The different shapes of the gang's waiting members."""
        return tuple(dict.fromkeys(member.shape for member in self.want.members))

    def counts(self, free: Table) -> Counts:
        """The room for each of the gang's shapes by itself."""
        return {shape: room_for(self.base, shape, free) for shape in self.shapes}

    def rows(self, by_node: Mapping[NodeName, Resources]) -> tuple[NDArray[np.intp], Table]:
        """The rows of the nodes that exist, and the amounts of each row, in the Grid's units."""
        names = [name for name in by_node if name in self.index]
        rows = np.array([self.index[name] for name in names], dtype=np.intp)
        amounts = self.base.columns.amounts([by_node[name] for name in names])
        return rows, grids.rounded_up(amounts, self.base.units)


def survey(snapshot: Snapshot, plan: Plan, want: PlacementRequest) -> Baseline:
    """The baseline for the gang of a request."""
    gang, placed_members = want.gang, _placed(snapshot, plan)
    before = pod_classes.placed_pods(snapshot)
    after = [*before, *(pod_classes.placed_pod(member, node) for member, node in placed_members)]
    standing = standing_reservations.members_with_lasting_rules(snapshot)
    lasting = [pair for pair in placed_members if has_lasting_rules(pair[0].shape)]
    members_with_rules = (*want.members, *(member for member, _ in (*standing, *lasting)))
    selectors = pod_classes.selector_index(snapshot, members_with_rules, after)
    want = replace(want, members=selectors.classify(want.members))
    standing, lasting = (
        [_classified(selectors, pair) for pair in pairs] for pairs in (standing, lasting)
    )
    members_with_rules = (*want.members, *(member for member, _ in (*standing, *lasting)))
    base = grids.grid(snapshot, (member.shape for member in members_with_rules))
    reserved = grids.reserved_room(snapshot)
    used = [node.used + reserved.get(node.name, NOTHING) for node in base.nodes]
    free_now = grids.room_less(base, used)
    index = {node.name: row for row, node in enumerate(base.nodes)}
    coming = pod_classes.coming(snapshot)
    inter_pod = InterPodCompiler.of(base, selectors, after, (*standing, *lasting), coming)
    baseline = Baseline(
        snapshot,
        plan,
        want,
        base,
        index,
        free_now,
        free_now.copy(),
        free_now.copy(),
        inter_pod,
        InterPodCompiler.of(base, selectors, before, standing, coming).grid(),
        inter_pod.grid(),
    )
    amounts_by_gang = placements(snapshot, plan)
    for planned_gang in (gang for gang in snapshot.gangs if gang.key in amounts_by_gang):
        rows, amounts = baseline.rows(amounts_by_gang[planned_gang.key])
        baseline.free_after_plan[rows] -= amounts
        if goes_before(planned_gang, gang):
            baseline.free_for_gang[rows] -= amounts
    return baseline


def _placed(snapshot: Snapshot, plan: Plan) -> Sequence[MemberOnNode]:
    """The members that the plan gives a node, and their nodes."""
    members = {member.uid: member for gang in snapshot.gangs for member in gang.members}
    gangs = {gang.uid: gang for gang in snapshot.gangs}
    placed: list[MemberOnNode] = []
    for placement in plan.placements:
        placed += [
            (members[assignment.uid], assignment.node) for assignment in placement.assignments
        ]
        placed += slots.placeholders_of_slots(gangs[placement.uid], placement.slots)
    return placed


def _classified(selectors: SelectorIndex, placed: MemberOnNode) -> MemberOnNode:
    (member,) = selectors.classify(placed[:1])
    return member, placed[1]


def goes_before(gang: Gang, rival: Gang) -> bool:
    """Whether the plan may prefer ``gang``: it has started, or its priority is not lower."""
    return has_started(gang) or gang.priority >= rival.priority


def has_started(gang: Gang) -> bool:
    """Whether a member of a role that the gang has counts as bound."""
    return demand.count_members(gang).is_committed


def wants(snapshot: Snapshot, keys: Iterable[GangKey]) -> Mapping[GangKey, PlacementRequest]:
    """The requests of these gangs that need room: to start, to replace members, or to grow.

    A gang that no room would help has none, such as a gang that the API server refuses. Members
    that must join others of their gang in a domain are limited to its nodes.
    """
    held_off = refusals.rejections(snapshot)
    reserved_uids = {
        entry.uid for reservation in snapshot.reservations for entry in reservation.entries
    }
    waiting_keys, fixed = set(keys) - held_off.keys(), FixedDomains(snapshot)
    censuses = (
        fixed.with_present_domains(demand.count_members(gang, reserved_uids))
        for gang in snapshot.gangs
        if gang.key in waiting_keys
    )
    to_place = (
        census for census in censuses if not timeouts.is_given_up(census, snapshot.taken_at)
    )
    requests = ((census.gang.key, _request_of(census)) for census in to_place)
    return {key: request for key, request in requests if request is not None}


def _request_of(census: MemberCounts) -> PlacementRequest | None:
    if not census.is_committed:
        return demand.start_request(census)
    ready = census.waiting
    if census.gang.terminating or not ready:
        return None
    need = min(max(census.missing, 1), len(demand.within_maximums(census).waiting))
    lacks = census.missing_by_role
    available = {role: sum(member.role == role for member in ready) for role in lacks}
    minimums = tuple((role, min(n, available[role])) for role, n in lacks.items())
    maximums = demand.maximums_of(ready, census.places_by_role)
    return PlacementRequest(census.gang, need, ready, minimums, maximums=maximums)


def room_for(base: Grid, shape: Shape, free: Table) -> Fit:
    """How many members of the shape fit into this room, and on how many nodes."""
    row = base.shapes[shape]
    counts = fits_per_node(free, base.requests[row], base.allowed[row])
    return Fit(int(counts.sum()), int(np.count_nonzero(counts)))


def placements(snapshot: Snapshot, plan: Plan) -> Mapping[GangKey, Mapping[NodeName, Resources]]:
    """By gang and node, the resources that the plan gives to its members."""
    members = {member.uid: member for gang in snapshot.gangs for member in gang.members}
    gangs = {gang.uid: gang for gang in snapshot.gangs}
    return {
        placement.gang: _by_node(placement, gangs[placement.uid], members)
        for placement in plan.placements
    }


def _by_node(
    placement: Placement, gang: Gang, members: Mapping[Uid, Member]
) -> Mapping[NodeName, Resources]:
    members_on_nodes = [
        (members[assignment.uid], assignment.node) for assignment in placement.assignments
    ]
    members_on_nodes += slots.placeholders_of_slots(gang, placement.slots)
    return summed([(node, grids.footprint(member.shape)) for member, node in members_on_nodes])


def summed(amounts_on_nodes: Sequence[tuple[NodeName, Resources]]) -> Mapping[NodeName, Resources]:
    """The sum of the amounts of each node."""
    grouped: dict[NodeName, list[Resources]] = {}
    for node, amounts in amounts_on_nodes:
        grouped.setdefault(node, []).append(amounts)
    return {node: Resources.total(amounts) for node, amounts in grouped.items()}
