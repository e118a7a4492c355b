"""``python -m tests.chaos.mutants.queue_scenes``: what plans of a few queues break, by ``verify``.

A process of its own, so that PYTHONPATH may name a mutant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.model.keys import Uid
from tutti.model.queues import Queue
from tutti.planning.plan import plan
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget
from tutti.verify import plan_checks

from ...harness.builders import GangBuilder, gang, node, snapshot_of, space

if TYPE_CHECKING:
    from ...harness.builders import Part

Quota = tuple[tuple[str, int], ...]
FOUR: Quota = (("cpu", 4000),)


def _gang(name: str, queue: str, cpu: int, priority: int = 0) -> GangBuilder:
    return gang(name).of(1, cpu=cpu).priority(priority).but(queue=queue, created=60.0)


def _queue(name: str, parent: str = "", *, guaranteed: Quota = (), limits: Quota = ()) -> Queue:
    return Queue(name, Uid(name), parent, guaranteed=guaranteed, limits=limits)


SCENES: tuple[tuple[Part, ...], ...] = (
    (node("n1", cpu=5), _queue("a", limits=FOUR), _gang("w", "a", 5)),
    (
        node("n1", cpu=5),
        _queue("a", guaranteed=FOUR),
        _queue("b"),
        _gang("w", "a", 4),
        _gang("x", "b", 5, priority=9),
    ),
    (  # gangs of unequal pods
        *(node("n1", cpu=3), node("n2", cpu=2)),
        *(_queue("a", guaranteed=FOUR), _queue("b")),
        _gang("w", "a", 3).of(1, cpu=1),
        _gang("x", "b", 2, priority=9).of(1, cpu=3).each(priority=9),
    ),
    (  # siblings
        *(node("n1", cpu=4), _queue("p", guaranteed=FOUR)),
        *(_queue(name, "p", guaranteed=(("cpu", 1000),)) for name in "ab"),
        *(_gang("w", "a", 1), _gang("x", "b", 2, priority=9), _gang("y", "b", 2, priority=9)),
    ),
    (
        *(node("n1", cpu=4), node("n2", cpu=6), _queue("a"), _queue("b")),
        *(_gang("r", "b", 2).bound_on("n2"), _gang("o", "b", 4).bound_on("n2")),
        *(_gang("w", "a", 2), _gang("x", "b", 2), _gang("y", "b", 2)),
    ),
)


def main() -> None:
    """Print a sentence for each violation."""
    for parts in SCENES:
        snapshot = snapshot_of(space("ml"), *parts, at=60.0)
        for sentence in plan_checks.violations(
            snapshot, plan(snapshot, BestFit(), BestFit(), Budget())
        ):
            print(sentence)


if __name__ == "__main__":
    main()
