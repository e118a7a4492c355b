"""Gangs of generated clusters: how they are declared, and how far each of them has come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import storage
from .members import Gang, Role, advance
from .objects import (
    GROUP_LABEL,
    NOW,
    ROLE_LABEL,
    Ask,
    Object,
    Room,
    moment,
    named,
    pod,
    pod_group,
    reservation,
)
from .rules import APPS, RULES, SPACES, with_rule

if TYPE_CHECKING:
    from .clusters import Cluster

STARVED = (4000, 8000, 20000)  # seconds that a gang has waited, longer than an hour
YOUNG = (1, 30, 600, 3000)
STATES = (
    *("waits",) * 9,
    *("runs",) * 2,
    *("partial",) * 3,
    *("reserved",) * 6,
    *("grows", "ended", "short", "short", "deleted"),
)
RUNNING = 3  # gangs that run where room is held for the next one
CONTROLLERS = (("batch/v1", "Job"), ("apps/v1", "StatefulSet"), ("apps/v1", "ReplicaSet"))


def add_gang(cluster: Cluster) -> None:
    """One more gang: a PodGroup and its pods, in any state."""
    rng = cluster.rng
    number = cluster.names["gang-"]
    age = rng.choice(STARVED if _is_old(cluster, number) else YOUNG)
    priority = rng.choice((0, 10, 1000, -5)) if cluster.may("priorities", 0.7) else 0
    gang = Gang(cluster.name("gang-"), rng.choice(SPACES), age, priority, _roles(cluster))
    state = _state(cluster, number)
    if cluster.theme == "held" and number == RUNNING:
        gang.roles[-1].number = gang.roles[-1].least = rng.randint(4, 7)
    if state == "waits" and age in STARVED:
        cluster.shown.add("starved gangs")
    _add_pods(cluster, gang, state)
    group = _group(cluster, gang, state)
    cluster.objects.append(group)
    if cluster.is_manifest and rng.random() < 0.4 and gang.pods:
        _become_workload(cluster, gang)
    else:
        cluster.objects.extend(gang.pods)
    if gang.placement:
        _add_reservation(cluster, gang, group)
    if state == "waits" and rng.random() < 0.08 and not cluster.is_manifest:
        cluster.shown.add("refused")
        until = NOW + rng.choice((60, 600, -10))
        cluster.refused[group["metadata"]["uid"]] = ["quota exceeded", float(until)]


def _is_old(cluster: Cluster, number: int) -> bool:
    """Whether the gang of this number waits for longer than an hour, if it waits."""
    if cluster.theme == "held" and not cluster.is_manifest:
        return number == RUNNING
    return "starved gangs" in cluster.features and cluster.rng.random() < 0.5


def _state(cluster: Cluster, number: int) -> str:
    """How far the gang of this number has come."""
    if cluster.is_manifest:
        return "waits"
    if cluster.theme == "held":
        return "runs" if number < RUNNING else "waits"
    only_waits = cluster.theme != "any" and cluster.rng.random() < 0.8
    return "waits" if only_waits else cluster.rng.choice(STATES)


def _roles(cluster: Cluster) -> list[Role]:
    rng = cluster.rng
    app = rng.choice(APPS)
    number = rng.choice((1, 2, 2, 3, 3, 4, 5))
    if rng.random() < 0.5:
        role = Role("", _ask(cluster, app), number, number)
        if number > 1 and rng.random() < 0.35:
            cluster.shown.add("elastic gangs")
            role.least -= rng.randint(1, number - 1)
        return [role]
    cluster.shown.add("roles")
    driver = Role("driver", _ask(cluster, app), 1, 1)
    worker = Role("worker", driver.ask, number, number)
    if rng.random() < 0.7:
        cluster.shown.add("heterogeneous roles")
        worker.ask = _ask(cluster, rng.choice((app, rng.choice(APPS))))
    if rng.random() < 0.35:
        cluster.shown.add("elastic gangs")
        worker.least = rng.randint(0, number)
        if rng.random() < 0.6:
            worker.most = max(worker.least, rng.randint(1, number))
            if worker.most < number:
                cluster.shown.add("maxMember")
    if rng.random() < 0.6:
        worker.has_template = True
        if rng.random() < 0.75:
            cluster.shown.add("absent members")
            worker.number -= rng.randint(1, number)
    return [driver, worker]


def _ask(cluster: Cluster, app: str) -> Ask:
    rng = cluster.rng
    cpu, memory = rng.choice((500, 1000, 1000, 2000, 3000)), rng.choice((512, 1024, 2048, 4096))
    if rng.random() < 0.05:
        cpu = 16000  # more than any node has
    gpus = rng.choice((1, 1, 2, 4)) if cluster.may("GPUs", 0.5) else 0
    ask = Ask(Room(cpu, memory, gpus, 1), {"app": app})
    for rule in (*RULES, *("preferred rules",) * (2 if cluster.theme == "roomy" else 0)):
        if cluster.may(rule, 0.45):
            ask = with_rule(rng, ask, rule)
    return ask


def _add_pods(cluster: Cluster, gang: Gang, state: str) -> None:
    rng = cluster.rng
    controller = rng.choice(CONTROLLERS) if rng.random() < 0.85 else None
    for role in gang.roles:
        labels = {**role.ask.labels, GROUP_LABEL: gang.name}
        if role.name:
            labels[ROLE_LABEL] = role.name
        ask = role.ask.but(labels=labels)
        pods = []
        for i in range(role.number):
            name = f"{gang.name}-{role.name}{i}"
            one = pod(name, gang.space, ask, max(0, gang.age - rng.choice((0, 0, 1, 200))))
            if gang.priority:
                one["spec"]["priority"] = gang.priority
            if controller is not None:
                version, kind = controller
                owner = {"apiVersion": version, "kind": kind, "name": gang.name, "uid": "o"}
                one["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
            pods.append(one)
        if pods and "volumes" in cluster.features and rng.random() < 0.5:
            storage.add_claims(cluster, pods)
        advance(cluster, gang, state, role, pods)
        gang.pods.extend(pods)
    if state == "short" and gang.pods:
        gang.pods.pop(rng.randrange(len(gang.pods)))


def _group(cluster: Cluster, gang: Gang, state: str) -> Object:
    rng = cluster.rng
    needed = sum(role.least for role in gang.roles)
    spec: Object = {"minMember": max(1, needed + rng.choice((0,) * 9 + (1,)))}
    if gang.roles[0].name:
        spec["roles"] = [_declared(role) for role in gang.roles]
    if rng.random() < (0.75 if state == "partial" else 0.4):
        spec["onPartial"] = "Release"
        if state == "partial":
            cluster.shown.add("partial gangs with onPartial: Release")
    if cluster.may("priorities", 0.2):
        name = cluster.name("class-")
        value = rng.choice((0, 10, 1000))
        spec["priorityClassName"] = name if rng.random() < 0.9 else "not-there"
        one = named("PriorityClass", name, version="scheduling.k8s.io/v1")
        cluster.objects.append({**one, "value": value})
    spec |= _times(cluster, state)
    group = pod_group(gang.name, gang.space, spec, gang.age)
    if state == "deleted":
        group["metadata"]["deletionTimestamp"] = moment(0)
    if state == "partial":
        _remember(cluster, gang, group["metadata"]["uid"])
    return group


def _times(cluster: Cluster, state: str) -> Object:
    """The fields of a PodGroup that are about time."""
    rng = cluster.rng
    spec: Object = {}
    if cluster.may("timeouts", 0.6):
        spec["scheduleTimeoutSeconds"] = rng.choice((20, 500, 5000))
        spec["onTimeout"] = rng.choice(("Fail", "Fail", "KeepWaiting"))
        if state == "waits" and spec["onTimeout"] == "Fail":
            cluster.shown.add("timeouts with onTimeout: Fail")
    if rng.random() < 0.2:
        spec["absentMemberTimeoutSeconds"] = rng.choice((0, 100, 86_400))
    return spec


def _remember(cluster: Cluster, gang: Gang, uid: str) -> None:
    """What the operator that wrote a dump knew of a gang: members that ended, slots that went."""
    key = f"{gang.space}/{gang.name}"
    if cluster.rng.random() < 0.2:
        cluster.finished[key] = [gang.roles[-1].name]
    if any(role.has_template for role in gang.roles) and cluster.rng.random() < 0.7:
        cluster.shown.add("slots that were lost")
        cluster.bereft[key] = uid


def _declared(role: Role) -> Object:
    spec: Object = {"name": role.name, "minMember": role.least}
    if role.most is not None:
        spec["maxMember"] = role.most
    if role.has_template:
        spec["template"] = role.ask.template()
    return spec


def _add_reservation(cluster: Cluster, gang: Gang, group: Object) -> None:
    rng = cluster.rng
    one = reservation(group, [*gang.placement.values()], rng.choice((1, 30, 700)))
    bound = [pod for pod in gang.pods if "nodeName" in pod["spec"]]
    if bound and group["spec"].get("onPartial") == "Release" and rng.random() < 0.5:
        cluster.shown.add("Reservations that evict")
        one["spec"] |= {"evict": [pod["metadata"]["uid"] for pod in bound], "placement": []}
    cluster.objects.append(one)


def _become_workload(cluster: Cluster, gang: Gang) -> None:
    """Write the pods of each role as a Job or a StatefulSet that would make them."""
    cluster.shown.add("workloads")
    for role in gang.roles:
        pods = [
            pod
            for pod in gang.pods
            if pod["metadata"]["name"].startswith(f"{gang.name}-{role.name}")
        ]
        if not pods:
            continue
        version, kind = cluster.rng.choice(CONTROLLERS)
        one = named(kind, f"{gang.name}-{role.name or 'all'}", gang.space, version)
        template = {"metadata": {"labels": pods[0]["metadata"]["labels"]}, "spec": pods[0]["spec"]}
        count = "parallelism" if kind == "Job" else "replicas"
        cluster.objects.append({**one, "spec": {count: len(pods), "template": template}})
