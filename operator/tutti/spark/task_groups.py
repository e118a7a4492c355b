"""The PodGroup of an application of YuniKorn: its task groups as roles, with their templates.

Source: TaskGroup and newPlaceholder in yunikorn-k8shim. A task group says what its placeholders
request; so does the template of a role.
"""

import json
from typing import Any

from ..kube.codec.encode import API_VERSION
from ..kube.errors import BadObject
from ..kube.gang_sources import yunikorn
from ..model.applications import ApplicationPod
from ..model.cluster import Member
from ..model.terminal import visible

SHOWN = 60  # characters of a text that is quoted
MOST_LEVELS = 100

Raw = dict[str, Any]


class BadTaskGroups(Exception):  # noqa: N818 - named for the situation
    """The task groups that a pod declares cannot be read; the message says why."""

    def __init__(self, why: str) -> None:
        super().__init__(visible(f"annotation {yunikorn.TASK_GROUPS}: {why}"))


def group(member: Member, application: ApplicationPod) -> Raw:
    """The PodGroup of an application, owned by the controller of its first pod, or by this pod.

    Raises:
        BadTaskGroups: the annotation of the pod cannot be read.
    """
    spec: Raw = {"roles": [_role(task) for task in _task_groups(application.task_groups or "")]}
    if application.timeout_seconds is not None:
        spec["scheduleTimeoutSeconds"] = application.timeout_seconds
        spec["onTimeout"] = "Fail" if application.fails_at_timeout else "KeepWaiting"
    return {
        "apiVersion": API_VERSION,
        "kind": "PodGroup",
        "metadata": {
            "name": application.app,
            "namespace": member.key.namespace,
            "ownerReferences": [_reference(member, application)],
        },
        "spec": spec,
    }


def _task_groups(text: str) -> tuple[yunikorn.TaskGroup, ...]:
    if len(text) > yunikorn.LENGTH_LIMIT:
        raise BadTaskGroups(f"it has more than {yunikorn.LENGTH_LIMIT:,} characters")
    try:
        groups = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise BadTaskGroups(f"{text[:SHOWN]!r} is not JSON: {problem}") from problem
    if _is_deep(groups):
        raise BadTaskGroups(f"it is nested more than {MOST_LEVELS} levels deep")
    try:
        task_groups = yunikorn.parse(groups)
    except BadObject as problem:
        raise BadTaskGroups(problem.sentence) from problem
    if not task_groups:
        raise BadTaskGroups("there is no task group in it")
    return task_groups


def _is_deep(value: object) -> bool:
    """Whether JSON is nested too deeply to be written into a PodGroup."""
    level = [value]
    for _ in range(MOST_LEVELS):
        lists = ([*of.values()] if isinstance(of, dict) else of for of in level)
        level = [inner for of in lists if isinstance(of, list) for inner in of]
    return bool(level)


def _role(task: yunikorn.TaskGroup) -> Raw:
    if task.min_member < 1:
        raise BadTaskGroups(f"task group {task.name[:SHOWN]!r} has no minMember of at least 1")
    role: Raw = {"name": task.name, "minMember": task.min_member}
    # Without resources, nothing can be held; the gang then waits until its pods exist.
    if task.min_resource:
        parts = {
            "nodeSelector": task.node_selector,
            "tolerations": [*task.tolerations],
            "affinity": task.affinity,
            "topologySpreadConstraints": [*task.topology_spread_constraints],
            "labels": task.labels,
        }
        resources = {name: str(amount) for name, amount in task.min_resource.items()}
        role["template"] = {
            "resources": resources,
            **{name: part for name, part in parts.items() if part},
        }
    return role


def _reference(member: Member, application: ApplicationPod) -> Raw:
    """The controller of the pod, so that the PodGroup stays when the pod is replaced; or the pod.

    No controller replaces a driver within its application.
    """
    owner = member.owner
    if owner is None or not application.owner_version or member.is_driver:
        return {"apiVersion": "v1", "kind": "Pod", "name": member.key.name, "uid": member.uid}
    names = {"kind": owner.kind, "name": owner.name, "uid": owner.uid}
    return {"apiVersion": application.owner_version, **names}
