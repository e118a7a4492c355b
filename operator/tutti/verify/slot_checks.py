"""Room for absent members, counted by whoever checks a plan or a standing Reservation.

A part of ``plan_checks``, apart from it because it is all that slots add: it counts anew, in plain
Python, what planning has worked out in its own way.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ..filters.node_rules import fits_node
from ..gang import slots
from ..gang.quantities import format_name
from ..gang.slots import Places
from ..model.cluster import Gang, Member, Node, Reservation
from ..model.decisions import Placement
from ..model.keys import NodeName
from . import lookup, room_ledger


def take(found: Places, gang: Gang | None, ledger: room_ledger.Ledger, times: int = 1) -> None:
    """Count the room of these slots; with -1 it is given back."""
    for (node, role), n in found.items():
        amounts = lookup.needs_of_slot(gang, role)
        ledger.take(node, {name: n * times * amount for name, amount in amounts.items()})


def exchange(
    placement: Placement, gang: Gang, held: Reservation | None, ledger: room_ledger.Ledger
) -> Places:
    """Give back what stands for a gang, and count what of it will go on; answers the new slots.

    On a node that others have overdrawn, a slot that goes on holds nothing that one who came for
    another one there needs.
    """
    before = slots.places(() if held is None else held.slots)
    after = slots.places(placement.slots)
    take(before, gang, ledger, times=-1)
    shapes = {member.uid: member.shape for member in gang.members}
    own = [one for one in placement.assignments if before and one.uid in shapes]
    for one in own:
        ledger.take(one.node, lookup.needs(shapes[one.uid]))
    for place in (before & after).elements():
        if not ledger.lacks(place[0], lookup.needs_of_slot(gang, place[1])):
            take(Counter([place]), gang, ledger)
    for one in own:
        ledger.take(one.node, {k: -n for k, n in lookup.needs(shapes[one.uid]).items()})
    return after - before


def faults(
    new: Places, gang: Gang, nodes: Mapping[NodeName, Node], ledger: room_ledger.Ledger
) -> Iterator[str]:
    """What is wrong with new slots; their room is counted."""
    for (node_name, role), n in sorted(new.items()):
        declared, node = slots.declared(gang, role), nodes.get(node_name)
        slot = f"gang {gang.key}: a slot of role {role} on {node_name}"
        if declared is None or node is None:
            yield f"{slot}: there is no such {'node' if node is None else 'template'}"
            continue
        if (why := fits_node(declared, node)) is not None:
            yield f"{slot}: the node will not do: {why}"
        for _ in range(n):
            if lacking := ledger.lacks(node_name, lookup.needs(declared)):
                yield f"{slot}: the node has too little {', '.join(map(format_name, lacking))}"
            ledger.take(node_name, lookup.needs(declared))


def lost(
    held: Reservation,
    gang: Gang | None,
    nodes: Mapping[NodeName, Node],
    ledger: room_ledger.Ledger,
    forbidden: Places,
) -> Places:
    """The slots whose node will not do any more; the room of the others is counted.

    ``forbidden`` are those that rules between pods do not allow.
    """
    found: Places = Counter()
    for slot in held.slots:
        one, node = lookup.needs_of_slot(gang, slot.role), nodes.get(slot.node)
        seats: Sequence[Member] = () if gang is None else slots.placeholders(gang, slot.role, 1)
        fits = node is not None and all(fits_node(m.shape, node) is None for m in seats)
        place = slot.node, slot.role
        for n in range(slot.count):
            if not fits or n < forbidden[place] or ledger.lacks(slot.node, one):
                found[place] += 1
            else:
                ledger.take(slot.node, one)
    return found
