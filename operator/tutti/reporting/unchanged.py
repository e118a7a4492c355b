"""Gangs whose reports stand as they are: as long as nothing changes they are passed over.

Separate from the reporter, which has words for the others: a crowd that waits must cost a cycle no
more than a glance at each.
"""

import math
from collections.abc import Collection, Iterable
from typing import NamedTuple

from ..kube.gang_sources import GangObject
from ..model.cluster import Gang, Reservation
from ..model.decisions import Rejection
from ..model.keys import NodeName, Uid


class GangReport(NamedTuple):
    """All that is said of a gang depends on, but for the nodes that its members are on."""

    gang: Gang
    group: GangObject | None  # None where Tutti writes no status: of a pod alone, say
    reservation: Reservation | None
    rejection: Rejection | None


class _CachedReport(NamedTuple):
    """Until when there is nothing to say, in seconds since the epoch."""

    about: GangReport
    until: float
    reworded: float  # likewise if it waits for the same reason in other words


class ReportCache:
    """The reports that stand, and until when. Unchanged objects are compared by identity."""

    def __init__(self) -> None:
        self._reports: dict[Uid, _CachedReport] = {}

    def keep(self, about: GangReport, until: float, reworded: float) -> None:
        """Say no more of a gang until then, or until it changes."""
        self._reports[about.gang.uid] = _CachedReport(about, until, min(until, reworded))

    def changed(
        self, all_about: Iterable[GangReport], now: float
    ) -> tuple[list[GangReport], float]:
        """Those of whom there may be something to say; and until when there is not of the rest."""
        changed: list[GangReport] = []
        next_at = math.inf
        for about in all_about:
            until = self._until(about)
            if until <= now:
                changed.append(about)
            elif until < next_at:
                next_at = until
        return changed, next_at

    def _until(self, about: GangReport) -> float:
        cached = self._reports.get(about.gang.uid)
        if (
            cached is None
            or cached.about.gang is not about.gang
            or cached.about.group is not about.group
            or cached.about.reservation is not about.reservation
        ):
            return -math.inf
        if cached.about.rejection == about.rejection:
            return cached.until
        if _is_reworded(cached.about.rejection, about.rejection):
            return cached.reworded
        return -math.inf

    def forget(self, here: Collection[Uid], turned: Collection[NodeName]) -> None:
        """Forget who is not here any more, or has a member on a node that came, went or turned."""
        self._reports = {
            uid: report
            for uid, report in self._reports.items()
            if uid in here
            and not (turned and any(member.node in turned for member in report.about.gang.members))
        }


def _is_reworded(old: Rejection | None, new: Rejection | None) -> bool:
    """Whether a gang waits as before and only the sentence is another."""
    if old is None or new is None:
        return False
    return (old.reason, old.underlying_reason, old.only_extra_members) == (
        new.reason,
        new.underlying_reason,
        new.only_extra_members,
    )
