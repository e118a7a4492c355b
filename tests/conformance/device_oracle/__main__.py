"""``python -m tests.conformance.device_oracle``: judge plans of clusters with devices and volumes.

It fails if a plan is wrong, if CP-SAT has no answer, if too few plans are proved, and if one of the
kinds of gangs that it is about started or waited too rarely.
"""

from __future__ import annotations

import argparse
from collections import Counter
from time import monotonic

from tutti.planning.plan import SHARED
from tutti.strategies import load

from ..queue_oracle.model import NoAnswerError
from . import drawing, planner, smaller
from .counting import KINDS

PROGRESS = 100  # clusters between two lines of it
PROVED = 0.95  # of all plans, at least
OCCURS = 0.02  # gangs of each kind, at least, for each cluster
UNMODELLED = 0.03  # of the gangs that wait, at most


def main() -> int:
    """Judge, print the counts, and say whether anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.device_oracle")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="of the first cluster")
    parser.add_argument("--strategy", default="ilp")
    parser.add_argument("--first", action="store_true", help="end at the first that is wrong")
    options = parser.parse_args()
    strategy, began = load(options.strategy), monotonic()
    tally, seen = Counter[str](), Counter[str]()
    for number, seed in enumerate(range(options.seed, options.seed + options.runs), 1):
        world = drawing.world(seed)
        tally["clusters"] += 1
        try:
            judgement, made = planner.judged(world, strategy)
        except NoAnswerError as error:
            tally["without an answer"] += 1
            print(f"seed {seed}: no answer: {error}", flush=True)
            continue
        tally["proved"] += made.proved
        tally["with volumes that pods share"] += bool(world.shared_volumes)
        tally["unproved since pods share volumes"] += made.shortfall == SHARED
        tally["wrong"] += bool(judgement.wrong)
        seen += judgement.seen
        if not made.proved and made.shortfall != SHARED:
            print(f"seed {seed}: not proved: {made.shortfall}", flush=True)
        for sentence in judgement.wrong:
            print(f"seed {seed}: {sentence}", flush=True)
        if judgement.wrong and options.first:
            print(smaller.smallest(world, lambda one: bool(planner.judged(one, strategy)[0].wrong)))
            break
        if number % PROGRESS == 0:
            print(f"{number} of {options.runs}, {monotonic() - began:.0f} s", flush=True)
    rare = [kind for kind in KINDS if seen[kind] < tally["clusters"] * OCCURS]
    print(f"{seen['not modelled']:6} gangs not modelled")
    for kind in KINDS:
        print(f"{seen[kind]:6} gangs {kind}{' (too few)' * (kind in rare)}")
    print(f"{options.strategy}: " + ", ".join(f"{n} {what}" for what, n in tally.items()))
    print(f"{monotonic() - began:.0f} s")
    owed = tally["clusters"] - tally["unproved since pods share volumes"]
    is_weak = tally["proved"] < owed * PROVED
    is_weak |= seen["not modelled"] > seen["waiting"] * UNMODELLED
    return int(bool(tally["wrong"] or tally["without an answer"] or rare or is_weak))


if __name__ == "__main__":
    raise SystemExit(main())
