"""Which rules between pods an answer breaks, pod by pod: each in turn as if it came last."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.strategies.problem import Solution

    from .case import Balance, Bond, Case, Kind

Pod = tuple["Kind", int]  # on which node


def broken_rules(case: Case, solution: Solution) -> Iterator[str]:
    """One sentence for each pod and rule."""
    pods = [
        (ask.kinds[share.part], share.node)
        for ask, shares in zip(case.asks, solution.shares, strict=True)
        for share in shares
        for _ in range(share.count)
    ]
    everyone = Counter(pods)
    for pod in {**everyone, **dict.fromkeys(case.promised)}:
        others = everyone.copy()
        others[pod] -= 1
        for fault in _of_one(case, pod, others):
            yield f"a pod on node {pod[1]}: {fault}"


def _of_one(case: Case, pod: Pod, others: Counter[Pod]) -> Iterator[str]:
    kind, node = pod
    for company in sorted(kind.shuns):
        place = case.companies[company].place[node]
        if place >= 0 and _newcomers(case, company, others)[place]:
            yield f"not apart from company {company}"
    for bond in kind.bonds:
        if not _is_bound(case, bond, node, others):
            yield f"not near to companies {bond.companies}"
    for balance in kind.balances:
        if not _is_even(case, balance, pod, others):
            yield f"too many of company {balance.company} in its place"


def _is_bound(case: Case, bond: Bond, node: int, others: Counter[Pod]) -> bool:
    places = [case.companies[company].place[node] for company in bond.companies]
    found = [_all(case, company, others) for company in bond.companies]
    has_others = all(all_of[place] for all_of, place in zip(found, places, strict=True))
    is_alone = bond.or_alone and not any(all_of.total() for all_of in found)
    return min(places) >= 0 and (has_others or is_alone)


def _is_even(case: Case, balance: Balance, pod: Pod, others: Counter[Pod]) -> bool:
    kind, node = pod
    place = case.companies[balance.company].place[node]
    if place < 0:
        return False
    found = _all(case, balance.company, others)
    places = range(len(case.companies[balance.company].there))
    least = 0 if balance.against_nobody else min(found[each] for each in places)
    return found[place] + (balance.company in kind.joins) - least <= balance.most


def _newcomers(case: Case, company: int, pods: Counter[Pod]) -> Counter[int]:
    """How many in each place."""
    found = Counter[int]()
    for (kind, node), count in pods.items():
        place = case.companies[company].place[node]
        if company in kind.joins and place >= 0:
            found[place] += count
    return found


def _all(case: Case, company: int, pods: Counter[Pod]) -> Counter[int]:
    return _newcomers(case, company, pods) + Counter(dict(enumerate(case.companies[company].there)))
