"""A generated cluster as it is built: its objects, the room that is left, the features it shows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import storage
from .objects import REQUIRED, SCHEDULER, Ask, Object, Room, named, node, pod
from .rules import APPS, POOLS, SPACES, TEAMS, ZONE, ZONES, with_rule

if TYPE_CHECKING:
    from random import Random

# How many clusters in a hundred may show a feature at all; then each gang or node by chance.
CHANCES = {
    "pod affinity": 20,
    "pod anti-affinity": 25,
    "topology spread": 25,
    "preferred rules": 25,
    "node selector": 20,
    "node affinity": 20,
    "tolerations": 25,
    "host ports": 20,
    "GPUs": 55,
    "taints": 30,
    "unschedulable nodes": 20,
    "nodes not ready": 15,
    "foreign pods": 55,
    "volumes": 38,
    "timeouts": 20,
    "priorities": 60,
    "starved gangs": 35,
}
# Many gangs compete for little room; there is room for most, so that preferences decide; running
# gangs leave too little for one that has starved, and enough for younger ones.
THEMES = (*("any",) * 6, "contended", "contended", "roomy", "roomy", "held")
CONTENDED = frozenset({"GPUs", "priorities", "starved gangs", "foreign pods", "timeouts"})


@dataclass
class Cluster:
    """What has been generated so far."""

    rng: Random
    is_manifest: bool = False  # objects as users write them: none was ever created
    theme: str = "any"
    features: set[str] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)
    objects: list[Object] = field(default_factory=list)
    free: dict[str, Room] = field(default_factory=dict)  # by node
    finished: dict[str, list[str]] = field(default_factory=dict)
    bereft: dict[str, str] = field(default_factory=dict)
    refused: dict[str, list[object]] = field(default_factory=dict)
    names: Counter[str] = field(default_factory=Counter)

    def may(self, feature: str, chance: float = 1.0) -> bool:
        """Whether something is to show the feature here; if so it counts as shown."""
        if feature not in self.features or self.rng.random() >= chance:
            return False
        self.shown.add(feature)
        return True

    def name(self, stem: str) -> str:
        """A name that no other object has."""
        self.names[stem] += 1
        return f"{stem}{self.names[stem] - 1}"

    def room_for(self, ask: Ask) -> str:
        """A node with room for one pod of this kind; empty where there is none."""
        nodes = [name for name, free in self.free.items() if free.holds(ask.room)]
        return self.rng.choice(nodes) if nodes else ""

    def take(self, name: str, ask: Ask) -> None:
        """Use room of a node."""
        self.free[name] -= ask.room

    def all_room(self) -> Room:
        """The free room of all nodes together."""
        return sum(self.free.values(), Room())


def cluster(rng: Random) -> Cluster:
    """Nodes with pods of other schedulers on them, as far as the drawn features say so."""
    features = {name for name, share in CHANCES.items() if rng.randrange(100) < share}
    cluster = Cluster(rng, is_manifest=rng.random() < 0.1, features=features)
    cluster.theme = rng.choice(THEMES)
    cluster.shown.add(cluster.theme)
    if cluster.theme == "roomy":
        cluster.features |= {"preferred rules", "priorities"}
    elif cluster.theme != "any":
        cluster.features &= CONTENDED
    for space in (*SPACES, "kube-system"):
        one = named("Namespace", space)
        one["metadata"]["labels"] = {
            "kubernetes.io/metadata.name": space,
            "team": rng.choice(TEAMS),
        }
        cluster.objects.append(one)
    fewest = 4 if cluster.theme == "roomy" else 1
    for i in range(max(fewest, rng.choice((1, 2, 3, 3, 4, 4, 5, 6)))):
        _add_node(cluster, f"n{i}")
    if cluster.may("volumes"):
        storage.add_drivers(cluster)
    if "foreign pods" in features:
        for _ in range(rng.randint(1, 4)):
            _add_foreign_pod(cluster)
    return cluster


def _add_node(cluster: Cluster, name: str) -> None:
    rng = cluster.rng
    cpu, memory = rng.choice((2000, 4000, 4000, 8000, 7500)), rng.choice((4, 8, 16, 16)) * 1024
    gpus = rng.choice((0, 1, 2, 4, 8)) if cluster.may("GPUs", 0.7) else 0
    if cluster.theme == "roomy":
        cpu, memory = cpu * 2, memory * 2
    room = Room(cpu, memory - rng.choice((0, 0, 100)), gpus, rng.choice((110, 110, 110, 4, 2)))
    labels = {"rank": str(rng.randint(1, 4))}
    if rng.random() < 0.9:
        labels[ZONE] = rng.choice(ZONES)
    if rng.random() < 0.6:
        labels["pool"] = rng.choice(POOLS)
    one = node(name, room, labels)
    if cluster.may("taints", 0.5):
        effect = rng.choice(("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"))
        one["spec"]["taints"] = [{"key": "dedicated", "value": "gpu", "effect": effect}]
    if cluster.may("unschedulable nodes", 0.4):
        one["spec"]["unschedulable"] = True
    if cluster.may("nodes not ready", 0.4):
        one["status"]["conditions"][0]["status"] = rng.choice(("False", "Unknown"))
    cluster.objects.append(one)
    cluster.free[name] = room


def _add_foreign_pod(cluster: Cluster) -> None:
    """A pod of another scheduler: running, going, over, or pinned to a node and still waiting."""
    rng = cluster.rng
    labels = {"app": rng.choice(APPS)}
    ask = Ask(Room(rng.choice((100, 500, 1000)), rng.choice((128, 1024)), 0, 1), labels)
    for rule in ("pod anti-affinity", "preferred rules", "host ports"):
        if cluster.may(rule, 0.3):
            ask = with_rule(rng, ask, rule)
    on = cluster.room_for(ask)
    if not on:
        return
    cluster.shown.add("foreign pods")
    cluster.take(on, ask)
    state = rng.choice(("running",) * 6 + ("terminating", "over", "pinned"))
    one = pod(cluster.name("other-"), rng.choice((*SPACES, "kube-system")), ask, 500, on)
    one["spec"]["schedulerName"] = "default-scheduler"
    if state == "terminating":
        cluster.shown.add("terminating pods")
        one["metadata"]["deletionTimestamp"] = one["metadata"]["creationTimestamp"]
    elif state == "over":
        cluster.shown.add("finished pods")
        one["status"]["phase"] = rng.choice(("Succeeded", "Failed"))
    elif state == "pinned":
        del one["spec"]["nodeName"]
        one["status"]["phase"] = "Pending"
        field_ = {"key": "metadata.name", "operator": "In", "values": [on]}
        terms = {"nodeSelectorTerms": [{"matchFields": [field_]}]}
        one["spec"]["affinity"] = {"nodeAffinity": {REQUIRED: terms}}
    if "volumes" in cluster.features and rng.random() < 0.5:
        storage.attach_foreign(cluster, one, on)
    cluster.objects.append(one)


def is_ours(one: Object) -> bool:
    """Whether an object is a pod that Tutti schedules."""
    return one["kind"] == "Pod" and bool(one["spec"]["schedulerName"] == SCHEDULER)
