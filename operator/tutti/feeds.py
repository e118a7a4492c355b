"""The streams that show a World its cluster, and how each is decoded.

Separate from the composition root because a dump of a live cluster needs them, and nothing else.
"""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from .kube import calls, decode, groups, supply, volumes, wire
from .model.cluster import Member, Occupant, Reservation
from .world import World


class Feeds(NamedTuple):
    """The eight streams."""

    groups: supply.Feed[Any, Any]
    pending: supply.Feed[Any, Any]
    nodes: supply.Feed[Any, Any]
    bound: supply.Feed[Any, Any]
    pinned: supply.Feed[Any, Any]
    reservations: supply.Feed[Any, Any]
    classes: supply.Feed[Any, Any]
    namespaces: supply.Feed[Any, Any]

    @property
    def demand(self) -> tuple[supply.Feed[Any, Any], ...]:
        """What waits, and for whom: watched through kopf."""
        return (self.groups, self.pending)

    @property
    def supply(self) -> tuple[supply.Feed[Any, Any], ...]:
        """What counts: listed after what waits."""
        words = (self.classes, self.namespaces)
        return (self.nodes, self.bound, self.pinned, self.reservations, *words)


def feeds_into(
    world: World,
    name: str,
    served: Collection[str] = (),
    *,
    elsewhere: Callable[[str], None] = lambda _: None,
) -> Feeds:
    """The streams that show a World its cluster; ``name`` is the scheduler's.

    Where the ``served`` namespaces are named, there are no gangs but theirs: what waits elsewhere
    is left out, and whoever is bound there is in the way, no more. ``elsewhere`` is told, once,
    each other namespace in which a Reservation of this scheduler stands: its room is not kept.
    """
    ours = frozenset(served)
    told: set[str] = set()

    def is_served(one: wire.Object) -> bool:
        return not ours or one.metadata.namespace in ours

    def group(one: wire.PodGroup) -> groups.PodGroup | None:
        return groups.decode_group(one) if is_served(one) else None

    def waiting(pod: wire.Pod) -> Member | None:
        is_ours = pod.spec.scheduler_name == name and is_served(pod)
        return decode.decode_member(pod) if is_ours else None

    def bound(pod: wire.Pod) -> Member | Occupant | None:
        if pod.spec.scheduler_name == name and is_served(pod):
            return decode.decode_member(pod)
        return decode.decode_occupant(pod)

    def promised(held: wire.Reservation) -> Reservation | None:
        if held.spec.scheduler_name != name:
            return None
        if is_served(held):
            return decode.decode_reservation(held)
        if (space := held.metadata.namespace) not in told:
            told.add(space)
            elsewhere(space)
        return None

    others = calls.others_pending(name)
    return Feeds(
        groups=supply.Feed(calls.GROUPS, wire.PodGroup, group, world.groups),
        pending=supply.Feed(calls.pending(name), wire.Pod, waiting, world.pending),
        nodes=supply.Feed(calls.NODES, wire.Node, decode.decode_node, world.nodes),
        bound=supply.Feed(calls.BOUND, wire.Pod, bound, world.bound),
        pinned=supply.Feed(others, wire.Pod, decode.decode_occupant, world.pinned),
        reservations=supply.Feed(
            calls.RESERVATIONS, wire.Reservation, promised, world.reservations
        ),
        classes=supply.Feed(
            calls.CLASSES, wire.PriorityClass, decode.decode_priority_class, world.classes
        ),
        namespaces=supply.Feed(
            calls.NAMESPACES, wire.Namespace, decode.decode_namespace, world.namespaces
        ),
    )


def storage_into(world: World) -> tuple[supply.Feed[Any, Any], ...]:
    """The streams that show a World where volumes are, for as long as some pod names a claim."""
    into = world.storage
    return (
        supply.Feed(calls.CLAIMS, wire.PersistentVolumeClaim, volumes.decode_claim, into.claims),
        supply.Feed(calls.VOLUMES, wire.PersistentVolume, volumes.decode_volume, into.volumes),
        supply.Feed(calls.STORAGE_CLASSES, wire.StorageClass, volumes.decode_class, into.classes),
        supply.Feed(calls.CSI_NODES, wire.CSINode, volumes.decode_drivers, into.nodes),
        supply.Feed(calls.CSI_DRIVERS, wire.CSIDriver, volumes.decode_driver, into.drivers),
        supply.Feed(
            calls.ATTACHMENTS, wire.VolumeAttachment, volumes.decode_attachment, into.attachments
        ),
    )
