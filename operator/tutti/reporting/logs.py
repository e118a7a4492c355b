"""Log lines: text at a terminal, JSON elsewhere."""

import logging
import sys

from pythonjsonlogger.json import JsonFormatter

from ..model.terminal import visible


class _Plain(logging.Formatter):
    """Formats lines as text; control characters in a message are escaped."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """The line without the traceback of an exception."""
        record.message = visible(record.message)
        return super().formatMessage(record)


def configure(style: str, level: str) -> None:
    """Write log lines of ``level`` and above to stderr; the style ``auto`` is text at a terminal.

    Elsewhere ``auto`` is JSON. The style ``json`` is JSON everywhere.
    """
    out = logging.StreamHandler(sys.stderr)
    if style == "json" or (style == "auto" and not sys.stderr.isatty()):
        out.setFormatter(
            JsonFormatter(
                "{levelname}{name}{message}",
                style="{",
                rename_fields={"levelname": "level", "name": "logger"},
                timestamp="time",  # in UTC, with its offset
            )
        )
    else:
        out.setFormatter(_Plain("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S"))
    logging.basicConfig(level=level.upper(), handlers=[out], force=True)
    # kopf logs its own steps at info; what it logs about our handlers is at warning and above.
    logging.getLogger("kopf").setLevel(logging.WARNING)
    logging.getLogger("aiohttp").setLevel(logging.WARNING)
