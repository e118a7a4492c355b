"""Claims, the volumes that they are bound to, and classes: what pods demand of a node by them.

Separate from the cluster because most clusters' decisions need none of it: it is looked at only
where a pod that waits names a claim.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from .inter_pod import Labels, Requirement
from .keys import NodeName

Way = tuple[Requirement, ...]  # all of which must hold for a node's labels
Reach = tuple[Way, ...]  # of which one must

_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
# The labels that say where a volume is, and by which a node may say it in their stead.
PLACES: Mapping[str, str] = {
    "failure-domain.beta.kubernetes.io/region": _REGION,
    "failure-domain.beta.kubernetes.io/zone": _ZONE,
    _REGION: _REGION,
    _ZONE: _ZONE,
}
_BETWEEN_PLACES = "__"  # of a volume that is in several


# How many volumes of a driver a node takes, as an amount of a resource. No name of a resource that
# the API server takes contains a colon.
_ATTACH = "attach:"
PLENTY = 2**20  # where the node has no limit


class ClaimKey(NamedTuple):
    """The namespace and name of a PersistentVolumeClaim."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A PersistentVolumeClaim."""

    key: ClaimKey
    volume: str = ""  # that it names
    is_bound: bool = False  # to that volume, for good
    storage_class: str = ""
    is_lost: bool = False
    terminating: bool = False
    for_one_pod: bool = False  # ReadWriteOncePod


@dataclass(frozen=True, slots=True)
class Volume:
    """A PersistentVolume: from which nodes it can be reached, and who attaches it."""

    name: str
    affinity: Reach | None = None
    places: Labels = ()  # of its labels those that say where it is
    driver: str = ""  # of CSI
    handle: str = ""  # by which the driver knows it
    in_tree: str = ""  # its kind, where a CSI driver has taken that over

    @property
    def reach(self) -> Iterator[Reach]:
        """From which nodes it can be reached: each of these must hold.

        As kube-scheduler's VolumeZone has it, a node that is in no zone or region at all will do,
        and a label with an empty part says nothing.
        """
        if self.affinity is not None:
            yield self.affinity
        for key, said in self.places:
            places = tuple(sorted({place.strip() for place in said.split(_BETWEEN_PLACES)}))
            if not all(places):
                continue
            ways = {tuple(Requirement(place, "DoesNotExist") for place in PLACES)}
            ways.add((Requirement(key, "In", places),))
            if key != PLACES[key]:
                lacking = Requirement(key, "DoesNotExist")
                ways.add((lacking, Requirement(PLACES[key], "In", places)))
            yield tuple(sorted(ways, key=way_order))


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A StorageClass; with ``waits`` its claims are bound when a pod that names them is."""

    name: str
    waits: bool = False
    provisioner: str = ""


@dataclass(frozen=True, slots=True)
class NodeDrivers:
    """A CSINode: the drivers of a node, and of how many volumes at most; None is any number."""

    node: NodeName
    limits: tuple[tuple[str, int | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Driver:
    """A CSIDriver; ``is_needed`` where it keeps pods off nodes without it."""

    name: str
    is_needed: bool = False


@dataclass(frozen=True, slots=True)
class Attachment:
    """A VolumeAttachment: a volume that a driver has attached to a node, or is about to."""

    node: NodeName
    driver: str
    volume: str


@dataclass(frozen=True, slots=True)
class Storage:
    """What the claims that our pods name lead to, each sorted."""

    claims: tuple[Claim, ...] = ()
    volumes: tuple[Volume, ...] = ()
    classes: tuple[StorageClass, ...] = ()


NO_STORAGE = Storage()


def way_order(way: Way) -> tuple[object, ...]:
    """How ways are sorted."""
    return tuple((requirement.key, requirement.operator, requirement.values) for requirement in way)


def sorted_reach(found: Iterable[Reach]) -> tuple[Reach, ...]:
    """Sorted, without repetition."""
    return tuple(sorted(set(found), key=lambda reach: tuple(map(way_order, reach))))


def attaching(driver: str) -> str:
    """The name of the resource that volumes of a driver take."""
    return _ATTACH + driver


def is_attaching(resource: str) -> bool:
    """Whether the resource is one of these."""
    return resource.startswith(_ATTACH)


def driver_of(resource: str) -> str:
    """The driver whose volumes the resource means."""
    return resource.removeprefix(_ATTACH)
