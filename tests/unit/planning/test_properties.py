"""What holds for every plan of every Snapshot, whichever strategy made it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tutti.gang import demand
from tutti.model import ports
from tutti.model.cluster import Gang, Member, SlotReservation, Snapshot
from tutti.model.decisions import Plan
from tutti.model.keys import POD
from tutti.model.resources import Resources
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Strategy
from tutti.verify import plan_checks

from ...harness import builders, generators
from ...harness.builders import AMPLE_BUDGET

BEST_FIT = BestFit()

# The exact strategy starts an engine's process per plan, so it is tried less often.
EXAMPLES = {"bestfit": 60, "ilp": 25}
EFFORTS = [pytest.param(name, EXAMPLES.get(name, 20), id=name) for name in sorted(STRATEGIES)]
QUIETLY = (HealthCheck.too_slow, HealthCheck.filter_too_much)


def planned(snapshot: Snapshot, strategy: Strategy = BEST_FIT) -> Plan:
    return plan(snapshot, strategy, BEST_FIT, AMPLE_BUDGET)


def each_snapshot(name: str, examples: int, holds) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Try a property on so many Snapshots."""
    strategy = STRATEGIES[name]()

    @settings(max_examples=examples, deadline=None, suppress_health_check=QUIETLY, database=None)
    @given(generators.snapshots(), st.data())
    def tried(snapshot: Snapshot, chance: st.DataObject) -> None:
        holds(snapshot, strategy, chance)

    tried()


@pytest.mark.parametrize(("name", "examples"), EFFORTS)
def test_no_plan_breaks_a_promise(name: str, examples: int) -> None:
    def holds(snapshot: Snapshot, strategy: Strategy, _: st.DataObject) -> None:
        assert plan_checks.violations(snapshot, planned(snapshot, strategy)) == ()

    each_snapshot(name, examples, holds)


@pytest.mark.parametrize(("name", "examples"), EFFORTS)
def test_capacity_is_never_exceeded_and_gangs_are_whole(name: str, examples: int) -> None:
    def holds(snapshot: Snapshot, strategy: Strategy, _: st.DataObject) -> None:
        plan = planned(snapshot, strategy)
        after = builders.applied(snapshot, plan)
        awaited = {placement.gang: placement.slots for placement in plan.placements}
        before = {node.name: node for node in snapshot.nodes}
        for node in after.nodes:
            if node.used != before[node.name].used:
                added = node.used - before[node.name].used
                used = before[node.name].used
                assert all(n <= node.offers(name) - used[name] for name, n in added.amounts)
        for old, new in zip(snapshot.gangs, after.gangs, strict=True):
            if old != new:
                assert is_started(old) or is_whole(new, awaited[new.key])

    each_snapshot(name, examples, holds)


@pytest.mark.parametrize(("name", "examples"), EFFORTS)
def test_no_member_gets_a_node_where_somebody_has_its_host_port(name: str, examples: int) -> None:
    def holds(snapshot: Snapshot, strategy: Strategy, _: st.DataObject) -> None:
        plan = planned(snapshot, strategy)
        after = builders.applied(snapshot, plan)
        chosen = {
            assignment.uid for placement in plan.placements for assignment in placement.assignments
        }
        members = [m for gang in after.gangs for m in gang.members if m.node and not m.is_over]
        for one in (member for member in members if member.uid in chosen):
            beside = [m for m in members if m.node == one.node and m.uid != one.uid]
            assert not any(clash(one, other) for other in beside)

    each_snapshot(name, examples, holds)


def clash(member: Member, other: Member) -> bool:
    """Whether both want a port at one IP, or one of them at all IPs."""
    both = product(*(ports.named(dict(m.shape.requests.amounts)) for m in (member, other)))
    return any(
        a.number == b.number
        and a.protocol == b.protocol
        and (a.ip == b.ip or ports.ANY_IP in (a.ip, b.ip))
        for a, b in both
    )


@pytest.mark.parametrize(("name", "examples"), EFFORTS)
def test_the_order_of_the_input_does_not_matter(name: str, examples: int) -> None:
    def holds(snapshot: Snapshot, strategy: Strategy, chance: st.DataObject) -> None:
        other = chance.draw(generators.shuffled(snapshot))
        assert planned(other, strategy) == planned(snapshot, strategy)

    each_snapshot(name, examples, holds)


@pytest.mark.parametrize(("name", "examples"), EFFORTS)
def test_an_applied_plan_leaves_nothing_to_plan(name: str, examples: int) -> None:
    def holds(snapshot: Snapshot, strategy: Strategy, _: st.DataObject) -> None:
        after = builders.applied(snapshot, planned(snapshot, strategy))
        assert planned(after, strategy).placements == ()

    each_snapshot(name, examples, holds)


@pytest.mark.parametrize(("name", "examples"), EFFORTS)
def test_every_gang_that_waits_is_told_why_and_no_other(name: str, examples: int) -> None:
    def holds(snapshot: Snapshot, strategy: Strategy, _: st.DataObject) -> None:
        plan = planned(snapshot, strategy)
        told = Counter([*(p.gang for p in plan.placements), *(r.gang for r in plan.rejections)])
        assert set(told.values()) <= {1}
        reserved = {reservation.gang for reservation in snapshot.reservations}
        closed = {
            reservation.gang for reservation in snapshot.reservations if not reservation.slots
        }
        for gang in snapshot.gangs:
            waits = any(
                member.is_waiting and has_role(gang, member.role) for member in gang.members
            )
            if waits and gang.key not in reserved:
                assert gang.key in told
            if gang.key in closed or (is_whole(gang) and not waits and gang.key not in reserved):
                assert gang.key not in told

    each_snapshot(name, examples, holds)


def has_role(gang: Gang, role: str) -> bool:
    return not gang.roles or role in {known.name for known in gang.roles}


def bound_roles(gang: Gang) -> list[str]:
    return [m.role for m in gang.members if m.counts_as_bound and has_role(gang, m.role)]


def is_started(gang: Gang) -> bool:
    return bool(bound_roles(gang))


def is_whole(gang: Gang, awaited: Sequence[SlotReservation] = ()) -> bool:
    roles = bound_roles(gang) + [slot.role for slot in awaited for _ in range(slot.count)]
    if gang.key.kind == POD:
        return bool(roles)
    return len(roles) >= gang.min_member and all(
        roles.count(role.name) >= role.min_member for role in gang.roles
    )


def test_settled_gangs_are_passed_over_without_a_difference() -> None:
    def holds(snapshot: Snapshot, strategy: Strategy, _: st.DataObject) -> None:
        settled = frozenset(gang.uid for gang in snapshot.gangs if demand.is_settled(gang))
        hinted = replace(snapshot, settled=settled)
        assert planned(hinted, strategy) == planned(snapshot, strategy)

    each_snapshot("bestfit", 60, holds)


def in_smaller_units(seen: Snapshot, name: str, factor: int) -> Snapshot:
    """The same cluster with this resource counted in units that are so much smaller."""

    def more(amounts: Resources) -> Resources:
        return Resources(tuple((n, k * factor if n == name else k) for n, k in amounts.amounts))

    def asking(member: Member) -> Member:
        return replace(member, shape=replace(member.shape, requests=more(member.shape.requests)))

    def resized(gang: Gang) -> Gang:
        return replace(gang, members=tuple(map(asking, gang.members)))

    return replace(
        seen,
        nodes=tuple(
            replace(node, allocatable=more(node.allocatable), used=more(node.used))
            for node in seen.nodes
        ),
        gangs=tuple(map(resized, seen.gangs)),
        strays=tuple(map(asking, seen.strays)),
    )


@pytest.mark.parametrize(("name", "examples"), EFFORTS)
def test_a_plan_does_not_depend_on_the_unit_of_a_resource(name: str, examples: int) -> None:
    def holds(snapshot: Snapshot, strategy: Strategy, chance: st.DataObject) -> None:
        resource = chance.draw(st.sampled_from(["cpu", "memory", builders.GPU]))
        factor = 2 ** chance.draw(st.integers(1, 60))
        plan = planned(snapshot, strategy)
        other = planned(in_smaller_units(snapshot, resource, factor), strategy)
        assert (other.placements, other.levels) == (plan.placements, plan.levels)
        assert [(rejection.gang, rejection.reason) for rejection in other.rejections] == [
            (rejection.gang, rejection.reason) for rejection in plan.rejections
        ]
        assert other.proved == plan.proved

    each_snapshot(name, examples, holds)
