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


# Prefixes of the resources of a node that count volumes: those that a driver attaches, and
# PersistentVolumes that wait for a claim. The API server accepts no resource name with a colon.
_ATTACH, _AVAILABLE = "attach:", "volume:"
# Prefix of the labels of waiting pods that share a claim for one pod. No label of the API has it.
_FOR_ONE_POD = "claim:"
PLENTY = 2**20  # the amount of a node without a limit
NO_PROVISIONER = "kubernetes.io/no-provisioner"  # of classes whose volumes administrators make


class ClaimKey(NamedTuple):
    """The namespace and name of a PersistentVolumeClaim."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class VolumeRequest:
    """What a claim requests of a volume; claims with equal requests are interchangeable."""

    storage_class: str
    size: int = 0  # bytes
    modes: tuple[str, ...] = ()  # access modes that a volume must all have; sorted
    is_block: bool = False  # volumeMode Block
    selector: tuple[Requirement, ...] | None = ()  # on the labels of a volume; None: unreadable
    attributes_class: str = ""  # VolumeAttributesClass


@dataclass(frozen=True, slots=True)
class Claim:
    """A PersistentVolumeClaim.

    ``request``, ``version`` and ``selected_node`` matter until it is bound, and are empty from then
    on.
    """

    key: ClaimKey
    volume: str = ""  # the volume that it names
    is_bound: bool = False  # to that volume
    storage_class: str = ""
    is_lost: bool = False
    terminating: bool = False
    for_one_pod: bool = False  # ReadWriteOncePod
    request: VolumeRequest | None = None
    uid: str = ""
    version: str = ""  # metadata.resourceVersion, the precondition of writes
    selected_node: NodeName | None = None  # where its volume is to be provisioned
    owner: str = ""  # the uid of the pod whose ephemeral volume it is for, if any


@dataclass(frozen=True, slots=True)
class ClaimRef:
    """The claim that a volume is for; without a uid, the claim of that name."""

    key: ClaimKey
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a volume offers to claims that are not bound yet."""

    storage_class: str
    size: int = 0  # bytes
    modes: tuple[str, ...] = ()  # access modes; sorted
    is_block: bool = False  # volumeMode Block
    labels: Labels = ()
    attributes_class: str = ""  # VolumeAttributesClass


@dataclass(frozen=True, slots=True)
class Volume:
    """A PersistentVolume: from which nodes it can be reached, and which driver attaches it.

    It has an ``offer`` while it is Available, or a claim has it. ``claim`` is that claim.
    """

    name: str
    affinity: Reach | None = None
    places: Labels = ()  # the labels that say where it is
    driver: str = ""  # its CSI driver
    handle: str = ""  # the driver's name for it
    in_tree: str = ""  # its in-tree volume type, if that was migrated to a CSI driver
    offer: Offer | None = None
    claim: ClaimRef | None = None

    @property
    def is_available(self) -> bool:
        """Whether a claim may get it."""
        return self.offer is not None and self.claim is None

    def is_for(self, claim: Claim) -> bool:
        """Whether it is for this claim, which may not be bound to it yet."""
        ref = self.claim
        return ref is not None and ref.key == claim.key and ref.uid in ("", claim.uid)

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
    topologies: Reach | None = None  # allowedTopologies: where volumes may be provisioned

    @property
    def provisions(self) -> bool:
        """Whether volumes of the class are made on demand."""
        return self.provisioner not in ("", NO_PROVISIONER)


@dataclass(frozen=True, slots=True)
class NodeDrivers:
    """A CSINode: the drivers of a node, and how many volumes of each it takes; None: no limit."""

    node: NodeName
    limits: tuple[tuple[str, int | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Driver:
    """A CSIDriver; with ``is_needed``, pods with its volumes cannot run on nodes without it.

    With ``has_capacity``, CSIStorageCapacities say where it can provision volumes.
    """

    name: str
    is_needed: bool = False
    has_capacity: bool = False


@dataclass(frozen=True, slots=True)
class Attachment:
    """A VolumeAttachment: a volume that a driver has attached to a node, or is about to."""

    node: NodeName
    driver: str
    volume: str


@dataclass(frozen=True, slots=True)
class Capacity:
    """A CSIStorageCapacity: how large a volume of a class may be on the nodes of ``way``."""

    storage_class: str
    way: Way
    largest: int  # bytes


@dataclass(frozen=True, slots=True)
class VolumeChoice:
    """The volume that is chosen for a claim; without one, it is provisioned for the node.

    ``version`` is that of the claim when the choice was made: a claim that has changed since, and
    is not on its way to its volume, has lost it.
    """

    claim: str  # its name, in the namespace of the gang
    uid: str
    version: str
    node: NodeName
    volume: str = ""


@dataclass(frozen=True, slots=True)
class Storage:
    """The claims that our pods name, with their volumes and classes, each sorted.

    For claims that wait for their pod, it also has all volumes that they may get, and for the
    drivers with ``has_capacity`` the capacities of their classes.
    """

    claims: tuple[Claim, ...] = ()
    volumes: tuple[Volume, ...] = ()
    classes: tuple[StorageClass, ...] = ()
    drivers: tuple[Driver, ...] = ()
    capacities: tuple[Capacity, ...] = ()


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


def available(phrase: str) -> str:
    """The name of the resource that counts volumes a claim may get; ``phrase`` describes them."""
    return _AVAILABLE + phrase


def counts_volumes(resource: str) -> bool:
    """Whether the resource counts volumes, and is no amount that pods request by name."""
    return resource.startswith((_ATTACH, _AVAILABLE))


def is_attaching(resource: str) -> bool:
    """Whether the resource counts the volumes of a driver."""
    return resource.startswith(_ATTACH)


def counted_volumes(resource: str) -> str:
    """What a resource that counts volumes counts, after the word "volumes of"."""
    return resource.removeprefix(_ATTACH).removeprefix(_AVAILABLE)


def one_of_those_with(claim: str) -> str:
    """The label of the waiting pods that name a claim for one pod, of which one may start."""
    return _FOR_ONE_POD + claim


def claim_for_one_pod(label: str) -> str:
    """The claim for one pod that the label stands for; empty if it stands for none."""
    return label.removeprefix(_FOR_ONE_POD) if label.startswith(_FOR_ONE_POD) else ""


def driver_of(resource: str) -> str:
    """The driver whose volumes the resource counts."""
    return resource.removeprefix(_ATTACH)
