"""Which application and task group of YuniKorn a pod is in, and how its task groups are read."""

from __future__ import annotations

from typing import Any

import pytest

from tutti.kube import gang_sources, wire
from tutti.kube.codec.decode import decode_member
from tutti.kube.errors import BadObject
from tutti.kube.gang_sources import yunikorn
from tutti.model.applications import ApplicationPod
from tutti.model.keys import GangKey

from .. import objects

SOURCES = gang_sources.chosen([yunikorn.TASK_GROUPS])
NAMED = {yunikorn.GROUP_NAME: "workers"}
TEXT = '[{"name": "workers", "minMember": 3, "minResource": {"cpu": 1}}]'
SPARK = {"spark-role": "driver", "spark-app-selector": "spark-1"}


def pod(labels: dict[str, str], annotations: dict[str, str], **metadata: Any) -> wire.Pod:
    body = objects.merged(objects.POD, {"metadata": {"namespace": "ml"}})
    body["metadata"] |= {"labels": labels, "annotations": annotations, **metadata}
    return wire.parse_one(body, wire.Pod)


@pytest.mark.parametrize(
    ("labels", "annotations", "app"),
    [
        ({"applicationId": "a"}, NAMED, "a"),
        ({"applicationId": "a"}, NAMED | {"yunikorn.apache.org/app-id": "b"}, "b"),
        (
            {"applicationId": "a", "yunikorn.apache.org/app-id": "c"},
            NAMED | {"yunikorn.apache.org/app-id": "b"},
            "c",
        ),
        (SPARK, NAMED, "spark-1"),
        (SPARK | {"applicationId": "a"}, NAMED, "a"),
        ({"applicationId": "a"}, {}, None),
        ({}, NAMED, None),
        ({"applicationId": "a", "tutti.dev/pod-group": "g"}, NAMED, None),
    ],
    ids=[
        "label",
        "annotation",
        "newer label",
        "Spark",
        "before Spark",
        "no group",
        "no application",
        "PodGroup",
    ],
)
def test_a_pod_that_names_a_task_group_is_of_the_application_that_yunikorn_finds(
    labels: dict[str, str], annotations: dict[str, str], app: str | None
) -> None:
    application = yunikorn.application_of(pod(labels, annotations))
    assert (application and application.app) == app


def test_its_role_is_its_task_group_and_it_waits_for_the_podgroup_of_its_application() -> None:
    """The task groups count before what Spark's driver mounts."""
    member = decode_member(pod(SPARK, NAMED | {yunikorn.TASK_GROUPS: TEXT}), SOURCES)
    assert (member.group, member.role) == ("", "workers")
    assert member.application == ApplicationPod(
        "spark-1", "workers", task_groups=TEXT, owner_version="batch/v1"
    )
    assert member.application.is_declaring
    assert not member.application.is_driver
    assert member.other_gangs == (GangKey("ml", "spark-1"),)  # the same, once it is there


def test_without_the_source_spark_decides_and_other_pods_name_a_gang_that_is_not_read() -> None:
    annotations = NAMED | {yunikorn.TASK_GROUPS: TEXT}
    spark = decode_member(pod(SPARK, annotations))
    assert spark.application == ApplicationPod("spark-1", "driver")
    plain = decode_member(pod({"applicationId": "a"}, annotations))
    assert plain.unread_gang == GangKey("ml", "a", yunikorn.KIND)
    assert gang_sources.source_name(yunikorn.KIND) == "yunikorn.apache.org/task-groups"


@pytest.mark.parametrize(
    ("text", "seconds", "fails"),
    [
        ("", None, False),
        ("placeholderTimeoutInSeconds=30 gangSchedulingStyle=Hard", 30, True),
        ("gangSchedulingStyle=Soft", None, False),
        ("placeholderTimeoutInSeconds=x gangSchedulingStyle", None, False),
        ("placeholderTimeoutInSeconds=0", None, False),
        ("placeholderTimeoutInSeconds=99999999999", None, False),
    ],
)
def test_the_time_out_and_the_style_are_parameters(
    text: str, seconds: int | None, *, fails: bool
) -> None:
    application = yunikorn.application_of(
        pod({"applicationId": "a"}, NAMED | {yunikorn.PARAMETERS: text})
    )
    assert application is not None
    assert (application.timeout_seconds, application.fails_at_timeout) == (seconds, fails)


def test_an_id_that_is_no_name_gets_a_name_of_its_own() -> None:
    names = [yunikorn.name_of(app) for app in ("a-1", "A_1", "a_1", "___", "a" * 70, "x/../y")]
    assert names[0] == "a-1"
    assert names[1].startswith("a-1-")
    assert names[3].startswith("application-")
    assert len({*names}) == len(names)
    assert all(len(name) <= 63 and "/" not in name for name in names)


def test_an_endless_annotation_is_not_kept() -> None:
    text = "[" * 200_000
    application = yunikorn.application_of(
        pod({"applicationId": "a"}, NAMED | {yunikorn.TASK_GROUPS: text})
    )
    assert application is not None
    assert len(application.task_groups or "") == yunikorn.LENGTH_LIMIT + 1


def test_what_is_no_list_of_task_groups_is_refused() -> None:
    bad: tuple[Any, ...] = ({}, [1], [{"name": 3}], [{"minMember": "x"}])
    for groups in bad:
        with pytest.raises(BadObject):
            yunikorn.parse(groups)
    assert yunikorn.parse(None) == ()
