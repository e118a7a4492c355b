"""Which gangs and extras may end so that a gang that waits starts.

A claim by guarantee may end what borrows once the claimant counts as running. A claim by priority
may end what borrows in the claimant's own queue with a lower priority. ``docs/preemption.md``
states the same.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from ..filters import job_failures
from ..filters.disruption_budgets import DisruptionBudgets
from ..gang.findings import BudgetOfGang, EndingObstacle, GraceTooLong, MayNotBorrow
from ..model.cluster import DisruptionBudget, Gang
from ..model.keys import GangKey
from ..model.owners import Job, JobKey
from ..model.queues import Preemption, Queue, QueueMode
from ..model.resources import NOTHING
from . import cover
from .cover import Cover, QueuedGang
from .tree import QueueTree

PROTECTED, MINIMUM, EXTRA = range(3)  # kinds of covered items, in the order of comparison
Counts = Counter[tuple[int, int, int]]  # covered items by depth, kind and priority, all negated


@dataclass(frozen=True, slots=True)
class Entitlement:
    """What may end for a gang: whole gangs with all their extras, and single extras."""

    by_guarantee: bool
    gangs: frozenset[GangKey]
    extras: frozenset[tuple[GangKey, str]]  # by gang and pod; also extras of ``gangs``


def entitlement(
    tree: QueueTree,
    running: Sequence[QueuedGang],
    start: QueuedGang,
    preemption: Preemption,
) -> Entitlement | None:
    """What may end so that ``start`` starts beside the gangs that run; None if it has no claim.

    A gang has a claim by guarantee if it would be covered and its start raises what is covered
    (``_raises``). Otherwise it may have a claim by priority, unless it must not borrow.
    """
    if preemption is Preemption.OFF:
        return None
    after = cover.walk(tree, (*running, start))
    if _is_covered_start(tree, running, start, after) and _raises(tree, running, start, after):
        victims = [
            (gang, gang.queue != start.queue or gang.priority < start.priority) for gang in running
        ]
        return _entitlement(after, victims, by_guarantee=True)
    if preemption is not Preemption.FULL or not may_borrow(tree, start):
        return None
    below = [
        (gang, True)
        for gang in running
        if gang.queue == start.queue and gang.priority < start.priority
    ]
    return _entitlement(after, below, by_guarantee=False)


def mode(queue: Queue, setting: Preemption) -> Preemption:
    """Which claims a queue allows its gangs: what it declares, or else the setting.

    It is off while the setting is, and where the queue's quotas do not count.
    """
    if setting is Preemption.OFF or queue.mode is QueueMode.SHADOW:
        return Preemption.OFF
    return setting if queue.preemption is None else queue.preemption


def may_borrow(tree: QueueTree, gang: QueuedGang) -> bool:
    """Whether the gang may start without cover; protected gangs may not while there are Queues."""
    return not gang.is_protected or len(tree.queues) == 1


def ending_obstacles(
    tree: QueueTree,
    waiting: Iterable[Gang],
    queue_of: Mapping[GangKey, str],
    budgets: Sequence[DisruptionBudget],
    jobs: Mapping[JobKey, Job] | None,
) -> Mapping[GangKey, EndingObstacle]:
    """Why gangs that wait could not be ended once they run, although their PodGroups let them.

    A pod has several PodDisruptionBudgets, or one that allows fewer evictions than the gang has
    pods, or it may take longer to end than its queue admits, or the evictions would make its Job
    fail. Pods without a PodGroup are left out: they have no record of their start that could say
    so. If ``jobs`` is None, Jobs do not count.
    """
    known = DisruptionBudgets.of(budgets)
    candidates = (gang for gang in waiting if not (gang.is_protected or gang.is_single))
    obstacles = (
        (gang.key, _ending_obstacle(gang, tree.queues[queue_of[gang.key]], known, jobs))
        for gang in candidates
    )
    return {key: obstacle for key, obstacle in obstacles if obstacle is not None}


def _ending_obstacle(
    gang: Gang, queue: Queue, budgets: DisruptionBudgets, jobs: Mapping[JobKey, Job] | None
) -> EndingObstacle | None:
    if queue.max_grace_seconds == inf and not budgets.by_namespace and jobs is None:
        return None
    waiting = [member for member in gang.members if member.is_waiting]
    slowest = max(waiting, key=lambda member: (member.grace_seconds, member.key), default=None)
    if slowest is not None and slowest.grace_seconds > queue.max_grace_seconds:
        return GraceTooLong(slowest.key, slowest.grace_seconds, int(queue.max_grace_seconds))
    shortage = budgets.shortage(waiting, once_healthy=True)
    if shortage is not None:
        names = tuple(map(str, shortage.budgets))
        return BudgetOfGang(names, shortage.pods, shortage.budgets[0].most)
    return None if jobs is None else job_failures.obstacle(waiting, jobs)


def why_not_covered(
    tree: QueueTree, running: Sequence[QueuedGang], start: QueuedGang
) -> MayNotBorrow | None:
    """Why a gang that must not borrow cannot start now; None if its own queue would cover it."""
    if cover.would_be_covered(tree, running, [start]):
        return None
    used = cover.walk(tree, running).used.get(start.queue, NOTHING)
    guarantee, needs = tree.guarantees[start.queue], cover.on_lines(tree, start.minimum)
    short = [line for line, n in needs.amounts if used[line] + n > guarantee[line]]
    line = min(short, key=lambda line: (needs[line] <= guarantee[line], line), default="")
    if not line:
        return MayNotBorrow(start.queue)
    return MayNotBorrow(start.queue, line, needs[line], guarantee[line], used[line])


def _is_covered_start(
    tree: QueueTree, running: Sequence[QueuedGang], start: QueuedGang, after: Cover
) -> bool:
    if start.key not in after.gangs:
        return False
    return cover.would_be_covered(tree, running, [start])


def _entitlement(
    after: Cover, victims: Sequence[tuple[QueuedGang, bool]], *, by_guarantee: bool
) -> Entitlement:
    """The gangs and extras among ``victims`` that borrow.

    A whole gang may end only if its flag says so and it is not protected.
    """
    gangs = frozenset(
        gang.key
        for gang, may_end_whole in victims
        if may_end_whole and not gang.is_protected and gang.key not in after.gangs
    )
    extras = frozenset(
        (gang.key, pod)
        for gang, _ in victims
        for pod, _ in gang.extras
        if (gang.key, pod) not in after.extras
    )
    return Entitlement(by_guarantee, gangs, extras)


def _raises(
    tree: QueueTree, running: Sequence[QueuedGang], start: QueuedGang, after: Cover
) -> bool:
    """Whether more is covered once the gang runs, compared by depth, kind and priority.

    This always holds if the gang comes after all gangs that run. Gangs that the plan starts count
    as started at the same moment: by its name, the gang may come before them.
    """
    old = _counts(tree, running, cover.walk(tree, running))
    new = _counts(tree, (*running, start), after)
    for key in sorted({*old, *new}):
        if old[key] != new[key]:
            return new[key] > old[key]
    return False


def _counts(tree: QueueTree, gangs: Collection[QueuedGang], covered: Cover) -> Counts:
    return Counter(_covered_items(tree, gangs, covered))


def _covered_items(
    tree: QueueTree, gangs: Collection[QueuedGang], covered: Cover
) -> Iterator[tuple[int, int, int]]:
    by_key = {gang.key: gang for gang in gangs}
    for key, queue in covered.gangs.items():
        gang = by_key[key]
        if gang.is_protected and gang.queue == queue:
            yield -tree.depths[queue], PROTECTED, 0
        else:
            yield -tree.depths[queue], MINIMUM, -gang.priority
    for (key, _), queue in covered.extras.items():
        yield -tree.depths[queue], EXTRA, -by_key[key].priority
