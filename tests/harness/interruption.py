"""Commands that Ctrl-C and polite kills end cleanly from the first moment on."""

from __future__ import annotations

import importlib
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AGAIN_SECONDS = 0.01  # after an interruption was discarded
INTERRUPTED = 130  # what shells expect of a program that Ctrl-C has ended


class Interruption(KeyboardInterrupt):
    """A signal asks the command to end.

    When a KeyboardInterrupt leaves `exec` of a string, as in the import of a dataclass, CPython
    later ends by SIGINT, whatever exit code the program chooses. Of a subclass it takes no note
    (run_eval_code_obj in Python/pythonrun.c).
    """


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    # Once is enough: a second one would interrupt the cleaning up.
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise Interruption


def _discarded(raised: sys.UnraisableHookArgs) -> None:
    """Interrupt again if an interruption came where Python discards every exception.

    That is so in the callback of a weak reference, which each import has.
    """
    if isinstance(raised.exc_value, Interruption):
        signal.signal(signal.SIGALRM, _interrupted)
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
    else:
        sys.__unraisablehook__(raised)


def run(package: str) -> None:
    """Run the command of a package; its import may take a second in which Ctrl-C may come."""
    try:
        sys.unraisablehook = _discarded
        for number in SIGNALS:
            signal.signal(number, _interrupted)
        command = importlib.import_module(f"{package}.command")
        command.main(standalone_mode=False, prog_name=f"python -m {package}")
    except click.ClickException as wrong:
        wrong.show()
        sys.exit(wrong.exit_code)
    except (KeyboardInterrupt, click.Abort):
        _end()
    except RuntimeError as problem:
        # So does Python 3.11 answer an exception in __set_name__, as of a dataclass.
        if not isinstance(problem.__cause__, Interruption):
            raise
        _end()


def _end() -> NoReturn:
    print("interrupted", file=sys.stderr)
    sys.exit(INTERRUPTED)
