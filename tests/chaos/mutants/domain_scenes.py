"""``python -m tests.chaos.mutants.domain_scenes``: what plans with domains break, by ``verify``.

A process of its own, so that PYTHONPATH may name a mutant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.model.cluster import SlotReservation
from tutti.model.keys import NodeName
from tutti.planning.plan import plan
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget
from tutti.verify import plan_checks

from ...harness.builders import gang, labels, node, reservation, snapshot_of, topology

if TYPE_CHECKING:
    from ...harness.builders import GangBuilder, NodeBuilder, Part

RACKS = topology("rack")


def _node(name: str, rack: str, cpu: int) -> NodeBuilder:
    return node(name, cpu=cpu).labelled(rack=rack)


def _indexed(builder: GangBuilder, *indexes: int) -> GangBuilder:
    """The gang in segments of two by these indexes of its members."""
    for number, index in enumerate(indexes):
        own = labels(index=str(index))
        builder = builder.only(f"{builder.key.name}-{number}", labels=own)
    return builder.in_segments(2, "rack", index="index")


_ABSENT = gang("absent-one").role("worker", 2, 1, cpu=1).declaring(cpu=1).together("rack")
_ABSENT = _ABSENT.bound_on("n1")
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
    (  # best fit would put three members on one node
        *(_node("n0", "r", 3), _node("n1", "s", 3), RACKS),
        gang("new").of(4, cpu=1).in_segments(2, "rack"),
    ),
    (  # each rack has room for one segment, and the oldest members are of two
        *(_node("n0", "r", 2), _node("n1", "s", 2), RACKS),
        _indexed(gang("new-by-index").of(4, cpu=1), 0, 2, 1, 3),
    ),
    (  # the older of the lost members is of the segment on n1
        *(_node("n0", "r", 2), _node("n1", "s", 2), RACKS),
        _indexed(gang("lost-two").of(4, cpu=1), 0, 2, 3, 1).bound_on("n0", "n1"),
    ),
    (  # a node is lost on which room was held, and best fit would hold the smallest one instead
        *(_node("n0", "r", 1), _node("n1", "s", 4), RACKS),
        *(_ABSENT, reservation(_ABSENT, slots=[SlotReservation(NodeName("lost"), "worker", 1)])),
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
