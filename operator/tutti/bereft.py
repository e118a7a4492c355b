"""Reservations that went away before their time: somebody else deleted them.

Tutti deletes one with slots only once nobody is awaited for them any more. Whichever else goes is
kept in mind, so that room is looked for anew. Separate from the World's stores, which forget.
"""

from collections.abc import Callable

from .kube.decode import PodGroup
from .model.cluster import Reservation
from .model.keys import GangKey, Uid


class Bereft:
    """What such Reservations have held, until their members' time is up."""

    def __init__(self, group: Callable[[GangKey], PodGroup | None]) -> None:
        """``group`` is the PodGroup of a name, as it is now."""
        self._group = group
        self._gone: dict[Uid, Reservation] = {}  # by gang

    def changed(self, old: Reservation | None, new: Reservation | None) -> None:
        """Take in that a Reservation came, or went."""
        if new is not None:
            self._gone.pop(new.uid, None)
        elif old is not None and old.slots:
            self._gone[old.uid] = old

    def shown(self, now: float) -> tuple[Reservation, ...]:
        """Those of gangs that exist and may still await members."""
        if self._gone:
            self._gone = {
                uid: held for uid, held in sorted(self._gone.items()) if self._is_due(held, now)
            }
        return tuple(self._gone.values())

    def _is_due(self, held: Reservation, now: float) -> bool:
        group = self._group(held.gang)
        if group is None or group.uid != held.uid:
            return False
        return now < held.reserved_at + group.absent_seconds
