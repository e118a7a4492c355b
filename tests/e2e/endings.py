"""How it must end for a gang that something befell under way: one function for each kind of change.

What is lost before any member is bound is given back and planned again; what is lost after that is
repaired. Nothing is ever evicted: that is checked for every race.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.api.places import kind_of

from . import changes
from .arena import MEMBERS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from .arena import Race, Told

    Change = Callable[[Race], Collection[Told]]
    Ending = Callable[[Race], None]


def avoids_the_node(race: Race) -> None:
    """Nobody is bound to a node that is of no use any more."""
    race.until_whole()
    assert race.target not in race.nodes_of(race.group_name).values()
    assert _reservations_made(race) == 2


def takes_the_new_pod(race: Race) -> None:
    """The pod that came under the old name is bound like a replacement."""
    race.until_whole()
    assert race.is_bound(race.victim)


def lacks_a_member(race: Race) -> None:
    """It waits or says that it is broken, until somebody comes in the lost one's place."""
    if race.is_begun:
        race.until_broken("MemberLost", "3 of 4 members are bound, 1 missing")
    else:
        race.until_waiting(race.group_name, "WaitingForMembers", "3 of 4 members exist")
        race.until_event(race.group_name, "Released")
        assert race.bound() == 0
    race.add_member("new")
    race.until_whole()
    assert race.victim not in race.nodes_of()


def follows_the_hand(race: Race) -> None:
    """Who was bound by hand stays there, and its siblings are bound as reserved."""
    race.until_whole()
    assert race.nodes_of()[race.victim] == race.spare


def does_not_care(race: Race) -> None:
    """It is carried out as reserved."""
    race.until_whole()
    assert _reservations_made(race) == 1


def needs_one_more(race: Race) -> None:
    """What is asked for now counts: it waits or is broken, until one more comes."""
    if race.is_begun:
        race.until_broken("MemberLost", "4 of 5 members are bound, 1 missing")
    else:
        race.until_waiting(race.group_name, "WaitingForMembers", "4 of 5 members exist")
        assert race.bound() == 0
    race.add_member("new")
    race.until_whole(MEMBERS + 1)


def needs_roles(race: Race) -> None:
    """Whoever was bound stays; it is whole when its members have the roles."""
    if race.is_begun:
        race.until_bound(race.group_name, MEMBERS)
    else:
        race.until_waiting(race.group_name, "WaitingForMembers", "role worker: 0 of 4 exist")
        assert race.bound() == 0
    for name in race.uids():
        race.relabel(name, role="worker")
    race.until_whole()


def needs_its_group(race: Race) -> None:
    """It holds no room, and starts only if it had begun; a new PodGroup takes its pods over."""
    if race.is_begun:
        race.until_bound(race.group_name, MEMBERS)
    else:
        race.rig.until(
            lambda: race.says(race.victim).get("reason") == "PodGroupNotFound",
            "its pods say why they wait",
        )
        assert race.bound() == 0
    race.rig.until(lambda: not race.rig.reservations(race.name), "no room is held for it")
    race.group(race.group_name, MEMBERS)
    race.until_whole()


def _reservations_made(race: Race) -> int:
    return sum(kind_of(line) == "create reservations" for line in race.writes())


OF_NODES: Mapping[Change, Ending] = {
    changes.cordon: avoids_the_node,
    changes.drain: avoids_the_node,
    changes.delete_node: avoids_the_node,
    changes.lose_contact: avoids_the_node,
    changes.fill: avoids_the_node,
}
OF_GANGS: Mapping[Change, Ending] = {
    changes.recreate_member: takes_the_new_pod,
    changes.delete_member: lacks_a_member,
    changes.move_member: lacks_a_member,
    changes.bind_by_hand: follows_the_hand,
    changes.annotate_group: does_not_care,
    changes.lower_min_member: does_not_care,
    changes.raise_min_member: needs_one_more,
    changes.demand_roles: needs_roles,
    changes.delete_group: needs_its_group,
}
