"""Objects as the judge reads them: only the fields that a promise speaks of.

Separate from the replay so that the names of API fields stand in one place.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from .claim_views import (
    DeviceClaim,
    DevicePromise,
    DeviceSlice,
    Volume,
    VolumeClaim,
    VolumePromise,
    device_claims,
    device_promises,
    read_claim,
    read_slice,
    read_volume,
    read_volume_claim,
    volume_claims,
    volume_promises,
)
from .history import Body, Kind
from .network import Rule, Topology, read_rules, read_topology
from .protections import Budget, Job, job_of, read_budget, read_job
from .quantities import Amounts, amounts, effective_requests
from .queues import Namespace, Queue, read_namespace, read_queue

GROUP_LABEL = "tutti.dev/pod-group"
VOLCANO_DEFAULT = "default"  # the queue that Volcano's webhook writes if users choose none
VOLCANO_ANNOTATION, TASK_ANNOTATION = "scheduling.k8s.io/group-name", "volcano.sh/task-spec"
PLUGINS_LABEL = "scheduling.x-k8s.io/pod-group"
RAY_LABEL, RAY_TYPE, RAY_GROUP = "ray.io/cluster", "ray.io/node-type", "ray.io/group"
JOBSET_LABEL = "jobset.sigs.k8s.io/jobset-name"
SPARK_APP, SPARK_ROLE = "spark-app-selector", "spark-role"
TASK_GROUP, APP_LABEL = "yunikorn.apache.org/task-group-name", "applicationId"
APP_ID = "yunikorn.apache.org/app-id"
ROLE_LABEL = "tutti.dev/role"
GATE = "tutti.dev/gang"
KUBE_SCHEDULER = "default-scheduler"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ABSENT_SECONDS = 600  # where a PodGroup does not say for how long absent members are awaited


class Key(NamedTuple):
    """A namespace and a name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Read as kubectl prints it."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod at one revision."""

    key: Key
    uid: str
    scheduler: str
    group: str
    role: str
    node: str
    phase: str
    terminating: bool
    requests: Amounts
    created: str = ""  # by the API server, in whole seconds
    app: str = ""  # of Spark or YuniKorn, where it names no group
    # The groups of other projects that it names, where it names none of Tutti's: by ``foreign``.
    of_kubernetes: str = ""
    of_plugins: str = ""
    of_volcano: str = ""
    of_ray: str = ""
    of_jobset: str = ""
    gates: frozenset[str] = frozenset()
    # Of kube-scheduler, to be handed over or handed over: ``node`` is then where it is pinned to.
    is_handed: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    device_claims: tuple[str, ...] = ()  # by name; empty for one that is to be made
    volume_claims: tuple[str, ...] = ()
    job: str = ""  # the uid of the Job that made it

    @property
    def gang(self) -> Key | None:
        """The gang that its label names; None for a gang of one."""
        return Key(self.key.namespace, self.group) if self.group else None

    @property
    def takes_room(self) -> bool:
        """Whether it uses room of its node: until it is gone or its containers have ended."""
        return bool(self.node) and self.phase not in ("Succeeded", "Failed")

    @property
    def counts_as_bound(self) -> bool:
        """Whether its gang may rely on it."""
        if self.phase == "Succeeded":
            return True
        return bool(self.node) and not self.terminating and self.phase != "Failed"

    @property
    def is_waiting(self) -> bool:
        """Whether it could still be bound."""
        return not (self.node or self.terminating or self.phase in ("Succeeded", "Failed"))


@dataclass(frozen=True, slots=True)
class Node:
    """A node at one revision; ``state`` is all that decides whether pods may go there."""

    key: Key
    uid: str
    allocatable: Amounts
    state: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PodGroup:
    """A PodGroup at one revision."""

    key: Key
    uid: str
    min_member: int
    roles: Mapping[str, int]
    templates: Mapping[str, Amounts]  # what absent members of a role will ask for
    absent_seconds: int  # for which they are awaited
    owner_pod: str  # the pod that owns it, if one does
    queue: str = ""
    created: str = ""
    rules: tuple[Rule, ...] = ()  # on domains of the network


def foreign(kind: Kind, name: str) -> str:
    """What a group of another project is called: names of different kinds may be the same."""
    return f"{kind.api_group}/{name}" if name else ""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A Reservation at one revision: nodes of its pods by uid, and slots by node and role."""

    key: Key
    uid: str
    revision: int
    gang: Key
    gang_uid: str
    named: Mapping[str, tuple[str, str]]  # uid -> (pod's name where it is said, node)
    slots: Mapping[tuple[str, str], int]
    reserved_at: datetime | None
    is_spent: bool  # it holds nothing any more, and keeps the record of the gang's start
    queue: tuple[str, str] | None = None  # of that record: name and uid
    ends: frozenset[str] = frozenset()  # uids of pods that end so that its gang starts
    ended_gangs: frozenset[str] = frozenset()  # uids of the gangs among them that end whole
    evicts: frozenset[str] = frozenset()  # uids of pods of its own gang that are given up
    devices: tuple[DevicePromise, ...] = ()
    volumes: tuple[VolumePromise, ...] = ()

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes on which it holds room."""
        nodes_of_pods = {node for _, node in self.named.values()}
        return frozenset(nodes_of_pods | {node for node, _ in self.slots})


View = (
    Pod
    | Node
    | PodGroup
    | Reservation
    | Queue
    | Namespace
    | Topology
    | DeviceClaim
    | DeviceSlice
    | VolumeClaim
    | Volume
    | Budget
    | Job
)


def view(kind: Kind, body: Body, revision: int) -> View:
    """Read one object."""
    match kind:
        case Kind.KUBERNETES_GROUPS | Kind.PLUGINS_GROUPS | Kind.VOLCANO_GROUPS:
            return _foreign_group(kind, body)
        case Kind.RAY_CLUSTERS | Kind.JOB_SETS:
            return _owner(kind, body)
        case Kind.RESERVATIONS:
            return _reservation(body, revision)
    return _READERS[kind](body)


def _key(body: Body) -> Key:
    return Key(body["metadata"].get("namespace", ""), body["metadata"]["name"])


def _pod(body: Body) -> Pod:
    metadata, spec = body["metadata"], body.get("spec") or {}
    labels = metadata.get("labels") or {}
    spark_role = labels.get(SPARK_ROLE, "")
    is_tuttis = GROUP_LABEL in labels
    annotations = metadata.get("annotations") or {}
    volcano = "" if is_tuttis else annotations.get(VOLCANO_ANNOTATION, "")
    if volcano == f"podgroup-{metadata['uid']}":  # Volcano makes it for every pod without a group
        volcano = ""
    ray = labels.get(RAY_LABEL, "") if labels.get(RAY_TYPE) in ("head", "worker") else ""
    ray_role = labels.get(RAY_GROUP, "") if ray else ""
    task = annotations.get(TASK_ANNOTATION, "")
    task_group = annotations.get(TASK_GROUP, "")
    spark_app = labels.get(SPARK_APP, "") if spark_role else ""
    app_id = labels.get(APP_ID) or annotations.get(APP_ID) or labels.get(APP_LABEL)
    app = app_id or spark_app if task_group else spark_app
    native = "" if is_tuttis else (spec.get("schedulingGroup") or {}).get("podGroupName", "")
    gates = frozenset(gate["name"] for gate in spec.get("schedulingGates") or ())
    scheduler, pin = spec.get("schedulerName") or KUBE_SCHEDULER, _pin(spec)
    is_handed = is_tuttis and scheduler == KUBE_SCHEDULER and bool(GATE in gates or pin)
    terminating = bool(metadata.get("deletionTimestamp"))
    is_pinned = is_handed and not (gates or terminating)
    return Pod(
        key=_key(body),
        uid=metadata["uid"],
        scheduler=scheduler,
        group=labels.get(GROUP_LABEL, ""),
        role=labels.get(ROLE_LABEL, "") or task_group or spark_role or ray_role or task,
        node=spec.get("nodeName") or (pin if is_pinned else ""),
        phase=(body.get("status") or {}).get("phase") or "Pending",
        terminating=terminating,
        requests=_counted(body),
        created=metadata.get("creationTimestamp") or "",
        app="" if is_tuttis else app,
        of_kubernetes=foreign(Kind.KUBERNETES_GROUPS, native),
        of_volcano=foreign(Kind.VOLCANO_GROUPS, volcano),
        of_ray="" if is_tuttis else foreign(Kind.RAY_CLUSTERS, ray),
        of_jobset="" if is_tuttis else foreign(Kind.JOB_SETS, labels.get(JOBSET_LABEL, "")),
        of_plugins="" if is_tuttis else foreign(Kind.PLUGINS_GROUPS, labels.get(PLUGINS_LABEL, "")),
        gates=gates,
        is_handed=is_handed,
        labels=labels,
        device_claims=device_claims(body),
        volume_claims=volume_claims(body),
        job=job_of(body),
    )


def _counted(body: Body) -> Amounts:
    """What a kubelet counts of a pod: without the resources that its claim for devices is for."""
    requests = effective_requests(body["spec"])
    claim = (body.get("status") or {}).get("extendedResourceClaimStatus") or {}
    claimed = {mapping["resourceName"] for mapping in claim.get("requestMappings", ())}
    return {name: amount for name, amount in requests.items() if name not in claimed}


def _pin(spec: Body) -> str:
    """The node that a pod is pinned to, as every term with requirements names it last."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()
    pins = {
        (fields[-1]["key"], *fields[-1]["values"]) if (fields := term.get("matchFields")) else ()
        for term in terms
        if term.get("matchFields") or term.get("matchExpressions")
    }
    match [*pins]:
        case [("metadata.name", node)]:
            return str(node)
    return ""


def _node(body: Body) -> Node:
    spec, status = body.get("spec") or {}, body.get("status") or {}
    ready = next(
        (c["status"] for c in status.get("conditions") or () if c["type"] == "Ready"), "Unknown"
    )
    taints = sorted(
        f"{taint['key']}={taint.get('value', '')}:{taint['effect']}"
        for taint in spec.get("taints") or ()
    )
    state = f"Ready={ready}"
    if spec.get("unschedulable"):
        state += ", cordoned"
    if taints:
        state += f", tainted {' '.join(taints)}"
    allocatable = amounts(status.get("allocatable"))
    return Node(
        key=_key(body),
        uid=body["metadata"]["uid"],
        allocatable=allocatable,
        state=state,
        labels=body["metadata"].get("labels") or {},
    )


def _pod_group(body: Body) -> PodGroup:
    spec = body.get("spec") or {}
    roles = {role["name"]: int(role.get("minMember") or 0) for role in spec.get("roles") or ()}
    return PodGroup(
        key=_key(body),
        uid=body["metadata"]["uid"],
        min_member=int(spec.get("minMember") or sum(roles.values())),
        roles=roles,
        templates={
            role["name"]: amounts({**role["template"]["resources"], "pods": "1"})
            for role in spec.get("roles") or ()
            if "template" in role
        },
        absent_seconds=int(spec.get("absentMemberTimeoutSeconds") or ABSENT_SECONDS),
        owner_pod=next(
            (
                owner["name"]
                for owner in body["metadata"].get("ownerReferences") or ()
                if owner["kind"] == "Pod"
            ),
            "",
        ),
        queue=spec.get("queue") or "",
        created=body["metadata"].get("creationTimestamp") or "",
        rules=read_rules(spec),
    )


def _foreign_group(kind: Kind, body: Body) -> PodGroup:
    """A group, with roles of Volcano's tasks alone; one that is no gang needs one pod."""
    key, spec = _key(body), body.get("spec") or {}
    tasks = spec.get("minTaskMember") or {}
    if sum(tasks.values()) > (spec.get("minMember") or 0):  # then Volcano does not look at them
        tasks = {}
    gang = (spec.get("schedulingPolicy") or {}).get("gang") or {}
    queue = (spec.get("queue") or "") if kind is Kind.VOLCANO_GROUPS else ""
    return PodGroup(
        key=Key(key.namespace, foreign(kind, key.name)),
        uid=body["metadata"]["uid"],
        min_member=int(gang.get("minCount") or spec.get("minMember") or 1),
        roles=tasks,
        templates={},
        absent_seconds=ABSENT_SECONDS,
        owner_pod="",
        queue="" if queue == VOLCANO_DEFAULT else queue,
        created=body["metadata"].get("creationTimestamp") or "",
    )


def _owner(kind: Kind, body: Body) -> PodGroup:
    """A job whose pods are a gang; of one with stages the smallest is judged."""
    spec = body.get("spec") or {}
    roles = _ray_roles(spec) if kind is Kind.RAY_CLUSTERS else {}
    least = sum(roles.values()) if roles else _smallest_stage(spec.get("replicatedJobs") or ())
    key = _key(body)
    return PodGroup(
        key=Key(key.namespace, foreign(kind, key.name)),
        uid=body["metadata"]["uid"],
        min_member=least,
        roles=roles,
        templates={},
        absent_seconds=ABSENT_SECONDS,
        owner_pod="",
        created=body["metadata"].get("creationTimestamp") or "",
    )


def _ray_roles(spec: Body) -> Mapping[str, int]:
    """What a RayCluster needs: with the autoscaler, the least that it keeps of each group."""
    roles = {"headgroup": 1}
    for group in spec.get("workerGroupSpecs") or ():
        least = group.get("minReplicas", 0)
        number = least if spec.get("enableInTreeAutoscaling") else group.get("replicas", 0)
        number = max(least, min(number, group.get("maxReplicas", number)))
        idle = group.get("suspend", False)
        roles[group["groupName"]] = 0 if idle else number * group.get("numOfHosts", 1)
    return roles


def _smallest_stage(jobs: Sequence[Body]) -> int:
    """The fewest pods with which any of its stages starts; 1 where a job waits for another."""
    if any("dependsOn" in job for job in jobs):
        return 1
    return sum(
        job.get("replicas", 1) * job["template"]["spec"].get("parallelism", 1) for job in jobs
    )


def _reservation(body: Body, revision: int) -> Reservation:
    key, spec = _key(body), body["spec"]
    victims = (spec.get("claim") or {}).get("victims") or ()
    placement, group = spec.get("placement") or (), spec["podGroup"]
    is_tuttis = group.get("apiGroup", "tutti.dev") == "tutti.dev"
    return Reservation(
        key=key,
        uid=body["metadata"]["uid"],
        revision=revision,
        gang=Key(
            key.namespace, group["name"] if is_tuttis else f"{group['apiGroup']}/{group['name']}"
        ),
        gang_uid=spec["podGroup"].get("uid", ""),
        named={
            pod["uid"]: (pod["name"], entry["node"])
            for entry in placement
            for pod in (
                *(entry.get("pods") or ()),
                *({"name": "", "uid": uid} for uid in entry.get("uids") or ()),
            )
        },
        slots={
            (entry["node"], role): int(count)
            for entry in placement
            for role, count in (entry.get("slots") or {}).items()
        },
        reserved_at=datetime.fromisoformat(said) if (said := spec.get("reservedAt")) else None,
        is_spent="queue" in spec and not (placement or spec.get("evict")),
        queue=(record["name"], record.get("uid", "")) if (record := spec.get("queue")) else None,
        ends=frozenset(uid for victim in victims for uid in victim["pods"]),
        ended_gangs=frozenset(victim["uid"] for victim in victims if victim.get("whole")),
        evicts=frozenset(spec.get("evict") or ()),
        devices=device_promises(placement),
        volumes=volume_promises(spec),
    )


_READERS: Mapping[Kind, Callable[[Body], View]] = {
    Kind.PODS: _pod,
    Kind.NODES: _node,
    Kind.POD_GROUPS: _pod_group,
    Kind.QUEUES: lambda body: read_queue(_key(body), body),
    Kind.TOPOLOGIES: lambda body: read_topology(_key(body), body),
    Kind.KUEUE_TOPOLOGIES: lambda body: read_topology(_key(body), body, "kueue.x-k8s.io"),
    Kind.KAI_TOPOLOGIES: lambda body: read_topology(_key(body), body, "kai.scheduler"),
    Kind.NAMESPACES: lambda body: read_namespace(_key(body), body),
    Kind.DEVICE_CLAIMS: lambda body: read_claim(_key(body), body),
    Kind.DEVICE_SLICES: lambda body: read_slice(_key(body), body),
    Kind.VOLUME_CLAIMS: lambda body: read_volume_claim(_key(body), body),
    Kind.BUDGETS: lambda body: read_budget(_key(body), body),
    Kind.JOBS: lambda body: read_job(_key(body), body),
    Kind.VOLUMES: lambda body: read_volume(_key(body), body),
}
