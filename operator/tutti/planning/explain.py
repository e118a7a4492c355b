"""Why each gang that got no placement waits: one reason and its findings per gang.

The planner's decisions do not use them. The findings say what is requested, what room there is and
what is short; they claim a proof only where there is one.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ..gang import demand, domain_rules
from ..gang.demand import MemberCounts, PlacementRequest
from ..gang.findings import LimitHeldForIt, NoPriorityClass, NotProved, QueueAtLimit
from ..gang.room_findings import (
    DomainOfGang,
    ExcludedByRules,
    NoDomainsTogether,
    NoNodeFits,
    RoomHeldForIt,
    RoomHeldForOther,
    RulesInForce,
)
from ..model.cluster import Gang, Member, Node, Snapshot
from ..model.decisions import Finding, Reason, Rejection
from ..model.keys import GangKey, NodeName, Uid
from ..model.resources import NOTHING, Resources
from ..model.shapes import Shape
from ..queues.at_limit import NO_GANGS, LimitedGangs
from ..strategies.capacity import fits_per_node
from . import missing_members
from .compile import capacity, grids, problems
from .compile.capacity import MOST_KINDS, FitByShape
from .compile.grids import Grid
from .compile.inter_pod import InterPodCompiler, RuleOutcome
from .compile.quotas import NO_QUOTAS, Quotas
from .search.limits import NO_PROGRESS, Progress
from .search.starvation import HeldCapacity


@dataclass(frozen=True, slots=True, eq=False)
class ExplainContext:
    """The room and the rules before and after the decision.

    ``shortfall`` says why the search ended without a proof; it is empty if the search was complete.
    """

    empty: FitByShape  # every node without its pods
    before: FitByShape  # when whole gangs were considered
    left: FitByShape  # after the whole plan
    behind: FitByShape  # the part of ``left`` that is not held
    inter_pod: InterPodCompiler  # once the whole plan is carried out
    placed: Collection[Uid]
    occupants: "Occupants"
    shortfall: str = ""
    is_proved: bool = False  # that no better admission exists
    hold: HeldCapacity | None = None
    quotas: Quotas = NO_QUOTAS  # once the whole plan is carried out
    limited: LimitedGangs = NO_GANGS
    # Of gangs that have not started and fit the empty cluster.
    requests: Mapping[GangKey, PlacementRequest] = field(default_factory=dict)

    def left_for(self, gang: Gang) -> FitByShape:
        """The free room after the plan that the gang may use."""
        is_held_back = self.hold is not None and self.hold.holds_back(gang)
        return self.behind if is_held_back else self.left


class Occupants:
    """The gangs on each node: with members there, or with a Reservation for them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def outside(self, nodes: Iterable[Node], resource: str) -> int:
        """How much of a resource pods of no gang have on these nodes."""
        return sum(
            max(node.used[resource] - self._bound_to(node.name, resource), 0) for node in nodes
        )

    def on(self, nodes: Iterable[NodeName], resource: str) -> Mapping[GangKey, int]:
        """By gang, how much of a resource it has on these nodes; only gangs that have any."""
        amounts = Counter[GangKey]()
        for node in nodes:
            for gang, room in (*self._bound.get(node, ()), *self._held.get(node, ())):
                amounts[gang] += room[resource]
        return +amounts

    def _bound_to(self, node: NodeName, resource: str) -> int:
        return sum(room[resource] for _, room in self._bound.get(node, ()))

    @cached_property
    def _bound(self) -> Mapping[NodeName, Sequence[tuple[GangKey, Resources]]]:
        """By node, the members that have it."""
        by_node: dict[NodeName, list[tuple[GangKey, Resources]]] = {}
        for gang in self._snapshot.gangs:
            for member in gang.members:
                if member.node is not None and not member.is_over:
                    room = grids.footprint(member.shape)
                    by_node.setdefault(member.node, []).append((gang.key, room))
        return by_node

    @cached_property
    def _held(self) -> Mapping[NodeName, Sequence[tuple[GangKey, Resources]]]:
        """By node, the room that Reservations hold for members without a node."""
        by_node: dict[NodeName, list[tuple[GangKey, Resources]]] = {}
        gangs = {gang.key: gang for gang in self._snapshot.gangs}
        members = {m.uid: m for gang in gangs.values() for m in gang.members}
        for reservation in self._snapshot.reservations:
            held = [
                (entry.node, grids.footprint(members[entry.uid].shape))
                for entry in reservation.entries
                if entry.uid in members and members[entry.uid].node is None
            ]
            for slot in reservation.slots:
                room = grids.slot_footprint(gangs.get(reservation.gang), slot.role)
                held.append((slot.node, room.scaled(slot.count)))
            for node, room in held:
                by_node.setdefault(node, []).append((reservation.gang, room))
        return by_node


def rejections(
    context: ExplainContext, gangs: Sequence[MemberCounts], progress: Progress = NO_PROGRESS
) -> tuple[Rejection, ...]:
    """One rejection for each gang that waits, in the order of the gangs."""
    known: dict[Shape, NoNodeFits] = {}  # many gangs share a shape, and this looks at every node
    rejections = []
    for members in gangs:
        progress.step()
        if (rejection := _rejection(context, members, known)) is not None:
            rejections.append(_with_priority_class(rejection, members.gang))
    return tuple(rejections)


def _with_priority_class(rejection: Rejection, gang: Gang) -> Rejection:
    """The rejection, with a finding if the gang's PriorityClass does not exist."""
    if not gang.priority_class or gang.class_value is not None:
        return rejection
    return rejection.with_findings(NoPriorityClass(gang.priority_class, gang.priority))


def _rejection(
    context: ExplainContext,
    census: MemberCounts,
    known: dict[Shape, NoNodeFits],
) -> Rejection | None:
    if any(member.uid in context.placed for member in census.waiting):
        return None
    oldest = demand.within_maximums(census)
    if census.is_committed and census.waiting and not census.gang.terminating:
        answer = _of_started(context, oldest, known)
        return replace(answer, only_extra_members=census.missing <= 0)
    want = context.requests.get(census.gang.key)
    if want is None:
        want = demand.start_request(census)
        if want is None:
            return missing_members.absence(oldest)
        if (member := capacity.nowhere_member(context.empty, want)) is not None:
            return _nowhere(context, want, member, known)
    if limits := _limits(context, want):
        return Rejection(want.gang.key, Reason.QUEUE_AT_LIMIT, limits)
    free_for_gang = context.left_for(census.gang)
    findings = (
        *capacity.not_enough_room(context.empty, free_for_gang, want),
        *_domains(context, free_for_gang, want),
        *_rule_findings(context.inter_pod, free_for_gang, want),
        *_held_room(context, want),
    )
    might_fit = capacity.short(context.before, want) is None
    might_fit = might_fit and capacity.domain_shortage(context.before, want) is None
    return _no_room(context, want, findings, might_fit=might_fit)


def _of_started(
    context: ExplainContext, census: MemberCounts, known: dict[Shape, NoNodeFits]
) -> Rejection:
    """Why the waiting members of a started gang, replacements or further members, have no room."""
    shape = census.waiting[0].shape
    alike = tuple(member for member in census.waiting if member.shape == shape)
    requests = demand.repair_requests(census, context.placed, ())
    repairs = {member.uid for request in requests for member in request.members}
    replaces = any(member.uid in repairs for member in alike)
    want = PlacementRequest(census.gang, 1, alike, is_repair=replaces)
    if (member := capacity.nowhere_member(context.empty, want)) is not None:
        return _nowhere(context, want, member, known)
    if limits := _limits(context, want):
        return Rejection(want.gang.key, Reason.QUEUE_AT_LIMIT, limits)
    beyond = f"beyond the {demand.min_members(census.gang)} needed"
    is_repair = census.missing > 0
    purpose = "to replace lost ones" if is_repair else beyond
    free_for_gang = context.left if is_repair else context.left_for(census.gang)
    findings = (
        *capacity.single_members(want.members, purpose, free_for_gang),
        *_domain_of_gang(context, want),
        *_rule_findings(context.inter_pod, free_for_gang, want),
        *(() if is_repair else _held_room(context, want)),
    )
    might_fit = context.before[shape].members > 0
    return _no_room(context, want, findings, might_fit=might_fit)


def _held_room(context: ExplainContext, want: PlacementRequest) -> tuple[Finding, ...]:
    """Whether the gang waits for held room, for itself or for another gang."""
    hold = context.hold
    if hold is None:
        return ()
    if hold.gang.key == want.gang.key:
        return (RoomHeldForIt(hold.nodes),)
    free_for_gang = context.left_for(want.gang)
    shapes = {member.shape for member in want.members}
    if all(free_for_gang[shape].members == context.left[shape].members for shape in shapes):
        return ()
    return (RoomHeldForOther(hold.gang.key),)


def _limits(context: ExplainContext, want: PlacementRequest) -> tuple[Finding, ...]:
    """The limits of queues that keep the gang waiting, and whether its place is held for it."""
    base, hold, key = context.left.base, context.hold, want.gang.key
    credit = context.quotas.credit_of.get(key, NOTHING) if want.is_repair else NOTHING
    limits = [
        context.limited.finding(limit, key, added_use, credit[limit.resource])
        for limit, added_use in problems.exceeded(base, want, context.quotas)
    ]
    limits = [replace(limit, has_others=len(limits) > 1) for limit in limits]
    if limits and hold is not None and hold.gang.key == key:
        return (*limits, LimitHeldForIt())
    if limits or hold is None or not hold.holds_back(want.gang) or want.is_repair:
        return tuple(limits)
    exceeded = problems.exceeded(base, want, context.quotas.held_for(hold.gang.key, hold.requests))
    return tuple(
        QueueAtLimit(
            limit.queue,
            limit.resource,
            limit.in_use,
            limit.limit,
            added_use,
            hold.gang.key,
            enough=limit.in_use + limit.held + added_use,
            has_others=len(exceeded) > 1,
        )
        for limit, added_use in exceeded
    )


def _domains(
    context: ExplainContext, free: FitByShape, want: PlacementRequest
) -> tuple[Finding, ...]:
    """The domain that comes closest, or that none will do, where domains are what is short."""
    if (largest := capacity.domain_shortage(free, want)) is not None:
        return (largest,)
    levels = capacity.levels_in_force(want)
    if not (levels and context.is_proved) or capacity.short(free, want) is not None:
        return ()
    return (NoDomainsTogether(levels),)


def _domain_of_gang(context: ExplainContext, want: PlacementRequest) -> tuple[Finding, ...]:
    """The domain that members of a started gang must be in, and who else has room there."""
    base, (member, *_) = context.left.base, want.members
    finding = _fixed_domain(base, want.gang, member)
    if finding is None:
        return ()
    row = base.shapes[member.shape]
    nodes, requests = np.flatnonzero(base.allowed[row]), base.requests[row]
    asked = np.flatnonzero(requests)
    scarcest = asked[np.argmin(context.left.free[nodes][:, asked].sum(axis=0) / requests[asked])]
    resource, own = base.resources[scarcest], [base.nodes[i] for i in nodes]
    amounts = context.occupants.on((node.name for node in own), resource)
    others = sorted(amounts.keys() - {want.gang.key}, key=lambda gang: (-amounts[gang], gang))
    named = tuple(others[:MOST_KINDS])
    outside = context.occupants.outside(own, resource)
    more = len(others) - len(named)
    return (replace(finding, others=named, more=more, resource=resource, outside=outside),)


def _fixed_domain(base: Grid, gang: Gang, member: Member) -> DomainOfGang | None:
    """The narrowest domain that the member of a started gang must be in, if there is one."""
    selector = dict(member.shape.node_selector)
    levels = [
        (labels, rule.level)
        for rule in gang.required_levels
        if domain_rules.covers(rule, member.role)
        and (labels := domain_rules.labels_of(rule.level, base.topologies))
        and selector.keys() >= set(labels)
    ]
    if not levels:
        return None
    labels, level = max(levels, key=lambda pair: len(pair[0]))
    return DomainOfGang(level, "/".join(selector[label] for label in labels))


def _nowhere(
    context: ExplainContext, want: PlacementRequest, member: Member, known: dict[Shape, NoNodeFits]
) -> Rejection:
    """No node fits the member, in the domain of its gang if it must be in one."""
    if member.shape not in known:
        known[member.shape] = capacity.nowhere(context.empty.base, member)
    key = member.key if member.key.name else None
    no_node = replace(known[member.shape], member=key, role=member.role)
    domain = _fixed_domain(context.left.base, want.gang, member) if want.is_repair else None
    findings = (no_node,) if domain is None else (no_node, domain)
    return Rejection(want.gang.key, Reason.NO_NODE_FITS, findings)


def _no_room(
    context: ExplainContext,
    want: PlacementRequest,
    findings: tuple[Finding, ...],
    *,
    might_fit: bool,
) -> Rejection:
    taken = context.inter_pod.is_claim_taken
    free = [group for group in want.alike if not taken(group[0].shape)]
    if sum(map(len, free)) < want.need:
        return Rejection(want.gang.key, Reason.WAITING_FOR_VOLUMES, findings)
    might_fit |= any(group[0].shape.shares_volumes for group in want.alike)
    if context.shortfall and might_fit:
        unproved = (*findings, NotProved(context.shortfall))
        return Rejection(want.gang.key, Reason.BUDGET_EXHAUSTED, unproved)
    return Rejection(want.gang.key, Reason.NOT_ENOUGH_ROOM, findings)


def _rule_findings(
    compiler: InterPodCompiler, free: FitByShape, want: PlacementRequest
) -> tuple[Finding, ...]:
    """Which rules keep the gang off nodes that have room, or else which rules it has at all."""
    shapes = (group[0].shape for group in want.alike)
    by_shape = {shape: outcomes for shape in shapes if (outcomes := compiler.outcomes(shape))}
    if not by_shape:
        return ()
    for shape, outcomes in by_shape.items():
        if excluded := _nodes_excluded(
            compiler, free, shape, [outcome for outcome in outcomes if outcome.is_final]
        ):
            return (ExcludedByRules(tuple(excluded[:MOST_KINDS])),)
    if capacity.short(free, want) is not None:
        return ()
    names = dict.fromkeys(
        outcome.description for outcomes in by_shape.values() for outcome in outcomes
    )
    return (RulesInForce(tuple(names)[:MOST_KINDS]),)


def _nodes_excluded(
    compiler: InterPodCompiler, free: FitByShape, shape: Shape, outcomes: Sequence[RuleOutcome]
) -> list[tuple[int, str]]:
    """How many nodes with room each rule excludes that no rule before it does."""
    if not outcomes:
        return []
    row = free.base.shapes[shape]
    fits = fits_per_node(free.free, free.base.requests[row], compiler.nodes(shape)) > 0
    excluded = []
    for outcome in outcomes:
        if n := int(np.count_nonzero(fits & ~outcome.allowed_now)):
            excluded.append((n, outcome.description))
        fits &= outcome.allowed_now
    return excluded
