"""What is found out about gangs that wait, case by case."""

from collections.abc import Sequence

from tutti.model.decisions import Policy, Reason
from tutti.model.inter_pod import HOSTNAME
from tutti.model.keys import GangKey, NodeName
from tutti.model.shapes import Toleration
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget, Outcome, Strategy
from tutti.whatif import Advice, Planner, add_nodes, advise, advise_all, end_gangs
from tutti.whatif.results import (
    Bottleneck,
    Certainty,
    Diagnosis,
    EndedGangs,
    MoreNodes,
    Obstacle,
    Placeable,
    ShortShape,
    SmallerNeed,
)

from ...harness.builders import (
    GPU,
    NAMESPACE,
    Canned,
    NodeBuilder,
    Overlooking,
    Part,
    gang,
    node,
    reservation,
    resources,
    single,
    snapshot_of,
    topology,
)

PROVED, TRIED = Certainty.PROVED, Certainty.TRIED
BEST_FIT = BestFit()
EXACT = STRATEGIES["ilp"]()
FOUR = [node(f"n{i}", cpu=8, gpu=2) for i in range(4)]


def key(name: str) -> GangKey:
    return GangKey(NAMESPACE, name)


def planner(by: Strategy = EXACT) -> Planner:
    return Planner(by, BEST_FIT, Budget(), Policy())


def advice(*parts: Part, by: Strategy = EXACT) -> Advice | None:
    """The advice for the gang called ``a``."""
    asked = planner(by)
    snapshot = snapshot_of(*parts)
    return advise(snapshot, asked.plan(snapshot), key("a"), asked)


def diagnosis(*parts: Part, by: Strategy = EXACT) -> Diagnosis:
    """What the gang called ``a`` lacks, and what would start it."""
    found = advice(*parts, by=by)
    assert found is not None
    assert found.diagnosis is not None
    return found.diagnosis


def proved(members: int) -> Placeable:
    return Placeable(members, PROVED)


def tried(members: int) -> Placeable:
    return Placeable(members, TRIED)


def keys(*names: str) -> tuple[GangKey, ...]:
    return tuple(key(name) for name in names)


def test_a_gang_that_starts_or_does_not_exist_needs_no_advice() -> None:
    assert advice(node("n1", cpu=4), gang("a").of(2, cpu=1)) is None
    assert advice(node("n1", cpu=4)) is None


def test_a_gang_that_waits_for_members_is_told_that_and_nothing_of_room() -> None:
    found = advice(node("n1", cpu=1), gang("a").of(2, cpu=4).needing(3))
    sentence = "2 of 3 members exist"
    assert found == Advice(key("a"), 0, Reason.WAITING_FOR_MEMBERS, sentence)


def test_all_questions_are_answered() -> None:
    old = gang("old").of(2, cpu=4, gpu=1).bound_on("n0", "n1")
    found = advice(*FOUR, old, gang("a").of(8, cpu=4, gpu=1))
    assert found == Advice(
        gang=key("a"),
        needed=8,
        reason=Reason.NOT_ENOUGH_ROOM,
        sentence="8 members need 1 nvidia.com/gpu, 4 cpu each; room for 6 on 4 nodes; short 2",
        diagnosis=Diagnosis(
            beside=proved(6),
            alone=proved(6),
            short=ShortShape(resources(pods=1, cpu=4, gpu=1), (), 8, 6),
            bottlenecks=(),
            nodes=MoreNodes(1, FOUR[0].made.name, 1, PROVED),
            min_member=SmallerNeed(6, 1, PROVED),
            ended=EndedGangs(keys("old"), PROVED),
            preferred=EndedGangs((), PROVED),
            plans=3,
        ),
    )


# How many members fit, and what is short


def test_members_of_several_shapes_are_placed_together_not_counted_apart() -> None:
    said = diagnosis(node("n1", cpu=6), gang("a").of(2, cpu=2).of(1, cpu=3))
    assert said.beside == proved(2)
    assert said.short is None
    assert said.bottlenecks == (Bottleneck(Obstacle.RESOURCE, "cpu", proved(3)),)


def test_without_a_proof_the_most_members_are_only_tried() -> None:
    said = diagnosis(node("n1", cpu=6), gang("a").of(2, cpu=2).of(1, cpu=3), by=BEST_FIT)
    assert said.beside == tried(2)


def test_the_strategy_finds_what_best_fit_overlooks() -> None:
    planner = Planner(EXACT, Overlooking(), Budget())
    snapshot = snapshot_of(node("n1", cpu=6), gang("a").of(2, cpu=2).of(1, cpu=3))
    found = advise(snapshot, planner.plan(snapshot), key("a"), planner)
    assert found is not None
    assert found.diagnosis is not None
    assert found.diagnosis.beside == proved(2)


def test_members_that_no_role_has_a_place_for_do_not_count_as_progress() -> None:
    # Room for 3 workers, but the driver's place cannot be taken by one.
    made = gang("a").role("driver", 1, gpu=1).role("worker", 2, 5, cpu=1).needing(3)
    said = diagnosis(node("n1", cpu=5), made)
    assert said.beside == proved(2)


def test_spare_places_are_open_to_every_role() -> None:
    made = gang("a").role("driver", 1, gpu=1).role("worker", 2, 5, cpu=1).needing(4)
    assert diagnosis(node("n1", cpu=5), made).beside == proved(3)


def test_spare_places_are_open_to_no_more_of_a_role_than_its_maximum() -> None:
    made = gang("a").role("driver", 1, gpu=1).role("worker", 2, 5, cpu=1).at_most(3)
    made = made.of(1, role="driver", cpu=1).of(1, role="driver", gpu=1).needing(5)
    assert diagnosis(node("n1", cpu=6), made).beside == tried(4)
    alike = gang("a").role("driver", 1, 3, gpu=1).role("worker", 2, 5, cpu=1).at_most(3).needing(5)
    assert diagnosis(node("n1", cpu=6, gpu=1), alike).beside == proved(4)


def test_a_started_gang_asks_for_no_more_of_a_role_than_its_maximum() -> None:
    made = gang("a").role("w", 1, 1, cpu=1).of(3, role="w", cpu=4).at_most(2).needing(1)
    found = advice(node("n1", cpu=4), made.bound_on("n1"))
    assert found is not None
    assert found.needed == 1


def test_a_role_of_several_shapes_is_only_tried() -> None:
    made = gang("a").role("w", 2, 2, cpu=3).of(1, role="w", cpu=2).role("d", 1, gpu=1)
    said = diagnosis(node("n1", cpu=4), made.needing(3))
    assert said.beside.certainty is TRIED


def test_the_scarce_resource_is_named_and_how_many_it_would_let_in() -> None:
    said = diagnosis(node("n1", cpu=64, gpu=2), gang("a").of(8, cpu=4, gpu=1))
    assert said.beside == proved(2)
    assert said.bottlenecks == (Bottleneck(Obstacle.RESOURCE, GPU, proved(8)),)


def test_the_scarcest_of_several_resources_comes_first() -> None:
    nodes = [node("n1", cpu=4, gpu=8), node("n2", cpu=40)]
    said = diagnosis(*nodes, gang("a").of(9, cpu=4, gpu=1))
    assert [(bottleneck.name, bottleneck.admits.members) for bottleneck in said.bottlenecks] == [
        (GPU, 9),
        ("cpu", 8),
    ]


def test_node_rules_may_be_what_is_in_the_way() -> None:
    nodes = [node("n1", cpu=4), node("n2", cpu=4).tainted("x"), node("n3", cpu=4).cordoned()]
    said = diagnosis(*nodes, node("n4", cpu=4).cordoned(), gang("a").of(3, cpu=3))
    assert Bottleneck(Obstacle.RULES, "cordoned", proved(3)) in said.bottlenecks


def test_the_short_shape_is_named_with_its_role() -> None:
    made = gang("a").role("driver", 1, cpu=1).role("worker", 4, gpu=1)
    said = diagnosis(node("n1", cpu=4, gpu=3), made)
    assert said.short == ShortShape(resources(pods=1, gpu=1), ("worker",), 4, 3)
    assert said.beside == proved(4)


# More nodes


def more_nodes(*parts: Part, by: Strategy = EXACT) -> tuple[int, str]:
    said = diagnosis(*parts, by=by).nodes
    assert said.certainty is PROVED
    return said.count, said.like


def test_the_kind_that_takes_the_fewest_nodes_is_advised() -> None:
    nodes = [node("large", cpu=8), node("small", cpu=2)]
    assert more_nodes(*nodes, gang("a").of(9, cpu=2)) == (1, "large")
    assert more_nodes(*nodes, gang("a").of(6, cpu=2)) == (1, "large")


def test_a_kind_that_takes_as_many_as_the_best_is_not_asked_about() -> None:
    made = gang("a").of(3, cpu=2)
    one, two = (
        diagnosis(node("a1", cpu=2), made),
        diagnosis(node("a1", cpu=2), node("b", cpu=3), made),
    )
    assert one.nodes.count == 2
    assert (two.nodes.count, two.nodes.kinds) == (1, 2)


def test_of_kinds_that_promise_the_same_the_better_one_is_found() -> None:
    # By counting one node of either kind would do; together the members need two of the first.
    made = gang("a").of(2, cpu=3).of(2, cpu=2)
    first, second = node("first", cpu=6).using(cpu=6), node("second", cpu=10).using(cpu=10)
    assert more_nodes(first, made) == (2, "first")
    assert more_nodes(first, second, made) == (1, "second")


def test_nodes_that_are_alike_but_for_names_and_troubles_are_one_kind() -> None:
    nodes = [
        node("n1", cpu=1).labelled(zone="x").cordoned(),
        node("n2", cpu=1)
        .labelled(zone="y")
        .but(ready=False)
        .tainted("node.kubernetes.io/not-ready"),
        node("n3", cpu=1).using(cpu=1),
    ]
    said = diagnosis(*nodes, gang("a").of(2, cpu=1)).nodes
    assert (said.count, said.like, said.kinds) == (2, "n1", 1)


def test_labels_that_the_gang_asks_about_make_a_kind() -> None:
    nodes = [node("n1", cpu=1).labelled(pool="x"), node("n2", cpu=1).labelled(pool="y")]
    made = gang("a").of(2, cpu=1).shaped(node_selector=(("pool", "y"),))
    said = diagnosis(*nodes, made).nodes
    assert (said.count, said.like, said.kinds) == (1, "n2", 2)


def test_a_new_node_has_a_hostname_of_its_own() -> None:
    made = gang("a").of(2, cpu=1).shaped(node_selector=((HOSTNAME, "n1"),))
    hosts = {HOSTNAME: "n1"}
    said = diagnosis(node("n1", cpu=1).labelled(**hosts), made).nodes
    assert said == MoreNodes(0, said.like, 1, PROVED)


def test_a_taint_that_is_not_tolerated_is_part_of_the_kind() -> None:
    nodes = [node("n1", cpu=4).tainted("gpu"), node("n2", cpu=1)]
    assert more_nodes(*nodes, gang("a").of(4, cpu=1)) == (3, "n2")
    tolerant = gang("a").of(6, cpu=1).shaped(tolerations=(Toleration("gpu", "Exists"),))
    assert more_nodes(*nodes, tolerant) == (1, "n1")


def test_where_no_kind_helps_it_is_said_with_a_proof() -> None:
    said = diagnosis(node("n1", gpu=4), gang("a").of(2, gpu=8)).nodes
    assert said == MoreNodes(0, said.like, 1, PROVED)


def test_new_nodes_are_first_taken_by_those_that_go_before() -> None:
    urgent = gang("b").of(4, cpu=8, gpu=2).priority(1)
    more = gang("c").of(4, cpu=8, gpu=2).priority(1)
    assert more_nodes(*FOUR, urgent, more, gang("a").of(1, cpu=8, gpu=2)) == (1, "n0")
    large = gang("a").of(4, cpu=8, gpu=2)
    assert more_nodes(*FOUR, urgent, more, large) == (8, "n0")


def test_a_kind_that_only_others_can_use_may_free_room() -> None:
    # b fits the tainted node as well; a does not, and wants the one that b has.
    pass_all = Toleration("", "Exists")
    b = gang("b").of(1, cpu=4).shaped(tolerations=(pass_all,)).priority(1)
    nodes = [node("n1", cpu=4), node("n2", cpu=4).tainted("gpu").using(cpu=4)]
    said = diagnosis(*nodes, b, gang("a").of(1, cpu=4))
    assert said.nodes.count == 1


def test_of_kinds_that_run_as_many_members_one_is_asked_about() -> None:
    nodes = [node(f"n{i}", cpu=1, memory=i + 1).using(cpu=1) for i in range(12)]
    said = diagnosis(*nodes, gang("a").of(2, cpu=1))
    assert (said.nodes.count, said.nodes.like, said.nodes.kinds) == (2, "n0", 12)
    assert said.plans < 6


def test_the_effort_for_nodes_is_limited() -> None:
    # All that go before take the new nodes first, five by five.
    ahead = [gang(f"b{i:03}").of(5, cpu=8).priority(1) for i in range(300)]
    said = diagnosis(*FOUR, *ahead, gang("a").of(5, cpu=8), by=BEST_FIT).nodes
    assert said.count >= 1501
    assert (said.certainty, said.cut) == (TRIED, True)


def test_a_strategy_that_proves_nothing_only_tries() -> None:
    said = diagnosis(
        *FOUR, gang("b").of(6, cpu=4, gpu=1).priority(1), gang("a").of(4, cpu=4, gpu=1), by=BEST_FIT
    )
    assert (said.nodes.count, said.nodes.certainty) == (1, TRIED)


def test_names_of_new_nodes_are_free() -> None:
    one = node("n1", cpu=1)
    snapshot = snapshot_of(one, node("n1-new-1", cpu=1))
    names = [made.name for made in add_nodes.with_nodes(snapshot, one.made, 2).nodes]
    assert names == ["n1", "n1-new-1", "n1-newer-1", "n1-newer-2"]


# A smaller minMember


def min_member(*parts: Part, by: Strategy = EXACT) -> SmallerNeed | None:
    return diagnosis(*parts, by=by).min_member


def test_the_largest_min_member_that_fits_is_found() -> None:
    assert min_member(node("n1", cpu=5), gang("a").of(9, cpu=1)) == SmallerNeed(5, 1, PROVED)


def test_what_roles_demand_cannot_be_lowered() -> None:
    made = gang("a").role("w", 2, 4, cpu=1)
    assert min_member(node("n1", cpu=1), made.needing(2)) is None
    assert min_member(node("n1", cpu=1), made.needing(4)) == SmallerNeed(0, 2, PROVED)
    assert min_member(node("n1", cpu=3), made.needing(4)) == SmallerNeed(3, 2, PROVED)


def test_a_gang_that_needs_one_member_cannot_need_fewer() -> None:
    assert min_member(node("n1", cpu=1), gang("a").of(1, cpu=2)) is None


def test_a_larger_gang_may_be_worth_more_than_the_one_that_was_preferred() -> None:
    # Alone it would fit with 6, worth as much as b; with fewer b goes first.
    b = gang("b").of(6, cpu=4, gpu=1)
    later = gang("a").of(9, cpu=4, gpu=1).but(created=9.0)
    said = min_member(*FOUR, b, later)
    assert said == SmallerNeed(8, 1, PROVED)


def test_where_others_take_all_room_no_min_member_is_found() -> None:
    b = gang("b").of(8, cpu=4, gpu=1).priority(1)
    assert min_member(*FOUR, b, gang("a").of(9, cpu=4, gpu=1)) == SmallerNeed(0, 1, TRIED)


# Gangs that would have to make way


def ended(*parts: Part, by: Strategy = EXACT) -> EndedGangs:
    return diagnosis(*parts, by=by).ended


def bound(name: str, *on: str, cpu: float, gpu: float = 0) -> Part:
    return gang(name).of(len(on), cpu=cpu, gpu=gpu).bound_on(*on)


def test_one_gang_that_ends_is_enough() -> None:
    others = [bound("x", "n0", cpu=4, gpu=1), bound("y", "n1", "n2", cpu=4, gpu=1)]
    assert ended(*FOUR, *others, gang("a").of(7, cpu=4, gpu=1)) == EndedGangs(keys("y"), PROVED)


def test_the_smallest_of_those_that_would_do_is_named() -> None:
    others = [bound("x", "n0", "n0", cpu=4, gpu=1), bound("y", "n1", cpu=4, gpu=1)]
    assert ended(*FOUR, *others, gang("a").of(6, cpu=4, gpu=1)) == EndedGangs(keys("y"), PROVED)


def test_two_that_do_it_together_are_proved_if_none_does_it_alone() -> None:
    others = [bound(name, "n0", cpu=4, gpu=1) for name in ("x", "y")]
    assert ended(*FOUR, *others, gang("a").of(8, cpu=4, gpu=1)) == EndedGangs(
        keys("x", "y"), PROVED
    )


def test_more_than_two_are_only_tried() -> None:
    others = [bound(name, "n0", cpu=2) for name in ("w", "x", "y", "z")]
    ended_gangs = ended(*FOUR, *others, gang("a").of(8, cpu=4, gpu=1))
    assert ended_gangs == EndedGangs(keys("w", "x", "y", "z"), TRIED)


def test_those_that_became_unnecessary_are_left_out() -> None:
    # The two small ones help first, the large one alone brings what is missing with one of them.
    others = [bound("w", "n0", cpu=2), bound("x", "n0", cpu=2), bound("y", "n1", "n1", cpu=4)]
    ended_gangs = ended(*FOUR, *others, gang("a").of(8, cpu=4, gpu=1))
    assert ended_gangs.gangs == keys("w", "x", "y")
    ended_gangs = ended(*FOUR, *others, gang("a").of(7, cpu=4, gpu=1))
    assert ended_gangs.gangs == keys("y")


def test_pods_of_other_schedulers_are_no_gangs_that_could_end() -> None:
    assert ended(node("n1", cpu=4).using(cpu=4), gang("a").of(1, cpu=4)) == EndedGangs((), PROVED)


def test_gangs_that_are_still_being_bound_are_not_asked_to_end() -> None:
    half = gang("b").of(2, cpu=2).bound_on("n1")
    held = reservation(half, ("b-0", "n1"), ("b-1", "n1"))
    assert ended(node("n1", cpu=4), half, held, gang("a").of(1, cpu=4)) == EndedGangs((), PROVED)


def test_too_long_a_list_is_not_given() -> None:
    others = [bound(f"x{i:02}", "n0", cpu=0.5) for i in range(16)]
    ended_gangs = ended(node("n0", cpu=8), *others, gang("a").of(1, cpu=8))
    assert ended_gangs == EndedGangs((), TRIED, cut=True)


def test_the_end_of_one_gang_may_make_room_for_one_that_goes_before() -> None:
    old = gang("old").of(1, gpu=2, cpu=1).bound_on("n0")
    b = gang("b").of(3, cpu=8, gpu=2).priority(1)
    said = diagnosis(*FOUR, old, b, gang("a").of(1, cpu=8, gpu=2))
    assert said.ended == EndedGangs(keys("old"), PROVED)
    assert said.preferred == EndedGangs(keys("b"), PROVED)


def test_the_effort_for_ends_is_limited() -> None:
    # All that end give room that b takes instead.
    others = [bound(f"x{i:02}", f"m{i:02}", cpu=8, gpu=2) for i in range(20)]
    nodes: list[NodeBuilder] = [node(f"m{i:02}", cpu=8, gpu=2) for i in range(20)]
    ahead = [gang(f"b{i}").of(1, cpu=8, gpu=2).priority(1) for i in range(24)]
    ended_gangs = ended(*FOUR, *nodes, *others, *ahead, gang("a").of(1, cpu=8, gpu=2))
    assert ended_gangs == EndedGangs((), TRIED, cut=True)


def test_gangs_that_the_plan_prefers_are_named() -> None:
    b, c = gang("b").of(6, cpu=4, gpu=1), gang("c").of(2, cpu=4, gpu=1)
    said = diagnosis(*FOUR, b, c, gang("a").of(4, cpu=4, gpu=1).but(created=9.0)).preferred
    assert said == EndedGangs(keys("b"), PROVED)


def test_gangs_of_lower_priority_are_not_preferred() -> None:
    said = diagnosis(*FOUR, gang("b").of(8, cpu=4), gang("a").of(9, cpu=4, gpu=1).priority(1))
    assert said.preferred == EndedGangs((), PROVED)


def test_where_the_plan_overlooks_the_gang_nobody_was_preferred() -> None:
    blind = Planner(Overlooking(), Overlooking(), Budget())
    snapshot = snapshot_of(node("n1", cpu=8), gang("a").of(2, cpu=1))
    found = advise(snapshot, blind.plan(snapshot), key("a"), blind)
    assert found is not None
    assert found.diagnosis is not None
    assert found.diagnosis.preferred == EndedGangs((), PROVED)
    assert found.diagnosis.beside == proved(2)


def test_a_repair_is_preferred_whatever_its_priority() -> None:
    lost = gang("b").of(2, cpu=4).bound_on("n1")
    said = diagnosis(node("n1", cpu=8), lost, gang("a").of(1, cpu=4).priority(9)).preferred
    assert said == EndedGangs(keys("b"), PROVED)


def test_where_the_preferred_ones_leave_room_that_others_take_none_is_named() -> None:
    b, c = gang("b").of(4, cpu=8).priority(1), gang("c").of(4, cpu=8).priority(1)
    said = diagnosis(*FOUR, b, c, gang("a").of(1, cpu=8)).preferred
    assert said == EndedGangs((), TRIED)


def test_where_no_few_preferred_ones_will_do_all_are_named() -> None:
    nodes = [node(f"n{i:02}", cpu=8) for i in range(12)]
    ahead = [gang(f"b{i:02}").of(1, cpu=8).priority(1) for i in range(12)]
    said = diagnosis(*nodes, *ahead, gang("a").of(12, cpu=8)).preferred
    assert said.certainty is TRIED
    assert len(said.gangs) == 12


# Gangs that have started


def test_a_started_gang_asks_for_its_missing_members() -> None:
    made = gang("a").of(3, gpu=1).bound_on("n1").last(2, node=None)
    found = advice(node("n1", cpu=4, gpu=1), made)
    assert found is not None
    assert found.needed == 2
    assert found.diagnosis is not None
    assert found.diagnosis.nodes == MoreNodes(2, found.diagnosis.nodes.like, 1, PROVED)
    assert found.diagnosis.min_member is None


def test_a_started_gang_asks_for_the_roles_that_are_missing() -> None:
    made = gang("a").role("d", 1, cpu=1).role("w", 2, cpu=4).bound_on("n1", "n1")
    found = advice(node("n1", cpu=5), made)
    assert found is not None
    assert found.needed == 1
    assert found.diagnosis is not None
    assert found.diagnosis.short == ShortShape(resources(pods=1, cpu=4), ("w",), 1, 0)


def test_a_started_gang_asks_for_one_more_member_where_none_is_missing() -> None:
    made = gang("a").of(3, cpu=3).needing(1).bound_on("n1")
    found = advice(node("n1", cpu=4), made)
    assert found is not None
    assert found.needed == 1


def test_a_gang_that_is_being_deleted_asks_for_nothing() -> None:
    found = advice(node("n1", cpu=4), gang("a").of(3).bound_on("n1").but(terminating=True))
    assert found is not None
    assert found.diagnosis is None


# Types


def test_gangs_of_one_type_share_one_advice() -> None:
    gangs = [gang(f"g{i}").of(3, cpu=8).but(created=float(i)) for i in range(4)]
    other = gang("h").of(3, cpu=8).priority(-1)
    few = gang("few").of(1).needing(2)
    asked, seen = planner(), snapshot_of(*FOUR, *gangs, other, few)
    advices = advise_all(seen, asked.plan(seen), asked)
    assert [(advice.gang.name, names(advice.alike)) for advice in advices] == [
        ("few", []),
        ("g1", ["g2", "g3"]),
        ("h", []),
    ]
    assert advise(seen, asked.plan(seen), key("h"), asked) == advices[-1]


def names(some: Sequence[GangKey]) -> list[str]:
    return [one.name for one in some]


def test_a_pod_without_a_group_is_advised_too() -> None:
    asked, seen = planner(), snapshot_of(node("n1", cpu=1), single("p", cpu=2))
    (found,) = advise_all(seen, asked.plan(seen), asked)
    assert found.diagnosis is not None
    assert found.diagnosis.min_member is None


def test_a_planner_that_fails_is_no_proof() -> None:
    broken = Canned(Outcome.FAILED, "broken")
    said = diagnosis(node("n1", cpu=6), gang("a").of(2, cpu=2).of(1, cpu=3), by=broken)
    assert said.beside == tried(2)
    assert said.nodes.certainty is TRIED


def test_pictures_without_gangs_are_without_their_pods_for_rules_too() -> None:
    old = gang("old").of(1, cpu=1).apart("hostname").bound_on("n1")
    snapshot = snapshot_of(node("n1", cpu=4).hosting("db"), old, gang("b").of(1, cpu=1))
    held = {key("old"): {FOUR[0].made.name: resources(pods=1, cpu=1)}}
    assert [pod.uid for pod in snapshot.placed_pods] == ["ml/db-uid", "ml/old-0-uid"]
    assert end_gangs.without_bound(snapshot, held).placed_pods == snapshot.placed_pods[:1]


def test_pictures_without_gangs_keep_what_others_use() -> None:
    old = gang("old").of(1, cpu=1).bound_on("n1")
    snapshot = snapshot_of(node("n1", cpu=4).using(cpu=2), old, gang("b").of(1, cpu=1))
    held = {key("old"): {FOUR[0].made.name: resources(pods=1, cpu=1)}}
    elsewhere = end_gangs.without_bound(snapshot, held)
    assert elsewhere.nodes == snapshot.nodes
    assert [one.key for one in elsewhere.gangs] == [key("b")]


def racks(*sizes: int) -> list[Part]:
    """Racks of one node, with so many CPUs."""
    nodes: list[Part] = [
        node(f"n{i}", cpu=size).labelled(block="b", rack=f"r{i}") for i, size in enumerate(sizes)
    ]
    return [*nodes, topology("block", "rack")]


def test_of_many_gangs_only_one_that_fills_the_right_rack_is_tried() -> None:
    """The cluster has room enough, so by counting all nodes the end of any gang would do."""
    small = [gang(f"s{i}").of(1, cpu=1).bound_on(f"n{i}") for i in range(10)]
    large = gang("x").of(1, cpu=6).bound_on("n10")
    rest: list[Part] = [*racks(*[4] * 10, 8), *small, large]
    found = diagnosis(*rest, gang("a").of(6, cpu=1).together("rack").together("block"))
    assert found.ended == EndedGangs(keys("x"), PROVED, domain="b/r10 of rack")
    assert found.plans < 12


def test_two_gangs_of_one_rack_end_together() -> None:
    """Each of the gangs elsewhere would give back more."""
    others = [gang(name).of(2, cpu=2).bound_on("n0", "n0") for name in ("x", "y")]
    elsewhere = [gang(f"z{i}").of(1, cpu=5).bound_on(f"n{i + 1}") for i in range(3)]
    found = diagnosis(
        *racks(8, 6, 6, 6), *others, *elsewhere, gang("a").of(7, cpu=1).together("rack")
    )
    assert found.ended == EndedGangs(keys("x", "y"), PROVED, domain="b/r0 of rack")


def test_no_end_makes_room_in_one_domain_if_none_is_large_enough() -> None:
    bound = gang("x").of(4, cpu=1).bound_on(*["n0"] * 4)
    found = diagnosis(*racks(4, 4), bound, gang("a").of(6, cpu=1).together("rack"))
    assert found.ended == EndedGangs((), PROVED)
    unlabelled: list[Part] = [node("n0", cpu=8), topology("rack")]
    found = diagnosis(*unlabelled, bound, gang("a").of(6, cpu=1).together("rack"))
    assert found.ended == EndedGangs((), PROVED)


def test_a_replacement_has_room_only_in_the_domain_of_its_gang() -> None:
    """The other rack has room enough, and more of its nodes would not help."""
    other = gang("x").of(1, cpu=1).bound_on("n0")
    lost = gang("a").of(2, cpu=3).together("rack").bound_on("n0")
    found = diagnosis(*racks(6, 8), other, lost)
    assert found.beside == found.alone == proved(0)
    assert found.nodes == MoreNodes(1, NodeName("n0"), 2, PROVED)
    assert found.ended == EndedGangs(keys("x"), PROVED, domain="b/r0 of rack")


def test_room_is_counted_in_one_domain_if_all_members_must_be_in_one() -> None:
    """The racks together have room for all."""
    found = diagnosis(*racks(3, 4), gang("a").of(6, cpu=1).together("rack"))
    assert found.beside == found.alone == proved(4)
    assert found.bottlenecks == (Bottleneck(Obstacle.RESOURCE, "cpu", proved(6)),)
    assert found.min_member == SmallerNeed(4, 1, PROVED)
    found = diagnosis(*racks(4, 5), gang("a").of(2, cpu=2).of(4, cpu=1).together("rack"))
    assert found.beside == proved(4)
    no_domain: list[Part] = [node("n0", cpu=8), topology("rack")]
    assert diagnosis(*no_domain, gang("a").of(6, cpu=1).together("rack")).beside == proved(0)


def test_room_is_counted_in_the_domains_of_roles() -> None:
    """The driver has room beside the four workers that the largest rack holds."""
    made = gang("a").role("driver", 1, cpu=1).role("worker", 5, cpu=1).together("rack", "worker")
    assert diagnosis(*racks(4, 3), made).beside == proved(5)
    nobody = made.together("rack", "ghost")
    assert diagnosis(*racks(4, 3), nobody).beside == proved(5)


def test_room_is_counted_in_segments() -> None:
    found = diagnosis(*racks(4, 3, 3), gang("a").of(9, cpu=1).in_segments(4, "rack"))
    assert found.beside == proved(7)
    assert found.min_member == SmallerNeed(7, 1, PROVED)


def test_room_for_lost_members_of_segments_is_not_proved() -> None:
    made = gang("a").of(8, cpu=1).in_segments(4, "rack").bound_on(*["n0"] * 4, *["n1"] * 2)
    found = diagnosis(*racks(4, 2, 1), made)
    assert found.beside.certainty is TRIED


def test_room_for_lost_members_is_counted_in_any_one_domain_if_none_is_left() -> None:
    made = gang("a").role("driver", 1, cpu=1).role("worker", 2, cpu=3).together("rack", "worker")
    others = [gang(name).of(1, cpu=2).bound_on(on) for name, on in (("x", "n0"), ("y", "n1"))]
    found = diagnosis(*racks(4, 4), node("bare", cpu=1), *others, made.bound_on("bare"))
    assert found.beside == proved(0)
    assert found.bottlenecks == (Bottleneck(Obstacle.RESOURCE, "cpu", proved(2)),)


def test_nodes_of_each_rack_are_a_kind_of_their_own() -> None:
    """By their names and their room, all nodes are alike, but most racks are full."""
    full = [gang(f"s{i}").of(4, cpu=1).bound_on(*[f"n{i}"] * 4) for i in range(19)]
    cluster: list[Part] = [*racks(*[4] * 20), *full]
    whole = gang("a").of(8, cpu=1).together("rack").together("block")
    found = diagnosis(*cluster, whole)
    assert found.nodes == MoreNodes(1, NodeName("n19"), 20, PROVED)
    made = gang("a").role("driver", 1, cpu=2).role("worker", 8, cpu=1).together("rack", "worker")
    found = diagnosis(*cluster, node("bare", cpu=2), made)
    assert found.nodes == MoreNodes(1, NodeName("n19"), 21, PROVED)


def test_nodes_outside_of_all_racks_do_not_help_a_gang_in_one_rack() -> None:
    bare: list[Part] = [node("bare", cpu=8), *racks(4)]
    found = diagnosis(*bare, gang("a").of(6, cpu=1).together("rack"))
    assert found.nodes == MoreNodes(1, NodeName("n0"), 2, PROVED)


def test_of_many_gangs_only_one_that_fills_the_right_rack_is_tried_for_a_role() -> None:
    """By counting all nodes, the end of any gang would do."""
    small = [gang(f"s{i}").of(1, cpu=1).bound_on(f"n{i}") for i in range(10)]
    large = gang("x").of(1, cpu=6).bound_on("n10")
    rest: list[Part] = [*racks(*[4] * 10, 8), node("bare", cpu=1), *small, large]
    made = gang("a").role("driver", 1, cpu=1).role("worker", 6, cpu=1)
    found = diagnosis(*rest, made.together("rack", "worker").together("rack", "ghost"))
    assert found.ended == EndedGangs(keys("x"), PROVED)
    in_block = made.together("block").together("rack", "worker")
    assert diagnosis(*rest, in_block).ended == EndedGangs(keys("x"), PROVED, domain="b of block")
