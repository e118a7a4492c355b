"""Something changes while a gang is between its Reservation and its first binding's arrival.

Two moments: the Reservation stands and nothing was sent; every binding is on its way. What comes
when half of the gang is bound is in ``test_races_outage``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from . import changes
from .arena import MEMBERS, Arena, Race
from .endings import OF_GANGS, OF_NODES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .endings import Change

ARRIVES_ANYWAY = (changes.cordon, changes.drain, changes.delete_node, changes.lose_contact)


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    """One control plane and one operator for all of these."""
    with Arena.open() as arena:
        yield arena


@pytest.fixture
def race(arena: Arena) -> Iterator[Race]:
    """A gang of a test's own."""
    with arena.race() as race:
        yield race


@pytest.mark.parametrize("change", [*OF_NODES, *OF_GANGS])
def test_what_changes_before_anything_is_sent_is_seen_and_the_gang_planned_anew_if_need_be(
    race: Race, change: Change
) -> None:
    with race.reserved():
        race.arena.told(lambda: change(race))
    race.is_begun = change is changes.bind_by_hand
    {**OF_NODES, **OF_GANGS}[change](race)


@pytest.mark.parametrize("change", OF_GANGS)
def test_a_gang_that_changes_while_its_bindings_are_on_their_way_is_repaired(
    race: Race, change: Change
) -> None:
    with race.sent():
        race.arena.told(lambda: change(race))
    race.is_begun = True
    OF_GANGS[change](race)


@pytest.mark.parametrize("change", ARRIVES_ANYWAY)
def test_members_bound_to_a_node_that_went_meanwhile_are_replaced_when_they_go(
    race: Race, change: Change
) -> None:
    with race.sent():
        race.arena.told(lambda: change(race))
    race.until_bound(race.group_name, MEMBERS)
    stranded = race.placement[race.target]
    assert {race.nodes_of()[name] for name in stranded} == {race.target}
    is_lost = change in (changes.delete_node, changes.lose_contact)
    if is_lost:
        race.until_broken("NodeLost")
    race.remove(*stranded)  # by a drain, the pod garbage collector, or taint eviction
    race.until_broken("NodeLost" if is_lost else "MemberLost", "2 of 4 members are bound")
    race.add_member("new-0")
    race.add_member("new-1")
    race.until_whole()
    assert race.target not in race.nodes_of().values()
