"""Gangs whose Reservation went although members may still come for the slots in it.

Somebody else has deleted it, or Tutti gave it back where nothing followed from it: room is looked
for anew either way. Separate from the cluster state's stores, which forget.
"""

from collections.abc import Callable

from ..kube.gang_sources import GangObject
from ..model.cluster import Reservation
from ..model.keys import GangKey, Uid


class LostReservations:
    """What such Reservations were, until their members' time is up."""

    def __init__(self, group: Callable[[GangKey], GangObject | None]) -> None:
        """``group`` is the PodGroup of a name, as it is now."""
        self._group = group
        self._gone: dict[Uid, Reservation] = {}  # by gang

    def changed(self, old: Reservation | None, new: Reservation | None) -> None:
        """Take in that a Reservation came, or went."""
        if new is not None:
            self._gone.pop(new.uid, None)
        elif old is not None and old.slots:
            self._gone[old.uid] = old

    def shown(self, now: float) -> frozenset[Uid]:
        """The gangs of those that exist and whose time is not up."""
        if self._gone:
            self._gone = {
                uid: reservation
                for uid, reservation in self._gone.items()
                if self._is_due(reservation, now)
            }
        return frozenset(self._gone)

    def _is_due(self, reservation: Reservation, now: float) -> bool:
        group = self._group(reservation.gang)
        if group is None or group.uid != reservation.uid:
            return False
        return now < reservation.reserved_at + group.absent_seconds
