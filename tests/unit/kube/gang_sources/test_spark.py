"""Pods of Spark by their labels: whose they are, what they mount, and what they say."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.kube import errors, wire
from tutti.kube.codec.decode import decode_member
from tutti.kube.gang_sources.spark import decode_spark, joining
from tutti.model.applications import ApplicationPod, ConfigMapKey

LABELS = {"spark-role": "driver", "spark-app-selector": "spark-1"}


def config(name: str, volume: str, *items: dict[str, str]) -> dict[str, Any]:
    source: dict[str, Any] = {"name": name}
    if items:
        source["items"] = list(items)
    return {"name": volume, "configMap": source}


def pod(
    labels: dict[str, str], *volumes: dict[str, Any], annotations: dict[str, str] | None = None
) -> wire.Pod:
    metadata = {
        "name": "p",
        "uid": "u",
        "namespace": "etl",
        "labels": labels,
        "annotations": annotations or {},
    }
    return wire.parse_one({"metadata": metadata, "spec": {"volumes": list(volumes)}}, wire.Pod)


@pytest.mark.parametrize(
    ("labels", "role", "app"),
    [
        (LABELS, "driver", "spark-1"),
        ({**LABELS, "spark-role": "executor"}, "executor", "spark-1"),
        ({**LABELS, "tutti.dev/role": "head"}, "head", "spark-1"),
        ({"spark-role": "driver", "spark-app-id": "old"}, "driver", "old"),
        ({"spark-role": "driver"}, "driver", None),
        ({**LABELS, "spark-app-selector": ""}, "driver", None),
        ({**LABELS, "spark-role": "bystander"}, "", None),
        ({"spark-app-selector": "spark-1"}, "", None),
        ({**LABELS, "tutti.dev/pod-group": "mine"}, "driver", None),
        ({}, "", None),
    ],
)
def test_application_and_role_follow_from_labels(
    labels: dict[str, str], role: str, app: str | None
) -> None:
    """A pod that names a PodGroup joins that one, and no other by itself."""
    member = decode_member(pod(labels))
    assert (member.role, member.application and member.application.app) == (role, app)
    assert member.group == labels.get("tutti.dev/pod-group", "")


def test_a_driver_says_where_its_properties_are() -> None:
    """As Spark mounts them from 3.1 on, and before."""
    item = {"key": "podspec-configmap-key", "path": "pod-spec-template.yml"}
    volumes = [
        {"name": "spark-local-dir-1", "emptyDir": {}},
        config(
            "drv-conf-map", "spark-conf-volume-driver", {"key": "x", "path": "log4j.properties"}
        ),
        config("drv-podspec", "pod-template-volume", item),
    ]
    assert decode_spark(pod(LABELS, *volumes)) == ApplicationPod(
        "spark-1",
        "driver",
        ConfigMapKey("drv-conf-map", "spark.properties"),
        ConfigMapKey("drv-podspec", "podspec-configmap-key"),
    )
    before = decode_spark(pod(LABELS, config("old", "spark-conf-volume")))
    assert before == ApplicationPod("spark-1", "driver", ConfigMapKey("old", "spark.properties"))


@pytest.mark.parametrize(
    "volume",
    [
        {"name": "spark-conf-volume-driver", "secret": {"secretName": "s"}},
        {"name": "spark-conf-volume-driver", "configMap": "text"},
        {"name": "spark-conf-volume-driver", "configMap": {}},
        {"name": 7, "configMap": {"name": "c"}},
        {"configMap": {"name": "c"}},
        {"name": "spark-conf-volume-driver", "configMap": {"name": "../../x/configmaps/c"}},
        {"name": "spark-conf-volume-driver", "configMap": {"name": "c?x"}},
        {"name": "spark-conf-volume-driver", "configMap": {"name": ".."}},
        {"name": "spark-conf-volume-driver", "configMap": {"name": "c" * 300}},
    ],
)
def test_what_is_no_configmap_of_sparks_is_none(volume: dict[str, Any]) -> None:
    assert decode_spark(pod(LABELS, volume)) == ApplicationPod("spark-1", "driver")


@pytest.mark.parametrize("items", ["text", 3, ["text"], [{"path": "spark.properties"}], None])
def test_items_that_are_none_leave_the_files_own_name(items: object) -> None:
    source = {"name": "c", "items": items}
    found = decode_spark(pod(LABELS, {"name": "spark-conf-volume-driver", "configMap": source}))
    assert found == ApplicationPod("spark-1", "driver", ConfigMapKey("c", "spark.properties"))


def test_only_the_annotations_that_count_are_kept() -> None:
    said = {"tutti.dev/executors": "8", "spark-executor-count": "4", "note": "x"}
    driver = decode_spark(pod(LABELS, annotations=said))
    executor = decode_spark(pod({**LABELS, "spark-role": "executor"}, annotations=said))
    assert driver == ApplicationPod(
        "spark-1", "driver", annotations=(("spark-executor-count", "4"),)
    )
    assert executor == ApplicationPod(
        "spark-1", "executor", annotations=(("tutti.dev/executors", "8"),)
    )
    assert driver.is_declaring
    assert executor.is_declaring
    assert not ApplicationPod("spark-1", "executor").is_declaring


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["name", "configMap", "items", "key", "path"]), inner, max_size=4
            )
        ),
        max_leaves=12,
    )
)
def test_whatever_a_volume_is_it_is_read_or_refused(volume: object) -> None:
    raw = {"metadata": {"name": "p", "uid": "u", "labels": LABELS}, "spec": {"volumes": [volume]}}
    with contextlib.suppress(errors.BadObject):
        assert decode_member(wire.parse_one(raw, wire.Pod)).is_driver


@pytest.mark.parametrize(
    ("labels", "added"),
    [
        ({}, {"tutti.dev/pod-group": "spark-1", "tutti.dev/role": "executor"}),
        ({"spark-role": "executor", "spark-app-selector": "spark-1"}, {}),
        ({"spark-role": "executor", "spark-app-id": "spark-1"}, {}),
        ({"spark-role": "executor"}, {"tutti.dev/pod-group": "spark-1"}),
        (
            {"spark-role": "executor", "spark-app-selector": "other"},
            {"tutti.dev/pod-group": "spark-1"},
        ),
        (
            {"spark-role": "driver", "spark-app-selector": "spark-1"},
            {"tutti.dev/role": "executor"},
        ),
        (
            {"tutti.dev/pod-group": "other", "tutti.dev/role": "worker", "team": "x"},
            {"tutti.dev/pod-group": "spark-1", "tutti.dev/role": "executor"},
        ),
    ],
)
def test_labels_by_which_a_pod_joins_are_added_where_it_has_none(
    labels: dict[str, str], added: dict[str, str]
) -> None:
    full = joining(labels, "spark-1", "executor")
    assert full == {**labels, **added}
    assert joining(full, "spark-1", "executor") == full
    member = decode_member(pod(dict(full)))
    assert member.role == "executor"
    assert "spark-1" in (member.group, member.application and member.application.app)
