"""The shape of a pod: its requests, its constraints and its preferences.

Members of one shape are interchangeable.
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
    """Taint effects; PreferNoSchedule forbids no placement."""

    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of a pod. An empty key with Exists tolerates all taints.

    An empty effect stands for all effects.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """Requirements that must all hold: on the labels of a node, and on its ``metadata.name``."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class Preferences:
    """Preferences among suitable nodes; they never decide whether a gang starts.

    Each tuple is sorted. The weights of equal terms are added up.
    """

    node_affinity: tuple[tuple[NodeTerm, int], ...] = ()  # preferred node affinity, with weights
    pod_affinity: tuple[WeightedAffinityTerm, ...] = ()
    spread: tuple[TopologySpread, ...] = ()  # ScheduleAnyway


NO_PREFERENCES = Preferences()


@dataclass(frozen=True, slots=True)
class Shape:
    """The requests and node constraints that make members interchangeable.

    ``required`` is the required node affinity, of which at least one term must hold; None if there
    is no such affinity.
    """

    requests: Resources
    node_selector: tuple[tuple[str, str], ...] = ()
    required: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    rules: InterPodRules = NO_RULES
    preferences: Preferences = NO_PREFERENCES
    volume_reach: tuple[Reach, ...] = ()  # the reach of its volumes; all must hold; sorted
    # Whether other pods name one of its volumes of drivers with a limit. The volume counts once on
    # a node, and its requests count it for each pod: an upper bound.
    shares_volumes: bool = False
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the hash once, because a plan looks shapes up for every gang and member."""
        volumes = self.volume_reach, self.shares_volumes
        where = self.node_selector, self.required, self.tolerations, volumes
        object.__setattr__(
            self, "_hash", hash((self.requests, where, self.rules, self.preferences))
        )

    def __hash__(self) -> int:
        return self._hash

    @property
    def scored_terms(self) -> tuple[WeightedAffinityTerm, ...]:
        """Terms by which other pods prefer or avoid the domain of a placed pod of this shape.

        Its required affinity counts as a preference of weight 1 (``hardPodAffinityWeight``).
        """
        if not self.rules.affinity:
            return self.preferences.pod_affinity  # one object for all pods of the shape
        return (
            *self.preferences.pod_affinity,
            *(WeightedAffinityTerm(term, 1) for term in self.rules.affinity),
        )


@dataclass(frozen=True, slots=True)
class Template:
    """The shape and the labels of members that do not exist yet."""

    shape: Shape
    labels: Labels = ()
