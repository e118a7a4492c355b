"""What pods ask of one another: which of them count, and how far apart or together they may be.

Affinity and spread stand at pods. A rule on domains stands at a gang, and names a level of a
topology.
"""

from dataclasses import dataclass

Labels = tuple[tuple[str, str], ...]  # sorted by key


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement on labels: In, NotIn, Exists, DoesNotExist; on nodes' also Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodSelector:
    """The pods that a rule is about, by namespace and labels.

    A pod counts if its namespace is named, or has labels of which all ``namespace_labels`` hold,
    and all of ``selector`` holds for its own labels. None selects nothing, no requirement at all
    selects everything. ``matchLabelKeys`` and the pod's own namespace are already in here.
    """

    selector: tuple[Requirement, ...] | None
    namespaces: tuple[str, ...] = ()  # sorted
    namespace_labels: tuple[Requirement, ...] | None = None


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """One term of required affinity or anti-affinity: these peers, in one domain of this key."""

    topology: str  # a node label's key
    peers: PodSelector


@dataclass(frozen=True, slots=True)
class WeightedAffinityTerm:
    """A term of preferred affinity; that of anti-affinity has a weight below zero."""

    term: AffinityTerm
    weight: int


@dataclass(frozen=True, slots=True)
class TopologySpread:
    """One topology spread constraint; whether it must hold is said where it stands."""

    topology: str
    peers: PodSelector  # in the pod's own namespace
    max_skew: int
    min_domains: int = 1
    honors_node_affinity: bool = True  # nodeAffinityPolicy: Honor
    honors_node_taints: bool = False  # nodeTaintsPolicy: Honor


@dataclass(frozen=True, slots=True)
class InterPodRules:
    """What a pod asks of other pods; each tuple sorted, without repetition."""

    affinity: tuple[AffinityTerm, ...] = ()  # required pod affinity
    anti_affinity: tuple[AffinityTerm, ...] = ()  # required pod anti-affinity
    spread: tuple[TopologySpread, ...] = ()  # those that must hold (DoNotSchedule)


@dataclass(frozen=True, slots=True)
class Topology:
    """The levels of the cluster's network.

    Nodes are in one domain of a level if they have the same values for its label and for those of
    all wider levels.
    """

    name: str
    levels: tuple[str, ...]  # labels of nodes, the widest first


@dataclass(frozen=True, slots=True, order=True)
class DomainRule:
    """Members of a gang have their nodes in one domain of a level, or prefer that."""

    level: str  # a label of nodes
    roles: tuple[str, ...] = ()  # of those members, sorted; none if it is all members


NO_RULES = InterPodRules()
