"""What holds of every plan for gangs that await members, whoever of these has come."""

from collections import Counter
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tutti.filters.node_rules import fits_node
from tutti.gang import demand, finding_text, slots
from tutti.model.cluster import Snapshot
from tutti.model.decisions import Plan, Reason
from tutti.planning.compile import slot_assignment
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.verify import plan_checks, reservation_checks

from ...harness import builders, generators
from ...harness.builders import AMPLE_BUDGET

QUIETLY = settings(
    max_examples=40, deadline=None, database=None, suppress_health_check=(HealthCheck.too_slow,)
)


@pytest.mark.parametrize("name", ["bestfit", "firstfit"])
def test_no_plan_breaks_a_promise_and_none_is_left_to_make(name: str) -> None:
    @QUIETLY
    @given(generators.awaiting())
    def tried(snapshot: Snapshot) -> None:
        strategy = STRATEGIES[name]()
        made = plan(snapshot, strategy, BestFit(), AMPLE_BUDGET)
        assert plan_checks.violations(snapshot, made) == ()
        after = builders.applied(snapshot, made)
        assert plan(after, strategy, BestFit(), AMPLE_BUDGET).placements == ()

    tried()


@QUIETLY
@given(st.sampled_from([generators.declaring, generators.awaiting]).flatmap(lambda some: some()))
def test_absent_members_are_planned_as_if_each_were_an_object_of_its_own(seen: Snapshot) -> None:
    made = plan(seen, BestFit(), BestFit(), AMPLE_BUDGET)
    assert plan_checks.violations(seen, made) == ()
    with (
        mock.patch.object(slots, "alike", slots.placeholders),
        mock.patch.object(slots, "nth", lambda uid, _: uid),
    ):
        assert plan(seen, BestFit(), BestFit(), AMPLE_BUDGET) == made


@pytest.mark.parametrize("there", [1, 2])
def test_however_many_members_a_gang_declares_they_are_few_objects(there: int) -> None:
    one = builders.gang("a").role("driver", 1, cpu=1).role("worker", 4999, there, cpu=1)
    census = demand.count_members(one.declaring(cpu=1).needing(5000).made)
    assert len(census.absent) == 4999 - there
    assert len({id(member) for member in census.absent}) == 1
    assert len({id(member) for member in demand.numbered(census, ()).absent}) == 1


@QUIETLY
@given(generators.awaiting())
def test_no_more_slots_are_held_than_members_are_lacking(seen: Snapshot) -> None:
    for placement in plan(seen, BestFit(), BestFit(), AMPLE_BUDGET).placements:
        gang = next(one for one in seen.gangs if one.key == placement.gang)
        taken = {assignment.uid for assignment in placement.assignments}
        there = [m for m in gang.members if m.counts_as_bound or m.uid in taken]
        held = sum(slot.count for slot in placement.slots)
        assert held <= max(0, demand.min_members(gang) - len(there))


@QUIETLY
@given(generators.awaiting())
def test_nobody_waits_for_a_slot_that_is_left(seen: Snapshot) -> None:
    nodes, lost = {node.name: node for node in seen.nodes}, reservation_checks.lost(seen)
    for uid, one in slot_assignment.assign_slots(seen).open.items():
        (gang,) = (gang for gang in seen.gangs if gang.uid == uid)
        free = slots.places(one.before.slots) - lost.get(uid, reservation_checks.Unkeepable()).slots
        free -= Counter((entry.node, "worker") for entry in one.new_entries)
        named = {entry.uid for entry in one.after.entries}
        for member in gang.members:
            if member.uid not in named and slots.may_take(gang, member):
                assert all(fits_node(member.shape, nodes[node]) is not None for node, _ in free)


def _planned(cpu: int, *gangs: builders.GangBuilder) -> Plan:
    snapshot = builders.snapshot_of(builders.node("n1", cpu=cpu), *gangs)
    made = plan(snapshot, BestFit(), BestFit(), AMPLE_BUDGET)
    assert plan_checks.violations(snapshot, made) == ()
    return made


def test_a_gang_that_would_start_with_absent_members_alone_waits_and_takes_no_room() -> None:
    """Nobody would be bound; pods of roles that it does not need do not start it."""
    absent = builders.gang("a").role("x", 0, 2, cpu=1).role("y", 2, 0).declaring(cpu=1).needing(2)
    other = builders.gang("b").of(2, cpu=1).but(created=9.0)
    made = _planned(2, absent, other)
    assert [placement.gang.name for placement in made.placements] == ["b"]
    (rejection,) = made.rejections
    assert rejection.reason is Reason.WAITING_FOR_MEMBERS
    assert finding_text.sentence(rejection) == (
        "it needs members of y alone, and none of them exists"
    )
    (placement,) = _planned(3, absent.needing(3)).placements
    assert (len(placement.assignments), [slot.count for slot in placement.slots]) == (1, [2])
