"""The PodGroup of an application of YuniKorn, made of the annotation of its first pod."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tutti.model.applications import ApplicationPod
from tutti.model.keys import Uid
from tutti.model.owners import Owner
from tutti.spark.task_groups import BadTaskGroups, group

from ...harness.builders import member, shape

if TYPE_CHECKING:
    from tutti.model.cluster import Member

WORKERS = {"name": "workers", "minMember": 3, "minResource": {"cpu": 1, "memory": "2Gi"}}


def made(text: str, of: Member | None = None, **fields: Any) -> Any:
    return group(
        of or member("a-0", shape(cpu=1)), ApplicationPod("a", "w", task_groups=text, **fields)
    )


def test_each_task_group_is_a_role_with_a_template() -> None:
    selector = {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"operator": "Exists"}]}
    groups = [WORKERS | selector, {"name": "driver", "minMember": 1}]
    body = made(json.dumps(groups))
    assert body["metadata"]["name"] == "a"
    assert body["spec"] == {
        "roles": [
            {
                "name": "workers",
                "minMember": 3,
                "template": {"resources": {"cpu": "1", "memory": "2Gi"}, **selector},
            },
            {"name": "driver", "minMember": 1},
        ]
    }


def test_the_time_out_is_that_of_the_podgroup_and_a_hard_one_fails() -> None:
    text = json.dumps([WORKERS])
    spec = made(text, timeout_seconds=60)["spec"]
    assert (spec["scheduleTimeoutSeconds"], spec["onTimeout"]) == (60, "KeepWaiting")
    assert made(text, timeout_seconds=60, fails_at_timeout=True)["spec"]["onTimeout"] == "Fail"


def test_the_podgroup_belongs_to_the_controller_of_the_pod_or_to_the_pod() -> None:
    """A driver of Spark is never replaced within its application."""
    text, job = json.dumps([WORKERS]), Owner("Job", "sum", "batch", Uid("j"))
    bare = member("a-0", shape(cpu=1))
    owned = replace(bare, owner=job)
    driver = replace(owned, is_driver=True)
    kinds = [
        made(text, pod, owner_version=version)["metadata"]["ownerReferences"][0]["kind"]
        for pod, version in ((bare, ""), (owned, "batch/v1"), (driver, "batch/v1"))
    ]
    assert kinds == ["Pod", "Job", "Pod"]
    (reference,) = made(text, owned, owner_version="batch/v1")["metadata"]["ownerReferences"]
    assert reference == {"apiVersion": "batch/v1", "kind": "Job", "name": "sum", "uid": "j"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "'{' is not JSON"),
        ("[" * 9_000, "is not JSON"),
        (
            f'[{{"name": "w", "minMember": 1, "affinity": {{"a": {"[" * 99}{"]" * 99}}}}}]',
            "it is nested more than 100 levels deep",
        ),
        ("x" * 40_000, "it has more than 32,768 characters"),
        ("{}", "taskGroups"),
        ("[]", "there is no task group in it"),
        ("null", "there is no task group in it"),
        ('[{"name": "w"}]', "task group 'w' has no minMember of at least 1"),
        ('[{"name": "w", "minMember": -1}]', "task group 'w' has no minMember of at least 1"),
    ],
)
def test_task_groups_that_cannot_be_read_are_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(BadTaskGroups) as refused:
        made(text)
    assert str(refused.value).startswith("annotation yunikorn.apache.org/task-groups: ")
    assert why in str(refused.value)
