"""Planning and the checks judge standing Reservations alike, each with code of its own."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tutti.model.cluster import PlacedPod, PodReservation, Reservation, Snapshot
from tutti.model.decisions import Placement
from tutti.model.inter_pod import InterPodRules, PodSelector
from tutti.model.keys import NodeName
from tutti.planning.compile import standing_reservations
from tutti.planning.compile.end_state import RuleCheck
from tutti.planning.plan import plan
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget
from tutti.verify import reservation_checks

from ....harness import generators
from ....harness.builders import gang, reservation, snapshot_of
from ..neighbours import HOST, ZONE, apart, asking, beside, even, near, peers, resident, zones

QUIETLY = settings(
    max_examples=150,
    deadline=None,
    database=None,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much),
)
RULED = generators.snapshots(with_rules=True)


def judge(snapshot: Snapshot) -> list[str]:
    """The names of lost pods and slots, once both have said the same."""
    checked, planned = reservation_checks.lost(snapshot), standing_reservations.lost_parts(snapshot)
    assert {uid: (frozenset(parts.entries), parts.slots) for uid, parts in checked.items()} == {
        uid: (parts.entries, parts.slots) for uid, parts in planned.items()
    }
    uids = {member.uid for member, _ in standing_reservations.standing_members(snapshot)}
    assert not uids & {entry.uid for parts in checked.values() for entry in parts.entries}
    names = [entry.pod.name for parts in planned.values() for entry in parts.entries]
    slots = [f"{role} {node}" for parts in planned.values() for node, role in parts.slots]
    return sorted((*names, *slots))


def promised(placement: Placement) -> Reservation:
    """A Reservation as the plan's placement would be written down."""
    entries = tuple(
        PodReservation(assignment.pod, assignment.uid, assignment.node)
        for assignment in placement.assignments
    )
    return Reservation(
        placement.gang, placement.uid, 1, "tutti", "term", 0.0, entries, placement.slots
    )


@QUIETLY
@given(st.one_of(generators.awaiting(), RULED, generators.growing(), generators.crowded()))
def test_planning_and_the_checks_judge_standing_reservations_alike(seen: Snapshot) -> None:
    judge(seen)


@QUIETLY
@given(generators.growing(), st.lists(st.integers(0, 4), min_size=1))
def test_they_do_so_when_promises_lose_what_they_depend_on(seen: Snapshot, gone: list[int]) -> None:
    made = plan(seen, BestFit(), BestFit(), Budget())
    held = tuple(promised(placement) for placement in made.placements)
    nodes = tuple(node for i, node in enumerate(seen.nodes) if i not in gone)
    judge(replace(seen, reservations=held))
    judge(replace(seen, reservations=held, nodes=nodes))


def leaving(pod: PlacedPod) -> PlacedPod:
    return replace(pod, terminating=True)


A, B = peers(app="a"), peers(app="b")
NODES = zones()  # two nodes in each of three zones
HELD = gang("h").of(2, cpu=1)


@pytest.mark.parametrize(
    ("rules", "on", "others", "lost"),
    [
        (near(A), ("z0-0", "z0-1"), (), []),
        (near(A), ("z0-0", "z1-0"), (), ["h-0", "h-1"]),
        (near(A, on=("rack",)), ("z0-0", "z0-1"), (), ["h-0", "h-1"]),
        (near(B), ("z0-0", "z1-0"), (resident("r", "z1-1", app="b"),), ["h-0"]),
        (near(B), ("z0-0", "z1-0"), (resident("r", "gone", app="b"),), ["h-0", "h-1"]),
        (even(A), ("z0-0", "z1-0"), (), []),
        (even(A), ("z0-0", "z0-1"), (), ["h-0", "h-1"]),
        (even(A), ("z0-0", "z1-0"), (leaving(resident("r", "z0-1", app="a")),), []),
        (even(A), ("z0-0", "z1-0"), (resident("r", "z0-1", app="a"),), ["h-0"]),
        (even(A, min_domains=5), ("z0-0", "z0-1"), (), ["h-0", "h-1"]),
        (even(A, on="rack"), ("z0-0", "z1-0"), (), ["h-0", "h-1"]),
        (even(PodSelector((), ("ml",))), ("z0-0", "z0-1"), (), []),
        (near(A, A, on=(ZONE, HOST)), ("z0-0", "z0-1"), (), ["h-0", "h-1"]),
        (near(A), ("z0-0", "gone"), (), ["h-1"]),
        (apart(B), ("z0-0", "z1-0"), (resident("r", "z1-0", app="b"),), ["h-1"]),
        (apart(B, on="rack"), ("z0-0", "z1-0"), (resident("r", "z1-0", app="b"),), []),
        (apart(A), ("z0-0", "z0-0"), (), ["h-0", "h-1"]),
    ],
)
def test_a_promise_is_lost_that_a_rule_forbids_in_the_end(
    rules: InterPodRules, on: tuple[str, str], others: tuple[PlacedPod, ...], lost: list[str]
) -> None:
    gang = asking(HELD, rules, app="a")
    standing = reservation(gang, ("h-0", on[0]), ("h-1", on[1]))
    assert judge(beside(snapshot_of(*NODES, gang, standing), *others)) == lost


def test_anti_affinity_of_a_pod_without_a_domain_forbids_nothing() -> None:
    gang = asking(HELD, InterPodRules(), app="a")
    guard = replace(resident("r", "z0-0", app="c"), anti_affinity=apart(A, on="rack").anti_affinity)
    standing = reservation(gang, ("h-0", "z0-0"), ("h-1", "z1-0"))
    assert judge(beside(snapshot_of(*NODES, gang, standing), guard)) == []


def test_anti_affinity_of_a_pod_that_has_a_node_forbids_its_domain() -> None:
    gang = asking(HELD, InterPodRules(), app="a")
    guard = replace(resident("r", "z0-0", app="c"), anti_affinity=apart(A).anti_affinity)
    standing = reservation(gang, ("h-0", "z0-0"), ("h-1", "z1-0"))
    assert judge(beside(snapshot_of(*NODES, gang, standing), guard)) == ["h-0"]


def test_no_member_with_a_spread_may_be_on_a_node_in_no_domain() -> None:
    spread = asking(HELD, even(A, on="rack"), app="a")
    member = spread.made.members[0]
    rules = RuleCheck(snapshot_of(*NODES, spread), [member])
    assert not rules.allows(rules.state([]), member, NodeName("z0-0"))
