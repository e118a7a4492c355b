"""Snapshots as they could be: what a change changes, and what it leaves alone."""

from dataclasses import replace

import pytest

from tutti.model.cluster import Phase, Snapshot
from tutti.model.keys import POD, POD_GROUP, NodeName
from tutti.model.owners import Owner
from tutti.model.resources import NOTHING
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.whatif import edits

from ...harness.builders import (
    AMPLE_BUDGET,
    gang,
    node,
    reservation,
    single,
    snapshot_of,
    topology,
)

JOB = Owner("Job", "a", "batch")


def test_new_nodes_are_of_the_same_kind_and_empty() -> None:
    model = (
        node("n1", cpu=8, gpu=4)
        .labelled(**{"kubernetes.io/hostname": "n1", "pool": "gpu"})
        .tainted("dedicated", "gpu")
        .tainted("node.kubernetes.io/unschedulable")
        .using(cpu=3)
        .cordoned()
        .but(ready=False)
    )
    more = edits.with_nodes(snapshot_of(model), 2, "n1").nodes
    assert [one.name for one in more] == ["n1", "n1-new-1", "n1-new-2"]
    assert more[0] == model.made
    new = more[1]
    assert dict(new.labels) == {"kubernetes.io/hostname": "n1-new-1", "pool": "gpu"}
    assert [taint.key for taint in new.taints] == ["dedicated"]
    assert (new.ready, new.unschedulable, new.used) == (True, False, NOTHING)
    assert new.allocatable == model.made.allocatable


def test_new_nodes_take_names_that_are_free() -> None:
    of = edits.with_nodes(snapshot_of(node("n1", cpu=8)), 2, "n1")
    again = edits.with_nodes(of, 1, "n1").nodes
    assert [one.name for one in again] == ["n1", "n1-new-1", "n1-new-2", "n1-new-3"]


def test_a_lost_node_takes_everyone_whom_rules_counted_there() -> None:
    near = gang("a").of(1, cpu=1).near("zone").each(owner=JOB).bound_on("n1")
    of = snapshot_of(node("n1").hosting("db"), node("n2").hosting("web"), near)
    assert len(of.placed_pods) == 3
    bare = edits.without_node(of, "n1")
    assert [pod.uid for pod in bare.placed_pods] == ["ml/web-uid"]
    assert [m.node for m in bare.gangs[0].members] == [None]


def test_a_lost_node_takes_its_pods_but_what_is_over_still_counts() -> None:
    of = snapshot_of(
        node("n1", cpu=8),
        node("n2", cpu=8),
        gang("a")
        .of(4, cpu=1)
        .bound_on("n1", "n1", "n1", "n2")
        .only("a-0", owner=JOB, phase=Phase.RUNNING)
        .only("a-1", phase=Phase.SUCCEEDED),
        single("p", cpu=1).bound_on("n1"),
    )
    bare = edits.without_node(of, "n1")
    assert [one.name for one in bare.nodes] == ["n2"]
    (left,) = bare.gangs
    again, over, elsewhere = left.members
    assert (again.key.name, again.node, again.phase) == ("a-0", None, Phase.PENDING)
    assert (over.key.name, over.phase) == ("a-1", Phase.SUCCEEDED)
    assert (elsewhere.key.name, elsewhere.node) == ("a-3", "n2")
    assert again.uid != of.gangs[0].members[0].uid


def reserved(*, started: bool) -> Snapshot:
    made = gang("a").of(3, cpu=1)
    if started:
        made = made.only("a-2", node=NodeName("n3"))
    nodes = [node(name, cpu=8) for name in ("n1", "n2", "n3")]
    return snapshot_of(*nodes, made, reservation(made, ("a-0", "n1"), ("a-1", "n2")))


def test_a_promise_on_a_lost_node_is_given_back_where_nothing_has_started() -> None:
    assert edits.without_node(reserved(started=False), "n1").reservations == ()


def test_else_what_is_left_of_it_stands() -> None:
    (held,) = edits.without_node(reserved(started=True), "n1").reservations
    assert [entry.node for entry in held.entries] == ["n2"]
    untouched = reserved(started=True)
    assert edits.without_node(untouched, "n3").reservations == untouched.reservations


def test_a_priority_is_the_gangs_whatever_its_pods_had() -> None:
    of = snapshot_of(gang("a").of(2, cpu=1).last(1, priority=9), gang("b").of(1, cpu=1).priority(3))
    changed = edits.with_priority(of, "ml/a", 5)
    assert [one.priority for one in changed.gangs] == [5, 3]


def test_a_name_is_enough_where_it_is_the_only_one() -> None:
    other = gang("b").of(1, cpu=1)
    away = replace(other, key=other.key._replace(namespace="prod"))
    of = snapshot_of(gang("a").of(1, cpu=1), gang("b").of(1, cpu=1), away, single("a", cpu=1))
    assert edits.find(of, "a").key.kind == POD_GROUP
    assert edits.find(of, "ml/a/Pod").key.kind == POD
    assert edits.find(of, "ml/a/PodGroup.tutti.dev").key.kind == POD_GROUP
    assert edits.find(of, "prod/b").key.namespace == "prod"
    with pytest.raises(edits.WrongChange, match="several gangs have this name: ml/b, prod/b"):
        edits.find(of, "b")


def test_a_node_that_is_added_or_lost_counts_in_its_rack() -> None:
    """A gang in one rack starts with one more node there, and waits with one fewer."""
    nodes = [
        node(name, cpu=2).labelled(rack=name[:2], hostname=name)
        for name in ("r1-0", "r1-1", "r2-0")
    ]
    network = topology("rack")

    def starts(snapshot: Snapshot) -> bool:
        return bool(plan(snapshot, STRATEGIES["ilp"](), BestFit(), AMPLE_BUDGET).placements)

    large = snapshot_of(*nodes, network, gang("a").of(6, cpu=1).together("rack"))
    assert not starts(large)
    assert not starts(edits.with_nodes(large, 1, "r2-0"))
    assert starts(edits.with_nodes(large, 1, "r1-0"))
    small = snapshot_of(*nodes, network, gang("a").of(4, cpu=1).together("rack"))
    assert starts(small)
    assert not starts(edits.without_node(small, "r1-1"))
