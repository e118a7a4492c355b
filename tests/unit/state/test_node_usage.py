"""Nodes and what is used of them: what is remade, and what stays the same object."""

import random

from tutti.model.keys import NodeName, Uid
from tutti.model.resources import NOTHING
from tutti.state.node_usage import NodeUsage

from ...harness.builders import node, resources

ONE = resources(pods=1, cpu=1)
N1, N2 = NodeName("n1"), NodeName("n2")


def two_nodes() -> NodeUsage:
    """Two empty nodes, learnt in the wrong order."""
    node_usage = NodeUsage()
    node_usage.learn(Uid("u2"), node("n2", cpu=4).made)
    node_usage.learn(Uid("u1"), node("n1", cpu=4).made)
    return node_usage


def test_nodes_come_by_name_with_what_is_used_of_them() -> None:
    node_usage = two_nodes()
    node_usage.occupy(Uid("p"), N2, ONE)
    assert [(node.name, node.used) for node in node_usage.nodes()] == [(N1, NOTHING), (N2, ONE)]


def test_only_what_changed_is_remade() -> None:
    node_usage = two_nodes()
    before = node_usage.nodes()
    assert node_usage.nodes() is before
    node_usage.occupy(Uid("p"), N2, ONE)
    after = node_usage.nodes()
    assert after[0] is before[0]
    assert after[1] is not before[1]
    node_usage.occupy(Uid("p"), N2, ONE)
    assert node_usage.nodes() is after


def test_a_pod_that_moves_leaves_no_trace() -> None:
    node_usage = two_nodes()
    node_usage.occupy(Uid("p"), N2, ONE)
    node_usage.occupy(Uid("p"), N1, ONE)
    assert [node.used for node in node_usage.nodes()] == [ONE, NOTHING]
    node_usage.occupy(Uid("p"), None, NOTHING)
    assert [node.used for node in node_usage.nodes()] == [NOTHING, NOTHING]


def test_a_pod_may_be_known_before_its_node() -> None:
    node_usage = NodeUsage()
    node_usage.occupy(Uid("p"), N1, ONE)
    assert node_usage.nodes() == ()
    node_usage.learn(Uid("u1"), node("n1", cpu=4).made)
    assert [each.used for each in node_usage.nodes()] == [ONE]


def test_a_node_made_anew_under_its_name_is_one_node() -> None:
    node_usage = two_nodes()
    node_usage.learn(Uid("u3"), node("n1", cpu=8).made)
    node_usage.forget(Uid("u1"), N1)
    assert [each.name for each in node_usage.nodes()] == [N1, N2]
    assert node_usage.nodes()[0].allocatable == node("n1", cpu=8).made.allocatable
    node_usage.forget(Uid("u3"), N1)
    node_usage.forget(Uid("u3"), N1)
    assert [each.name for each in node_usage.nodes()] == [N2]


def test_any_order_of_changes_ends_in_the_same_nodes() -> None:
    rng = random.Random(5)
    made, names = NodeUsage(), [NodeName(f"n{i}") for i in range(6)]
    known: set[NodeName] = set()
    pods: dict[Uid, NodeName] = {}
    for _ in range(600):
        name, pod = rng.choice(names), Uid(f"p{rng.randrange(12)}")
        if rng.random() < 0.3:
            made.learn(Uid(name), node(name, cpu=4).made)
            known.add(name)
        elif rng.random() < 0.2:
            made.forget(Uid(name), name)
            known.discard(name)
        elif rng.random() < 0.7:
            made.occupy(pod, name, ONE)
            pods[pod] = name
        else:
            made.occupy(pod, None, NOTHING)
            pods.pop(pod, None)
        seen = {each.name: each.used["pods"] for each in made.nodes()}
        assert seen == {each: list(pods.values()).count(each) for each in sorted(known)}
        assert list(seen) == sorted(seen)
        asked = made.node(name)
        assert (None if asked is None else asked.used["pods"]) == seen.get(name)
