"""The checker catches plans by which gangs use more together than a limit."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from tutti.model.cluster import Phase, SlotReservation
from tutti.model.decisions import GangCap, Placement, Plan
from tutti.model.keys import NodeName
from tutti.verify import cap_checks, plan_checks

from ...harness.builders import GangBuilder, Part, gang, node, reservation, snapshot_of
from .test_plan_checks import placing

ROOMY = node("n1", cpu=64)
A, B = gang("a").of(2, cpu=2), gang("b").of(3, cpu=1)


def cap(limits: Mapping[str, int], *gangs: GangBuilder, name: str = "all") -> GangCap:
    """A cap on these gangs."""
    return GangCap(name, frozenset(gang.key for gang in gangs), limits)


def broken(caps: Sequence[GangCap], *parts: Part | Placement) -> tuple[str, ...]:
    """What a plan of these placements breaks."""
    placements = tuple(part for part in parts if isinstance(part, Placement))
    pieces = [part for part in parts if not isinstance(part, Placement)]
    return plan_checks.violations(snapshot_of(ROOMY, *pieces), Plan(placements), caps)


def starting(of: GangBuilder) -> Placement:
    """A placement of all members on the one node."""
    return placing(of, *((member.key.name, "n1") for member in of.members))


def test_gangs_that_start_together_are_counted_together() -> None:
    both = (A, B, starting(A), starting(B))
    assert broken([cap({"cpu": 7000}, A, B)], *both) == ()
    assert broken([cap({"cpu": 6999}, A, B)], *both) == ("cap all: 7 of 6999m cpu would be in use",)
    assert broken([cap({"cpu": 4000}, A), cap({"cpu": 3000}, B)], *both) == ()


@pytest.mark.parametrize(("most", "is_kept"), [(5, True), (4, False), (0, False)])
def test_members_are_counted_as_pods(most: int, is_kept: bool) -> None:  # noqa: FBT001
    found = broken([cap({"pods": most}, A, B)], A, B, starting(A), starting(B))
    assert (not found) is is_kept


def test_a_resource_without_a_limit_is_not_counted() -> None:
    assert broken([cap({"memory": 0}, A)], A, starting(A)) == ()


def test_nested_caps_are_judged_each_for_itself() -> None:
    inner, outer = cap({"cpu": 3000}, A, name="inner"), cap({"cpu": 9000}, A, B, name="outer")
    assert broken([inner, outer], A, B, starting(A), starting(B)) == (
        "cap inner: 4 of 3 cpu would be in use",
    )


def test_what_runs_already_counts_and_is_no_fault_of_the_plan() -> None:
    running = gang("r").of(3, cpu=2).bound_on("n1", "n1", "n1")
    full = cap({"cpu": 5000}, running, A)
    assert broken([full], running, A, B, starting(B)) == ()
    assert broken([full], running, A, starting(A)) == ("cap all: 10 of 5 cpu would be in use",)
    over = running.only("r-0", phase=Phase.SUCCEEDED)
    assert broken([cap({"cpu": 8000}, running, A)], over, A, starting(A)) == ()


def test_further_members_and_repairs_are_counted() -> None:
    running = gang("r").of(3, cpu=2).needing(1).bound_on("n1")
    more = placing(running, ("r-1", "n1"))
    assert broken([cap({"cpu": 4000}, running)], running, more) == ()
    assert len(broken([cap({"cpu": 3000}, running)], running, more)) == 1


def test_what_reservations_hold_is_in_use() -> None:
    held = reservation(B, ("b-0", "n1"), ("b-1", "n1"), ("b-gone", "n1"))
    assert broken([cap({"cpu": 6000}, A, B)], A, B, held, starting(A)) == ()
    assert len(broken([cap({"cpu": 5999}, A, B)], A, B, held, starting(A))) == 1


def test_a_reserved_member_that_is_bound_is_counted_once() -> None:
    bound = gang("r").of(2, cpu=2).bound_on("n1")
    held = reservation(bound, ("r-0", "n1"), ("r-1", "n1"))
    assert broken([cap({"cpu": 8000}, A, bound)], A, bound, held, starting(A)) == ()


def test_slots_that_a_member_takes_are_counted_once() -> None:
    made = gang("s").role("w", 2, 2, cpu=1).declaring(cpu=1).bound_on("n1").needing(3)
    held = reservation(made, slots=[SlotReservation(NodeName("n1"), "w", 2)])
    placement = placing(made, ("s-1", "n1"))
    left = replace(placement, slots=(SlotReservation(NodeName("n1"), "w", 1),))
    limit = [cap({"cpu": 3000}, made)]
    assert broken(limit, made, held, left) == ()
    kept = replace(placement, slots=held.slots)
    assert "cap all: 4 of 3 cpu would be in use" in broken(limit, made, held, kept)


def test_an_unknown_member_uses_nothing_of_a_cap() -> None:
    stranger = replace(starting(A), assignments=starting(B).assignments)
    assert not any("cap" in sentence for sentence in broken([cap({"cpu": 0}, A)], A, B, stranger))


def test_what_is_within_a_cap_counts_only_its_own_gangs() -> None:
    seen, both = snapshot_of(ROOMY, A, B), [starting(A), starting(B)]
    assert cap_checks.within(seen, both, [cap({"cpu": 4000}, A)]) == both
    assert cap_checks.within(seen, both, [cap({"cpu": 3999}, A)]) == both[1:]
