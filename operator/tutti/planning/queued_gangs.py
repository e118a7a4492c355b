"""Which queue each gang belongs to, what is charged there, and which gangs may not start in theirs.

The second stage of a plan. Where there are no Queues it changes nothing.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..gang import timeouts
from ..gang.demand import MemberCounts
from ..gang.findings import (
    AmbiguousDefault,
    CountsInRoot,
    ForbiddenQueue,
    QueueChanges,
    QueueHasChildren,
    QueueStopped,
    UnknownQueue,
)
from ..gang.order import by_age, waiting_since
from ..model.cluster import Gang, Member, Snapshot
from ..model.decisions import Finding, QueueUse, Reason, Rejection
from ..model.keys import POD, GangKey, Uid
from ..model.queues import ROOT, QueueRecord, Stop
from ..model.resources import Resources
from ..queues import admission, charge, limits, use
from ..queues.admission import Membership, Refusal
from ..queues.at_limit import NO_GANGS, LimitedGangs, WaitingGang
from ..queues.charge import GangCharge
from ..queues.cover import QueuedGang
from ..queues.limits import QueueLimit
from ..queues.tree import QueueTree
from ..queues.use import ChargedGangs
from .observed_demand import ObservedDemand

NO_QUEUE = Membership("")


@dataclass(frozen=True, slots=True, eq=False)
class QueuedGangs:
    """The gangs in their queues; all is empty where there are no Queues."""

    observed: ObservedDemand  # without the gangs that may not start
    queues: Mapping[GangKey, str] = field(default_factory=dict)  # also of gangs that run
    charges: Mapping[GangKey, GangCharge] = field(default_factory=dict)  # of gangs that run
    limits: Sequence[QueueLimit] = ()
    charged: ChargedGangs | None = None  # None where there are no Queues
    use: tuple[QueueUse, ...] = ()
    stopped: Mapping[GangKey, Rejection] = field(default_factory=dict)  # they run and do not grow
    uids: Mapping[str, Uid] = field(default_factory=dict)  # of the queues, by name

    @property
    def credit_of(self) -> Mapping[GangKey, Resources]:
        """What gangs are charged for lost members."""
        return {key: charge.credit for key, charge in self.charges.items() if charge.credit.amounts}

    def queue_of(self, gang: Gang) -> str:
        """The queue in which a gang starts, or is charged; the root if it may start in none."""
        return self.queues.get(gang.key, ROOT)

    def start_record(self, members: MemberCounts, placed: Sequence[Member]) -> QueueRecord | None:
        """What is written down of a gang that starts with these members.

        Nothing of a gang that runs, of a pod without a PodGroup, or while there are no Queues.
        """
        gang = members.gang
        if members.is_committed or gang.is_single or not self.uids:
            return None
        queue = self.queues[gang.key]
        minimum = charge.start_charge(gang, placed)
        return QueueRecord(queue, self.uids[queue], self.observed.snapshot.taken_at, minimum)

    def limited(self, gangs: Iterable[MemberCounts], placed: Collection[Uid]) -> LimitedGangs:
        """The gangs below limits; of these, those wait of which no member has got a node."""
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
    memberships = _memberships(tree, snapshot)
    reservations = {reservation.uid: reservation for reservation in snapshot.reservations}
    records, older = snapshot.records, snapshot.older_members
    charges: dict[GangKey, GangCharge] = {}
    queues: dict[GangKey, str] = {}
    gangs = (*snapshot.gangs, *_gone_gangs(snapshot))
    for gang in gangs:
        membership, record = memberships.get(gang.key, NO_QUEUE), records.get(gang.uid)
        reservation, left = reservations.get(gang.uid), older.get(gang.key, ())
        gang_charge = charge.gang_charge(gang, reservation, record, left)
        if gang_charge.total.amounts:
            charges[gang.key] = gang_charge
            queues[gang.key] = admission.charged_queue(tree, record, membership)
        elif membership.queue:
            queues[gang.key] = membership.queue
    running = tuple(
        _running(gang, queues[gang.key], charges[gang.key], records.get(gang.uid))
        for gang in gangs
        if gang.key in charges
    )
    totals = Resources.total(node.allocatable for node in snapshot.nodes)
    charged = ChargedGangs(tree, dict(totals.amounts), running, charges)
    rejections: dict[GangKey, Rejection] = {}
    stopped: dict[GangKey, Rejection] = {}
    for members in observed.gangs:
        rejection = _rejection(tree, members, memberships[members.gang.key], queues)
        if rejection is None or members.gang.terminating:
            continue
        if members.is_committed:
            stopped[members.gang.key] = replace(rejection, only_extra_members=True)
        else:
            rejections[members.gang.key] = rejection
    return QueuedGangs(
        _without(observed, rejections),
        queues,
        charges,
        limits.limits(tree, queues, {key: one.total for key, one in charges.items()}),
        charged,
        use.queue_use(charged, _waiting(snapshot, queues, charges)),
        stopped,
        {name: queue.uid for name, queue in tree.queues.items()},
    )


def _running(gang: Gang, queue: str, charged: GangCharge, record: QueueRecord | None) -> QueuedGang:
    """A gang that runs, as the walk sees it; without a record it started when it was created."""
    started = gang.created if record is None else record.started
    return QueuedGang(gang.key, queue, gang.priority, charged.minimum, charged.extras, started)


def _waiting(
    snapshot: Snapshot, queues: Mapping[GangKey, str], charges: Collection[GangKey]
) -> Sequence[str]:
    """The queue of each gang with pods that has not started."""
    return [
        queues[gang.key]
        for gang in snapshot.gangs
        if gang.key in queues and gang.key not in charges and not (gang.is_idle or gang.terminating)
    ]


def _gone_gangs(snapshot: Snapshot) -> Iterator[Gang]:
    """The gangs with a record whose PodGroup is gone; their pods may run on."""
    keys = {gang.key for gang in snapshot.gangs}
    members: dict[GangKey, list[Member]] = {}
    for pod in snapshot.strays:
        members.setdefault(pod.gang, []).append(pod)
    for reservation in (*snapshot.reservations, *snapshot.start_records):
        if reservation.record is not None and reservation.gang not in keys:
            own = members.get(reservation.gang, ())
            yield charge.recorded_gang(reservation, reservation.record, own)


def _memberships(tree: QueueTree, snapshot: Snapshot) -> Mapping[GangKey, Membership]:
    """The queue of each gang if it started now."""
    labels = {namespace.name: dict(namespace.labels) for namespace in snapshot.namespaces}
    known: dict[tuple[str, str], Membership] = {}
    memberships = {}
    for gang in snapshot.gangs:
        names = gang.key.namespace, gang.queue
        if names not in known:
            known[names] = admission.membership(tree, gang.queue, labels.get(names[0], {}))
        memberships[gang.key] = known[names]
    return memberships


def _rejection(
    tree: QueueTree, members: MemberCounts, membership: Membership, queues: Mapping[GangKey, str]
) -> Rejection | None:
    """Why the gang may not start in its queue, or not grow if it runs; None if it may."""
    gang = members.gang
    if membership.refusal is not None:
        reason, finding = _refusal(gang, membership)
        return Rejection(gang.key, reason, (finding,))
    queue = queues[gang.key]
    if queue != membership.queue and not members.is_committed:
        finding = QueueChanges(queue, membership.queue)
        return Rejection(gang.key, Reason.QUEUE_CHANGES, (finding,))
    match tree.stop_of(queue, gang.created):
        case Stop.HOLD:
            return Rejection(gang.key, Reason.QUEUE_HELD, (QueueStopped(queue),))
        case Stop.DRAIN:
            return Rejection(gang.key, Reason.QUEUE_DRAINS, (QueueStopped(queue, is_drained=True),))
        case _:
            return None


def _refusal(gang: Gang, membership: Membership) -> tuple[Reason, Finding]:
    candidates = membership.candidates
    match membership.refusal:
        case Refusal.FORBIDDEN:
            finding = ForbiddenQueue(gang.queue, gang.key.namespace, candidates)
            return Reason.FORBIDDEN_QUEUE, finding
        case Refusal.NOT_A_LEAF:
            return Reason.QUEUE_HAS_CHILDREN, QueueHasChildren(gang.queue, candidates)
        case Refusal.AMBIGUOUS:
            return Reason.AMBIGUOUS_DEFAULT, AmbiguousDefault(gang.key.namespace, candidates)
        case _:
            return Reason.UNKNOWN_QUEUE, UnknownQueue(gang.queue, candidates)


def _without(observed: ObservedDemand, rejections: Mapping[GangKey, Rejection]) -> ObservedDemand:
    """The demand without these gangs, of which those say so that have not started in time."""
    now = observed.snapshot.taken_at
    gangs = [members for members in observed.gangs if members.gang.key in rejections]
    timed = timeouts.with_time_limits(rejections.values(), gangs, now)
    return replace(
        observed,
        refused={**observed.refused, **{rejection.gang: rejection for rejection in timed}},
        gangs=[members for members in observed.gangs if members.gang.key not in rejections],
    )
