"""Typed names, so that two kinds of string cannot be mixed up.

Separate from the values because every layer needs the names and few need the rest.
"""

from enum import StrEnum
from typing import NamedTuple, NewType

NodeName = NewType("NodeName", str)
Uid = NewType("Uid", str)


class PodKey(NamedTuple):
    """The namespace and name of a pod; a recreated pod has the same key and another uid."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Read as kubectl prints it: ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class Origin(StrEnum):
    """The API kind that a gang comes from: a PodGroup, or one pod that names no group."""

    POD_GROUP = "PodGroup"
    POD = "Pod"


class GangKey(NamedTuple):
    """The name of a gang; a gang of one is named after its pod, and ``origin`` keeps them apart."""

    namespace: str
    name: str
    origin: Origin = Origin.POD_GROUP

    def __str__(self) -> str:
        """Read as kubectl prints it: ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class LeaseKey(NamedTuple):
    """The Lease that all replicas of one Tutti share."""

    namespace: str
    name: str
