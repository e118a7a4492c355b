"""Wrong rules, of which each must be noticed: Tutti made blind to one field at a time.

A rule that ignores a field answers as the right rule does for objects without it. So a control
changes what Tutti is shown and nothing else, and holds for whatever code evaluates the rule.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...harness.controlplane.pins import chosen_k8s
from . import devices
from .comparing import Case, compared, differs
from .ours import Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    Manifest = dict[str, Any]
    Change = Callable[[Manifest], None]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PLENTY = "1000Gi"


@dataclass(frozen=True, slots=True)
class Control:
    """One wrong rule: how the pod that is asked about is seen, and how the cluster."""

    name: str
    pod: Change | None = None
    cluster: Change | None = None  # for every object

    def noticed(self, cases: Iterable[Case]) -> Case | None:
        """The first of these cases, which agree as they are, that no longer does."""
        wrong: dict[int, Reading | None] = {}  # by cluster; None: seen as it is, with all its pods
        for case in cases:
            pod = _changed(case.pod, self.pod)
            if self.cluster is None and pod == case.pod:
                continue  # seen as it is
            key = id(case.objects)
            if key not in wrong:
                objects = [_changed(item, self.cluster) for item in case.objects]
                is_right = self.pod is None and objects == [*case.objects]
                wrong[key] = None if is_right else Reading(objects)
            reading = wrong[key]
            if reading is not None and differs(case, reading.answer(pod)):
                return case
        return None


def _changed(body: Manifest, change: Change | None) -> Manifest:
    if change is None:
        return body
    changed = copy.deepcopy(body)
    change(changed)
    return changed


def _at(body: Any, path: Sequence[str]) -> Iterator[Manifest]:
    """Every map at a path; a step into a list goes into each of its items."""
    if isinstance(body, list):
        for each in body:
            yield from _at(each, path)
    elif isinstance(body, dict):
        if not path:
            yield body
        elif path[0] in body:
            yield from _at(body[path[0]], path[1:])


def _drop(path: str) -> Change:
    *steps, last = path.split(".")

    def change(body: Manifest) -> None:
        for each in _at(body, steps):
            each.pop(last, None)

    return change


def _turn(path: str, become: Callable[[Any], Any]) -> Change:
    """Another value wherever there is one."""
    *steps, last = path.split(".")

    def change(body: Manifest) -> None:
        for each in _at(body, steps):
            if last in each:
                each[last] = become(each[last])

    return change


def _of(kind: str, change: Change) -> Change:
    def only(body: Manifest) -> None:
        if body.get("kind") == kind:
            change(body)

    return only


def _operator(before: str, after: str) -> Change:
    """A node affinity operator read as another, its values dropped where that one has none."""
    terms = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms.matchExpressions"

    def change(body: Manifest) -> None:
        for each in _at(body, terms.split(".")):
            if each["operator"] == before:
                each["operator"] = after
                if after in ("Exists", "DoesNotExist"):
                    each.pop("values", None)

    return change


def _amount(name: str, quantity: str) -> Change:
    def change(body: Manifest) -> None:
        if body["kind"] == "Node":
            body["status"]["allocatable"][name] = quantity

    return change


def _unmerged(path: str, keys: str) -> Change:
    """Forget what the API server has made of these label keys when the pod was created."""

    def change(body: Manifest) -> None:
        for each in _at(body, path.split(".")):
            selector = each.get("labelSelector") or {}
            if "matchExpressions" in selector:
                selector["matchExpressions"] = [
                    expression
                    for expression in selector["matchExpressions"]
                    if expression["key"] not in each.get(keys, ())
                ]
            each.pop(keys, None)

    return change


def _first(body: Manifest) -> None:
    """The pod does not match its own terms."""
    if "podAffinity" in body["spec"].get("affinity", {}):
        body["metadata"]["labels"] = {}


def _known_claims(body: Manifest) -> None:
    """As if a claim that is not there were not needed."""
    body["spec"]["volumes"] = [
        volume
        for volume in body["spec"].get("volumes", ())
        if volume.get("persistentVolumeClaim", {}).get("claimName") != "no-such-claim"
    ]


def _as_texts(body: Manifest) -> None:
    for device in body["spec"].get("devices", ()):
        for name, attribute in device.get("attributes", {}).items():
            if name == devices.ROOT and "int" in attribute:
                attribute["string"] = str(attribute.pop("int"))


def _not_differing(body: Manifest) -> None:
    known = body["spec"]["devices"].get("constraints") or ()
    body["spec"]["devices"]["constraints"] = [of for of in known if "matchAttribute" in of]


def _differing(body: Manifest) -> None:
    for constraint in body["spec"]["devices"].get("constraints") or ():
        if "distinctAttribute" in constraint:
            constraint["matchAttribute"] = constraint.pop("distinctAttribute")


def _of_requests(body: Manifest) -> None:
    for constraint in body["spec"]["devices"].get("constraints") or ():
        names = constraint.get("requests") or ()
        constraint["requests"] = sorted({name.split("/")[0] for name in names})


def _first_alternative(body: Manifest) -> None:
    for request in body["spec"]["devices"].get("requests") or ():
        if "firstAvailable" in request:
            del request["firstAvailable"][1:]


def _class_of_another_name(body: Manifest) -> None:
    """The class that comes after another of its resource comes before it."""
    if body["metadata"]["name"] == "backs-gpus-too":
        body["metadata"]["name"] = "a-class"


def _single(modes: list[str]) -> list[str]:
    return ["ReadWriteOnce" if mode == "ReadWriteOncePod" else mode for mode in modes]


def _instead(before: str, after: str) -> Callable[[str], str]:
    return lambda value: after if value == before else value


_TAINT = "spec.taints.effect"
_TERMS = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
_NEAR = f"spec.affinity.podAffinity.{REQUIRED}"
_APART = f"spec.affinity.podAntiAffinity.{REQUIRED}"
_EVEN = "spec.topologySpreadConstraints"
_EXACTLY = "spec.devices.requests.exactly"
_PORT = "spec.containers.ports"


def _both(pod: Change) -> dict[str, Change]:
    """For the pod that is asked about and for those that run."""
    return {"pod": pod, "cluster": _of("Pod", pod)}


# By the row of the rules that they are about.
CONTROLS: Mapping[str, tuple[Control, ...]] = {
    "tolerations": (
        Control("cordons ignored", cluster=_drop("spec.unschedulable")),
        Control(
            "NoExecute ignored", cluster=_turn(_TAINT, _instead("NoExecute", "PreferNoSchedule"))
        ),
        Control(
            "NoSchedule ignored", cluster=_turn(_TAINT, _instead("NoSchedule", "PreferNoSchedule"))
        ),
        Control(
            "PreferNoSchedule binds",
            cluster=_turn(_TAINT, _instead("PreferNoSchedule", "NoSchedule")),
        ),
        Control("tolerations ignored", pod=_drop("spec.tolerations")),
        Control("tolerations of any effect", pod=_drop("spec.tolerations.effect")),
        Control(
            "tolerations of Equal read as Exists",
            pod=_turn("spec.tolerations.operator", _instead("Equal", "Exists")),
        ),
    ),
    "node selector": (Control("nodeSelector ignored", pod=_drop("spec.nodeSelector")),),
    "node affinity": (
        Control("node affinity ignored", pod=_drop("spec.affinity.nodeAffinity")),
        Control("matchFields ignored", pod=_drop(f"{_TERMS}.matchFields")),
        Control("In read as NotIn", pod=_operator("In", "NotIn")),
        Control("NotIn read as DoesNotExist", pod=_operator("NotIn", "DoesNotExist")),
        Control("Exists read as DoesNotExist", pod=_operator("Exists", "DoesNotExist")),
        Control("DoesNotExist read as Exists", pod=_operator("DoesNotExist", "Exists")),
        Control("Gt read as Lt", pod=_operator("Gt", "Lt")),
        Control("Lt read as Gt", pod=_operator("Lt", "Gt")),
    ),
    "resources": (
        Control(
            "requests of running pods ignored",
            cluster=_of("Pod", _drop("spec.containers.resources")),
        ),
        Control("init containers ignored", **_both(_drop("spec.initContainers"))),
        Control(
            "sidecars read as init containers", **_both(_drop("spec.initContainers.restartPolicy"))
        ),
        Control("overhead ignored", **_both(_drop("spec.overhead"))),
        Control("huge pages ignored", cluster=_amount("hugepages-2Mi", PLENTY)),
        Control("ephemeral storage ignored", cluster=_amount("ephemeral-storage", PLENTY)),
        Control("extended resources ignored", cluster=_amount("example.com/device", "1000")),
        Control("max pods ignored", cluster=_amount("pods", "1000")),
        Control("resizes ignored", cluster=_of("Pod", _drop("status.containerStatuses"))),
    ),
    "pod-level resources": (
        Control("pod-level resources ignored", **_both(_drop("spec.resources"))),
    ),
    "host ports": (
        Control("host ports ignored", pod=_drop(f"{_PORT}.hostPort")),
        Control("host ports of one protocol", **_both(_turn(f"{_PORT}.protocol", lambda _: "TCP"))),
        Control("host ports of any address", **_both(_drop(f"{_PORT}.hostIP"))),
        Control(
            "wildcard read as an address",
            **_both(_turn(f"{_PORT}.hostIP", _instead("0.0.0.0", "10.9.9.9"))),
        ),
        Control("host ports of sidecars ignored", **_both(_drop("spec.initContainers.ports"))),
    ),
    "affinity": (
        Control("affinity ignored", pod=_drop("spec.affinity.podAffinity")),
        Control(
            "affinity always by node",
            pod=_turn(f"{_NEAR}.topologyKey", lambda _: "kubernetes.io/hostname"),
        ),
        Control("affinity's namespaces ignored", pod=_drop(f"{_NEAR}.namespaces")),
        Control("affinity's namespaceSelector ignored", pod=_drop(f"{_NEAR}.namespaceSelector")),
        Control("affinity's matchLabelKeys ignored", pod=_unmerged(_NEAR, "matchLabelKeys")),
        Control("affinity's mismatchLabelKeys ignored", pod=_unmerged(_NEAR, "mismatchLabelKeys")),
        Control("nobody may be first", pod=_first),
    ),
    "anti-affinity": (
        Control("anti-affinity ignored", pod=_drop("spec.affinity.podAntiAffinity")),
        Control(
            "anti-affinity of running pods ignored", cluster=_of("Pod", _drop("spec.affinity"))
        ),
        Control(
            "anti-affinity always by node",
            pod=_turn(f"{_APART}.topologyKey", lambda _: "kubernetes.io/hostname"),
        ),
        Control("anti-affinity's namespaces ignored", **_both(_drop(f"{_APART}.namespaces"))),
        Control(
            "anti-affinity's namespaceSelector ignored",
            **_both(_drop(f"{_APART}.namespaceSelector")),
        ),
        Control(
            "anti-affinity's matchLabelKeys ignored", **_both(_unmerged(_APART, "matchLabelKeys"))
        ),
        Control(
            "anti-affinity's mismatchLabelKeys ignored",
            **_both(_unmerged(_APART, "mismatchLabelKeys")),
        ),
    ),
    "spread": (
        Control("spread ignored", pod=_drop(_EVEN)),
        Control("maxSkew one too many", pod=_turn(f"{_EVEN}.maxSkew", lambda n: n + 1)),
        Control("minDomains ignored", pod=_drop(f"{_EVEN}.minDomains")),
        Control("nodeAffinityPolicy ignored", pod=_drop(f"{_EVEN}.nodeAffinityPolicy")),
        Control("nodeTaintsPolicy ignored", pod=_drop(f"{_EVEN}.nodeTaintsPolicy")),
        Control("spread's matchLabelKeys ignored", pod=_unmerged(_EVEN, "matchLabelKeys")),
        Control(
            "ScheduleAnyway binds",
            pod=_turn(f"{_EVEN}.whenUnsatisfiable", lambda _: "DoNotSchedule"),
        ),
        Control(
            "terminating pods are spread, too",
            cluster=_of("Pod", _drop("metadata.deletionTimestamp")),
        ),
    ),
    "volumes": (
        Control(
            "node affinity of volumes ignored",
            cluster=_of("PersistentVolume", _drop("spec.nodeAffinity")),
        ),
        Control(
            "zones of volumes ignored", cluster=_of("PersistentVolume", _drop("metadata.labels"))
        ),
        Control(
            "ReadWriteOncePod read as ReadWriteOnce",
            cluster=_of("PersistentVolumeClaim", _turn("spec.accessModes", _single)),
        ),
        Control("attach limits ignored", cluster=_of("CSINode", _drop("spec.drivers.allocatable"))),
        Control("missing claims ignored", pod=_known_claims),
        Control(
            "attached volumes that nobody uses ignored",
            cluster=_of("VolumeAttachment", _drop("spec.attacher")),
        ),
        Control(
            "drivers that are needed ignored",
            cluster=_of("CSIDriver", _drop("spec.preventPodSchedulingIfMissing")),
        ),
    ),
    "open volumes": (
        Control(
            "sizes of volumes ignored", cluster=_of("PersistentVolume", _drop("spec.capacity"))
        ),
        Control(
            "allowed topologies ignored", cluster=_of("StorageClass", _drop("allowedTopologies"))
        ),
        Control("capacities ignored", cluster=_of("CSIDriver", _drop("spec.storageCapacity"))),
        Control(
            "the largest volume ignored",
            cluster=_of("CSIStorageCapacity", _drop("maximumVolumeSize")),
        ),
        Control(
            "selectors of claims ignored",
            cluster=_of("PersistentVolumeClaim", _drop("spec.selector")),
        ),
        Control(
            "volume modes ignored", cluster=_of("PersistentVolumeClaim", _drop("spec.volumeMode"))
        ),
        Control(
            "access modes ignored", cluster=_of("PersistentVolumeClaim", _drop("spec.accessModes"))
        ),
        Control(
            "the selected node ignored",
            cluster=_of("PersistentVolumeClaim", _drop("metadata.annotations")),
        ),
    ),
    "generated volumes": (
        Control(
            "sizes of free volumes ignored",
            cluster=_of("PersistentVolume", _drop("spec.capacity")),
        ),
        Control(
            "node affinity of free volumes ignored",
            cluster=_of("PersistentVolume", _drop("spec.nodeAffinity")),
        ),
        Control(
            "access modes of claims ignored",
            cluster=_of("PersistentVolumeClaim", _drop("spec.accessModes")),
        ),
        Control(
            "volume modes of claims ignored",
            cluster=_of("PersistentVolumeClaim", _drop("spec.volumeMode")),
        ),
        Control(
            "labels of free volumes ignored",
            cluster=_of("PersistentVolumeClaim", _drop("spec.selector")),
        ),
        Control(
            "the claim of a volume ignored",
            cluster=_of("PersistentVolume", _drop("spec.claimRef")),
        ),
        Control(
            "the node of a claim ignored",
            cluster=_of("PersistentVolumeClaim", _drop("metadata.annotations")),
        ),
        Control(
            "topologies of classes ignored",
            cluster=_of("StorageClass", _drop("allowedTopologies")),
        ),
        Control(
            "capacities of nodes ignored", cluster=_of("CSIDriver", _drop("spec.storageCapacity"))
        ),
        Control(
            "the largest volume of a node ignored",
            cluster=_of("CSIStorageCapacity", _drop("maximumVolumeSize")),
        ),
    ),
    "devices": (
        Control(
            "selectors of classes ignored", cluster=_of("DeviceClass", _drop("spec.selectors"))
        ),
        Control(
            "selectors of requests ignored",
            cluster=_of("ResourceClaim", _drop(f"{_EXACTLY}.selectors")),
        ),
        Control(
            "counts of requests ignored", cluster=_of("ResourceClaim", _drop(f"{_EXACTLY}.count"))
        ),
        Control(
            "All read as one",
            cluster=_of("ResourceClaim", _drop(f"{_EXACTLY}.allocationMode")),
        ),
        Control(
            "constraints ignored",
            cluster=_of("ResourceClaim", _drop("spec.devices.constraints")),
        ),
        Control(
            "distinctAttribute ignored",
            cluster=_of("ResourceClaim", _not_differing),
        ),
        Control(
            "distinctAttribute read as matchAttribute",
            cluster=_of("ResourceClaim", _differing),
        ),
        Control(
            "constraints of alternatives read as of requests",
            cluster=_of("ResourceClaim", _of_requests),
        ),
        Control(
            "types of attributes ignored",
            cluster=_of("ResourceSlice", _as_texts),
        ),
        Control(
            "counters ignored",
            cluster=_of("ResourceSlice", _drop("spec.devices.consumesCounters")),
        ),
        Control(
            "adminAccess of requests ignored",
            cluster=_of("ResourceClaim", _drop(f"{_EXACTLY}.adminAccess")),
        ),
        Control(
            "adminAccess of allocated devices ignored",
            cluster=_of("ResourceClaim", _drop("status.allocation.devices.results.adminAccess")),
        ),
        Control("later alternatives ignored", cluster=_of("ResourceClaim", _first_alternative)),
        Control(
            "tolerations of requests ignored",
            cluster=_of("ResourceClaim", _drop(f"{_EXACTLY}.tolerations")),
        ),
        Control(
            "taints of devices ignored", cluster=_of("ResourceSlice", _drop("spec.devices.taints"))
        ),
        Control(
            "taint rules ignored", cluster=_of("DeviceTaintRule", _drop("spec.deviceSelector"))
        ),
        Control(
            "devices of other claims given away",
            cluster=_of("ResourceClaim", _drop("status.allocation")),
        ),
        Control(
            "the node of allocated devices ignored",
            cluster=_of("ResourceClaim", _drop("status.allocation.nodeSelector")),
        ),
        Control(
            "older generations used",
            cluster=_of("ResourceSlice", _turn("spec.pool.generation", lambda _: 1)),
        ),
        Control(
            "capacities of devices ignored",
            cluster=_of(
                "ResourceSlice", _turn("spec.devices.capacity.memory.value", lambda _: "9Gi")
            ),
        ),
    ),
    "extended resources": (
        Control(
            "extended resources of classes ignored",
            cluster=_of("DeviceClass", _drop("spec.extendedResourceName")),
        ),
        Control(
            "extended resources of init containers ignored",
            pod=_drop("spec.initContainers.resources"),
        ),
        Control(
            "extended resources of sidecars read as of init containers",
            pod=_drop("spec.initContainers.restartPolicy"),
        ),
        Control(
            "the last class of an extended resource counts",
            cluster=_of("DeviceClass", _class_of_another_name),
        ),
    ),
    "gates": (Control("gates ignored", pod=_drop("spec.schedulingGates")),),
}

# Whose field the API server of a minor drops, as its feature gate is off (VolumeLimitScaling,
# DRADeviceTaints), and whose kind it has in no version that Tutti reads.
_BEFORE_1_37 = ("drivers that are needed ignored", "taint rules ignored")
DROPPED = {
    "1.36": _BEFORE_1_37,
    "1.35": (*_BEFORE_1_37, "taints of devices ignored", "tolerations of requests ignored"),
}


def unnoticed(
    cases: Sequence[Case],
    rows: Iterable[str] = tuple(CONTROLS),
    rare: Collection[str] = (),
) -> list[str]:
    """The wrong rules of these rows that the cases do not tell from the right ones.

    Those in ``rare`` take more cases than these; they are not tried.
    """
    known = [case for case, ours in compared(cases) if not (ours.unmodelled or differs(case, ours))]
    left_out = {*DROPPED.get(chosen_k8s(), ()), *rare}
    return [
        control.name
        for row in rows
        for control in CONTROLS.get(row, ())
        if control.name not in left_out and control.noticed(known) is None
    ]
