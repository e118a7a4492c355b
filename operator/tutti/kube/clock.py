"""The API server's clock, as its answers date it: what it stamps and what we judge agree.

Replicas judge each other's dates, and the API server's own. By the wall clock of each, one that is
an hour ahead would give up at once what another reserved a minute ago.
"""

from collections.abc import Callable
from email.utils import parsedate_to_datetime

RESOLUTION = 1.0  # seconds: an answer is dated in whole ones, rounded down


class ServerClock:
    """Seconds since the epoch; between two answers our own monotonic clock goes on."""

    def __init__(self, wall: Callable[[], float], monotonic: Callable[[], float]) -> None:
        """Until the first answer, ``wall`` is taken to be right."""
        self.monotonic = monotonic
        self._offset = wall() - monotonic()
        self._known = ("", 0.0)  # the last date, and what it means

    def __call__(self) -> float:
        """The present."""
        return self.monotonic() + self._offset

    def dated(self, date: str, sent: float) -> None:
        """Take in the Date of an answer to what was sent at this time of ``monotonic``.

        It was dated between then and now: the clock moves by no more than that demands. A date
        that cannot be read says nothing.
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
