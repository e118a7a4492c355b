"""Pods with YuniKorn's annotations on a real API server: their applications are gangs."""

from __future__ import annotations

import json
from typing import Any

from tests.harness.rig import Rig, pod

SOURCE = "yunikorn.apache.org/task-groups"
NAME = "yunikorn.apache.org/task-group-name"
ENVIRONMENT = {"TUTTI_GANG_SOURCES": SOURCE}
VALUES = [f"settings.gangSources={{{SOURCE}}}"]


def task_group(name: str, least: int, cpu: int = 1) -> dict[str, Any]:
    """A task group as YuniKorn's users write it, with a number for a quantity."""
    return {"name": name, "minMember": least, "minResource": {"cpu": cpu}}


def worker(
    name: str, app: str, *groups: dict[str, Any], group: str = "w", **labels: str
) -> dict[str, Any]:
    """A pod of an application; it has the annotation if there are task groups."""
    body = pod(name, cpu=1)
    body["metadata"]["labels"] = {"applicationId": app, **labels}
    annotations = {NAME: group} | ({SOURCE: json.dumps(groups)} if groups else {})
    body["metadata"]["annotations"] |= annotations
    return body


def test_an_application_starts_whole_and_another_waits_for_its_room() -> None:
    with Rig.start(values=VALUES, environment=ENVIRONMENT) as rig:
        rig.nodes(1, cpu=5, memory="16Gi")
        three = task_group("w", 3)
        rig.create(worker("a-0", "a"))
        rig.until(
            lambda: rig.pod_says("a-0").get("reason") == "WaitingForConfiguration", "it waits"
        )
        rig.create(worker("a-1", "a", three), worker("a-2", "a", three))
        rig.until(lambda: rig.bound() == 3, "the gang starts whole")
        rig.create(*(worker(f"b-{index}", "b", three) for index in range(3)))
        rig.until_waiting("b", "NotEnoughRoom")
        rig.create(worker("wrong-0", "wrong", task_group("w", 10**9)))
        rig.until(lambda: "5000" in rig.pod_says("wrong-0").get("message", ""), "it says its limit")
        for index in range(3):
            rig.delete("pod", f"a-{index}")
        rig.until(lambda: rig.bound() == 3, "the second starts whole")
        rig.delete("pod", "wrong-0")


def test_a_spark_application_with_task_groups_holds_the_room_of_its_executors() -> None:
    """No ConfigMap is read: the driver mounts none here."""
    app = "spark-0123"
    groups = [task_group("driver", 1), task_group("executor", 2)]
    spark = {"spark-app-selector": app}
    driver = worker("drv", app, *groups, group="driver", **spark, **{"spark-role": "driver"})
    with Rig.start(values=VALUES, environment=ENVIRONMENT) as rig:
        rig.nodes(1, cpu=3, memory="16Gi")
        rig.create(driver)
        rig.until(lambda: rig.bound() == 1, "the driver starts")
        rig.create(pod("other", cpu=1))
        rig.until(lambda: rig.pod_says("other").get("reason") == "Unschedulable", "room is held")
        rig.create(
            *(
                worker(f"exec-{i}", app, group="executor", **spark, **{"spark-role": "executor"})
                for i in range(2)
            )
        )
        rig.until(lambda: rig.bound() == 3, "the executors have their room")
        assert not {"nodeName"} & rig.pod("other")["spec"].keys()
        rig.delete("pod", "other")


def test_with_the_source_off_a_pod_starts_alone_and_an_event_names_the_value() -> None:
    with Rig.start() as rig:
        rig.nodes(1, cpu=2, memory="16Gi")
        rig.create(worker("a-0", "a", task_group("w", 3)))
        rig.until(lambda: rig.bound() == 1, "it starts alone")
        (event,) = rig.until(lambda: rig.events("a-0"), "an Event says so")
        assert event["reason"] == "StartsAlone"
        assert SOURCE in event["message"]
