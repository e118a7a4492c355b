"""``python -m tests.conformance.against``: gangs with rules, placed by several gang schedulers.

Twenty gangs by hand and two hundred by seed, fixed before any result, each with a placement by the
word of an independent solver. The exit code is 1 if Tutti leaves one out.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from rich.console import Console

from ...bench.e2e.contenders import COSCHEDULING, NATIVE, TUTTI
from ...harness.controlplane.pins import NATIVE_GANG_API, chosen_k8s
from . import byhand, drawn
from .playing import PATIENCE_SECONDS, arena
from .telling import sentences, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .playing import Outcome, Turn

RIVALS = (NATIVE, COSCHEDULING) if chosen_k8s() in NATIVE_GANG_API else (COSCHEDULING,)


def main(arguments: Sequence[str]) -> int:
    """Play all, print who placed what; 1 if Tutti did not place all, or anybody did it wrongly."""
    options = _options(arguments)
    cases = [
        *byhand.CASES[:: options.every],
        *(drawn.case(*each) for each in drawn.ALL[:: options.every]),
    ]
    found: dict[Turn, Outcome] = {}
    with arena((TUTTI, *RIVALS)) as stage:
        for first in range(0, len(cases), options.beside):
            found |= stage.play(cases[first : first + options.beside], options.patience)
            print(f"{len({turn.case.name for turn in found})} of {len(cases)} gangs", flush=True)
    console = Console(width=160)
    console.print(table(found, TUTTI, RIVALS))
    wrong = list(sentences(found, TUTTI))
    for sentence in wrong:
        console.print(sentence, highlight=False)
    return int(bool(wrong))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.against", description=__doc__
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=PATIENCE_SECONDS,
        help=f"seconds that every scheduler has for its gang ({PATIENCE_SECONDS:.0f})",
    )
    parser.add_argument("--beside", type=int, default=12, help="gangs played side by side (12)")
    parser.add_argument("--every", type=int, default=1, help="one of so many gangs only (1)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
