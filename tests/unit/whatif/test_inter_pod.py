"""What is advised to gangs whose pods have rules for one another."""

from tutti.model.keys import GangKey
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget
from tutti.whatif import Advice, Planner, advise, advise_all
from tutti.whatif.results import Bottleneck, Certainty, Diagnosis, Obstacle, Placeable

from ...harness.builders import NAMESPACE, Part, gang, node, peers, reservation, snapshot_of, term

PLANNER = Planner(STRATEGIES["ilp"](), BestFit(), Budget())
TWO = [node(f"n{i}", cpu=8).labelled(hostname=f"n{i}", zone=f"z{i}") for i in range(2)]
TRIED = Certainty.TRIED


def advice(*parts: Part) -> Advice:
    snapshot = snapshot_of(*parts)
    found = advise(snapshot, PLANNER.plan(snapshot), GangKey(NAMESPACE, "a"), PLANNER)
    assert found is not None
    return found


def diagnosis(*parts: Part) -> Diagnosis:
    found = advice(*parts).diagnosis
    assert found is not None
    return found


def test_members_apart_from_one_another_are_counted_one_to_a_node() -> None:
    found = diagnosis(*TWO, gang("a").of(3, cpu=1).apart("hostname"))
    assert found.alone == found.beside == Placeable(2, TRIED)
    assert found.min_member is not None
    assert found.min_member.min_member == 2
    assert (found.nodes.count, found.nodes.like) == (1, "n0")
    assert found.bottlenecks == (
        Bottleneck(
            Obstacle.RULES, "pod anti-affinity on kubernetes.io/hostname", Placeable(3, TRIED)
        ),
    )


def test_of_gangs_that_could_end_the_one_whose_anti_affinity_is_in_the_way_is_named() -> None:
    guards = [
        gang(f"g{i}").of(1, cpu=1).labelled(app="g").apart("zone", peers(app="x")).bound_on(f"n{i}")
        for i in range(2)
    ]
    other = gang("h").of(1, cpu=1).bound_on("n0")
    found = diagnosis(*TWO, *guards, other, gang("a").of(2, cpu=1).labelled(app="x"))
    assert [key.name for key in found.ended.gangs] in (["g0"], ["g1"])
    assert found.beside == Placeable(0, TRIED)
    assert found.nodes.count == 0


def test_a_new_node_of_another_zone_is_a_kind_of_its_own() -> None:
    guard = TWO[0].hosting("guard", term("zone", peers(app="x")))
    small = node("n1", cpu=0).labelled(hostname="n1", zone="z1")
    full = node("n2", cpu=8).labelled(hostname="n2", zone="z2").using(cpu=8)
    found = diagnosis(guard, small, full, gang("a").of(2, cpu=1).labelled(app="x").apart("zone"))
    assert found.nodes.count == 0
    nearer = gang("a").of(2, cpu=1).labelled(app="x").even("zone", peers(app="x"), skew=5)
    again = diagnosis(guard, small, full, nearer)
    assert (again.nodes.count, again.nodes.like) == (1, "n2")


def test_what_the_plan_places_is_in_the_way_too() -> None:
    first = gang("b").of(2, cpu=1).labelled(app="x").priority(1).apart("hostname", peers(app="x"))
    found = diagnosis(*TWO, first, gang("a").of(1, cpu=1).labelled(app="x"))
    assert found.beside == Placeable(0, TRIED)
    assert found.alone == Placeable(1, TRIED)
    assert [key.name for key in found.preferred.gangs] == ["b"]


def test_what_the_plan_places_as_the_first_keeps_others_from_being_elsewhere() -> None:
    """Affinity of the pod that goes alone would fail if another of its peers ran elsewhere."""
    app = peers(app="x")
    first = gang("b").of(1, cpu=8).labelled(app="x").priority(1).near("hostname", app)
    found = diagnosis(*TWO, first, gang("a").of(1, cpu=8).labelled(app="x"))
    assert found.beside == Placeable(0, TRIED)
    assert found.alone == Placeable(1, TRIED)
    assert [key.name for key in found.preferred.gangs] == ["b"]


def test_what_a_standing_reservation_holds_as_the_first_keeps_others_from_being_elsewhere() -> None:
    app = peers(app="x")
    first = gang("b").of(1, cpu=8).labelled(app="x").near("hostname", app)
    held = reservation(first, ("b-0", "n0"))
    found = diagnosis(*TWO, first, held, gang("a").of(1, cpu=8).labelled(app="x"))
    assert found.beside == found.alone == Placeable(0, TRIED)


def test_rules_of_other_gangs_that_keep_no_member_off_a_node_are_not_named() -> None:
    running = gang("c").of(1, cpu=1).labelled(app="x").bound_on("n0")
    beside = gang("b").of(1, cpu=1).near("hostname", peers(app="x"))
    found = diagnosis(*TWO, running, beside, gang("a").of(1, cpu=1, gpu=1))
    assert [bottleneck.name for bottleneck in found.bottlenecks] == ["nvidia.com/gpu"]


def test_gangs_that_rules_tell_apart_are_not_alike() -> None:
    guards = [one.hosting(f"g{one.made.name}", term("zone", peers(app="x"))) for one in TWO]
    big = [gang(name).of(1, cpu=9) for name in ("c", "d")]
    waiting = [gang(name).of(1, cpu=9).labelled(app="x") for name in ("a", "b")]
    snapshot = snapshot_of(*guards, *big, *waiting)
    advices = advise_all(snapshot, PLANNER.plan(snapshot), PLANNER)
    assert [(advice.gang.name, [key.name for key in advice.alike]) for advice in advices] == [
        ("a", ["b"]),
        ("c", ["d"]),
    ]
