"""What claims need of nodes that wait for their pods, and how many volumes a node has for them.

Local volumes are counted by node. A claim takes one of every count that it is part of: the count
of its own request, and of each request that is less demanding. By Hall's theorem, the volumes of a
node can be given to claims exactly if no count is exceeded, as long as two requests share a volume
only if one implies the other. Of two others that share one, the request that has waited longer is
modelled. If requests are too many to count, namespaces take turns: the n-th request of one comes
before the n+1-th of any other. Pods with a node come first, and pods that cannot start come last.
Other claims are not modelled yet, and their pods wait.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..model.inter_pod import HOSTNAME
from ..model.resources import NOTHING, Resources
from ..model.volumes import (
    PLENTY,
    Capacity,
    ClaimKey,
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
MOST_COUNTS = 256  # requests for local volumes; more would make every plan slow
MOST_COMPARED = 512  # requests that are compared with volumes, with those that need no count
TOO_MANY = f"unbound; more than {MOST_COUNTS} different requests for PersistentVolumes wait"

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


class Waiting(NamedTuple):
    """A request of a claim that waits for its pod; ``created`` is when the oldest such pod was.

    A claim that ``yields`` keeps no claim from being modelled that overlaps and does not. If not
    all can be counted, those that ``may_start`` come first, and namespaces take turns; in each
    namespace those of pods with a node come first.
    """

    request: VolumeRequest
    claim: ClaimKey
    created: float
    yields: bool = False
    has_node: bool = False
    may_start: bool = True

    @property
    def age(self) -> tuple[object, ...]:
        """Its place among others; the oldest comes first."""
        return self.yields, self.created, self.claim


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
    waiting: Iterable[Waiting],
    class_of: Callable[[str], StorageClass | None],
    volumes_of: Callable[[str], Collection[Volume]],
    drivers: Collection[Driver],
    capacities: Collection[Capacity],
) -> VolumeSupply:
    """The supply for these requests; ``volumes_of`` gives the available volumes of a class."""
    needs: dict[VolumeRequest, Need] = {}
    counts: dict[VolumeRequest, Count] = {}
    by_age = sorted(waiting, key=lambda claim: claim.age)
    compared = 0
    for request in _in_turns(by_age):
        storage_class = class_of(request.storage_class)
        if storage_class is None:
            continue  # its claims do not wait for their pods
        where = volume_rules.provisioned_at(request, storage_class, drivers, capacities)
        offered = volumes_of(request.storage_class) if where != () else ()
        is_full = len(counts) == MOST_COUNTS or compared == MOST_COMPARED
        if is_full and (offered or where is None):
            needs[request] = Need(unmodelled=TOO_MANY)
            continue
        compared += bool(offered)
        volumes = [volume for volume in offered if volume_rules.matches(request, volume)]
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
    for request in _overlapping({claim.request: None for claim in by_age}, counts):
        needs[request] = Need(unmodelled=OVERLAPS)
    left = sorted((request for request in counts if request not in needs), key=_order)
    modelled = {request: counts[request] for request in left}
    for request, count in modelled.items():
        names = (c.name for r, c in modelled.items() if volume_rules.implies(request, r))
        provisioned = (NOWHERE,) if count.where is None else count.where
        needs[request] = Need(Resources.of(dict.fromkeys(names, 1)), provisioned=provisioned)
    return VolumeSupply(needs, tuple(modelled.values()))


def _in_turns(waiting: Iterable[Waiting]) -> Iterable[VolumeRequest]:
    """The requests in the order in which they are counted, each once."""
    known: dict[tuple[bool, str], set[VolumeRequest]] = {}
    placed: list[tuple[tuple[object, ...], VolumeRequest]] = []
    for claim in sorted(
        waiting, key=lambda claim: (not claim.has_node, claim.created, claim.claim)
    ):
        own = known.setdefault((claim.may_start, claim.claim.namespace), set())
        if claim.request not in own:
            own.add(claim.request)
            place = not claim.may_start, len(own), not claim.has_node, claim.created, claim.claim
            placed.append((place, claim.request))
    return dict.fromkeys(request for _, request in sorted(placed, key=lambda pair: pair[0]))


def _overlapping(
    by_age: Iterable[VolumeRequest], counts: Mapping[VolumeRequest, Count]
) -> Iterator[VolumeRequest]:
    """The requests that share a volume with an older one, although neither implies the other.

    Older ones that are overlapping themselves do not count.
    """
    bits: dict[str, int] = {}  # of volumes
    older: dict[VolumeRequest, int] = {}
    for request in (request for request in by_age if request in counts):
        by_host = counts[request].by_host.values()
        own = 0
        for volume in (volume for volumes in by_host for volume in volumes):
            own |= bits.setdefault(volume.name, 1 << len(bits))
        if all(_is_chain(request, other) for other, bit in older.items() if own & bit):
            older[request] = own
        else:
            yield request


def _is_chain(one: VolumeRequest, other: VolumeRequest) -> bool:
    """Whether one of the two implies the other."""
    return volume_rules.implies(one, other) or volume_rules.implies(other, one)


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
