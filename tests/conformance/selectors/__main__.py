"""``python -m tests.conformance.selectors``: CEL selectors beside kube-scheduler.

Expressions written by hand and drawn by seed, each on devices that differ in all that they have.
The exit code is 1 if Tutti selects other devices, if over 5 % of the expressions that the API
server takes are not modelled, or if it refuses over 30 % of all.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from ..differential.running import control_plane
from .asking import judged
from .comparing import compared, sentences
from .corpus import corpus

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Ask both, say what differs, print a line; 1 if anything does."""
    options = _options(arguments)
    cases = corpus(options.seed, options.expressions)

    def heed(done: int) -> None:
        print(f"{done} of {len(cases)} expressions", flush=True)

    with control_plane() as plane:
        verdicts, devices = judged(plane, cases, heed)
    tally = compared(verdicts, devices)
    print("\n".join(sentences(tally)))
    return int(not tally.is_good)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.selectors",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--expressions", type=int, default=800, help="expressions, with those by hand (800)"
    )
    parser.add_argument("--seed", type=int, default=1, help="another seed draws others (1)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
