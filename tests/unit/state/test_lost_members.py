"""Room of members that were deleted: from when, until when and for whom it is held."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tutti.gang.demand import min_members
from tutti.model.cluster import Phase
from tutti.model.keys import NodeName, Uid
from tutti.model.owners import Owner
from tutti.state import lost_members
from tutti.state.lost_members import HOLD_SECONDS, LostMembers
from tutti.state.node_usage import NodeUsage

from ...harness.builders import gang, node

if TYPE_CHECKING:
    from tutti.model.cluster import Gang, Member

OWNER = Owner("Job", "a", "batch", Uid("job"))
NODES = ("n1", "n2", "n3")


class Losses:
    """A gang of three that runs on three nodes of one CPU, and what is held once it changes."""

    def __init__(self) -> None:
        self.usage = NodeUsage()
        for name in NODES:
            self.usage.learn(Uid(name), node(name, cpu=1).made)
        running = gang("a").of(3, cpu=1).bound_on(*NODES)
        self.gang: Gang | None = running.each(phase=Phase.RUNNING, owner=OWNER).made
        self.losses = LostMembers(self.usage, lambda _: self.gang)
        self.evictable: frozenset[Uid] = frozenset()

    def delete(self, *numbers: int, **changes: object) -> None:
        """Delete members of these numbers, after these changes."""
        assert self.gang is not None
        members = list(self.gang.members)
        for number in numbers:
            self.losses.deleted(replace(members[number], **changes))  # type: ignore[arg-type]
        gone = {members[number].uid for number in numbers}
        self.set(*(member for member in members if member.uid not in gone))

    def set(self, *members: Member) -> None:
        """Let the gang have these members."""
        assert self.gang is not None
        self.gang = replace(self.gang, members=members)

    def create(self, **changes: object) -> None:
        """Create a replacement, which waits."""
        assert self.gang is not None
        new = replace(self.gang.members[0], uid=Uid("new"), node=None, phase=Phase.PENDING)
        self.set(*self.gang.members, replace(new, **changes))  # type: ignore[arg-type]

    def held(self, now: float = 0.0) -> list[str]:
        """The nodes on which room is held."""
        self.losses.settle(now, lambda: self.evictable)
        return [n.name for n in self.usage.nodes() if n.used.amounts]


def test_room_is_held_until_its_time_is_up() -> None:
    play = Losses()
    assert play.losses.next_end(0.0) is None
    play.delete(1)
    assert play.held(now=100.0) == ["n2"]
    assert play.losses.next_end(101.0) == HOLD_SECONDS - 1
    assert play.held(now=100.0 + HOLD_SECONDS - 0.1) == ["n2"]
    assert play.held(now=100.0 + HOLD_SECONDS) == []
    assert play.losses.next_end(200.0) is None


def test_a_clock_that_goes_back_holds_no_room_for_ever() -> None:
    play = Losses()
    play.delete(1)
    assert play.held(now=100.0) == ["n2"]
    assert play.held(now=10.0) == []


def test_a_replacement_that_waits_ends_one_hold_of_its_gang() -> None:
    play = Losses()
    play.delete(0, 1)
    assert play.held() == ["n1", "n2"]
    play.create()
    assert play.held() == ["n2"]
    play.create()
    assert play.held() == []


@pytest.mark.parametrize(
    "changes",
    [
        {"owner": None},
        {"owner": Owner("Job", "a", "batch")},
        {"group": ""},
        {"node": None},
        {"phase": Phase.SUCCEEDED},
        {"phase": Phase.FAILED},
    ],
    ids=["no owner", "unknown owner", "no gang", "no node", "succeeded", "failed"],
)
def test_no_room_is_held_for_a_pod_that_nothing_replaces_in_its_gang(
    changes: dict[str, object],
) -> None:
    play = Losses()
    play.delete(1, **changes)
    assert play.held() == []


def test_no_room_is_held_for_a_gang_that_ends() -> None:
    play = Losses()
    play.delete(1)
    assert play.held() == ["n2"]
    assert play.gang is not None
    play.set(*(replace(member, terminating=True) for member in play.gang.members))
    assert play.held() == []
    play = Losses()
    play.delete(0, 1, 2)
    assert play.held() == []


@pytest.mark.parametrize("is_deleted", [True, False])
def test_no_room_is_held_once_the_gang_is_deleted(*, is_deleted: bool) -> None:
    play = Losses()
    play.delete(1)
    assert play.gang is not None
    play.gang = None if is_deleted else replace(play.gang, terminating=True)
    assert play.held() == []


def test_no_room_is_held_for_members_beyond_those_needed() -> None:
    play = Losses()
    assert play.gang is not None
    play.gang = replace(play.gang, min_member=2)
    play.delete(0, 1)
    assert min_members(play.gang) == 2
    assert play.held() == ["n2"]


def test_members_that_succeeded_need_no_room() -> None:
    play = Losses()
    assert play.gang is not None
    first, *others = play.gang.members
    play.set(replace(first, phase=Phase.SUCCEEDED), *others)
    play.delete(1)
    assert play.held() == ["n2"]
    play.gang = replace(play.gang, finished=("",))
    assert play.held() == []


def test_no_room_is_held_once_the_driver_that_creates_the_members_has_succeeded() -> None:
    play = Losses()
    assert play.gang is not None
    driver, *others = play.gang.members
    play.gang = replace(play.gang, owner_pod=driver.key.name)
    play.set(replace(driver, phase=Phase.SUCCEEDED, is_driver=True), *others)
    play.delete(1)
    assert play.held() == []


def test_room_is_held_in_the_roles_that_lack_members() -> None:
    play = Losses()
    roles = gang("a").role("driver", 1, cpu=1).role("worker", 2, cpu=1).made
    assert play.gang is not None
    members = play.gang.members
    play.gang = replace(play.gang, roles=roles.roles)
    play.set(replace(members[0], role="driver"), *(replace(m, role="worker") for m in members[1:]))
    play.delete(0, 1)
    assert play.held() == ["n1", "n2"]
    play.create(role="worker")
    assert play.held() == ["n1"]


def test_the_room_of_pods_that_tutti_may_have_evicted_is_not_held() -> None:
    play = Losses()
    assert play.gang is not None
    play.evictable = frozenset({play.gang.members[1].uid})
    play.delete(1)
    assert play.held() == []


def test_a_replica_that_stands_by_remembers_few_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_members, "MOST_LOSSES", 1)
    play = Losses()
    play.delete(0, 1)
    assert play.held() == ["n2"]


def test_another_pod_on_the_node_ends_the_hold() -> None:
    play = Losses()
    play.delete(0, 1)
    assert play.held() == ["n1", "n2"]
    play.losses.taken(NodeName("n1"))
    assert play.held() == ["n2"]
