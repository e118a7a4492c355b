"""Gangs that start in a queue where they may not start, and the limits of queues.

Each queue with limits is one cap over the gangs that have the queue in their chain of parents.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

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


@dataclass(frozen=True, slots=True)
class LimitedClaims:
    """The gangs of claims that may not start yet, because the use of queues exceeds a limit."""

    ending: set[GangKey] = field(default_factory=set)  # their victims below the limit must end
    waiting: set[GangKey] = field(default_factory=set)  # what leaves, or victims of others, must go
    stuck: dict[GangKey, Member] = field(default_factory=dict)  # with a pod that does not go


def limited_claims(
    snapshot: Snapshot, claims: Iterable[Reservation], staying: Mapping[Uid, Collection[Uid]]
) -> LimitedClaims:
    """The claims for which there is no room below a limit, younger claims aside.

    ``claims`` have no bound member, and ``staying`` has the pods of their victims that are not
    evicted yet, by uid of the claim. A limit was lowered if nothing below it ends or leaves, and
    then it keeps no claim waiting.
    """
    now = snapshot.taken_at
    ends = {uid for uids in staying.values() for uid in uids}
    pods = {
        pod.uid: pod
        for pod in snapshot.pods
        if pod.node is not None and not pod.is_over and (pod.terminating or pod.uid in ends)
    }
    if not pods:
        return LimitedClaims()
    charges = QueueCharges.of(snapshot, ())
    charged = [
        (gang.key, pods[member.uid])
        for gang in charges.snapshot.gangs
        for member in gang.members
        if member.uid in pods
    ]
    oldest_first = sorted(claims, key=lambda claim: (claim.reserved_at, claim.gang))
    uses, answer = charges.usage.before, LimitedClaims()
    for cap in caps(charges):
        used = cap_checks.total_of(uses, cap.gangs)
        below = {pod.uid: pod for key, pod in charged if key in cap.gangs}
        leaves = cap_checks.needs_of(pod for pod in below.values() if pod.is_leaving(now))
        may_end = _needs_of(below, ends)
        stuck = (pod for pod in below.values() if pod.is_stuck(now))
        held_up = min(stuck, key=lambda pod: pod.key, default=None)
        for claim in reversed(oldest_first):
            if claim.gang not in cap.gangs:
                continue
            own = uses[claim.gang]
            over = [n for n, limit in cap.limits.items() if own[n] and limit < used[n]]
            ends_below = _needs_of(below, staying.get(claim.uid, ()))
            if any(ends_below[n] and used[n] - leaves[n] > cap.limits[n] for n in over):
                answer.ending.add(claim.gang)
            if any(leaves[n] or may_end[n] for n in over):
                answer.waiting.add(claim.gang)
            elif over and held_up is not None:
                answer.stuck[claim.gang] = held_up
            used.subtract(own)
    return answer


def _needs_of(pods: Mapping[Uid, Member], uids: Iterable[Uid]) -> Counter[str]:
    """What those of the pods request that ``uids`` name."""
    return cap_checks.needs_of(pods[uid] for uid in uids if uid in pods)


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
