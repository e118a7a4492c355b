"""``python -m tests.conformance.preemption``: attack thousands of histories."""

from __future__ import annotations

import argparse
from collections import Counter
from time import monotonic

from . import attacks

SHOWN = 20  # breaches in full


def main() -> int:
    """Attack, print the counts, and say whether anything does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.preemption")
    parser.add_argument("--histories", type=int, default=4_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began, wrong, tally = monotonic(), 0, Counter[str]()
    kinds = Counter[str]()
    for seed in range(asked.seed, asked.seed + asked.histories):
        report = attacks.history(seed)
        tally.update(report.tally)
        wrong += bool(report.breaches)
        for breach in report.breaches[:1] if wrong <= SHOWN else ():
            print(f"seed {seed}: {breach}")
        kinds.update({" ".join(b.split()[1:4]) for b in report.breaches})
    print(", ".join(f"{n} {what}" for what, n in tally.items()))
    print(f"{wrong} histories with breaches, {monotonic() - began:.0f} s", dict(kinds))
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
