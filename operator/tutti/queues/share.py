"""The order of the gangs that borrow: the queue with the smallest share by weight comes first.

All comparisons are exact. Source of the share: dominant resource fairness (Ghodsi et al., 2011),
measured on what is charged beyond the guarantee.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import groupby
from math import inf
from typing import NamedTuple

from ..model.keys import GangKey
from ..model.queues import ROOT
from ..model.resources import NOTHING, Resources
from .tree import QueueTree

STEPS = 20  # of 5 % each: shares within one step count as equal
MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Borrower:
    """A gang that waits and would borrow; ``minimum`` is what its start adds to the charge."""

    key: GangKey
    queue: str
    priority: int
    waiting_since: float  # seconds since the epoch
    minimum: Resources

    def __hash__(self) -> int:
        """By the key: borrowers are looked up often, and no two have one key."""
        return hash(self.key)


@dataclass(frozen=True, slots=True)
class Shares:
    """What is charged to each queue, and the share that each queue borrows."""

    tree: QueueTree
    totals: Mapping[str, int]  # of all nodes, by resource
    charges: Mapping[str, Resources]  # by queue; to itself alone
    taken_at: float = 0.0  # when past use is measured; seconds since the epoch
    # By queue and resource: what is guaranteed, and the charge beyond it that is a share of 1.
    # Filled on demand; it does not depend on ``charges``.
    scales: dict[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict, compare=False)

    def below(self) -> dict[str, Resources]:
        """The charge of each queue with all queues below it."""
        totals: dict[str, Resources] = {}
        for queue in self.tree.from_the_leaves:
            parts = (totals[child] for child in self.tree.children[queue])
            totals[queue] = Resources.total((self.charges.get(queue, NOTHING), *parts))
        return totals

    def share(self, queue: str, charged: Resources) -> Fraction:
        """The largest part of any resource's total charged over the guarantee, divided by weight.

        A resource that no node has is left out.
        """
        scales = self._scales(queue)
        counted = ((n, *scales[name]) for name, n in charged.amounts if name in scales)
        parts = (Fraction(max(n - guarantee, 0), whole) for n, guarantee, whole in counted)
        return max(parts, default=Fraction(0))

    def step(self, queue: str, charged: Mapping[str, int]) -> int:
        """The same share in whole steps, without fractions; ``charged`` is by resource."""
        return max(
            (
                max(charged.get(name, 0) - guarantee, 0) * STEPS // whole
                for name, (guarantee, whole) in self._scales(queue).items()
            ),
            default=0,
        )

    def most_within(self, queue: str, step: int) -> Mapping[str, int]:
        """The most that may be charged of each resource at this step or below."""
        return {
            name: guarantee + ((step + 1) * whole - 1) // STEPS
            for name, (guarantee, whole) in self._scales(queue).items()
        }

    def _scales(self, queue: str) -> Mapping[str, tuple[int, int]]:
        if queue not in self.scales:
            guarantee, weight = self.tree.guarantees[queue], self.tree.queues[queue].weight
            self.scales[queue] = {
                name: (guarantee.get(name, 0), total * weight)
                for name, total in self.totals.items()
                if total > 0
            }
        return self.scales[queue]

    def past(self, queues: Iterable[str]) -> Mapping[str, "Past"]:
        """The past use of each queue and of those above it, in steps from the top.

        The last step is repeated. All are empty if no Queue has a record. The gangs of the root
        have no Queue that could have a record, so they come last.
        """
        tree, records = self.tree, {n: queue.past_use for n, queue in self.tree.queues.items()}
        if not any(records.values()):
            return dict.fromkeys(queues, ())
        steps = {
            name: 0 if past is None else int(past.mean_at(self.taken_at) * STEPS / MILLION)
            for name, past in records.items()
        }
        paths = {
            queue: tuple(map(steps.__getitem__, tree.paths[queue][-2::-1])) for queue in queues
        }
        last = (inf,) * tree.height
        return {queue: _padded(path, tree.height) or last for queue, path in paths.items()}


Past = tuple[float, ...]

# The step of each queue from the child of the root down to the gang's own queue. The last step is
# repeated until all have one length, so that a parent with one child changes no order.
Steps = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """The place of a borrower in the order.

    Fewer steps come first, then higher priorities, then less past use.
    """

    gang: Borrower
    steps: Steps
    past: Past = ()


def turns(shares: Shares, borrowers: Iterable[Borrower]) -> Sequence[Turn]:
    """The borrowers in the order of their turns.

    A gang's steps are the shares of its queue and of all queues above it, each in whole steps. For
    each of these queues, the gangs whose turn there comes earlier count as started. So its own
    minimum does not delay a gang, and no gang comes before a gang of its queue with a higher
    priority. A caller that learns that a gang does not start leaves it out and calls again for the
    gangs behind it.
    """
    borrowers = [*borrowers]
    past = shares.past({gang.queue for gang in borrowers})
    gangs = sorted(
        borrowers, key=lambda gang: (-gang.priority, past[gang.queue], gang.waiting_since, gang.key)
    )
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
    padded = ((_padded(turn.steps, height), turn.place, turn.gang) for turn in waiting[ROOT])
    return [Turn(gang, steps, past[gang.queue]) for steps, _, gang in sorted(padded)]


def decided_together(turns: Iterable[Turn]) -> Sequence[Sequence[Borrower]]:
    """The groups of borrowers that are decided on together, in order.

    A group has the borrowers of equal steps, priority and past use. If all of them are of one
    queue, the group also has the borrowers of this queue and priority that follow directly.
    """
    groups: list[list[Borrower]] = []
    for _, level in groupby(turns, key=lambda turn: (turn.steps, turn.gang.priority, turn.past)):
        gangs = [turn.gang for turn in level]
        if groups and len({(gang.queue, gang.priority) for gang in (*groups[-1], *gangs)}) == 1:
            groups[-1] += gangs
        else:
            groups.append(gangs)
    return groups


def decided_in_fact(
    shares: Shares,
    borrowers: Iterable[Borrower],
    started: AbstractSet[Borrower],
    exceeding: Callable[[Collection[Borrower], Collection[Borrower]], Collection[Borrower]],
) -> Sequence[Sequence[Borrower]]:
    """The groups that are decided on together, in order, if only ``started`` gangs start.

    A gang that does not start counts for the turns of others until it is decided on, or until it is
    exceeding. ``exceeding(started so far, others)`` returns the other gangs that exceed limits or
    room beside the started ones.
    """
    groups: list[Sequence[Borrower]] = []
    left, before = [*borrowers], list[Borrower]()
    charges = dict(shares.charges)
    while left:
        for level in decided_together(turns(replace(shares, charges=charges), left)):
            groups.append(level)
            for gang in level:
                if gang in started:
                    before.append(gang)
                    charges[gang.queue] = charges.get(gang.queue, NOTHING) + gang.minimum
            decided = {*level}
            left = [gang for gang in left if gang not in decided]
            over = {*exceeding(before, [gang for gang in left if gang not in started])}
            left = [gang for gang in left if gang not in over]
            if over or any(gang not in started for gang in level):
                break
    return groups


class _Turn(NamedTuple):
    """The steps from one level of the tree down, and the place among gangs of equal steps."""

    steps: Steps
    place: int
    gang: Borrower


def _counted(
    shares: Shares, queue: str, charged: Resources, waiting: Iterable[_Turn]
) -> Iterator[_Turn]:
    """The turns with the step of this queue in front; earlier turns count as started."""
    height, used = shares.tree.height, dict(charged.amounts)
    step = shares.step(queue, used)
    most = shares.most_within(queue, step)
    for turn in sorted(waiting, key=lambda turn: (_padded(turn.steps, height), turn.place)):
        yield _Turn((step, *turn.steps), turn.place, turn.gang)
        is_more = False
        for name, n in turn.gang.minimum.amounts:
            used[name] = now = used.get(name, 0) + n
            is_more |= name in most and now > most[name]
        if is_more:
            step = shares.step(queue, used)
            most = shares.most_within(queue, step)


def _padded(steps: Steps, height: int) -> Steps:
    return steps + steps[-1:] * (height - len(steps))
