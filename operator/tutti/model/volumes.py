"""Volume claims, volumes and storage classes, and what they require of the nodes of pods.

They matter only if a waiting pod names a claim.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from .inter_pod import Labels, Requirement
from .keys import NodeName

Way = tuple[Requirement, ...]  # all must hold for the labels of a node
Reach = tuple[Way, ...]  # at least one must hold

_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
# The labels of a volume that say where it is, and the label that a node may have instead.
PLACES: Mapping[str, str] = {
    "failure-domain.beta.kubernetes.io/region": _REGION,
    "failure-domain.beta.kubernetes.io/zone": _ZONE,
    _REGION: _REGION,
    _ZONE: _ZONE,
}
_BETWEEN_PLACES = "__"  # separates the places of a volume that is in several


# Prefix of the resource that counts the volumes of a driver on a node. The API server accepts no
# resource name with a colon.
_ATTACH = "attach:"
PLENTY = 2**20  # the amount of a node without a limit


class ClaimKey(NamedTuple):
    """The namespace and name of a PersistentVolumeClaim."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A PersistentVolumeClaim."""

    key: ClaimKey
    volume: str = ""  # the volume that it names
    is_bound: bool = False  # to that volume
    storage_class: str = ""
    is_lost: bool = False
    terminating: bool = False
    for_one_pod: bool = False  # ReadWriteOncePod


@dataclass(frozen=True, slots=True)
class Volume:
    """A PersistentVolume: from which nodes it can be reached, and which driver attaches it."""

    name: str
    affinity: Reach | None = None
    places: Labels = ()  # the labels that say where it is
    driver: str = ""  # its CSI driver
    handle: str = ""  # the driver's name for it
    in_tree: str = ""  # its in-tree volume type, if that was migrated to a CSI driver

    @property
    def reach(self) -> Iterator[Reach]:
        """From which nodes it can be reached; all of these must hold.

        As in kube-scheduler's VolumeZone, a node without any label for zone or region will do, and
        a label with an empty part is ignored.
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
    """A StorageClass; with ``waits`` (WaitForFirstConsumer) a claim is bound along with its pod."""

    name: str
    waits: bool = False
    provisioner: str = ""


@dataclass(frozen=True, slots=True)
class NodeDrivers:
    """A CSINode: the drivers of a node, and how many volumes of each it takes; None: no limit."""

    node: NodeName
    limits: tuple[tuple[str, int | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Driver:
    """A CSIDriver; with ``is_needed``, pods with its volumes cannot run on nodes without it."""

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
    """The claims that our pods name, their volumes and their classes, each sorted."""

    claims: tuple[Claim, ...] = ()
    volumes: tuple[Volume, ...] = ()
    classes: tuple[StorageClass, ...] = ()


NO_STORAGE = Storage()


def way_order(way: Way) -> tuple[object, ...]:
    """The sort key of a way."""
    return tuple((requirement.key, requirement.operator, requirement.values) for requirement in way)


def sorted_reach(reaches: Iterable[Reach]) -> tuple[Reach, ...]:
    """These reaches, sorted and without duplicates."""
    return tuple(sorted(set(reaches), key=lambda reach: tuple(map(way_order, reach))))


def attaching(driver: str) -> str:
    """The name of the resource that counts the volumes of a driver."""
    return _ATTACH + driver


def is_attaching(resource: str) -> bool:
    """Whether the resource counts the volumes of a driver."""
    return resource.startswith(_ATTACH)


def driver_of(resource: str) -> str:
    """The driver whose volumes the resource counts."""
    return resource.removeprefix(_ATTACH)
