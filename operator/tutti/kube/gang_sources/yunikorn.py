"""Gangs of YuniKorn's applications, which annotations of pods declare.

The annotation ``task-groups`` has the sizes and the templates of all groups, as JSON, and
``task-group-name`` says which of them a pod is in. At least the first pod of an application has
the former. The gang is declared by a PodGroup that the package ``spark`` makes of it, with the
task groups as roles. Source: GetApplicationIDFromPod, GetTaskGroupsFromAnnotation and
GetSchedulingPolicyParam in pkg/common and pkg/cache of yunikorn-k8shim.
"""

import hashlib
import re
from typing import Any

from pydantic import Field

from ...model.applications import ApplicationPod
from ...model.keys import ApiKind, GangKey
from .. import wire
from ..calls import Call
from .base import GangSource
from .spark import APP_LABEL, TUTTI_GROUP_LABEL

PREFIX = "yunikorn.apache.org/"
TASK_GROUPS = f"{PREFIX}task-groups"
GROUP_NAME = f"{PREFIX}task-group-name"
PARAMETERS = f"{PREFIX}schedulingPolicyParameters"
APP_ID = f"{PREFIX}app-id"  # a label, or an annotation
ID_LABEL = "applicationId"
TIMEOUT, STYLE, HARD = "placeholderTimeoutInSeconds", "gangSchedulingStyle", "Hard"
LENGTH_LIMIT = 32_768  # characters of the task groups; real ones have a few hundred
KIND = ApiKind("yunikorn.apache.org", "Application")  # of no object: it tells what a pod names
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
_OTHERS = re.compile(r"[^a-z0-9]+")
_SLUG, _DIGITS = 40, 8
_LONGEST_TIMEOUT = 9  # digits


class TaskGroup(wire.Wire):
    """A number of equal pods, and what each of them requests."""

    name: str = ""
    min_member: int = 0
    min_resource: wire.Quantities = Field(default_factory=dict)
    node_selector: dict[str, str] = Field(default_factory=dict)
    tolerations: tuple[dict[str, Any], ...] = ()
    affinity: dict[str, Any] = Field(default_factory=dict)
    topology_spread_constraints: tuple[dict[str, Any], ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)


class TaskGroups(wire.Object):
    """The value of the annotation."""

    task_groups: tuple[TaskGroup, ...] = ()


def application_of(pod: wire.Pod) -> ApplicationPod | None:
    """The application of a pod; None if the pod names no task group, or a PodGroup of Tutti's."""
    metadata = pod.metadata
    annotations, app = metadata.annotations, _id_of(metadata)
    if not (app and annotations.get(GROUP_NAME)) or metadata.labels.get(TUTTI_GROUP_LABEL):
        return None
    parameters = dict(
        pair.split("=", 1) for pair in annotations.get(PARAMETERS, "").split() if "=" in pair
    )
    seconds = parameters.get(TIMEOUT, "")
    is_number = seconds.isdecimal() and len(seconds) <= _LONGEST_TIMEOUT
    return ApplicationPod(
        name_of(app),
        annotations[GROUP_NAME],
        # One character beyond the limit shows that a text is too long.
        task_groups=annotations.get(TASK_GROUPS, "")[: LENGTH_LIMIT + 1],
        timeout_seconds=int(seconds) if is_number and int(seconds) else None,
        fails_at_timeout=parameters.get(STYLE) == HARD,
        owner_version=next(
            (owner.api_version for owner in metadata.owner_references if owner.controller), ""
        ),
    )


def parse(groups: Any) -> tuple[TaskGroup, ...]:
    """Read the value of the annotation.

    Raises:
        BadObject: it is not a list of task groups.
    """
    return wire.parse_one({"taskGroups": groups}, TaskGroups).task_groups


def name_of(app: str) -> str:
    """The name of the PodGroup of an application: its id, or one made of it.

    The id of an application may have characters that names of objects do not.
    """
    if _NAME.fullmatch(app):
        return app
    slug = _OTHERS.sub("-", app.lower())[:_SLUG].strip("-") or "application"
    return f"{slug}-{hashlib.sha256(app.encode()).hexdigest()[:_DIGITS]}"


def _id_of(metadata: wire.Metadata) -> str:
    """The id of the application; YuniKorn reads these fields in this order."""
    labels, annotations = metadata.labels, metadata.annotations
    ids = (labels.get(APP_ID), annotations.get(APP_ID), labels.get(ID_LABEL), labels.get(APP_LABEL))
    return next(filter(None, ids), "")


def _role_of(pod: wire.Pod) -> str:
    return pod.metadata.annotations.get(GROUP_NAME, "")


def _gang_of(pod: wire.Pod) -> GangKey | None:
    metadata = pod.metadata
    app = metadata.annotations.get(GROUP_NAME) and _id_of(metadata)
    return GangKey(metadata.namespace, name_of(app), KIND) if app else None


SOURCE = GangSource(
    TASK_GROUPS,
    25,
    _gang_of,
    rights=frozenset({Call.CREATE_POD_GROUP}),
    is_awaited=False,
    names_group=True,
    named_kind=KIND,
    role_of=_role_of,
    application_of=application_of,
    is_optional=True,
)
