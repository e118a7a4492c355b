"""Something changes while a gang is between its Reservation and its last binding.

Each change comes at three moments: the Reservation stands and nothing was sent; every binding is
on its way; half of the gang is bound and the operator is dead. What was lost before any member is
bound is planned anew; what was lost after that is repaired, and nothing is evicted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.api.places import kind_of

from . import changes
from .arena import MEMBERS, PEERS, Arena, Race, Told

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    Change = Callable[[Race], Collection[Told]]

RESERVED, SENT, HALF_BOUND = "reserved", "sent", "half_bound"
NODE_IS_NO_USE = (changes.cordon, changes.drain, changes.delete_node, changes.lose_contact)


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


def meanwhile(race: Race, moment: str, change: Change) -> None:
    """Make the change at this moment; what was bound by then stays where it is."""
    hold = {RESERVED: race.reserved, SENT: race.sent, HALF_BOUND: race.half_bound}[moment]
    with hold():
        race.keep()
        assert race.bound() == (PEERS if moment == HALF_BOUND else 0)
        if moment == HALF_BOUND:
            change(race)  # nobody is there to be told
        else:
            race.arena.told(lambda: change(race))


def reservations_made(race: Race) -> int:
    """How often the gang was reserved for."""
    return sum(kind_of(line) == "create reservations" for line in race.writes())


@pytest.mark.parametrize("change", [*NODE_IS_NO_USE, changes.fill])
@pytest.mark.parametrize("moment", [RESERVED, HALF_BOUND])
def test_a_node_that_is_no_use_any_more_gets_no_member_that_was_not_sent(
    race: Race, moment: str, change: Change
) -> None:
    meanwhile(race, moment, change)
    race.until_whole()
    assert race.target not in race.nodes_of(race.group_name).values()
    assert reservations_made(race) == 2
    if moment == RESERVED:
        race.until_event(race.group_name, "Released")


@pytest.mark.parametrize("change", NODE_IS_NO_USE)
def test_what_was_sent_before_its_node_went_arrives_and_is_repaired(
    race: Race, change: Change
) -> None:
    meanwhile(race, SENT, change)
    race.until_bound(race.group_name, MEMBERS)
    stranded = race.placement[race.target]
    assert {race.nodes_of()[name] for name in stranded} == {race.target}
    if change in (changes.delete_node, changes.lose_contact):
        race.until_broken("NodeLost")
    race.remove(*stranded)  # by a drain, the pod garbage collector, or taint eviction
    race.until_broken("MemberLost")
    race.add_member("new-0")
    race.add_member("new-1")
    race.until_whole()
    assert race.target not in race.nodes_of().values()


@pytest.mark.parametrize("moment", [RESERVED, SENT, HALF_BOUND])
def test_a_member_recreated_under_its_name_is_another_pod(race: Race, moment: str) -> None:
    with_old_uid = {}

    def change(race: Race) -> Collection[Told]:
        with_old_uid.update(race.uids())
        return changes.recreate_member(race)

    meanwhile(race, moment, change)
    race.until_whole()
    assert race.uids()[race.victim] != with_old_uid[race.victim]


@pytest.mark.parametrize("moment", [RESERVED, SENT, HALF_BOUND])
@pytest.mark.parametrize("change", [changes.delete_member, changes.move_member])
def test_a_gang_that_loses_a_member_waits_if_none_is_bound_and_is_repaired_if_some_are(
    race: Race, moment: str, change: Change
) -> None:
    meanwhile(race, moment, change)
    if moment == RESERVED:
        race.until_waiting(race.group_name, "WaitingForMembers", "3 of 4 members exist")
        race.until_event(race.group_name, "Released")
        assert race.bound() == 0
    else:
        race.until_broken("MemberLost", "3 of 4 members are bound, 1 missing")
    race.add_member("new")
    race.until_whole()
    if change is changes.move_member:
        assert not race.is_bound(race.victim)


@pytest.mark.parametrize("moment", [RESERVED, SENT, HALF_BOUND])
def test_a_member_bound_by_hand_elsewhere_stays_there_and_its_siblings_follow(
    race: Race, moment: str
) -> None:
    meanwhile(race, moment, changes.bind_by_hand)
    race.until_whole()
    assert race.nodes_of()[race.victim] == race.spare


@pytest.mark.parametrize("moment", [RESERVED, SENT, HALF_BOUND])
@pytest.mark.parametrize("change", [changes.annotate_group, changes.lower_min_member])
def test_an_edit_that_asks_for_no_more_changes_nothing(
    race: Race, moment: str, change: Change
) -> None:
    meanwhile(race, moment, change)
    race.until_whole()
    assert reservations_made(race) == 1


@pytest.mark.parametrize("moment", [RESERVED, SENT, HALF_BOUND])
def test_a_raised_min_member_is_asked_of_a_gang_under_way(race: Race, moment: str) -> None:
    meanwhile(race, moment, changes.raise_min_member)
    if moment == RESERVED:
        race.until_waiting(race.group_name, "WaitingForMembers", "4 of 5 members exist")
        assert race.bound() == 0
    else:
        race.until_broken("MemberLost", "4 of 5 members are bound, 1 missing")
    race.add_member("new")
    race.until_whole(MEMBERS + 1)


@pytest.mark.parametrize("moment", [RESERVED, SENT, HALF_BOUND])
def test_roles_that_no_member_has_are_asked_of_a_gang_under_way(race: Race, moment: str) -> None:
    meanwhile(race, moment, changes.demand_roles)
    if moment == RESERVED:
        race.until_waiting(race.group_name, "WaitingForMembers", "role worker: 0 of 4 exist")
        assert race.bound() == 0
    else:
        race.until_bound(race.group_name, MEMBERS)
    for name in race.uids():
        race.relabel(name, role="worker")
    race.until_whole()


@pytest.mark.parametrize("moment", [RESERVED, SENT, HALF_BOUND])
def test_a_gang_whose_pod_group_is_deleted_starts_only_if_it_had_begun(
    race: Race, moment: str
) -> None:
    meanwhile(race, moment, changes.delete_group)
    if moment == RESERVED:
        race.rig.until(lambda: race.says(race.victim), "its pods say why they wait")
        assert race.says(race.victim)["reason"] == "PodGroupNotFound"
        assert race.bound() == 0
    else:
        race.until_bound(race.group_name, MEMBERS)
    race.rig.until(lambda: not race.rig.reservations(race.name), "no room is held for it")
    race.group(race.group_name, MEMBERS)
    race.until_whole()


@pytest.mark.parametrize("lose_node", [changes.drain_node, None])
def test_bound_members_whose_node_goes_while_the_rest_is_reserved_are_replaced(
    race: Race, lose_node: Callable[[Race, str], None] | None
) -> None:
    with race.half_bound():
        gone = race.placement[race.begun]
        if lose_node is not None:
            lose_node(race, race.begun)
        else:
            race.delete("node", race.begun)
    race.rig.until(lambda: race.is_bound(race.victim), "what was reserved is carried out")
    if lose_node is None:
        race.until_broken("NodeLost")
        race.remove(*gone)
    race.until_broken("MemberLost", "2 of 4 members are bound, 2 missing")
    race.add_member("new-0")
    race.add_member("new-1")
    race.until_whole()
    assert race.begun not in race.nodes_of().values()
