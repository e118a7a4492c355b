"""LeaderWorkerSet: a PodGroup of Volcano per replica, owned by the replica's leader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .ground import NAMESPACE, annotated, owner, path, schedulers, template, uid_of

if TYPE_CHECKING:
    from .ground import Ground

GROUPS = "scheduling.volcano.sh/v1beta1/podgroups"


def leader_worker_set(ground: Ground) -> None:
    """Two replicas of three: a killed member takes its replica and its PodGroup with it."""
    address = path("leaderworkerset.x-k8s.io/v1", "leaderworkersets", "serve")
    ground.create(lws_manifest("serve", replicas=2, size=3))
    pods = ground.until_pods(6)
    groups = _groups(ground, 2)
    assert [owner(group) for group in groups] == [("Pod", "serve-0"), ("Pod", "serve-1")]
    spec = {"minMember": 3, "minResources": {"cpu": "3"}, "queue": "default"}
    assert [group["spec"] for group in groups] == [spec, spec]
    names = {group["metadata"]["name"] for group in groups}
    assert (annotated(pods, "scheduling.k8s.io/group-name"), schedulers(pods)) == (names, {"tutti"})

    ground.bind_all()
    ground.until_condition(address, "Available")
    ground.delete(path("v1", "pods", "serve-0-1"))
    ground.until(
        lambda: uid_of(_groups(ground, 2)[0]) != uid_of(groups[0]), "the replica has a new group"
    )
    again = _groups(ground, 2)
    assert [group["metadata"]["name"] for group in again] == sorted(names)
    assert uid_of(again[1]) == uid_of(groups[1])
    ground.until_pods(6)
    ground.delete(address)
    ground.until_pods(0)
    ground.until_gone(GROUPS)


def _groups(ground: Ground, number: int) -> list[dict[str, Any]]:
    groups = ground.until(
        lambda: g if len(g := ground.all(GROUPS)) == number else None, f"{number} groups"
    )
    return sorted(groups, key=lambda group: str(group["metadata"]["name"]))


def lws_manifest(name: str, replicas: int, size: int, cpu: int = 1) -> dict[str, Any]:
    """A LeaderWorkerSet of replicas of this size."""
    workers = template(cpu=cpu, schedulerName="tutti")
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "leaderWorkerTemplate": {"size": size, "workerTemplate": workers},
        },
    }
