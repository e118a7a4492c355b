"""A gang that is finishing: members that ended well and were cleared away."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tutti.model.cluster import Phase
from tutti.planning import demand, finishing, health

from ...builders import GangBuilder, gang


def running(n: int) -> GangBuilder:
    return gang("a").of(n, cpu=1).bound_on(*("n1" for _ in range(n))).needing(4)


def with_roles() -> GangBuilder:
    made = gang("a").role("driver", 1, cpu=1).role("worker", 3, 1, cpu=1).bound_on("n1", "n1")
    return made.needing(4)


def test_finished_members_make_a_gang_whole_and_leave_nothing_to_repair() -> None:
    made = finishing.with_finished(running(2).made, ["", ""])
    assert made.finished == ("", "")
    assert health.is_whole(made)
    assert demand.census(made).missing == 0
    assert not health.is_whole(finishing.with_finished(running(2).made, [""]))


def test_finished_members_count_for_their_role_alone() -> None:
    made = with_roles().made
    assert health.is_whole(finishing.with_finished(made, ["worker", "worker"]))
    other = finishing.with_finished(made, ["driver", "driver", "cook"])
    assert other.finished == ("driver", "driver")
    assert not health.is_whole(other)
    assert demand.census(other).missing_by_role == {"worker": 2}


def test_nothing_is_remembered_once_no_member_counts() -> None:
    gone = running(2).each(phase=Phase.FAILED).made
    assert finishing.with_finished(gone, ["", ""]) == gone


def said(succeeded: object, phase: str = "Running") -> Mapping[str, object]:
    return {"phase": phase, "members": {"succeeded": succeeded}}


@pytest.mark.parametrize(
    ("status", "roles"),
    [
        (said(2), ("", "")),
        (said(1), ("",)),
        (said(7), ("", "")),
        (said(0), ()),
        (said("2"), ()),
        (said(2, "Finished"), ()),
        (said(2, "Degraded"), ()),
        ({"phase": "Running"}, ()),
        ({}, ()),
    ],
)
def test_a_status_recalls_no_more_than_the_gang_lacks(
    status: Mapping[str, object], roles: tuple[str, ...]
) -> None:
    assert finishing.recalled(running(2).made, status) == roles


def test_members_that_are_still_there_are_not_recalled() -> None:
    made = running(2).only("a-1", phase=Phase.SUCCEEDED).made
    assert finishing.recalled(made, said(1)) == ()
    assert finishing.recalled(made, said(2)) == ("",)


def test_roles_that_lack_members_are_recalled_first() -> None:
    made = replace(with_roles().made, min_member=5)
    assert finishing.recalled(made, said(3)) == ("worker", "worker", "")
