"""Pods of Spark join the PodGroup of their application once it is there, and wait for it."""

from dataclasses import replace
from typing import Any

from tutti.kube.gang_sources import GangObject
from tutti.kube.list_watch import Item
from tutti.model.applications import ApplicationPod
from tutti.model.cluster import Member
from tutti.model.keys import POD, GangKey, NodeName, Uid
from tutti.state.applications import UNREAD, UNSEEN
from tutti.state.cluster_state import ClusterState

from ...harness.builders import NAMESPACE, gang, member, reservation, shape

APP = "spark-1"
MARKS = (("tutti.dev/executors", "2"),)


class Observed:
    """A World that declares gangs, or does not, fed by hand."""

    def __init__(self, *, is_declaring: bool = True) -> None:
        self.state = ClusterState(lambda: None, is_declaring=is_declaring)
        self.version = 0

    def pod(self, name: str, role: str, **changes: object) -> Member:
        """Show a pod of the application."""
        self.version += 1
        marks = changes.pop("marks", ())
        spark = ApplicationPod(APP, role, annotations=marks)  # type: ignore[arg-type]
        made = replace(member(name, shape(cpu=1), role=role), application=spark)
        made = replace(made, version=str(self.version), **changes)  # type: ignore[arg-type]
        store: Any = self.state.pods.pending if made.node is None else self.state.pods.bound
        store.put(Item(made.uid, self.version, made))
        return made

    def group(self, owner: Uid | None = None, **changes: object) -> GangObject:
        """Show the application's PodGroup."""
        self.version += 1
        gang_object = GangObject(GangKey(NAMESPACE, APP), Uid("g"), 2, version=str(self.version))
        gang_object = replace(gang_object, owner=owner, **changes)  # type: ignore[arg-type]
        self.state.learn_group(gang_object)
        return gang_object

    def gangs(self) -> dict[GangKey, list[str]]:
        """The members' names by gang."""
        found = self.state.snapshot(0.0).gangs
        return {gang.key: [member.key.name for member in gang.members] for gang in found}

    def waiting(self) -> dict[str, str]:
        """Why which pods wait to be configured."""
        gangs = self.state.snapshot(0.0).gangs
        return {
            m.key.name: m.size_unknown_because
            for g in gangs
            for m in g.members
            if m.size_unknown_because
        }


def alone(name: str) -> GangKey:
    return GangKey(NAMESPACE, name, POD)


WHOLE = GangKey(NAMESPACE, APP)


def test_pods_join_the_podgroup_of_their_application_and_leave_it_with_it() -> None:
    seen = Observed()
    driver = seen.pod("drv", "driver")
    seen.pod("exec-1", "executor")
    assert seen.gangs() == {alone("drv"): ["drv"], alone("exec-1"): ["exec-1"]}
    assert seen.waiting() == {"drv": UNREAD}
    assert [one.key.name for one in seen.state.undeclared()] == ["drv"]
    seen.group(owner=driver.uid)
    seen.pod("exec-2", "executor", node=NodeName("n1"))
    assert seen.gangs() == {WHOLE: ["drv", "exec-1", "exec-2"]}
    assert seen.waiting() == {}
    assert not seen.state.undeclared()
    seen.state.groups.drop(Uid("g"))
    assert set(seen.gangs()) == {alone("drv"), alone("exec-1"), alone("exec-2")}
    assert seen.waiting() == {"drv": UNREAD}


def test_a_podgroup_that_somebody_made_will_do() -> None:
    seen = Observed()
    seen.group()
    seen.pod("drv", "driver")
    assert seen.gangs() == {WHOLE: ["drv"]}
    assert not seen.state.undeclared()


def test_the_podgroup_of_another_driver_is_not_joined_by_this_one() -> None:
    """It goes when the garbage collector has seen that its own is gone."""
    seen = Observed()
    seen.group(owner=Uid("gone"))
    seen.pod("drv", "driver")
    assert seen.waiting() == {"drv": UNREAD}
    assert seen.gangs()[alone("drv")] == ["drv"]


def test_where_no_gangs_are_declared_nobody_waits() -> None:
    seen = Observed(is_declaring=False)
    seen.pod("drv", "driver")
    seen.pod("exec-1", "executor", marks=MARKS)
    assert seen.waiting() == {}
    assert not seen.state.undeclared()


def test_only_a_pod_that_may_still_get_a_node_waits() -> None:
    seen = Observed()
    seen.pod("drv", "driver", node=NodeName("n1"))
    seen.pod("exec-1", "executor", marks=MARKS, terminating=True)
    assert seen.waiting() == {}


def test_a_gated_driver_is_not_read_and_says_so() -> None:
    seen = Observed()
    seen.pod("drv", "driver", gates=("spark.apache.org/resources",))
    assert not seen.state.undeclared()
    assert "scheduling gates (spark.apache.org/resources)" in seen.waiting()["drv"]
    seen.pod("drv", "driver")
    assert [one.key.name for one in seen.state.undeclared()] == ["drv"]


def test_of_executors_that_declare_the_oldest_is_asked() -> None:
    seen = Observed()
    for name, created in (("exec-1", 2.0), ("exec-2", 1.0), ("exec-3", 3.0)):
        seen.pod(name, "executor", marks=MARKS, created=created)
    assert [one.key.name for one in seen.state.undeclared()] == ["exec-2"]
    assert set(seen.waiting()) == {"exec-1", "exec-2", "exec-3"}


def test_a_reason_is_kept_until_the_pod_goes() -> None:
    seen = Observed()
    driver = seen.pod("drv", "driver")
    before = seen.state.snapshot(0.0)
    seen.state.explain(driver.uid, "no ConfigMap")
    explained = seen.state.snapshot(0.0)
    assert seen.waiting() == {"drv": "no ConfigMap"}
    seen.state.explain(driver.uid, "no ConfigMap")
    assert seen.state.snapshot(0.0) == explained != before
    seen.pod("drv", "driver", priority=1)
    assert seen.waiting() == {"drv": "no ConfigMap"}
    seen.state.pods.forget(driver.uid)
    seen.state.explain(driver.uid, "too late")
    assert seen.gangs() == {}


def test_executors_whose_room_is_held_do_not_start_alone_before_their_podgroup_is_seen() -> None:
    """A new leader may know the Reservation first."""
    seen = Observed(is_declaring=False)
    seen.pod("exec-1", "executor")
    held = replace(reservation(gang(APP).of(0)), self_uid=Uid("r"), version="1")
    seen.state.reservations.put(held)
    assert seen.waiting() == {"exec-1": UNSEEN}
    seen.pod("exec-2", "executor")
    assert set(seen.waiting()) == {"exec-1", "exec-2"}
    seen.state.reservations.drop(held)
    assert seen.waiting() == {}
    seen.state.reservations.put(replace(held, self_uid=Uid("r-2"), version="2"))
    seen.group()
    assert seen.waiting() == {}
