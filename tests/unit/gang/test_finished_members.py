"""A gang that is finishing: members that ended well count in their own run, and in no other."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tutti.gang import demand, finished_members, health
from tutti.model.cluster import Member, Phase, PodReservation, SlotReservation
from tutti.model.keys import NodeName, Uid
from tutti.model.owners import Owner

from ...harness.builders import GangBuilder, gang, member, reservation, shape


def running(n: int) -> GangBuilder:
    return gang("a").of(n, cpu=1).bound_on(*("n1" for _ in range(n))).needing(4)


def with_roles() -> GangBuilder:
    made = gang("a").role("driver", 1, cpu=1).role("worker", 3, 1, cpu=1).bound_on("n1", "n1")
    return made.needing(4)


def test_finished_members_make_a_gang_whole_and_leave_nothing_to_repair() -> None:
    gang = finished_members.with_finished(running(2).made, ["", ""])
    assert gang.finished == ("", "")
    assert health.is_whole(gang)
    assert demand.count_members(gang).missing == 0
    assert not health.is_whole(finished_members.with_finished(running(2).made, [""]))


def test_finished_members_count_for_their_role_alone() -> None:
    made = with_roles().made
    assert health.is_whole(finished_members.with_finished(made, ["worker", "worker"]))
    other = finished_members.with_finished(made, ["driver", "driver", "cook"])
    assert other.finished == ("driver", "driver")
    assert not health.is_whole(other)
    assert demand.count_members(other).missing_by_role == {"worker": 2}


def test_nothing_is_remembered_once_no_member_counts() -> None:
    gone = running(2).each(phase=Phase.FAILED).made
    assert finished_members.with_finished(gone, ["", ""]) == gone


def roles_of(members: tuple[Member, ...]) -> tuple[str, ...]:
    return tuple(member.role for member in members)


@pytest.mark.parametrize(
    ("succeeded", "roles"), [(2, ("", "")), (1, ("",)), (7, ("", "")), (0, ())]
)
def test_no_more_are_recalled_than_the_gang_lacks(succeeded: int, roles: tuple[str, ...]) -> None:
    assert roles_of(finished_members.recalled(running(2).made, succeeded)) == roles


def test_members_that_are_still_there_are_not_recalled() -> None:
    made = running(2).only("a-1", phase=Phase.SUCCEEDED).made
    assert finished_members.recalled(made, 1) == ()
    assert roles_of(finished_members.recalled(made, 2)) == ("",)


def test_nobody_is_recalled_where_nobody_is_left() -> None:
    assert finished_members.recalled(gang("a").of(2, cpu=1).needing(4).made, 2) == ()


def test_who_is_recalled_is_of_the_run_of_those_that_are_left() -> None:
    made = running(2).each(created=5.0).made
    first, second = finished_members.recalled(made, 2)
    assert first.uid != second.uid
    assert finished_members.run(made, None).has(first)
    again = replace(made, members=(pod("b-0", 6.0, node=N1), pod("b-1", 6.0)))
    assert not finished_members.run(again, None).has(first)


def test_roles_that_lack_members_are_recalled_first() -> None:
    made = replace(with_roles().made, min_member=5)
    assert roles_of(finished_members.recalled(made, 3)) == ("worker", "worker", "")


def pod(name: str, created: float, ended: float | None = None, **about: object) -> Member:
    """A pod of the gang that waits, or has succeeded at that time."""
    phase = Phase.PENDING if ended is None else Phase.SUCCEEDED
    made = replace(member(name, shape(cpu=1)), created=created, phase=phase, ended=ended)
    return replace(made, **about)  # type: ignore[arg-type]


def of_job(uid: str) -> Owner:
    return Owner("Job", "train", "batch", Uid(uid))


def unknown(name: str) -> Member:
    """A pod that has succeeded, nobody knows when."""
    return pod(name, 0, phase=Phase.SUCCEEDED)


def counted(
    *members: Member, created: float = 0.0, reserved: Sequence[str] = (), slots: int = 0
) -> list[str]:
    """The members that succeeded and count, beside a Reservation made at 4 that names these."""
    asked = gang("a").but(created=created)
    made = replace(asked.made, members=members)
    entries = tuple(
        PodReservation(member.key, member.uid, N1)
        for member in members
        if member.key.name in reserved
    )
    held = replace(
        reservation(asked, at=4.0, slots=[SlotReservation(N1, "", slots)] * bool(slots)),
        entries=entries,
    )
    left = finished_members.run(made, held if entries else None).of(made).members
    return [one.key.name for one in left if one.phase is Phase.SUCCEEDED]


N1 = NodeName("n1")
FIRST, SECOND = of_job("1"), of_job("2")

# Members, and the names of those that succeeded and count.
RUNS: dict[str, tuple[tuple[Member, ...], list[str]]] = {
    "a finishing gang": ((pod("a", 0, 5), pod("b", 1, node=N1)), ["a"]),
    "one that others overlap with": (
        (pod("a", 0, 5), pod("b", 4, 9), pod("c", 8, node=N1)),
        ["a", "b"],
    ),
    "a bare pod that comes later": ((pod("a", 0, 5), pod("b", 6)), []),
    "a bare pod that waited for room": ((pod("a", 0, 5), pod("b", 1)), ["a"]),
    "a run whose last has ended": ((pod("a", 0, 5), pod("b", 6, 9), pod("c", 7, 9)), ["b", "c"]),
    "a run that has failed": (
        (pod("a", 0, 5), pod("b", 6, phase=Phase.FAILED, node=N1)),
        [],
    ),
    "a lost member's successor": ((pod("a", 0, 5, owner=FIRST), pod("b", 6, owner=FIRST)), ["a"]),
    "the next Job": ((pod("a", 0, 5, owner=FIRST), pod("b", 6, owner=SECOND)), []),
    "the next Job, running": (
        (pod("a", 0, 5, owner=FIRST), pod("b", 6, owner=SECOND, node=N1)),
        [],
    ),
    "two Jobs of one run": (
        (
            pod("a", 0, 1, owner=FIRST),
            pod("b", 0, 5, owner=FIRST),
            pod("c", 3, owner=SECOND, phase=Phase.FAILED),
            pod("d", 9, owner=SECOND),
        ),
        ["a", "b"],
    ),
    "a driver and its executors": (
        (pod("a", 0, 5), pod("b", 6, owner=Owner("Pod", "a", uid=Uid("ml/a-uid")))),
        ["a"],
    ),
    "nobody knows when it ended, others run": (
        (unknown("a"), pod("b", 6, node=N1)),
        ["a"],
    ),
    "nobody knows when it ended, others wait": ((unknown("a"), pod("b", 6)), []),
}


@pytest.mark.parametrize("case", RUNS)
def test_members_that_succeeded_count_in_their_own_run(case: str) -> None:
    members, names = RUNS[case]
    assert counted(*members) == names
    assert counted(*reversed(members)) == [*reversed(names)]


def test_what_ended_before_the_pod_group_was_made_is_no_run_of_its() -> None:
    ended = pod("a", 0, 5), pod("b", 0, 6)
    assert counted(*ended, created=6.0) == ["a", "b"]
    assert counted(*ended, created=7.0) == []
    assert counted(pod("a", 7, 5), created=7.0) == ["a"], "the node's clock is late"
    assert counted(unknown("a"), created=1.0) == []


def test_a_driver_is_of_the_run_of_the_pod_group_that_was_made_for_it() -> None:
    """It is older than that, and nobody may know when it ended."""
    made = replace(
        gang("a").but(created=1.0).made, members=(unknown("driver"),), owner_pod="driver"
    )
    assert finished_members.run(made, None).of(made) == made


def test_a_pod_group_made_anew_finds_its_run_under_way() -> None:
    assert counted(pod("a", 0, 5), pod("b", 0, node=N1), created=9.0) == ["a"]


@pytest.mark.parametrize("ended", [None, 5.0])
def test_whom_a_reservation_names_is_of_the_run_that_it_was_made_for(ended: float | None) -> None:
    members = replace(unknown("a"), ended=ended), pod("b", 6)
    assert counted(*members) == []
    assert counted(*members, reserved=["a", "b"]) == ["a"]
    assert counted(*members, reserved=["b"]) == [], "it was made after the last run"


def test_a_bare_pod_that_a_reservation_names_and_that_is_gone_is_of_the_run() -> None:
    asked = gang("a").of(1, cpu=1)
    gone = pod("gone", 0, 5)
    held = replace(reservation(asked), entries=(PodReservation(gone.key, gone.uid, N1),))
    assert finished_members.run(asked.made, held).has(gone)


def test_who_came_for_a_slot_after_another_had_ended_is_of_the_same_run() -> None:
    members = pod("a", 0, 5), pod("b", 6)
    assert counted(*members, reserved=["b"], slots=1) == ["a"]
