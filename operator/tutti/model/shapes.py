"""What a pod asks for and where it may run and would rather: what makes members interchangeable.

Separate from the cluster because it grows with every rule that is honoured.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from .inter_pod import (
    NO_RULES,
    InterPodRules,
    Labels,
    Requirement,
    TopologySpread,
    WeightedAffinityTerm,
)
from .resources import Resources
from .volumes import Reach


class Effect(StrEnum):
    """Taint effects; only the hard ones forbid a placement."""

    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"


@dataclass(frozen=True, slots=True)
class Taint:
    """A node's repellent."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Toleration:
    """A pod's pass for taints; an empty key with Exists passes all, an empty effect any effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """Requirements that must all hold: on a node's labels, and on its ``metadata.name``."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class Preferences:
    """What decides between nodes that will do, and never whether a gang starts.

    Each tuple is sorted; of equal terms the weights are added up.
    """

    node_affinity: tuple[tuple[NodeTerm, int], ...] = ()  # preferred node affinity, with weights
    pod_affinity: tuple[WeightedAffinityTerm, ...] = ()
    spread: tuple[TopologySpread, ...] = ()  # ScheduleAnyway


NO_PREFERENCES = Preferences()


@dataclass(frozen=True, slots=True)
class Shape:
    """What makes members interchangeable: what they ask for, and where they may run.

    ``required`` is the required node affinity: any one term must hold; None where there is none.
    """

    requests: Resources
    node_selector: tuple[tuple[str, str], ...] = ()
    required: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    rules: InterPodRules = NO_RULES
    preferences: Preferences = NO_PREFERENCES
    volume_reach: tuple[Reach, ...] = ()  # of its volumes, each must hold; sorted
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Work the hash out once: a plan looks shapes up for every gang, and often for members."""
        where = self.node_selector, self.required, self.tolerations, self.volume_reach
        object.__setattr__(
            self, "_hash", hash((self.requests, where, self.rules, self.preferences))
        )

    def __hash__(self) -> int:
        return self._hash

    @property
    def scored_terms(self) -> tuple[WeightedAffinityTerm, ...]:
        """What draws others of its terms' peers to whoever has a node, or keeps them off.

        Its required affinity counts as a wish of weight 1 (``hardPodAffinityWeight``).
        """
        if not self.rules.affinity:
            return self.preferences.pod_affinity  # shared by all of the shape
        return (
            *self.preferences.pod_affinity,
            *(WeightedAffinityTerm(term, 1) for term in self.rules.affinity),
        )


@dataclass(frozen=True, slots=True)
class Template:
    """What a member that does not exist yet will ask for, and the labels that it will carry."""

    shape: Shape
    labels: Labels = ()
