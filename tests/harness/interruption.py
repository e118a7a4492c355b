"""Commands that Ctrl-C and polite kills end cleanly from the first moment on."""

from __future__ import annotations

import importlib
import signal
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 130  # what shells expect of a program that Ctrl-C has ended


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    # Once is enough: a second one would interrupt the cleaning up.
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def run(package: str) -> None:
    """Run the command of a package; its import may take a second in which Ctrl-C may come."""
    for number in SIGNALS:
        signal.signal(number, _interrupted)
    try:
        command = importlib.import_module(f"{package}.command")
        command.main(standalone_mode=False, prog_name=f"python -m {package}")
    except click.ClickException as wrong:
        wrong.show()
        sys.exit(wrong.exit_code)
    except (KeyboardInterrupt, click.Abort):
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
