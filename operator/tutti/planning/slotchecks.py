"""Room for absent members, counted by whoever checks a plan or a standing Reservation.

A part of ``verify``, apart from it because it is all that slots add: it counts anew, in plain
Python, what planning has worked out in its own way.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..model.cluster import Gang, Member, Node, Reservation, Shape
from ..model.decisions import Placement
from ..model.keys import NodeName
from . import accounts, beside, slots
from .amounts import format_name
from .feasibility import fits_node
from .slots import Places


def asked(shape: Shape) -> accounts.Amounts:
    """What one member of this shape takes of a node."""
    return {**dict(shape.requests.amounts), "pods": 1}


def per_slot(gang: Gang | None, role: str) -> accounts.Amounts:
    """What is held for one absent member: what its role declares, else the most siblings ask."""
    if gang is None:
        return {}
    if (declared := slots.declared(gang, role)) is not None:
        return asked(declared)
    return most(member for member in gang.members if member.role == role)


def most(members: Iterable[Member]) -> accounts.Amounts:
    """The most that any of these asks for, resource by resource."""
    found: dict[str, int] = {}
    for member in members:
        for name, n in asked(member.shape).items():
            found[name] = max(n, found.get(name, 0))
    return found


def take(found: Places, gang: Gang | None, ledger: accounts.Ledger, times: int = 1) -> None:
    """Count the room of these slots; with -1 it is given back."""
    for (node, role), n in found.items():
        amounts = per_slot(gang, role)
        ledger.take(node, {name: n * times * amount for name, amount in amounts.items()})


def exchange(
    placement: Placement, gang: Gang, held: Reservation | None, ledger: accounts.Ledger
) -> Places:
    """Give back what stands for a gang, and count what of it will go on; answers the new slots."""
    before = slots.places(() if held is None else held.slots)
    after = slots.places(placement.slots)
    take(before, gang, ledger, times=-1)
    take(before & after, gang, ledger)
    return after - before


def faults(
    new: Places, gang: Gang, nodes: Mapping[NodeName, Node], ledger: accounts.Ledger
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
            if lacking := ledger.lacks(node_name, asked(declared)):
                yield f"{slot}: the node has too little {', '.join(map(format_name, lacking))}"
            ledger.take(node_name, asked(declared))


def lost(
    held: Reservation,
    gang: Gang | None,
    nodes: Mapping[NodeName, Node],
    ledger: accounts.Ledger,
    others: beside.Neighbours | None,
) -> Places:
    """The slots whose node will not do any more; the room of the others is counted."""
    found: Places = Counter()
    for slot in held.slots:
        one, node = per_slot(gang, slot.role), nodes.get(slot.node)
        seats: Sequence[Member] = () if gang is None else slots.stand_ins(gang, slot.role, 1)
        fits = node is not None and all(fits_node(m.shape, node) is None for m in seats)
        if fits and others is not None:
            fits = not any(True for m in seats for _ in others.faults(m, slot.node))
        for _ in range(slot.count):
            if not fits or ledger.lacks(slot.node, one):
                found[slot.node, slot.role] += 1
            else:
                ledger.take(slot.node, one)
    return found
