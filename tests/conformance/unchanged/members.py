"""The pods of generated gangs: how far they have come, and what a Reservation holds for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .objects import Ask, Object, moment

if TYPE_CHECKING:
    from .clusters import Cluster

# What a gang in some state shows.
SHOWN = {
    "short": "too few members",
    "grows": "elastic gangs",
    "ended": "finished pods",
    "partial": "partial gangs",
    "reserved": "standing Reservations",
    "deleted": "PodGroups being deleted",
}


@dataclass
class Role:
    """A part of a gang: so many pods are needed, so many are there."""

    name: str  # empty for a gang without roles
    ask: Ask
    least: int
    number: int
    most: int | None = None
    has_template: bool = False


@dataclass
class Gang:
    """What has been drawn of one gang."""

    name: str
    space: str
    age: int
    priority: int
    roles: list[Role]
    pods: list[Object] = field(default_factory=list)
    placement: dict[str, Object] = field(default_factory=dict)  # of its Reservation, by node

    def reserve(self, on: str) -> Object:
        """What its Reservation says of a node."""
        return self.placement.setdefault(on, {"node": on})


def advance(cluster: Cluster, gang: Gang, state: str, role: Role, pods: list[Object]) -> None:
    """Bring the pods of a role as far as the gang's state says."""
    if state in ("waits", "short"):
        for one in pods:
            if cluster.rng.random() < 0.04:
                _happen(cluster, one)
    elif state == "partial":
        _lose_some(cluster, role, pods)
    elif state == "reserved":
        _promise(cluster, gang, role, pods)
    else:
        for one in pods[: role.least] if state == "grows" else pods:
            _bind(cluster, one, role.ask)
            if state == "ended":
                one["status"]["phase"] = "Succeeded"
    if state in SHOWN:
        cluster.shown.add(SHOWN[state])


def _bind(cluster: Cluster, one: Object, ask: Ask) -> bool:
    """Give a pod a node, now and then one without room; False where none is left for it."""
    on = cluster.room_for(ask)
    if not on:
        if cluster.rng.random() < 0.7:
            return False
        on = cluster.rng.choice([*cluster.free])
    cluster.take(on, ask)
    one["spec"]["nodeName"] = on
    one["status"]["phase"] = "Running"
    return True


def _happen(cluster: Cluster, one: Object) -> None:
    """Let something befall a pod that waits."""
    what = cluster.rng.choice(("gate", "terminating", "failed", "not modelled"))
    if what == "gate":
        cluster.shown.add("scheduling gates")
        one["spec"]["schedulingGates"] = [{"name": "example.com/hold"}]
    elif what == "terminating":
        cluster.shown.add("terminating pods")
        one["metadata"]["deletionTimestamp"] = moment(0)
    elif what == "failed":
        cluster.shown.add("finished pods")
        one["status"] |= {"phase": "Failed", "reason": "Evicted"}
    else:
        cluster.shown.add("not modelled")
        one["spec"]["resourceClaims"] = [{"name": "gpu"}]


def _lose_some(cluster: Cluster, role: Role, pods: list[Object]) -> None:
    """Most pods of a role are bound; one or two wait as successors of lost ones, or go."""
    rng = cluster.rng
    lost = rng.choice((0, 1, 1, 2))
    for i, one in enumerate(pods):
        if i >= len(pods) - lost:
            fate = rng.choice(("new", "new", "new", "gone", "terminating", "failed"))
            if fate == "new":
                one["metadata"]["creationTimestamp"] = moment(20)
                continue
            if fate == "gone":
                one["metadata"]["deletionTimestamp"] = moment(0)
                cluster.shown.add("terminating pods")
                continue
            _bind(cluster, one, role.ask)
            if fate == "failed":
                one["status"] |= {"phase": "Failed", "reason": rng.choice(("", "OutOfcpu"))}
            else:
                one["metadata"]["deletionTimestamp"] = moment(0)
                cluster.shown.add("terminating pods")
        else:
            _bind(cluster, one, role.ask)


def _promise(cluster: Cluster, gang: Gang, role: Role, pods: list[Object]) -> None:
    """Let a Reservation hold nodes for the pods of a role, and for those that are absent."""
    rng = cluster.rng
    is_begun = rng.random() < 0.5
    for pod in pods:
        on = (
            cluster.room_for(role.ask)
            if rng.random() < 0.93
            else rng.choice((*cluster.free, "gone"))
        )
        if not on:
            continue
        if on in cluster.free:
            cluster.take(on, role.ask)
        names = {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        gang.reserve(on).setdefault("pods", []).append(names)
        if is_begun and on in cluster.free and rng.random() < 0.6:
            pod["spec"]["nodeName"] = on
            pod["status"]["phase"] = "Running"
    if not role.has_template:
        return
    for _ in range(max(1, role.least - role.number)):
        on = cluster.room_for(role.ask)
        if on:
            cluster.shown.add("Reservations with slots")
            cluster.take(on, role.ask)
            slots = gang.reserve(on).setdefault("slots", {})
            slots[role.name] = slots.get(role.name, 0) + 1
    if rng.random() < 0.3 and pods:  # a member that has come for a slot
        uid = pods[-1]["metadata"]["uid"]
        for held in gang.placement.values():
            held["pods"] = [pod for pod in held.get("pods", []) if pod["uid"] != uid]
