"""The World: what a snapshot shows of stores, assumptions and their races."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tutti.kube.codec.queues import QueueObject
from tutti.kube.gang_sources import GangObject
from tutti.kube.list_watch import Item, ObjectList
from tutti.model.cluster import (
    ForeignPod,
    Member,
    Namespace,
    Node,
    Phase,
    PriorityClass,
    Reservation,
    SlotReservation,
    Snapshot,
)
from tutti.model.inter_pod import NO_RULES, InterPodRules, Topology
from tutti.model.keys import POD, GangKey, NodeName, Uid
from tutti.model.owners import Job, JobKey, Owner
from tutti.model.queues import Queue, QueueRecord
from tutti.model.resources import NOTHING, Resources
from tutti.state.cluster_state import ClusterState

from ...harness.builders import (
    budget,
    gang,
    labels,
    member,
    node,
    peers,
    reservation,
    resources,
    shape,
    space,
    term,
)
from ...harness.fakes import FakeCluster, Watch, store_of

if TYPE_CHECKING:
    from tutti.state.store import Store

N1, N2 = NodeName("n1"), NodeName("n2")
ONE = resources(pods=1, cpu=1)


class Observed:
    """A World with two nodes, fed by hand."""

    def __init__(self) -> None:
        self.wakes = 0
        self.shown: list[float | None] = []
        self.state = ClusterState(self.wake, shown=self.shown.append)
        self.version = 0
        for name in ("n1", "n2"):
            self.state.nodes.put(Item(Uid(name), self.next(), node(name, cpu=4).made))

    def wake(self) -> None:
        """Count."""
        self.wakes += 1

    def next(self) -> int:
        """A newer version."""
        self.version += 1
        return self.version

    def pend(self, name: str = "a-0", **changes: object) -> Member:
        """Show a pending pod."""
        made = replace(member(name, shape(cpu=1)), group="a", version=str(self.next()))
        made = replace(made, **changes)  # type: ignore[arg-type]
        self.state.pods.pending.put(Item(made.uid, int(made.version), made))
        return made

    def bind(self, pod: Member, on: NodeName = N1, **changes: object) -> Member:
        """Show a pod as bound."""
        made = replace(pod, node=on, version=str(self.next()), **changes)  # type: ignore[arg-type]
        self.state.pods.bound.put(Item(made.uid, int(made.version), made))
        return made

    def group(self, name: str = "a", uid: str = "g", **changes: object) -> GangObject:
        """Show a PodGroup."""
        gang_object = GangObject(GangKey("ml", name), Uid(uid), 2, generation=1)
        gang_object = replace(gang_object, version=str(self.next()), **changes)  # type: ignore[arg-type]
        self.state.groups.put(Item(gang_object.uid, int(gang_object.version), gang_object))
        return gang_object

    def relist_bound(self, *pods: Member) -> None:
        """List the bound pods."""
        items: list[Item[Any]] = [Item(pod.uid, int(pod.version), pod) for pod in pods]
        self.state.pods.bound.replace(
            ObjectList(items), self.version, self.state.pods.bound.began()
        )

    @property
    def seen(self) -> Snapshot:
        """What a decision would see."""
        return self.state.snapshot(7.0)

    def held(self) -> list[Reservation]:
        """The standing Reservations."""
        return list(self.seen.reservations)

    def used(self, on: NodeName = N1) -> Resources:
        """What is used of a node."""
        (used,) = (node.used for node in self.seen.nodes if node.name == on)
        return used

    def members(self) -> list[tuple[str, NodeName | None]]:
        """All members of gangs, and where they are."""
        return [(m.key.name, m.node) for gang in self.seen.gangs for m in gang.members]


def test_an_empty_world_is_not_synced_until_every_stream_was_listed() -> None:
    state = ClusterState(lambda: None)
    stores = ("nodes", "pending", "bound", "pinned", "groups", "reservations", "classes")
    topologies = ("topologies", "kueue_topologies", "kai_topologies")
    for name in (*stores, "namespaces", "queues", *topologies):
        assert not state.is_synced
        store = store_of(state, name)
        store.replace(ObjectList(), 1, store.began())
    assert state.is_synced
    assert state.snapshot(3.0) == Snapshot(taken_at=3.0)


def test_a_gang_is_its_pod_group_and_the_pods_that_name_it() -> None:
    one = Observed()
    one.pend("a-1")
    one.pend("a-0")
    assert one.members() == []
    assert [m.key.name for m in one.seen.strays] == ["a-0", "a-1"]
    one.group(min_member=2, generation=3)
    (found,) = one.seen.gangs
    assert (found.key, found.uid, found.min_member) == (GangKey("ml", "a"), "g", 2)
    assert [m.key.name for m in found.members] == ["a-0", "a-1"]
    assert one.seen.strays == ()


def test_a_pod_without_a_group_is_a_gang_of_one() -> None:
    one = Observed()
    pod = one.pend("s", group="")
    (found,) = one.seen.gangs
    assert found.is_single
    assert (found.key, found.uid) == (GangKey("ml", "s", POD), pod.uid)


def test_groups_of_one_name_in_two_namespaces_are_kept_apart() -> None:
    one = Observed()
    one.group()
    other = one.group(uid="h", key=GangKey("other", "a"))
    pod = one.pend()
    assert [len(gang.members) for gang in one.seen.gangs] == [1, 0]
    assert other.uid != pod.uid


def test_a_pod_whose_label_changes_moves_to_the_other_gang() -> None:
    one = Observed()
    one.group()
    one.group("b", uid="h")
    pod = one.pend()
    one.pend(group="b")
    assert [len(gang.members) for gang in one.seen.gangs] == [0, 1]
    one.state.pods.pending.drop(pod.uid)
    assert one.members() == []


def test_what_did_not_change_is_the_same_object_in_the_next_snapshot() -> None:
    one = Observed()
    one.group()
    one.group("b", uid="h")
    one.pend()
    before = one.seen
    one.pend("b-0", group="b")
    assert one.seen.gangs[0] is before.gangs[0]
    assert one.seen.gangs[1] is not before.gangs[1]


@pytest.mark.parametrize("is_late", [True, False])
def test_a_recreated_pod_group_is_the_one_that_counts(*, is_late: bool) -> None:
    one = Observed()
    old = one.group(uid="old")
    if not is_late:
        one.state.groups.drop(old.uid)
    one.group(uid="new")
    if is_late:
        one.state.groups.drop(old.uid)
    assert [gang.uid for gang in one.seen.gangs] == ["new"]


def test_late_news_of_a_deleted_pod_group_does_not_replace_its_successor() -> None:
    one = Observed()
    old = one.group(uid="old")
    one.group(uid="new")
    one.state.groups.put(Item(old.uid, int(old.version) + 0, old))
    late = replace(old, version=str(int(old.version)))
    one.state.groups.put(Item(Uid("older"), int(late.version), replace(late, uid=Uid("older"))))
    assert [gang.uid for gang in one.seen.gangs] == ["new"]


def test_after_a_restore_of_etcd_the_world_is_what_lists_show_then() -> None:
    """The gang was smaller, its pod had no node yet, and the later one had never been made."""
    one = Observed()
    group, pod = one.group(min_member=1), one.pend()
    one.group(min_member=2)
    one.bind(pod)
    one.bind(one.pend("a-1"))
    listed: list[tuple[Store[Any], tuple[GangObject | Member, ...]]] = [
        (one.state.groups, (group,)),
        (one.state.pods.pending, (pod,)),
        (one.state.pods.bound, ()),
    ]
    for store, values in listed:
        items = [Item(value.uid, int(value.version), value) for value in values]
        store.replace(ObjectList(items), int(pod.version), store.began())
    assert [gang.min_member for gang in one.seen.gangs] == [1]
    assert one.members() == [("a-0", None)]
    assert one.used() == NOTHING


def test_a_bound_pod_uses_room_until_it_is_over_or_gone() -> None:
    one = Observed()
    one.group()
    pod = one.bind(one.pend())
    assert one.used() == ONE
    one.bind(pod, phase=Phase.SUCCEEDED)
    assert one.used() == NOTHING
    assert one.members() == [("a-0", "n1")]
    terminating = one.bind(one.pend("a-1"), terminating=True)
    assert one.used() == ONE
    one.state.pods.bound.drop(terminating.uid)
    assert one.used() == NOTHING


def test_pods_of_others_and_pinned_ones_use_room_once() -> None:
    one = Observed()
    daemon = ForeignPod(Uid("d"), N1, ONE)
    one.state.pods.pinned.put(Item(daemon.uid, one.next(), daemon))
    assert one.used() == ONE
    one.state.pods.bound.put(Item(daemon.uid, one.next(), daemon))
    assert one.used() == ONE
    one.state.pods.pinned.drop(daemon.uid)
    assert one.used() == ONE
    moved = replace(daemon, node=N2, requests=ONE + ONE)
    one.state.pods.bound.put(Item(daemon.uid, one.next(), moved))
    assert (one.used(N1), one.used(N2)) == (NOTHING, ONE + ONE)
    one.state.pods.bound.drop(daemon.uid)
    assert one.used(N2) == NOTHING


def test_a_pod_shown_as_pending_and_bound_is_bound() -> None:
    one = Observed()
    one.group()
    pod = one.pend()
    one.bind(pod)
    one.pend(role="late")
    assert one.members() == [("a-0", "n1")]
    one.state.pods.pending.drop(pod.uid)
    assert one.members() == [("a-0", "n1")]


def test_a_deleted_pod_is_gone_though_the_pending_stream_still_shows_it() -> None:
    one = Observed()
    one.group()
    pod = one.bind(one.pend())
    one.state.pods.bound.drop(pod.uid)
    assert one.members() == []
    one.pend()
    assert one.members() == []


def test_an_assumed_pod_uses_room_from_the_moment_its_binding_is_sent() -> None:
    one = Observed()
    one.group()
    pod = one.pend()
    one.state.pods.assume(pod, N2)
    assert one.members() == [("a-0", "n2")]
    assert one.used(N2) == ONE
    assert one.state.pods.unconfirmed_bindings() == (pod,)
    one.state.pods.confirm(pod.uid, 1.0)
    assert one.state.pods.unconfirmed_bindings() == ()
    one.state.pods.pending.drop(pod.uid)
    assert one.members() == [("a-0", "n2")]
    one.bind(pod, on=N2)
    assert one.used(N2) == ONE


def test_how_late_the_watch_is_shows_in_the_bindings_that_were_answered() -> None:
    one = Observed()
    one.group()
    pods = [one.pend(f"a-{i}") for i in range(2)]
    for pod in pods:
        one.state.pods.assume(pod, N1)
    assert one.state.pods.late(9.0) == 0.0  # nothing is answered
    one.state.pods.confirm(pods[0].uid, 1.0)
    one.state.pods.confirm(pods[1].uid, 1.5)
    assert one.state.pods.late(2.0) == 1.0
    assert one.state.pods.late(16.25) == 14.75  # the first will not be shown any more, it seems
    one.bind(pods[1], on=N1)
    assert one.state.pods.late(2.0) == 1.0
    one.bind(pods[0], on=N1)
    assert one.state.pods.late(2.0) == 0.0
    assert one.shown == [1.5, 1.0]


def test_a_retracted_assumption_leaves_the_pod_pending() -> None:
    one = Observed()
    one.group()
    pod = one.pend()
    one.state.pods.assume(pod, N2)
    one.state.pods.retract(pod.uid)
    one.state.pods.retract(pod.uid)
    assert one.members() == [("a-0", None)]
    assert one.used(N2) == NOTHING


def test_the_watch_knows_better_than_an_assumption() -> None:
    one = Observed()
    one.group()
    pod = one.pend()
    one.state.pods.assume(pod, N2)
    bound = one.bind(pod, on=N1)
    one.state.pods.confirm(pod.uid, 1.0)
    assert one.members() == [("a-0", "n1")]
    one.state.pods.assume(pod, N2)
    one.state.pods.bound.drop(bound.uid)
    one.state.pods.assume(pod, N2)
    assert one.members() == []
    assert one.used(N2) == NOTHING


def test_a_list_asked_for_after_a_binding_that_does_not_show_it_voids_it() -> None:
    one = Observed()
    one.group()
    pod = one.pend()
    one.state.pods.assume(pod, N1)
    one.state.pods.confirm(pod.uid, 1.0)
    one.relist_bound()
    assert one.members() == []
    assert one.used() == NOTHING


def test_a_list_asked_for_before_a_binding_was_answered_does_not_void_it() -> None:
    one = Observed()
    one.group()
    pod = one.pend()
    one.state.pods.assume(pod, N1)
    began = one.state.pods.bound.began()
    one.state.pods.confirm(pod.uid, 1.0)
    one.state.pods.bound.replace(ObjectList(), one.version, began)
    assert one.used() == ONE
    one.relist_bound()
    assert one.used() == NOTHING


def test_a_binding_answered_after_a_list_came_in_is_asked_about_again() -> None:
    one = Observed()
    one.group()
    pod = one.pend()
    one.state.pods.assume(pod, N1)
    one.relist_bound()
    one.state.pods.confirm(pod.uid, 1.0)
    assert one.state.pods.unconfirmed_bindings() == (pod,)
    assert one.used() == ONE
    one.state.pods.assume(pod, N1)
    one.state.pods.confirm(pod.uid, 1.0)
    assert one.state.pods.unconfirmed_bindings() == ()


def test_an_unanswered_binding_survives_lists() -> None:
    one = Observed()
    one.group()
    pod = one.pend()
    one.state.pods.assume(pod, N1)
    one.relist_bound()
    one.relist_bound()
    assert one.used() == ONE
    assert one.state.pods.unconfirmed_bindings() == (pod,)


def test_a_pod_that_turned_out_to_be_gone_is_forgotten() -> None:
    one = Observed()
    one.group()
    pod = one.pend()
    one.state.pods.assume(pod, N1)
    one.state.pods.forget(pod.uid)
    assert one.members() == []
    assert one.state.pods.unconfirmed_bindings() == ()


def test_what_a_write_answers_is_known_at_once_unless_it_is_older() -> None:
    one = Observed()
    one.group()
    pod = one.pend()
    one.state.pods.learn(replace(pod, version=str(one.next()), role="new"))
    one.state.pods.learn(replace(pod, version="1", role="old"))
    one.state.pods.learn(replace(pod, version=str(one.next()), node=N1))
    (found,) = one.seen.gangs[0].members
    assert (found.role, found.node) == ("new", None)
    group = one.group()
    one.state.learn_group(replace(group, version=str(one.next()), status={"phase": "Bound"}))
    known = one.state.group(GangKey("ml", "a"))
    assert known is not None
    assert known.status == {"phase": "Bound"}


def test_a_reservation_is_known_from_its_creation_to_its_deletion() -> None:
    one = Observed()
    made = reservation(gang("a").of(1, cpu=1), ("a-0", "n1"))
    one.state.reservations.put(made)
    assert one.held() == []
    made = replace(made, self_uid=Uid("r"), version=str(one.next()))
    one.state.reservations.put(made)
    assert one.held() == [made]
    one.state.reservations.drop(made)
    one.state.reservations.put(made)
    assert one.held() == []


def test_a_pod_and_a_node_deleted_in_a_gap_leave_no_ghost() -> None:
    one = Observed()
    one.group()
    kept = one.bind(one.pend("a-0"))
    one.bind(one.pend("a-1"), on=N2)
    one.next()
    one.relist_bound(kept)
    state = one.state
    items = [Item(Uid("n1"), 1, node("n1", cpu=4).made)]
    state.nodes.replace(ObjectList(items), one.version, state.nodes.began())
    assert one.members() == [("a-0", "n1")]
    assert [each.name for each in one.seen.nodes] == ["n1"]


def test_a_node_that_only_beats_wakes_nobody() -> None:
    one = Observed()
    before = one.wakes
    one.state.nodes.put(Item(Uid("n1"), one.next(), node("n1", cpu=4).made))
    assert one.wakes == before
    one.state.nodes.put(Item(Uid("n1"), one.next(), node("n1", cpu=5).made))
    assert one.wakes == before + 1


LENIENT, STRICT = 30, 0.2  # how many versions of 60 may bring rules, and how often they do


class Truth:
    """Objects as an API server has them, with every event that it sends; deaf for whole streams."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.version = 0
        self.state = ClusterState(lambda: None)
        self.objects: dict[str, dict[Uid, Item[object]]] = {
            name: {}
            for name in (
                "nodes",
                "pending",
                "bound",
                "pinned",
                "groups",
                "reservations",
                "namespaces",
            )
        }
        self.deaf: set[str] = set()

    def put(self, stream: str, uid: Uid, value: object) -> None:
        """Create or change."""
        self.version += 1
        if isinstance(value, Member | GangObject | Reservation):
            value = replace(value, version=str(self.version))
        item = Item(uid, self.version, value)
        self.objects[stream][uid] = item
        if stream not in self.deaf:
            store_of(self.state, stream).put(item)

    def drop(self, stream: str, uid: Uid) -> None:
        """Delete."""
        self.version += 1
        if self.objects[stream].pop(uid, None) and stream not in self.deaf:
            store_of(self.state, stream).drop(uid)

    def list(self, state: ClusterState, stream: str) -> None:
        """Let a World list one stream."""
        store = store_of(state, stream)
        store.replace(ObjectList(self.objects[stream].values()), self.version, store.began())

    def happen(self) -> None:
        """Let one thing happen."""
        chance, n = self.chance, self.chance.randrange(5)
        on = NodeName(f"n{chance.randrange(3)}")
        pod = replace(
            member(f"p{n}", shape(cpu=chance.randrange(3))), group=chance.choice(["", "a", "b"])
        )
        uid = Uid(f"pod-{n}")
        pod = replace(pod, uid=uid, phase=chance.choice(list(Phase)))
        # Rules come and go: half of the time, nobody has one.
        is_strict = self.version % 60 < LENIENT and chance.random() < STRICT
        apart = (term("zone", peers(app="x")),) if is_strict else ()
        marks = labels(app=chance.choice("xy"))
        pod = replace(
            pod, labels=marks, shape=replace(pod.shape, rules=InterPodRules(anti_affinity=apart))
        )
        match chance.randrange(10):
            case 0:
                self.put("nodes", Uid(f"node-{on}"), node(on, cpu=n).made)
                self.put("namespaces", Uid(f"space-{n}"), Namespace(f"s{n}", marks))
            case 1:
                self.put("groups", Uid(f"group-{n % 2}"), _a_group("ab"[n % 2], n))
            case 2 | 3 if uid not in self.objects["bound"]:
                self.put("pending", uid, pod)
            case 4 | 5:
                self.drop("pending", uid)
                self.put("bound", uid, replace(pod, node=on))
            case 6:
                other = Uid(f"other-{n}")
                foreign_pod = ForeignPod(other, on, resources(cpu=n), "ml", marks, apart)
                self.put("bound", other, foreign_pod)
            case 7:
                other = Uid(f"pinned-{n}")
                self.put("pinned", other, ForeignPod(other, on, resources(cpu=n), "ml", marks))
            case 8:
                stream = chance.choice(sorted(self.objects))
                self.deaf ^= {stream}
                if stream not in self.deaf:
                    self.list(self.state, stream)
            case _:
                stream = chance.choice(["nodes", "groups", "pinned", "namespaces"])
                for gone in list(self.objects[stream])[:1]:
                    self.drop(stream, gone)
                    self.retire(stream, gone)

    def retire(self, stream: str, uid: Uid) -> None:
        """A uid never comes back: pretend that its name is a new one from now on."""
        store = store_of(self.state, stream)
        store._gone.pop(uid, None)


def _a_group(name: str, size: int) -> GangObject:
    uid = Uid(f"group-{'ab'.index(name)}")
    return GangObject(GangKey("ml", name), uid, 1, generation=size)


@pytest.mark.parametrize("seed", range(60))
def test_a_world_that_followed_events_shows_what_a_fresh_one_lists(seed: int) -> None:
    truth = Truth(seed)
    for _ in range(120):
        truth.happen()
        truth.state.snapshot(0.0)
    fresh = ClusterState(lambda: None)
    for stream in truth.objects:
        if stream in truth.deaf:
            truth.list(truth.state, stream)
        truth.list(fresh, stream)
    assert _without_memory(truth.state.snapshot(0.0)) == _without_memory(fresh.snapshot(0.0))
    assert _asks(truth) is bool(fresh.snapshot(0.0).placed_pods)
    nodes: tuple[Node, ...] = fresh.snapshot(0.0).nodes
    assert all(node.used == _used(truth, node.name) for node in nodes)


def _without_memory(snapshot: Snapshot) -> Snapshot:
    """No list tells of members that finished and are gone."""
    return replace(snapshot, gangs=tuple(replace(gang, finished=()) for gang in snapshot.gangs))


def _asks(truth: Truth) -> bool:
    """Whether somebody has a node while somebody has a rule, counted again."""
    pods = [item.value for item in (truth.objects["pending"] | truth.objects["bound"]).values()]
    ours = [pod for pod in pods if isinstance(pod, Member) and not pod.is_over]
    others = [pod for pod in pods if isinstance(pod, ForeignPod)]
    rules = any(one.shape.rules != NO_RULES for one in ours) or any(
        one.anti_affinity for one in others
    )
    return rules and bool(others or any(one.node for one in ours))


def _used(truth: Truth, on: NodeName) -> Resources:
    """What a node's pods use, counted again."""
    bound, pinned = truth.objects["bound"], truth.objects["pinned"]
    total = []
    for uid, item in (pinned | bound).items():
        value = item.value
        if isinstance(value, ForeignPod) and value.node == on:
            total.append(value.requests)
        if isinstance(value, Member) and value.node == on and not value.is_over:
            total.append(value.shape.requests)
        assert uid
    return Resources.total(total)


def _finishing(phases: str) -> tuple[ClusterState, FakeCluster, Watch]:
    """A gang that has started; one letter per member: r runs, s has succeeded."""
    cluster = FakeCluster()
    asked = gang("a").of(len(phases), cpu=1).bound_on(*("n1" for _ in phases))
    letters = {"r": Phase.RUNNING, "s": Phase.SUCCEEDED}
    named = {f"a-{i}": letters[letter] for i, letter in enumerate(phases)}
    cluster.add(node("n1", cpu=8), asked.where(lambda m: replace(m, phase=named[m.key.name])))
    state = ClusterState(lambda: None)
    return state, cluster, Watch(cluster, state)


def _finished(state: ClusterState) -> int:
    return sum(len(gang.finished) for gang in state.snapshot(0.0).gangs)


def test_members_that_succeeded_and_are_gone_still_count_while_others_do() -> None:
    state, cluster, watch = _finishing("rrs")
    assert _finished(state) == 0
    cluster.delete_pod("a-2")
    cluster.change_pod("a-1", phase=Phase.SUCCEEDED)
    cluster.delete_pod("a-1")
    watch.catch_up()
    assert _finished(state) == 2
    cluster.change_pod("a-0", phase=Phase.SUCCEEDED)
    watch.catch_up()
    assert _finished(state) == 2
    cluster.delete_pod("a-0")
    watch.catch_up()
    assert _finished(state) == 0
    cluster.add_pod(replace(member("b-0", shape(cpu=1)), group="a", node=NodeName("n1")))
    watch.catch_up()
    assert _finished(state) == 0, "the PodGroup is used again"


def test_a_pod_group_made_anew_knows_nobody_that_is_gone() -> None:
    state, cluster, watch = _finishing("rrs")
    cluster.delete_pod("a-2")
    watch.catch_up()
    assert _finished(state) == 1
    cluster.delete_group("a")
    cluster.add_group(gang("a").needing(3))
    watch.catch_up()
    assert _finished(state) == 0


def test_what_earlier_runs_left_is_no_member() -> None:
    state, cluster, watch = _finishing("sss")
    cluster.delete_pod("a-2")
    again = replace(member("b-0", shape(cpu=1)), group="a", created=9.0)
    cluster.add_pod(again)
    watch.catch_up()
    (seen,) = state.snapshot(0.0).gangs
    assert [one.key.name for one in seen.members] == ["b-0"]
    assert seen.finished == ()
    cluster.change_pod("b-0", node=NodeName("n1"))
    watch.catch_up()
    assert _finished(state) == 0, "it is forgotten"


def test_members_that_were_lost_do_not_count_as_finished() -> None:
    state, cluster, watch = _finishing("rrs")
    cluster.delete_pod("a-0")
    cluster.change_pod("a-1", phase=Phase.FAILED)
    cluster.delete_pod("a-1")
    watch.catch_up()
    assert _finished(state) == 0


def test_a_restart_recalls_from_the_status_what_had_finished() -> None:
    state, cluster, watch = _finishing("rrs")
    cluster.delete_pod("a-2")
    key = gang("a").key
    cluster.groups[key] = replace(cluster.groups[key], succeeded_before=1)
    state = ClusterState(lambda: None)
    watch = Watch(cluster, state)
    assert _finished(state) == 1
    cluster.change_pod("a-1", phase=Phase.SUCCEEDED)
    cluster.delete_pod("a-1")
    watch.catch_up()
    assert _finished(state) == 2


def test_a_gang_is_known_as_settled_while_it_is() -> None:
    one = Observed()
    group = one.group(min_member=1)
    pod = one.pend()
    assert one.seen.settled == frozenset()
    bound = one.bind(pod)
    assert one.seen.settled == {group.uid}
    one.bind(bound, phase=Phase.FAILED)
    assert one.seen.settled == frozenset()
    one.state.groups.drop(group.uid)
    assert one.seen.settled == frozenset()


def test_what_has_not_changed_is_the_same_object_in_the_next_snapshot() -> None:
    one = Observed()
    one.group()
    one.pend()
    before = one.seen
    assert one.seen == before
    assert one.seen.gangs is before.gangs
    one.group("b", uid="h")
    assert one.seen.gangs[0] is before.gangs[0]
    assert one.seen.nodes is before.nodes


def _at_rest() -> Observed:
    """A World whose only gang has finished, with all said of it."""
    one = Observed()
    one.group()
    one.bind(one.pend(), phase=Phase.SUCCEEDED)
    (gang_now,) = one.seen.gangs
    one.state.rest(gang_now)
    one.group("b", uid="h")
    assert [gang.key.name for gang in one.seen.gangs] == ["b"]
    return one


def test_a_gang_at_rest_comes_back_with_its_group() -> None:
    one = _at_rest()
    one.group(min_member=1)
    assert [gang.key.name for gang in one.seen.gangs] == ["a", "b"]


def test_a_gang_at_rest_comes_back_with_a_pod() -> None:
    one = _at_rest()
    one.pend("a-1")
    assert [gang.key.name for gang in one.seen.gangs] == ["a", "b"]


def test_a_gang_at_rest_comes_back_with_a_reservation() -> None:
    one = _at_rest()
    held = replace(reservation(gang("a").of(1, cpu=1), ("a-0", "n1")), self_uid=Uid("r"))
    one.state.reservations.store.put(Item(Uid("r"), one.next(), held))
    assert [each.key.name for each in one.seen.gangs] == ["a", "b"]


def test_a_gang_for_which_a_reservation_stands_does_not_rest() -> None:
    one = Observed()
    one.group()
    one.bind(one.pend(), phase=Phase.SUCCEEDED)
    held = replace(reservation(gang("a").of(1, cpu=1), ("a-0", "n1")), self_uid=Uid("r"))
    one.state.reservations.store.put(Item(Uid("r"), one.next(), held))
    (gang_now,) = one.seen.gangs
    one.state.rest(gang_now)
    one.group("b", uid="h")
    assert [each.key.name for each in one.seen.gangs] == ["a", "b"]


def test_a_gang_with_the_record_of_its_start_does_not_rest_until_it_goes() -> None:
    """While pods of it hold room, it is charged, whatever their labels say."""
    one = Observed()
    one.group()
    one.bind(one.pend(), phase=Phase.SUCCEEDED)
    record = QueueRecord("ml", Uid("q"), 0.0)
    spent = replace(reservation(gang("a").of(1, cpu=1)), record=record, self_uid=Uid("r"))
    one.state.reservations.store.put(Item(Uid("r"), one.next(), spent))
    for names in (["a", "b"], ["b"]):
        (gang_now,) = (gang for gang in one.seen.gangs if gang.key.name == "a")
        one.state.rest(gang_now)
        one.group("b", uid="h")
        assert [gang.key.name for gang in one.seen.gangs] == names
        one.state.reservations.drop(spent)


def test_a_pod_that_a_record_names_has_the_role_with_which_it_joined() -> None:
    one = Observed()
    one.group()
    pods = [one.bind(one.pend(name)) for name in ("a-0", "a-1")]
    roles = ((pods[0].uid, "driver"),)
    spent = replace(reservation(gang("a").of(1, cpu=1)), self_uid=Uid("r"), roles=roles)
    one.state.reservations.store.put(Item(Uid("r"), one.next(), spent))
    (gang_now,) = one.seen.gangs
    assert [member.role for member in gang_now.members] == ["driver", ""]
    one.state.reservations.drop(spent)
    (gang_now,) = one.seen.gangs
    assert [member.role for member in gang_now.members] == ["", ""]


def test_a_gang_that_has_changed_since_it_was_looked_at_does_not_rest() -> None:
    one = Observed()
    one.group()
    one.bind(one.pend(), phase=Phase.SUCCEEDED)
    (gang_now,) = one.seen.gangs
    one.pend("a-1")
    one.state.rest(gang_now)
    assert [len(gang.members) for gang in one.seen.gangs] == [2]


def test_a_gang_has_the_priority_of_its_class_once_there_is_one() -> None:
    one = Observed()
    one.group(priority_class="high")
    one.pend(priority=3)
    assert [(g.class_value, g.priority) for g in one.seen.gangs] == [(None, 3)]
    wakes = one.wakes
    one.state.classes.put(Item(Uid("c"), one.next(), PriorityClass("high", 9)))
    one.state.classes.put(Item(Uid("d"), one.next(), PriorityClass("other", 5)))
    assert one.wakes == wakes + 2
    assert [(g.class_value, g.priority) for g in one.seen.gangs] == [(9, 9)]
    one.state.classes.drop(Uid("c"))
    assert [g.priority for g in one.seen.gangs] == [3]


def test_topologies_are_shown_by_name_and_wake_when_they_change() -> None:
    one = Observed()
    wakes = one.wakes
    for name, uid in (("b", "t-1"), ("a", "t-2"), ("b", "t-3")):
        one.state.topologies.put(Item(Uid(uid), one.next(), Topology(name, (uid,))))
    assert one.seen.topologies == (Topology("a", ("t-2",)), Topology("b", ("t-3",)))
    assert one.wakes == wakes + 3
    one.state.topologies.put(Item(Uid("t-2"), one.next(), Topology("a", ("t-2",))))
    assert one.wakes == wakes + 3
    for uid in ("t-1", "t-2", "t-3"):
        one.state.topologies.drop(Uid(uid))
    assert not any(one.seen.topologies)


def test_topologies_of_other_projects_come_after_those_of_tutti() -> None:
    """Of one name and group, the latest counts; those of several groups stay apart."""
    one = Observed()
    kueue, kai = (Topology("a", ("rack",), group) for group in ("kueue.x-k8s.io", "kai.scheduler"))
    own = Topology("b", ("rack",))
    one.state.kueue_topologies.put(Item(Uid("t-1"), one.next(), kueue))
    one.state.kai_topologies.put(Item(Uid("t-2"), one.next(), kai))
    one.state.topologies.put(Item(Uid("t-3"), one.next(), own))
    assert one.seen.topologies == (own, kai, kueue)
    assert [topology.title for topology in one.seen.topologies] == [
        "b",
        "a of kai.scheduler",
        "a of kueue.x-k8s.io",
    ]


def test_budgets_are_shown_by_name_and_wake_when_they_change() -> None:
    one = Observed()
    wakes = one.wakes
    for name, uid, allowed in (("b", "b-1", 1), ("a", "b-2", 2), ("b", "b-3", 3)):
        one.state.budgets.put(Item(Uid(uid), one.next(), budget(name, allowed)))
    assert one.seen.budgets == (budget("a", 2), budget("b", 3))
    assert one.wakes == wakes + 3
    one.state.budgets.put(Item(Uid("b-2"), one.next(), budget("a", 2)))
    assert one.wakes == wakes + 3


def test_jobs_are_shown_once_they_are_listed_and_wake_when_they_change() -> None:
    one = Observed()

    def shown() -> Mapping[JobKey, Job] | None:
        return one.seen.jobs

    def put(uid: str, failures_left: int) -> None:
        one.state.jobs.put(Item(Uid(uid), one.next(), Job("ml", "a", failures_left)))

    assert shown() is None
    listed = ObjectList([Item(Uid("j-1"), 1, Job("ml", "a", 3))])
    one.state.jobs.replace(listed, 1, one.state.jobs.began())
    assert shown() == {}
    one.group()
    one.pend("a-0", owner=Owner("Job", "a", "batch"))
    one.pend("a-1", owner=Owner("Job", "unknown", "batch"))
    assert shown() == {("ml", "a"): Job("ml", "a", 3)}
    wakes = one.wakes
    put("j-1", 3)
    assert one.wakes == wakes
    put("j-1", 2)
    assert one.wakes == wakes + 1
    assert shown() == {("ml", "a"): Job("ml", "a", 2)}
    one.state.jobs.drop(Uid("j-1"))
    assert shown() == {}


@pytest.mark.parametrize("uids", [("a", "b"), ("b", "a")])
def test_of_jobs_of_one_name_the_latest_counts_in_whatever_order_they_go(
    uids: tuple[str, str],
) -> None:
    one = Observed()
    one.state.jobs.replace(ObjectList(), 1, one.state.jobs.began())
    one.group()
    one.pend("a-0", owner=Owner("Job", "a", "batch"))
    for uid, left in (("a", 1), ("b", 2)):
        one.state.jobs.put(Item(Uid(uid), one.next(), Job("ml", "a", left)))
    assert one.seen.jobs == {("ml", "a"): Job("ml", "a", 2)}
    first, last = uids
    one.state.jobs.drop(Uid(first))
    assert one.seen.jobs == {("ml", "a"): Job("ml", "a", 2 if last == "b" else 1)}
    one.state.jobs.drop(Uid(last))
    assert one.seen.jobs == {}


def test_queues_are_shown_by_name_with_the_namespaces_that_they_choose_from() -> None:
    one = Observed()

    def shown() -> tuple[tuple[Queue, ...], tuple[Namespace, ...]]:
        return one.seen.queues, one.seen.namespaces

    one.state.namespaces.put(Item(Uid("ns"), one.next(), space("ml", team="a")))
    assert shown() == ((), ())
    wakes = one.wakes
    for name, uid in (("b", "q-1"), ("a", "q-2"), ("b", "q-3")):
        one.state.queues.put(Item(Uid(uid), one.next(), QueueObject(Queue(name, Uid(uid)))))
    assert one.wakes == wakes + 3
    # Of one that was deleted and created again, a late watch may show both.
    queues = (Queue("a", Uid("q-2")), Queue("b", Uid("q-3")))
    assert shown() == (queues, (space("ml", team="a"),))
    one.state.queues.put(Item(Uid("q-2"), one.next(), QueueObject(Queue("a", Uid("q-2")))))
    assert one.wakes == wakes + 3
    for uid in ("q-1", "q-2", "q-3"):
        one.state.queues.drop(Uid(uid))
    assert shown() == ((), ())


def test_a_class_that_a_gang_does_not_name_is_nothing_to_it() -> None:
    one = Observed()
    one.group()
    before = one.seen.gangs
    one.state.classes.put(Item(Uid("c"), one.next(), PriorityClass("", 9)))
    assert one.seen.gangs is before


def test_a_reservation_that_somebody_deleted_is_kept_in_mind() -> None:
    one = Observed()
    group = one.group()
    made = reservation(gang("a").of(1), slots=[SlotReservation(NodeName("n1"), "worker", 1)])
    held = replace(made, uid=group.uid, self_uid=Uid("r"))
    one.state.reservations.store.put(Item(Uid("r"), one.next(), held))
    assert not one.seen.lost_reservations
    one.state.reservations.store.drop(Uid("r"))
    assert one.seen.lost_reservations == {group.uid}


def test_a_spent_reservation_is_a_record_and_for_all_else_as_one_deleted() -> None:
    """The gang comes to rest, and slots that were given back are kept in mind."""
    one = Observed()
    group = one.group()
    record = QueueRecord("vision", Uid("q"), 0.0)
    slots = (SlotReservation(NodeName("n1"), "worker", 1),)
    made = reservation(gang("a").of(1), slots=slots)
    held = replace(made, uid=group.uid, self_uid=Uid("r"), record=record)
    one.state.reservations.store.put(Item(Uid("r"), one.next(), held))
    assert (one.held(), one.seen.start_records) == ([held], ())
    assert one.state.reservations.spent(group.uid) is None
    spent = replace(held, slots=())
    one.state.reservations.store.put(Item(Uid("r"), one.next(), spent))
    assert (one.held(), one.seen.start_records) == ([], (spent,))
    assert one.seen.lost_reservations == {group.uid}
    assert one.seen.records == {group.uid: record}
    assert one.state.reservations.spent(group.uid) == spent
    one.state.reservations.store.put(Item(Uid("r"), one.next(), held))
    assert (one.held(), one.seen.start_records) == ([held], ())
    assert one.state.reservations.spent(group.uid) is None
    assert not one.seen.lost_reservations


def test_a_record_is_needed_while_queues_exist_and_a_pod_that_it_names_holds_room() -> None:
    one = Observed()
    reservations = one.state.reservations
    group = one.group()
    record = QueueRecord("vision", Uid("q"), 0.0)
    bare = replace(reservation(gang("a").of(1)), uid=group.uid, self_uid=Uid("r"))
    bound = one.bind(one.pend("a-0"))
    spent = replace(bare, record=record, charged=(bound.uid,))
    reservations.store.put(Item(Uid("r"), one.next(), spent))
    assert not reservations.needs_record(spent)
    one.state.queues.put(Item(Uid("q"), one.next(), QueueObject(Queue("vision", Uid("q")))))
    assert reservations.needs_record(spent)
    assert not reservations.needs_record(bare)
    assert not reservations.needs_record(replace(spent, charged=())), "it names no pod"
    one.state.groups.drop(group.uid)
    assert reservations.needs_record(spent), "a pod of a PodGroup that is gone holds room still"
    assert reservations.unneeded_records() == []
    reservations.store.drop(Uid("r"))
    assert reservations.lost_records() == (spent,), "somebody else has deleted it"
    reservations.store.put(Item(Uid("r2"), one.next(), replace(spent, self_uid=Uid("r2"))))
    assert reservations.lost_records() == ()
    reservations.store.drop(Uid("r2"))
    one.state.pods.bound.drop(bound.uid)
    assert reservations.lost_records() == (), "nobody holds room any more"
    last = replace(spent, self_uid=Uid("r3"))
    reservations.store.put(Item(Uid("r3"), one.next(), last))
    assert reservations.unneeded_records() == [last]
