"""Gangs with domains beside CP-SAT: ``python -m tests.conformance.topology --runs N --seed S``."""

from __future__ import annotations

import argparse
import sys
from itertools import product

from tutti.strategies.ilp.engine import Cbc, Highs
from tutti.strategies.ilp.strategy import IlpStrategy

from ..oracle.comparing import compared
from .instances import problem

ENGINES = {"cbc": Cbc, "highs": Highs}


def main() -> int:
    """Compare Problems of several gangs, and of one; answers how many differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=sorted(ENGINES), default="cbc")
    options = parser.parse_args()
    exact, wrong, proved = IlpStrategy(ENGINES[options.engine]()), 0, 0
    for seed in range(options.seed, options.seed + options.runs):
        for gangs, segments in product((None, 1), (False, True)):
            answer = compared(problem(seed, gangs=gangs, segments=segments), exact)
            proved += answer.is_proved
            if answer.wrong:
                wrong += 1
                print(seed, gangs, segments, *answer.wrong)
    print(f"{4 * options.runs} problems, {proved} proved, {wrong} wrong")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
