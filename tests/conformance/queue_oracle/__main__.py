"""``python -m tests.conformance.queue_oracle``: judge plans of thousands of clusters."""

from __future__ import annotations

import argparse
from collections import Counter
from time import monotonic

from tutti.strategies import load

from . import drawing, planner
from .model import NoAnswerError

PROGRESS = 100  # clusters between two lines of it


def main() -> int:
    """Judge, print the counts, and say whether anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.queue_oracle")
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1, help="of the first cluster")
    parser.add_argument("--strategy", default="ilp")
    parser.add_argument("--first", action="store_true", help="end at the first that is wrong")
    options = parser.parse_args()
    strategy, began, tally = load(options.strategy), monotonic(), Counter[str]()
    for number, seed in enumerate(range(options.seed, options.seed + options.runs), 1):
        world = drawing.world(seed)
        tally["clusters"] += 1
        tally["of depth 3"] += world.height == 3
        try:
            judgement, made = planner.judged(world, strategy)
        except NoAnswerError as error:
            tally["without an answer"] += 1
            print(f"seed {seed}: no answer: {error}", flush=True)
            continue
        tally["proved"] += made.proved
        tally["contended"] += judgement.is_contended
        tally["with a starved gang"] += judgement.has_starved
        tally["starts"] += len(made.placements)
        tally["wrong"] += bool(judgement.wrong)
        for sentence in judgement.wrong:
            print(f"seed {seed}: {sentence}", flush=True)
        if judgement.wrong and options.first:
            break
        if number % PROGRESS == 0:
            print(f"{number} of {options.runs}, {monotonic() - began:.0f} s", flush=True)
    print(f"{options.strategy}: " + ", ".join(f"{n} {what}" for what, n in tally.items()))
    return int(bool(tally["wrong"] + tally["without an answer"]))


if __name__ == "__main__":
    raise SystemExit(main())
