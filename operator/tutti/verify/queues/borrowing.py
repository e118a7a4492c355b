"""What queues guarantee, and how much of it and beyond it they use, before a plan and after it."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ...model.keys import GangKey
from ...model.queues import ROOT, Queue, QueueMode
from .charges import QueueCharges

STEPS = 20
Amounts = Counter[str]
Chain = tuple[str, ...]  # a queue and its ancestors; empty for the root


@dataclass(frozen=True, slots=True, eq=False)
class QueueBorrowing:
    """The guarantees of the queues, and the charges of each queue and the queues below it.

    The root is charged only for gangs without a queue.
    """

    queues: Mapping[str, Queue]
    children: Mapping[str, Sequence[str]]
    lines: Sequence[str]  # the resources that some queue guarantees; queues in shadow do not count
    height: int
    totals: Mapping[str, int]  # of all nodes
    before: Mapping[str, Amounts]
    after: Mapping[str, Amounts]
    taken_at: float  # seconds since the epoch
    known: dict[tuple[Chain, bool], tuple[int, ...]]  # filled by ``steps``

    @classmethod
    def of(cls, charges: QueueCharges, chains: Mapping[str, Chain]) -> "QueueBorrowing":
        """Measure all queues; ``chains`` has the chain of each."""
        snapshot, queues = charges.snapshot, charges.tree.queues
        children = defaultdict[str, list[str]](list)
        for name in queues:
            if len(chains[name]) > 1:
                children[chains[name][1]].append(name)
        totals = dict[str, int]()
        for node in snapshot.nodes:
            for name, n in node.allocatable.amounts:
                totals[name] = totals.get(name, 0) + n
        by_gang = {key: chains[name] or (ROOT,) for key, name in charges.queues.items()}
        return cls(
            queues,
            children,
            sorted({line for q in queues.values() for line, n in _declared(q).items() if n}),
            max((len(chains[name]) for name in queues), default=0),
            totals,
            _by_queue(by_gang, charges.usage.before),
            _by_queue(by_gang, charges.usage.after),
            snapshot.taken_at,
            {},
        )

    def guarantee(self, name: str, line: str) -> int:
        """The guarantee of a queue: its own declaration, or else the sum over its children."""
        if line in (declared := _declared(self.queues[name])):
            return declared[line]
        return sum(self.guarantee(child, line) for child in self.children[name])

    def guarantees(self, name: str, needs: Amounts) -> bool:
        """Whether the queue guarantees anything, and no less than these needs."""
        amounts = {line: self.guarantee(name, line) for line in self.lines}
        return any(amounts.values()) and all(needs[line] <= n for line, n in amounts.items())

    def has_cover_left(self, name: str, needs: Amounts) -> bool:
        """Whether the queue guarantees these needs beside all that it is charged after the plan."""
        return self.guarantees(name, self.after[name] + needs)

    def steps(self, chain: Chain, *, is_after: bool) -> tuple[int, ...]:
        """The steps of a queue and of its ancestors, from the top; the last step is repeated."""
        if (chain, is_after) not in self.known:
            charged = self.after if is_after else self.before
            steps = [self._step(name, charged[name]) for name in chain[::-1] or (ROOT,)]
            self.known[chain, is_after] = (*steps, *steps[-1:] * (self.height - len(steps)))
        return self.known[chain, is_after]

    def _step(self, name: str, charged: Amounts) -> int:
        weight = 1 if name == ROOT else self.queues[name].weight
        parts = [
            Fraction(
                n - (self.guarantee(name, line) if name != ROOT and line in self.lines else 0),
                self.totals[line],
            )
            for line, n in charged.items()
            if self.totals.get(line, 0) > 0
        ]
        return int(max([*parts, Fraction(0)]) * STEPS / weight)

    def past(self, chain: Chain, margin: float) -> tuple[float, ...]:
        """The steps of past use of a queue and its ancestors, from the top, with this margin."""
        if not any(queue.past_use for queue in self.queues.values()):
            return ()
        steps = [math.inf] if not chain else []
        for name in chain[::-1]:
            record, weight = self.queues[name].past_use, 1.0
            if record is not None and self.taken_at > record.since:
                weight = math.exp((record.since - self.taken_at) * math.log(2) / record.half_life)
            mean = 0.0 if record is None else record.share + (record.mean - record.share) * weight
            steps.append(math.floor(mean * STEPS / 1e6 + margin))
        return (*steps, *steps[-1:] * (self.height - len(steps)))


def _declared(queue: Queue) -> Mapping[str, int]:
    """What a queue says that it guarantees; nothing counts of a queue in shadow."""
    return dict(queue.guaranteed) if queue.mode is QueueMode.ACTIVE else {}


def _by_queue(
    chains: Mapping[GangKey, Sequence[str]], charges: Mapping[GangKey, Amounts]
) -> Mapping[str, Amounts]:
    charge_by_queue = defaultdict[str, Amounts](Counter)
    for key, charge in charges.items():
        if charge:
            for name in chains[key]:
                charge_by_queue[name].update(charge)
    return charge_by_queue
