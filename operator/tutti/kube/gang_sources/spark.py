"""Gangs of Spark applications: the application and role of a pod, by the labels of Spark.

The gang of an application is declared by a PodGroup with the application's id as its name; the
package ``spark`` makes it. Only this module knows the labels, and the ConfigMaps that a driver
mounts. Source: SPARK_ROLE_LABEL, SPARK_APP_ID_LABEL, SPARK_CONF_VOLUME_DRIVER and
POD_TEMPLATE_VOLUME in Constants of Apache Spark.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ...model.applications import DRIVER, EXECUTOR, ApplicationPod, ConfigMapKey
from ...model.keys import GangKey
from .. import wire
from ..calls import Call
from .base import GangSource

TUTTI_GROUP_LABEL = "tutti.dev/pod-group"
TUTTI_ROLE_LABEL = "tutti.dev/role"
SPARK_LABEL = "spark-role"
APP_LABEL = "spark-app-selector"
NUMBER_LABEL = "spark-exec-id"  # the number of an executor in its application, from 1
PROFILE_LABEL = "spark-exec-resourceprofile-id"
# The second is the label of pods that were created for Palantir's scheduler.
APP_LABELS = (APP_LABEL, "spark-app-id")

# The API server accepts any text as the name in a volume; in a path, "../../x" leads elsewhere.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
PROPERTIES = "spark.properties"
TEMPLATE = "pod-spec-template.yml"
PROPERTIES_VOLUME = "spark-conf-volume"  # the start of the name; Spark 3.1 and newer add -driver
TEMPLATE_VOLUME = "pod-template-volume"

EXECUTORS = "tutti.dev/executors"
MOST_EXECUTORS = "tutti.dev/max-executors"
# Annotations of github.com/palantir/k8s-spark-scheduler, which are on drivers.
PALANTIR = "spark-"
COUNT = f"{PALANTIR}executor-count"
CPU = f"{PALANTIR}executor-cpu"
MEMORY = f"{PALANTIR}executor-mem"
GPU = f"{PALANTIR}executor-nvidia.com/gpu"
IS_DYNAMIC = f"{PALANTIR}dynamic-allocation-enabled"
LEAST = f"{PALANTIR}dynamic-allocation-min-executor-count"
MOST = f"{PALANTIR}dynamic-allocation-max-executor-count"
MARKS: Mapping[str, frozenset[str]] = {
    EXECUTOR: frozenset({EXECUTORS, MOST_EXECUTORS}),
    DRIVER: frozenset({COUNT, CPU, MEMORY, GPU, IS_DYNAMIC, LEAST, MOST}),
}


def role_of(labels: Mapping[str, str]) -> str:
    """The role of a pod in its gang: by the label of Tutti, or else by the label of Spark."""
    role = labels.get(SPARK_LABEL, "")
    return labels.get(TUTTI_ROLE_LABEL, "") or (role if role in MARKS else "")


def app_of(labels: Mapping[str, str]) -> str:
    """The application that a pod joins by Spark's own labels; empty if it names a PodGroup."""
    return "" if labels.get(TUTTI_GROUP_LABEL) else _application(labels)


def _application(labels: Mapping[str, str]) -> str:
    if labels.get(SPARK_LABEL) not in MARKS:
        return ""
    return next((labels[name] for name in APP_LABELS if labels.get(name)), "")


def joining(labels: Mapping[str, str], group: str, role: str) -> Mapping[str, str]:
    """The labels, with Tutti's labels for this group and role if Spark's do not name them."""
    full = dict(labels)
    if app_of(labels) != group:
        full[TUTTI_GROUP_LABEL] = group
    if role_of(full) != role:
        full[TUTTI_ROLE_LABEL] = role
    return full


def decode_spark(pod: wire.Pod) -> ApplicationPod | None:
    """The application of a pod; None if it is not a pod of Spark, or names a PodGroup."""
    labels = pod.metadata.labels
    if not (app := app_of(labels)):
        return None
    role = labels[SPARK_LABEL]
    annotations = pod.metadata.annotations.items()
    marks = tuple(sorted((name, value) for name, value in annotations if name in MARKS[role]))
    if role == EXECUTOR:
        return ApplicationPod(app, role, annotations=marks)
    return ApplicationPod(
        app,
        role,
        _config_map_key(pod.spec.volumes, PROPERTIES_VOLUME, PROPERTIES),
        _config_map_key(pod.spec.volumes, TEMPLATE_VOLUME, TEMPLATE),
        marks,
    )


def _config_map_key(
    volumes: Iterable[Mapping[str, Any]], name: str, file: str
) -> ConfigMapKey | None:
    """The ConfigMap and key of a file in a volume whose name begins with ``name``."""
    for volume in volumes:
        source = volume.get("configMap")
        if not (isinstance(source, Mapping) and str(volume.get("name")).startswith(name)):
            continue
        if _NAME.fullmatch(str(source.get("name"))):
            return ConfigMapKey(str(source["name"]), _key(source.get("items"), file))
    return None


def _key(items: Any, file: str) -> str:
    """The key of a file: its name, unless the volume maps another key to that path."""
    for item in items if isinstance(items, list | tuple) else ():
        if isinstance(item, Mapping) and item.get("path") == file and item.get("key"):
            return str(item["key"])
    return file


def _gang_of(pod: wire.Pod) -> GangKey | None:
    name = _application(pod.metadata.labels)
    return GangKey(pod.metadata.namespace, name) if name else None


SOURCE = GangSource(
    "spark",
    30,
    _gang_of,
    rights=frozenset({Call.GET_CONFIG_MAP, Call.CREATE_POD_GROUP}),
    is_awaited=False,
    application_of=decode_spark,
)
