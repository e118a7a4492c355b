"""The Spark operator: it runs spark-submit, and makes a PodGroup whose minMember is always 1.

Operator, webhook and spark-submit are real. What the driver would do, the play does: it creates
the executors.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ...harness.rig import Rig, pod
from ..spark_sizes import environment
from ..spark_sizes.pins import PINS
from .ground import NAMESPACE, owner, path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

APPLICATIONS = path("sparkoperator.k8s.io/v1beta2", "sparkapplications")
GROUPS = path("scheduling.x-k8s.io/v1alpha1", "podgroups")
PLUGINS = "podgroups.scheduling.x-k8s.io"
LAUNCHED = "sparkoperator.k8s.io/launched-by-spark-operator"
LABELS = ("spark-app-selector", "spark-app-name", "spark-version", LAUNCHED)
EXECUTORS = 2
SUBMIT_SECONDS = 180.0  # a JVM on a machine that may be busy
_QUIET_SECONDS = 3.0  # in which pods would start that must not

# What the operator calls: Spark with a Java for it, and the rights of the operator.
SUBMIT = """#!/bin/sh
{variables}
exec '{home}/bin/spark-submit' "$@"
"""


def install_spark(rig: Rig) -> None:
    """Put a spark-submit where the operator looks for it."""
    folder = environment.installed(PINS[0])
    home = environment.home(folder)
    values = environment.variables(folder) | {
        "SPARK_HOME": str(home),
        "KUBECONFIG": str(rig.plane.directory / "spark-operator.kubeconfig"),
    }
    del values["PYSPARK_SUBMIT_ARGS"]
    variables = "\n".join(f"export {name}='{value}'" for name, value in values.items())
    script = rig.plane.directory / "spark" / "bin" / "spark-submit"
    script.parent.mkdir(parents=True)
    script.write_text(SUBMIT.format(variables=variables, home=home))
    script.chmod(0o755)


def application(name: str) -> dict[str, Any]:
    """A driver of one CPU and two executors of two."""
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "type": "Python",
            "mode": "cluster",
            "image": "apache/spark",
            "mainApplicationFile": "local:///opt/spark/examples/src/main/python/pi.py",
            "sparkVersion": PINS[0].pyspark,
            "batchScheduler": "tutti",
            "driver": {"cores": 1, "memory": "600m"},
            "executor": {"instances": EXECUTORS, "cores": 2, "memory": "600m"},
        },
    }


def live(rig: Rig, name: str, role: str) -> list[dict[str, Any]]:
    """The pods of an application in a role that are not being deleted."""
    return [
        pod
        for pod in rig.pods()
        if pod["metadata"].get("labels", {}).get("spark-role") == role
        and pod["metadata"]["labels"].get("sparkoperator.k8s.io/app-name") == name
        and "deletionTimestamp" not in pod["metadata"]
    ]


def placed(rig: Rig, name: str, role: str) -> list[bool]:
    """Whether each of them has a node."""
    return ["nodeName" in pod["spec"] for pod in live(rig, name, role)]


def until_driver(rig: Rig, name: str) -> dict[str, Any]:
    """Wait until the operator has submitted an application; answers its driver."""
    found = rig.until(lambda: live(rig, name, "driver"), f"{name} is submitted", SUBMIT_SECONDS)
    return found[0]


def add_executor(rig: Rig, name: str, number: int) -> None:
    """Create an executor as the driver does, without a scheduler: the webhook sets it."""
    (driver,) = live(rig, name, "driver")
    metadata = driver["metadata"]
    body = pod(f"{name}-exec-{number}", scheduler="default-scheduler", cpu=2, memory="984Mi")
    labels = {label: metadata["labels"][label] for label in LABELS}
    body["metadata"]["labels"] = labels | {
        "sparkoperator.k8s.io/app-name": name,
        "spark-role": "executor",
        "spark-exec-id": str(number),
        "spark-exec-resourceprofile-id": "0",
    }
    reference = {"apiVersion": "v1", "kind": "Pod", "controller": True}
    names = {"name": metadata["name"], "uid": metadata["uid"]}
    body["metadata"]["ownerReferences"] = [reference | names]
    body["spec"]["containers"][0]["name"] = "spark-kubernetes-executor"
    rig.create(body)


def state(rig: Rig, name: str) -> str:
    """What the operator says of an application."""
    status = rig.plane.request("GET", f"{APPLICATIONS}/{name}").get("status", {})
    return str(status.get("applicationState", {}).get("state", ""))


def suspend(rig: Rig, name: str, *, is_suspended: bool) -> None:
    """Suspend an application, or resume it."""
    rig.plane.request("PATCH", f"{APPLICATIONS}/{name}", {"spec": {"suspend": is_suspended}})


def until_whole(rig: Rig, name: str, first: int) -> None:
    """Wait until the driver runs, then create its executors, and wait for their nodes."""
    rig.until(lambda: placed(rig, name, "driver") == [True], f"{name} has its driver")
    for number in range(first, first + EXECUTORS):
        add_executor(rig, name, number)
    rig.until(lambda: placed(rig, name, "executor") == [True] * EXECUTORS, f"{name} is whole")
    rig.until(lambda: state(rig, name) == "RUNNING", f"{name} runs")


def applications(rig: Rig) -> None:
    """Two applications that take 60 % each run one after the other, each with room held for it."""
    install_spark(rig)
    rig.create(application("first"))
    driver = until_driver(rig, "first")
    rig.until(lambda: placed(rig, "first", "driver") == [True], "the driver starts")
    (held,) = rig.until(rig.reservations, "room for the executors is held")
    slots = [entry.get("slots", {}).get("executor", 0) for entry in held["spec"]["placement"]]
    assert sum(slots) == EXECUTORS
    assert driver["spec"]["schedulerName"] == "tutti"
    (group,) = rig.plane.request("GET", GROUPS)["items"]
    assert owner(group) == ("SparkApplication", "first")
    assert group["spec"]["minMember"] == 1

    until_whole(rig, "first", 1)
    rig.create(application("second"))
    waiting = until_driver(rig, "second")["metadata"]["name"]
    rig.until(lambda: rig.pod_says(waiting).get("reason") == "Unschedulable", "the second waits")
    time.sleep(_QUIET_SECONDS)
    assert placed(rig, "second", "driver") == [False]

    # The successor is there at once: room that no pod asks for is free for the second.
    add_executor(rig, "first", EXECUTORS + 1)
    rig.delete("pod", "first-exec-2")
    rig.until(lambda: placed(rig, "first", "executor") == [True] * EXECUTORS, "it is replaced")
    assert placed(rig, "second", "driver") == [False]

    suspend(rig, "first", is_suspended=True)
    until_whole(rig, "second", 1)
    assert state(rig, "first") == "SUSPENDED"
    suspend(rig, "first", is_suspended=False)
    until_driver(rig, "first")
    time.sleep(_QUIET_SECONDS)
    assert placed(rig, "first", "driver") == [False]
    rig.plane.request("DELETE", f"{APPLICATIONS}/second")
    until_whole(rig, "first", 1)
    end(rig, "first")
    rig.until(lambda: state(rig, "first") == "COMPLETED", "the operator sees that it is over")
    rig.plane.request("DELETE", f"{APPLICATIONS}/first")
    rig.until(lambda: not rig.pods(), "everything is given back")


def end(rig: Rig, name: str) -> None:
    """Let the pods of an application succeed, as they do when the driver ends."""
    for role in ("executor", "driver"):
        for live_pod in live(rig, name, role):
            address = path("v1", "pods", live_pod["metadata"]["name"], "status")
            rig.plane.request("PATCH", address, {"status": {"phase": "Succeeded"}})


OPERATED: Mapping[str, tuple[Callable[[Rig], None], ...]] = {"spark-operator": (applications,)}


def enact_operated(name: str) -> str:
    """Play the rounds of a name; answers how long it took, or raises an AssertionError."""
    began = time.monotonic()
    sources = f"podgroups.scheduling.k8s.io,{PLUGINS}"
    with Rig.start(
        *("controller-manager", "spark-operator"),
        values=["spark.enabled=true", f"settings.gangSources={{{sources}}}"],
        environment={"TUTTI_SPARK_ENABLED": "true", "TUTTI_GANG_SOURCES": sources},
    ) as rig:
        rig.nodes(1, cpu=8, memory="64Gi")
        for one in OPERATED[name]:
            one(rig)
    return f"{name}: with Tutti in {time.monotonic() - began:.1f} s"
