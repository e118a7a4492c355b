"""`python -m tests.conformance.controllers [NAME ...]`: do the controllers make what they made?

A part of `make conformance`; the cheap cases are a test of the tier api.
"""

from __future__ import annotations

import sys
import traceback

from .cases import CASES, play


def main(names: list[str]) -> int:
    """Play these cases, or all; 1 if something is not as it was."""
    failed = 0
    for name in names or CASES:
        try:
            print(play(name), flush=True)
        except Exception:  # noqa: BLE001  # the other controllers are looked at all the same
            traceback.print_exc()
            print(f"{name}: FAILED", flush=True)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
