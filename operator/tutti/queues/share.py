"""Who borrows first: the queue that has borrowed the least for its weight, level by level.

All comparisons are exact. Source of the measure: dominant resource fairness (Ghodsi et al., 2011),
over the guarantee instead of from nothing.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple

from ..model.keys import GangKey
from ..model.queues import ROOT
from ..model.resources import NOTHING, Resources
from .tree import QueueTree

STEPS = 20  # of 5 % each: shares within one of them count as equal


@dataclass(frozen=True, slots=True)
class Borrower:
    """A gang that waits and would borrow, with what its start would add to the charge."""

    key: GangKey
    queue: str
    priority: int
    waiting_since: float  # seconds since the epoch
    minimum: Resources


@dataclass(frozen=True, slots=True)
class Shares:
    """What is charged to each queue, its descendants included, and how much of it is borrowed."""

    tree: QueueTree
    totals: Mapping[str, int]  # of all nodes, by resource
    charges: Mapping[str, Resources]  # by queue; to itself alone

    def below(self) -> dict[str, Resources]:
        """The charge of each queue with all queues below it."""
        found: dict[str, Resources] = {}
        for queue in self.tree.from_the_leaves:
            parts = (found[child] for child in self.tree.children[queue])
            found[queue] = Resources.total((self.charges.get(queue, NOTHING), *parts))
        return found

    def share(self, queue: str, charged: Resources) -> Fraction:
        """The largest part of any resource's total that is charged over the guarantee, by weight.

        A resource of which no node has anything is left out.
        """
        guarantee = self.tree.guarantees[queue]
        parts = (
            Fraction(max(n - guarantee.get(name, 0), 0), self.totals[name])
            for name, n in charged.amounts
            if self.totals.get(name, 0) > 0
        )
        return max(parts, default=Fraction(0)) / self.tree.queues[queue].weight


# From the child of the root down to the gang's own queue, whose step is repeated so that all are
# of one length: to put a queue into a parent that has no other child changes nothing.
Steps = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """When a borrower may start: after all whose steps are fewer, or whose priority is higher."""

    gang: Borrower
    steps: Steps


def turns(shares: Shares, borrowers: Iterable[Borrower]) -> Sequence[Turn]:
    """The borrowers in the order of their turns.

    A gang's steps are the shares of its queue and of all queues above, in steps, with all counted
    as started whose turn comes before in that queue. So its own minimum does not delay it, and no
    gang comes before one of its queue with a higher priority. A caller that learns that a gang
    does not start leaves it out and asks again for those behind it.
    """
    gangs = sorted(borrowers, key=lambda gang: (-gang.priority, gang.waiting_since, gang.key))
    charged, height = shares.below(), shares.tree.height
    waiting: dict[str, list[_Turn]] = {queue: [] for queue in shares.tree.queues}
    for place, gang in enumerate(gangs):
        waiting[gang.queue].append(_Turn((), place, gang))
    # The gangs of the root are one more child of it.
    charged[ROOT] = shares.charges.get(ROOT, NOTHING)
    unqueued, waiting[ROOT] = waiting[ROOT], []
    for queue in shares.tree.from_the_leaves:
        if queue != ROOT:
            parent = waiting[shares.tree.parents[queue]]
            parent += _counted(shares, queue, charged[queue], waiting.pop(queue))
    waiting[ROOT] += _counted(shares, ROOT, charged[ROOT], unqueued)
    found = ((_padded(turn.steps, height), turn.place, turn.gang) for turn in waiting[ROOT])
    return [Turn(gang, steps) for steps, _, gang in sorted(found)]


def decided_together(turns: Iterable[Turn]) -> Sequence[Sequence[Borrower]]:
    """The borrowers that are decided on together, the first ones first.

    Those of equal steps and priority; and where all of these are of one queue, those of the same
    queue and priority that follow them. Nobody of another queue waits between those.
    """
    found: list[list[Borrower]] = []
    for _, level in groupby(turns, key=lambda turn: (turn.steps, turn.gang.priority)):
        gangs = [turn.gang for turn in level]
        if found and len({(gang.queue, gang.priority) for gang in (*found[-1], *gangs)}) == 1:
            found[-1] += gangs
        else:
            found.append(gangs)
    return found


def decided_in_fact(
    shares: Shares,
    borrowers: Iterable[Borrower],
    started: AbstractSet[Borrower],
    exceeding: Callable[[Collection[Borrower], Collection[Borrower]], Collection[Borrower]],
) -> Sequence[Sequence[Borrower]]:
    """Who is decided on together, in which order, if these start and all others do not.

    Those who do not start no longer count for the others once they are decided on, or once they
    are ``exceeding``: these are gangs that exceed limits or room beside some that start.
    """
    found: list[Sequence[Borrower]] = []
    left, before = [*borrowers], list[Borrower]()
    charges = dict(shares.charges)
    while left:
        for level in decided_together(turns(replace(shares, charges=charges), left)):
            found.append(level)
            for gang in level:
                if gang in started:
                    before.append(gang)
                    charges[gang.queue] = charges.get(gang.queue, NOTHING) + gang.minimum
            left = [gang for gang in left if gang not in level]
            over = exceeding(before, [gang for gang in left if gang not in started])
            left = [gang for gang in left if gang not in over]
            if over or any(gang not in started for gang in level):
                break
    return found


class _Turn(NamedTuple):
    """Steps so far, from a level of the tree down, and the place among gangs of equal steps."""

    steps: Steps
    place: int
    gang: Borrower


def _counted(
    shares: Shares, queue: str, charged: Resources, waiting: Iterable[_Turn]
) -> Iterator[_Turn]:
    """The turns with the step of this queue in front, each after those before it have started."""
    height = shares.tree.height
    used, step = dict(charged.amounts), int(shares.share(queue, charged) * STEPS)
    guarantee, weight = shares.tree.guarantees[queue], shares.tree.queues[queue].weight
    for turn in sorted(waiting, key=lambda turn: (_padded(turn.steps, height), turn.place)):
        yield _Turn((step, *turn.steps), turn.place, turn.gang)
        for name, n in turn.gang.minimum.amounts:
            used[name] = used.get(name, 0) + n
            over, total = used[name] - guarantee.get(name, 0), shares.totals.get(name, 0)
            if over > 0 and total > 0:
                step = max(step, over * STEPS // (total * weight))


def _padded(steps: Steps, height: int) -> Steps:
    return steps + steps[-1:] * (height - len(steps))
