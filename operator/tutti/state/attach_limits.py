"""Which volumes of CSI drivers are attached to each node, and how many may be.

Separate from ``claim_index`` because it counts for all pods, ours or not, and by node. A volume
counts once by node, however many pods use it, and so does one that is attached although nobody
uses it. Source: kube-scheduler's NodeVolumeLimits, with CSIDrivers that keep pods off nodes
without them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, TypeVar

from ..model.keys import NodeName, Uid
from ..model.resources import Resources
from ..model.volumes import (
    PLENTY,
    Attachment,
    Claim,
    ClaimKey,
    Driver,
    NodeDrivers,
    StorageClass,
    Volume,
    attaching,
)
from .claim_users import ClaimUser
from .node_usage import NOTHING_ATTACHED, VolumeUsage

V = TypeVar("V")

# The drivers that have taken over volumes in the tree, by their kinds and by their provisioners.
TAKEN_OVER: Mapping[str, str] = {
    **dict.fromkeys(("awsElasticBlockStore", "kubernetes.io/aws-ebs"), "ebs.csi.aws.com"),
    **dict.fromkeys(("azureDisk", "kubernetes.io/azure-disk"), "disk.csi.azure.com"),
    **dict.fromkeys(("cinder", "kubernetes.io/cinder"), "cinder.csi.openstack.org"),
    **dict.fromkeys(("gcePersistentDisk", "kubernetes.io/gce-pd"), "pd.csi.storage.gke.io"),
    **dict.fromkeys(("portworxVolume", "kubernetes.io/portworx-volume"), "pxd.portworx.com"),
}


class Handle(NamedTuple):
    """A volume as its driver knows it."""

    driver: str
    name: str


def handle(claim: Claim, volume: Volume | None, of_class: StorageClass | None) -> Handle | None:
    """What is attached for the claim; None where no driver attaches anything.

    A claim without a volume will have one of its class, which nobody shares.
    """
    if volume is None:
        made_by = "" if of_class is None else of_class.provisioner
        driver = TAKEN_OVER.get(made_by, made_by)
        return Handle(driver, f"claim {'/'.join(claim.key)}") if driver else None
    if volume.driver:
        return Handle(volume.driver, volume.handle) if volume.handle else None
    taken_over = TAKEN_OVER.get(volume.in_tree)
    return Handle(taken_over, f"volume {volume.name}") if taken_over else None


def _drop(by_node: dict[NodeName, dict[Uid, V]], node: NodeName, uid: Uid) -> None:
    del by_node[node][uid]
    if not by_node[node]:
        del by_node[node]


class AttachLimits:
    """CSINodes and CSIDrivers, and what is attached where."""

    def __init__(self, volume_of: Callable[[str], Volume | None]) -> None:
        """``volume_of`` is that of a name."""
        self._volume_of = volume_of
        self._nodes: dict[NodeName, dict[str, int | None]] = {}
        self._needed: set[str] = set()
        self._attachments: dict[NodeName, dict[Uid, Attachment]] = {}
        self._pods: dict[NodeName, dict[Uid, tuple[ClaimKey, ...]]] = {}
        self.limited: frozenset[str] = frozenset()  # drivers that some node has a limit for

    def nodes_changed(self, old: NodeDrivers | None, new: NodeDrivers | None) -> None:
        """The drivers of a node."""
        if old is not None:
            self._nodes.pop(old.node, None)
        if new is not None:
            self._nodes[new.node] = dict(new.limits)
        self._look()

    def driver_changed(self, old: Driver | None, new: Driver | None) -> None:
        """A driver came, went or is another now."""
        if old is not None:
            self._needed.discard(old.name)
        if new is not None and new.is_needed:
            self._needed.add(new.name)
        self._look()

    def attachment_changed(self, uid: Uid, old: Attachment | None, new: Attachment | None) -> None:
        """A volume was attached or detached."""
        if old is not None:
            _drop(self._attachments, old.node, uid)
        if new is not None:
            self._attachments.setdefault(new.node, {})[uid] = new

    def pod_changed(self, uid: Uid, old: ClaimUser | None, new: ClaimUser | None) -> None:
        """A pod with claims came, moved or went."""
        if old is not None and old.node is not None:
            _drop(self._pods, old.node, uid)
        if new is not None and new.node is not None:
            self._pods.setdefault(new.node, {})[uid] = new.claims

    def claims_on(self, node: NodeName) -> set[ClaimKey]:
        """The claims of the pods on a node."""
        return {key for keys in self._pods.get(node, {}).values() for key in keys}

    def attached_to(self, names: Collection[str]) -> set[NodeName]:
        """The nodes to which one of these volumes is attached, whoever uses it."""
        return {
            attachment.node
            for of_node in self._attachments.values()
            for attachment in of_node.values()
            if attachment.volume in names
        }

    def _look(self) -> None:
        counted = {
            driver
            for limits in self._nodes.values()
            for driver, most in limits.items()
            if most is not None
        }
        self.limited = frozenset(counted | self._needed)

    def limit(self, node: NodeName, driver: str) -> int | None:
        """How many volumes of the driver the node takes; None where there is no limit."""
        limits = self._nodes.get(node, {})
        return 0 if driver in self._needed and driver not in limits else limits.get(driver)

    def attached(
        self, node: NodeName, handle_of: Callable[[ClaimKey], Handle | None]
    ) -> VolumeUsage:
        """What the node takes of volumes of limited drivers, and has."""
        if not self.limited:
            return NOTHING_ATTACHED
        limits = {driver: self.limit(node, driver) for driver in self.limited}
        offered = {attaching(d): PLENTY if most is None else most for d, most in limits.items()}
        used: dict[str, int] = {}
        for handle in self._there(node, handle_of):
            if handle.driver in limits:
                used[attaching(handle.driver)] = used.get(attaching(handle.driver), 0) + 1
        return VolumeUsage(Resources.of(offered), Resources.of(used))

    def _there(
        self, node: NodeName, handle_of: Callable[[ClaimKey], Handle | None]
    ) -> Iterable[Handle]:
        """The volumes of pods there, and those that are attached for whatever reason."""
        pods = self._pods.get(node, {}).values()
        handles = {
            handle for keys in pods for key in keys if (handle := handle_of(key)) is not None
        }
        for attachment in self._attachments.get(node, {}).values():
            volume = self._volume_of(attachment.volume)
            if volume is not None and volume.driver:
                handles.add(Handle(attachment.driver, volume.handle))
        return handles
