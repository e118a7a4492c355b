"""``python -m tests.conformance.preemption``: attack thousands of histories."""

from __future__ import annotations

import argparse
from collections import Counter
from time import monotonic

from . import attacks, crowded, planner, program

SHOWN = 20  # breaches in full
LEAST = 200  # evictions and events of each kind in 2,000 histories, or the run says nothing
PROVED = 0.95  # of the claims, at least
MOST_PLANS = 5  # of one crowded cluster


def main() -> int:
    """Attack, print the counts, and say whether anything does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.preemption")
    parser.add_argument("--histories", type=int, default=4_000)
    parser.add_argument(
        "--judged", type=int, default=1_000, help="histories that Tutti decides too"
    )
    parser.add_argument(
        "--crowded", type=int, default=3_000, help="larger clusters that Tutti and CP-SAT decide"
    )
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    began = monotonic()
    wrong = _histories(range(given.seed, given.seed + given.histories))
    wrong += _claims(range(given.seed, given.seed + given.judged))
    wrong += _crowded(range(given.seed, given.seed + given.crowded))
    print(f"{wrong} wrong, {monotonic() - began:.0f} s")
    return int(wrong > 0)


def _histories(seeds: range) -> int:
    wrong, tally = 0, Counter[str]()
    for seed in seeds:
        report = attacks.history(seed)
        tally.update(report.tally)
        wrong += len(report.breaches)
        for breach in report.breaches[:1] if wrong <= SHOWN else ():
            print(f"seed {seed}: {breach}")
    print(", ".join(f"{n} {what}" for what, n in tally.items()))
    kinds = [tally["evictions by guarantee"], tally["evictions by priority"]]
    events = ["nodes lost", "jumps past a minimum run time", "jumps past starvation"]
    if min(*kinds, *(tally[event] for event in events)) < LEAST * len(seeds) // 2_000:
        print("there are too few evictions, or events from outside")
        return wrong + 1
    return wrong


def _claims(seeds: range) -> int:
    wrong, tally = 0, Counter[str]()
    for seed in seeds:
        for state in attacks.history(seed).states:
            claimed = planner.claim(state)
            tally["states"] += 1
            tally["claims"] += len(claimed.claims)
            tally["proved claims"] += sum(claim.is_proved for claim in claimed.claims)
            tally["victims"] += sum(len(claim.victims) for claim in claimed.claims)
            for difference in planner.differences(state, claimed):
                wrong += 1
                if wrong <= SHOWN:
                    print(f"seed {seed} at {state.now}: {difference}")
    print(", ".join(f"{n} {what}" for what, n in tally.items()))
    return wrong + int(tally["proved claims"] < PROVED * tally["claims"])


def _crowded(seeds: range) -> int:
    wrong, tally = 0, Counter[str]()
    for seed in seeds:
        state = crowded.state(seed)
        tally["crowded clusters"] += 1
        tally["gangs that run"] += len(state.running)
        for _ in range(MOST_PLANS):
            claimed = planner.claim(state)
            for claim in claimed.claims:
                kind = "by guarantee" if claim.by_guarantee else "by priority"
                tally[f"claims {kind}"] += 1
                tally["proved claims"] += claim.is_proved
                tally[f"evictions {kind}"] += len(planner.victims(state, claim))
            for difference in planner.differences(state, claimed, program.least_cost):
                wrong += 1
                if wrong <= SHOWN:
                    print(f"crowded cluster {seed} at {state.now}: {difference}")
            if not claimed.claims:
                break
            state = planner.carried_out(state, claimed)
    print(", ".join(f"{n} {what}" for what, n in tally.items()))
    claims = tally["claims by guarantee"] + tally["claims by priority"]
    kinds = [tally["evictions by guarantee"], tally["evictions by priority"]]
    if min(kinds) < LEAST * len(seeds) // 3_000:
        print("there are too few evictions")
        return wrong + 1
    return wrong + int(tally["proved claims"] < PROVED * claims)


if __name__ == "__main__":
    raise SystemExit(main())
