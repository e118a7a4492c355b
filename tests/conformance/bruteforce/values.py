"""What a gang is worth, who goes first, and the room that is held: as docs/planner.md says."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .cluster import Cluster, Gang, Pod
    from .search import Rooms, Searcher

STEPS = 4  # of an age's weight
MOST_WEIGHT = 17
PORTIONS = 1024


def value(cluster: Cluster, gang: Gang) -> Fraction:
    """What it is worth to start the gang."""
    match cluster.objective:
        case "gangs":
            return Fraction(1)
        case "members":
            return Fraction(gang.need)
    return _share(cluster, gang) * _weight(cluster, gang)


def _share(cluster: Cluster, gang: Gang) -> Fraction:
    asked: dict[str, int] = {}
    for pod in needed(gang):
        for name, n in pod.request.items():
            asked[name] = asked.get(name, 0) + n
    shares = []
    for name, n in asked.items():
        total = sum(node.room.get(name, 0) for node in cluster.nodes)
        if total and not name.startswith("port "):
            shares.append(Fraction(n, total))
    return max(shares, default=Fraction(0))


def needed(gang: Gang) -> Sequence[Pod]:
    """The oldest members that satisfy the roles."""
    pods, chosen = gang.oldest, []
    for role in gang.roles:
        chosen += [pod for pod in pods if pod.role == role.name][: role.least]
    rest = [pod for pod in pods if pod not in chosen]
    return chosen + rest[: gang.need - len(chosen)]


def _weight(cluster: Cluster, gang: Gang) -> Fraction:
    waited = Fraction(max(0.0, cluster.now - gang.waits_since))
    steps = int(STEPS * waited / cluster.age_seconds)
    return min(1 + Fraction(steps, STEPS), Fraction(MOST_WEIGHT))


def could_start(gang: Gang) -> bool:
    """Whether enough members wait for a gang that has not started."""
    if gang.is_started or len(gang.oldest) < gang.need:
        return False
    return all(
        sum(pod.role == role.name for pod in gang.waiting) >= role.least for role in gang.roles
    )


def vacant(searcher: Searcher) -> Rooms:
    """The room without any member of gangs."""
    ours = searcher.cluster.ours
    return searcher.rooms(lambda pod: f"{pod.namespace}/{pod.name}" in ours)


def firsts(searcher: Searcher, empty: Searcher) -> dict[int, Gang]:
    """By priority, the longest waiting of those that have starved and have a place."""
    cluster, rooms = searcher.cluster, vacant(searcher)
    late = [
        gang
        for gang in cluster.gangs
        if could_start(gang)
        and Fraction(gang.waits_since) + cluster.starvation_seconds <= Fraction(cluster.now)
    ]
    late.sort(key=lambda gang: (gang.waits_since, gang.name.split("/")))
    found: dict[int, Gang] = {}
    for gang in late:
        if gang.priority not in found and empty.place(rooms, [empty.whole(gang, gang.waiting)]):
            found[gang.priority] = gang
    return found


def held(searcher: Searcher, gang: Gang, free: Sequence[Sequence[int]]) -> list[list[int]] | None:
    """The room that is held for a gang of one shape; None where it has several or has rules."""
    demand = searcher.whole(gang, gang.waiting)
    if len(demand.groups) > 1 or searcher.cluster.has_rules:
        return None
    pod = demand.groups[0][0]
    request, allowed = searcher.request(pod), searcher.allowed(pod)
    offers = []
    for i, (room, all_of_it) in enumerate(zip(free, vacant(searcher), strict=True)):
        most = min(n // r for n, r in zip(all_of_it, request, strict=True) if r)
        portions = min(n * PORTIONS // r for n, r in zip(room, request, strict=True) if r)
        for k in range(min(most, gang.need) if allowed[i] else 0):
            missing = max(0, (k + 1) * PORTIONS - portions) - max(0, k * PORTIONS - portions)
            offers.append((missing, i))
    offers.sort()
    kept = [[0] * len(request) for _ in free]
    for _, i in offers[: gang.need]:
        kept[i] = [n + r for n, r in zip(kept[i], request, strict=True)]
    return [
        [min(n, most) for n, most in zip(own, have, strict=True)]
        for own, have in zip(kept, free, strict=True)
    ]
