"""The fields of API objects that decisions use, in the spelling of the API; no other fields.

Each default is what the absence of the field means, so a sparse object is read as the API server
would complete it.
"""

from pydantic import AwareDatetime, Field

from .base import Condition, Object, Quantities, Wire
from .queues import QueueRecord


class Taint(Wire):
    """A taint of a node."""

    key: str
    value: str = ""
    effect: str = ""


class NodeSpec(Wire):
    """The fields that keep pods off a node."""

    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeStatus(Wire):
    """The amounts of a node, and whether it is ready."""

    allocatable: Quantities = Field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()


class Node(Object):
    """A v1 Node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ConfigMap(Object):
    """A v1 ConfigMap; binary values are not in ``data``."""

    data: dict[str, str] = Field(default_factory=dict)


class GangReference(Wire):
    """The gang that a Reservation is for; without a kind, a tutti.dev PodGroup declares it."""

    api_group: str = ""
    kind: str = ""
    name: str
    uid: str
    generation: int = 0


class ReservedPod(Wire):
    """A named pod that room is held for."""

    name: str
    uid: str


class ReservedDevice(Wire):
    """A device that a claim gets."""

    request: str
    driver: str
    pool: str
    device: str


class ReservedClaim(Wire):
    """A claim of a pod, and the devices that it gets."""

    name: str
    uid: str
    devices: tuple[ReservedDevice, ...] = ()


class ReservedClaims(Wire):
    """The claims of one pod."""

    pod: str  # its uid
    claims: tuple[ReservedClaim, ...] = ()


class Held(Wire):
    """The room on one node: for pods, by name and uid or by uid alone, and for slots by role."""

    node: str
    pods: tuple[ReservedPod, ...] = ()
    uids: tuple[str, ...] = ()
    slots: dict[str, int] = Field(default_factory=dict)
    claims: tuple[ReservedClaims, ...] = ()


class Victim(Wire):
    """Pods of a gang that are evicted so that another gang starts."""

    namespace: str
    api_group: str = ""
    kind: str = "PodGroup"
    name: str
    uid: str
    pods: tuple[str, ...] = ()
    is_whole: bool = Field(default=False, alias="whole")
    lost_milliseconds: int = 0


class Guaranteed(Wire):
    """An amount of one resource that a queue guarantees."""

    name: str
    guaranteed: str


class ReservationClaim(Wire):
    """The pods that end before the placement that was decided at this time is carried out."""

    reserved_at: AwareDatetime
    victims: tuple[Victim, ...] = ()
    right: str = ""  # empty in claims of older versions
    cost_milliseconds: int = 0
    bound_milliseconds: int = 0
    guarantee: tuple[Guaranteed, ...] = ()


class ReservedVolume(Wire):
    """The volume that a claim gets; without one, it is provisioned for the node."""

    claim: str
    uid: str
    version: str
    node: str
    volume: str = ""


class RoleOfPods(Wire):
    """Pods that joined a gang with one role."""

    role: str
    pods: tuple[str, ...] = ()


class ReservationSpec(Wire):
    """The whole placement of a gang."""

    scheduler_name: str
    pod_group: GangReference
    term: str = ""
    reserved_at: AwareDatetime
    placement: tuple[Held, ...] = ()
    evict: tuple[str, ...] = ()
    queue: QueueRecord | None = None
    succeeded: dict[str, int] = Field(default_factory=dict)
    charged: tuple[str, ...] = ()
    roles: tuple[RoleOfPods, ...] = ()
    claim: ReservationClaim | None = None
    volumes: tuple[ReservedVolume, ...] = ()


class Reservation(Object):
    """A tutti.dev Reservation."""

    spec: ReservationSpec


class LeaseSpec(Wire):
    """The holder of a Lease; times stay text, so that a term is exactly as written."""

    holder_identity: str = ""
    acquire_time: str = ""
    renew_time: str = ""
    lease_duration_seconds: int = 0
    lease_transitions: int = 0


class Lease(Object):
    """A coordination.k8s.io Lease."""

    spec: LeaseSpec = LeaseSpec()


class FailureCondition(Wire):
    """A pod condition that a rule of a Job looks for."""

    type: str
    status: str = "True"


class FailureRule(Wire):
    """What a Job does about failed pods that meet a condition."""

    action: str
    on_pod_conditions: tuple[FailureCondition, ...] = ()


class FailurePolicy(Wire):
    """Rules in order; the first rule that matches counts."""

    rules: tuple[FailureRule, ...] = ()


class JobSpec(Wire):
    """How many failures a Job tolerates."""

    backoff_limit: int = 6
    backoff_limit_per_index: int | None = None
    pod_failure_policy: FailurePolicy = FailurePolicy()


class UncountedPods(Wire):
    """Pods that have ended and are not counted yet."""

    failed: tuple[str, ...] = ()


class JobStatus(Wire):
    """How many pods have failed so far, terminating pods included."""

    failed: int = 0
    uncounted_terminated_pods: UncountedPods = UncountedPods()


class Job(Object):
    """A batch/v1 Job."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()
