"""Whether a waiting gang has room in the place of a gang that starts; a yes is certain.

This module knows nodes and pods, and nothing of queues.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from ...filters.node_rules import fits_node
from ...model.cluster import Gang, Member, Snapshot
from ...model.decisions import Placement, Plan
from ...model.keys import GangKey, NodeName
from ...model.shapes import Shape
from .. import lookup
from ..lookup import SnapshotLookup

MOST_NODES = 64  # nodes beside those of a start that are tried for each shape of unequal pods

Amounts = Counter[str]


@dataclass(frozen=True, eq=False)
class FreeRoom:
    """The room that a plan leaves, and the number of pods of each shape that fit into it."""

    gangs: Mapping[GangKey, Gang]
    ledger: lookup.Ledger
    counts: dict[Shape, Mapping[NodeName, int]]  # pods that fit on each node, by shape

    @classmethod
    def after(cls, snapshot: Snapshot, index: SnapshotLookup, plan: Plan) -> "FreeRoom":
        """The room once a plan is carried out."""
        ledger = lookup.Ledger(index.nodes)
        for reservation in snapshot.reservations:
            for node, amounts in lookup.held_room(reservation, index):
                ledger.take(node, amounts)
        for placement in plan.placements:
            members = index.members(placement.gang)
            for assignment in placement.assignments:
                ledger.take(assignment.node, lookup.needs(members[assignment.uid].shape))
            gang = index.gangs[placement.gang]
            for slot in placement.slots:
                amounts = lookup.needs_of_slot(gang, slot.role)
                ledger.take(slot.node, {name: n * slot.count for name, n in amounts.items()})
        return cls(index.gangs, ledger, {})

    def fits(self, members: Sequence[Member], start: Placement) -> bool:
        """Whether these members have room if the members of the start have no nodes.

        Equal pods are counted. Unequal pods are placed shape by shape, the largest first; they may
        have room even if this finds none.
        """
        freed = self._freed(start)
        shapes = Counter(member.shape for member in members)
        if any(self._count(shape, freed) < n for shape, n in shapes.items()):
            return False
        return len(shapes) == 1 or self._are_placed(shapes, freed)

    def _freed(self, start: Placement) -> Mapping[NodeName, Amounts]:
        """The resources that the members of a start take of each node."""
        shapes = {member.uid: member.shape for member in self.gangs[start.gang].members}
        freed = defaultdict[NodeName, Amounts](Counter)
        for assignment in start.assignments:
            freed[assignment.node].update(lookup.needs(shapes[assignment.uid]))
        return freed

    def _counts(self, shape: Shape) -> Mapping[NodeName, int]:
        """The number of such pods that fit on each node after the plan, without full nodes."""
        if shape not in self.counts:
            needs = lookup.needs(shape)
            counts = {
                name: _count(self.ledger.room(name) or {}, needs)
                for name, node in self.ledger.nodes.items()
                if fits_node(shape, node) is None
            }
            self.counts[shape] = {name: n for name, n in counts.items() if n}
        return self.counts[shape]

    def _count(self, shape: Shape, freed: Mapping[NodeName, Amounts]) -> int:
        """The number of such pods that fit without the start."""
        counts, needs = self._counts(shape), lookup.needs(shape)
        gain = 0
        for name in freed:
            if fits_node(shape, self.ledger.nodes[name]) is None:
                gain += _count(self._room(name, freed), needs) - counts.get(name, 0)
        return sum(counts.values()) + gain

    def _room(self, name: NodeName, freed: Mapping[NodeName, Amounts]) -> dict[str, int]:
        free, freed_amounts = self.ledger.room(name) or {}, freed.get(name, Amounts())
        return {key: free.get(key, 0) + freed_amounts[key] for key in {*free, *freed_amounts}}

    def _are_placed(self, shapes: Counter[Shape], freed: Mapping[NodeName, Amounts]) -> bool:
        """Whether first fit finds room for all."""
        names = dict.fromkeys(freed)
        for shape in shapes:
            names.update(dict.fromkeys(islice(self._counts(shape), MOST_NODES)))
        rooms = {name: self._room(name, freed) for name in names}
        for shape in sorted(shapes, key=lambda shape: sorted(shape.requests.amounts), reverse=True):
            needs, remaining = lookup.needs(shape), shapes[shape]
            for name, room in rooms.items():
                if fits_node(shape, self.ledger.nodes[name]) is None:
                    placed = min(_count(room, needs), remaining)
                    remaining -= placed
                    room.update({key: room.get(key, 0) - n * placed for key, n in needs.items()})
            if remaining:
                return False
        return True


def _count(room: Mapping[str, int], needs: Mapping[str, int]) -> int:
    """The number of pods that fit into the room."""
    return max(min((room.get(name, 0) // n for name, n in needs.items() if n), default=0), 0)
