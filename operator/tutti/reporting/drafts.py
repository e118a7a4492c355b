"""The status that an object is to have, in the words of its kind: Tutti's own, or its source's.

Separate from the reporter, which knows when it is written.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..gang.health import is_whole
from ..gang.quantities import cut
from ..kube.gang_sources import GangObject, GangOutcome, status_writer
from ..model.cluster import Gang
from . import status as wording
from .status import ConditionType, GangCondition, GroupStatus


class Draft(NamedTuple):
    """What a status is to be, and what of it is news."""

    status: Mapping[str, Any]  # sentences that say the same in other words may have stayed
    newest: Mapping[str, Any]
    news: Sequence[GangCondition]
    wait: float  # for how many seconds it may be put off, so that changes share a write
    may_stay: bool = False  # the status may stay as it is, whatever could be said
    version: str = ""  # the only one of the object that it is for, if any


def draft(
    gang: Gang,
    status: GroupStatus,
    group: GangObject,
    now: str,
    *,
    is_fresh: bool,
    quiet_for: float,
    since_write: float,
) -> Draft:
    """What an object is to say, at a moment ``now`` as the API spells it.

    ``is_fresh`` is whether its sentences were written just now; the gang is as it is ``quiet_for``
    so many seconds, and its status was written ``since_write`` seconds ago.
    """
    writer, observed = status_writer(gang.key.kind), group.status
    if writer is not None and writer.words is not None:
        outcome = outcome_of(gang, status)
        new_status = writer.words(outcome, observed, now, keep_sentences=is_fresh)
        newest = writer.words(outcome, observed, now, keep_sentences=False)
        wait = max(0.0, wording.QUIET_SECONDS - min(quiet_for, since_write))
        return Draft(
            new_status, newest, (), 0.0 if outcome.is_whole else wait, version=group.version
        )
    new_status = wording.merged(status, observed, now, keep_sentences=is_fresh)
    # A write that is made anyway contradicts no counter of its own.
    newest = wording.merged(status, observed, now, keep_sentences=False)
    wait = wording.patience(newest, observed, quiet_for=quiet_for, since_write=since_write)
    may_stay = wording.may_stay(gang, observed, status.scheduler)
    return Draft(new_status, newest, wording.news(newest, observed), wait, may_stay)


def outcome_of(gang: Gang, status: GroupStatus) -> GangOutcome:
    """What a status says, for those who have words of their own for it."""
    line = next(line for line in status.conditions if line.type is ConditionType.RESERVED)
    counts = status.counts
    return GangOutcome(
        gang.generation,
        is_whole(gang),
        "" if line.holds else line.reason,
        "" if line.holds else cut(line.message, wording.MESSAGE_LIMIT),
        status.phase,
        counts.seen,
        counts.bound,
        counts.running,
        counts.succeeded,
        counts.failed,
        counts.needed,
    )
