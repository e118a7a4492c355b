"""The use of each queue, for users: what it is charged, and what guarantees cover of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from ..model.decisions import QueueUse
from ..model.keys import GangKey
from ..model.queues import ROOT
from ..model.resources import NOTHING, Resources
from .charge import GangCharge
from .cover import Cover, QueuedGang, on_lines, walk
from .shadow import stopped
from .share import Shares
from .tree import QueueTree


@dataclass(frozen=True, slots=True, eq=False)
class ChargedGangs:
    """The gangs that run, in their queues: as the walk sees them, and what they are charged.

    ``charges`` has a charge for each gang of ``running``.
    """

    tree: QueueTree
    totals: Mapping[str, int]  # of all nodes, by resource
    running: tuple[QueuedGang, ...] = ()
    charges: Mapping[GangKey, GangCharge] = field(default_factory=dict)
    taken_at: float = 0.0  # seconds since the epoch

    @property
    def shares(self) -> Shares:
        """The shares, with what each queue is charged by itself."""
        own: dict[str, list[Resources]] = {}
        for gang in self.running:
            own.setdefault(gang.queue, []).append(self.charges[gang.key].total)
        charged = {queue: Resources.total(amounts) for queue, amounts in own.items()}
        return Shares(self.tree, self.totals, charged, self.taken_at)


def queue_use(gangs: ChargedGangs, waiting: Iterable[str]) -> tuple[QueueUse, ...]:
    """The use of each queue, by name; ``waiting`` has the queue of each gang that waits.

    A queue counts all gangs at or below it. The share of the root counts its own gangs alone.
    """
    tree, shares = gangs.tree, gangs.shares
    covered = _covered(gangs, walk(tree, gangs.running))
    numbers: dict[str, int] = {}
    for leaf in waiting:
        for queue in tree.path(leaf):
            numbers[queue] = numbers.get(queue, 0) + 1
    totals = {key: charge.total for key, charge in gangs.charges.items()}
    in_shadow = stopped(tree, gangs.running, totals)
    below = shares.below()
    below_covered = replace(shares, charges=covered).below()
    found = []
    for name in sorted(tree.queues):
        charged = below[name]
        own = shares.charges.get(ROOT, NOTHING) if name == ROOT else charged
        found.append(
            QueueUse(
                name,
                charged,
                below_covered[name],
                on_lines(tree, charged) - below_covered[name],
                numbers.get(name, 0),
                shares.share(name, own) if charged.amounts else Fraction(0),
                in_shadow.get(name, ()),
            )
        )
    return tuple(found)


def _covered(gangs: ChargedGangs, cover: Cover) -> Mapping[str, Resources]:
    """By queue: what any queue covers of the gangs that are in it, on lines."""
    covered: dict[str, Resources] = {}
    for gang in gangs.running:
        parts = [gang.minimum] if gang.key in cover.gangs else []
        parts += [amount for pod, amount in gang.extras if (gang.key, pod) in cover.extras]
        own = on_lines(gangs.tree, Resources.total(parts))
        covered[gang.queue] = covered.get(gang.queue, NOTHING) + own
    return covered
