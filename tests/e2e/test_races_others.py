"""Others take from gangs that run: kube-scheduler for a critical pod, and people by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .arena import CPU, HALF, PEERS, Arena, Race

if TYPE_CHECKING:
    from collections.abc import Iterator

CRITICAL = "critical"
LATE = "late"


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    """One control plane with kube-scheduler, and one operator."""
    with Arena.open("scheduler", "controller-manager") as arena:
        arena.plane.create(
            [
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": CRITICAL},
                    "value": 1_000_000,
                }
            ]
        )
        yield arena


@pytest.fixture
def race(arena: Arena) -> Iterator[Race]:
    """A gang of a test's own."""
    with arena.race() as race:
        yield race


def replica_set(race: Race, replicas: int) -> dict[str, Any]:
    """What creates a gang's members, and creates them again."""
    member = race.pod("member", race.group_name, cpu=HALF)
    labels = {**member["metadata"]["labels"], "app": race.group_name}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": race.group_name, "namespace": race.name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": race.group_name}},
            "template": {"metadata": {"labels": labels}, "spec": member["spec"]},
        },
    }


def by_selector(node: str) -> dict[str, Any]:
    """Pin a pod to a node as people do."""
    return {"nodeSelector": {"kubernetes.io/hostname": node}}


def by_name(node: str) -> dict[str, Any]:
    """Pin a pod to a node as the DaemonSet controller does."""
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [here]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return {"affinity": {"nodeAffinity": required}}


def preempted(race: Race) -> set[str]:
    """Who had to make room, as kube-scheduler tells it."""
    path = f"/api/v1/namespaces/{race.name}/events"
    events = race.rig.plane.request("GET", path)["items"]
    told = (event for event in events if event["reason"] == "Preempted")
    return {one["involvedObject"]["name"] for one in told}


@pytest.mark.parametrize("pin", [by_name, by_selector])
def test_a_member_preempted_for_a_critical_pod_is_said_and_replaced_where_there_is_room(
    race: Race, pin: Any
) -> None:
    (node,) = race.nodes(1, cpu=CPU)
    race.group(race.group_name, PEERS)
    race.rig.create(replica_set(race, PEERS))
    race.until_whole(PEERS)
    before = race.bound_pods()
    pinned = {**pin(node), "priorityClassName": CRITICAL}
    race.rig.create(race.pod("critical", scheduler="default-scheduler", cpu=HALF, spec=pinned))
    race.until_pod_bound("critical")
    race.until_broken("MemberLost", "1 of 2 members are bound, 1 missing")
    survivors = before.items() & race.bound_pods().items()
    assert len(survivors) == 1, "one member made room"
    race.rig.until(lambda: preempted(race), "kube-scheduler says whom it ended")
    assert len(preempted(race)) == 1, "and no replacement took that room in the meantime"
    (spare,) = race.nodes(1, "spare", cpu=CPU)
    race.until_whole(PEERS)
    assert survivors <= race.bound_pods().items()
    assert spare in race.nodes_of(race.group_name).values()


def test_a_replacement_takes_the_room_of_a_deleted_member_before_a_gang_that_waits_longer(
    race: Race,
) -> None:
    race.nodes(1, cpu=CPU)
    race.group(race.group_name, PEERS)
    first, second = race.members(race.group_name, PEERS, cpu=HALF)
    race.until_whole(PEERS)
    race.group(LATE, 1)
    race.members(LATE, 1, cpu=HALF)
    race.until_waiting(LATE, "NotEnoughRoom")
    race.add_member("replacement")
    race.rig.until(lambda: race.says("replacement"), "the replacement waits")
    race.remove(first)
    race.until_pod_bound("replacement")
    assert not race.is_bound(f"{LATE}-0")
    assert race.is_bound(second)
    race.until_says(race.group_name, "Healthy", "Whole")
    race.remove("replacement")
    race.until_bound(LATE, 1)


def test_a_member_of_a_waiting_gang_bound_by_hand_is_joined_by_its_siblings(race: Race) -> None:
    (node,) = race.nodes(1, cpu=CPU)
    race.group(race.group_name, PEERS + 1)
    one, *_ = race.members(race.group_name, PEERS + 1, cpu=HALF)
    race.until_waiting(race.group_name, "NotEnoughRoom")
    race.bind(one, node)
    race.nodes(1, "more", cpu=CPU)
    race.until_whole(PEERS + 1)
    assert race.nodes_of()[one] == node
