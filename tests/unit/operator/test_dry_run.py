"""How much of a plan is carried out: nothing by mode, and by the limit of a cycle."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.gang.findings import NothingStarts, WouldEvict, WouldStart
from tutti.model.decisions import (
    Assignment,
    Eviction,
    Mode,
    Placement,
    Plan,
    Reason,
    Rejection,
)
from tutti.model.keys import GangKey, NodeName, PodKey, Uid
from tutti.operator.dry_run import as_dry_run, capped

from ...harness.builders import gang


def placement(name: str, members: int) -> Placement:
    ones = (PodKey("ml", f"{name}-{i}") for i in range(members))
    made = tuple(Assignment(key, Uid(key.name), "1", NodeName("n1")) for key in ones)
    return Placement(GangKey("ml", name), Uid(name), 1, made)


def all_of(placements: Sequence[Placement]) -> Sequence[Placement]:
    """Nobody needs anybody."""
    return placements


@given(st.lists(st.integers(1, 9), max_size=8), st.integers(1, 12))
def test_what_goes_is_a_whole_number_of_gangs_in_order_and_as_many_as_may(
    sizes: list[int], most: int
) -> None:
    plan = [placement(f"g{i}", n) for i, n in enumerate(sizes)]
    gone = capped(plan, most, all_of)
    bound = sum(sizes[: len(gone)])
    assert list(gone) == plan[: len(gone)]
    assert len(gone) <= 1 or bound <= most
    if len(gone) < len(plan):
        assert gone
        assert bound + sizes[len(gone)] > most


def test_who_needs_others_goes_with_them() -> None:
    plan = [placement("a", 2), placement("b", 2), placement("c", 2)]

    def upheld(placements: Sequence[Placement]) -> Sequence[Placement]:
        return [
            placement
            for placement in placements
            if placement is not plan[0] or plan[1] in placements
        ]

    assert capped(plan, 2, upheld) == plan[:2]


def test_where_nobody_can_go_without_the_last_all_go() -> None:
    plan = [placement("a", 2), placement("b", 2)]
    assert capped(plan, 2, lambda _: ()) == plan


STARTS, LOST = placement("starts", 3), gang("lost").of(2, cpu=1).bound_on("n1", "n1").made
WAITS = Rejection(GangKey("ml", "waits"), Reason.NOT_ENOUGH_ROOM, ())
LATE = Rejection(GangKey("ml", "late"), Reason.TIMED_OUT, ())
PUT_OFF = Rejection(LOST.key, Reason.NOT_ENOUGH_ROOM, ())
EVICTION = Eviction(LOST.key, LOST.uid, 1, LOST.members)
DECIDED = Plan((STARTS,), (WAITS, LATE, PUT_OFF), (EVICTION,))


def test_in_active_mode_a_plan_is_carried_out_as_it_is() -> None:
    assert as_dry_run(DECIDED, Mode.ACTIVE) is DECIDED


@pytest.mark.parametrize(
    ("mode", "starts", "evicts"),
    [
        (Mode.SHADOW, Reason.WOULD_START, Reason.NOT_ENOUGH_ROOM),
        (Mode.PAUSED, Reason.PAUSED, Reason.PAUSED),
    ],
)
def test_in_another_mode_nothing_is_decided_and_every_gang_is_told(
    mode: Mode, starts: Reason, evicts: Reason
) -> None:
    plan = as_dry_run(DECIDED, mode)
    assert (plan.placements, plan.evictions, plan.claims) == ((), (), ())
    nothing = NothingStarts(mode)
    assert plan.rejections == (
        Rejection(STARTS.gang, starts, (nothing, WouldStart(3, 1))),
        Rejection(LOST.key, evicts, (nothing, WouldEvict(2))),
        Rejection(WAITS.gang, evicts, (nothing,)),
        Rejection(LATE.gang, Reason.TIMED_OUT, (nothing,)),
    )
