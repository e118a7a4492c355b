"""``python -m tests.conformance.topology``: compare gangs with domains and segments with CP-SAT.

For each seed there are four Problems: of one gang and of several, with and without segments.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product

from tutti.strategies import load

from ..oracle.comparing import compared
from .instances import problem


def main() -> int:
    """Compare, and print how many Problems there were.

    Returns 1 if an answer was wrong, or if it is not proved whether a gang alone starts.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.topology", description=__doc__
    )
    parser.add_argument("--runs", type=int, default=3000, help="seeds in all (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="the first seed (%(default)s)")
    parser.add_argument("--strategy", default="ilp", help="ilp or ilp-highs (%(default)s)")
    options = parser.parse_args()
    exact, wrong, proved, open_alone = load(options.strategy), 0, 0, 0
    for seed in range(options.seed, options.seed + options.runs):
        for gangs, segments in product((None, 1), (False, True)):
            answer = compared(problem(seed, gangs=gangs, segments=segments), exact)
            proved += answer.is_proved
            if answer.wrong:
                wrong += 1
                print(seed, gangs, segments, *answer.wrong)
            if gangs == 1 and not answer.is_proved:
                open_alone += 1
                print(seed, segments, "one gang, and no proof whether it starts")
    problems = f"{4 * options.runs} problems, {proved} proved, {wrong} wrong"
    print(f"{problems}, {open_alone} of one gang open")
    return min(wrong + open_alone, 1)


if __name__ == "__main__":
    sys.exit(main())
