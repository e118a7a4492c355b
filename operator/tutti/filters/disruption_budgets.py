"""Which evictions the PodDisruptionBudgets allow, as the eviction API counts them.

Source: ``EvictionREST`` of kube-apiserver. It takes no eviction of a pod that has two budgets. A
pod that is not ready may go beyond its budget there; here it counts like every other pod.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..model.cluster import DisruptionBudget, Member
from ..model.inter_pod import Labels
from ..model.keys import Uid
from . import selectors

NO_PODS: Mapping[DisruptionBudget, Collection[Uid]] = {}


class Shortage(NamedTuple):
    """Why pods cannot be evicted together: budgets of one pod, or one that allows too few."""

    budgets: tuple[DisruptionBudget, ...]
    pods: int  # of these budgets that would be evicted, those before included


@dataclass(frozen=True, slots=True, eq=False)
class DisruptionBudgets:
    """The budgets by namespace, and those of pods once they are known, by namespace and labels."""

    by_namespace: Mapping[str, Sequence[DisruptionBudget]]
    known: dict[tuple[str, Labels], tuple[DisruptionBudget, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, budgets: Sequence[DisruptionBudget]) -> "DisruptionBudgets":
        """The budgets, by namespace."""
        by_namespace: dict[str, list[DisruptionBudget]] = {}
        for budget in budgets:
            by_namespace.setdefault(budget.namespace, []).append(budget)
        return cls(by_namespace)

    def of_pod(self, pod: Member) -> tuple[DisruptionBudget, ...]:
        """The budgets of a pod."""
        namespace = pod.key.namespace
        budgets = self.by_namespace.get(namespace)
        if budgets is None:
            return ()
        kind = namespace, pod.labels
        if kind not in self.known:
            self.known[kind] = tuple(
                budget for budget in budgets if selectors.is_budgeted(budget, *kind)
            )
        return self.known[kind]

    def by_budget(self, pods: Sequence[Member]) -> dict[DisruptionBudget, frozenset[Uid]]:
        """The pods of each budget that is the budget of some of these."""
        uids: dict[DisruptionBudget, set[Uid]] = {}
        for pod in pods if self.by_namespace else ():
            for budget in self.of_pod(pod):
                uids.setdefault(budget, set()).add(pod.uid)
        return {budget: frozenset(pods) for budget, pods in uids.items()}

    def shortage(
        self,
        pods: Sequence[Member],
        before: Mapping[DisruptionBudget, Collection[Uid]] = NO_PODS,
        *,
        once_healthy: bool = False,
    ) -> Shortage | None:
        """Why these cannot be evicted besides those ``before``; None if nothing is in the way.

        With ``once_healthy``, budgets allow what they do while all of their pods are healthy.
        """
        several = (budgets for pod in pods if len(budgets := self.of_pod(pod)) > 1)
        if budgets := next(several, ()):
            return Shortage(budgets, 1)
        evicted = self.by_budget(pods)
        totals = {b: _number_of_both(uids, before.get(b, ())) for b, uids in evicted.items()}
        short = [b for b, n in totals.items() if n > (b.most if once_healthy else b.allowed)]
        first = min(short, key=str, default=None)
        return None if first is None else Shortage((first,), totals[first])


def _number_of_both(pods: Collection[Uid], before: Collection[Uid]) -> int:
    """How many pods these are together; a set of many ``before`` is not copied."""
    return len(before) + sum(pod not in before for pod in pods)
