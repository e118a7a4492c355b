"""Hypothetical Snapshots: with more nodes, with fewer nodes, or with other priorities.

Each change is a function from Snapshot to Snapshot. It raises ``WrongChange`` if it is impossible.
"""

import difflib
from collections.abc import Iterable
from dataclasses import replace

from ..model.cluster import Gang, Member, Node, Phase, Reservation, ScheduledCondition, Snapshot
from ..model.inter_pod import HOSTNAME
from ..model.keys import GangKey, NodeName, Uid
from ..model.resources import NOTHING

CONDITIONS = "node.kubernetes.io/"  # the taints that say how a node fares, not what it is for
MOST_NODES = 100_000
NAMED = 3  # nodes that the error about an unknown node names


class WrongChange(Exception):  # noqa: N818 - named for the situation
    """A change names something that does not exist; the message says what."""


def with_nodes(of: Snapshot, count: int, like: str) -> Snapshot:
    """The Snapshot with ``count`` more nodes like this one: empty, ready and not cordoned."""
    model = _node(of, like)
    if not 1 <= count <= MOST_NODES:
        raise WrongChange(f"--add-nodes {count}: between 1 and {MOST_NODES:,} can be added")
    names_in_use = {node.name for node in of.nodes}
    names = (f"{like}-new-{number}" for number in range(1, count + len(names_in_use) + 1))
    free = [NodeName(name) for name in names if name not in names_in_use][:count]
    taints = tuple(taint for taint in model.taints if not taint.key.startswith(CONDITIONS))
    new = [
        replace(
            model,
            name=name,
            labels=_labels(model, name),
            taints=taints,
            unschedulable=False,
            ready=True,
            used=NOTHING,
        )
        for name in free
    ]
    return replace(of, nodes=tuple(sorted([*of.nodes, *new], key=lambda node: node.name)))


def without_node(of: Snapshot, name: str) -> Snapshot:
    """The Snapshot without a node; its pods are gone, or wait again if they have a controller."""
    gone = _node(of, name).name
    bare = replace(of, nodes=tuple(node for node in of.nodes if node.name != gone))
    gangs = tuple(_without(gang, gone) for gang in bare.gangs)
    return replace(
        bare,
        gangs=tuple(gang for gang in gangs if gang.members or not gang.is_single),
        strays=tuple(_remaining_members(bare.strays, gone)),
        reservations=tuple(_remaining_reservations(of, gone)),
        placed_pods=tuple(pod for pod in of.placed_pods if pod.node != gone),
        settled=frozenset(),
    )


def with_priority(of: Snapshot, name: str, priority: int) -> Snapshot:
    """One gang with another priority; ``find`` says what ``name`` may be."""
    chosen = find(of, name).key
    return replace(
        of,
        gangs=tuple(
            replace(
                gang,
                members=tuple(replace(member, priority=priority) for member in gang.members),
                priority_class="",
                class_value=None,
            )
            if gang.key == chosen
            else gang
            for gang in of.gangs
        ),
    )


def find(of: Snapshot, name: str) -> Gang:
    """The gang of that name; a PodGroup comes before a pod.

    The name is ``namespace/name``, a name that no other gang has, or ``namespace/name/kind``, which
    tells gangs of different kinds apart.

    Raises:
        WrongChange: no gang or several gangs have this name.
    """
    gangs = [gang for gang in of.gangs if name in _names(gang.key)]
    groups = [gang for gang in gangs if not gang.is_single] or gangs
    if len(groups) == 1:
        return groups[0]
    if groups:
        several = ", ".join(str(gang.key) for gang in groups)
        raise WrongChange(f"{name}: several gangs have this name: {several}")
    raise WrongChange(f"{name}: there is no such gang{_hint(name, of)}")


def _names(key: GangKey) -> tuple[str, ...]:
    return str(key), key.name, f"{key}/{key.kind.kind}", f"{key}/{key.kind}"


def _hint(name: str, of: Snapshot) -> str:
    names = [str(gang.key) for gang in of.gangs] + [gang.key.name for gang in of.gangs]
    nearest = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {nearest[0]}?" if nearest else ""


def _node(of: Snapshot, name: str) -> Node:
    for node in of.nodes:
        if node.name == name:
            return node
    names = ", ".join(node.name for node in of.nodes[:NAMED])
    ellipsis = " …" * (len(of.nodes) > NAMED)
    raise WrongChange(
        f"{name}: there is no such node; there are {len(of.nodes)}: {names}{ellipsis}"
    )


def _labels(model: Node, name: NodeName) -> tuple[tuple[str, str], ...]:
    return tuple((key, name if key == HOSTNAME else value) for key, value in model.labels)


def _without(gang: Gang, gone: NodeName) -> Gang:
    return replace(gang, members=tuple(_remaining_members(gang.members, gone)))


def _remaining_members(members: Iterable[Member], gone: NodeName) -> Iterable[Member]:
    """The members after a node is gone; members that succeeded there still count."""
    for member in members:
        if member.node != gone or member.phase is Phase.SUCCEEDED:
            yield member
        elif member.owner is not None and not member.terminating:
            yield replace(
                member,
                uid=Uid(f"{member.uid}-again"),
                node=None,
                phase=Phase.PENDING,
                scheduled_condition=ScheduledCondition(),
                failure="",
            )


def _remaining_reservations(of: Snapshot, gone: NodeName) -> Iterable[Reservation]:
    """The Reservations that can still be carried out, without entries and slots on the node."""
    started: set[GangKey] = {
        gang.key for gang in of.gangs if any(member.counts_as_bound for member in gang.members)
    }
    for reservation in of.reservations:
        entries = tuple(entry for entry in reservation.entries if entry.node != gone)
        slots = tuple(slot for slot in reservation.slots if slot.node != gone)
        if (entries, slots) == (reservation.entries, reservation.slots):
            yield reservation
        elif reservation.gang in started and (entries or slots):
            yield replace(reservation, entries=entries, slots=slots)
