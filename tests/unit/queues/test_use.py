"""What is charged to each queue, and what of it is covered."""

from dataclasses import replace
from fractions import Fraction

import pytest

from tutti.model.decisions import QueueUse
from tutti.model.queues import ROOT, Preemption, QueueMode
from tutti.model.resources import NOTHING, Resources
from tutti.queues.charge import GangCharge
from tutti.queues.cover import QueuedGang
from tutti.queues.tree import QueueTree
from tutti.queues.use import ChargedGangs, gang_covers, queue_use

from .builders import key, queue, queued

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


def said(gangs: ChargedGangs, name: str = "a", setting: Preemption = Preemption.RECLAIM) -> str:
    return str(gang_covers(gangs, setting)[key(name)])


def test_a_gang_that_runs_says_which_queue_covers_it() -> None:
    assert said(charged(queued("a", "v", started=1.0, gpu=6))) == "covered by queue v"


def test_a_gang_that_borrows_says_for_whose_gangs_it_may_end() -> None:
    running = charged(queued("a", "n", started=1.0, gpu=11), queued("b", "v", started=1.0, gpu=11))
    borrows = "borrows: may be ended for gangs of "
    assert said(running) == f"{borrows}v or n of a higher priority"
    assert said(running, "b") == f"{borrows}n or v of a higher priority"
    assert said(running, setting=Preemption.OFF) == "borrows"


def test_a_gang_that_runs_in_the_root_says_so() -> None:
    running = charged(queued("a", ROOT, started=1.0, gpu=4))
    assert said(running, setting=Preemption.OFF) == (
        "counts in queue root, which guarantees nothing, and borrows"
    )
    assert said(running).startswith("counts in queue root, which guarantees nothing, and borrows: ")


@pytest.mark.parametrize(
    ("mode", "rest"),
    [
        (Preemption.OFF, ""),
        (Preemption.RECLAIM, ""),
        (Preemption.FULL, ": may be ended for gangs of free of a higher priority"),
    ],
)
def test_gangs_of_a_queue_that_guarantees_nothing_end_others_by_priority_alone(
    mode: Preemption, rest: str
) -> None:
    free = replace(queue("free"), preemption=mode)
    owner = replace(queue("v", gpu=1), mode=QueueMode.SHADOW)
    tree = QueueTree.of([free, owner])
    running = charged(queued("a", "free", started=1.0, gpu=1))
    assert said(replace(running, tree=tree)) == f"borrows{rest}"


def test_extra_pods_that_borrow_may_end_also_for_gangs_of_the_same_queue() -> None:
    for extras, words in (((5,), "1 extra pod borrows"), ((5, 5), "2 extra pods borrow")):
        running = charged(queued("a", "v", started=1.0, gpu=10, extras=extras))
        assert said(running) == f"covered by queue v; {words}: may be ended for gangs of n or v"


def test_a_protected_gang_that_borrows_may_end_for_no_gang() -> None:
    gang = replace(queued("a", "n", started=1.0, gpu=11), is_protected=True)
    assert said(charged(gang), setting=Preemption.FULL) == "borrows"


def test_of_many_queues_a_sentence_names_three() -> None:
    tree = QueueTree.of([queue("free"), *(queue(f"q{i}", gpu=1) for i in range(5))])
    running = replace(charged(queued("a", "free", started=1.0, gpu=1)), tree=tree)
    assert said(running) == "borrows: may be ended for gangs of q0, q1, q2 or 2 other queues"
