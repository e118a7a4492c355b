"""All nodes at once, held against the rules for one pair; and how much work it is."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.filters import node_rules
from tutti.filters.node_index import NodeIndex
from tutti.gang import finding_text
from tutti.model.cluster import Node, Snapshot
from tutti.model.inter_pod import Requirement
from tutti.model.keys import NodeName
from tutti.model.resources import NOTHING, Resources
from tutti.model.shapes import Effect, NodeTerm, Preferences, Shape, Taint, Toleration
from tutti.planning.compile import grids
from tutti.planning.plan import plan
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget
from tutti.verify import plan_checks

from ...harness import generators
from ...harness.builders import GangBuilder, gang, node, peers, single, snapshot_of, space
from ...harness.counting import calls_of


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_all_nodes_at_once_get_the_answers_that_each_gets_alone(data: st.DataObject) -> None:
    nodes = data.draw(st.lists(generators.ruled_nodes(), min_size=1, max_size=6))
    nodes = [replace(one, name=NodeName(f"n{i}")) for i, one in enumerate(nodes)]
    shape = data.draw(generators.demanding())
    index = NodeIndex(nodes)
    why = [node_rules.fits_node(shape, node) for node in nodes]
    assert index.allowed(shape).tolist() == [one is None for one in why]
    assert list(index.obstacles(shape)) == why
    wanted = [node_rules.is_wanted(shape, node) for node in nodes]
    assert index.wanted(shape).tolist() == wanted
    tolerated = [node_rules.is_tolerated(shape, node) for node in nodes]
    assert index.tolerated(shape).tolist() == tolerated
    assert index.unwelcome(shape).tolist() == [unwelcome(shape, node) for node in nodes]
    assert index.preference(shape).tolist() == [preference(shape, node) for node in nodes]
    assert index.rows == {one.name: row for row, one in enumerate(nodes)}


def _field(key: str, operator: str, *values: str) -> Shape:
    return Shape(NOTHING, required=(NodeTerm(fields=(Requirement(key, operator, values),)),))


def _passing(operator: str, value: str) -> Shape:
    return Shape(NOTHING, tolerations=(Toleration("level", operator, value, "NoSchedule"),))


@pytest.mark.parametrize(
    ("shape", "allowed"),
    [
        pytest.param(_passing("Gt", "3"), [True, True], id="a taint above the bound"),
        pytest.param(_passing("Gt", "5"), [False, True], id="a taint at the bound"),
        pytest.param(_passing("Lt", "9"), [True, True], id="a taint below the bound"),
        pytest.param(_passing("Lt", "x"), [False, True], id="a bound that is no number"),
        pytest.param(_field("metadata.name", "In", "n0"), [False, False], id="a tainted node"),
        pytest.param(_field("metadata.name", "In", "n1"), [False, True], id="a node by name"),
        pytest.param(_field("metadata.name", "In", "n0", "n1"), [False, False], id="two names"),
        pytest.param(_field("metadata.uid", "In", "u"), [False, False], id="another field"),
        pytest.param(_field("metadata.uid", "NotIn", "u"), [False, True], id="not its value"),
        pytest.param(_field("metadata.uid", "NotIn", ""), [False, False], id="not the empty value"),
        pytest.param(
            Shape(NOTHING, volume_reach=(((Requirement("zone", "In", ("b",)),),),)),
            [False, False],
            id="a volume that no node reaches",
        ),
    ],
)
def test_rules_that_few_pods_use(shape: Shape, allowed: list[bool]) -> None:
    level = Taint("level", "5", Effect.NO_SCHEDULE)
    nodes = [node("n0").labelled(zone="a").made, node("n1").labelled(zone="a").made]
    nodes[0] = replace(nodes[0], taints=(level,))
    index = NodeIndex(nodes)
    assert index.allowed(shape).tolist() == allowed
    assert list(index.obstacles(shape)) == [node_rules.fits_node(shape, each) for each in nodes]


def unwelcome(shape: Shape, on: Node) -> int:
    """How many taints would rather not have it: as if they were hard, one by one."""

    def harder(effect: str) -> str:
        return {Effect.PREFER_NO_SCHEDULE: Effect.NO_SCHEDULE, "": ""}.get(effect, "none")

    passes = tuple(
        replace(toleration, effect=harder(toleration.effect)) for toleration in shape.tolerations
    )
    return sum(
        not node_rules.is_tolerated(
            replace(shape, tolerations=passes),
            replace(on, taints=(replace(taint, effect=Effect.NO_SCHEDULE),)),
        )
        for taint in on.taints
        if taint.effect == Effect.PREFER_NO_SCHEDULE
    )


def preference(shape: Shape, on: Node) -> int:
    """The weights of the terms that would let it run there, were they required."""
    return sum(
        weight
        for term, weight in shape.preferences.node_affinity
        if node_rules.is_wanted(Shape(NOTHING, required=(term,)), on)
    )


def cluster(number: int, *pods: GangBuilder) -> Snapshot:
    """So many nodes, one in two of them tainted, and these pods."""
    nodes = [
        node(f"n{i}", cpu=4).labelled(hostname=f"n{i}", zone=f"z{i % 3}") for i in range(number)
    ]
    nodes[::2] = [one.tainted("dedicated", "gpu") for one in nodes[::2]]
    return snapshot_of(*nodes, *pods, space("ml"))


def hostname(value: str, operator: str = "In") -> Requirement:
    return Requirement("kubernetes.io/hostname", operator, (value,))


def requiring(*terms: NodeTerm) -> GangBuilder:
    return single("hostile", cpu=1).shaped(required=terms)


def of_names(n: int) -> GangBuilder:
    return requiring(*(NodeTerm((hostname(f"other-{i}"),)) for i in range(n)))


def of_fields(n: int) -> GangBuilder:
    names = (Requirement("metadata.name", "In", (f"other-{i}",)) for i in range(n))
    return requiring(*(NodeTerm(fields=(name,)) for name in names))


def of_what_is_there(n: int) -> GangBuilder:
    """Terms that fail only at their end, whatever they are sorted by."""
    gone = Requirement("zone", "DoesNotExist")
    return requiring(*(NodeTerm((hostname(f"other-{i}", "NotIn"), gone)) for i in range(n)))


def of_numbers(n: int) -> GangBuilder:
    bounds = (Requirement("kubernetes.io/hostname", "Gt", (str(i),)) for i in range(n))
    return requiring(*(NodeTerm((bound,)) for bound in bounds))


def of_labels(n: int) -> GangBuilder:
    selector = (("zone", "z1"), *((f"z-{i}", "x") for i in range(n)))
    return single("hostile", cpu=1).shaped(node_selector=selector)


def of_tolerations(n: int) -> GangBuilder:
    kinds = ("Equal", "Exists", "Gt")
    passes = (Toleration(f"k{i}", kinds[i % 3], str(i), "NoSchedule") for i in range(n))
    nowhere = (("zone", "nowhere"),)
    return single("hostile", cpu=1).shaped(tolerations=tuple(passes), node_selector=nowhere)


def of_wishes(n: int) -> GangBuilder:
    terms = ((NodeTerm((hostname(f"n{2 * i + 1}"),)), 1) for i in range(n))
    return single("hostile", cpu=1).shaped(preferences=Preferences(node_affinity=tuple(terms)))


def of_spread(n: int) -> GangBuilder:
    """Its policies heed thousands of terms, of which the last holds."""
    pods = gang("hostile").of(2, cpu=1).labelled(app="x").even("zone", peers(app="x"))
    terms = [NodeTerm((hostname(f"other-{i}"),)) for i in range(n)]
    return pods.shaped(required=(*terms, NodeTerm((hostname("n1"),))))


@pytest.mark.parametrize(
    "hostile",
    [
        of_names,
        of_fields,
        of_what_is_there,
        of_numbers,
        of_labels,
        of_tolerations,
        of_wishes,
        of_spread,
    ],
)
def test_the_work_grows_with_what_a_pod_says_and_not_with_that_times_the_nodes(
    hostile: Callable[[int], GangBuilder],
) -> None:
    small, large = (cluster(n, hostile(n)) for n in (40, 160))
    once = calls_of(lambda: planned(small))  # whatever is worked out once is by now
    assert calls_of(lambda: planned(small)) <= once
    assert calls_of(lambda: planned(large)) < 7 * once


def planned(snapshot: Snapshot) -> None:
    made = plan(snapshot, BestFit(), BestFit(), Budget())
    assert plan_checks.violations(snapshot, made) == ()


def test_values_are_not_searched_node_by_node() -> None:
    looks = 0

    class Counted(tuple[str, ...]):
        __slots__ = ()

        def __contains__(self, value: object) -> bool:
            nonlocal looks
            looks += 1
            return super().__contains__(value)

    values = Counted(f"other-{i}" for i in range(5))
    term = NodeTerm((Requirement("kubernetes.io/hostname", "In", values),))
    planned(cluster(50, requiring(term)))
    assert looks == 0


def inventing(name: str, number: int) -> GangBuilder:
    asked = {f"example.com/{name}-{i}": 1 for i in range(number)}
    return single(name, cpu=1).shaped(requests=Resources.of({"cpu": 1000, **asked}))


def test_resources_that_no_node_offers_cost_two_columns_a_pod_however_many_it_invents() -> None:
    snapshot = snapshot_of(
        node("n1", cpu=4), inventing("a", 500), inventing("b", 500), single("c", cpu=1)
    )
    base = grids.grid(snapshot, (m.shape for gang in snapshot.gangs for m in gang.members))
    invented = [f"example.com/{name}-{i}" for name in "ab" for i in (0, 1)]
    assert base.resources == ("cpu", *invented, "pods")
    made = plan(snapshot, BestFit(), BestFit(), Budget())
    assert [str(placement.gang) for placement in made.placements] == ["ml/c"]
    assert [
        finding_text.sentence(rejection).rpartition(": ")[2] for rejection in made.rejections
    ] == [
        "asks 1 example.com/a-0; no node has any",
        "asks 1 example.com/b-0; no node has any",
    ]
