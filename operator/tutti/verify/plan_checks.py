"""The plan checked against the promises, by code that imports nothing of the planner.

The node rules come from ``node_rules``. Room, complete gangs and Reservations are counted here in
plain Python; rules between pods are counted in ``inter_pod``. A violation is a bug of Tutti, or of
a solver.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..filters.node_rules import fits_node
from ..gang import slots
from ..gang.quantities import format_name
from ..gang.slots import Places
from ..model.cluster import Gang, Member, Node, Reservation, Snapshot
from ..model.decisions import Assignment, GangCap, Placement, Plan
from ..model.keys import GangKey, NodeName, Uid
from . import (
    cap_checks,
    domain_checks,
    inter_pod,
    lookup,
    slot_checks,
    volume_checks,
)
from .devices.checks import DeviceLedger
from .preemption import checks as preemption_checks
from .queues import order as queue_order
from .queues import starts as queue_starts
from .queues.charges import QueueCharges


def violations(snapshot: Snapshot, plan: Plan, caps: Sequence[GangCap] = ()) -> tuple[str, ...]:
    """One sentence for each promise that the plan breaks; empty if every promise holds."""
    faults = [*_plan_faults(snapshot, plan.placements)]
    if caps:
        usage = cap_checks.usage(snapshot, lookup.SnapshotLookup(snapshot), plan.placements)
        faults += cap_checks.faults(usage, caps)
    if snapshot.queues:
        charges = QueueCharges.of(snapshot, plan.placements)
        faults += cap_checks.faults(charges.usage, queue_starts.caps(charges))
        faults += queue_starts.faults(charges, plan.placements).values()
        faults += preemption_checks.borrowers(charges.snapshot, plan.placements).values()
        faults = faults or [*queue_order.faults(charges, plan)]
    return tuple(faults)


def upheld(
    snapshot: Snapshot, placements: Sequence[Placement], counted_uids: Collection[Uid] | None = None
) -> tuple[Placement, ...]:
    """The placements that are valid together in this Snapshot; earlier ones take precedence.

    The cluster may have changed since they were planned. Rules between pods count a reserved pod if
    its uid is in ``counted_uids``, and absent members if the uid of their Reservation is. None
    counts all of them.
    """
    if not placements:
        return ()
    index = lookup.SnapshotLookup(snapshot)
    commitments = _Commitments.of(snapshot, index)
    valid: list[Placement] = []
    for placement in placements:
        trial = commitments.copy(_changed_nodes(placement, commitments))
        new_slots = _exchange(placement, index, trial)
        if not any(True for _ in _placement_faults(placement, index, trial, new_slots)):
            commitments.ledger.free.update(trial.ledger.free)
            commitments.devices.take(trial.devices)
            commitments.volumes.update(trial.volumes)
            valid.append(placement)
    return tuple(
        _without_rule_breakers(snapshot, _within_queues(snapshot, valid), index, counted_uids)
    )


def _within_queues(snapshot: Snapshot, placements: list[Placement]) -> list[Placement]:
    """The placements that the Queues allow now; earlier ones take precedence."""
    if not snapshot.queues:
        return placements
    charges = QueueCharges.of(snapshot, placements)
    queue_faults = {
        **queue_starts.faults(charges, placements),
        **preemption_checks.borrowers(charges.snapshot, placements),
    }
    allowed = [placement for placement in placements if placement.gang not in queue_faults]
    return cap_checks.within(
        charges.snapshot, allowed, queue_starts.caps(charges), charges.charge_of
    )


def _changed_nodes(placement: Placement, commitments: "_Commitments") -> Iterator[NodeName]:
    """The nodes on which a placement takes room or gives room back."""
    reservation = commitments.open.get(placement.gang)
    yield from (assignment.node for assignment in placement.assignments)
    yield from (
        slot.node for slot in (*placement.slots, *(reservation.slots if reservation else ()))
    )


def _without_rule_breakers(
    snapshot: Snapshot,
    valid: list[Placement],
    index: lookup.SnapshotLookup,
    counted_uids: Collection[Uid] | None,
) -> Sequence[Placement]:
    """The placements that rules between pods allow together; the last rule breakers are dropped."""
    standing = {
        reservation.gang: reservation for reservation in snapshot.reservations if reservation.slots
    }
    checker = _inter_pod_checker(snapshot, valid, index, counted_uids)
    while checker is not None:
        rule_breakers = (
            placement
            for placement in reversed(valid)
            if any(
                True
                for _ in _rule_violations(placement, index, standing.get(placement.gang), checker)
            )
        )
        last = next(rule_breakers, None)
        if last is None:
            break
        valid = [placement for placement in valid if placement is not last]
        if last.gang in standing:  # the slots that it was to give up stay
            checker = _inter_pod_checker(snapshot, valid, index, counted_uids)
            continue
        for member, node in _new_members(last, index, None):
            checker.remove(member, node)
    return valid


def _plan_faults(snapshot: Snapshot, placements: Sequence[Placement]) -> Iterator[str]:
    if not placements:
        return
    index = lookup.SnapshotLookup(snapshot)
    commitments = _Commitments.of(snapshot, index)
    # A placement may take room that a later one gives back, so first all give their room back.
    changes = [_exchange(placement, index, commitments) for placement in placements]
    for placement, new_slots in zip(placements, changes, strict=True):
        yield from _placement_faults(placement, index, commitments, new_slots)
    checker = _inter_pod_checker(snapshot, placements, index)
    if checker is not None:
        for placement in placements:
            yield from _rule_violations(
                placement, index, commitments.open.get(placement.gang), checker
            )


@dataclass(frozen=True, slots=True)
class _Commitments:
    """The room, the pods, the gangs and the volumes that are promised so far."""

    ledger: lookup.Ledger
    devices: DeviceLedger
    pods: set[Uid]
    gangs: set[GangKey]
    open: Mapping[GangKey, Reservation]  # standing Reservations with room for absent members
    volumes: dict[str, str]  # with the uids of their claims

    @classmethod
    def of(cls, snapshot: Snapshot, index: lookup.SnapshotLookup) -> "_Commitments":
        """The use of nodes, and the room that standing Reservations hold."""
        commitments = cls(
            lookup.Ledger(index.nodes),
            DeviceLedger(snapshot),
            {entry.uid for reservation in snapshot.reservations for entry in reservation.entries},
            {
                reservation.gang
                for reservation in snapshot.reservations
                if not _is_open(reservation, index)
            },
            {
                reservation.gang: reservation
                for reservation in snapshot.reservations
                if _is_open(reservation, index)
            },
            volume_checks.chosen_before(snapshot),
        )
        for reservation in snapshot.reservations:
            for node, amounts in lookup.held_room(reservation, index):
                commitments.ledger.take(node, amounts)
        return commitments

    def copy(self, nodes: Iterable[NodeName]) -> "_Commitments":
        """These commitments with a copy of the room on these nodes; pods and gangs are shared."""
        ledger, devices = self.ledger.copy(nodes), self.devices.copy()
        return _Commitments(ledger, devices, self.pods, self.gangs, self.open, dict(self.volumes))


def _is_open(reservation: Reservation, index: lookup.SnapshotLookup) -> bool:
    """Whether a placement may change it: it has slots, and its gang exists with the same uid."""
    gang = index.gangs.get(reservation.gang)
    return bool(reservation.slots) and gang is not None and gang.uid == reservation.uid


def _exchange(
    placement: Placement, index: lookup.SnapshotLookup, commitments: _Commitments
) -> Places:
    """Give back the gang's standing slots, and take the slots that stay; return the new slots."""
    gang = index.gangs.get(placement.gang)
    if gang is None or gang.uid != placement.uid:
        return Counter()
    return slot_checks.exchange(placement, gang, commitments.open.get(gang.key), commitments.ledger)


def _placement_faults(
    placement: Placement, index: lookup.SnapshotLookup, commitments: _Commitments, new_slots: Places
) -> Iterator[str]:
    """One sentence for each fault of a placement; adds it to the commitments."""
    gang = index.gangs.get(placement.gang)
    if gang is None or gang.uid != placement.uid:
        yield f"gang {placement.gang}: there is no such gang"
        return
    if gang.terminating or gang.key in commitments.gangs:
        yield f"gang {gang.key}: it is being deleted, or has a placement already"
    commitments.gangs.add(gang.key)
    for assignment in placement.assignments:
        yield from _assignment_faults(assignment, gang, index, commitments)
        commitments.pods.add(assignment.uid)
    yield from slot_checks.faults(new_slots, gang, index.nodes, commitments.ledger)
    for why in volume_checks.faults(
        placement.assignments, placement.volumes, gang, index, commitments.volumes
    ):
        yield f"gang {gang.key}: {why}"
    yield from _missing_members(gang, placement)
    yield from _surplus_members(gang, placement)
    reservation = commitments.open.get(gang.key)
    yield from domain_checks.faults(index.topologies, index.nodes, gang, placement, reservation)


def _assignment_faults(
    assignment: Assignment,
    gang: Gang,
    index: lookup.SnapshotLookup,
    commitments: _Commitments,
) -> Iterator[str]:
    """One sentence for each fault of an assignment; takes its room and its devices."""
    ledger = commitments.ledger
    member, node = index.members(gang.key).get(assignment.uid), index.nodes.get(assignment.node)
    if member is None or member.key != assignment.pod:
        yield f"pod {assignment.pod}: it is no member of gang {gang.key}"
        return
    if node is None:
        yield f"pod {assignment.pod}: there is no node {assignment.node}"
        return
    if assignment.uid in commitments.pods:
        yield f"pod {assignment.pod}: it has a node already"
    is_ready = not (member.unsupported_fields or member.size_unknown_because or member.lacks_claims)
    if not (member.is_waiting and is_ready and gang.accepts(member)):
        yield f"pod {assignment.pod}: it cannot be placed now"
    if (why := fits_node(member.shape, node)) is not None:
        yield f"pod {assignment.pod}: node {assignment.node} will not do: {why}"
    amounts = lookup.needs(member.shape)
    if short_resources := ledger.lacks(assignment.node, amounts):
        names = ", ".join(map(format_name, short_resources))
        yield f"pod {assignment.pod}: node {assignment.node} has too little {names}"
    ledger.take(assignment.node, amounts)
    if assignment.claims or member.device_claims:
        yield from commitments.devices.faults(assignment, member)


def _missing_members(gang: Gang, placement: Placement) -> Iterator[str]:
    """The members that a gang lacks to start; a gang that has started may lack members."""
    bound = [m for m in gang.members if m.counts_as_bound and gang.accepts(m)]
    if bound:
        return
    uids = {assignment.uid for assignment in placement.assignments}
    starting = [member for member in gang.members if member.uid in uids]
    starting += [member for member, _ in slots.placeholders_of_slots(gang, placement.slots)]
    if len(starting) < gang.min_member:
        yield f"gang {gang.key}: {len(starting)} of {gang.min_member} members are placed"
    for role in gang.roles:
        n = sum(member.role == role.name for member in starting)
        if n < role.min_member:
            yield f"gang {gang.key}: {n} of {role.min_member} of role {role.name} are placed"


def _surplus_members(gang: Gang, placement: Placement) -> Iterator[str]:
    """The roles that would have more members than their maximum."""
    if all(role.max_member is None for role in gang.roles):
        return
    uids = {assignment.uid for assignment in placement.assignments}
    added = Counter(m.role for m in gang.members if m.uid in uids)
    added.update(member.role for member, _ in slots.placeholders_of_slots(gang, placement.slots))
    current = Counter(m.role for m in gang.members if m.counts_as_bound and not m.is_over)
    for role in gang.roles:
        n, maximum = current[role.name] + added[role.name], role.max_member
        if added[role.name] and maximum is not None and n > maximum:
            yield f"gang {gang.key}: {n} of at most {maximum} of role {role.name} are placed"


def _inter_pod_checker(
    snapshot: Snapshot,
    placements: Sequence[Placement],
    index: lookup.SnapshotLookup,
    counted_uids: Collection[Uid] | None = None,
) -> inter_pod.InterPodChecker | None:
    """The pods once all are placed; None if no rule between pods can be in force."""
    gangs = [
        index.gangs[placement.gang] for placement in placements if placement.gang in index.gangs
    ]
    if not (snapshot.reservations or lookup.may_have_rules(replace(snapshot, gangs=tuple(gangs)))):
        return None

    def is_counted(uid: Uid) -> bool:
        return counted_uids is None or uid in counted_uids

    new_placements = {placement.gang: placement for placement in placements}
    members: list[inter_pod.PlacedMember] = []
    for reservation in snapshot.reservations:
        unbound = (placed for _, placed in lookup.unbound_members(reservation, index))
        members.extend(placed for placed in unbound if is_counted(placed[0].uid))
        if is_counted(reservation.uid):
            members.extend(
                lookup.absent_members(
                    _without_released_slots(reservation, new_placements.get(reservation.gang)),
                    index,
                )
            )
    standing = {
        reservation.gang: reservation for reservation in snapshot.reservations if reservation.slots
    }
    for placement in placements:
        members.extend(_new_members(placement, index, standing.get(placement.gang)))
    return inter_pod.InterPodChecker(snapshot, members, lookup.coming(snapshot))


def _without_released_slots(reservation: Reservation, placement: Placement | None) -> Reservation:
    """The Reservation without the slots that the placement gives up."""
    if placement is None:
        return reservation
    kept_slots = slots.places(reservation.slots) & slots.places(placement.slots)
    return replace(reservation, slots=slots.slots_of(kept_slots))


def _new_members(
    placement: Placement, index: lookup.SnapshotLookup, reservation: Reservation | None
) -> Iterator[inter_pod.PlacedMember]:
    """The members, including absent ones, that a placement adds to the standing Reservation."""
    for assignment in placement.assignments:
        if (member := index.members(placement.gang).get(assignment.uid)) is not None:
            yield member, assignment.node
    if (gang := index.gangs.get(placement.gang)) is not None:
        held_slots = slots.places(() if reservation is None else reservation.slots)
        yield from slots.placeholders_of_slots(
            gang, slots.slots_of(slots.places(placement.slots) - held_slots)
        )


def _rule_violations(
    placement: Placement,
    index: lookup.SnapshotLookup,
    reservation: Reservation | None,
    checker: inter_pod.InterPodChecker,
) -> Iterator[str]:
    """The rules between pods that a placement breaks, each member judged as if it came last."""
    for member, node in _new_members(placement, index, reservation):
        yield from checker.faults(member, node)


def fitting(
    nodes: Mapping[NodeName, Node], members: Iterable[tuple[Member, NodeName]]
) -> Sequence[Member]:
    """The members, taken in order, for which there is room beside bound pods and one another.

    Reservations are ignored.
    """
    ledger, fit = lookup.Ledger(nodes), list[Member]()
    for member, name in members:
        needs = lookup.needs(member.shape)  # at least one pod, which a node that is gone lacks
        if not ledger.lacks(name, needs) and fits_node(member.shape, nodes[name]) is None:
            ledger.take(name, needs)
            fit.append(member)
    return fit
