"""The reflectors that fill the cluster state, and how each decodes its objects.

The operator and ``tutti dump`` use them.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..kube import kinds, list_watch, wire
from ..kube.codec import decode
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
        """All other reflectors: listed after the demand."""
        return (self.bound, self.pinned, self.reservations, *self.cluster_kinds)

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
    elsewhere: Callable[[str], None] = lambda _: None,
) -> Reflectors:
    """The reflectors that fill a cluster state; ``name`` is the schedulerName of our pods.

    If ``served`` names namespaces, only their gangs count: pods that wait elsewhere are left out,
    and pods bound elsewhere count as foreign. ``elsewhere`` is called once with each other
    namespace that has a Reservation of this scheduler: that Reservation's room is not kept. Gangs
    come from these ``sources``. Unless Tutti ``preempts``, it reads no PodDisruptionBudgets.
    """
    ours = frozenset(served)
    spaces_reported: set[str] = set()

    def is_served(wire_object: wire.Object) -> bool:
        return not ours or wire_object.metadata.namespace in ours

    def waiting(pod: wire.Pod) -> Member | None:
        is_ours = pod.spec.scheduler_name == name and is_served(pod)
        return decode.decode_member(pod, sources) if is_ours else None

    def bound(pod: wire.Pod) -> Member | ForeignPod | None:
        if pod.spec.scheduler_name == name and is_served(pod):
            return decode.decode_member(pod, sources)
        return decode.decode_occupant(pod)

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
            replace(_gangs(state, kind, is_served, source), is_optional=source.is_optional)
            for source in sources
            for kind in source.kinds
        ),
        pending=list_watch.Reflector(kinds.pending(name), wire.Pod, waiting, state.pending),
        bound=list_watch.Reflector(kinds.BOUND, wire.Pod, bound, state.bound),
        pinned=list_watch.Reflector(cluster_kinds, wire.Pod, decode.decode_occupant, state.pinned),
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


def devices_into(state: ClusterState) -> tuple[Reflector, ...]:
    """The reflectors of devices and claims, needed while some pod names a claim for devices."""
    return tuple(_reflector(state, kind) for kind in kinds.DEVICES)


def capacities_into(state: ClusterState) -> tuple[Reflector, ...]:
    """The reflectors of capacities, needed once a claim waits for a driver that publishes them."""
    return tuple(_reflector(state, kind) for kind in kinds.PROVISIONING)


def _gangs(
    state: ClusterState,
    kind: kinds.AnyKind,
    is_served: Callable[[wire.Object], bool],
    source: GangSource,
) -> Reflector:
    """The reflector of a kind that declares gangs.

    Several projects have PodGroups, so the name of an optional stream has the API group.
    """

    def declared(wire_object: wire.Object) -> Any:
        return kind.decode(wire_object) if is_served(wire_object) else None

    name = f"{kind.title} of {kind.api.group}" if source.is_optional else kind.title
    return list_watch.Reflector(kind.stream(name=name), kind.model, declared, state.stores[kind])


def _reflector(
    state: ClusterState, kind: kinds.AnyKind, read: Callable[[Any], Any] | None = None
) -> Reflector:
    """The reflector of a kind into its store; ``read`` replaces the decoder of the kind."""
    sink, decoder = state.stores[kind], read or kind.decode
    return list_watch.Reflector(kind.stream(), kind.model, decoder, sink, kind.is_optional)
