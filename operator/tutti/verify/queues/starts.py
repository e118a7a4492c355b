"""Gangs that start in a queue where they may not start, and the limits of queues.

Each queue with limits is one cap over the gangs that have the queue in their chain of parents.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from ...model.cluster import Member, Reservation, Snapshot
from ...model.decisions import GangCap, Placement
from ...model.keys import GangKey, Uid
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


def awaiting_limits(
    snapshot: Snapshot, claims: Iterable[Reservation], staying: Mapping[Uid, Collection[Uid]]
) -> Collection[GangKey]:
    """The gangs of those claims that must wait until pods below a limit have gone.

    ``claims`` have no bound member, and ``staying`` has the pods of their victims that are not
    evicted yet, by uid of the claim. The use of all queues below the limit exceeds it, younger
    claims aside. Such pods below the limit must go; else the claim waits only if the use would not
    exceed the limit without the pods that terminate, stuck pods aside.
    """
    now = snapshot.taken_at
    gone = {pod.uid for pod in snapshot.pods if pod.node is not None and pod.is_leaving(now)}
    if not (gone or any(staying.values())):
        return ()
    charges = QueueCharges.of(snapshot, ())
    leaving = _use_by_gang(charges, gone)
    oldest_first = sorted(claims, key=lambda claim: (claim.reserved_at, claim.gang))
    uses, awaiting = charges.usage.before, set[GangKey]()
    victims = {
        claim.uid: _use_by_gang(charges, staying.get(claim.uid, ())) for claim in oldest_first
    }
    for cap in caps(charges):
        used = cap_checks.total_of(uses, cap.gangs)
        goes = cap_checks.total_of(leaving, cap.gangs)
        for claim in reversed(oldest_first):
            if claim.gang in cap.gangs:
                own, ends = uses[claim.gang], cap_checks.total_of(victims[claim.uid], cap.gangs)
                if any(
                    own[name]
                    and limit < used[name]
                    and (ends[name] or used[name] <= limit + goes[name])
                    for name, limit in cap.limits.items()
                ):
                    awaiting.add(claim.gang)
                used.subtract(own)
    return awaiting


def _use_by_gang(charges: QueueCharges, pods: Collection[Uid]) -> Mapping[GangKey, Counter[str]]:
    """What these pods request, by the gang that they are charged to."""
    return {
        gang.key: cap_checks.needs_of(pod for pod in gang.members if pod.uid in pods)
        for gang in charges.snapshot.gangs
    }


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
