"""P8: every write by Tutti's user is on a closed list, and nothing it asked was denied."""

from collections.abc import Iterator, Sequence

from .audit import AuditEntry
from .findings import Finding, Findings, Promise
from .replay import Step
from .standpoint import Standpoint
from .views import GATE, Key, Pod

TUTTI, DEVICES = "tutti.dev", "resource.k8s.io"
ALLOWED = frozenset(
    {
        ("", "pods/binding", "create"),
        ("", "pods/eviction", "create"),
        ("", "pods/status", "patch"),
        ("", "pods", "patch"),  # hands a pod over: see ``_body_fault`` and ``_ungated``
        ("", "events", "create"),
        ("events.k8s.io", "events", "create"),
        (TUTTI, "podgroups", "create"),  # of applications, where that is granted
        (TUTTI, "podgroups/status", "patch"),
        ("scheduling.k8s.io", "podgroups/status", "patch"),  # Kubernetes' own, where it is read
        ("scheduling.volcano.sh", "podgroups", "patch"),  # its status alone: see ``_fault``
        ("", "persistentvolumes", "patch"),  # the claim that gets it: see ``OF_VOLUMES``
        ("", "persistentvolumeclaims", "patch"),  # its node alone: see ``OF_CLAIMS``
        (TUTTI, "queues", "patch"),
        (TUTTI, "queues/status", "patch"),
        (DEVICES, "resourceclaims", "create"),  # for extended resources: see ``OF_NEW_CLAIMS``
        (DEVICES, "resourceclaims", "patch"),  # the finalizer alone: see ``_body_fault``
        (DEVICES, "resourceclaims/status", "patch"),
        (TUTTI, "reservations", "create"),
        (TUTTI, "reservations", "patch"),
        (TUTTI, "reservations", "delete"),
        ("coordination.k8s.io", "leases", "create"),
        ("coordination.k8s.io", "leases", "update"),
        ("coordination.k8s.io", "leases", "patch"),
    }
)
# Kinds whose status is no resource of its own.
STATUS_ALONE = frozenset({("scheduling.volcano.sh", "podgroups")})
# Of a Queue the finalizers alone are written: its spec belongs to administrators.
OF_QUEUES = frozenset({"metadata.uid", "metadata.resourceVersion", "metadata.finalizers"})
OF_RESOURCE_CLAIMS = OF_QUEUES  # their specs belong to users
# A claim for extended resources of a pod, which owns it.
OF_NEW_CLAIMS = frozenset(
    {
        "apiVersion",
        "kind",
        "metadata.name",
        "metadata.namespace",
        "metadata.annotations",
        "metadata.ownerReferences",
        "spec.devices",
    }
)
IN_STATUS = frozenset(
    {"metadata.uid", "metadata.resourceVersion", "status.allocation", "status.reservedFor"}
)
# Of a volume the claim is written that gets it; of a claim the node that it is provisioned for.
OF_VOLUMES = frozenset({"metadata.resourceVersion", "metadata.annotations", "spec.claimRef"})
OF_CLAIMS = frozenset({"metadata.resourceVersion", "metadata.annotations"})
# A pod that is handed over: its node affinity, its gates, and since when.
HAND_OVER = frozenset(
    {
        "metadata.uid",
        "metadata.resourceVersion",
        "metadata.annotations",
        "spec.affinity",
        "spec.schedulingGates",
    }
)
BODIES = {
    (TUTTI, "queues"): OF_QUEUES,
    (DEVICES, "resourceclaims"): OF_RESOURCE_CLAIMS,
    (DEVICES, "resourceclaims/status"): IN_STATUS,
    ("", "persistentvolumes"): OF_VOLUMES,
    ("", "persistentvolumeclaims"): OF_CLAIMS,
}
ON_OUR_PODS_ONLY = frozenset({"pods/binding", "pods/eviction", "pods/status", "pods"})
# A review is a question put as a create: nothing is stored.
QUESTIONS = frozenset({"authorization.k8s.io", "authentication.k8s.io"})


def judge_hands(
    steps: Sequence[Step], entries: Sequence[AuditEntry], standpoint: Standpoint
) -> Findings:
    """Compare each write of Tutti's user with the list, and its pod with our scheduler's name."""
    pods: dict[Key, dict[str, Pod]] = {}
    for step in steps:
        pod = step.after or step.before
        if isinstance(pod, Pod):
            pods.setdefault(pod.key, {})[pod.uid] = pod
    violations = [*_foreign_gates(steps, standpoint)]
    judged = 0
    for entry in entries:
        if entry.user != standpoint.operator_user:
            continue
        judged += entry.is_write
        fault = _fault(entry, pods.get(entry.key, {}), standpoint)
        if fault:
            when = f" at {entry.at:%H:%M:%S.%f}" if entry.at else ""
            sentence = f"{entry}{when} by {entry.user}: {fault}"
            violations.append(Finding(Promise.HANDS_OFF, str(entry.key), sentence))
    return Findings(violations=tuple(violations), judged=judged)


def _foreign_gates(steps: Sequence[Step], standpoint: Standpoint) -> Iterator[Finding]:
    """The pods from which Tutti removed more than its own gate, or its gate without a pin."""
    for step in steps:
        before, after = step.before, step.after
        if not (isinstance(before, Pod) and isinstance(after, Pod) and GATE in before.gates):
            continue
        if GATE in after.gates or not any(
            entry.user == standpoint.operator_user
            for entry in standpoint.hand_overs.get(after.key, ())
        ):
            continue
        fault = ""
        if others := sorted(before.gates - after.gates - {GATE}):
            fault = f"lost the gates {', '.join(others)} with Tutti's"
        elif not (after.node or after.terminating):
            fault = "lost Tutti's gate, and is pinned to no node"
        if fault:
            sentence = f"pod {after.key} {fault} at revision {step.revision}"
            yield Finding(Promise.HANDS_OFF, str(after.key), sentence, step.revision)


def _fault(entry: AuditEntry, pods_by_uid: dict[str, Pod], standpoint: Standpoint) -> str:
    if entry.denied:
        return "was denied; the ClusterRole and the calls differ"
    if not entry.is_write or entry.group in QUESTIONS:
        return ""
    if (entry.group, entry.resource, entry.verb) not in ALLOWED:
        return "is not on the closed list of writes"
    if fault := _body_fault(entry):
        return fault
    if entry.resource in ON_OUR_PODS_ONLY:
        meant = [pod for uid, pod in pods_by_uid.items() if not entry.uid or entry.uid == uid]
        if meant and not any(standpoint.is_ours(pod) for pod in meant):
            return f"the pod names scheduler {meant[-1].scheduler}, not us"
    return ""


def _body_fault(entry: AuditEntry) -> str:
    """What the body of a write has that it must not have, of kinds that are not Tutti's alone."""
    if (entry.group, entry.resource) in STATUS_ALONE:
        beside = {field for field in entry.fields if field.split(".")[0] != "status"}
        if beside != {"metadata.resourceVersion"}:
            return "has something else in its body than a status and a version"
    allowed = BODIES.get((entry.group, entry.resource))
    if (entry.group, entry.resource, entry.verb) == (DEVICES, "resourceclaims", "create"):
        if missing := OF_NEW_CLAIMS - entry.fields:
            return f"makes a claim without {', '.join(sorted(missing))}"
        allowed = OF_NEW_CLAIMS | {"status"}  # as the server logs it: without any field
    if allowed is not None and (beyond := entry.fields - allowed):
        return f"writes {', '.join(sorted(beyond))} of {entry.resource}"
    if (entry.group, entry.resource) == ("", "pods") and entry.fields != HAND_OVER:
        return f"changes {', '.join(sorted(entry.fields ^ HAND_OVER))} of a pod otherwise"
    return ""
