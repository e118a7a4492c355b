"""The fields of a pod about other pods: affinity, anti-affinity, topology spread."""

from .base import Int32, LabelSelector, Wire


class PodAffinityTerm(Wire):
    """Pods by namespace and labels, and the key of the domain that they share."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""


class WeightedPodAffinityTerm(Wire):
    """A preference for or against a domain with certain pods."""

    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Wire):
    """Affinity or anti-affinity to other pods."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()

    @property
    def is_in_use(self) -> bool:
        """Whether it has any term."""
        return bool(
            self.required_during_scheduling_ignored_during_execution
            or self.preferred_during_scheduling_ignored_during_execution
        )


class SpreadConstraint(Wire):
    """How evenly pods are spread over domains; a hard rule by default."""

    max_skew: Int32 = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()
