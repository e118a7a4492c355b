"""Keeps dumps of plans that broke a promise, which ``tutti plan -f`` replays.

Such a plan is a bug of Tutti or of an engine, and the same Snapshot is needed to find the bug.
"""

import contextlib
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from .. import dump
from ..model.cluster import Snapshot
from ..model.decisions import Plan

MOST_FILES = 3  # the dump of a large cluster takes some 70 MB; /tmp of the chart has 512 MiB
LEAST_SECONDS = 60.0  # between two dumps, as the same error occurs in every cycle
PREFIX, SUFFIX = "tutti-violation-", ".json"


class ViolationDumps:
    """A directory with the last few dumps; new dumps replace the oldest."""

    def __init__(self, directory: Path, setup: dump.PlannerConfig) -> None:
        """``setup`` has the settings with which all plans are made."""
        self._directory = directory
        self._setup = setup
        self._last: float | None = None  # when the newest dump was taken

    def keep(self, snapshot: Snapshot, plan: Plan) -> Path | None:
        """Write a dump that only this user can read; None if the last one is too recent.

        Raises:
            OSError: the dump cannot be written.
        """
        at = snapshot.taken_at
        if self._last is not None and 0 <= at - self._last < LEAST_SECONDS:
            return None
        for old in self.files()[: -(MOST_FILES - 1)]:
            with contextlib.suppress(OSError):  # it may be of another user in a shared directory
                old.unlink()
        moment = datetime.fromtimestamp(at, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        path = self._directory / f"{PREFIX}{moment}{SUFFIX}"
        # In a shared directory, another user may have planted a link of that name.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as out:
            out.write(dump.write(snapshot, self._setup, plan))
        self._last = at
        return path

    def files(self) -> Sequence[Path]:
        """The dumps that are kept, the oldest first."""
        return sorted(self._directory.glob(f"{PREFIX}*{SUFFIX}"))
