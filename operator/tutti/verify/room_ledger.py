"""The free room of each node, reduced promise by promise, in plain Python.

This is a part of ``plan_checks`` that knows only nodes and amounts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..model import ports
from ..model.cluster import Node
from ..model.keys import NodeName

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Ledger:
    """The free room of each node, reduced promise by promise."""

    nodes: Mapping[NodeName, Node]
    free: dict[NodeName, dict[str, int]] = field(
        default_factory=dict
    )  # filled node by node, by ``room``

    def room(self, name: NodeName) -> dict[str, int] | None:
        """The free amounts of a node, by resource; None if there is no such node."""
        room = self.free.get(name)
        if room is None and (node := self.nodes.get(name)) is not None:
            self.free[name] = room = dict(node.allocatable.amounts)
            for resource, n in node.used.amounts:
                room[resource] = _free(room, resource) - n
        return room

    def lacks(self, node: NodeName, amounts: Amounts) -> Sequence[str]:
        """The resources of which the node has less free than these amounts."""
        room = self.room(node) or {}
        return [name for name, n in amounts.items() if n > max(_free(room, name), 0)]

    def take(self, node: NodeName, amounts: Amounts) -> None:
        """Count a promise, whether or not there is room for it."""
        room = self.room(node)
        if room is not None:
            for name, n in amounts.items():
                room[name] = _free(room, name) - n

    def copy(self, names: Iterable[NodeName]) -> "Ledger":
        """A ledger of these nodes alone; changes of the copy do not change this ledger."""
        rooms = {name: self.room(name) for name in names}
        return Ledger(
            self.nodes, {name: dict(room) for name, room in rooms.items() if room is not None}
        )


def _free(room: Amounts, resource: str) -> int:
    """The free amount of a resource; a host port that no promise has used is free."""
    known = room.get(resource)
    return ports.offered(resource) if known is None else known
