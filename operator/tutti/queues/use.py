"""For users: what each queue is charged, and what guarantees cover of it and of each gang."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from ..gang.quantities import count
from ..model.decisions import QueueUse
from ..model.keys import GangKey
from ..model.queues import ROOT, Preemption
from ..model.resources import NOTHING, Resources
from .charge import GangCharge
from .claims import mode
from .cover import Cover, QueuedGang, on_lines, walk
from .shadow import stopped
from .share import Shares
from .tree import QueueTree

MOST_NAMED = 3  # queues in a sentence


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


@dataclass(frozen=True, slots=True)
class GangCover:
    """What a guarantee covers of a gang that runs, and whose gangs may have the rest ended."""

    queue: str
    covered_by: str  # the queue whose guarantee covers what the gang needs; empty if it borrows
    extra_pods: int  # that borrow, beyond those needed
    may_end_for: tuple[str, ...] = ()  # the queues whose gangs may have what borrows ended

    def __str__(self) -> str:
        """The same as a part of a sentence."""
        if not self.covered_by:
            where = f"counts in queue {ROOT}, which guarantees nothing, and "
            return (
                f"{where * (self.queue == ROOT)}borrows{self._ended_for(' of a higher priority')}"
            )
        covered = f"covered by queue {self.covered_by}"
        if not self.extra_pods:
            return covered
        pods = count(self.extra_pods, "extra pod")
        borrow = "borrows" if self.extra_pods == 1 else "borrow"
        return f"{covered}; {pods} {borrow}{self._ended_for('')}"

    def _ended_for(self, rank: str) -> str:
        others = [queue for queue in self.may_end_for if queue != self.queue]
        named = others[:MOST_NAMED]
        if len(others) > MOST_NAMED:
            named.append(count(len(others) - MOST_NAMED, "other queue"))
        named += [f"{self.queue}{rank}"] * (self.queue in self.may_end_for)
        *first, last = named or [""]
        names = f"{', '.join(first)} or {last}" if first else last
        return f": may be ended for gangs of {names}" if names else ""


def gang_covers(gangs: ChargedGangs, setting: Preemption) -> Mapping[GangKey, GangCover]:
    """What is covered of each gang that runs, where this is the setting of preemption.

    The gangs of a queue may have others ended by guarantee if the queue or one above it guarantees
    anything, and gangs of their own queue by priority.
    """
    tree, cover = gangs.tree, walk(gangs.tree, gangs.running)
    modes = {name: mode(tree.queues[name], setting) for name in tree.queues if name != ROOT}
    entitled = [
        name
        for name, may_end in modes.items()
        if may_end is not Preemption.OFF
        and any(any(tree.guarantees[above].values()) for above in tree.paths[name])
        and not tree.children[name]
    ]
    covers = {}
    for gang in gangs.running:
        by = cover.gangs.get(gang.key, "")
        extras = sum((gang.key, pod) not in cover.extras for pod, _ in gang.extras)
        ends = {*entitled}
        if not by and modes.get(gang.queue) is Preemption.FULL:
            ends.add(gang.queue)
        is_safe = gang.is_protected if not by else not extras
        covers[gang.key] = GangCover(gang.queue, by, extras, () if is_safe else tuple(sorted(ends)))
    return covers


def queue_use(gangs: ChargedGangs, waiting: Iterable[str]) -> tuple[QueueUse, ...]:
    """The use of each queue, by name; ``waiting`` has the queue of each gang that waits.

    A queue counts all gangs at or below it. The share of the root counts its own gangs alone.
    """
    tree, shares = gangs.tree, gangs.shares
    covered = _covered(gangs, walk(tree, gangs.running))
    numbers: dict[str, int] = {}
    for leaf in waiting:
        for queue in tree.paths[leaf]:
            numbers[queue] = numbers.get(queue, 0) + 1
    totals = {key: charge.total for key, charge in gangs.charges.items()}
    in_shadow = stopped(tree, gangs.running, totals)
    below = shares.below()
    below_covered = replace(shares, charges=covered).below()
    uses = []
    for name in sorted(tree.queues):
        charged = below[name]
        own = shares.charges.get(ROOT, NOTHING) if name == ROOT else charged
        uses.append(
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
    return tuple(uses)


def _covered(gangs: ChargedGangs, cover: Cover) -> Mapping[str, Resources]:
    """By queue: what any queue covers of the gangs that are in it, on lines."""
    covered: dict[str, Resources] = {}
    for gang in gangs.running:
        parts = [gang.minimum] if gang.key in cover.gangs else []
        parts += [amount for pod, amount in gang.extras if (gang.key, pod) in cover.extras]
        own = on_lines(gangs.tree, Resources.total(parts))
        covered[gang.queue] = covered.get(gang.queue, NOTHING) + own
    return covered
