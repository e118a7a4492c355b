"""The gangs whose report is up to date. The reporter skips them until something changes.

So a gang that waits without a change costs a cycle only a comparison.
"""

import math
from collections.abc import Collection, Iterable
from typing import NamedTuple

from ..kube.gang_sources import GangObject
from ..model.cluster import Gang, Reservation
from ..model.decisions import Rejection
from ..model.keys import NodeName, Uid


class GangReport(NamedTuple):
    """All inputs of the report on a gang, except for the nodes that its members are on."""

    gang: Gang
    group: GangObject | None  # None if Tutti writes no status, as for a single pod
    reservation: Reservation | None
    rejection: Rejection | None
    claim: Reservation | None = None  # for whose gang members of this one end


class _CachedReport(NamedTuple):
    """The inputs of the last report, and until when the report needs no update."""

    about: GangReport
    until: float  # seconds since the epoch
    reworded: float  # the same, if the gang waits for the same reason in other words


class ReportCache:
    """The reports that are up to date, and until when. Objects are compared by identity."""

    def __init__(self) -> None:
        self._reports: dict[Uid, _CachedReport] = {}

    def keep(self, about: GangReport, until: float, reworded: float) -> None:
        """Skip a gang until the time ``until``, or until it changes.

        If only the words of its reason change, the gang is skipped until ``reworded``.
        """
        self._reports[about.gang.uid] = _CachedReport(about, until, min(until, reworded))

    def changed(
        self, all_about: Iterable[GangReport], now: float
    ) -> tuple[list[GangReport], float]:
        """The gangs whose report may have changed, and until when no other report changes.

        Times are in seconds since the epoch; the second value is infinite if no report expires.
        """
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
        """Forget the gangs that are not in ``here``, or have a member on a node in ``turned``."""
        self._reports = {
            uid: report
            for uid, report in self._reports.items()
            if uid in here
            and not (turned and any(member.node in turned for member in report.about.gang.members))
        }


def _is_reworded(old: Rejection | None, new: Rejection | None) -> bool:
    """Whether a gang waits for the same reason as before and only the sentence differs."""
    if old is None or new is None:
        return False
    return (old.reason, old.underlying_reason, old.only_extra_members) == (
        new.reason,
        new.underlying_reason,
        new.only_extra_members,
    )
