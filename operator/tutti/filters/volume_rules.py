"""Which volumes a claim may get that waits for its pod (WaitForFirstConsumer).

Sources: ``FindMatchingVolume`` of component-helpers/storage/volume, ``checkVolumeProvisions`` of
kube-scheduler's VolumeBinding.
"""

from collections.abc import Collection, Iterable, Mapping

from ..model.inter_pod import HOSTNAME, Requirement
from ..model.volumes import Capacity, Driver, Reach, StorageClass, Volume, VolumeRequest
from .node_rules import label_holds

Where = tuple[Reach, ...]  # where volumes can be provisioned; all must hold; empty: everywhere


def matches(request: VolumeRequest, volume: Volume) -> bool:
    """Whether an available volume has all that is requested, from whichever node it is reached."""
    offer = volume.offer
    if offer is None or volume.claim is not None or request.selector is None:
        return False
    return (
        offer.storage_class == request.storage_class
        and has_size(request, volume)
        and offer.attributes_class == request.attributes_class
        and set(request.modes) <= set(offer.modes)
        and all_hold(request.selector, dict(offer.labels))
    )


def has_size(request: VolumeRequest, volume: Volume) -> bool:
    """Whether a volume has the size and the volumeMode that are requested.

    Nothing else counts if the volume is for the claim already.
    """
    offer = volume.offer
    return offer is not None and offer.size >= request.size and offer.is_block == request.is_block


def is_reached(volume: Volume, labels: Mapping[str, str]) -> bool:
    """Whether a volume can be reached from a node with these labels."""
    return holds_somewhere(volume.reach, labels)


def holds_somewhere(where: Iterable[Reach], labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels is in every reach."""
    return all(any(all_hold(way, labels) for way in reach) for reach in where)


def all_hold(way: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Whether labels meet all of these requirements."""
    return all(label_holds(requirement, labels) for requirement in way)


def implies(request: VolumeRequest, other: VolumeRequest) -> bool:
    """Whether each volume that will do for ``request`` will also do for ``other``."""
    if request.selector is None or other.selector is None:
        return False
    return (
        request.storage_class == other.storage_class
        and request.is_block == other.is_block
        and request.attributes_class == other.attributes_class
        and request.size >= other.size
        and set(request.modes) >= set(other.modes)
        and set(request.selector) >= set(other.selector)
    )


def host_of(volume: Volume) -> str | None:
    """The value of the label ``kubernetes.io/hostname`` of the only node of a local volume.

    None if its affinity names no such node.
    """
    ways = volume.affinity or ()
    hosts = {_host(way) for way in ways}
    return hosts.pop() if len(hosts) == 1 else None


def _host(way: Iterable[Requirement]) -> str | None:
    for requirement in way:
        if requirement.key == HOSTNAME and requirement.operator == "In":
            return requirement.values[0] if len(requirement.values) == 1 else None
    return None


def provisioned_at(
    request: VolumeRequest,
    storage_class: StorageClass,
    drivers: Collection[Driver],
    capacities: Iterable[Capacity],
) -> Where | None:
    """Where the volume of a claim can be provisioned; None if that is nowhere.

    Capacities count for the drivers that publish them. As in kube-scheduler, each claim is compared
    with a capacity by itself.
    """
    if not storage_class.provisions:
        return None
    where = () if storage_class.topologies is None else (storage_class.topologies,)
    if any(d.name == storage_class.provisioner and d.has_capacity for d in drivers):
        ways = {
            capacity.way
            for capacity in capacities
            if capacity.storage_class == storage_class.name and capacity.largest >= request.size
        }
        where = (*where, merged(ways))
    return None if () in where else where


def merged(ways: Collection[tuple[Requirement, ...]]) -> Reach:
    """The same reach in fewer ways: those that differ in the value of one label become one.

    Drivers of local storage publish a capacity for each node.
    """
    values: dict[str, set[str]] = {}
    rest: set[tuple[Requirement, ...]] = set()
    for way in ways:
        if len(way) == 1 and way[0].operator == "In":
            values.setdefault(way[0].key, set()).update(way[0].values)
        else:
            rest.add(way)
    joined = {(Requirement(key, "In", tuple(sorted(some))),) for key, some in values.items()}
    return tuple(
        sorted(
            rest | joined,
            key=lambda way: tuple((r.key, r.operator, r.values) for r in way),
        )
    )
