"""What a gang consists of, in the form that each scheduler reads: at most a group, and pods."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ...harness.controlplane.pins import NATIVE_GANG_API, chosen_k8s

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Manifest = dict[str, Any]

IMAGE = "registry.k8s.io/pause:3.10"
# What the strictest pod security standard asks for, so that every namespace takes the pods.
_SAFE_POD = {"runAsNonRoot": True, "runAsUser": 65534, "seccompProfile": {"type": "RuntimeDefault"}}
_SAFE_CONTAINER = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


class Form(StrEnum):
    """Who reads a gang, which decides how it is declared."""

    TUTTI = "tutti"
    PLAIN = "plain"  # kube-scheduler without gangs: pods alone
    NATIVE = "native"  # kube-scheduler's own gang scheduling
    COSCHEDULING = "coscheduling"  # scheduler-plugins
    VOLCANO = "volcano"
    KUEUE = "kueue"  # pod groups, which kube-scheduler places one pod after the other


SCHEDULERS: Mapping[Form, str] = {
    Form.TUTTI: "tutti",
    Form.PLAIN: "default-scheduler",
    Form.NATIVE: "default-scheduler",
    Form.COSCHEDULING: "coscheduling",
    Form.VOLCANO: "volcano",
    Form.KUEUE: "default-scheduler",
}
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
KUEUE_QUEUE_NAME = "default"  # the LocalQueue that Kueue gives to jobs without a queue
_LABELS: Mapping[Form, str] = {
    Form.TUTTI: "tutti.dev/pod-group",
    Form.COSCHEDULING: "scheduling.x-k8s.io/pod-group",
}


def version(form: Form) -> str | None:
    """The API version of a form's PodGroups, for the minor that K8S names; None if it has none."""
    match form:
        case Form.TUTTI:
            return "tutti.dev/v1alpha1"
        case Form.NATIVE:
            return NATIVE_GANG_API[chosen_k8s()]
        case Form.COSCHEDULING:
            return "scheduling.x-k8s.io/v1alpha1"
        case Form.VOLCANO:
            return "scheduling.volcano.sh/v1beta1"
        case Form.PLAIN | Form.KUEUE:
            return None


@dataclass(frozen=True, slots=True)
class Member:
    """What each member of a gang asks for, which nodes it selects, and what it runs."""

    gpus: int = 1
    cpu: str = "1"
    memory: str = "1Gi"
    image: str = IMAGE
    node_selector: Mapping[str, str] = field(default_factory=dict)

    @property
    def resources(self) -> Mapping[str, Mapping[str, str]]:
        """The requests, with limits where Kubernetes wants them."""
        gpus = {"nvidia.com/gpu": str(self.gpus)} if self.gpus else {}
        return {"requests": {"cpu": self.cpu, "memory": self.memory, **gpus}, "limits": gpus}


@dataclass(frozen=True, slots=True)
class Load:
    """Where gangs are made, for whom, and how their objects are marked."""

    form: Form
    namespace: str
    member: Member
    labels: Mapping[str, str]
    scheduler: str = ""  # the form's usual one if empty
    priority_class: str = ""  # none if empty

    def group(self, name: str, size: int) -> Manifest | None:
        """The PodGroup of a gang; None where the scheduler knows no gangs."""
        api = version(self.form)
        if api is None:
            return None
        spec: Manifest = {"minMember": size}
        if self.form is Form.NATIVE:
            spec = {"schedulingPolicy": {"gang": {"minCount": size}}}
        metadata = {"name": name, "namespace": self.namespace, "labels": dict(self.labels)}
        return {"apiVersion": api, "kind": "PodGroup", "metadata": metadata, "spec": spec}

    def pods(self, name: str, size: int) -> Iterator[Manifest]:
        """The members of a gang, `<gang>-0` to `<gang>-<size - 1>`."""
        marks = {"labels": dict(self.labels), **self._marks(name, size)}
        native = {"schedulingGroup": {"podGroupName": name}} if self.form is Form.NATIVE else {}
        spec = self._pod_spec() | native
        for i in range(size):
            metadata = {"name": f"{name}-{i}", "namespace": self.namespace, **marks}
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _marks(self, name: str, size: int) -> Manifest:
        """The labels and annotations that make pods members of a gang."""
        match self.form:
            case Form.VOLCANO:
                return {"annotations": {"scheduling.k8s.io/group-name": name}}
            case Form.KUEUE:
                marks = {KUEUE_QUEUE: KUEUE_QUEUE_NAME, "kueue.x-k8s.io/pod-group-name": name}
                total = {"kueue.x-k8s.io/pod-group-total-count": str(size)}
                return {"labels": {**self.labels, **marks}, "annotations": total}
            case Form.TUTTI | Form.COSCHEDULING:
                return {"labels": {**self.labels, _LABELS[self.form]: name}}
            case Form.PLAIN | Form.NATIVE:
                return {}

    def _pod_spec(self) -> Manifest:
        container = {
            "name": "main",
            "image": self.member.image,
            "resources": self.member.resources,
            "securityContext": _SAFE_CONTAINER,
        }
        optional = {
            "priorityClassName": self.priority_class,
            "nodeSelector": dict(self.member.node_selector),
        }
        return {name: value for name, value in optional.items() if value} | {
            "schedulerName": self.scheduler or SCHEDULERS[self.form],
            "terminationGracePeriodSeconds": 0,
            "securityContext": _SAFE_POD,
            "containers": [container],
        }


def gang_of(pod: str) -> str:
    """The gang that a pod's name speaks of."""
    return pod.rpartition("-")[0]
