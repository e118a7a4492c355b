"""The node rules, as tables: kube-scheduler's answers, case by case."""

import pytest

from tutti.filters.node_rules import fits_node
from tutti.model.inter_pod import Requirement
from tutti.model.keys import NodeName
from tutti.model.resources import NOTHING
from tutti.model.shapes import NodeTerm, Shape, Toleration

from ...harness.builders import node

CORDON_KEY = "node.kubernetes.io/unschedulable"
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def test_a_shape_without_rules_fits_an_ordinary_node() -> None:
    assert fits_node(Shape(NOTHING), node("n1").made) is None


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        pytest.param(None, False, id="no-toleration"),
        pytest.param(Toleration(NOT_READY, "Exists", "", "NoExecute"), False, id="another-effect"),
        pytest.param(Toleration(NOT_READY, "Exists"), True, id="not-ready"),
        pytest.param(Toleration(UNREACHABLE, "Exists", "", "NoSchedule"), True, id="unreachable"),
        pytest.param(Toleration("", "Exists"), True, id="tolerates-all"),
    ],
)
def test_a_node_that_is_not_ready_takes_who_tolerates_its_taint(
    toleration: Toleration | None, *, fits: bool
) -> None:
    shape = Shape(NOTHING, tolerations=(toleration,) if toleration else ())
    expected = None if fits else "is not ready"
    assert fits_node(shape, node("n1").but(ready=False).made) == expected


def test_the_taint_of_a_node_that_is_not_ready_decides_where_it_is_there() -> None:
    unreachable = node("n1").tainted(UNREACHABLE).but(ready=False).made
    shape = Shape(NOTHING, tolerations=(Toleration(NOT_READY, "Exists"),))
    assert fits_node(shape, unreachable) == f"taint {UNREACHABLE}:NoSchedule"


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        pytest.param(None, False, id="no-toleration"),
        pytest.param(Toleration(CORDON_KEY, "Exists", "", "NoSchedule"), True, id="exists"),
        pytest.param(Toleration(CORDON_KEY, "Equal", "", "NoSchedule"), True, id="equal-empty"),
        pytest.param(Toleration(CORDON_KEY, "Equal", "x", ""), False, id="another-value"),
        pytest.param(Toleration(CORDON_KEY, "Exists", "", "NoExecute"), False, id="another-effect"),
        pytest.param(Toleration("", "Exists"), True, id="tolerates-all"),
    ],
)
def test_a_cordon_is_tolerated_like_its_taint(toleration: Toleration | None, *, fits: bool) -> None:
    shape = Shape(NOTHING, tolerations=(toleration,) if toleration else ())
    expected = None if fits else "is cordoned"
    assert fits_node(shape, node("n1").cordoned().made) == expected


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        pytest.param(Toleration("gpu", "Equal", "true", "NoSchedule"), True, id="equal"),
        pytest.param(Toleration("gpu", "", "true", "NoSchedule"), True, id="operator-unsaid"),
        pytest.param(Toleration("gpu", "Equal", "false"), False, id="another-value"),
        pytest.param(Toleration("gpu", "Exists"), True, id="exists-any-effect"),
        pytest.param(Toleration("gpu", "Exists", "", "NoExecute"), False, id="another-effect"),
        pytest.param(Toleration("cpu", "Exists"), False, id="another-key"),
        pytest.param(Toleration("", "Exists"), True, id="every-key"),
        pytest.param(Toleration("", "Equal", "true"), True, id="every-key-of-that-value"),
        pytest.param(Toleration("gpu", "Sometimes", "true"), False, id="unknown-operator"),
    ],
)
def test_a_hard_taint_needs_a_toleration(toleration: Toleration, *, fits: bool) -> None:
    shape = Shape(NOTHING, tolerations=(toleration,))
    tainted = node("n1").tainted("gpu", "true")
    assert fits_node(shape, tainted.made) == (None if fits else "taint gpu=true:NoSchedule")


@pytest.mark.parametrize(
    ("operator", "bound", "value", "fits"),
    [
        ("Lt", "100", "99", True),
        ("Lt", "100", "100", False),
        ("Gt", "100", "101", True),
        ("Gt", "100", "100", False),
        ("Gt", "-5", "0", True),
        ("Gt", "x", "101", False),
        ("Gt", "100", "x", False),
        ("Gt", "007", "101", False),
        ("Lt", "9" * 30, "1", False),
        ("Lt", "9" * 100, "1", False),
    ],
)
def test_numeric_tolerations_compare_the_taint_with_their_value(
    operator: str, bound: str, value: str, *, fits: bool
) -> None:
    shape = Shape(NOTHING, tolerations=(Toleration("sla", operator, bound),))
    assert (fits_node(shape, node("n1").tainted("sla", value).made) is None) == fits


def test_a_soft_taint_forbids_nothing() -> None:
    tainted = node("n1").tainted("gpu", effect="PreferNoSchedule")
    assert fits_node(Shape(NOTHING), tainted.made) is None


def test_every_hard_taint_must_be_tolerated() -> None:
    tainted = node("n1").tainted("gpu").tainted("spot", effect="NoExecute")
    shape = Shape(NOTHING, tolerations=(Toleration("gpu", "Exists"),))
    assert fits_node(shape, tainted.made) == "taint spot:NoExecute"


def test_a_node_selector_names_the_first_label_that_differs() -> None:
    shape = Shape(NOTHING, node_selector=(("pool", "a"), ("zone", "z")))
    assert fits_node(shape, node("n1").labelled(pool="a", zone="z").made) is None
    assert fits_node(shape, node("n1").labelled(pool="a").made) == "nodeSelector zone=z"


@pytest.mark.parametrize(
    ("operator", "values", "label", "holds"),
    [
        ("In", ("a", "b"), "b", True),
        ("In", ("a", "b"), "c", False),
        ("In", ("a",), None, False),
        ("In", (), "a", False),
        ("NotIn", ("a",), "b", True),
        ("NotIn", ("a",), "a", False),
        ("NotIn", ("a",), None, True),
        ("NotIn", (), "a", False),
        ("Exists", (), "", True),
        ("Exists", (), None, False),
        ("Exists", ("a",), "a", False),
        ("DoesNotExist", (), None, True),
        ("DoesNotExist", (), "a", False),
        ("DoesNotExist", ("a",), None, False),
        ("Gt", ("4",), "5", True),
        ("Gt", ("5",), "5", False),
        ("Gt", ("+4",), "005", True),
        ("Gt", ("4",), None, False),
        ("Gt", ("4",), "five", False),
        ("Gt", ("four",), "5", False),
        ("Gt", ("4", "5"), "6", False),
        ("Lt", ("5",), "4", True),
        ("Lt", ("5",), "-6", True),
        ("Lt", ("5",), "5", False),
        ("Lt", (str(2**63),), "5", False),
        ("Near", ("a",), "a", False),
    ],
)
def test_a_requirement_on_labels_holds_as_in_kube_scheduler(
    operator: str, values: tuple[str, ...], label: str | None, *, holds: bool
) -> None:
    shape = Shape(NOTHING, required=(NodeTerm(labels=(Requirement("key", operator, values),)),))
    found = node("n1") if label is None else node("n1").labelled(key=label)
    assert fits_node(shape, found.made) == (None if holds else "node affinity")


@pytest.mark.parametrize(
    ("key", "operator", "values", "holds"),
    [
        ("metadata.name", "In", ("n1",), True),
        ("metadata.name", "In", ("n2",), False),
        ("metadata.name", "In", ("n1", "n2"), False),
        ("metadata.name", "NotIn", ("n2",), True),
        ("metadata.name", "NotIn", ("n1",), False),
        ("metadata.name", "Exists", ("n1",), False),
        ("metadata.name", "In", (), False),
        ("spec.unknown", "In", ("n1",), False),
    ],
)
def test_a_requirement_on_fields_takes_one_value(
    key: str, operator: str, values: tuple[str, ...], *, holds: bool
) -> None:
    shape = Shape(NOTHING, required=(NodeTerm(fields=(Requirement(key, operator, values),)),))
    assert (fits_node(shape, node("n1").made) is None) == holds


def test_one_term_suffices_and_all_of_it_must_hold() -> None:
    on_n1 = Requirement("metadata.name", "In", ("n1",))
    in_a = Requirement("pool", "In", ("a",))
    shape = Shape(NOTHING, required=(NodeTerm((in_a,), (on_n1,)), NodeTerm((in_a,))))
    assert fits_node(shape, node("n2").labelled(pool="a").made) is None
    both = Shape(NOTHING, required=(NodeTerm((in_a,), (on_n1,)),))
    assert fits_node(both, node("n1").made) == "node affinity"
    assert fits_node(both, node("n2").labelled(pool="a").made) == "node affinity"


def test_no_term_and_an_empty_term_match_nothing() -> None:
    assert fits_node(Shape(NOTHING, required=()), node("n1").made) == "node affinity"
    assert fits_node(Shape(NOTHING, required=(NodeTerm(),)), node("n1").made) == "node affinity"


def test_selector_and_affinity_must_both_hold() -> None:
    in_a = NodeTerm(labels=(Requirement("pool", "In", ("a",)),))
    shape = Shape(NOTHING, node_selector=(("zone", "z"),), required=(in_a,))
    assert fits_node(shape, node("n1").labelled(pool="a").made) == "nodeSelector zone=z"
    assert fits_node(shape, node(NodeName("n1")).labelled(zone="z").made) == "node affinity"
