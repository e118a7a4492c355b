"""Pods that kube-scheduler binds, in the cluster state: from the gate to the binding."""

from dataclasses import replace

from tests.harness.builders import NAMESPACE, member, node, shape
from tutti.kube.gang_sources import GangObject
from tutti.kube.list_watch import Item
from tutti.model.cluster import GATE, BoundBy, Member, Snapshot
from tutti.model.keys import GangKey, NodeName, Uid
from tutti.state.cluster_state import ClusterState

N1 = NodeName("n1")
GROUP = GangObject(GangKey(NAMESPACE, "a"), Uid("g"), 1, version="1")
GATED = replace(
    member("a-0", shape(cpu=1)),
    group="a",
    gates=(GATE,),
    bound_by=BoundBy.KUBE_SCHEDULER,
    version="2",
)
HANDED = replace(GATED, gates=(), node=N1, is_handed_over=True, version="3")
BOUND = replace(HANDED, is_handed_over=False, version="4")


def state_of(*pods: Member, bound_by: BoundBy = BoundBy.KUBE_SCHEDULER) -> ClusterState:
    """A state in which one node and the gang are known, and these pods."""
    state = ClusterState(lambda: None)
    state.nodes.put(Item(Uid("n"), 1, node("n1", cpu=4).made))
    state.groups.put(Item(Uid("g"), 1, replace(GROUP, bound_by=bound_by)))
    for pod in pods:
        store = state.pods.pinned if pod.node is None or pod.is_handed_over else state.pods.bound
        store.put(Item(pod.uid, int(pod.version), pod))
    return state


def members(snapshot: Snapshot) -> list[Member]:
    return [pod for gang in snapshot.gangs for pod in gang.members]


def used(state: ClusterState) -> int:
    return state.snapshot(0.0).nodes[0].used["cpu"]


def test_a_gated_pod_is_a_member_without_room_and_a_pinned_one_uses_its_node() -> None:
    assert members(state_of(GATED).snapshot(0.0)) == [GATED]
    assert used(state_of(GATED)) == 0
    assert members(state_of(HANDED).snapshot(0.0)) == [HANDED]
    assert used(state_of(HANDED)) == GATED.shape.requests["cpu"]


def test_a_pod_whose_gate_a_user_has_removed_is_no_member_whoever_shows_it_first() -> None:
    state = state_of(GATED)
    ungated = replace(GATED, gates=(), version="3")
    state.pods.learn(replace(ungated, version="1"))
    assert members(state.snapshot(0.0)) == [GATED]
    state.pods.learn(ungated)
    assert members(state.snapshot(0.0)) == []
    state.pods.learn(replace(ungated, gates=("another",), version="4"))
    assert members(state.snapshot(0.0)) == []


def test_while_the_patch_is_on_its_way_the_pod_counts_as_handed_over() -> None:
    state = state_of(GATED)
    state.pods.assume(GATED, N1)
    (sent,) = members(state.snapshot(0.0))
    assert (sent.node, sent.is_handed_over) == (N1, True)
    state.pods.learn(HANDED)
    state.pods.retract(GATED.uid)
    assert members(state.snapshot(0.0)) == [HANDED]


def test_a_pod_that_was_read_with_its_node_is_bound_whatever_the_watch_shows() -> None:
    state = state_of(HANDED)
    state.pods.assume(BOUND, N1)
    state.pods.confirm(BOUND.uid, 5.0)
    state.pods.pinned.put(Item(HANDED.uid, int(HANDED.version), HANDED))
    (read,) = members(state.snapshot(0.0))
    assert (read.node, read.is_handed_over, read.bound_at) == (N1, False, 5.0)
    assert used(state) == GATED.shape.requests["cpu"]


def test_a_bound_pod_is_learned_by_the_watch_of_bound_pods_alone() -> None:
    state = state_of(HANDED)
    state.pods.learn(BOUND)
    assert members(state.snapshot(0.0)) == [HANDED]
    state.pods.learn(replace(BOUND, bound_by=BoundBy.TUTTI))
    assert members(state.snapshot(0.0)) == [HANDED]


def test_a_pod_that_is_gone_is_forgotten_with_its_room() -> None:
    state = state_of(HANDED)
    state.pods.forget(HANDED.uid)
    assert members(state.snapshot(0.0)) == []
    assert used(state) == 0


def test_a_pod_with_a_node_that_the_gangs_scheduler_does_not_bind_is_outside_the_gang() -> None:
    """It uses its room, and is charged like a pod whose PodGroup is gone."""
    for pod in (HANDED, BOUND):
        snapshot = state_of(pod, bound_by=BoundBy.TUTTI).snapshot(0.0)
        assert members(snapshot) == []
        assert snapshot.strays == (pod,)
        assert snapshot.nodes[0].used["cpu"] == pod.shape.requests["cpu"]
