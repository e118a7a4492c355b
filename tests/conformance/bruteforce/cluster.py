"""A cluster as the manifests say it: nodes, pods and gangs, in exact numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

Room = dict[str, int]
Raw = dict[str, Any]
PODS = "pods"


@dataclass(frozen=True, eq=False)
class Node:
    """A node; ``room`` is all that it offers."""

    name: str
    labels: dict[str, str]
    taints: list[Raw]
    room: Room


@dataclass(frozen=True, eq=False)
class Pod:
    """A pod; ``node`` is None while it waits."""

    name: str
    namespace: str
    labels: dict[str, str]
    spec: Raw
    request: Room  # one of the pods and its host ports among it
    created: float
    role: str
    node: str | None
    is_terminating: bool = False

    @property
    def key(self) -> tuple[float, tuple[str, str]]:
        """The oldest first; equal ages by name."""
        return (self.created, (self.namespace, self.name))


@dataclass(frozen=True)
class Role:
    """A part of a gang."""

    name: str
    least: int
    most: int | None


@dataclass(frozen=True, eq=False)
class Gang:
    """A PodGroup and its pods, or one pod alone."""

    name: str  # with its namespace
    kind: str
    priority: int
    created: float
    need: int
    roles: tuple[Role, ...]
    bound: tuple[Pod, ...]
    waiting: tuple[Pod, ...]  # the oldest first

    @property
    def missing(self) -> int:
        """How many members a started gang lacks."""
        return max(self.need - len(self.bound), sum(self.missing_by_role.values()), 0)

    @property
    def missing_by_role(self) -> dict[str, int]:
        """The same by role, where one lacks any."""
        lacks = {r.name: r.least - sum(p.role == r.name for p in self.bound) for r in self.roles}
        return {role: n for role, n in lacks.items() if n > 0}

    @property
    def is_started(self) -> bool:
        """Whether it is repaired and extended, never started."""
        return bool(self.bound)

    def places(self, role: str) -> int | None:
        """How many more members of the role may have a node; None: any number."""
        most = next((one.most for one in self.roles if one.name == role), None)
        return None if most is None else max(most - sum(p.role == role for p in self.bound), 0)

    @property
    def oldest(self) -> tuple[Pod, ...]:
        """The waiting members without the younger ones of a role that may not have them all."""
        pods: list[Pod] = []
        for pod in self.waiting:
            places = self.places(pod.role)
            if places is None or sum(other.role == pod.role for other in pods) < places:
                pods.append(pod)
        return tuple(pods)

    @property
    def waits_since(self) -> float:
        """From when its wait counts."""
        return max([self.created, *(pod.created for pod in self.oldest[:1])])


@dataclass(frozen=True, eq=False)
class Cluster:
    """All that a plan depends on."""

    nodes: tuple[Node, ...]  # by name
    gangs: tuple[Gang, ...]
    there: tuple[Pod, ...]  # every pod that takes room on a node, gangs' members too
    ours: frozenset[str]  # names of those that are members of gangs
    namespaces: dict[str, dict[str, str]]
    now: float
    objective: str = "resources"
    age_seconds: Fraction = Fraction(3600)
    starvation_seconds: Fraction = Fraction(3600)
    has_wishes: bool = False
    has_rules: bool = False
    resources: frozenset[str] = field(default_factory=frozenset)  # that any gang's pod asks for
