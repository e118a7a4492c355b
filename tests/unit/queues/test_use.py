"""What is charged to each queue, and what of it is covered."""

from fractions import Fraction

from tutti.model.decisions import QueueUse
from tutti.model.queues import ROOT
from tutti.model.resources import NOTHING, Resources
from tutti.queues.charge import GangCharge
from tutti.queues.cover import QueuedGang
from tutti.queues.tree import QueueTree
from tutti.queues.use import ChargedGangs, queue_use

from .builders import queue, queued

TREE = QueueTree.of([queue("r"), queue("v", "r", gpu=10), queue("n", "r")])
TOTALS = {"gpu": 100, "cpu": 1000}


def gpus(n: int) -> Resources:
    return Resources.of({"gpu": n})


def charged(*running: QueuedGang, leaving: int = 0) -> ChargedGangs:
    charges = {g.key: GangCharge(g.minimum, g.extras, gpus(leaving)) for g in running}
    return ChargedGangs(TREE, TOTALS, running, charges)


def by_name(gangs: ChargedGangs, *waiting: str) -> dict[str, QueueUse]:
    return {use.name: use for use in queue_use(gangs, waiting)}


def test_a_queue_counts_what_is_charged_and_covered_at_and_below_it() -> None:
    inside = queued("a", "v", started=1.0, gpu=6, cpu=50, extras=(3, 3))
    found = by_name(charged(inside, queued("b", "n", started=2.0, gpu=5)), "v", "n", ROOT)
    assert found["v"] == QueueUse(
        "v", Resources.of({"gpu": 12, "cpu": 50}), gpus(9), gpus(3), 1, Fraction(1, 20)
    )
    assert found["n"] == QueueUse("n", gpus(5), NOTHING, gpus(5), 1, Fraction(1, 20))
    assert (found["r"].covered, found["r"].borrowed, found["r"].waiting) == (gpus(9), gpus(8), 2)
    assert (found[ROOT].charged["gpu"], found[ROOT].waiting) == (17, 3)
    assert not found[ROOT].share


def test_the_share_of_the_root_is_that_of_gangs_without_a_queue() -> None:
    found = by_name(charged(queued("a", ROOT, started=1.0, gpu=10)))
    assert (found[ROOT].share, found[ROOT].borrowed) == (Fraction(1, 10), gpus(10))
    assert found["v"] == QueueUse("v", NOTHING, NOTHING, NOTHING, 0, Fraction(0))


def test_what_leaves_is_never_covered() -> None:
    found = by_name(charged(queued("a", "v", started=1.0, gpu=4), leaving=2))
    assert (found["v"].charged, found["v"].covered, found["v"].borrowed) == (
        gpus(6),
        gpus(4),
        gpus(2),
    )
