"""``python -m tests.chaos.mutants.domain_scenes``: what plans with domains break, by ``verify``.

A process of its own, so that PYTHONPATH may name a mutant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.planning.plan import plan
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget
from tutti.verify import plan_checks

from ...harness.builders import gang, node, snapshot_of, topology

if TYPE_CHECKING:
    from ...harness.builders import NodeBuilder, Part

RACKS = topology("rack")


def _node(name: str, rack: str, cpu: int) -> NodeBuilder:
    return node(name, cpu=cpu).labelled(rack=rack)


SCENES: tuple[tuple[Part, ...], ...] = (
    (  # one rack has room for one gang: the other one waits
        *(_node("n0", "r", 3), _node("n1", "s", 2), _node("n2", "t", 1), RACKS),
        *(gang(name).of(3, cpu=1).together("rack") for name in ("first", "second")),
    ),
    (  # best fit would take the smallest node for the lost member
        *(_node("n0", "r", 1), _node("n1", "s", 4), RACKS),
        gang("lost-one").of(3, cpu=1).together("rack").bound_on("n1", "n1"),
    ),
    (  # likewise for the segment on n1, which lacks a member
        *(_node("n0", "r", 1), _node("n1", "s", 4), _node("n2", "t", 2), RACKS),
        gang("lost-one").of(4, cpu=1).in_segments(2, "rack").bound_on("n1", "n2", "n2"),
    ),
)


def main() -> None:
    """Print a sentence for each violation."""
    for parts in SCENES:
        snapshot = snapshot_of(*parts, at=60.0)
        for sentence in plan_checks.violations(
            snapshot, plan(snapshot, BestFit(), BestFit(), Budget())
        ):
            print(sentence)


if __name__ == "__main__":
    main()
