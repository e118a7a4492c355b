"""Rules between pods: affinity, anti-affinity and spread; and rules on domains of the network.

A pod declares its affinity and spread. A gang declares rules on domains, which name a level of a
topology.
"""

from dataclasses import dataclass

Labels = tuple[tuple[str, str], ...]  # sorted by key


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement on labels: In, NotIn, Exists, DoesNotExist; for nodes also Gt and Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodSelector:
    """The pods that a rule counts, by namespace and labels.

    A pod counts if its labels match ``selector``, and its namespace is in ``namespaces`` or has
    labels that match ``namespace_labels``. All requirements of a selector must hold. None selects
    nothing; an empty tuple selects everything. ``matchLabelKeys`` and the pod's own namespace are
    already included.
    """

    selector: tuple[Requirement, ...] | None
    namespaces: tuple[str, ...] = ()  # sorted
    namespace_labels: tuple[Requirement, ...] | None = None


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """One term of affinity or anti-affinity: its peers in one domain of the key ``topology``."""

    topology: str  # a node label's key
    peers: PodSelector


@dataclass(frozen=True, slots=True)
class WeightedAffinityTerm:
    """A term of preferred affinity, or of preferred anti-affinity with a negative weight."""

    term: AffinityTerm
    weight: int


@dataclass(frozen=True, slots=True)
class TopologySpread:
    """One topology spread constraint; the field that has it says whether it must hold."""

    topology: str
    peers: PodSelector  # in the pod's own namespace
    max_skew: int
    min_domains: int = 1
    honors_node_affinity: bool = True  # nodeAffinityPolicy: Honor
    honors_node_taints: bool = False  # nodeTaintsPolicy: Honor


@dataclass(frozen=True, slots=True)
class InterPodRules:
    """The rules of a pod about other pods; each tuple is sorted and has no duplicates."""

    affinity: tuple[AffinityTerm, ...] = ()  # required pod affinity
    anti_affinity: tuple[AffinityTerm, ...] = ()  # required pod anti-affinity
    spread: tuple[TopologySpread, ...] = ()  # constraints that must hold (DoNotSchedule)


@dataclass(frozen=True, slots=True)
class Topology:
    """The levels of the cluster's network.

    Nodes are in one domain of a level if they have the same values for its label and for the labels
    of all wider levels.
    """

    name: str
    levels: tuple[str, ...]  # labels of nodes, the widest first
    group: str = ""  # the API group of another project's object; empty for Tutti's own

    @property
    def order(self) -> tuple[str, str]:
        """By what topologies are sorted: Tutti's own come first, then by group and name."""
        return self.group, self.name

    @property
    def title(self) -> str:
        """The name, with the group of another project."""
        return f"{self.name} of {self.group}" if self.group else self.name


HOSTNAME = "kubernetes.io/hostname"  # the label of a node's name
# The topology of which all nodes are one domain. No label has this name, so no pod can declare it.
CLUSTER = "cluster:"


def tier(number: int) -> str:
    """The level of a topology with this number, counted from the narrowest, which is 1.

    ``HOSTNAME``, if it is the narrowest level, does not count, as in Volcano.
    """
    return f"tier {number}"


@dataclass(frozen=True, slots=True, order=True)
class DomainRule:
    """Members of a gang have their nodes in one domain of a level, or prefer that."""

    level: str  # a label of nodes, or a ``tier``
    roles: tuple[str, ...] = ()  # the roles of these members, sorted; empty for all members


@dataclass(frozen=True, slots=True, order=True)
class SegmentRule:
    """Members of a gang are in segments of equal size, each in one domain of a level.

    One segment may be smaller. If ``index`` is the key of a label of pods, its value says which
    segment a member is in: the first has the indexes from 0 to ``size`` - 1.
    """

    of: DomainRule  # the level, and the roles of these members
    size: int  # positive
    index: str = ""


NO_RULES = InterPodRules()
