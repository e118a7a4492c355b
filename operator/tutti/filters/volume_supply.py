"""What claims need of nodes that wait for their pods, and how many volumes a node has for them.

Local volumes are counted by node. A claim takes one of every count that it is part of: the count
of its own request, and of each request that is less demanding. By Hall's theorem, the volumes of a
node can be given to claims exactly if no count is exceeded, as long as two requests share a volume
only if one implies the other. Other claims are not modelled yet, and their pods wait.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from ..model.inter_pod import HOSTNAME
from ..model.resources import NOTHING, Resources
from ..model.volumes import (
    PLENTY,
    Capacity,
    Driver,
    Reach,
    StorageClass,
    Volume,
    VolumeRequest,
    available,
)
from . import volume_rules
from .volume_rules import Where

SHARED = "unbound; several nodes reach a PersistentVolume of its class"
OVERLAPS = "unbound; some of its PersistentVolumes will do for other claims, and some will not"

NOWHERE: Reach = ()
_UNITS = ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"))


@dataclass(frozen=True, slots=True)
class Need:
    """What a claim needs of the node of its pod; ``unmodelled`` says why it is not modelled."""

    amounts: Resources = NOTHING
    reach: tuple[Reach, ...] = ()
    unmodelled: str = ""
    # Where its volume can be provisioned, for a claim of which that has begun already.
    provisioned: tuple[Reach, ...] = ()


@dataclass(frozen=True, slots=True)
class Count:
    """The volumes that will do for a request, by host, and where others can be provisioned."""

    request: VolumeRequest
    name: str  # of the resource that counts them
    where: Where | None
    by_host: Mapping[str, Sequence[Volume]]

    def at(self, labels: Mapping[str, str]) -> int:
        """How many claims with the request a node with these labels has volumes for."""
        if self.where is not None and volume_rules.holds_somewhere(self.where, labels):
            return PLENTY
        local = self.by_host.get(labels.get(HOSTNAME, ""), ())
        return sum(volume_rules.is_reached(volume, labels) for volume in local)


@dataclass(frozen=True, slots=True)
class VolumeSupply:
    """What each request needs of a node, and the counts that nodes have."""

    needs: Mapping[VolumeRequest, Need] = field(default_factory=dict)
    counts: tuple[Count, ...] = ()

    def at(self, labels: Mapping[str, str]) -> Resources:
        """The counts of a node with these labels."""
        return Resources.of({count.name: count.at(labels) for count in self.counts})


NO_SUPPLY = VolumeSupply()


def supply_for(
    requests: Iterable[VolumeRequest],
    class_of: Callable[[str], StorageClass | None],
    volumes_of: Callable[[str], Collection[Volume]],
    drivers: Collection[Driver],
    capacities: Collection[Capacity],
    *,
    yielding: Collection[VolumeRequest] = (),
) -> VolumeSupply:
    """The supply for these requests; ``volumes_of`` gives the available volumes of a class.

    Requests that are ``yielding`` keep no other request from being modelled.
    """
    needs: dict[VolumeRequest, Need] = {}
    counts: dict[VolumeRequest, Count] = {}
    for request in sorted(set(requests), key=_order):
        storage_class = class_of(request.storage_class)
        if storage_class is None:
            continue  # its claims do not wait for their pods
        where = volume_rules.provisioned_at(request, storage_class, drivers, capacities)
        volumes = [
            volume
            for volume in (volumes_of(request.storage_class) if where != () else ())
            if volume_rules.matches(request, volume)
        ]
        if where is not None and not volumes:
            needs[request] = Need(reach=where, provisioned=where)
            continue
        by_host: dict[str, list[Volume]] = {}
        for volume in volumes:
            host = volume_rules.host_of(volume)
            if host is None or volume.in_tree:
                why = SHARED if host is None else f"unbound; {volume.in_tree}"
                needs[request] = Need(unmodelled=why)
                break
            by_host.setdefault(host, []).append(volume)
        else:
            counts[request] = Count(request, available(phrase(request)), where, by_host)
    for request in _overlapping(counts, yielding):
        needs[request] = Need(unmodelled=OVERLAPS)
    modelled = {request: count for request, count in counts.items() if request not in needs}
    for request, count in modelled.items():
        names = (c.name for r, c in modelled.items() if volume_rules.implies(request, r))
        provisioned = (NOWHERE,) if count.where is None else count.where
        needs[request] = Need(Resources.of(dict.fromkeys(names, 1)), provisioned=provisioned)
    return VolumeSupply(needs, tuple(modelled.values()))


def _overlapping(
    counts: Mapping[VolumeRequest, Count], yielding: Collection[VolumeRequest]
) -> set[VolumeRequest]:
    """The requests that share a volume with another one, although neither implies the other.

    If one of the two is ``yielding``, only this one.
    """
    overlapping: set[VolumeRequest] = set()
    names = {
        request: {volume.name for volumes in count.by_host.values() for volume in volumes}
        for request, count in counts.items()
    }
    for first, second in combinations(counts, 2):
        is_chain = volume_rules.implies(first, second) or volume_rules.implies(second, first)
        if not is_chain and names[first] & names[second]:
            overlapping |= {first, second} & {*yielding} or {first, second}
    return overlapping


def phrase(request: VolumeRequest) -> str:
    """The volumes that will do for a request, in words for users; different requests differ."""
    details = [*request.modes]
    if request.is_block:
        details.append("Block")
    if request.attributes_class:
        details.append(f"attributes class {request.attributes_class}")
    for needed in request.selector or ():
        values = ",".join(needed.values)
        details.append(f"{needed.key} {needed.operator} {values}".rstrip())
    listed = f" ({', '.join(details)})" if details else ""
    return f"class {request.storage_class} of at least {_size(request.size)}{listed}"


def _size(size: int) -> str:
    for unit, name in _UNITS:
        if size and size % unit == 0:
            return f"{size // unit}{name}"
    return f"{size} bytes"


def _order(request: VolumeRequest) -> tuple[object, ...]:
    return request.storage_class, request.size, phrase(request), request.selector is None
