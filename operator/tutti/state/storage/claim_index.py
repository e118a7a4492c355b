"""Adds the demands of volumes to our pods, again whenever a claim or a volume changes.

A pod without claims costs nothing here. Sources: kube-scheduler's VolumeBinding, VolumeZone,
VolumeRestrictions and NodeVolumeLimits.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ...filters.volume_supply import Waiting
from ...kube import kinds
from ...model.cluster import BoundBy, ForeignPod, Member, Node, Reservation
from ...model.keys import NodeName, Uid
from ...model.volumes import (
    NO_STORAGE,
    Attachment,
    Capacity,
    Claim,
    ClaimKey,
    Driver,
    NodeDrivers,
    Storage,
    StorageClass,
    Volume,
    VolumeChoice,
)
from ..node_usage import NOTHING_ATTACHED, VolumeUsage
from ..store import Store
from .attach_limits import AttachLimits
from .claim_demand import UNLISTED, ClaimDemands
from .claim_users import ClaimUser, ClaimUsers
from .volume_index import VolumeIndex

# Whether a pod shares a volume changes with other pods only while so few name the volume.
MOST_SHARERS = 2


class _Chosen(NamedTuple):
    """What a Reservation has chosen for a claim, and the pods that it holds room for."""

    choice: VolumeChoice
    pods: frozenset[Uid]


def _chosen_by(reservation: Reservation | None) -> Mapping[ClaimKey, _Chosen]:
    """The choices of a Reservation by claim."""
    if reservation is None or not reservation.volumes:
        return {}
    pods = frozenset(entry.uid for entry in reservation.entries)
    space = reservation.gang.namespace
    return {ClaimKey(space, of.claim): _Chosen(of, pods) for of in reservation.volumes}


class ClaimIndex:
    """The stores of the six kinds that volumes need, and the pods that name claims."""

    def __init__(
        self,
        touched: Callable[[Uid], None],
        nodes_touched: Callable[[Iterable[NodeName] | None], None],
        wake: Callable[[], None],
        *,
        binds: bool = True,
    ) -> None:
        """``touched`` is called for each pod whose volumes changed, ``wake`` after every list.

        ``nodes_touched`` is called with the nodes whose volumes or limits changed. None means that
        any node may have changed. Unless Tutti ``binds`` claims, the pods of claims that wait for
        their pod are not modelled.
        """
        self._binds = binds
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
        self._chosen: dict[ClaimKey, VolumeChoice] = {}  # by standing Reservations
        self._choices: dict[ClaimKey, dict[Uid | None, _Chosen]] = {}  # by each of these
        # Choices of Reservations that are gone. A volume may still be made for some of them.
        self._abandoned: dict[ClaimKey, VolumeChoice] = {}
        self._demands = ClaimDemands(
            self._known,
            self._limits,
            self._pods,
            self._chosen,
            self._is_chosen_for,
            binds=binds,
        )
        self.capacities: Store[Capacity] = Store(self._capacity_changed, self._capacities_listed)
        self._is_known = False  # every kind was listed once
        self._storage: Storage | None = NO_STORAGE  # None: outdated

    @property
    def are_wanted(self) -> bool:
        """Whether a pod of our scheduler names a claim, or ever named one."""
        return self._pods.has_been_ours

    @property
    def needs_capacities(self) -> bool:
        """Whether a claim that waits for a pod of ours needs CSIStorageCapacities."""
        return any(self._known.needs_capacities(claim) for claim in self._waiting_claims())

    def _waiting_claims(self, bound_by: Collection[BoundBy] = tuple(BoundBy)) -> Iterator[Claim]:
        """The claims that Tutti or kube-scheduler binds, once their pod has a node."""
        binding = {*bound_by} if self._binds else {*bound_by} - {BoundBy.TUTTI}
        for key in self._pods.named_by_us(*binding):
            claim = self._known.claim(key)
            if claim is not None and self._known.waits_for_a_pod(claim):
                yield claim

    def chosen(self, old: Reservation | None, new: Reservation | None) -> None:
        """Take in the choices of a Reservation that was created, changed or deleted."""
        before, after = _chosen_by(old), _chosen_by(new)
        if before != after:
            for key in before:
                self._withdraw(key, None if old is None else old.self_uid)
            for key, chosen in after.items():
                self._chosen[key] = chosen.choice
                self._choices[key] = self._choices.get(key, {}) | {
                    None if new is None else new.self_uid: chosen
                }
            self._outdate_supply()
            self._touch({*before, *after})

    def _withdraw(self, key: ClaimKey, reservation: Uid | None) -> None:
        """Forget what a Reservation has chosen for a claim; another one may have it, too."""
        others = {of: chosen for of, chosen in self._choices.pop(key).items() if of != reservation}
        choice = self._chosen.pop(key)
        if others:
            self._choices[key] = others
            self._chosen[key] = [*others.values()][-1].choice
        else:
            self._abandoned[key] = choice

    def is_chosen_by_others(self, key: ClaimKey, reservations: Collection[Uid | None]) -> bool:
        """Whether a Reservation other than these has chosen for this claim.

        A new pod took it over, or pods of several gangs share it.
        """
        return any(of not in reservations for of in self._choices.get(key, ()))

    def _is_chosen_for(self, claim: Claim, pod: Uid) -> bool:
        """Whether a Reservation of this pod has chosen for the claim."""
        return any(
            pod in chosen.pods and chosen.choice.uid == claim.uid
            for chosen in self._choices.get(claim.key, {}).values()
        )

    def abandoned(self) -> list[tuple[ClaimKey, VolumeChoice]]:
        """The claims that are provisioned for a node without any need: no Reservation has them."""
        self._abandoned = {
            key: choice
            for key, choice in self._abandoned.items()
            if key not in self._chosen
            and (claim := self._known.claim(key)) is not None
            and choice.uid == claim.uid
            # An earlier leader may still select the node of a claim that has not changed.
            and (choice.node == claim.selected_node or choice.version == claim.version)
        }
        return [
            (key, choice)
            for key, choice in self._abandoned.items()
            if (claim := self._known.claim(key)) is not None and choice.node == claim.selected_node
        ]

    def _outdate_supply(self) -> None:
        """Have ``settle`` look again; wake the cycle if a claim waits."""
        if self._is_known:
            self._demands.is_supply_outdated = True
            if self._demands.supply.needs or self._chosen:
                self._wake()

    def settle(self) -> None:
        """Compute again what claims need that wait for their pod, if that may have changed."""
        if not self._demands.is_supply_outdated:
            return
        self._demands.is_supply_outdated = False
        self._storage = None
        waiting = [claim for claim in self._waiting_claims() if claim.key not in self._chosen]
        taken = {choice.volume for choice in self._chosen.values()}
        before = self._demands.supply
        after = self._known.supply(self._requests(waiting), taken)
        self._demands.supply = after
        changed = [
            claim.key
            for claim in waiting
            if claim.request is not None
            and before.needs.get(claim.request) != after.needs.get(claim.request)
        ]
        self._notify(self._pods.uids(changed))
        if before.counts != after.counts:
            self._nodes_touched(None)

    def _requests(self, claims: Iterable[Claim]) -> Iterator[Waiting]:
        """The requests of claims that wait for pods, and since when.

        Those yield whose pods cannot start for now, or are kube-scheduler's.
        """
        asking = ((claim, claim.request) for claim in claims if claim.request is not None)
        for claim, request in asking:
            users = self._pods.ours(claim.key)
            first = min(users, key=lambda user: (user.yields, user.created))
            is_shared = len(self._pods.uids([claim.key])) > 1 and not claim.for_one_pod
            yield Waiting(
                request,
                claim.key,
                first.created,
                yields=first.yields or is_shared,  # no volumes are counted for several pods
                has_node=first.node is not None,
                may_start=not (first.is_gated or is_shared),
            )

    def _listed(self, _began: int) -> None:
        """Take in a list; once every kind is listed, refresh the pods that waited for it."""
        if not self._is_known and all(store.is_synced for store in self.stores.values()):
            self._is_known = True
            self._outdate_supply()
            self._refresh_all()
        self._wake()

    def _capacities_listed(self, _began: int) -> None:
        self._demands.knows_capacities = True
        self._outdate_supply()
        self._refresh_all()
        self._wake()

    def _claim_changed(self, uid: Uid, old: Claim | None, new: Claim | None) -> None:
        if old != new:
            self._outdate_supply()
            if new is not None and new.key in self._abandoned:
                self._wake()
        self._touch(self._known.claim_changed(uid, old, new))

    def _volume_changed(self, uid: Uid, old: Volume | None, new: Volume | None) -> None:
        self._touch(self._known.volume_changed(uid, old, new))
        if old != new:
            self._outdate_supply()
            keys = {v.claim.key for v in (old, new) if v is not None and v.claim is not None}
            self._touch({*keys, *self._choices_of(old), *self._choices_of(new)})
            names = {volume.name for volume in (old, new) if volume is not None}
            self._notify_nodes(self._limits.attached_to(names) if self._is_known else ())

    def _class_changed(self, uid: Uid, old: StorageClass | None, new: StorageClass | None) -> None:
        self._known.class_changed(uid, old, new)
        if old != new:
            self._outdate_supply()
            self._refresh_all()

    def _choices_of(self, volume: Volume | None) -> Iterator[ClaimKey]:
        """The claims for which a standing Reservation has chosen a volume."""
        if volume is not None:
            chosen = self._chosen.items()
            yield from (key for key, choice in chosen if choice.volume == volume.name)

    def _capacity_changed(self, uid: Uid, old: Capacity | None, new: Capacity | None) -> None:
        if old != new:
            self._known.capacity_changed(uid, new)
            self._outdate_supply()
            self._wake()

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
            self._known.driver_changed(_uid, old, new)
            self._limits.driver_changed(old, new)
            self._outdate_supply()
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
        keys = {key for user in (old, new) if user is not None for key in user.claims}
        before = {key for key in keys if self._pods.is_of_kube_scheduler(key)}
        self._pods.put(uid, new)
        after = {key for key in keys if self._pods.is_of_kube_scheduler(key)}
        self._outdate_supply()
        if self._is_known:
            affected = self._affected(old, new) | self._pods.uids(before ^ after)
            self._notify(affected - {uid})

    def _affected(self, old: ClaimUser | None, new: ClaimUser | None) -> set[Uid]:
        """The pods that may demand something else, as a pod with some of their claims changed."""
        users = [user for user in (old, new) if user is not None]
        has_moved = (old and old.node) != (new and new.node)
        affected: set[Uid] = set()
        for key in {key for user in users for key in user.claims}:
            claims = self._known.sharing([key])
            sharers = self._pods.few(claims, MOST_SHARERS)
            if sharers is None:
                alone = filter(self._is_for_one_pod, claims)
                sharers = self._pods.uids(of for of in alone if has_moved or of != key)
            affected |= sharers
        return affected

    def _is_for_one_pod(self, key: ClaimKey) -> bool:
        claim = self._known.claim(key)
        return claim is not None and claim.for_one_pod

    def claim(self, key: ClaimKey) -> Claim | None:
        """The claim of this name."""
        return self._known.claim(key)

    def attached(self, node: Node) -> VolumeUsage:
        """How many volumes a node takes of each limited driver, and has for claims that wait.

        Of the volumes of drivers, some are in use.
        """
        if not self._is_known:
            return NOTHING_ATTACHED
        attached = self._limits.attached(node.name, self._known.handle)
        supply = self._demands.supply
        if not supply.counts:
            return attached
        return VolumeUsage(
            attached.offered + supply.at(dict(node.labels)),
            attached.used + self._demands.pledged(self._limits.claims_on(node.name)),
        )

    def with_volumes(self, member: Member) -> Member:
        """The pod with the demands of its claims, and the problems that keep it waiting."""
        if not member.claims or member.is_over:
            return member
        if not self._is_known:
            return replace(member, volume_problems=(UNLISTED,))
        return self._demands.with_volumes(member)

    def snapshot(self) -> Storage:
        """The claims of our pods, their volumes and their classes."""
        if self._storage is None:
            self._storage = self._known.snapshot(self._pods.named_by_us(*BoundBy))
        return self._storage

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
