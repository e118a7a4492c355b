"""The Reservations of one gang: those that hold room, found without a look at all others."""

from dataclasses import replace

import pytest

from tutti.model.cluster import Reservation
from tutti.model.keys import GangKey, Uid
from tutti.model.queues import QueueRecord
from tutti.state.reservation_index import ReservationIndex
from tutti.state.store import Store

from ...harness.builders import NAMESPACE, gang, reservation

RECORD = QueueRecord("vision", Uid("q-1"), 0.0)


def stored(name: str, *, version: int = 1, of: str = "a") -> Reservation:
    """A Reservation of the gang ``of``, as the API server shows it."""
    held = reservation(gang(of).of(1, cpu=1), (f"{of}-0", "n1"))
    return replace(held, self_uid=Uid(name), version=str(version))


def empty(held: Reservation, version: int) -> Reservation:
    """The same, emptied, and kept for the record of the start."""
    return replace(held, entries=(), record=RECORD, version=str(version))


def an_index() -> ReservationIndex:
    return ReservationIndex(lambda _old, _new: None, lambda _began: None, lambda _r: True)


def of(index: ReservationIndex, name: str) -> list[Reservation]:
    return list(index.of(GangKey(NAMESPACE, name)))


def test_a_gang_has_the_reservations_that_hold_room_for_it() -> None:
    index, held, other = an_index(), stored("r-1"), stored("r-2", of="b")
    index.put(held)
    index.put(other)
    assert (of(index, "a"), of(index, "b"), of(index, "c")) == ([held], [other], [])
    adopted = replace(held, term="t-2", version="2")
    index.put(adopted)
    assert of(index, "a") == [adopted]
    index.put(empty(held, 3))
    assert (of(index, "a"), index.spent(held.uid)) == ([], empty(held, 3))
    filled = replace(held, version="4")
    index.put(filled)
    assert (of(index, "a"), index.spent(held.uid)) == ([filled], None)
    index.drop(filled)
    assert (of(index, "a"), of(index, "b")) == ([], [other])
    index.put(empty(other, 5))
    index.drop(empty(other, 5))
    assert (of(index, "b"), index.spent(other.uid)) == ([], None)


def test_of_two_of_one_name_the_later_stays_when_the_earlier_goes() -> None:
    index, earlier, later = an_index(), stored("r-1"), stored("r-2", version=2)
    index.put(earlier)
    index.put(later)
    assert of(index, "a") == [earlier, later]
    index.drop(earlier)
    assert of(index, "a") == [later]


def test_the_reservations_of_a_gang_are_found_without_a_look_at_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index, held = an_index(), stored("r-1")
    index.put(held)
    monkeypatch.setattr(Store, "__iter__", None)
    assert of(index, "a") == [held]
