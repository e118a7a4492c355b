"""A Spark application as manifests that are on no API server: a PodGroup and its pods."""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from ..kube.codec.encode import API_VERSION
from ..kube.gang_sources.spark import SPARK_LABEL, TUTTI_GROUP_LABEL, TUTTI_ROLE_LABEL
from .conf import BadProperty
from .resources import Part, PodResources, SparkApplication

MOST_MEMBERS = 5000  # of a PodGroup, by its CRD
NAME_LIMIT = 52  # leaves room for numbers in the 63 characters of a label
UNNAMED = "spark"
_OTHERS = re.compile(r"[^a-z0-9]+")

Raw = dict[str, Any]


def manifests(app: SparkApplication, name: str, namespace: str, scheduler: str) -> Sequence[Raw]:
    """The PodGroup and the pods for ``scheduler``; pods that name another scheduler are left out.

    The answer is empty if no pod is for this scheduler.

    Raises:
        BadProperty: a gang cannot have so many members.
    """
    parts = {
        part: (resources, count)
        for part, resources, count in (
            (Part.DRIVER, app.driver, 0 if app.is_client else 1),
            (Part.EXECUTOR, app.executor, app.executors),
        )
        if count and resources.scheduler in (None, scheduler)
    }
    if sum(count for _, count in parts.values()) > MOST_MEMBERS:
        why = f"a gang has at most {MOST_MEMBERS:,} members"
        raise BadProperty("executors", str(app.executors), why)
    if not parts:
        return []
    roles = [{"name": part.value, "minMember": count} for part, (_, count) in parts.items()]
    group: Raw = {
        "apiVersion": API_VERSION,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"roles": roles},
    }
    return [group, *_pods(parts, name, namespace, scheduler)]


def gang_name(app: SparkApplication, names_in_use: Container[str]) -> str:
    """A name for the gang, made from the name of the application, that is not in use."""
    base = _OTHERS.sub("-", app.name.lower()).strip("-")[:NAME_LIMIT].strip("-") or UNNAMED
    name, number = base, 1
    while name in names_in_use:
        number += 1
        name = f"{base}-{number}"
    return name


def _pods(
    parts: Mapping[Part, tuple[PodResources, int]], name: str, namespace: str, scheduler: str
) -> Iterator[Raw]:
    for part, (pod_resources, count) in parts.items():
        resources = {"requests": dict(pod_resources.requests), "limits": dict(pod_resources.limits)}
        for number in range(1, count + 1):
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{name}-driver" if part is Part.DRIVER else f"{name}-exec-{number}",
                    "namespace": namespace,
                    "labels": {
                        **pod_resources.labels,
                        SPARK_LABEL: part.value,
                        TUTTI_GROUP_LABEL: name,
                        TUTTI_ROLE_LABEL: part.value,
                    },
                },
                "spec": {
                    "schedulerName": scheduler,
                    "nodeSelector": dict(pod_resources.node_selector),
                    "containers": [{"name": f"spark-{part}", "resources": resources}],
                },
            }
