"""Pods of Spark belong to the PodGroup of their application, if there is one."""

from typing import Any

from ...harness.judge import Kind, Promise
from .writing import Story, two_nodes


def pod(story: Story, name: str, role: str, node: str = "", **labels: str) -> int:
    """Put a pod that names no PodGroup."""
    own = {"spark-app-selector": "spark-1", "spark-role": role, **labels}
    body: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "ml", "uid": f"uid-{name}", "labels": own},
        "spec": {"schedulerName": "tutti", "nodeName": node, "containers": []},
        "status": {"phase": "Pending"},
    }
    return story.put(Kind.PODS, body)


def test_they_are_members_that_nobody_may_bind_before_the_rest_is_reserved() -> None:
    story = two_nodes()
    pod(story, "drv", "driver")
    story.group("spark-1", driver=1, executor=2)
    story.bind("drv", "a")
    (found,) = story.verdict().of(Promise.WHOLE)
    assert "gang ml/spark-1: 1 of 3 members bound" in found.sentence


def test_one_bound_before_its_podgroup_was_made_is_a_violation_as_well() -> None:
    story = two_nodes()
    pod(story, "drv", "driver")
    story.bind("drv", "a")
    story.group("spark-1", driver=1, executor=2)
    assert story.verdict().of(Promise.RESERVED_FIRST)


def test_without_such_a_podgroup_each_is_alone() -> None:
    story = two_nodes()
    pod(story, "exec-1", "executor")
    story.bind("exec-1", "a")
    assert not story.verdict().violations
