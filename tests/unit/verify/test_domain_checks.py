"""The checker catches members of a gang that are not in one domain."""

from tutti.model.decisions import Plan
from tutti.verify import plan_checks

from ...harness.builders import GangBuilder, gang, node, snapshot_of, topology
from .test_plan_checks import placing

RACK = "rack"
NODES = (
    *(node(name, cpu=8).labelled(rack="r1") for name in ("n1", "n2")),
    node("n3", cpu=8).labelled(rack="r2"),
    node("n4", cpu=8),
)
A = gang("a").of(2, cpu=1).together(RACK)


def broken(
    of: GangBuilder, *where: tuple[str, str], levels: tuple[str, ...] = (RACK,)
) -> tuple[str, ...]:
    placement = placing(of, *where)
    return plan_checks.violations(snapshot_of(*NODES, topology(*levels), of), Plan((placement,)))


def test_members_in_one_domain_break_nothing() -> None:
    assert broken(A, ("a-0", "n1"), ("a-1", "n2")) == ()


def test_members_in_two_domains_are_caught() -> None:
    (fault,) = broken(A, ("a-0", "n1"), ("a-1", "n3"))
    assert fault == f"gang ml/a: it would be in these domains of {RACK}: r1, r2"


def test_a_node_without_the_label_is_in_no_domain() -> None:
    (fault,) = broken(A, ("a-0", "n4"), ("a-1", "n4"))
    assert fault == f"gang ml/a: it would be in these domains of {RACK}: none"


def test_a_level_that_no_topology_has_is_caught() -> None:
    (fault,) = broken(A, ("a-0", "n1"), ("a-1", "n2"), levels=("zone",))
    assert fault == f"gang ml/a: no topology has the level {RACK}"


def test_new_members_join_the_domain_of_those_that_are_bound() -> None:
    grown = gang("a").of(3, cpu=1).needing(2).together(RACK).bound_on("n1", "n2")
    assert broken(grown, ("a-2", "n2")) == ()
    assert len(broken(grown, ("a-2", "n3"))) == 1
