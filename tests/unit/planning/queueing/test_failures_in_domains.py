"""Failures of other schedulers that end pods for a gang with a domain, by the issue's number.

The victims of a claim must make room in one domain, which no amount by itself says.
"""

import random
from collections.abc import Sequence

import pytest

from tutti.model.cluster import Snapshot
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit

from ....harness.builders import AMPLE_BUDGET, NodeBuilder, node, topology
from ....harness.counting import calls_of
from .test_failures_of_others import NOW, cluster, quota, runs, waits
from .test_failures_of_preemption import FULL, all_ends, ends, planned

NETWORK = topology("rack")


def in_rack(name: str, rack: str, *, pods: int = 110, gpu: int) -> NodeBuilder:
    return node(name, pods=pods, gpu=gpu, cpu=8).labelled(rack=rack)


def test_kueue_10497_a_gang_that_takes_no_gpu_ends_if_its_pod_is_in_the_way() -> None:
    """GPUs are short, and so are places for pods: without the rack, one victim would suffice."""
    own = quota("a")
    nodes = in_rack("n1", "r1", pods=2, gpu=8), in_rack("n2", "r2", pods=1, gpu=4)
    low_gpu = runs(waits("low-gpu", "a", gpu=8), own, "n1")
    low_cpu = runs(waits("low-cpu", "a", cpu=1), own, "n1")
    high = waits("high", "a", 2, 10, gpu=4)
    apart = cluster(*nodes, NETWORK, own, *low_gpu, *low_cpu, high)
    assert ends(planned(apart)) == {"high": {"low-gpu": 1}}
    together = cluster(*nodes, NETWORK, own, *low_gpu, *low_cpu, high.together("rack"))
    assert ends(planned(together)) == {"high": {"low-cpu": 1, "low-gpu": 1}}


def test_kueue_10815_what_ends_for_a_guarantee_is_in_one_rack() -> None:
    """Any two gangs that borrow have what the guarantee lacks; the first two are in two racks."""
    own, other = quota("a", gpu=8), quota("b")
    nodes = [in_rack(f"n{n}", f"r{n % 2}", gpu=4) for n in range(4)]
    running = [part for n in range(4) for part in runs(waits(f"b{n}", "b", gpu=4), other, f"n{n}")]
    new = waits("new", "a", 2, gpu=4)
    apart = cluster(*nodes, NETWORK, own, other, *running, new)
    assert ends(planned(apart)) == {"new": {"b0": 1, "b1": 1}}
    together = cluster(*nodes, NETWORK, own, other, *running, new.together("rack"))
    assert ends(planned(together)) == {"new": {"b0": 1, "b2": 1}}
    assert all_ends(together) == ["b0", "b2"]


def crowded(sizes: Sequence[int], ages: Sequence[float] = (NOW,)) -> Snapshot:
    """A gang of 20 that must be in one rack waits beside gangs of these sizes that run.

    The ages are in seconds; if there are fewer than gangs, they repeat.
    """
    own = quota("a")
    nodes = [in_rack(f"n{n}", f"r{n // 20}", gpu=4) for n in range(sum(sizes))]
    starts = [sum(sizes[:g]) for g in range(len(sizes))]
    running = [
        part
        for g, (first, size) in enumerate(zip(starts, sizes, strict=True))
        for part in runs(
            waits(f"g{g}", "a", size, g % 7, gpu=4),
            own,
            *(f"n{n}" for n in range(first, first + size)),
            at=NOW - ages[g % len(ages)],
        )
    ]
    new = waits("new", "a", 20, 10, gpu=4).together("rack")
    return cluster(*nodes, NETWORK, own, *running, new)


def test_kueue_13148_a_claim_among_700_gangs_takes_four_times_the_work_of_175() -> None:
    """With Kueue a cycle of this size took 40 s."""

    def claims(snapshot: Snapshot) -> None:
        made = plan(snapshot, STRATEGIES["ilp"](), BestFit(), AMPLE_BUDGET, FULL)
        (claim,) = made.claims
        assert len({int(assignment.node[1:]) // 20 for assignment in claim.assignments}) == 1

    few, many = crowded([2] * 150 + [8] * 25), crowded([2] * 600 + [8] * 100)
    assert calls_of(lambda: claims(many)) <= 4.4 * calls_of(lambda: claims(few))


@pytest.mark.parametrize("seed", range(4))
def test_victims_are_those_of_the_rack_in_which_they_lose_least(seed: int) -> None:
    """More sets cost less than are tried: they are counted rack by rack, which proves the cost."""
    draw = random.Random(seed)
    sizes = [2] * 150 + [8] * 25
    draw.shuffle(sizes)
    scene = crowded(sizes, [draw.choice((10, 100, 1_000, 5_000)) for _ in sizes])
    (claim,) = planned(scene).claims
    assert claim.cost == claim.bound
    assert len({int(assignment.node[1:]) // 20 for assignment in claim.assignments}) == 1
