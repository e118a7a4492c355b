"""What a pod of Spark says of itself, written so that the decoder reads the same.

Separate from ``encode``, which writes what every pod has.
"""

from typing import Any

from ..kube.codec.spark import (
    APP_LABEL,
    GROUP_LABEL,
    PROPERTIES,
    PROPERTIES_VOLUME,
    ROLE_LABEL,
    SPARK_LABEL,
    TEMPLATE,
    TEMPLATE_VOLUME,
    role_of,
)
from ..model.cluster import Member
from ..model.spark import DRIVER, ConfigMapKey, SparkPod

Raw = dict[str, Any]

UNCONFIGURED = "tutti.dev/unconfigured"  # in dumps alone: why nobody knows the size of its gang


def labels(value: Member) -> Raw:
    """Its own, and those that say to the decoder what it is."""
    found = dict(value.labels)
    if value.is_driver:
        found[SPARK_LABEL] = DRIVER
    if value.spark is not None:
        found |= {SPARK_LABEL: value.spark.role, APP_LABEL: value.spark.app}
    elif value.group:
        found[GROUP_LABEL] = value.group
    if value.role != role_of(found):
        found[ROLE_LABEL] = value.role
    return found


def marks(value: Member) -> Raw:
    """The annotations that say how large its gang is, or why nobody knows."""
    found = {} if value.spark is None else dict(value.spark.marks)
    if value.size_unknown_because:
        found[UNCONFIGURED] = value.size_unknown_because
    return found


def mount(spec: Raw, spark: SparkPod | None) -> None:
    """Let a driver mount the ConfigMaps that it mounts."""
    if spark is not None:
        _mount(spec, PROPERTIES_VOLUME, PROPERTIES, spark.properties)
        _mount(spec, TEMPLATE_VOLUME, TEMPLATE, spark.template)


def _mount(spec: Raw, name: str, file: str, kept: ConfigMapKey | None) -> None:
    """Let a pod mount a text of a ConfigMap."""
    if kept is not None:
        source = {"name": kept.config_map, "items": [{"key": kept.key, "path": file}]}
        spec.setdefault("volumes", []).append({"name": name, "configMap": source})
