"""Gangs whose Reservation is deleted although members may still be created for its slots.

Another client deleted the Reservation, or Tutti gave it back before a member was bound. In both
cases Tutti looks for room again. The stores of the cluster state forget such Reservations.
"""

from collections.abc import Callable

from ..kube.gang_sources import GangObject
from ..model.cluster import Reservation
from ..model.keys import GangKey, Uid


class LostReservations:
    """The deleted Reservations, until the time for their absent members is up."""

    def __init__(self, group: Callable[[GangKey], GangObject | None]) -> None:
        """``group`` gives the current object that declares a gang."""
        self._group = group
        self._gone: dict[Uid, Reservation] = {}  # by gang

    def changed(self, old: Reservation | None, new: Reservation | None) -> None:
        """Take in a Reservation that was created or deleted."""
        if new is not None:
            self._gone.pop(new.uid, None)
        elif old is not None and old.slots:
            self._gone[old.uid] = old

    def snapshot(self, now: float) -> frozenset[Uid]:
        """The gangs that still exist and whose time for absent members is not up."""
        if self._gone:
            self._gone = {
                uid: reservation
                for uid, reservation in self._gone.items()
                if self._counts(reservation, now)
            }
        return frozenset(self._gone)

    def _counts(self, reservation: Reservation, now: float) -> bool:
        group = self._group(reservation.gang)
        if group is None or group.uid != reservation.uid:
            return False
        return now < reservation.reserved_at + group.absent_seconds
