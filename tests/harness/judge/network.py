"""Levels of the network, and the rules of PodGroups that name them, as the judge reads them.

PodGroups of Tutti alone are read: levels that other objects name are not judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .history import Body
    from .views import Key


@dataclass(frozen=True, slots=True)
class Topology:
    """The labels of the levels, the widest first."""

    key: Key
    levels: tuple[str, ...]
    group: str = ""  # of another project

    @property
    def order(self) -> tuple[str, str]:
        """Those of Tutti come first."""
        return self.group, self.key.name


@dataclass(frozen=True, slots=True)
class Rule:
    """Members of these roles, all if there are none, are in one domain or in segments.

    ``size`` is that of a segment; 0 means all of them in one domain.
    """

    level: str
    roles: frozenset[str] = frozenset()
    size: int = 0
    index_label: str = ""

    def covers(self, role: str) -> bool:
        """Whether members of this role are meant."""
        return not self.roles or role in self.roles


def read_topology(key: Key, body: Body, group: str = "") -> Topology:
    """Read a Topology."""
    levels = (body.get("spec") or {}).get("levels") or ()
    return Topology(key, tuple(level["nodeLabel"] for level in levels), group)


def read_rules(spec: Mapping[str, Any]) -> tuple[Rule, ...]:
    """Read what the spec of a PodGroup requires, for all, for a role, for roles together."""
    topology = spec.get("topology") or {}
    rules = [*_rules(topology, frozenset())]
    for role in spec.get("roles") or ():
        rules += _rules(role.get("topology") or {}, frozenset({role["name"]}))
    for group in topology.get("roleGroups") or ():
        rules += _rules(group, frozenset(group["roles"]))
    return tuple(rules)


def _rules(topology: Mapping[str, Any], roles: frozenset[str]) -> Iterator[Rule]:
    if topology.get("required"):
        yield Rule(topology["required"], roles)
    if segments := topology.get("segments"):
        size, index = int(segments["size"]), segments.get("indexLabel", "")
        yield Rule(segments["level"], roles, size, index)


def labels_of(level: str, topologies: Iterable[Topology]) -> tuple[str, ...]:
    """The labels that tell the domains of a level apart; the first Topology that has it counts."""
    for topology in sorted(topologies, key=lambda one: one.order):
        if level in topology.levels:
            return topology.levels[: topology.levels.index(level) + 1]
    return ()


def domain(labels: Mapping[str, str], of_level: Iterable[str]) -> str:
    """The domain of a node with these labels; empty if it lacks a label of the level."""
    values = [labels.get(label) for label in of_level]
    return "" if None in values else "/".join(str(value) for value in values)
