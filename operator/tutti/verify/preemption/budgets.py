"""Whether PodDisruptionBudgets let the victims of claims end."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ...filters.selectors import is_budgeted
from ...model.cluster import DisruptionBudget, Member, Snapshot
from ...model.decisions import Claim
from ...model.keys import Uid
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
