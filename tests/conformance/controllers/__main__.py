"""`python -m tests.conformance.controllers [NAME ...]`: are their gangs as they were, and start?

A part of `make conformance`; the cheap cases are a test of the tier api.
"""

from __future__ import annotations

import sys
import traceback

from .cases import CASES, play
from .dra_driver import DRIVEN, enact_driven
from .kueue_gangs import FRONTS, enact_front
from .owner_gangs import OWNERS, enact_owner
from .scenes import SCENES, act
from .spark_operator import OPERATED, enact_operated
from .volcano_gangs import ROUNDS, enact

_PLAYS = (
    (CASES, play),
    (SCENES, act),
    (ROUNDS, enact),
    (OWNERS, enact_owner),
    (FRONTS, enact_front),
    (OPERATED, enact_operated),
    (DRIVEN, enact_driven),
)


def main(names: list[str]) -> int:
    """Check what these controllers make, or all, and what Tutti does; 1 if something fails."""
    failed = 0
    for name in names or dict.fromkeys([name for cases, _ in _PLAYS for name in cases]):
        for cases, run in _PLAYS:
            if name not in cases:
                continue
            try:
                print(run(name), flush=True)
            except Exception:  # noqa: BLE001  # the other controllers are looked at all the same
                traceback.print_exc()
                print(f"{name}: FAILED", flush=True)
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
