"""A set of changes to a cluster, which apply together."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..model.cluster import Snapshot
from . import edits, queue_edits


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of the nodes, the gangs and the queues of a cluster."""

    add_nodes: Sequence[tuple[int, str]] = ()  # how many nodes, and the node that they are like
    remove_nodes: Sequence[str] = ()
    priorities: Sequence[tuple[str, int]] = ()  # of gangs, by name
    queues: Sequence[str] = ()  # as ``queue_edits`` spells them


def change(snapshot: Snapshot, changes: Changes) -> Snapshot:
    """The cluster with these changes: first added nodes, then removed ones, gangs, and queues.

    Raises:
        WrongChange: a change names something that does not exist.
    """
    for count, like in changes.add_nodes:
        snapshot = edits.with_nodes(snapshot, count, like)
    for name in changes.remove_nodes:
        snapshot = edits.without_node(snapshot, name)
    for gang, priority in changes.priorities:
        snapshot = edits.with_priority(snapshot, gang, priority)
    for words in changes.queues:
        snapshot = queue_edits.changed(snapshot, words)
    return snapshot
