"""Adds the demands of volumes to our pods, again whenever a claim or a volume changes.

A pod without claims costs nothing here. Sources: kube-scheduler's VolumeBinding, VolumeZone,
VolumeRestrictions and NodeVolumeLimits.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any

from ..kube import kinds
from ..kube.codec.shapes import CLAIM_FIELD
from ..model.cluster import ForeignPod, Member
from ..model.keys import NodeName, Uid
from ..model.resources import Resources
from ..model.shapes import Shape
from ..model.volumes import (
    NO_STORAGE,
    Attachment,
    Claim,
    ClaimKey,
    Driver,
    NodeDrivers,
    Reach,
    Storage,
    StorageClass,
    Volume,
    attaching,
    sorted_reach,
)
from .attach_limits import AttachLimits, Handle
from .claim_users import ClaimUser, ClaimUsers
from .node_usage import NOTHING_ATTACHED, VolumeUsage
from .store import Store
from .volume_index import VolumeIndex

UNLISTED = "claims and volumes are still being listed"
KNOWN = 16384  # shapes that are cached
MOST_SHARERS = 8  # users of a volume that are checked; a volume with more users counts as limited


class ClaimIndex:
    """The stores of the six kinds that volumes need, and the pods that name claims."""

    def __init__(
        self,
        touched: Callable[[Uid], None],
        nodes_touched: Callable[[Iterable[NodeName] | None], None],
        wake: Callable[[], None],
    ) -> None:
        """``touched`` is called for each pod whose volumes changed, ``wake`` after every list.

        ``nodes_touched`` is called with the nodes whose volumes or limits changed. None means that
        any node may have changed.
        """
        self._touched, self._nodes_touched, self._wake = touched, nodes_touched, wake
        self.claims: Store[Claim] = Store(self._claim_changed, self._listed)
        self.volumes: Store[Volume] = Store(self._volume_changed, self._listed)
        self.classes: Store[StorageClass] = Store(self._class_changed, self._listed)
        self.nodes: Store[NodeDrivers] = Store(self._node_changed, self._listed)
        self.drivers: Store[Driver] = Store(self._driver_changed, self._listed)
        self.attachments: Store[Attachment] = Store(self._attachment_changed, self._listed)
        self.stores: Mapping[kinds.AnyKind, Store[Any]] = {
            kinds.CLAIM: self.claims,
            kinds.VOLUME: self.volumes,
            kinds.STORAGE_CLASS: self.classes,
            kinds.CSI_NODE: self.nodes,
            kinds.CSI_DRIVER: self.drivers,
            kinds.ATTACHMENT: self.attachments,
        }
        self._known = VolumeIndex()
        self._limits = AttachLimits(self._known.volume)
        self._pods = ClaimUsers()
        self._is_known = False  # every kind was listed once
        self._storage: Storage | None = NO_STORAGE  # None: outdated

    @property
    def are_wanted(self) -> bool:
        """Whether a pod of our scheduler names a claim, or ever named one."""
        return self._pods.has_been_ours

    def _listed(self, _began: int) -> None:
        """Take in a list; once every kind is listed, refresh the pods that waited for it."""
        if not self._is_known and all(store.is_synced for store in self.stores.values()):
            self._is_known = True
            self._refresh_all()
        self._wake()

    def _claim_changed(self, uid: Uid, old: Claim | None, new: Claim | None) -> None:
        self._touch(self._known.claim_changed(uid, old, new))

    def _volume_changed(self, uid: Uid, old: Volume | None, new: Volume | None) -> None:
        self._touch(self._known.volume_changed(uid, old, new))
        if old != new:
            names = {volume.name for volume in (old, new) if volume is not None}
            self._notify_nodes(self._limits.attached_to(names) if self._is_known else ())

    def _class_changed(self, uid: Uid, old: StorageClass | None, new: StorageClass | None) -> None:
        self._known.class_changed(uid, old, new)
        if old != new:
            self._refresh_all()

    def _node_changed(self, _uid: Uid, old: NodeDrivers | None, new: NodeDrivers | None) -> None:
        if old == new:
            return
        before = self._limits.limited
        self._limits.nodes_changed(old, new)
        if before != self._limits.limited:
            self._refresh_all()
            return
        names = {drivers.node for drivers in (old, new) if drivers is not None}
        self._touch(key for name in names for key in self._limits.claims_on(name))
        self._notify_nodes(names)

    def _driver_changed(self, _uid: Uid, old: Driver | None, new: Driver | None) -> None:
        if old != new:
            self._limits.driver_changed(old, new)
            self._refresh_all()

    def _attachment_changed(self, uid: Uid, old: Attachment | None, new: Attachment | None) -> None:
        if old != new:
            self._limits.attachment_changed(uid, old, new)
            self._notify_nodes(
                {attachment.node for attachment in (old, new) if attachment is not None}
            )

    def pod_changed(self, uid: Uid, pod: Member | ForeignPod | None) -> None:
        """Take in a pod that appeared, changed or disappeared; refresh pods that share volumes."""
        old, new = self._pods.get(uid), ClaimUser.of(pod)
        if old == new:
            return
        self._storage = None
        self._limits.pod_changed(uid, old, new)
        self._pods.put(uid, new)
        if self._is_known:
            claims = {key for user in (old, new) if user is not None for key in user.claims}
            sharers = self._pods.few(self._known.sharing(claims), MOST_SHARERS + 2)
            self._notify((sharers or set()) - {uid})

    def attached(self, node: NodeName) -> VolumeUsage:
        """How many volumes of each limited driver a node takes, and how many it has."""
        if not self._is_known:
            return NOTHING_ATTACHED
        return self._limits.attached(node, self._known.handle)

    def with_volumes(self, member: Member) -> Member:
        """The pod with the demands of its claims, and the problems that keep it waiting."""
        if not member.claims or member.is_over:
            return member
        if not self._is_known:
            return replace(member, volume_problems=(UNLISTED,))
        lacking: list[str] = []
        unmodelled: set[str] = set()
        reach: set[Reach] = set()
        handles: set[Handle] = set()
        for name in member.claims:
            key = ClaimKey(member.key.namespace, name)
            claim, volume = self._known.claim(key), self._known.volume_of(key)
            if claim is not None and volume is not None and not _problem(claim, volume):
                reach.update(volume.reach)
                lacking.extend(self._single_pod_conflict(claim, member.uid))
                unmodelled.update(self._open(claim, volume, member.uid))
                handles.update(filter(None, [self._known.handle(key)]))
            elif claim is not None and self._known.waits_for_a_pod(claim):
                unmodelled.add(f"{CLAIM_FIELD} (unbound, WaitForFirstConsumer)")
            else:
                lacking.append(f"claim {name} {_problem(claim, volume)}")
        counted = Counter(
            handle.driver for handle in handles if handle.driver in self._limits.limited
        )
        attachments = Resources.of({attaching(driver): n for driver, n in counted.items()})
        return replace(
            member,
            shape=_shared_shape(member.shape, sorted_reach(reach), attachments),
            volume_problems=tuple(lacking),
            unsupported_fields=tuple(sorted({*member.unsupported_fields, *unmodelled})),
        )

    def snapshot(self) -> Storage:
        """The claims of our pods, their volumes and their classes."""
        if self._storage is None:
            self._storage = self._known.snapshot(self._pods.named_by_us())
        return self._storage

    def _single_pod_conflict(self, claim: Claim, uid: Uid) -> Iterator[str]:
        """A problem if the claim is for one pod (ReadWriteOncePod), and another pod uses it."""
        if claim.for_one_pod and any(
            user.node is not None for user in self._pods.other_users([claim.key], uid)
        ):
            yield f"claim {claim.key.name} is for one pod, and another uses it"

    def _open(self, claim: Claim, volume: Volume, uid: Uid) -> Iterator[str]:
        """The features of a bound claim that Tutti does not support.

        They need a rule between pods. Only one of several pods with a ReadWriteOncePod claim may
        start. Several pods that share a volume on one node count it once. The requirements of a
        single pod cannot express either.
        """
        if volume.in_tree:
            yield f"{CLAIM_FIELD} ({volume.in_tree})"
        if claim.for_one_pod and any(
            user.node is None for user in self._pods.other_users([claim.key], uid)
        ):
            yield f"{CLAIM_FIELD} (ReadWriteOncePod, named by several pods that wait)"
        handle = self._known.handle(claim.key)
        if handle is None or handle.driver not in self._limits.limited:
            return
        users = self._pods.other_users(self._known.sharing([claim.key]), uid)
        sharers = list(islice(users, MOST_SHARERS + 1))
        if len(sharers) > MOST_SHARERS or any(
            pod.node is None or self._limits.limit(pod.node, handle.driver) is not None
            for pod in sharers
        ):
            yield f"{CLAIM_FIELD} (shared, where driver {handle.driver} has a limit)"

    def _touch(self, keys: Iterable[ClaimKey]) -> None:
        """Refresh the pods that share a volume of these changed claims."""
        changed_keys = set(keys)
        if not (changed_keys and self._is_known):
            return
        self._storage = None
        uids = self._pods.uids(self._known.sharing(changed_keys))
        self._nodes_touched(self._pods.nodes(uids))
        self._notify(uids)

    def _refresh_all(self) -> None:
        if self._is_known:
            self._storage = None
            self._nodes_touched(None)
            self._notify(self._pods.uids(self._pods.named()))

    def _notify(self, uids: Collection[Uid]) -> None:
        for uid in sorted(uids):
            self._touched(uid)

    def _notify_nodes(self, names: Collection[NodeName]) -> None:
        if names and self._is_known:
            self._nodes_touched(names)


def _problem(claim: Claim | None, volume: Volume | None) -> str:
    """Why no pod that names the claim can run anywhere; empty if there is no problem."""
    if claim is None:
        return "does not exist"
    if claim.is_lost:
        return f"is lost: volume {claim.volume} is gone"
    if claim.terminating:
        return "is being deleted"
    if not claim.is_bound:
        return "is not bound yet"
    return f"is bound to volume {claim.volume}, which does not exist" if volume is None else ""


@lru_cache(maxsize=KNOWN)
def _shared_shape(shape: Shape, reach: tuple[Reach, ...], attachments: Resources) -> Shape:
    if not (reach or attachments.amounts):
        return shape
    return replace(shape, requests=shape.requests + attachments, volume_reach=reach)
