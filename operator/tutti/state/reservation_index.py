"""The Reservations: those that hold room, and those that are kept for the record of a start."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ..kube.gang_sources import GangObject
from ..kube.list_watch import Item
from ..model.cluster import Reservation
from ..model.keys import GangKey, Uid
from .store import Store


class ReservationIndex:
    """The Reservations as the API server last showed them."""

    def __init__(
        self,
        changed: Callable[[Reservation | None, Reservation | None], None],
        listed: Callable[[int], None],
        charges: Callable[[Reservation], bool],
    ) -> None:
        """``changed`` gets the old and the new value of a Reservation.

        ``charges`` is whether Queues exist and a pod of a Reservation with a record holds room.
        """
        self.store: Store[Reservation] = Store(self._reservation_changed, listed)
        self._changed, self._charges = changed, charges
        self._is_outdated = True  # whether ``standing`` and ``start_records`` have to be sorted
        # By gang and by their own uid.
        self._by_gang: dict[GangKey, dict[Uid, Reservation]] = {}
        self._spent: dict[Uid, Reservation] = {}  # Reservations that hold no room, by gang
        self._lost_records: dict[Uid, Reservation] = {}  # deleted too early, by gang
        self._holding_room: tuple[Reservation, ...] = ()
        self._start_records: tuple[Reservation, ...] = ()

    def __iter__(self) -> Iterator[Reservation]:
        return iter(self.store)

    @property
    def holding_room(self) -> tuple[Reservation, ...]:
        """The Reservations that hold room, by gang."""
        self._sort()
        return self._holding_room

    @property
    def start_records(self) -> tuple[Reservation, ...]:
        """The Reservations that are kept only for their record of a start, by gang."""
        self._sort()
        return self._start_records

    def of(self, key: GangKey) -> Iterable[Reservation]:
        """The Reservations of a gang that hold room."""
        return [r for r in self._by_gang.get(key, {}).values() if not r.is_spent]

    def has(self, key: GangKey) -> bool:
        """Whether a gang has a Reservation, one that holds room or one kept for its record."""
        return key in self._by_gang

    def roles(self, key: GangKey) -> Mapping[Uid, str]:
        """By pod: the role with which it joined a gang, as the records of its starts say."""
        reservations = self._by_gang.get(key, {}).values()
        return {uid: role for reservation in reservations for uid, role in reservation.roles}

    def current(self, reservation: Reservation) -> Reservation | None:
        """The Reservation as the API server last showed it; None if it is gone."""
        return None if reservation.self_uid is None else self.store.get(reservation.self_uid)

    def spent(self, gang: Uid) -> Reservation | None:
        """The Reservation that is kept only for its record of the gang's start."""
        return self._spent.get(gang)

    def unneeded_records(self) -> Sequence[Reservation]:
        """The spent Reservations whose record no longer counts."""
        return [
            reservation
            for reservation in self._spent.values()
            if not self.needs_record(reservation)
        ]

    def needs_record(self, reservation: Reservation) -> bool:
        """Whether the record of a start counts: Queues exist, and one of its pods holds room."""
        return reservation.record is not None and self._charges(reservation)

    def lost_records(self) -> Sequence[Reservation]:
        """The Reservations that other clients deleted although their record still counts."""
        current = {reservation.uid for reservation in self.store}
        self._lost_records = {
            uid: reservation
            for uid, reservation in self._lost_records.items()
            if uid not in current and self.needs_record(reservation)
        }
        return tuple(self._lost_records.values())

    def tidy(self, has_ended: Callable[[Uid], bool]) -> None:
        """Forget the lost records of which all pods have certainly ended.

        A watch that lags may show later that another pod holds room: then the record still counts.
        So a replica that stands by keeps, until it leads, the last lost record of each gang of
        which it was never shown a pod with its node, or missed the end of one.
        """
        self._lost_records = {
            uid: reservation
            for uid, reservation in self._lost_records.items()
            if not all(map(has_ended, reservation.pods))
        }

    def put(self, reservation: Reservation) -> None:
        """Take in a Reservation that was just created or changed."""
        if reservation.self_uid is not None:
            version = int(reservation.version)
            self.store.put(Item(reservation.self_uid, version, reservation))

    def drop(self, reservation: Reservation) -> None:
        """Forget a Reservation that was just deleted."""
        if reservation.self_uid is not None:
            self.store.drop(reservation.self_uid)

    def _sort(self) -> None:
        if self._is_outdated:
            self._is_outdated = False
            ordered = sorted(self.store, key=lambda reservation: reservation.gang)
            self._holding_room = tuple(r for r in ordered if not r.is_spent)
            spent = sorted(self._spent.values(), key=lambda reservation: reservation.gang)
            self._start_records = tuple(spent)

    def _reservation_changed(
        self, uid: Uid, old: Reservation | None, new: Reservation | None
    ) -> None:
        self._is_outdated = True
        if old is not None:
            self._forget(uid, old)
        if new is not None:
            self._by_gang.setdefault(new.gang, {})[uid] = new
            if new.is_spent:
                self._spent[new.uid] = new
        if old is not None and new is None and old.record is not None:
            self._lost_records[old.uid] = old
        self._changed(old, new)

    def _forget(self, uid: Uid, reservation: Reservation) -> None:
        """Remove a Reservation from those of its gang."""
        if reservation.is_spent:
            self._spent.pop(reservation.uid, None)
        of_gang = self._by_gang[reservation.gang]
        del of_gang[uid]
        if not of_gang:
            del self._by_gang[reservation.gang]


class LostReservations:
    """The deleted Reservations for whose slots members may still be created.

    Another client deleted the Reservation, or Tutti gave it back before a member was bound. In both
    cases Tutti looks for room again, until the time for absent members is up.
    """

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
