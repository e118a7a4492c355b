"""Log lines: for people at a terminal, as JSON elsewhere."""

import logging
import sys

from pythonjsonlogger.json import JsonFormatter

from ..model.terminal import visible


class _Plain(logging.Formatter):
    """For people: what somebody else's words hold moves no cursor and begins no line."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """The line, without what an exception adds to it."""
        record.message = visible(record.message)
        return super().formatMessage(record)


def configure(style: str, level: str) -> None:
    """Write log lines to stderr: for people at a terminal, as JSON elsewhere."""
    out = logging.StreamHandler(sys.stderr)
    if style == "json" or (style == "auto" and not sys.stderr.isatty()):
        out.setFormatter(
            JsonFormatter(
                "{levelname}{name}{message}",
                style="{",
                rename_fields={"levelname": "level", "name": "logger"},
                timestamp="time",  # of UTC, and says so
            )
        )
    else:
        out.setFormatter(_Plain("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S"))
    logging.basicConfig(level=level.upper(), handlers=[out], force=True)
    # kopf tells its own life at info; what it says of ours is at warning and above.
    logging.getLogger("kopf").setLevel(logging.WARNING)
    logging.getLogger("aiohttp").setLevel(logging.WARNING)
