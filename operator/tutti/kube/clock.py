"""The clock of the API server, estimated from the dates of its answers.

Replicas compare their time with dates that other replicas and the API server wrote. With its own
wall clock, a replica that is an hour ahead would give up what another reserved a minute ago.
"""

from collections.abc import Callable
from email.utils import parsedate_to_datetime

RESOLUTION = 1.0  # seconds: dates of answers are rounded down to whole seconds


class ServerClock:
    """Seconds since the epoch; between two answers it advances with our monotonic clock."""

    def __init__(self, wall: Callable[[], float], monotonic: Callable[[], float]) -> None:
        """Until the first answer, the clock agrees with ``wall``."""
        self.monotonic = monotonic
        self._offset = wall() - monotonic()
        self._known = ("", 0.0)  # the last date, and its seconds since the epoch

    def __call__(self) -> float:
        """The time now, in seconds since the epoch."""
        return self.monotonic() + self._offset

    def dated(self, date: str, sent: float) -> None:
        """Take in the Date of an answer to a request that was sent at this time of ``monotonic``.

        The answer was dated between that time and now. The clock moves only as far as this
        requires. A date that cannot be read is ignored.
        """
        text, at = self._known
        if not date:
            return
        if date != text:
            try:
                at = parsedate_to_datetime(date).timestamp()
            except ValueError:
                return
            self._known = (date, at)
        latest = at + RESOLUTION - sent
        self._offset = max(at - self.monotonic(), min(self._offset, latest))
