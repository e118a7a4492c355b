"""Which queue each gang belongs to, what it is charged there, and which gangs may not start.

This is the second stage of a plan. Without Queues it changes nothing.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf

from ..gang import demand, timeouts
from ..gang.demand import MemberCounts, PlacementRequest
from ..gang.findings import (
    AmbiguousDefault,
    CountsInRoot,
    EndingObstacle,
    ForbiddenQueue,
    QueueChanges,
    QueueDrained,
    QueueHasChildren,
    QueueHeld,
    UnknownNamespace,
    UnknownQueue,
)
from ..gang.order import by_age, waiting_since
from ..model.cluster import Gang, Member, Phase, Reservation, Snapshot
from ..model.decisions import Finding, QueueUse, Reason, Rejection
from ..model.keys import POD, GangKey, Uid
from ..model.queues import ROOT, QueueRecord, RoleAtStart, Stop
from ..model.resources import NOTHING, Resources
from ..queues import admission, charge, claims, limits, use
from ..queues.admission import Membership, Refusal
from ..queues.at_limit import NO_GANGS, LimitedGangs, WaitingGang
from ..queues.attribution import ChargedPods
from ..queues.charge import GangCharge
from ..queues.cover import QueuedGang
from ..queues.limits import QueueLimit
from ..queues.tree import QueueTree
from ..queues.use import ChargedGangs
from .observed_demand import ObservedDemand

NO_PODS = ChargedPods(())


@dataclass(frozen=True, slots=True, eq=False)
class QueuedGangs:
    """The gangs in their queues; all is empty if there are no Queues."""

    observed: ObservedDemand  # without the gangs that may not start
    queues: Mapping[GangKey, str] = field(default_factory=dict)  # running gangs included
    charges: Mapping[GangKey, GangCharge] = field(default_factory=dict)  # of running gangs
    # Of charged gangs without a record of their own: that of an earlier PodGroup, if there is one.
    inherited: Mapping[GangKey, QueueRecord | None] = field(default_factory=dict)
    limits: Sequence[QueueLimit] = ()
    charged: ChargedGangs | None = None  # None if there are no Queues
    use: tuple[QueueUse, ...] = ()
    stopped: Mapping[GangKey, Rejection] = field(default_factory=dict)  # they run, and may not grow
    uids: Mapping[str, Uid] = field(default_factory=dict)  # of the queues, by name
    pods: ChargedPods = NO_PODS
    unendable: Mapping[GangKey, EndingObstacle] = field(default_factory=dict)  # gangs that wait

    @property
    def credit_of(self) -> Mapping[GangKey, Resources]:
        """What gangs are charged for lost members."""
        return {key: charge.credit for key, charge in self.charges.items() if charge.credit.amounts}

    def queue_of(self, gang: Gang) -> str:
        """The queue in which a gang starts, or is charged; the root if it may start in none."""
        return self.queues.get(gang.key, ROOT)

    def start_record(self, members: MemberCounts, placed: Sequence[Member]) -> QueueRecord | None:
        """The record of a gang that starts with these members, or None.

        A gang that runs keeps its record. If that is of an earlier PodGroup of its name, the gang
        gets one of its own, as if it had started with what holds room by now: no record names its
        new pods otherwise. A pod without a PodGroup gets none. Without Queues there are no records.
        """
        gang = members.gang
        if gang.is_single or not self.uids:
            return None
        if gang.key in self.charges:
            if gang.key not in self.inherited:
                return None
            if _is_running(members):
                inherited = self.inherited[gang.key]
                if inherited is None:
                    return None
                minimum = self._minimum(members, placed)
                own = replace(inherited, minimum=minimum, succeeded=())
                return charge.with_succeeded(gang, own)
        queue = self.queues[gang.key]
        minimum = charge.start_charge(gang, by_age(placed))
        started = self.observed.snapshot.taken_at
        record = QueueRecord(queue, self.uids[queue], started, minimum, gang.is_protected)
        return charge.with_succeeded(gang, record)

    def may_ever_start(self, want: PlacementRequest) -> bool:
        """Whether its queue guarantees enough for a gang that must not borrow."""
        gang = want.gang
        if self.charged is None or not gang.is_protected:
            return True
        guarantee = self.charged.tree.guarantees[self.queue_of(gang)]
        starts = charge.start_charge(gang, by_age(want.members))
        needs = Resources.total(start.requests for start in starts)
        return all(needs[line] <= n for line, n in guarantee.items())

    def _minimum(self, members: MemberCounts, placed: Sequence[Member]) -> tuple[RoleAtStart, ...]:
        """The minimum of a gang that runs, with the members that are placed now."""
        staying = [m for m in members.bound if not (m.is_over or m.terminating)]
        first = charge.by_joining(staying, self.pods.joined)
        return charge.start_charge(members.gang, [*first, *by_age(placed)])

    def limited(self, gangs: Iterable[MemberCounts], placed: Collection[Uid]) -> LimitedGangs:
        """The gangs below limits; a gang waits if it has not started and no member got a node."""
        waiting = (
            WaitingGang(
                members.gang.key,
                members.gang.priority,
                waiting_since(members.gang, by_age(members.waiting)),
            )
            for members in gangs
            if members.waiting
            and not members.is_committed
            and not any(member.uid in placed for member in members.waiting)
        )
        charges = {key: charge.total for key, charge in self.charges.items()}
        return LimitedGangs(self.queues, charges, waiting) if self.limits else NO_GANGS

    def explained(self, rejection: Rejection) -> Rejection:
        """The rejection; it says if the gang may not grow, or if it counts in the root."""
        if rejection.only_extra_members:
            return self.stopped.get(rejection.gang, rejection)
        is_charged, is_pod = rejection.gang in self.charges, rejection.gang.kind == POD
        if self.queues.get(rejection.gang) == ROOT and not (is_charged or is_pod):
            return rejection.with_findings(CountsInRoot())
        return rejection


def queue_gangs(observed: ObservedDemand) -> QueuedGangs:
    """Each gang in its queue; a gang that may not start there is refused."""
    snapshot = observed.snapshot
    if not snapshot.queues:
        return QueuedGangs(observed)
    tree = QueueTree.of(snapshot.queues)
    slots = observed.slots.open
    arrivals = (entry.uid for change in slots.values() for entry in change.new_entries)
    pods, records = ChargedPods.of(snapshot, arrivals, slots), snapshot.records
    memberships = admission.memberships(tree, snapshot.namespaces, pods.gangs)
    charges = _charges(observed, pods, records)
    queues: dict[GangKey, str] = {}
    for gang in pods.gangs:
        membership = memberships[gang.key]
        if gang.key in charges:
            record = records.get(gang.uid)
            queues[gang.key] = admission.charged_queue(tree, record, membership)
        elif membership.queue:
            queues[gang.key] = membership.queue
    running = tuple(
        _running(gang, queues[gang.key], charges[gang.key], records.get(gang.uid))
        for gang in pods.gangs
        if gang.key in charges
    )
    inherited = {
        gang.key: records.get(gang.uid)
        for gang in pods.gangs
        if gang.key in charges and gang.uid not in pods.own_records
    }
    totals = dict(snapshot.allocatable.amounts)
    charged = ChargedGangs(tree, totals, running, charges, snapshot.taken_at)
    rejections: dict[GangKey, Rejection] = {}
    stopped: dict[GangKey, Rejection] = {}
    waiting = [gang for gang in pods.gangs if gang.key in queues and gang.key not in charges]
    unendable = claims.ending_obstacles(tree, waiting, queues, snapshot.budgets, snapshot.jobs)
    counts: list[MemberCounts] = []
    for members in (_marked(members, unendable) for members in observed.gangs):
        gang = members.gang
        admitted = _without_charged_elsewhere(members, pods.charged_elsewhere)
        is_running = _is_running(admitted)
        created = inf
        if is_running:
            admitted = _as_started(admitted, records.get(gang.uid))
        elif admitted.is_committed:
            admitted = replace(admitted, gang=charge.without_minimum(gang))
        else:
            since = tree.draining_since[queues.get(gang.key, ROOT)]
            before, admitted = admitted, _undrained(admitted, since)
            created = inf if _is_kept_out(before, admitted) else gang.created
        counts.append(admitted)
        rejection = _rejection(
            tree, gang, created, memberships[gang.key], queues, is_running=is_running
        )
        if rejection is None or gang.terminating:
            continue
        if is_running:
            stopped[gang.key] = replace(rejection, only_extra_members=True)
        else:
            rejections[gang.key] = rejection
    observed = replace(observed, gangs=counts)
    return QueuedGangs(
        _without(observed, rejections),
        queues,
        charges,
        inherited,
        limits.limits(tree, queues, {key: charge.total for key, charge in charges.items()}),
        charged,
        use.queue_use(charged, _waiting(pods.gangs, queues, charges)),
        stopped,
        {name: queue.uid for name, queue in tree.queues.items()},
        pods,
        unendable,
    )


def _charges(
    observed: ObservedDemand, pods: ChargedPods, records: Mapping[Uid, QueueRecord]
) -> Mapping[GangKey, GangCharge]:
    """What each gang is charged that holds room.

    The slots that this plan gives back are charged until that is written down.
    """
    snapshot, slots = observed.snapshot, observed.slots.open
    reservations = {reservation.uid: reservation for reservation in snapshot.reservations}
    charges: dict[GangKey, GangCharge] = {}
    for gang in pods.gangs:
        charge_with = partial(
            charge.gang_charge,
            charge.as_started(gang, records.get(gang.uid)),
            record=pods.own_records.get(gang.uid),
            others=pods.others.get(gang.key, ()),
            joined=pods.joined,
        )
        charged = charge_with(reservations.get(gang.uid))
        if gang.uid in slots:
            charged = charged.at_least(charge_with(slots[gang.uid].before))
            if slots[gang.uid].lost_slots:
                rest = charge_with(slots[gang.uid].without_lost_slots)
                charged = _with_lost_slots(charged, rest)
        if charged.extras and charged.credit.amounts and _may_change_roles(gang, pods):
            charged = charged.extras_in_credit
        if charged.total.amounts:
            charges[gang.key] = charged
    return charges


def _with_lost_slots(charged: GangCharge, rest: GangCharge) -> GangCharge:
    """The charge, with its credit only if all replacements get places, also those of lost slots.

    Lost slots keep their places until members or other slots replace them. ``rest`` is the charge
    without lost slots.
    """
    if rest.credit.amounts and rest.extras == charged.extras:
        return charged
    return replace(charged, credit=NOTHING)


def _may_change_roles(gang: Gang, pods: ChargedPods) -> bool:
    """Whether the start of a gang has roles, and labels alone say the role of a pod that runs."""
    record = pods.own_records.get(gang.uid)
    if record is None or not record.has_roles:
        return False
    return any(_has_node(member) and member.uid not in pods.with_roles for member in gang.members)


@dataclass(frozen=True, slots=True)
class UnrecordedGang:
    """A gang that runs without a record, the record that it lacks, and the pods charged to it."""

    gang: Gang
    record: QueueRecord
    pods: tuple[Uid, ...]  # its members come first, from the oldest to the newest


def unrecorded_gangs(snapshot: Snapshot) -> Sequence[UnrecordedGang]:
    """The gangs that run without a record.

    They started before there were Queues. The record of a gang that belongs to no Queue names no
    queue. Gangs with a Reservation get no record until it ends.
    """
    known = snapshot.records.keys() | {reservation.uid for reservation in snapshot.reservations}
    candidates = [
        gang
        for gang in snapshot.gangs
        if not gang.is_single and gang.uid not in known and any(map(_has_node, gang.members))
    ]
    if not (snapshot.queues and candidates):
        return ()
    tree, pods = QueueTree.of(snapshot.queues), ChargedPods.of(snapshot)
    uids = {gang.uid for gang in candidates}
    gangs = [gang for gang in pods.gangs if gang.uid in uids]
    memberships = admission.memberships(tree, snapshot.namespaces, gangs)
    unrecorded = []
    for gang in gangs:
        own = [member for member in gang.members if _has_node(member)]
        if not own:
            continue
        minimum = charge.with_lost(gang, charge.start_charge(gang, by_age(own)))
        record = QueueRecord("", Uid(""), charge.started_at(gang), minimum)
        record = charge.with_succeeded(gang, record)
        charged = (*by_age(own), *by_age(pods.others.get(gang.key, ())))
        uids_of_pods = tuple(member.uid for member in charged)
        record = _in_queue(record, tree, memberships[gang.key].queue)
        unrecorded.append(UnrecordedGang(gang, record, uids_of_pods))
    return unrecorded


def outdated_records(snapshot: Snapshot) -> Iterator[Reservation]:
    """The Reservations that lack members that succeeded, or roles of members, with all of these.

    Versions of Tutti that knew no such fields leave them out.
    """
    if not snapshot.queues:
        return
    gangs = {gang.uid: gang for gang in snapshot.gangs}
    for reservation, record in snapshot.recorded:
        gang = gangs.get(reservation.uid)
        if gang is None:
            continue
        now, roles = record, reservation.roles
        if gang.finished or any(member.phase is Phase.SUCCEEDED for member in gang.members):
            now = charge.with_succeeded(gang, record, reservation)
        if record.has_roles and len(roles) < len([*reservation.pods]):
            known, named = {uid for uid, _ in roles}, {*reservation.pods}
            unknown = ((m.uid, m.role) for m in gang.members if m.uid in named - known)
            roles = (*roles, *unknown)
        if now is not record or len(roles) > len(reservation.roles):
            yield replace(reservation, record=now, roles=tuple(sorted(roles)))


def completed_records(snapshot: Snapshot) -> Sequence[Reservation]:
    """The records without a queue whose gangs now belong to a Queue, with that Queue."""
    candidates = {
        reservation.gang: (reservation, record)
        for reservation, record in snapshot.recorded
        if reservation.is_spent and not record.queue
    }
    if not (snapshot.queues and candidates):
        return ()
    tree = QueueTree.of(snapshot.queues)
    gangs = [gang for gang in snapshot.gangs if gang.key in candidates]
    memberships = admission.memberships(tree, snapshot.namespaces, gangs)
    completed = []
    for key, membership in memberships.items():
        reservation, record = candidates[key]
        complete = _in_queue(record, tree, membership.queue)
        if complete.queue:
            completed.append(replace(reservation, record=complete))
    return completed


def _in_queue(record: QueueRecord, tree: QueueTree, queue: str) -> QueueRecord:
    """The record with this queue; without a queue if it is empty or the root."""
    if queue in ("", ROOT):
        return record
    return replace(record, queue=queue, queue_uid=tree.queues[queue].uid)


def _is_running(members: MemberCounts) -> bool:
    return any(not member.is_over for member in members.bound)


def _has_node(member: Member) -> bool:
    return member.node is not None and not member.is_over


def _running(gang: Gang, queue: str, charged: GangCharge, record: QueueRecord | None) -> QueuedGang:
    """A running gang, as the order of queues sees it."""
    started = charge.started_at(gang) if record is None else record.started
    is_protected = record is not None and record.is_protected
    return QueuedGang(
        gang.key, queue, gang.priority, charged.minimum, charged.extras, started, is_protected
    )


def _waiting(
    gangs: Iterable[Gang], queues: Mapping[GangKey, str], charges: Collection[GangKey]
) -> Sequence[str]:
    """The queue of each gang that has pods and has not started."""
    return [
        queues[gang.key]
        for gang in gangs
        if gang.key in queues and gang.key not in charges and not (gang.is_idle or gang.terminating)
    ]


def _marked(members: MemberCounts, unendable: Collection[GangKey]) -> MemberCounts:
    """The members, of a protected gang if it could not be ended."""
    gang = members.gang
    if gang.key not in unendable:
        return members
    return replace(members, gang=replace(gang, is_protected=True))


def _without_charged_elsewhere(
    members: MemberCounts, charged_elsewhere: Collection[Uid]
) -> MemberCounts:
    """The members without the bound pods that are charged to another gang or by themselves.

    These make no gang whole, and count only to the maximums of roles.
    """
    own = tuple(member for member in members.bound if member.uid not in charged_elsewhere)
    if len(own) == len(members.bound):
        return members
    elsewhere = tuple(member for member in members.bound if member.uid in charged_elsewhere)
    return replace(members, bound=own, elsewhere=elsewhere)


def _as_started(members: MemberCounts, record: QueueRecord | None) -> MemberCounts:
    """The members of a running gang, with the minimum that its record says it started with."""
    gang = charge.as_started(members.gang, record)
    return members if gang is members.gang else replace(members, gang=gang)


def _undrained(members: MemberCounts, since: float) -> MemberCounts:
    """The members of a waiting gang, without the pods that are newer than a drain."""
    if since == inf:
        return members
    ready = tuple(member for member in members.ready if member.created < since)
    return members if len(ready) == len(members.ready) else replace(members, ready=ready)


def _is_kept_out(members: MemberCounts, admitted: MemberCounts) -> bool:
    """Whether the gang could start with all its members, but not with the admitted members."""
    return (
        admitted is not members
        and demand.start_request(admitted) is None
        and demand.start_request(members) is not None
    )


def _rejection(
    tree: QueueTree,
    gang: Gang,
    created: float,
    membership: Membership,
    queues: Mapping[GangKey, str],
    *,
    is_running: bool,
) -> Rejection | None:
    """Why the gang may not start in its queue, or may not grow if it runs; None if it may.

    A drain that began before ``created`` keeps the gang out.
    """
    if membership.refusal is not None:
        reason, finding = _refusal(gang, membership)
        return Rejection(gang.key, reason, (finding,))
    queue = queues[gang.key]
    if queue != membership.queue and not is_running:
        finding = QueueChanges(queue, membership.queue)
        return Rejection(gang.key, Reason.QUEUE_CHANGES, (finding,))
    match tree.stop_of(queue, created):
        case Stop.HOLD:
            return Rejection(gang.key, Reason.QUEUE_HELD, (_held(tree, queue),))
        case Stop.DRAIN:
            return Rejection(gang.key, Reason.QUEUE_DRAINS, (QueueDrained(queue),))
        case _:
            return None


def _held(tree: QueueTree, name: str) -> QueueHeld:
    """Why a queue that is held starts no gang: its own cause, or that of the first above it."""
    causes = ((step, tree.hold_cause(step)) for step in tree.paths[name])
    return next(QueueHeld(name, step, cause) for step, cause in causes if cause is not None)


def _refusal(gang: Gang, membership: Membership) -> tuple[Reason, Finding]:
    queue, candidates = membership.refused, membership.candidates
    match membership.refusal:
        case Refusal.FORBIDDEN:
            finding = ForbiddenQueue(queue, gang.key.namespace, candidates)
            return Reason.FORBIDDEN_QUEUE, finding
        case Refusal.NOT_A_LEAF:
            return Reason.QUEUE_HAS_CHILDREN, QueueHasChildren(queue, candidates)
        case Refusal.AMBIGUOUS:
            return Reason.AMBIGUOUS_DEFAULT, AmbiguousDefault(gang.key.namespace, candidates)
        case Refusal.UNKNOWN_NAMESPACE:
            return Reason.UNKNOWN_NAMESPACE, UnknownNamespace(gang.key.namespace)
        case _:
            return Reason.UNKNOWN_QUEUE, UnknownQueue(queue, candidates)


def _without(observed: ObservedDemand, rejections: Mapping[GangKey, Rejection]) -> ObservedDemand:
    """The demand without the rejected gangs; their rejections mention a time limit that passed."""
    now = observed.snapshot.taken_at
    gangs = [members for members in observed.gangs if members.gang.key in rejections]
    timed = timeouts.with_time_limits(rejections.values(), gangs, now)
    rest = [members for members in observed.gangs if members.gang.key not in rejections]
    refused = {**observed.refused, **{rejection.gang: rejection for rejection in timed}}
    return replace(observed, refused=refused).deciding_on(rest)
