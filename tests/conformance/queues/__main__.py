"""``python -m tests.conformance.queues``: attack thousands of small clusters with queues."""

from __future__ import annotations

import argparse
from collections import Counter
from time import monotonic
from typing import TYPE_CHECKING

from . import attacks, charges, comparing, histories, instances, planner, plans, running

if TYPE_CHECKING:
    from collections.abc import Callable

    from .reference import World

SHOWN = 20  # breaches in full
PLANNED = 5  # every so manyth history is decided by the planner, too


def main() -> int:
    """Attack, print the counts, and say whether anything does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.queues")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--plans", type=int, default=2_000)
    parser.add_argument("--histories", type=int, default=1_000)
    parser.add_argument("--running", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began = monotonic()
    wrong = 0
    for draw in instances.world, instances.siblings:
        wrong += _clusters(range(asked.seed, asked.seed + asked.cases), draw)
        wrong += _plans(range(asked.seed, asked.seed + asked.plans), draw)
    wrong += _histories(range(asked.seed, asked.seed + asked.histories))
    wrong += _charges(range(asked.seed, asked.seed + asked.histories))
    wrong += _running(range(asked.seed, asked.seed + asked.running))
    print(f"{wrong} wrong, {monotonic() - began:.0f} s")
    return int(wrong > 0)


def _clusters(seeds: range, draw: Callable[[int], World]) -> int:
    wrong, tally, curious = 0, Counter[str](), Counter[str]()
    smallest: dict[str, tuple[int, int]] = {}
    for seed in seeds:
        world = draw(seed)
        answer = plans.plan(world)
        tally["clusters"] += 1
        tally["of depth 3"] += any(world.depth(name) == 3 for name in world.teams)
        tally["with extras"] += any(job.extras for job in world.jobs)
        tally["gangs"] += len(world.jobs)
        tally["covered starts"] += len(answer.covered)
        tally["starts that borrow"] += len(answer.borrowing)
        for breach in (*attacks.breaches(world, answer), *comparing.differences(world, answer)):
            wrong += 1
            if wrong <= SHOWN:
                print(f"seed {seed}: {breach}")
        for kind in set(attacks.curiosities(world, answer)):
            curious[kind] += 1
            size = len(world.jobs) + len(world.teams)
            smallest[kind] = min(smallest.get(kind, (size, seed)), (size, seed))
    print(", ".join(f"{n} {what}" for what, n in tally.items()))
    for kind, n in curious.most_common():
        print(f"does not hold, {n} clusters, the smallest is seed {smallest[kind][1]}: {kind}")
    return wrong


def _plans(seeds: range, draw: Callable[[int], World]) -> int:
    wrong, proved = 0, Counter[str]()
    for strategy in ("ilp", "bestfit"):
        for seed in seeds:
            judgement = planner.judge(draw(seed), strategy)
            proved[strategy] += judgement.is_proved
            wrong += len(judgement.breaches)
            for breach in judgement.breaches[:SHOWN]:
                print(f"seed {seed}, {strategy}: {breach}")
    proofs = ", ".join(f"{n} proved by {strategy}" for strategy, n in proved.items())
    print(f"{len(seeds)} plans of each strategy, {proofs}")
    return wrong


def _histories(seeds: range) -> int:
    starved, by_planner = Counter[bool](), 0
    for seed in seeds:
        scene = histories.scene(seed)
        for as_in_the_issue in (False, True):
            wait = histories.waits(scene, seed, as_in_the_issue=as_in_the_issue)
            starved[as_in_the_issue] += wait.is_too_long
        if seed % PLANNED == 0:
            by_planner += histories.waits(scene, seed, starts=planner.starts).is_too_long
    print(
        f"{len(seeds)} histories: the gang waits too long in {starved[False]};"
        f" by the first statement of the rule in {starved[True]}"
    )
    print(f"by the planner, of every {PLANNED}th: in {by_planner}")
    return starved[False] + by_planner


def _charges(seeds: range) -> int:
    wrong, states = 0, 0
    for seed in seeds:
        found = [*charges.breaches(seed)]
        for _, crews in charges.history(seed):
            states += 1
            found += [what for crew in crews for what in comparing.charge_differences(crew)]
        wrong += len(found)
        for breach in found[:SHOWN]:
            print(breach)
    print(f"{len(seeds)} histories of charges, {states} states")
    return wrong


def _running(seeds: range) -> int:
    wrong = 0
    for seed in seeds:
        for breach in running.breaches(seed):
            wrong += 1
            if wrong <= SHOWN:
                print(breach)
    print(f"{len(seeds)} clusters with gangs that run, and their records")
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
