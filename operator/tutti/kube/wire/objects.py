"""The fields of API objects that a decision uses, spelt as the API spells them; no others.

Everything has the default that its absence means, so that sparse objects are read as the API
server would fill them in.
"""

from pydantic import AwareDatetime, Field

from .base import Condition, Object, Quantities, Wire
from .queues import QueueRecord


class Taint(Wire):
    """A node's repellent."""

    key: str
    value: str = ""
    effect: str = ""


class NodeSpec(Wire):
    """The pods that a node refuses."""

    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeStatus(Wire):
    """What a node has, and whether it answers."""

    allocatable: Quantities = Field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()


class Node(Object):
    """A v1 Node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ConfigMap(Object):
    """A v1 ConfigMap; values that are no text are not among these."""

    data: dict[str, str] = Field(default_factory=dict)


class GangReference(Wire):
    """The gang that a Reservation is for; without a kind, the one of a tutti.dev PodGroup."""

    api_group: str = ""
    kind: str = ""
    name: str
    uid: str
    generation: int = 0


class ReservedPod(Wire):
    """A named pod that room is held for."""

    name: str
    uid: str


class Held(Wire):
    """The room held on one node: for pods, named or by uid alone, and by role for those to come."""

    node: str
    pods: tuple[ReservedPod, ...] = ()
    uids: tuple[str, ...] = ()
    slots: dict[str, int] = Field(default_factory=dict)


class Victim(Wire):
    """Pods of a gang that end so that another starts; the gang's namespace and kind are given."""

    namespace: str
    api_group: str = ""
    kind: str = "PodGroup"
    name: str
    uid: str
    pods: tuple[str, ...] = ()
    is_whole: bool = Field(default=False, alias="whole")


class ReservationClaim(Wire):
    """Who ends before a placement is carried out that was decided at this time."""

    reserved_at: AwareDatetime
    victims: tuple[Victim, ...] = ()


class ReservationSpec(Wire):
    """A gang's whole placement."""

    scheduler_name: str
    pod_group: GangReference
    term: str = ""
    reserved_at: AwareDatetime
    placement: tuple[Held, ...] = ()
    evict: tuple[str, ...] = ()
    queue: QueueRecord | None = None
    charged: tuple[str, ...] = ()
    claim: ReservationClaim | None = None


class Reservation(Object):
    """A tutti.dev Reservation."""

    spec: ReservationSpec


class LeaseSpec(Wire):
    """Who leads; the times stay text, so that a term is what was written."""

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
    """What a Job does about a failed pod of some kind."""

    action: str
    on_pod_conditions: tuple[FailureCondition, ...] = ()


class FailurePolicy(Wire):
    """Rules of which the first that matches counts."""

    rules: tuple[FailureRule, ...] = ()


class JobSpec(Wire):
    """How many failures a Job stands."""

    backoff_limit: int = 6
    backoff_limit_per_index: int | None = None
    pod_failure_policy: FailurePolicy = FailurePolicy()


class UncountedPods(Wire):
    """Pods that have ended and are not in the counters yet."""

    failed: tuple[str, ...] = ()


class JobStatus(Wire):
    """How many pods have failed so far, terminating ones among them."""

    failed: int = 0
    uncounted_terminated_pods: UncountedPods = UncountedPods()


class Job(Object):
    """A batch/v1 Job."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()
