"""``python -m tests.conformance.bruteforce``: judge thousands of small clusters, or files.

The seeds follow one another from ``--seed`` on. Failing cases are written into ``--out``, as files
that ``tutti plan -f`` reads; of each kind the first few are made small.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from . import generating, limits, sampling, shrinking

if TYPE_CHECKING:
    from .judge import Violation

PROGRESS = 500  # cases between two lines of it
SHRUNK = 2  # cases of a kind


def main() -> int:
    """Judge, print, and say whether anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.bruteforce")
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first case")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("build/bruteforce"))
    parser.add_argument("--files", type=Path, nargs="+", default=[], help="judge these instead")
    asked = parser.parse_args()
    if asked.files:
        return _files(asked.files)
    return _seeds(asked.seed, asked.cases, asked.jobs, asked.out)


def _files(paths: list[Path]) -> int:
    wrong = 0
    for path in paths:
        verdict = limits.judged(path.read_text())
        wrong += bool(verdict.violations)
        kinds = (
            ", ".join(sorted({violation.kind for violation in verdict.violations}))
            or "nothing wrong"
        )
        print(f"{path.name}: {kinds}")
        for violation in verdict.violations:
            print(f"    {violation.kind}: {violation.says[:300]}")
        for why in verdict.skipped:
            print(f"    not judged: {why}")
    print(f"{len(paths)} files, {wrong} with violations")
    return int(wrong > 0)


def _seeds(first: int, count: int, jobs: int, out: Path) -> int:
    started, tally = monotonic(), Counter[str]()
    failed: dict[str, list[tuple[int, Violation]]] = {}
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        seeds = range(first, first + count)
        for done, (seed, verdict) in enumerate(pool.imap_unordered(sampling.of_seed, seeds, 20), 1):
            tally["proved"] += verdict.is_proved
            tally["judged"] += not verdict.skipped
            for one in {violation.kind: violation for violation in verdict.violations}.values():
                failed.setdefault(one.kind, []).append((seed, one))
            if done % PROGRESS == 0 or done == count:
                kinds = " ".join(f"{kind}={len(some)}" for kind, some in sorted(failed.items()))
                print(f"{done}/{count} {monotonic() - started:.0f} s {kinds}", file=sys.stderr)
    for kind, some in sorted(failed.items()):
        _tell(kind, sorted(some), out)
    kinds = ", ".join(f"{kind} {len(some)}" for kind, some in sorted(failed.items()))
    print(
        f"{count} cases, {tally['judged']} judged in whole, {tally['proved']} proved; "
        f"violations: {kinds or 'none'}"
    )
    return int(bool(failed))


def _tell(kind: str, some: list[tuple[int, Violation]], out: Path) -> None:
    """Print the failures of one kind, and write them as files."""
    out.mkdir(parents=True, exist_ok=True)
    print(f"{kind}: {len(some)}, seeds {' '.join(str(seed) for seed, _ in some[:30])}")
    for i, (seed, one) in enumerate(some):
        whole = generating.manifests(seed)
        name = f"{kind.replace('/', '-')}-{seed}"
        if i < SHRUNK:
            print(f"    {seed}: {one.says[:300]}")
            small = shrinking.shrunk(whole, partial(sampling.fails, kind, seed))
            (out / f"{name}-small.json").write_text(json.dumps(small, indent=1))
        (out / f"{name}.json").write_text(json.dumps(whole, indent=1))


if __name__ == "__main__":
    sys.exit(main())
