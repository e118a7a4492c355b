"""One gang on one small cluster, in few words; ``manifests`` makes the objects of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
GANG = "train"  # the app of every member


class Kind(StrEnum):
    """What makes a gang hard to place one by one."""

    EASY = "room for everyone"
    APART = "anti-affinity over few nodes"
    ROLES = "roles and GPUs"
    ZONE = "workers in the driver's zone"
    SPREAD = "spread over zones, maxSkew 1"
    DOMAINS = "minDomains"
    PORTS = "host ports"
    MIXED = "several of these"


class Ask(StrEnum):
    """The kinds of rules between pods."""

    APART = "podAntiAffinity"
    NEAR = "podAffinity"
    EVEN = "topologySpreadConstraints"


@dataclass(frozen=True, slots=True)
class Rule:
    """A required rule about the pods with a label, in the domains of a topology."""

    ask: Ask
    topology: str
    key: str = "app"
    value: str = GANG
    min_domains: int = 0  # of a spread; none if 0. Its maxSkew is 1


@dataclass(frozen=True, slots=True)
class Ground:
    """A node."""

    name: str
    zone: str = "a"
    cpu: int = 4
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class Other:
    """A pod that has a node already."""

    on: str
    cpu: int = 0
    app: str = "other"
    port: int = 0
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Role:
    """Members that are alike; a member has the labels ``app`` and ``role``."""

    name: str
    count: int
    cpu: int = 1
    gpus: int = 0
    port: int = 0
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster and a gang of these roles, whose pods are created in this order."""

    name: str
    kind: Kind
    nodes: tuple[Ground, ...]
    roles: tuple[Role, ...]
    others: tuple[Other, ...] = ()

    @property
    def size(self) -> int:
        """How many members the gang has, all of which it needs."""
        return sum(role.count for role in self.roles)
