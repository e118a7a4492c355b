"""Room for absent members, in the checks of plans and of standing Reservations.

It counts a second time, in plain Python, what planning computes in its own way.
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
from . import lookup


def take(places: Places, gang: Gang | None, ledger: lookup.Ledger, times: int = 1) -> None:
    """Take the room of these slots; ``times=-1`` gives it back."""
    for (node, role), n in places.items():
        amounts = lookup.needs_of_slot(gang, role)
        ledger.take(node, {name: n * times * amount for name, amount in amounts.items()})


def exchange(
    placement: Placement, gang: Gang, reservation: Reservation | None, ledger: lookup.Ledger
) -> Places:
    """Give back the gang's standing slots, and take the slots that stay; return the new slots.

    On a node that other promises have overcommitted, a slot that stays takes nothing that the
    gang's new members need there.
    """
    before = slots.places(() if reservation is None else reservation.slots)
    after = slots.places(placement.slots)
    take(before, gang, ledger, times=-1)
    shapes = {member.uid: member.shape for member in gang.members}
    assignments = [
        assignment for assignment in placement.assignments if before and assignment.uid in shapes
    ]
    for assignment in assignments:
        ledger.take(assignment.node, lookup.needs(shapes[assignment.uid]))
    for place in (before & after).elements():
        if not ledger.lacks(place[0], lookup.needs_of_slot(gang, place[1])):
            take(Counter([place]), gang, ledger)
    for assignment in assignments:
        ledger.take(
            assignment.node, {k: -n for k, n in lookup.needs(shapes[assignment.uid]).items()}
        )
    return after - before


def faults(
    new: Places, gang: Gang, nodes: Mapping[NodeName, Node], ledger: lookup.Ledger
) -> Iterator[str]:
    """One sentence for each fault of the new slots; takes their room."""
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


def unkeepable_slots(
    reservation: Reservation,
    gang: Gang | None,
    nodes: Mapping[NodeName, Node],
    ledger: lookup.Ledger,
    forbidden: Places,
) -> Places:
    """The slots that cannot stay on their node; takes the room of the other slots.

    ``forbidden`` has the slots that rules between pods do not allow.
    """
    unkeepable: Places = Counter()
    for slot in reservation.slots:
        amounts, node = lookup.needs_of_slot(gang, slot.role), nodes.get(slot.node)
        members: Sequence[Member] = () if gang is None else slots.placeholders(gang, slot.role, 1)
        fits = node is not None and all(fits_node(m.shape, node) is None for m in members)
        place = slot.node, slot.role
        for n in range(slot.count):
            if not fits or n < forbidden[place] or ledger.lacks(slot.node, amounts):
                unkeepable[place] += 1
            else:
                ledger.take(slot.node, amounts)
    return unkeepable
