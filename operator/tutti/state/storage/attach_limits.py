"""Which volumes of CSI drivers are attached to each node, and how many volumes a node takes.

The volumes of all pods count, also of pods of other schedulers. A volume counts once for each node,
however many pods use it. An attached volume that no pod uses counts, too.
Source: kube-scheduler's NodeVolumeLimits, with CSIDrivers that keep pods off nodes without them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, TypeVar

from ...model.keys import NodeName, Uid
from ...model.resources import Resources
from ...model.volumes import (
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
from ..node_usage import NOTHING_ATTACHED, VolumeUsage
from .claim_users import ClaimUser

V = TypeVar("V")

# The CSI drivers that in-tree volumes have been migrated to, by volume type and by provisioner.
TAKEN_OVER: Mapping[str, str] = {
    **dict.fromkeys(("awsElasticBlockStore", "kubernetes.io/aws-ebs"), "ebs.csi.aws.com"),
    **dict.fromkeys(("azureDisk", "kubernetes.io/azure-disk"), "disk.csi.azure.com"),
    **dict.fromkeys(("cinder", "kubernetes.io/cinder"), "cinder.csi.openstack.org"),
    **dict.fromkeys(("gcePersistentDisk", "kubernetes.io/gce-pd"), "pd.csi.storage.gke.io"),
    **dict.fromkeys(("portworxVolume", "kubernetes.io/portworx-volume"), "pxd.portworx.com"),
}


class Handle(NamedTuple):
    """A volume, identified by its driver and the driver's name for it."""

    driver: str
    name: str


def handle(
    claim: Claim, volume: Volume | None, storage_class: StorageClass | None
) -> Handle | None:
    """The handle of the volume that is attached for a claim; None if no driver attaches one.

    A claim without a volume will get a volume of its class that no other claim shares.
    """
    if volume is None:
        provisioner = "" if storage_class is None else storage_class.provisioner
        driver = TAKEN_OVER.get(provisioner, provisioner)
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
    """The limits of CSINodes and CSIDrivers, and the volumes that are attached to each node."""

    def __init__(self, volume_of: Callable[[str], Volume | None]) -> None:
        """``volume_of`` gives the volume of a name."""
        self._volume_of = volume_of
        self._nodes: dict[NodeName, dict[str, int | None]] = {}
        self._required_drivers: set[str] = set()
        self._attachments: dict[NodeName, dict[Uid, Attachment]] = {}
        self._pods: dict[NodeName, dict[Uid, tuple[ClaimKey, ...]]] = {}
        self.limited: frozenset[str] = frozenset()  # drivers that some node has a limit for

    def nodes_changed(self, old: NodeDrivers | None, new: NodeDrivers | None) -> None:
        """Take in the drivers of a node."""
        if old is not None:
            self._nodes.pop(old.node, None)
        if new is not None:
            self._nodes[new.node] = dict(new.limits)
        self._update_limited()

    def driver_changed(self, old: Driver | None, new: Driver | None) -> None:
        """Take in a driver that was created, changed or deleted."""
        if old is not None:
            self._required_drivers.discard(old.name)
        if new is not None and new.is_needed:
            self._required_drivers.add(new.name)
        self._update_limited()

    def attachment_changed(self, uid: Uid, old: Attachment | None, new: Attachment | None) -> None:
        """Take in a volume that was attached or detached."""
        if old is not None:
            _drop(self._attachments, old.node, uid)
        if new is not None:
            self._attachments.setdefault(new.node, {})[uid] = new

    def pod_changed(self, uid: Uid, old: ClaimUser | None, new: ClaimUser | None) -> None:
        """Take in a pod with claims that appeared, got a node or disappeared."""
        if old is not None and old.node is not None:
            _drop(self._pods, old.node, uid)
        if new is not None and new.node is not None:
            self._pods.setdefault(new.node, {})[uid] = new.claims

    def claims_on(self, node: NodeName) -> set[ClaimKey]:
        """The claims of the pods on a node."""
        return {key for keys in self._pods.get(node, {}).values() for key in keys}

    def attached_to(self, names: Collection[str]) -> set[NodeName]:
        """The nodes to which one of these volumes is attached, used or not."""
        return {
            attachment.node
            for of_node in self._attachments.values()
            for attachment in of_node.values()
            if attachment.volume in names
        }

    def _update_limited(self) -> None:
        counted = {
            driver
            for limits in self._nodes.values()
            for driver, most in limits.items()
            if most is not None
        }
        self.limited = frozenset(counted | self._required_drivers)

    def limit(self, node: NodeName, driver: str) -> int | None:
        """How many volumes of the driver the node takes; None if there is no limit."""
        limits = self._nodes.get(node, {})
        return (
            0 if driver in self._required_drivers and driver not in limits else limits.get(driver)
        )

    def attached(
        self, node: NodeName, handle_of: Callable[[ClaimKey], Handle | None]
    ) -> VolumeUsage:
        """How many volumes of each limited driver the node takes, and how many it has."""
        if not self.limited:
            return NOTHING_ATTACHED
        limits = {driver: self.limit(node, driver) for driver in self.limited}
        offered = {attaching(d): PLENTY if most is None else most for d, most in limits.items()}
        used: dict[str, int] = {}
        for handle in self._attached_handles(node, handle_of):
            if handle.driver in limits:
                used[attaching(handle.driver)] = used.get(attaching(handle.driver), 0) + 1
        return VolumeUsage(Resources.of(offered), Resources.of(used))

    def _attached_handles(
        self, node: NodeName, handle_of: Callable[[ClaimKey], Handle | None]
    ) -> Iterable[Handle]:
        """The volumes of pods on the node, and all volumes that are attached to it."""
        pods = self._pods.get(node, {}).values()
        handles = {
            handle for keys in pods for key in keys if (handle := handle_of(key)) is not None
        }
        for attachment in self._attachments.get(node, {}).values():
            volume = self._volume_of(attachment.volume)
            if volume is not None and volume.driver:
                handles.add(Handle(attachment.driver, volume.handle))
        return handles
