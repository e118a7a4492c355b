"""What people are told, and how little is written for it.

`kubectl get` and `kubectl describe` tell the whole story; a settled cluster is left alone.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from ..harness.rig import Rig
from .places import Place, kind_of, written

if TYPE_CHECKING:
    from collections.abc import Iterator

QUIET = 5.0
STATUS = "patch podgroups/status"


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """One cluster for all of these."""
    with Rig.start() as started:
        yield started


@pytest.fixture
def place(rig: Rig) -> Place:
    """A namespace and nodes of a test's own."""
    return Place(rig)


def test_kubectl_tells_the_story_of_a_gang_that_runs(place: Place) -> None:
    """In one row, and at length."""
    place.nodes(2)
    place.group("train", 4)
    place.members("train", 4, cpu=2)
    place.until_bound("train", 4)
    place.rig.until(lambda: _phase(place, "train") == "Running", "the gang runs")
    row = place.rig.plane.kubectl("get", "ptg", "-n", place.name).splitlines()[1].split()
    assert row[:-1] == ["train", "Running", "4", "4", "4", "4", "Reserved"]
    told = place.rig.plane.kubectl("describe", "ptg", "-n", place.name, "train")
    for words in (
        "every needed member has its node",
        "4 of 4 members are bound",
        "no needed member is missing",
    ):
        assert words in told, told


def test_kubectl_tells_the_story_of_a_gang_that_waits(place: Place) -> None:
    """What it asks for, what there is and what is short: in the row, at length, as an Event."""
    place.nodes(2, gpus=4)
    place.group("train", 12)
    place.members("train", 12, gpu=1)
    said = place.until_waiting("train", "NotEnoughRoom")
    assert "12 members need 1 nvidia.com/gpu each" in said
    assert "short 4" in said
    row = place.rig.plane.kubectl("get", "ptg", "-n", place.name).splitlines()[1].split()
    assert row[:-1] == ["train", "Waiting", "12", "12", "0", "0", "NotEnoughRoom"]
    wide = place.rig.plane.kubectl("get", "ptg", "-n", place.name, "-o", "wide")
    assert said in wide
    assert place.until_event("train", "NotEnoughRoom") == said
    told = place.rig.plane.kubectl("describe", "ptg", "-n", place.name, "train")
    assert told.count("NotEnoughRoom") == 2  # the condition and the Event
    assert _phase(place, "train") == "Waiting"
    place.nodes(1, "more", gpus=4)
    place.until_bound("train", 12)
    assert place.until_event("train", "Bound") == "12 of 12 members are bound"


def test_a_gang_that_waits_for_volumes_says_so_and_starts_where_they_are(place: Place) -> None:
    """Its claims come later, and are bound to volumes that one node alone reaches."""
    first, _ = place.nodes(2)
    place.group("data", 2)
    claims = ("data-0", "data-1")
    for claim in claims:
        mounted = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
        place.rig.create(place.pod(claim, "data", spec={"volumes": [mounted]}, cpu=1))
    said = place.until_waiting("data", "WaitingForVolumes", "claim data-1 does not exist")
    assert (
        said == "2 pods wait for volumes: claim data-0 does not exist, claim data-1 does not exist"
    )
    assert place.bound("data") == 0
    for claim in claims:
        place.rig.create(*_bound_claim(place, claim, first))
    place.until_bound("data", 2)
    nodes = {place.rig.pod(claim, place.name)["spec"]["nodeName"] for claim in claims}
    assert nodes == {first}


def _bound_claim(place: Place, name: str, node: str) -> list[dict[str, Any]]:
    """A claim as the controller leaves it, and its volume, which only one node reaches."""
    volume = f"{place.name}-{name}"
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    terms = [{"matchExpressions": [here]}]
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                **spec,
                "capacity": {"storage": "1Gi"},
                "csi": {"driver": "tests.csi", "volumeHandle": volume},
                "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": name,
                "namespace": place.name,
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {
                **spec,
                "volumeName": volume,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    ]


def test_pods_that_wait_for_room_are_unschedulable_and_are_told_once(place: Place) -> None:
    """Autoscalers act on that word; pods that wait for siblings do not say it."""
    place.nodes(1, gpus=2)
    # All of it is there at once: no cycle can find members missing, and say so.
    place.rig.operator.stop()
    place.group("room", 3)
    place.group("siblings", 3)
    place.members("room", 3, gpu=1)
    place.members("siblings", 2, cpu=1)
    place.rig.operator.start()
    place.until_waiting("room", "NotEnoughRoom")
    for name in ("room-0", "room-1", "room-2"):
        place.until_pod_says(name, "Unschedulable")
    for name in ("siblings-0", "siblings-1"):
        place.until_pod_says(name, "WaitingForMembers")
    assert place.says("room-0")["status"] == "False"
    place.nodes(1, "other", gpus=0)  # something changes, and the answer is the same
    time.sleep(2)
    patched = Counter(
        line["objectRef"]["name"] for line in place.writes() if kind_of(line) == "patch pods/status"
    )
    assert patched == dict.fromkeys([f"room-{i}" for i in range(3)], 1) | {
        "siblings-0": 1,
        "siblings-1": 1,
    }


def test_a_gang_of_eight_that_fits_costs_its_bindings_and_a_handful_of_writes(
    place: Place,
) -> None:
    """No Event, as its first status says it all; and once it has settled, nothing more at all."""
    place.nodes(2)
    # All of it is there at once: no cycle can find members missing, and say so.
    place.rig.operator.stop()
    place.group("train", 8)
    place.members("train", 8, cpu=1)
    place.rig.operator.start()
    place.until_bound("train", 8)
    place.rig.until(lambda: _phase(place, "train") == "Running", "the gang runs")
    time.sleep(1)
    costs = Counter(kind_of(line) for line in place.writes())
    print(f"writes for a gang of 8: {dict(costs)}")
    told = costs.pop(STATUS)  # that it is bound, and as its members begin to run, or all at once
    assert 1 <= told <= 1 + 8
    assert costs == {
        "create pods/binding": 8,
        "create reservations": 1,
        "delete reservations": 1,
    }
    before = len(place.writes())
    time.sleep(QUIET)
    assert len(place.writes()) == before


DISK = {"targetPortal": "192.0.2.1:3260", "iqn": "iqn.2001-04.com.example:disk", "lun": 0}
NOT_MODELLED: dict[str, tuple[dict[str, Any], str]] = {
    "disk": (
        {"volumes": [{"name": "data", "iscsi": DISK}]},
        "spec.volumes[].iscsi",
    ),
    "block": (
        {"volumes": [{"name": "data", "rbd": {"monitors": ["192.0.2.1"], "image": "data"}}]},
        "spec.volumes[].rbd",
    ),
}


def test_a_rule_that_is_not_modelled_is_named_and_its_pod_is_never_placed(place: Place) -> None:
    """Alone or in a gang; the gang's other pods wait, too."""
    place.nodes(2)
    place.group("train", 2)
    place.rig.create(
        *(place.pod(name, spec=spec) for name, (spec, _) in NOT_MODELLED.items()),
        place.pod("train-0", "train", cpu=1),
        place.pod("train-1", "train", cpu=1, spec=NOT_MODELLED["disk"][0]),
    )
    for name, (_, field) in NOT_MODELLED.items():
        said = place.until_event(name, "NotModelled")
        assert said == f"Tutti does not place pods that use {field} yet"
        assert place.says(name)["reason"] == "NotModelled"
    place.until_waiting("train", "NotModelled", "1 member uses spec.volumes[].iscsi")
    place.until_event("train-1", "NotModelled")
    place.rig.create(place.pod("ordinary", cpu=1))
    place.until_pod_bound("ordinary")
    assert place.bound() == 1


def test_pods_whose_group_is_deleted_are_told_and_not_bound_one_by_one(place: Place) -> None:
    """Even when there is room at last."""
    place.nodes(1, cpu=2)
    place.group("train", 3)
    place.members("train", 3, cpu=1)
    place.until_waiting("train", "NotEnoughRoom")
    place.delete("podgroup", "train")
    for i in range(3):
        place.until_event(f"train-{i}", "PodGroupNotFound")
    place.nodes(2, "more")
    place.rig.create(place.pod("alone", cpu=1))
    place.until_pod_bound("alone")
    assert place.bound("train") == 0
    place.group("train", 3)
    place.until_bound("train", 3)


def test_gangs_of_the_same_name_in_two_namespaces_are_two_gangs(rig: Rig) -> None:
    """The members of one do not count for the other."""
    left, right = Place(rig), Place(rig)
    left.nodes(1)
    right.nodes(1)
    for place, members in ((left, 3), (right, 2)):
        place.group("train", 3)
        place.members("train", members, cpu=1)
    left.until_bound("train", 3)
    right.until_waiting("train", "WaitingForMembers", "2 of 3 members exist")
    assert right.bound() == 0


def test_a_terminating_pod_holds_its_room_until_it_is_gone(place: Place) -> None:
    """The next one starts when the room is free, not when it is about to be."""
    place.nodes(1, gpus=4)
    old = place.pod("old", gpu=4, spec={"terminationGracePeriodSeconds": 30})
    old["metadata"]["finalizers"] = ["tutti.dev/held"]  # so that it goes when somebody has looked
    place.rig.create(old)
    place.until_pod_bound("old")
    place.rig.until(lambda: _is_running(place, "old"), "it runs")
    place.delete("pod", "old")
    place.group("next", 2)
    place.members("next", 2, gpu=2)
    place.until_waiting("next", "NotEnoughRoom")
    assert place.bound("next") == 0
    path = f"/api/v1/namespaces/{place.name}/pods/old"
    place.rig.plane.request("PATCH", path, {"metadata": {"finalizers": None}})
    place.until_bound("next", 2)
    names = {pod["metadata"]["name"] for pod in place.rig.pods("", place.name)}
    assert "old" not in names


def test_pods_of_another_scheduler_use_room_bound_or_pinned(place: Place) -> None:
    """One was bound by hand; one waits for the node that it is pinned to, as DaemonSet pods do."""
    bound_on, pinned_to = place.nodes(2, gpus=4)
    place.rig.create(place.pod("stranger", gpu=3, scheduler="other"))
    place.bind("stranger", bound_on)
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [pinned_to]}]}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
        }
    }
    place.rig.create(place.pod("daemon", gpu=2, scheduler="other", spec={"affinity": affinity}))
    # They come by another watch than gangs do: this gang never has room, and says who is known.
    place.group("large", 6)
    place.members("large", 6, gpu=1)
    place.until_waiting("large", "NotEnoughRoom", "room for 3 on 2 nodes; short 3")
    place.group("train", 4)
    place.members("train", 4, gpu=1)
    place.until_waiting("train", "NotEnoughRoom", "room for 3 on 2 nodes; short 1")
    place.delete("pod", "daemon")
    place.until_bound("train", 4)


def test_the_probes_answer_once_the_cluster_is_known(rig: Rig) -> None:
    """Both say ok, and nothing else does."""
    assert rig.operator.probe("healthz") == "ok"
    assert rig.operator.probe("readyz") == "ok"
    assert "404" in rig.operator.probe("metricz")


def test_a_restart_ends_in_order_and_writes_nothing(place: Place) -> None:
    """Gangs that run, that wait for room, for siblings and for their group are left as they are."""
    place.nodes(1, gpus=4)
    for name, needed, members in (("runs", 2, 2), ("room", 3, 3), ("siblings", 3, 2)):
        place.group(name, needed)
        place.members(name, members, gpu=1)
        if name == "runs":
            place.until_bound("runs", 2)
    place.members("stray", 1, gpu=1)
    place.until_waiting("room", "NotEnoughRoom")
    place.until_waiting("siblings", "WaitingForMembers")
    place.until_event("stray-0", "PodGroupNotFound")
    place.rig.until(lambda: place.says("room-2") and place.says("siblings-1"), "all is said")
    place.rig.until(lambda: not place.rig.quiet(QUIET / 2), "all is settled")
    before = len(written(place.rig))
    assert place.rig.operator.stop(signal.SIGTERM) == 0
    place.rig.operator.start()
    time.sleep(QUIET)
    # Gangs of other tests may be due for newer words; all else would be the restart's.
    after = (line["objectRef"] for line in written(place.rig)[before:])
    assert [about for about in after if about.get("namespace", place.name) == place.name] == []
    place.members("siblings", 1, first=2, cpu=1)
    place.rig.until(
        lambda: place.condition("siblings", "Reserved")["reason"] != "WaitingForMembers",
        "the new process works",
    )


def _phase(place: Place, group: str) -> str:
    status = place.rig.group(group, place.name).get("status", {})
    return str(status.get("phase", ""))


def _is_running(place: Place, pod: str) -> bool:
    return bool(place.rig.pod(pod, place.name)["status"]["phase"] == "Running")
