"""What a plan that broke a promise was made of, kept as files that ``tutti plan -f`` replays.

Such a plan is a bug of Tutti or of an engine, and finding the bug needs the very Snapshot.
"""

import contextlib
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from .. import dump
from ..model.cluster import Snapshot
from ..model.decisions import Plan

MOST_FILES = 3  # a large cluster's takes some 70 MB, and the chart's /tmp holds 512 MiB
LEAST_SECONDS = 60.0  # between two: what goes wrong goes wrong in every cycle
PREFIX, SUFFIX = "tutti-violation-", ".json"


class ViolationDumps:
    """A directory with the last few dumps; the oldest make room for new ones."""

    def __init__(self, directory: Path, setup: dump.PlannerConfig) -> None:
        """``setup`` is how all of the plans were made."""
        self._directory = directory
        self._setup = setup
        self._last: float | None = None  # when the newest was taken

    def keep(self, snapshot: Snapshot, plan: Plan) -> Path | None:
        """Write a dump, readable by this user alone; None where one was written just now.

        Raises:
            OSError: it cannot be written.
        """
        at = snapshot.taken_at
        if self._last is not None and 0 <= at - self._last < LEAST_SECONDS:
            return None
        for old in self.files()[: -(MOST_FILES - 1)]:
            with contextlib.suppress(OSError):  # another user's, where all share one directory
                old.unlink()
        moment = datetime.fromtimestamp(at, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        path = self._directory / f"{PREFIX}{moment}{SUFFIX}"
        # A directory for all users' files may hold a planted link of that name.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as out:
            out.write(dump.write(snapshot, self._setup, plan))
        self._last = at
        return path

    def files(self) -> Sequence[Path]:
        """The dumps that are kept, the oldest first."""
        return sorted(self._directory.glob(f"{PREFIX}*{SUFFIX}"))
