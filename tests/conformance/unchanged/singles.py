"""Pods of generated clusters without a PodGroup that is there: alone, strays, and Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import storage
from .objects import GROUP_LABEL, Ask, Object, Room, pod, pod_group
from .rules import APPS, RULES, SPACES, with_rule

if TYPE_CHECKING:
    from .clusters import Cluster

UNCONFIGURED = "tutti.dev/unconfigured"


def add_single(cluster: Cluster) -> None:
    """A pod that is a gang of its own, or that names a PodGroup that is not there."""
    rng = cluster.rng
    ask = Ask(Room(rng.choice((250, 1000, 2000)), 512, 0, 1), {"app": rng.choice(APPS)})
    if cluster.may("GPUs", 0.3):
        ask = ask.but(room=ask.room + Room(gpus=1))
    for rule in RULES:
        if cluster.may(rule, 0.3):
            ask = with_rule(rng, ask, rule)
    kind = rng.choice(("waits",) * 7 + ("runs", "stray", "gate", "over"))
    if kind == "stray":
        cluster.shown.add("pods that name no PodGroup that is there")
        ask = ask.but(labels={**ask.labels, GROUP_LABEL: "not-there"})
    on = cluster.room_for(ask) if kind == "runs" else ""
    age = rng.choice((5, 500, 5000))
    one = pod(cluster.name("single-"), rng.choice(SPACES), ask, age, on)
    cluster.shown.add("single pods")
    if on:
        cluster.take(on, ask)
    elif kind == "gate":
        cluster.shown.add("scheduling gates")
        one["spec"]["schedulingGates"] = [{"name": "example.com/hold"}]
    elif kind == "over":
        cluster.shown.add("finished pods")
        one["status"]["phase"] = "Succeeded"
    if cluster.may("priorities", 0.5):
        one["spec"]["priority"] = rng.choice((10, 1000, -5))
    if "volumes" in cluster.features and rng.random() < 0.5:
        storage.add_claims(cluster, [one])
    cluster.objects.append(one)


def add_spark(cluster: Cluster) -> None:
    """A Spark application by Spark's own labels, its PodGroup declared or still to be."""
    rng = cluster.rng
    app = cluster.name("spark-app-")
    labels = {"spark-app-selector": app, "app": rng.choice(APPS)}
    space, executors = rng.choice(SPACES), rng.choice((1, 2, 3))
    driver = Ask(Room(1000, 1024, 0, 1), {**labels, "spark-role": "driver"})
    executor = Ask(Room(rng.choice((500, 1000, 2000)), 2048, 0, 1), labels)
    cluster.shown.add("Spark")
    started = rng.random() < 0.5
    on = cluster.room_for(driver) if started else ""
    one = pod(f"{app}-driver", space, driver, 60, on)
    if on:
        cluster.take(on, driver)
    cluster.objects.append(one)
    if rng.random() < 0.3:
        cluster.shown.add("Spark without a PodGroup")
        if rng.random() < 0.5:
            one["metadata"]["annotations"] = {UNCONFIGURED: "the driver says nothing"}
        return
    group = pod_group(app, space, _declared(executor, executors), 60)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": f"{app}-driver"}
    group["metadata"]["ownerReferences"] = [{**owner, "uid": one["metadata"]["uid"]}]
    cluster.objects.append(group)
    for i in range(rng.randint(0, executors) if on else 0):
        ask = executor.but(labels={**labels, "spark-role": "executor", "spark-exec-id": str(i + 1)})
        cluster.objects.append(pod(f"{app}-exec-{i + 1}", space, ask, 10))
    if on and rng.random() < 0.5:
        cluster.bereft[f"{space}/{app}"] = group["metadata"]["uid"]


def _declared(executor: Ask, number: int) -> Object:
    template = executor.but(labels={**executor.labels, "spark-role": "executor"}).template()
    roles = [
        {"name": "driver", "minMember": 1, "maxMember": 1},
        {"name": "executor", "minMember": number, "template": template},
    ]
    return {"minMember": number + 1, "roles": roles}
