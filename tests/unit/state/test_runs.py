"""Gangs whose controllers make their pods again, and gangs whose pods are not made yet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tutti.gang.demand import count_members
from tutti.kube import wire
from tutti.kube.gang_sources import GangObject
from tutti.kube.gang_sources.volcano import KIND, PodGroup, decode_group
from tutti.kube.list_watch import Item
from tutti.model.cluster import Phase
from tutti.model.keys import GangKey, NodeName, Uid
from tutti.state.cluster_state import ClusterState

from ...harness.builders import NAMESPACE, member, shape

KEY = GangKey(NAMESPACE, "train", KIND.api)
NODE = NodeName("n1")


class Observed:
    """A cluster state that is fed by hand."""

    def __init__(self) -> None:
        self.state = ClusterState(lambda: None)
        self.version = 0

    def pod(self, name: str, **changes: Any) -> Uid:
        """Show a pod that names the group."""
        self.version += 1
        made = replace(member(name, shape(cpu=1)), group="train", group_kind=KIND.api)
        made = replace(made, version=str(self.version), **changes)
        store: Any = self.state.pods.pending if made.node is None else self.state.pods.bound
        store.put(Item(made.uid, self.version, made))
        return made.uid

    def group(self, uid: str = "u", **changes: Any) -> GangObject:
        """Show a group of that name."""
        self.version += 1
        gang_object = GangObject(KEY, Uid(uid), 2, version=str(self.version), **changes)
        self.state.learn_group(gang_object)
        return gang_object

    def members(self) -> list[str]:
        """The members' names."""
        return [member.key.name for g in self.state.snapshot(0.0).gangs for member in g.members]

    def strays(self) -> list[str]:
        """The pods that have a node, or wait for a group, and are no members."""
        return [pod.key.name for pod in self.state.snapshot(0.0).strays]

    def waiting(self) -> list[Uid]:
        """The gangs without pods that wait for room."""
        return [group.uid for group, _ in self.state.awaiting_room()]


def test_a_pod_of_the_old_run_is_no_member_of_the_new() -> None:
    """Whether it runs or waits: it is bound no more, and the new run does not rely on it."""
    seen = Observed()
    seen.group()
    seen.pod("old-bound", node=NODE)
    seen.pod("old-waiting")
    assert seen.members() == ["old-bound", "old-waiting"]
    seen.pod("new", run=1)
    assert seen.members() == ["new"]


def test_a_forged_status_hides_no_lost_member() -> None:
    """After a restart nothing else would say that the member is lost."""
    metadata = {"namespace": NAMESPACE, "name": "train", "uid": "u", "resourceVersion": "1"}
    status = {"phase": "Running", "succeeded": 1, "members": {"succeeded": 1}}
    body = {"metadata": metadata, "spec": {"minMember": 2}, "status": status}
    group = decode_group(wire.parse_one(body, PodGroup))
    assert group is not None
    seen = Observed()
    seen.state.learn_group(group)
    seen.pod("a", node=NODE)
    (gang,) = seen.state.snapshot(0.0).gangs
    assert (gang.finished, count_members(gang).missing) == ((), 1)


def test_a_pod_of_the_old_run_that_has_a_node_is_still_shown() -> None:
    """It is charged, and its volumes are attached."""
    seen = Observed()
    group = seen.group()
    uid = seen.pod("old-bound", node=NODE)
    seen.pod("old-waiting")
    seen.pod("old-over", node=NODE, phase=Phase.FAILED)
    assert seen.strays() == []
    seen.pod("new", run=1)
    assert (seen.members(), seen.strays()) == (["new", "old-over"], ["old-bound"])
    seen.state.gang_objects[KIND.api].drop(group.uid)
    assert seen.strays() == ["new", "old-bound", "old-over", "old-waiting"]
    seen.group("u2")
    seen.state.pods.bound.drop(uid)
    assert seen.strays() == []


def test_a_finished_gang_is_shown_while_pods_of_an_older_run_have_a_node() -> None:
    """Else nothing would be charged for them."""
    seen = Observed()
    seen.group()
    uid = seen.pod("old", node=NODE)
    seen.pod("new", node=NODE, phase=Phase.SUCCEEDED, run=1)
    (gang,) = seen.state.snapshot(0.0).gangs
    seen.state.rest(gang)
    assert seen.members() == ["new"]
    seen.state.pods.bound.drop(uid)
    (gang,) = seen.state.snapshot(0.0).gangs
    seen.state.rest(gang)
    assert seen.members() == []


def test_a_pod_of_the_old_run_that_ended_counts_on() -> None:
    """A job that is resumed does not run again what has succeeded."""
    seen = Observed()
    seen.group()
    seen.pod("old", node=NODE, phase=Phase.SUCCEEDED)
    seen.pod("new", run=6)
    assert seen.members() == ["new", "old"]


def test_a_pod_group_that_is_made_anew_keeps_the_pods_that_live() -> None:
    """RestartTask makes another PodGroup of the name, and the other tasks run on."""
    seen = Observed()
    old = seen.group()
    seen.pod("a", node=NODE)
    new = seen.group("u2")
    seen.state.gang_objects[KIND.api].drop(old.uid)  # the news of its deletion comes late
    (gang,) = seen.state.snapshot(0.0).gangs
    assert (gang.uid, seen.members()) == (new.uid, ["a"])


def test_a_gang_waits_for_room_until_it_is_told_or_has_a_pod() -> None:
    seen = Observed()
    seen.group(job_awaiting_room=("train", Uid("j")))
    assert seen.waiting() == ["u"]
    uid = seen.pod("a")
    assert not seen.waiting()
    seen.state.pods.forget(uid)
    assert seen.waiting() == ["u"]
    seen.group()
    assert not seen.waiting()


def test_a_gang_whose_pods_are_all_over_waits_for_room() -> None:
    """They stay when a job is aborted and resumed."""
    seen = Observed()
    seen.pod("old", node=NODE, phase=Phase.SUCCEEDED)
    seen.group(job_awaiting_room=("train", Uid("j")))
    assert seen.waiting() == ["u"]
    seen.pod("other", node=NODE)
    assert not seen.waiting()


def test_a_job_is_claimed_for_as_long_as_its_group_is_there() -> None:
    seen = Observed()
    group = seen.group(job_awaiting_room=("train", Uid("j")))

    def is_own() -> list[bool]:
        return [seen.state.is_own_job(gang) for gang in seen.state.snapshot(0.0).gangs]

    assert is_own() == [False]
    seen.state.rest(seen.state.snapshot(0.0).gangs[0])
    assert is_own() == []
    seen.state.claim_job(group)
    assert is_own() == [True]  # shown again, so that its status is written
    seen.state.rest(seen.state.snapshot(0.0).gangs[0])
    seen.state.claim_job(group)
    assert is_own() == []  # nothing new
    seen.group("u2", created=1.0)
    assert is_own() == [False]


def test_a_gang_that_goes_waits_for_no_room() -> None:
    seen = Observed()
    seen.group(job_awaiting_room=("train", Uid("j")), terminating=True)
    assert not seen.waiting()
    group = seen.group(job_awaiting_room=("train", Uid("j")))
    assert seen.waiting() == [group.uid]
    seen.state.gang_objects[KIND.api].drop(group.uid)
    assert not seen.waiting()


def test_a_pod_of_the_old_run_is_no_member_of_a_podgroup_of_tutti_either() -> None:
    seen = Observed()
    key = GangKey(NAMESPACE, "train")
    seen.state.learn_group(GangObject(key, Uid("t"), 2, version="50"))
    seen.pod("old", group_kind=key.kind, node=NODE)
    seen.pod("new", group_kind=key.kind, run=1)
    assert (seen.members(), seen.strays()) == (["new"], ["old"])
