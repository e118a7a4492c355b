"""The reflectors that fill the cluster state, and how each decodes its objects.

The operator and ``tutti dump`` use them.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..kube import kinds, list_watch, wire
from ..kube.codec import decode, hand_over
from ..kube.gang_sources import ALWAYS, GangSource
from ..model.cluster import ForeignPod, Member, Reservation
from .cluster_state import ClusterState

Reflector = list_watch.Reflector[Any, Any]


@dataclass(frozen=True, slots=True)
class Reflectors:
    """The reflectors that a cluster state always has: three for pods, one for each other kind."""

    gangs: tuple[Reflector, ...]  # one for every kind that declares gangs
    pending: Reflector
    bound: Reflector
    pinned: Reflector
    reservations: Reflector
    cluster_kinds: tuple[Reflector, ...]

    @property
    def demand(self) -> tuple[Reflector, ...]:
        """Gangs and waiting pods: watched through kopf."""
        return (*self.gangs, self.pending)

    @property
    def supply(self) -> tuple[Reflector, ...]:
        """All other reflectors: listed after the demand.

        Pinned pods come before bound pods: a pod that is bound in between is then seen twice.
        """
        return (self.pinned, self.bound, self.reservations, *self.cluster_kinds)

    @property
    def nodes(self) -> Reflector:
        """The reflector of nodes."""
        return next(feed for feed in self.cluster_kinds if feed.kind is kinds.NODE.model)

    def __iter__(self) -> Iterator[Reflector]:
        """All reflectors, in the order in which they are listed."""
        return iter((*self.demand, *self.supply))


def reflectors_into(
    state: ClusterState,
    name: str,
    served: Collection[str] = (),
    *,
    sources: Sequence[GangSource] = ALWAYS,
    preempts: bool = False,
    hands_over: bool = False,
    elsewhere: Callable[[str], None] = lambda _: None,
) -> Reflectors:
    """The reflectors that fill a cluster state; ``name`` is the schedulerName of our pods.

    If ``served`` names namespaces, only their gangs count: pods that wait elsewhere are left out,
    and pods bound elsewhere count as foreign. ``elsewhere`` is called once with each other
    namespace that has a Reservation of this scheduler: that Reservation's room is not kept. Gangs
    come from these ``sources``. Unless Tutti ``preempts``, it reads no PodDisruptionBudgets and no
    Jobs. Unless it ``hands_over``, pods of the default scheduler are foreign, and a PodGroup that
    wants them handed over waits.
    """
    ours = frozenset(served)
    decode_member = hand_over.member_decoder(sources, hands_over=hands_over)
    spaces_reported: set[str] = set()

    def is_served(wire_object: wire.Object) -> bool:
        return not ours or wire_object.metadata.namespace in ours

    def waiting(pod: wire.Pod) -> Member | None:
        is_ours = pod.spec.scheduler_name == name and is_served(pod)
        return decode_member(pod) if is_ours else None

    def with_room(pod: wire.Pod) -> Member | ForeignPod | None:
        is_member = pod.spec.scheduler_name == name or (hands_over and hand_over.is_member(pod))
        return decode_member(pod) if is_member and is_served(pod) else decode.decode_occupant(pod)

    def promised(reservation: wire.Reservation) -> Reservation | None:
        if reservation.spec.scheduler_name != name:
            return None
        if is_served(reservation):
            return decode.decode_reservation(reservation)
        if (space := reservation.metadata.namespace) not in spaces_reported:
            spaces_reported.add(space)
            elsewhere(space)
        return None

    cluster_kinds = kinds.others_pending(name)
    return Reflectors(
        gangs=tuple(
            replace(
                _gangs(state, kind, is_served, source, hands_over=hands_over),
                is_optional=source.is_optional,
            )
            for source in sources
            for kind in source.kinds
        ),
        pending=list_watch.Reflector(kinds.pending(name), wire.Pod, waiting, state.pods.pending),
        bound=list_watch.Reflector(kinds.BOUND, wire.Pod, with_room, state.pods.bound),
        pinned=list_watch.Reflector(cluster_kinds, wire.Pod, with_room, state.pods.pinned),
        reservations=_reflector(state, kinds.RESERVATION, promised),
        cluster_kinds=tuple(
            _reflector(state, kind)
            for kind in (*kinds.CLUSTER, *(kinds.PREEMPTION if preempts else ()))
            if kind is not kinds.RESERVATION
        ),
    )


def storage_into(state: ClusterState) -> tuple[Reflector, ...]:
    """The reflectors of claims, volumes and their limits, needed while some pod names a claim."""
    return tuple(_reflector(state, kind) for kind in kinds.STORAGE)


def device_classes_into(state: ClusterState) -> tuple[Reflector, ...]:
    """The reflectors of classes: needed for claims, and once a pod lacks an extended resource."""
    return (_reflector(state, kinds.DEVICE_CLASS),)


def devices_into(state: ClusterState) -> tuple[Reflector, ...]:
    """The reflectors of devices and claims, needed while some pod has a claim for devices."""
    others = (kind for kind in kinds.DEVICES if kind is not kinds.DEVICE_CLASS)
    return tuple(_reflector(state, kind) for kind in others)


def capacities_into(state: ClusterState) -> tuple[Reflector, ...]:
    """The reflectors of capacities, needed once a claim waits for a driver that publishes them."""
    return tuple(_reflector(state, kind) for kind in kinds.PROVISIONING)


def _gangs(
    state: ClusterState,
    kind: kinds.AnyKind,
    is_served: Callable[[wire.Object], bool],
    source: GangSource,
    *,
    hands_over: bool,
) -> Reflector:
    """The reflector of a kind that declares gangs.

    Several projects have PodGroups, so the name of an optional stream has the API group.
    """
    decode_group = hand_over.group_decoder(kind.decode, hands_over=hands_over)

    def declared(wire_object: wire.Object) -> Any:
        return decode_group(wire_object) if is_served(wire_object) else None

    stream = kind.stream(name=_with_group(kind) if source.is_optional else kind.title)
    return list_watch.Reflector(stream, kind.model, declared, state.stores[kind])


def _with_group(kind: kinds.AnyKind) -> str:
    """The name of a stream of a kind that Tutti or another project has, too."""
    return f"{kind.title} of {kind.api.group}"


def _reflector(
    state: ClusterState, kind: kinds.AnyKind, read: Callable[[Any], Any] | None = None
) -> Reflector:
    """The reflector of a kind into its store; ``read`` replaces the decoder of the kind."""
    sink, decoder = state.stores[kind], read or kind.decode
    stream = kind.stream(name=_with_group(kind) if kind in kinds.FOREIGN_TOPOLOGIES else "")
    return list_watch.Reflector(stream, kind.model, decoder, sink, kind.is_optional)
