"""Gangs that start in a queue where they may not start, and the limits of queues.

Each queue with limits is one cap over the gangs that have the queue in their chain of parents.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from ...model.cluster import Member, Reservation, Snapshot
from ...model.decisions import GangCap, Placement
from ...model.keys import GangKey
from ...model.queues import QueueMode
from .. import cap_checks
from .charges import QueueCharges


def caps(charges: QueueCharges) -> Sequence[GangCap]:
    """One cap for each queue with limits that count."""
    gangs = defaultdict[str, set[GangKey]](set)
    for key, name in charges.queues.items():
        for queue in charges.tree.chain(name):
            gangs[queue.name].add(key)
    return [
        GangCap(f"queue {queue.name}", frozenset(gangs[queue.name]), dict(queue.limits))
        for queue in charges.snapshot.queues
        if queue.limits and queue.mode is QueueMode.ACTIVE and queue.name in gangs
    ]


def awaiting_limits(snapshot: Snapshot, claims: Iterable[Reservation]) -> Collection[GangKey]:
    """The gangs of those claims that must wait until pods below a limit have gone.

    ``claims`` have no bound member. The use of all queues below the limit exceeds it, younger
    claims aside, and would not without the pods that terminate, stuck pods aside.
    """
    now = snapshot.taken_at
    gone = {pod.uid for pod in snapshot.pods if pod.node is not None and pod.is_leaving(now)}
    if not gone:
        return ()
    charges = QueueCharges.of(snapshot, ())
    leaving = {
        gang.key: cap_checks.needs_of(pod for pod in gang.members if pod.uid in gone)
        for gang in charges.snapshot.gangs
    }
    oldest_first = sorted(claims, key=lambda claim: (claim.reserved_at, claim.gang))
    uses, awaiting = charges.usage.before, set[GangKey]()
    for cap in caps(charges):
        used = cap_checks.total_of(uses, cap.gangs)
        goes = cap_checks.total_of(leaving, cap.gangs)
        for claim in reversed(oldest_first):
            if claim.gang in cap.gangs:
                own = uses[claim.gang]
                if any(
                    own[name] and limit < used[name] <= limit + goes[name]
                    for name, limit in cap.limits.items()
                ):
                    awaiting.add(claim.gang)
                used.subtract(own)
    return awaiting


def faults(charges: QueueCharges, placements: Sequence[Placement]) -> Mapping[GangKey, str]:
    """A sentence for each gang that starts in a queue where it may not start."""
    tree, sentences = charges.tree, dict[GangKey, str]()
    for placement in placements:
        gang = charges.index.gangs.get(placement.gang)
        if gang is None or any(map(_runs, gang.members)):
            continue
        name, now = charges.queues[gang.key], tree.of_gang(gang)
        if not now:
            sentences[gang.key] = f"gang {gang.key}: it belongs to no queue"
        elif name != now:
            sentences[gang.key] = f"gang {gang.key}: its pods are charged to queue {name}"
        elif any(tree.is_stopped(queue, gang, placement) for queue in tree.chain(name)):
            sentences[gang.key] = f"gang {gang.key}: queue {name} does not start it"
        elif tree.is_stale(placement, name):
            sentences[gang.key] = f"gang {gang.key}: its record is not that of queue {name}"
    return sentences


def _runs(member: Member) -> bool:
    return member.counts_as_bound and not member.is_over
