"""`python -m demo`: Ctrl-C and polite kills end it cleanly from the first moment on."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 130  # what shells expect of a program that Ctrl-C has ended


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    # Once is enough: a second one would interrupt the cleaning up.
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    for number in SIGNALS:
        signal.signal(number, _interrupted)
    try:
        from .command import main

        main(standalone_mode=False, prog_name="python -m demo")
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
