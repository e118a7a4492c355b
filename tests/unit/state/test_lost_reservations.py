"""Gangs whose Reservation went before its time: for how long that is kept in mind."""

from dataclasses import replace

from tutti.kube.gang_sources import GangObject
from tutti.model.cluster import Reservation, SlotReservation
from tutti.model.keys import GangKey, NodeName, Uid
from tutti.state.reservation_index import LostReservations

from ...harness.builders import NAMESPACE, gang, reservation

DRIVEN = gang("a").of(1, cpu=1)
SLOTS = (SlotReservation(NodeName("n1"), "worker", 2),)
HELD = reservation(DRIVEN, ("a-0", "n1"), at=100.0, slots=SLOTS)
GROUP = GangObject(GangKey(NAMESPACE, "a"), HELD.uid, 3, generation=1, version="1")


def after(
    *changes: tuple[Reservation | None, Reservation | None],
    group: GangObject | None = GROUP,
    at: float = 100.0,
) -> frozenset[Uid]:
    """What is shown then."""
    known = {} if group is None else {GangKey(NAMESPACE, "a"): group}
    lost_reservations = LostReservations(known.get)
    for old, new in changes:
        lost_reservations.changed(old, new)
    return lost_reservations.snapshot(at)


def test_one_that_went_is_kept_in_mind_until_its_time_is_up() -> None:
    assert after((None, HELD), (HELD, None), at=699.0) == {HELD.uid}
    assert after((None, HELD), (HELD, None), at=700.0) == frozenset()


def test_one_that_changes_or_stands_again_is_not() -> None:
    assert after((None, HELD), (HELD, replace(HELD, slots=()))) == frozenset()
    assert after((HELD, None), (None, replace(HELD, reserved_at=101.0))) == frozenset()


def test_one_that_held_room_for_nobody_who_is_awaited_is_not() -> None:
    bare = replace(HELD, slots=())
    assert after((None, bare), (bare, None)) == frozenset()


def test_one_of_a_gang_that_is_gone_or_another_by_now_is_not() -> None:
    assert after((HELD, None), group=None) == frozenset()
    assert after((HELD, None), group=replace(GROUP, uid=Uid("another"))) == frozenset()
