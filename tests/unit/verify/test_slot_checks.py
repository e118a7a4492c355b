"""What the checks say of room for absent members, and of rules between pods about them."""

from dataclasses import replace

import pytest

from tutti.model.cluster import Reservation, SlotReservation, Snapshot
from tutti.model.decisions import Placement, Plan
from tutti.model.inter_pod import InterPodRules, PodSelector
from tutti.model.keys import NodeName, Uid
from tutti.planning.plan import plan
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget
from tutti.verify import plan_checks

from ...harness import builders
from ...harness.builders import (
    GangBuilder,
    NodeBuilder,
    Part,
    gang,
    node,
    reservation,
    single,
    snapshot_of,
)
from .test_inter_pod import placing

WORKERS = builders.peers(group="a", role="worker")
DB = builders.peers(app="db")
FAR_FROM_WORKERS = gang("b").of(1, cpu=1).apart("hostname", WORKERS)


def app(*, apart: PodSelector | None = None) -> GangBuilder:
    """A driver and two workers that do not exist yet, which may keep away from others."""
    made = gang("a").role("driver", 1, cpu=1).role("worker", 2, 0).declaring(cpu=1).needing(3)
    if apart is None:
        return made
    driver, worker = made.roles
    template = worker.template
    assert template is not None
    rules = InterPodRules(anti_affinity=(builders.term("hostname", apart),))
    template = replace(template, shape=replace(template.shape, rules=rules))
    return replace(made, roles=(driver, replace(worker, template=template)))


def nodes(cpu: int = 9) -> tuple[NodeBuilder, NodeBuilder]:
    """Two nodes."""
    return (
        node("n1", cpu=cpu).labelled(hostname="n1"),
        node("n2", cpu=cpu).labelled(hostname="n2"),
    )


def workers(**where: int) -> tuple[SlotReservation, ...]:
    """So many slots of workers by node."""
    return tuple(SlotReservation(NodeName(name), "worker", n) for name, n in where.items())


def holding(placement: Placement, **where: int) -> Placement:
    """The placement with these slots."""
    return replace(placement, slots=workers(**where))


def beside_workers() -> tuple[Snapshot, Placement, Uid]:
    """Whoever keeps away from workers, where room for one is held."""
    gang = app().bound_on("n2")
    held = reservation(gang, slots=workers(n1=1))
    return (
        snapshot_of(*nodes(), gang, held, FAR_FROM_WORKERS),
        placing(FAR_FROM_WORKERS, "n1"),
        held.uid,
    )


def test_the_room_of_slots_is_given_back_when_their_placement_falls() -> None:
    other = gang("b").of(2, cpu=1)
    wrong = holding(placing(app(), "nowhere"), n2=2)
    sound = placing(other, "n2", "n2")
    snapshot = snapshot_of(*nodes(cpu=2), app(), other)
    assert plan_checks.upheld(snapshot, (wrong, sound)) == (sound,)


def test_two_placements_do_not_get_the_same_slots() -> None:
    other = gang("b").role("driver", 1, cpu=1).role("worker", 2, 0).declaring(cpu=1).needing(3)
    first, second = (holding(placing(one, "n1"), n2=2) for one in (app(), other))
    snapshot = snapshot_of(*nodes(cpu=2), app(), other)
    assert plan_checks.upheld(snapshot, (first, second)) == (first,)


def test_who_keeps_away_from_absent_members_does_not_join_their_slots() -> None:
    seen, placement, _ = beside_workers()
    (fault,) = plan_checks.violations(seen, Plan((placement,)))
    assert "anti-affinity" in fault


def test_slots_of_a_reservation_that_is_given_back_are_nobodys_company() -> None:
    seen, placement, uid = beside_workers()
    assert plan_checks.upheld(seen, (placement,), {uid}) == ()
    assert plan_checks.upheld(seen, (placement,), ()) == (placement,)


def test_slots_for_a_pod_group_of_the_same_name_that_is_gone_are_nobodys_company() -> None:
    seen, placement, _ = beside_workers()
    old = tuple(replace(reservation, uid=Uid("gone")) for reservation in seen.reservations)
    assert plan_checks.violations(replace(seen, reservations=old), Plan((placement,))) == ()


def test_slots_that_a_placement_would_give_up_stand_again_when_it_falls() -> None:
    one, two = nodes()
    moving = app(apart=DB).bound_on("n2")
    parts: tuple[Part, ...] = (one, two.hosting("db", app="db"), moving, FAR_FROM_WORKERS)
    snapshot = snapshot_of(*parts, reservation(moving, slots=workers(n1=1)))
    moved, joining = holding(placing(moving), n2=1), placing(FAR_FROM_WORKERS, "n1")
    assert plan_checks.upheld(snapshot, (moved, joining)) == ()
    free = snapshot_of(*nodes(), moving, FAR_FROM_WORKERS, reservation(moving, slots=workers(n1=1)))
    assert plan_checks.upheld(free, (moved, joining)) == (moved, joining)


def test_a_placement_of_a_gang_that_is_gone_is_told_so_and_nothing_else() -> None:
    gone = gang("gone").of(1, cpu=1)
    seen, _, _ = beside_workers()
    faults = plan_checks.violations(seen, Plan((placing(gone, "n1"),)))
    assert faults == ("gang ml/gone: there is no such gang",)


def test_room_of_a_namesake_that_is_gone_is_not_used_again() -> None:
    gang = app()
    old = replace(reservation(gang, slots=workers(n1=2)), uid=Uid("gone"))
    snapshot = snapshot_of(*nodes(cpu=3), gang, old)
    faults = plan_checks.violations(snapshot, Plan((holding(placing(gang, "n1"), n1=2),)))
    assert any("too little cpu" in fault for fault in faults)


def test_new_slots_are_held_to_the_rules_of_their_template() -> None:
    loners = app(apart=WORKERS)
    snapshot = snapshot_of(*nodes(), loners)
    together = plan_checks.violations(snapshot, Plan((holding(placing(loners, "n1"), n1=2),)))
    assert any("anti-affinity" in fault for fault in together)
    assert (
        plan_checks.violations(snapshot, Plan((holding(placing(loners, "n1"), n1=1, n2=1),))) == ()
    )


def test_slots_of_a_pod_group_that_is_gone_hold_no_room() -> None:
    other = gang("b").of(1, cpu=1)
    held: Reservation = reservation(app(), slots=workers(n1=2))
    snapshot = snapshot_of(*nodes(cpu=1), held, other)
    assert plan_checks.violations(snapshot, Plan((placing(other, "n1"),))) == ()


@pytest.mark.parametrize(
    "why", [{"size_unknown_because": "no ConfigMap"}, {"volume_problems": ("claim data",)}]
)
def test_who_waits_for_something_else_is_not_placed(why: dict[str, object]) -> None:
    alone = single("s", cpu=1).each(**why)
    (fault,) = plan_checks.violations(snapshot_of(*nodes(), alone), Plan((placing(alone, "n1"),)))
    assert fault.endswith("it cannot be placed now")


@pytest.mark.parametrize("priority", [-1, 1])
def test_one_may_be_planned_to_have_what_another_gives_back(priority: int) -> None:
    """In the same plan, whichever of them comes first in it."""
    picky = app().of(1, role="worker", cpu=1).bound_on("n1")
    shape = replace(picky.members[1].shape, node_selector=(("pool", "x"),))
    picky = picky.only("a-1", shape=shape)
    other = gang("b").of(1, cpu=1).priority(priority)
    two = node("n1", cpu=2), node("n2", cpu=1)
    snapshot = snapshot_of(*two, picky, other, reservation(picky, slots=workers(n1=1, n2=1)))
    made = plan(snapshot, BestFit(), BestFit(), Budget())
    assert {placement.gang.name for placement in made.placements} == {"a", "b"}
    assert plan_checks.violations(snapshot, made) == ()


def test_who_is_gone_gives_nothing_back_that_stands_for_its_namesake() -> None:
    picky = app().of(1, role="worker", cpu=1).bound_on("n1")
    shape = replace(picky.members[1].shape, node_selector=(("pool", "x"),))
    picky = picky.only("a-1", shape=shape)
    two = node("n1", cpu=2), node("n2", cpu=1)
    snapshot = snapshot_of(
        *two, picky, gang("b").of(1, cpu=1), reservation(picky, slots=workers(n1=1, n2=1))
    )
    made = plan(snapshot, BestFit(), BestFit(), Budget())
    placements = [
        replace(placement, uid=Uid("gone")) if placement.gang.name == "a" else placement
        for placement in made.placements
    ]
    told = plan_checks.violations(snapshot, replace(made, placements=tuple(placements)))
    assert any("gang ml/a" in one for one in told)
    assert any("gang ml/a" not in one for one in told)


def test_one_that_came_takes_its_slot_where_others_have_overdrawn_the_node() -> None:
    """Of the two slots there is room for one, and the other is kept: its node may do again."""
    gang = app().of(1, role="worker", cpu=1).bound_on("n1")
    full = node("n1", cpu=3).using(cpu=1)
    snapshot = snapshot_of(full, gang, reservation(gang, slots=workers(n1=2)))
    found = plan(snapshot, BestFit(), BestFit(), Budget())
    (placement,) = found.placements
    assert [assignment.pod.name for assignment in placement.assignments] == ["a-1"]
    assert placement.slots == workers(n1=1)
    assert plan_checks.violations(snapshot, found) == ()
    assert plan_checks.upheld(snapshot, found.placements) == found.placements
