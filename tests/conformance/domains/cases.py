"""One cluster of racks in blocks in zones, room on its nodes, and gangs that ask for one domain."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

GPUS = 8  # of each node
MOST_MEMBERS = 24


class Level(StrEnum):
    """The levels of the network that gangs name."""

    BLOCK = "block"
    RACK = "rack"


@dataclass(frozen=True, slots=True)
class Ground:
    """A node; racks and blocks have names of their own in the whole cluster."""

    name: str
    zone: str
    block: str
    rack: str

    def domain(self, level: Level) -> str:
        """Its domain of this level."""
        return self.block if level is Level.BLOCK else self.rack


# 2 zones of 2 blocks of 3 racks of 4 nodes.
NODES = tuple(
    Ground(f"{zone}{block}{rack}{node}", zone, f"{zone}{block}", f"{zone}{block}{rack}")
    for zone in ("z0", "z1")
    for block in ("b0", "b1")
    for rack in ("r0", "r1", "r2")
    for node in ("n0", "n1", "n2", "n3")
)


class Kind(StrEnum):
    """What a gang asks for."""

    EQUAL = "members of one size"
    LEADER = "a leader and workers"
    MIXED = "members of several sizes"
    SEGMENTS = "whole segments in racks"
    SHORT = "segments in racks, one short"


@dataclass(frozen=True, slots=True)
class Gang:
    """Members of these numbers of GPUs, created in this order, all in one domain of a level.

    With a segment they are in addition in segments of so many, each in one rack, and one may be
    short.
    """

    name: str
    kind: Kind
    level: Level
    sizes: tuple[int, ...]
    segment: int = 0

    def member(self, number: int) -> str:
        """The name of the pod of a member."""
        return f"{self.name}-{number}"


@dataclass(frozen=True, slots=True)
class Case:
    """Gangs that are created at once, and the GPUs that others use of each of `NODES` before.

    No two gangs of any cases have the same name.
    """

    name: str
    used: tuple[int, ...]
    gangs: tuple[Gang, ...]
    has_placement: bool  # of all gangs at the same time

    @property
    def free(self) -> tuple[int, ...]:
        """The GPUs that are free on each of `NODES`."""
        return tuple(GPUS - used for used in self.used)
