"""The streams that fill the cluster state, and how each is decoded.

Separate from the composition root because a dump of a live cluster needs them, and nothing else.
"""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from ..kube import calls, list_watch, wire
from ..kube.codec import decode, pod_group, volumes
from ..model.cluster import ForeignPod, Member, Reservation
from .cluster_state import ClusterState


class Reflectors(NamedTuple):
    """The eight streams."""

    groups: list_watch.Reflector[Any, Any]
    pending: list_watch.Reflector[Any, Any]
    nodes: list_watch.Reflector[Any, Any]
    bound: list_watch.Reflector[Any, Any]
    pinned: list_watch.Reflector[Any, Any]
    reservations: list_watch.Reflector[Any, Any]
    classes: list_watch.Reflector[Any, Any]
    namespaces: list_watch.Reflector[Any, Any]

    @property
    def demand(self) -> tuple[list_watch.Reflector[Any, Any], ...]:
        """What waits, and for whom: watched through kopf."""
        return (self.groups, self.pending)

    @property
    def supply(self) -> tuple[list_watch.Reflector[Any, Any], ...]:
        """What counts: listed after what waits."""
        words = (self.classes, self.namespaces)
        return (self.nodes, self.bound, self.pinned, self.reservations, *words)


def reflectors_into(
    state: ClusterState,
    name: str,
    served: Collection[str] = (),
    *,
    elsewhere: Callable[[str], None] = lambda _: None,
) -> Reflectors:
    """The streams that fill a cluster state; ``name`` is the scheduler's.

    Where the ``served`` namespaces are named, there are no gangs but theirs: what waits elsewhere
    is left out, and whoever is bound there is in the way, no more. ``elsewhere`` is told, once,
    each other namespace in which a Reservation of this scheduler stands: its room is not kept.
    """
    ours = frozenset(served)
    told: set[str] = set()

    def is_served(one: wire.Object) -> bool:
        return not ours or one.metadata.namespace in ours

    def group(one: wire.PodGroup) -> pod_group.GangObject | None:
        return pod_group.decode_group(one) if is_served(one) else None

    def waiting(pod: wire.Pod) -> Member | None:
        is_ours = pod.spec.scheduler_name == name and is_served(pod)
        return decode.decode_member(pod) if is_ours else None

    def bound(pod: wire.Pod) -> Member | ForeignPod | None:
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
    return Reflectors(
        groups=list_watch.Reflector(calls.GROUPS, wire.PodGroup, group, state.groups),
        pending=list_watch.Reflector(calls.pending(name), wire.Pod, waiting, state.pending),
        nodes=list_watch.Reflector(calls.NODES, wire.Node, decode.decode_node, state.nodes),
        bound=list_watch.Reflector(calls.BOUND, wire.Pod, bound, state.bound),
        pinned=list_watch.Reflector(others, wire.Pod, decode.decode_occupant, state.pinned),
        reservations=list_watch.Reflector(
            calls.RESERVATIONS, wire.Reservation, promised, state.reservations
        ),
        classes=list_watch.Reflector(
            calls.CLASSES, wire.PriorityClass, decode.decode_priority_class, state.classes
        ),
        namespaces=list_watch.Reflector(
            calls.NAMESPACES, wire.Namespace, decode.decode_namespace, state.namespaces
        ),
    )


def storage_into(state: ClusterState) -> tuple[list_watch.Reflector[Any, Any], ...]:
    """The streams of volumes, for as long as some pod names a claim."""
    into = state.storage
    return (
        list_watch.Reflector(
            calls.CLAIMS, wire.PersistentVolumeClaim, volumes.decode_claim, into.claims
        ),
        list_watch.Reflector(
            calls.VOLUMES, wire.PersistentVolume, volumes.decode_volume, into.volumes
        ),
        list_watch.Reflector(
            calls.STORAGE_CLASSES, wire.StorageClass, volumes.decode_class, into.classes
        ),
        list_watch.Reflector(calls.CSI_NODES, wire.CSINode, volumes.decode_drivers, into.nodes),
        list_watch.Reflector(
            calls.CSI_DRIVERS, wire.CSIDriver, volumes.decode_driver, into.drivers
        ),
        list_watch.Reflector(
            calls.ATTACHMENTS, wire.VolumeAttachment, volumes.decode_attachment, into.attachments
        ),
    )
