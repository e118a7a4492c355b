"""Whether a gang that waits has room in the place of one that starts; a yes is certain.

Apart from ``queue_order`` because it knows of nodes and pods, and nothing of queues.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from ..filters.node_rules import fits_node
from ..model.cluster import Gang, Member, Snapshot
from ..model.decisions import Placement, Plan
from ..model.keys import GangKey, NodeName
from ..model.shapes import Shape
from . import lookup, room_ledger
from .lookup import SnapshotLookup

MOST_NODES = 64  # nodes beside those of a start that are tried for each shape of unequal pods

Amounts = Counter[str]


@dataclass(frozen=True, eq=False)
class Places:
    """The room that a plan leaves, for pods of each shape as far as it was asked for."""

    gangs: Mapping[GangKey, Gang]
    ledger: room_ledger.Ledger
    counts: dict[Shape, Mapping[NodeName, int]]  # for how many pods each node has room

    @classmethod
    def after(cls, snapshot: Snapshot, seen: SnapshotLookup, plan: Plan) -> "Places":
        """The room once a plan is carried out."""
        ledger = room_ledger.Ledger(seen.nodes)
        for reservation in snapshot.reservations:
            for node, asked in lookup.held_room(reservation, seen):
                ledger.take(node, asked)
        for placement in plan.placements:
            own = seen.members(placement.gang)
            for assignment in placement.assignments:
                ledger.take(assignment.node, lookup.needs(own[assignment.uid].shape))
            gang = seen.gangs[placement.gang]
            for slot in placement.slots:
                one = lookup.needs_of_slot(gang, slot.role)
                ledger.take(slot.node, {name: n * slot.count for name, n in one.items()})
        return cls(seen.gangs, ledger, {})

    def fits(self, members: Sequence[Member], start: Placement) -> bool:
        """Whether these members have room once those of the start have none.

        Equal pods are counted. Unequal pods are placed one by one, the largest first: they may
        have room where this finds none.
        """
        freed = self._freed(start)
        shapes = Counter(member.shape for member in members)
        if any(self._count(shape, freed) < n for shape, n in shapes.items()):
            return False
        return len(shapes) == 1 or self._are_placed(shapes, freed)

    def _freed(self, start: Placement) -> Mapping[NodeName, Amounts]:
        """What the members of a start take of each node."""
        shapes = {member.uid: member.shape for member in self.gangs[start.gang].members}
        freed = defaultdict[NodeName, Amounts](Counter)
        for assignment in start.assignments:
            freed[assignment.node].update(lookup.needs(shapes[assignment.uid]))
        return freed

    def _counts(self, shape: Shape) -> Mapping[NodeName, int]:
        """For how many such pods each node has room after the plan; the nodes that have some."""
        if shape not in self.counts:
            asked = lookup.needs(shape)
            counts = {
                name: _count(self.ledger.room(name) or {}, asked)
                for name, node in self.ledger.nodes.items()
                if fits_node(shape, node) is None
            }
            self.counts[shape] = {name: n for name, n in counts.items() if n}
        return self.counts[shape]

    def _count(self, shape: Shape, freed: Mapping[NodeName, Amounts]) -> int:
        """For how many such pods there is room without the start."""
        counts, asked = self._counts(shape), lookup.needs(shape)
        gain = 0
        for name in freed:
            if fits_node(shape, self.ledger.nodes[name]) is None:
                gain += _count(self._room(name, freed), asked) - counts.get(name, 0)
        return sum(counts.values()) + gain

    def _room(self, name: NodeName, freed: Mapping[NodeName, Amounts]) -> dict[str, int]:
        left, more = self.ledger.room(name) or {}, freed.get(name, Amounts())
        return {key: left.get(key, 0) + more[key] for key in {*left, *more}}

    def _are_placed(self, shapes: Counter[Shape], freed: Mapping[NodeName, Amounts]) -> bool:
        """Whether first fit finds room for all."""
        names = dict.fromkeys(freed)
        for shape in shapes:
            names.update(dict.fromkeys(islice(self._counts(shape), MOST_NODES)))
        rooms = {name: self._room(name, freed) for name in names}
        for shape in sorted(shapes, key=lambda one: sorted(one.requests.amounts), reverse=True):
            asked, left = lookup.needs(shape), shapes[shape]
            for name, room in rooms.items():
                if fits_node(shape, self.ledger.nodes[name]) is None:
                    placed = min(_count(room, asked), left)
                    left -= placed
                    room.update({key: room.get(key, 0) - n * placed for key, n in asked.items()})
            if left:
                return False
        return True


def _count(room: Mapping[str, int], asked: Mapping[str, int]) -> int:
    """How many pods have room."""
    return max(min((room.get(name, 0) // n for name, n in asked.items() if n), default=0), 0)
