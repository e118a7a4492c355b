"""The fields of pods that decisions use."""

from typing import Any

from pydantic import AwareDatetime, Field

from .base import Condition, Int32, Object, Quantities, Requirement, Wire
from .inter_pod import PodAffinity, SpreadConstraint


class ResourceAmounts(Wire):
    """The requests of a container or a pod; at admission, limits fill in missing requests."""

    requests: Quantities = Field(default_factory=dict)


class Port(Wire):
    """A port of a container."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = Field(default="", alias="hostIP")
    protocol: str = "TCP"


class Container(Wire):
    """A container, init container or sidecar."""

    name: str = ""
    resources: ResourceAmounts = ResourceAmounts()
    restart_policy: str = ""
    ports: tuple[Port, ...] = ()


class Toleration(Wire):
    """A toleration of a pod for taints."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class NodeTerm(Wire):
    """Requirements that must all hold."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


class NodeSelector(Wire):
    """Terms; at least one must hold."""

    node_selector_terms: tuple[NodeTerm, ...] = ()


class PreferredNodeTerm(Wire):
    """A preference for certain nodes."""

    weight: Int32 = 0
    preference: NodeTerm = NodeTerm()


class NodeAffinity(Wire):
    """Affinity to nodes."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredNodeTerm, ...] = ()


class Affinity(Wire):
    """Affinity to nodes and to pods."""

    node_affinity: NodeAffinity = NodeAffinity()
    pod_affinity: PodAffinity = PodAffinity()
    pod_anti_affinity: PodAffinity = PodAffinity()


class SchedulingGate(Wire):
    """A gate that holds a pod back until it is removed."""

    name: str = ""


class PodResourceClaim(Wire):
    """A claim for devices: an object of this name, or one that a template makes."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodResourceClaimStatus(Wire):
    """The claim that was made from a template; without a name, the template needs none."""

    name: str = ""
    resource_claim_name: str | None = None


class ExtendedResourceMapping(Wire):
    """A resource that a claim stands for."""

    resource_name: str = ""


class ExtendedResourceClaimStatus(Wire):
    """The claim that stands for extended resources of a pod."""

    resource_claim_name: str = ""
    request_mappings: tuple[ExtendedResourceMapping, ...] = ()


class PodSpec(Wire):
    """The spec of a pod."""

    scheduler_name: str = ""
    node_name: str = ""
    node_selector: dict[str, str] = Field(default_factory=dict)
    affinity: Affinity = Affinity()
    tolerations: tuple[Toleration, ...] = ()
    priority: int = 0
    preemption_policy: str = ""
    termination_grace_period_seconds: int | None = None
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Quantities = Field(default_factory=dict)
    resources: ResourceAmounts = ResourceAmounts()
    host_network: bool = False
    volumes: tuple[dict[str, Any], ...] = ()
    topology_spread_constraints: tuple[SpreadConstraint, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: dict[str, Any] | None = None


class Terminated(Wire):
    """How a container ended."""

    finished_at: AwareDatetime | None = None


class ContainerState(Wire):
    """The state of a container; only its end is read."""

    terminated: Terminated = Terminated()


class ContainerStatus(Wire):
    """The state of a container, and the amounts that the kubelet has granted during a resize."""

    name: str = ""
    state: ContainerState = ContainerState()
    allocated_resources: Quantities | None = None
    resources: ResourceAmounts | None = None


class PodCondition(Condition):
    """A condition of a pod, with the time of its last change."""

    last_transition_time: AwareDatetime | None = None


class PodStatus(Wire):
    """The status of a pod."""

    phase: str = "Pending"
    reason: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    allocated_resources: Quantities | None = None
    resources: ResourceAmounts | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: ExtendedResourceClaimStatus | None = None


class Pod(Object):
    """A v1 Pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
