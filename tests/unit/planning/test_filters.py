"""What is planned, checked and called feasible under rules, held against naive filters."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tutti.model import ports
from tutti.model.cluster import Member, PodReservation, Reservation, Snapshot
from tutti.model.decisions import Assignment, Placement, Plan
from tutti.model.resources import NOTHING, Resources
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.verify import plan_checks, reservation_checks

from ...conformance.differential import feasible
from ...harness import builders, generators
from ...harness.builders import AMPLE_BUDGET
from . import filters

QUIETLY = (HealthCheck.too_slow, HealthCheck.filter_too_much)
RULED = generators.snapshots(with_rules=True)


def roomy(snapshot: Snapshot) -> Snapshot:
    """The same with plenty of room, host ports included: what is left to fail are rules."""
    plenty = builders.resources(cpu=1000, memory=1000, gpu=1000, pods=1000)
    nodes = tuple(replace(node, allocatable=plenty, used=NOTHING) for node in snapshot.nodes)
    gangs = tuple(
        replace(gang, members=tuple(map(_without_ports, gang.members))) for gang in snapshot.gangs
    )
    return replace(snapshot, nodes=nodes, gangs=gangs)


def _without_ports(member: Member) -> Member:
    amounts = member.shape.requests.amounts
    resources = Resources(tuple(amount for amount in amounts if not ports.is_port(amount[0])))
    return replace(member, shape=replace(member.shape, requests=resources))


@settings(max_examples=150, deadline=None, suppress_health_check=QUIETLY, database=None)
@given(RULED)
def test_one_member_may_go_where_the_filters_let_it(seen: Snapshot) -> None:
    seen = roomy(seen)
    for gang in seen.gangs:
        for member in gang.members:
            if member.is_waiting:
                assert feasible.nodes(seen, member) == filters.alone(seen, member)


@settings(max_examples=200, deadline=None, suppress_health_check=QUIETLY, database=None)
@given(RULED, st.data())
def test_the_checker_accepts_what_the_filters_accept(seen: Snapshot, chance: st.DataObject) -> None:
    seen = replace(roomy(seen), reservations=())
    placements = []
    for gang in seen.gangs:
        waiting = [m for m in gang.members if m.is_waiting and gang.accepts(m)]
        modelled = [m for m in waiting if not m.unsupported_fields]
        chosen = [m for m in modelled if bool(seen.nodes) and chance.draw(st.booleans())]
        names = [node.name for node in seen.nodes]
        where = [chance.draw(st.sampled_from(names)) for _ in chosen]
        assigned = tuple(
            Assignment(m.key, m.uid, m.version, on) for m, on in zip(chosen, where, strict=True)
        )
        if assigned and not gang.terminating:
            placements.append(Placement(gang.key, gang.uid, gang.generation, assigned))
    plan = Plan(tuple(placements))
    wrong = [violation for violation in plan_checks.violations(seen, plan) if "node" in violation]
    assert (wrong == []) == filters.all_pass(seen, plan)


@pytest.mark.parametrize(("name", "examples"), [("bestfit", 120), ("ilp", 40)])
def test_every_plan_passes_the_filters(name: str, examples: int) -> None:
    @settings(max_examples=examples, deadline=None, suppress_health_check=QUIETLY, database=None)
    @given(RULED)
    def tried(snapshot: Snapshot) -> None:
        made = plan(snapshot, STRATEGIES[name](), BestFit(), AMPLE_BUDGET)
        assert plan_checks.violations(snapshot, made) == ()
        assert filters.all_pass(snapshot, made)

    tried()


@pytest.mark.parametrize(("name", "examples"), [("bestfit", 120), ("ilp", 25)])
def test_no_later_round_breaks_what_an_earlier_one_decided(name: str, examples: int) -> None:
    @settings(max_examples=examples, deadline=None, suppress_health_check=QUIETLY, database=None)
    @given(generators.growing())
    def tried(snapshot: Snapshot) -> None:
        made = plan(snapshot, STRATEGIES[name](), BestFit(), AMPLE_BUDGET)
        assert plan_checks.violations(snapshot, made) == ()
        assert filters.all_pass(snapshot, made)

    tried()


@settings(max_examples=100, deadline=None, suppress_health_check=QUIETLY, database=None)
@given(generators.growing())
def test_no_plan_breaks_what_an_earlier_one_promised(seen: Snapshot) -> None:
    first = replace(seen, gangs=seen.gangs[:1])
    for part in (first, seen):
        seen = replace(part, reservations=seen.reservations)
        made = plan(seen, BestFit(), BestFit(), AMPLE_BUDGET)
        held = (promising(placement) for placement in made.placements)
        seen = replace(part, reservations=(*seen.reservations, *held))
        assert reservation_checks.lost(seen) == {}


def promising(placement: Placement) -> Reservation:
    entries = tuple(
        PodReservation(assignment.pod, assignment.uid, assignment.node)
        for assignment in placement.assignments
    )
    return Reservation(placement.gang, placement.uid, 1, "tutti", "term", 0.0, entries)


@settings(max_examples=60, deadline=None, suppress_health_check=QUIETLY, database=None)
@given(RULED, st.data())
def test_the_order_of_the_input_does_not_matter(seen: Snapshot, chance: st.DataObject) -> None:
    other = chance.draw(generators.shuffled(seen))
    residents = tuple(chance.draw(st.permutations(other.placed_pods)))
    mixed = replace(other, placed_pods=residents)
    assert plan(mixed, BestFit(), BestFit(), AMPLE_BUDGET) == plan(
        seen, BestFit(), BestFit(), AMPLE_BUDGET
    )
