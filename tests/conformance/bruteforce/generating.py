"""Small clusters at random, as manifests: plain dicts, and nothing of the project.

What makes answers differ is drawn often: room that is nearly used up, gangs that have lost a member
or could grow, gangs that have waited too long, wishes that move members, and unlike units.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

Raw = dict[str, Any]

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
GPU, EXTENDED = "nvidia.com/gpu", "example.com/storage"
AGES = (0, 60, 600, 1000, 2000, 3000)  # seconds
LONG_AGES = (3600, 5400, 9000, 40_000)
ZONES, DISKS = ("a", "b"), ("ssd", "hdd")
SIZES = {  # what a node offers
    "cpu": ("1", "2", "3", "4", "2500m", "8"),
    "memory": ("4Gi", "4G", "8Gi", "16Gi", "16G", "512Gi", "3000000001"),
    GPU: ("1", "2", "4", "8"),
    EXTENDED: ("4Pi", "1Pi", "100", "1000000007"),
}
ASKS = {  # what a pod asks for
    "cpu": ("100m", "500m", "1", "1", "1500m", "2", "333m"),
    "memory": ("1Gi", "2Gi", "2G", "1000000001", "4Gi", "512Mi", "16Gi", "16G", "1000000000"),
    GPU: ("1", "1", "2", "3", "4"),
    EXTENDED: ("600Ti", "1Pi", "30", "7", "500000003"),
}


def manifests(seed: int) -> Raw:
    """A List of objects, as ``kubectl get -o json`` or ``tutti dump`` would print it."""
    return _Maker(Random(seed)).cluster()


class _Maker:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.items: list[Raw] = []
        self.names: list[str] = []
        self.resources = ["cpu"]
        self.sizes, self.asks = SIZES, ASKS
        # Few GPUs and much memory, asked for in amounts that have little in common.
        self.is_about_units = random.random() < 0.2
        self.wishes = random.choice((0.0, 0.3, 0.6))
        self.rules = random.random() < 0.06
        self.starving = random.random() < 0.3
        self.priorities = random.choice(((0,), (0, 10), (0, 10), (-5, 0, 7)))
        for name, chance in (("memory", 0.75), (GPU, 0.5), (EXTENDED, 0.06)):
            if random.random() < chance:
                self.resources.append(name)
        if self.is_about_units:
            self.wishes, self.resources = 0.0, ["cpu", "memory", GPU]
            self.sizes = {**SIZES, "memory": ("512Gi", "256G", "1Ti"), "cpu": ("32", "64")}
            self.asks = {**ASKS, "memory": ("1000000001", "1G", "1Gi", "16Gi", "16G", "40000Mi")}

    def chance(self, of: float) -> bool:
        return self.random.random() < of

    def cluster(self) -> Raw:
        self._nodes()
        for number in range(self.random.randint(1, 5)):
            self._gang(f"g{number}")
        if self.chance(0.3):
            self._others()
        clock = {"name": "clock", "uid": "clock", "creationTimestamp": _time(0)}
        self.items.append({"apiVersion": "v1", "kind": "Namespace", "metadata": clock})
        self.random.shuffle(self.items)
        whole: Raw = {"apiVersion": "v1", "kind": "List", "items": self.items}
        if self.chance(0.15):
            whole["metadata"] = {"annotations": self._settings()}
        return whole

    def _settings(self) -> Raw:
        policy = {
            "objective": self.random.choice(("resources", "gangs", "members")),
            "age_seconds": self.random.choice((600.0, 3600.0, 1000.0)),
            "starvation_seconds": self.random.choice((1800.0, 3600.0)),
        }
        words = {"schedulerName": "tutti", "strategy": "ilp", "policy": policy, "budget": {}}
        return {"tutti.dev/taken-at": _time(0), "tutti.dev/settings": json.dumps(words)}

    def _nodes(self) -> None:
        count = self.random.choice((1, 2, 2, 3, 3, 3, 4, 5))
        kinds = [self._offer() for _ in range(self.random.randint(1, 3))]
        for number in range(count):
            name = f"n{number}"
            self.names.append(name)
            labels = {"kubernetes.io/hostname": name, "zone": self.random.choice(ZONES)}
            if self.chance(0.6):
                labels["disk"] = self.random.choice(DISKS)
            spec: Raw = {}
            taints = []
            if self.chance(self.wishes):
                taints.append({"key": "old", "effect": "PreferNoSchedule"})
            if self.chance(0.1):
                taints.append({"key": "only", "value": "x", "effect": "NoSchedule"})
            if taints:
                spec["taints"] = taints
            if self.chance(0.03):
                spec["unschedulable"] = True
            ready = "False" if self.chance(0.02) else "True"
            status = {
                "allocatable": dict(self.random.choice(kinds)),
                "conditions": [{"type": "Ready", "status": ready}],
            }
            self._add("Node", name, {"labels": labels}, {"spec": spec, "status": status})

    def _offer(self) -> Raw:
        offer = {name: self.random.choice(self.sizes[name]) for name in self.resources}
        if GPU in offer and self.chance(0.4):
            del offer[GPU]
        return {**offer, "pods": self.random.choice(("110", "110", "110", "3", "4"))}

    def _gang(self, name: str) -> None:
        priority = self.random.choice(self.priorities)
        age = self.random.choice(LONG_AGES if self.starving and self.chance(0.5) else AGES)
        if self.chance(0.25):
            self._pod(name, self._spec(self._asks(), priority), {}, age)
            return
        pods, started = self.random.randint(1, 4), self.chance(0.3)
        roles = ["u", "v"] if self.chance(0.25) else []
        spec: Raw = {"minMember": self.random.randint(max(pods - 2, 1), pods)}
        if roles:
            spec = self._roles(pods)
        self._add("PodGroup", name, {"namespace": "x"}, {"spec": spec}, age)
        asks = [self._asks() for _ in range(1 if self.chance(0.6) else 2)]
        labels = {"tutti.dev/pod-group": name}
        bound = self.random.randint(1, pods) if started else 0
        template = self._spec(asks[0], priority)
        for number in range(pods):
            one = self.random.choice(asks)
            mine = {**template, "containers": _containers(one)}
            if self.chance(0.1):
                mine = self._spec(one, priority)
            if number < bound:
                mine["nodeName"] = self.random.choice(self.names)
                mine["containers"] = _containers({"cpu": "100m"})
            role = {"tutti.dev/role": self.random.choice(roles)} if roles else {}
            younger = self.random.choice((0, 0, 0, 30))
            self._pod(f"{name}-{number}", mine, {**labels, **role}, max(age - younger, 0))

    def _roles(self, pods: int) -> Raw:
        roles = []
        for name in ("u", "v"):
            role: Raw = {"name": name, "minMember": self.random.randint(0, 1)}
            if self.chance(0.3):
                role["maxMember"] = self.random.randint(1, 2)
            roles.append(role)
        most = sum(role.get("maxMember", pods) for role in roles)
        spec: Raw = {"roles": roles}
        if self.chance(0.7):
            least = max(sum(role["minMember"] for role in roles), 1)
            spec["minMember"] = max(min(self.random.randint(1, pods), most), least)
        return spec

    def _asks(self) -> Raw:
        names = [name for name in self.resources if self.chance(0.7)]
        return {name: self.random.choice(self.asks[name]) for name in names}

    def _spec(self, asks: Raw, priority: int) -> Raw:
        spec: Raw = {
            "schedulerName": "tutti",
            "priority": priority,
            "containers": _containers(asks),
        }
        if self.chance(0.15):
            spec["nodeSelector"] = {"disk": self.random.choice(DISKS)}
        if self.chance(0.15):
            spec["tolerations"] = [{"operator": "Exists"}]
        if self.chance(0.03):
            spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
        affinity: Raw = {}
        if self.chance(0.07):
            rule = {
                "key": "zone",
                "operator": self.random.choice(("In", "NotIn")),
                "values": ["a"],
            }
            affinity["nodeAffinity"] = {
                _REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
            }
        self._wish(affinity)
        if self.rules and self.chance(0.5):
            self._rule(spec, affinity)
        if affinity:
            spec["affinity"] = affinity
        return spec

    def _wish(self, affinity: Raw) -> None:
        if self.chance(self.wishes * 0.4):
            rule = {"key": "zone", "operator": "In", "values": [self.random.choice(ZONES)]}
            wish = {"weight": 10, "preference": {"matchExpressions": [rule]}}
            affinity.setdefault("nodeAffinity", {})[_PREFERRED] = [wish]
        if self.chance(self.wishes * 0.4):
            kind = self.random.choice(("podAffinity", "podAntiAffinity"))
            affinity[kind] = {_PREFERRED: [{"weight": 50, "podAffinityTerm": self._term()}]}

    def _rule(self, spec: Raw, affinity: Raw) -> None:
        if self.chance(0.3):
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": self.random.randint(1, 2),
                    "topologyKey": self.random.choice(("zone", "kubernetes.io/hostname")),
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"app": self.random.choice("pq")}},
                }
            ]
            return
        kind = self.random.choice(("podAffinity", "podAntiAffinity"))
        affinity.setdefault(kind, {})[_REQUIRED] = [self._term()]

    def _term(self) -> Raw:
        return {
            "labelSelector": {"matchLabels": {"app": self.random.choice("pq")}},
            "topologyKey": self.random.choice(("zone", "kubernetes.io/hostname")),
        }

    def _others(self) -> None:
        for number in range(self.random.randint(1, 2)):
            spec = {
                "schedulerName": "default-scheduler",
                "nodeName": self.random.choice(self.names),
                "containers": _containers(self._asks()),
            }
            self._pod(f"other-{number}", spec, {}, 1000)

    def _pod(self, name: str, spec: Raw, labels: Raw, age: int) -> None:
        phase = "Running" if "nodeName" in spec else "Pending"
        metadata = {
            "namespace": "x",
            "labels": {"app": self.random.choice("pq"), **labels},
            "resourceVersion": "5",
        }
        self._add("Pod", name, metadata, {"spec": spec, "status": {"phase": phase}}, age)

    def _add(self, kind: str, name: str, metadata: Raw, rest: Raw, age: int = 0) -> None:
        version = "tutti.dev/v1alpha1" if kind == "PodGroup" else "v1"
        full = {"name": name, "uid": f"{kind}-{name}", **metadata, "creationTimestamp": _time(age)}
        self.items.append({"apiVersion": version, "kind": kind, "metadata": full, **rest})


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _containers(asks: Raw) -> list[Raw]:
    return [{"name": "c", "resources": {"requests": dict(asks)}}]


def _time(age: int) -> str:
    return (NOW - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ")
