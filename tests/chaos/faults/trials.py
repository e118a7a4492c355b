"""Which faults strike when: every write in turn, every fault at every kind of write, or chance."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import deeds
from .writes import WORK, Write

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .deeds import Deed

MOST_STRIKES = 3
# At which of its answers a provisioner fails that makes two volumes: at the first, at the second
# when the first is made, twice in a row, and before each of them.
FAILURES = ((0,), (1,), (0, 1), (0, 2), (1, 2))
MOST_DOWN_SECONDS = 2.0
# What the operator writes. Some scenes have no queues; in one alone does kube-scheduler bind, in
# another alone are pods evicted, and in another alone are there claims.
QUEUE_WRITES = (Write.QUEUE_FINALIZER, Write.QUEUE_STATUS)
CLAIM_WRITES = (
    Write.MAKE_CLAIM,
    Write.PROTECT_CLAIM,
    Write.CLAIM_STATUS,
    Write.SELECT_NODE,
    Write.BIND_VOLUME,
)
OF_ONE_SCENE = (*QUEUE_WRITES, *CLAIM_WRITES, Write.HAND_OVER, Write.EVICT)
STRUCK = tuple(each for each in Write if each not in (*OF_ONE_SCENE, Write.OTHER))


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault: at the n-th call of these kinds after the strike before it."""

    name: str
    deed: Deed
    n: int
    kinds: frozenset[Write] = WORK
    down_seconds: float = 0.0  # how long an operator that it kills stays down

    def __str__(self) -> str:
        """Say what happens when."""
        kinds = "write" if self.kinds == WORK else ", ".join(sorted(self.kinds))
        return f"{self.name}: {kinds} {self.n}"


@dataclass(frozen=True, slots=True)
class Trial:
    """One run's faults, one after the other; ``fault`` is its line of the table."""

    fault: str
    strikes: tuple[Strike, ...] = ()
    failures: tuple[int, ...] = (0,)  # answers of a provisioner, where there is one

    def __str__(self) -> str:
        """Name every strike."""
        text = self._strikes()
        if self.failures == (0,):
            return text
        return f"{text}; the provisioner fails at {', '.join(map(str, self.failures))}"

    def _strikes(self) -> str:
        strikes = "; then ".join(map(str, self.strikes)) or "nothing"
        return strikes if strikes.startswith(f"{self.fault}:") else f"{self.fault} ({strikes})"


UNBROKEN = Trial("none")


def kills(k: int) -> Iterator[Trial]:
    """Kill at the k-th write: before it, after its commit, and with the write on its way."""
    for name, deed in deeds.KILLS.items():
        yield Trial(name, (Strike(name, deed, k),))


def lease_kills(k: int) -> Iterator[Trial]:
    """The same at the k-th write of the Lease."""
    for name, deed in deeds.KILLS.items():
        yield Trial(f"{name} of the Lease", (Strike(name, deed, k, frozenset({Write.LEASE})),))


def second_kills(k: int, second: int) -> Iterator[Trial]:
    """Kill at the k-th write, and again at one of those that follow the restart."""
    for name, deed in deeds.KILLS.items():
        strikes = (Strike(name, deed, k), Strike(name, deed, second))
        yield Trial(f"{name}, twice", strikes)


def answers(kinds: Iterable[Write] = STRUCK) -> Iterator[Trial]:
    """Every fault of a single call, at the first and the second write of every kind."""
    for name, deed in deeds.ANSWERS.items():
        for kind in kinds:
            for n in (1, 2):
                yield Trial(name, _at(kind, n, name, deed))


def roads(away_seconds: float, kinds: Iterable[Write] = STRUCK) -> Iterator[Trial]:
    """Every fault of the whole road, at the first write of every kind."""
    away, away_deed = deeds.outage(away_seconds)
    for name, deed in {**deeds.STREAMS, away: away_deed}.items():
        for kind in kinds:
            yield Trial(name, _at(kind, 1, name, deed))


def _at(kind: Write, n: int, name: str, deed: Deed) -> tuple[Strike, ...]:
    """Strike at a kind of write; Reservations are adopted only by who finds them at its start."""
    strike = Strike(name, deed, n, frozenset({kind}))
    if kind is not Write.ADOPT:
        return (strike,)
    first = next(iter(deeds.KILLS))
    return (Strike(first, deeds.KILLS[first], 3, frozenset({Write.BIND})), strike)


def chance(seed: int, number: int, writes: int, *, has_claims: bool = False) -> Trial:
    """One to three faults at random writes; the same for the same seed and number.

    With claims, the provisioner of their volumes fails at random answers.
    """
    draw = random.Random(f"{seed}/{number}")
    away, deed = deeds.outage(float(draw.randint(1, 8)))
    faults = {**deeds.ANSWERS, **deeds.STREAMS, away: deed}
    strikes = []
    for i in range(draw.randint(1, MOST_STRIKES)):
        names = deeds.KILLS if draw.random() < 0.5 else faults
        name = draw.choice(sorted(names))
        strikes.append(
            Strike(
                name,
                {**deeds.KILLS, **faults}[name],
                draw.randint(1, writes if i == 0 else 10),
                down_seconds=draw.choice([0.0, draw.uniform(0.0, MOST_DOWN_SECONDS)]),
            )
        )
    failures: tuple[int, ...] = (0,)
    if has_claims:
        failures = random.Random(f"{seed}/{number}/provisioner").choice(FAILURES)
    return Trial(f"random, {len(strikes)} faults", tuple(strikes), failures)
