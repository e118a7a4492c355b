"""Whether budgets, graces and Jobs let victims end, and gangs that would borrow."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from ...filters.selectors import is_budgeted
from ...model.cluster import DisruptionBudget, Gang, Member, Snapshot
from ...model.decisions import Claim
from ...model.keys import GangKey, Uid
from ..queues.chains import QueueChains
from .judge import members_with_room


def faults(snapshot: Snapshot, claims: Sequence[Claim]) -> Iterator[str]:
    """A sentence for each victim with pods that the eviction API would refuse to evict."""
    standing = {pod for r in snapshot.reservations for v in r.victims or () for pod in v.pods}
    holders = [pod for gang in snapshot.gangs if standing for pod in members_with_room(gang)]
    going = _by_budget(snapshot, [pod for pod in holders if pod.uid in standing])
    for victim in (victim for claim in claims for victim in claim.victims):
        if any(len(_budgets_of(snapshot, pod)) > 1 for pod in victim.members):
            yield f"victim {victim.gang} has pods of two budgets, which are never evicted"
        for budget, uids in _by_budget(snapshot, victim.members).items():
            going[budget] |= uids
            if len(going[budget]) > budget.allowed:
                why = f"{len(going[budget])} pods of {budget} would go, {budget.allowed} may"
                yield f"victim {victim.gang} would be left as half a gang: {why}"


def unendable(snapshot: Snapshot) -> AbstractSet[GangKey]:
    """The gangs with pods that could not all be evicted soon, although all are healthy.

    A pod of such a gang has two budgets, or one that allows fewer evictions than the gang has pods,
    or it has a longer grace than the gang's queue admits, or its Job is unknown or tolerates too
    few failures. Single pods do not count.
    """
    queues = QueueChains.of(snapshot)
    return {
        gang.key
        for gang in snapshot.gangs
        if not gang.is_single and _is_unendable(snapshot, queues, gang)
    }


def _is_unendable(snapshot: Snapshot, queues: QueueChains, gang: Gang) -> bool:
    return _is_slow(queues, gang) or _is_kept(snapshot, gang) or _would_fail(snapshot, gang)


def _is_slow(queues: QueueChains, gang: Gang) -> bool:
    queue = queues.queues.get(queues.of_gang(gang) or "")
    return queue is not None and any(
        pod.grace_seconds > queue.max_grace_seconds and pod.is_waiting for pod in gang.members
    )


def _is_kept(snapshot: Snapshot, gang: Gang) -> bool:
    if not snapshot.budgets:
        return False
    waiting = [pod for pod in gang.members if pod.is_waiting]
    if any(len(_budgets_of(snapshot, pod)) > 1 for pod in waiting):
        return True
    by_budget = _by_budget(snapshot, waiting)
    return any(len(uids) > budget.most for budget, uids in by_budget.items())


def _would_fail(snapshot: Snapshot, gang: Gang) -> bool:
    if snapshot.jobs is None:
        return False
    evictions = Counter(
        (pod.key.namespace, pod.owner.name)
        for pod in gang.members
        if pod.is_waiting and pod.owner is not None and pod.owner.is_job
    )
    known = snapshot.jobs
    left = {name: known[name].failures_left if name in known else 0 for name in evictions}
    return any((most := left[name]) is not None and most <= n for name, n in evictions.items())


def _by_budget(
    snapshot: Snapshot, pods: Sequence[Member]
) -> defaultdict[DisruptionBudget, set[Uid]]:
    uids = defaultdict[DisruptionBudget, set[Uid]](set)
    for pod in pods:
        for budget in _budgets_of(snapshot, pod):
            uids[budget].add(pod.uid)
    return uids


def _budgets_of(snapshot: Snapshot, pod: Member) -> Sequence[DisruptionBudget]:
    space = pod.key.namespace
    return [b for b in snapshot.budgets if is_budgeted(b, space, pod.labels)]
