"""Who has a node, and which namespaces there are, for those who ask for it by a rule."""

from dataclasses import replace
from typing import Any

import pytest

from tutti.kube.list_watch import Item
from tutti.model.cluster import ForeignPod, Member, Namespace, Phase, PlacedPod, Snapshot
from tutti.model.inter_pod import NO_RULES, InterPodRules, TopologySpread, WeightedAffinityTerm
from tutti.model.keys import NodeName, Uid
from tutti.model.shapes import NodeTerm, Preferences, Shape
from tutti.state.cluster_state import ClusterState

from ...harness.builders import gang, labels, member, node, peers, resources, shape, space, term
from ...harness.fakes import FakeCluster, store_of

N1, N2 = NodeName("n1"), NodeName("n2")
ONE = resources(pods=1, cpu=1)
APART = InterPodRules(anti_affinity=(term("hostname", peers(app="x")),))
NEAR = InterPodRules(affinity=APART.anti_affinity)
EVEN = InterPodRules(spread=(TopologySpread("zone", peers(app="x"), 1),))
X, Y = labels(app="x"), labels(app="y")
DB = ForeignPod(Uid("db"), N1, ONE, "data", Y)


def asking(rules: InterPodRules) -> Shape:
    """A shape with these rules."""
    return replace(shape(cpu=1), rules=rules)


class Observed:
    """A World with a namespace, a pod of somebody else's, and what is put into it."""

    def __init__(self) -> None:
        self.wakes = 0
        self.version = 0
        self.state = ClusterState(self.wake)
        self.put("nodes", node("n1", cpu=4).made, "n1")
        self.put("namespaces", space("ml", team="a"), "ns-ml")
        self.put("bound", DB, "db")

    def wake(self) -> None:
        """Count."""
        self.wakes += 1

    def put(self, stream: str, value: Any, uid: str = "") -> None:
        """Show an object."""
        self.version += 1
        known = Uid(uid) if uid else value.uid
        store_of(self.state, stream).put(Item(known, self.version, value))

    def waits(self, name: str = "a", rules: InterPodRules = APART, **changes: Any) -> Member:
        """Show a pod of ours that waits."""
        made = replace(member(name, asking(rules)), labels=X, **changes)
        self.put("pending", made)
        return made

    @property
    def seen(self) -> Snapshot:
        """What a decision would see."""
        return self.state.snapshot(7.0)

    @property
    def residents(self) -> list[tuple[str, str]]:
        """Who has a node, and which."""
        return [(str(pod.uid), pod.node) for pod in self.seen.placed_pods]


def test_nobody_is_shown_while_no_rule_is_in_force() -> None:
    one = Observed()
    one.waits(rules=NO_RULES)
    assert (one.seen.placed_pods, one.seen.namespaces) == ((), ())


@pytest.mark.parametrize("rules", [APART, NEAR, EVEN], ids=["apart", "near", "even"])
def test_everyone_is_shown_while_a_pod_that_waits_has_a_rule(rules: InterPodRules) -> None:
    one = Observed()
    pod = one.waits(rules=rules)
    assert one.seen.placed_pods == (PlacedPod(Uid("db"), N1, "data", Y),)
    assert one.seen.namespaces == (Namespace("ml", (("team", "a"),)),)
    one.state.pods.pending.drop(pod.uid)
    assert one.seen == replace(one.seen, placed_pods=(), namespaces=())


@pytest.mark.parametrize("rules", [APART, NEAR, EVEN], ids=["apart", "near", "even"])
def test_of_pods_with_a_node_is_shown_whom_they_keep_away_and_whom_they_draw(
    rules: InterPodRules,
) -> None:
    one = Observed()
    pod = one.waits(rules=rules)
    one.put("bound", replace(pod, node=N1))
    likings = tuple(WeightedAffinityTerm(each, 1) for each in rules.affinity)
    assert (
        PlacedPod(pod.uid, N1, "ml", X, rules.anti_affinity, scored_terms=likings)
        in one.seen.placed_pods
    )


LIKES = Preferences(pod_affinity=(WeightedAffinityTerm(APART.anti_affinity[0], -5),))
IN_FORCE = {
    "pods": (LIKES, True),
    "spread": (Preferences(spread=EVEN.spread), True),
    "nodes": (Preferences(node_affinity=((NodeTerm(), 1),)), False),
}


@pytest.mark.parametrize(("wishes", "counts"), IN_FORCE.values(), ids=IN_FORCE)
def test_everyone_is_shown_while_a_wish_may_be_about_them(
    wishes: Preferences, *, counts: bool
) -> None:
    one = Observed()
    pod = member("a", replace(shape(cpu=1), preferences=wishes))
    one.put("pending", pod)
    assert bool(one.seen.placed_pods) is counts
    one.put("bound", replace(pod, node=N1))
    assert [each.scored_terms for each in one.seen.placed_pods if each.uid == pod.uid] == (
        [wishes.pod_affinity] if counts else []
    )


def test_whom_somebody_elses_pod_likes_is_in_force_until_it_is_gone() -> None:
    one = Observed()
    one.put("bound", replace(DB, scored_terms=LIKES.pod_affinity))
    assert [pod.scored_terms for pod in one.seen.placed_pods] == [LIKES.pod_affinity]
    one.state.pods.bound.drop(DB.uid)
    assert one.seen.placed_pods == ()


def test_anti_affinity_of_somebody_elses_pod_is_in_force_until_it_is_gone() -> None:
    one = Observed()
    strict = replace(DB, anti_affinity=APART.anti_affinity)
    one.put("bound", strict)
    assert [pod.anti_affinity for pod in one.seen.placed_pods] == [APART.anti_affinity]
    one.state.pods.bound.drop(DB.uid)
    assert one.seen.placed_pods == ()


def test_while_nobody_but_somebody_elses_pod_asks_it_alone_is_shown() -> None:
    one = Observed()
    one.put("bound", ForeignPod(Uid("guard"), N1, ONE, "data", X, APART.anti_affinity))
    assert one.residents == [("guard", "n1")]
    assert one.seen.namespaces
    before = one.seen.placed_pods
    one.put("bound", replace(DB, labels=X))
    assert one.seen.placed_pods is before
    pod = one.waits()
    assert one.residents == [("db", "n1"), ("guard", "n1")]
    one.state.pods.pending.drop(pod.uid)
    one.put("bound", ForeignPod(Uid("shy"), N2, ONE, "data", X, scored_terms=LIKES.pod_affinity))
    assert one.residents == [("guard", "n1"), ("shy", "n2")]
    one.put("bound", ForeignPod(Uid("guard"), N1, ONE, "data", X))
    assert one.residents == [("shy", "n2")]


STATES: dict[str, tuple[dict[str, Any], bool]] = {
    "waits": ({}, True),
    "gated": ({"gates": ("hold",)}, True),
    "terminating": ({"terminating": True}, True),
    "over": ({"phase": Phase.FAILED}, False),
    "over, on a node": ({"phase": Phase.SUCCEEDED, "node": N1}, False),
    "terminating, on a node": ({"terminating": True, "node": N1}, True),
}


@pytest.mark.parametrize(("changes", "counts"), STATES.values(), ids=STATES)
def test_whose_rules_are_in_force(changes: dict[str, Any], *, counts: bool) -> None:
    one = Observed()
    made = replace(member("a", asking(APART)), **changes)
    one.put("bound" if made.node else "pending", made)
    assert bool(one.seen.placed_pods) is counts


def test_assumed_and_bound_pods_are_there_and_those_that_are_over_or_only_pinned_are_not() -> None:
    one = Observed()
    one.waits("asks")
    pod = one.waits("a", NO_RULES)
    assert one.residents == [("db", "n1")]
    one.state.pods.assume(pod, N2)
    assert one.residents == [("db", "n1"), ("ml/a-uid", "n2")]
    one.state.pods.retract(pod.uid)
    assert one.residents == [("db", "n1")]
    one.put("bound", replace(pod, node=N1))
    one.put("pinned", ForeignPod(Uid("daemon"), N2, ONE, "kube-system"))
    assert one.residents == [("db", "n1"), ("ml/a-uid", "n1")]
    one.put("bound", replace(pod, node=N1, phase=Phase.SUCCEEDED))
    assert one.residents == [("db", "n1")]
    one.put("bound", ForeignPod(Uid("daemon"), N2, ONE, "kube-system"))
    assert one.residents == [("daemon", "n2"), ("db", "n1")]


def test_what_did_not_change_is_the_same_object() -> None:
    one = Observed()
    one.waits()
    one.put("bound", ForeignPod(Uid("other"), N1, ONE, "data", X))
    before = one.seen
    one.waits("b", NO_RULES)
    assert one.seen.placed_pods is before.placed_pods
    assert one.seen.namespaces is before.namespaces
    one.put("bound", replace(DB, labels=X))
    assert one.seen.placed_pods[0].labels == X
    assert one.seen.placed_pods[1] is before.placed_pods[1]


def test_a_change_of_room_alone_changes_no_resident() -> None:
    one = Observed()
    one.waits()
    before = one.seen
    one.put("bound", replace(DB, requests=resources(pods=1, cpu=2)))
    assert one.seen.nodes != before.nodes
    assert one.seen.placed_pods is before.placed_pods


def test_namespaces_are_shown_by_name_and_as_they_are_now() -> None:
    one = Observed()
    one.waits()
    one.put("namespaces", space("db"), "ns-db")
    assert [namespace.name for namespace in one.seen.namespaces] == ["db", "ml"]
    wakes = one.wakes
    one.put("namespaces", space("db"), "ns-db")
    assert one.wakes == wakes
    one.put("namespaces", space("db", team="b"), "ns-db")
    assert one.wakes == wakes + 1
    assert one.seen.namespaces[0].labels == (("team", "b"),)
    one.put("namespaces", space("ml", team="c"), "ns-ml-again")
    assert one.seen.namespaces[1].labels == (("team", "c"),)
    one.state.namespaces.drop(Uid("ns-db"))
    assert [namespace.name for namespace in one.seen.namespaces] == ["ml"]


def test_a_world_that_lists_everything_knows_whom_rules_may_count() -> None:
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=4), gang("a").of(2, cpu=1).apart("hostname"))
    cluster.add_namespace("ml", team="a")
    cluster.occupy("n1", ONE, app="db")
    state = ClusterState(lambda: None)
    cluster.list_into(state)
    seen = state.snapshot(7.0)
    assert [(pod.node, pod.namespace, pod.labels) for pod in seen.placed_pods] == [
        ("n1", "ml", labels(app="db"))
    ]
    assert seen.namespaces == (space("ml", team="a"),)


def test_a_template_with_a_rule_puts_it_in_force() -> None:
    observed = Observed()
    assert observed.seen.placed_pods == ()
    made = gang("a").role("worker", 1, 0).declaring(cpu=1)
    (role,) = made.roles
    assert role.template is not None
    ruled = replace(role, template=replace(role.template, shape=asking(APART)))
    cluster = FakeCluster()
    for each in (replace(made, roles=(ruled,)), made):
        cluster.add_group(each)
        (group,) = cluster.groups.values()
        observed.put("groups", replace(group, uid=Uid("group")), "group")
        assert bool(observed.seen.placed_pods) is (each is not made)
