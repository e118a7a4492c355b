"""What is left of each node while promises are counted one by one, in plain Python.

A part of ``plan_checks``, apart from it because it knows of nodes and amounts alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..model import ports
from ..model.cluster import Node
from ..model.keys import NodeName

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Ledger:
    """What is left of each node while promises are counted one by one."""

    nodes: Mapping[NodeName, Node]
    left: dict[NodeName, dict[str, int]] = field(default_factory=dict)  # of nodes asked about

    def room(self, name: NodeName) -> dict[str, int] | None:
        """What is left of a node, from what is allocatable and not used; None if there is none."""
        room = self.left.get(name)
        if room is None and (node := self.nodes.get(name)) is not None:
            self.left[name] = room = dict(node.allocatable.amounts)
            for resource, n in node.used.amounts:
                room[resource] = _left(room, resource) - n
        return room

    def lacks(self, node: NodeName, asked: Amounts) -> Sequence[str]:
        """The resources of which the node has less left than asked."""
        room = self.room(node) or {}
        return [name for name, n in asked.items() if n > max(_left(room, name), 0)]

    def take(self, node: NodeName, asked: Amounts) -> None:
        """Count a promise, whether there is room for it or not."""
        room = self.room(node)
        if room is not None:
            for name, n in asked.items():
                room[name] = _left(room, name) - n

    def copy(self, names: Iterable[NodeName]) -> "Ledger":
        """The same ledger for these nodes; what is taken there is not taken here."""
        rooms = {name: self.room(name) for name in names}
        return Ledger(
            self.nodes, {name: dict(room) for name, room in rooms.items() if room is not None}
        )


def _left(room: Amounts, resource: str) -> int:
    """What is left of a resource; of a host port that nobody has asked for yet, all of it."""
    known = room.get(resource)
    return ports.offered(resource) if known is None else known
