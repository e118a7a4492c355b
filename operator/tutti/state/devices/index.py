"""Adds to our pods what their claims for devices require, and to nodes the devices that are free.

A pod without such claims costs nothing here. Source: kube-scheduler's DynamicResources.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...filters.devices import admin_access, bundles, requests, rows, selectors
from ...filters.devices.admin_access import Wanted
from ...kube import kinds
from ...kube.codec.devices import ADMIN
from ...kube.codec.shapes import DEVICE_CLAIMS
from ...model.cluster import ForeignPod, Member, Node, PodReservation, Reservation
from ...model.devices.claims import (
    MOST_CONSUMERS,
    MOST_RESULTS,
    NO_DEVICES,
    ClaimAllocation,
    ClaimName,
    DeviceClaim,
    DeviceRoom,
    PodClaim,
    Selection,
)
from ...model.devices.extended import CLAIM_OF
from ...model.devices.inventory import (
    Device,
    DeviceClass,
    DeviceId,
    ResourceSlice,
    TaintRule,
)
from ...model.keys import NodeName, Uid
from ...model.resources import NOTHING, Resources
from ..node_usage import NOTHING_ATTACHED, VolumeUsage
from ..store import Store
from . import claim_demand
from .bundle_rows import NOTHING_TIED, Tied
from .claim_users import ClaimUsers
from .extended import ExtendedResources, MissingClaim
from .free_devices import SHARING, FreeDevices

UNLISTED = "claims and devices are still being listed"
TURNED_OFF = f"{DEVICE_CLAIMS} (devices.enabled is false)"


class DeviceIndex:
    """The stores of the four kinds that devices need, and the pods that name claims."""

    def __init__(
        self,
        touched: Callable[[Uid], None],
        nodes_touched: Callable[[Iterable[NodeName] | None], None],
        wake: Callable[[], None],
        *,
        is_on: bool,
    ) -> None:
        """``touched`` is called for each pod whose claims changed, ``wake`` at every change.

        ``nodes_touched`` is called with the nodes whose free devices changed; None means any.
        Unless ``is_on``, pods with claims are not placed, and nothing is listed for them.
        """
        self._touched, self._nodes_touched, self._wake = touched, nodes_touched, wake
        self._is_on = is_on
        self.slices: Store[ResourceSlice] = Store(self._slice_changed, self._listed)
        self.classes: Store[DeviceClass] = Store(self._class_changed, self._classes_listed)
        self.rules: Store[TaintRule] = Store(self._rule_changed, self._listed)
        self.claims: Store[DeviceClaim] = Store(self._claim_changed, self._listed)
        self.stores: Mapping[kinds.AnyKind, Store[Any]] = {
            kinds.RESOURCE_SLICE: self.slices,
            kinds.DEVICE_CLASS: self.classes,
            kinds.TAINT_RULE: self.rules,
            kinds.DEVICE_CLAIM: self.claims,
        }
        self._classes: Mapping[str, DeviceClass] = {}  # by name
        self._users = ClaimUsers()
        self.extended = ExtendedResources(touched, self._users.named, self._users.reserved)
        self._free = FreeDevices()
        self._selections: tuple[Selection, ...] = ()  # of the claims that wait; sorted
        self._unheld: set[Uid] = set()  # the claims that take no device away from others
        self._is_outdated = False  # whether ``refresh`` has something to do
        self._are_pods_outdated = False  # every pod with claims, not only those that changed
        self._room: DeviceRoom | None = NO_DEVICES  # None: outdated

    @property
    def are_wanted(self) -> bool:
        """Whether a pod of our scheduler has a claim or is to get one, or ever was."""
        return self._is_on and self._users.has_any

    @property
    def are_classes_wanted(self) -> bool:
        """Whether classes may back a resource that a pod of our scheduler waits for."""
        return self.are_wanted or (self._is_on and self.extended.lacks_publisher)

    @property
    def _is_known(self) -> bool:
        return all(store.is_synced for store in self.stores.values())

    def _change(self) -> None:
        self._is_outdated, self._room = True, None
        self._wake()

    def _listed(self, _began: int) -> None:
        self._are_pods_outdated = True
        self._change()

    def _classes_listed(self, began: int) -> None:
        self.extended.classes_listed()
        self._listed(began)

    def _slice_changed(
        self, uid: Uid, old: ResourceSlice | None, new: ResourceSlice | None
    ) -> None:
        if old != new:
            self._free.slice_changed(uid, old, new)
            self._change()

    def _class_changed(self, _uid: Uid, _old: DeviceClass | None, _new: DeviceClass | None) -> None:
        # Of several classes of one name, the latest counts.
        self._classes = {device_class.name: device_class for device_class in self.classes}
        self._are_pods_outdated = True
        if self._is_on:
            self.extended.classes_changed(self.classes)
        self._change()

    def _rule_changed(self, _uid: Uid, old: TaintRule | None, new: TaintRule | None) -> None:
        if old != new:
            self._free.rules_changed(sorted(self.rules, key=lambda rule: rule.name))
            self._change()

    def _claim_changed(self, _uid: Uid, old: DeviceClaim | None, new: DeviceClaim | None) -> None:
        self._users.claim_changed(old, new)
        if (claim := new or old) is not None:
            results = () if new is None else new.allocated or ()
            self._free.hold(claim.uid, "status", (result.device for result in results))
            self._unheld.discard(claim.uid)
            if new is not None and new.takes_nothing:
                self._unheld.add(claim.uid)
                self._free.hold(claim.uid, "Reservation", ())
            self.extended.claim_changed(claim.owner)
        self._change()

    def pod_changed(self, uid: Uid, pod: Member | ForeignPod | None) -> None:
        """Take in a pod that appeared, changed or disappeared."""
        member = pod if isinstance(pod, Member) else None
        if self._is_on:
            self.extended.pod_changed(uid, member)
            member = None if member is None else self.extended.resolved(member)
        if self._users.pod_changed(uid, member):
            self._change()

    def node_changed(self, old: Node | None, new: Node | None) -> None:
        """Take in a node that appeared, changed or disappeared."""
        if self._is_on:
            self.extended.node_changed(old, new)

    def reservation_changed(self, old: Reservation | None, new: Reservation | None) -> None:
        """Take in a Reservation: no other pod gets the devices of its claims."""
        before, now = _allocations(old), _allocations(new)
        for claim in before.keys() | now.keys():
            devices = () if claim in self._unheld else now.get(claim, ())
            self._free.hold(claim, "Reservation", devices)
        if self._users.reservation_changed(old, new) or before or now:
            self._change()
        for reservation in (old, new):
            self.extended.reservation_changed(() if reservation is None else reservation.entries)

    def unevaluated(self) -> tuple[Collection[str], Collection[Device]]:
        """The expressions and the devices that changed since the last ``refresh``.

        A thread may evaluate them meanwhile (``selectors.matches``), so that ``refresh`` need not.
        """
        if not (self._is_outdated and self._is_known):
            return (), ()
        chosen = [*self._wanted(), *(of for asked in self._administered() for of, _ in asked)]
        known = [*self._selections, *(of for asked in self._free.admin.wanted for of, _ in asked)]
        wanted = {text for selected in chosen for text in selected.texts}
        if wanted <= {text for selected in known for text in selected.texts}:
            return wanted, self._free.changed_devices()
        return wanted, self._free.all_devices()

    def refresh(self) -> None:
        """Compute what changed since the last time: before each Snapshot."""
        if not (self._is_outdated and self.are_wanted):
            return
        self._is_outdated = False
        if not self._is_known:
            self._notify(self._users.take_changed())
            return
        selections = tuple(sorted(set(self._wanted()), key=str))
        if selections != self._selections:
            self._selections, self._are_pods_outdated = selections, True
        nodes = self._free.refresh(selections, self._tied(), self._administered())
        self._are_pods_outdated |= self._free.has_new_rows
        changed = self._users.take_changed()
        if self._are_pods_outdated:
            changed = self._users.pods()
        self._are_pods_outdated = False
        if nodes is None or nodes:
            self._nodes_touched(nodes)
        self._notify(changed)

    def _wanted(self) -> Iterator[Selection]:
        """The selections of the claims that waiting pods need and that have no devices yet."""
        for claim in self._unallocated():
            if not claim.takes_nothing:
                for selected in bundles.selections(claim, self._classes):
                    if not selectors.problem(selected.texts):
                        yield selected

    def _unallocated(self) -> Iterator[DeviceClaim]:
        """The claims that waiting pods need and that can get devices, however many there are."""
        for claim in self._users.waiting_claims():
            if not claim.is_allocated and claim.least_devices <= MOST_RESULTS:
                yield claim

    def _administered(self) -> tuple[Wanted, ...]:
        """What the claims for admin access ask for that waiting pods need; sorted."""
        asked = {
            admin_access.wanted(claim, self._classes)
            for claim in self._unallocated()
            if claim.takes_nothing and not any(requests.unsupported(claim, self._classes))
        }
        return tuple(sorted(asked, key=str))

    def _tied(self) -> Tied:
        """The bundles of claims that waiting pods need, and what their other requests select."""
        waiting = [*self._unallocated()]
        if not (any(claim.constraints for claim in waiting) or self._free.have_counters):
            return NOTHING_TIED
        tied: set[bundles.Bundle] = set()
        loose: set[Selection] = set()
        known = {*self._selections}
        for claim in waiting:
            if not claim.unsupported and not claim.takes_nothing:
                divided = bundles.divided(claim, self._classes)
                tied |= {
                    of.bundle for of in divided.bundles if known.issuperset(of.bundle.selections)
                }
                loose |= {selected for _, selected in divided.loose}
        whole = {of for claim in waiting for _, of in requests.selections(claim, self._classes)}
        return Tied(
            tuple(sorted(tied, key=str)),
            tuple(sorted(loose & known, key=str)),
            frozenset(known - whole),
        )

    def _notify(self, uids: Iterable[Uid]) -> None:
        for uid in sorted(uids):
            self._touched(uid)

    def counted(self, node: NodeName) -> VolumeUsage:
        """How many devices a node has for each row, and how many of them are taken."""
        are_counted = self._selections or self._free.admin.wanted
        return self._free.counted(node) if are_counted else NOTHING_ATTACHED

    def with_devices(self, member: Member) -> Member:
        """The pod with what its claims require, and the problems that keep it waiting."""
        if self._is_on and member.extended_requests:
            if self._awaits_classes(member):
                return replace(member, device_problems=(UNLISTED,))
            member = self.extended.resolved(member)
        is_claiming = member.device_claims and member.may_get_a_node
        return self._with_claims(member) if is_claiming else member

    def _with_claims(self, member: Member) -> Member:
        """A waiting pod with what its claims require, and the problems that keep it waiting."""
        if not self._is_on:
            return _unsupported(member, [TURNED_OFF])
        if not self._is_known:
            return replace(member, device_problems=(UNLISTED,))
        entry = self._users.reserved(member.uid)
        if entry is not None:
            problem = self._broken(entry, member)
            return replace(member, device_problems=(problem,)) if problem else member
        problems: list[str] = []
        unsupported = {*self._mixed(member)}
        wanted = NOTHING
        shape, labels = member.shape, member.labels
        for pod_claim in member.device_claims:
            claim = self._users.claim(member.key.namespace, pod_claim)
            problem = self._problem(claim, pod_claim, member)
            if claim is None or problem:
                problems.append(problem)
                continue
            features = set(self._unsupported(claim))
            if features:
                unsupported |= {f"{DEVICE_CLAIMS} ({feature})" for feature in features}
            elif claim.is_allocated:
                shape = claim_demand.on_nodes(shape, claim.nodes)
            elif (users := self._users.waiting(claim.key))[0].uid != member.uid:
                shape = claim_demand.beside(shape, claim.key)
            else:
                wanted += self._counts(claim)
                labels = claim_demand.shared(labels, claim.key) if len(users) > 1 else labels
        return replace(
            _unsupported(member, unsupported),
            shape=claim_demand.requesting(shape, wanted),
            labels=labels,
            device_problems=tuple(problems),
        )

    def _awaits_classes(self, member: Member) -> bool:
        """Whether classes, which are not known yet, may back a resource that a pod waits for."""
        return (
            not self.classes.is_synced
            and member.may_get_a_node
            and self.extended.is_unpublished(member)
        )

    def _mixed(self, member: Member) -> Iterator[str]:
        """What is unsupported of a pod with claims for admin access and others, none allocated.

        Of these, kube-scheduler lets a device be in both, or not, by their order.
        """
        named = (self._users.claim(member.key.namespace, own) for own in member.device_claims)
        if len({of.takes_nothing for of in named if of is not None and not of.is_allocated}) > 1:
            yield f"{DEVICE_CLAIMS} ({ADMIN} beside claims without it)"

    def _broken(self, entry: PodReservation, member: Member) -> str:
        """Why a Reservation does not give the claims of a pod their devices; empty if it does."""
        allocations = {allocation.claim: allocation for allocation in entry.claims}
        problems = (
            self._broken_claim(entry.node, own, allocations.get(own.claim or ""), member)
            for own in member.device_claims
        )
        return next(filter(None, problems), "")

    def _broken_claim(
        self,
        node: NodeName,
        own: PodClaim,
        allocation: ClaimAllocation | None,
        member: Member,
    ) -> str:
        """Why a claim cannot have the devices that a Reservation gives it; empty if it can."""
        claim, name = self._users.claim(member.key.namespace, own), f"claim {own.claim or own.name}"
        if claim is None or claim.terminating or (allocation and claim.uid != allocation.uid):
            return f"{name} is gone, or another one by now"
        if allocation is None:
            return f"its Reservation has no devices for {name}"
        if claim.allocated is not None:
            is_same = not allocation.results or claim.has(allocation.results)
            return "" if is_same else f"{name} has other devices by now"
        if not allocation.results:
            return f"{name} has no devices any more"
        if problem := requests.problem(claim, self._classes):
            return f"{name} {problem}"
        devices = (result.device for result in allocation.results)
        if claim.takes_nothing:
            lost = next((d for d in devices if not self._free.is_on(d, node)), None)
        else:
            lost = next((d for d in devices if not self._free.may_take(d, node, claim.uid)), None)
        return "" if lost is None else f"device {lost} of {name} is gone or in use by now"

    def _problem(self, claim: DeviceClaim | None, pod_claim: PodClaim, member: Member) -> str:
        """Why no devices can be found for a claim of a pod now; empty if they can."""
        if pod_claim.name == CLAIM_OF and (problem := self.extended.problem(member)):
            return problem
        if claim is None:
            return _missing(pod_claim)
        return self._claim_problem(claim, pod_claim, member)

    def _claim_problem(self, claim: DeviceClaim, pod_claim: PodClaim, member: Member) -> str:
        """Why no devices can be found for this claim of a pod now; empty if they can."""
        name = f"claim {claim.key.name}"
        if claim.terminating:
            return f"{name} is being deleted"
        if pod_claim.is_own and claim.owner != member.uid:
            return f"{name} was not made for this pod"
        if claim.is_allocated:
            is_full = len(claim.consumers) >= MOST_CONSUMERS
            is_ours = any(consumer.uid == member.uid for consumer in claim.consumers)
            return f"{name} is in use by {MOST_CONSUMERS} pods" if is_full and not is_ours else ""
        if (count := claim.least_devices) > MOST_RESULTS:
            return f"{name} requests {count} devices, and a claim can have {MOST_RESULTS}"
        problem = self._sharing_problem(claim) or requests.problem(claim, self._classes)
        return f"{name} {problem}" if problem else ""

    def _sharing_problem(self, claim: DeviceClaim) -> str:
        """Why the pods that name a claim cannot get its devices together; empty if they can."""
        users = self._users.waiting(claim.key)
        if any(self._users.reserved(user.uid) for user in users):
            return "is reserved for other pods, and does not have its devices yet"
        if len(users) > MOST_CONSUMERS:
            return f"is named by {len(users)} pods, and {MOST_CONSUMERS} may share it"
        return ""

    def _unsupported(self, claim: DeviceClaim) -> Iterator[str]:
        """The features that a claim needs and that Tutti does not support yet."""
        if claim.is_allocated:
            if claim.reaches_unknown:
                yield "allocated, with a node selector"
            return
        yield from requests.unsupported(claim, self._classes)
        if len({user.gang for user in self._users.waiting(claim.key)}) > 1:
            yield f"{claim.key.name}, which pods of several gangs that wait share"
        if claim.takes_nothing:
            yield from self._free.admin.problems(admin_access.wanted(claim, self._classes))
            return
        if sum(count for _, count in self._counted_requests(claim)) > MOST_RESULTS:
            yield "allocationMode: All beside other requests, for more than 32 devices"
        if self._free.has_too_many_rows:
            yield "too many selectors whose devices overlap"
        yield from self._uncounted(claim)
        for _, selected in requests.selections(claim, self._classes):
            if selected in self._selections:
                yield from self._free.unsupported(self._selections.index(selected))

    def _uncounted(self, claim: DeviceClaim) -> Iterator[str]:
        """Why requests of a claim that constraints tie together cannot be counted."""
        counted = self._free.bundles
        if not counted.are_counted:
            return
        divided = bundles.divided(claim, self._classes)
        problems = (counted.problem(of.bundle) for of in divided.bundles)
        yield from (f"devices.constraints[]: {problem}" for problem in problems if problem)
        consuming = [
            index for index, _ in self._counted_requests(claim) if self._free.consumes(index)
        ]
        units = (counted.problem(bundles.unit(self._selections[index])) for index in consuming)
        yield from (f"{SHARING}: {problem}" for problem in units if problem)

    def _counts(self, claim: DeviceClaim) -> Resources:
        """What a claim takes of the resources that count devices and bundles."""
        if claim.takes_nothing:
            return Resources.of({admin_access.row(admin_access.wanted(claim, self._classes)): 1})
        devices = rows.requested(self._counted_requests(claim), self._free.rows)
        if not self._free.bundles.are_counted:
            return devices
        divided = bundles.divided(claim, self._classes)
        loose = [
            (selected, self._free.count(self._selections.index(selected), request.count))
            for request, selected in divided.loose
            if selected in self._selections
        ]
        tied = [of.bundle for of in divided.bundles if self._free.bundles.knows(of.bundle)]
        return devices + self._free.bundles.requested(tied, loose)

    def _counted_requests(self, claim: DeviceClaim) -> Iterator[tuple[int, int]]:
        for request, selected in requests.selections(claim, self._classes):
            if selected in self._selections:
                index = self._selections.index(selected)
                yield index, self._free.count(index, request.count)

    def missing_claims(self) -> Iterator[MissingClaim]:
        """The claims that are to be made for extended resources of pods."""
        if self._is_known:
            yield from self.extended.missing()

    def orphaned(self) -> Iterator[tuple[DeviceClaim, Sequence[Member]]]:
        """Allocated claims whose only users are pods of ours that wait without a Reservation."""
        yield from self._users.orphaned()

    def claim(self, namespace: str, name: str) -> DeviceClaim | None:
        """The claim of this name."""
        return self._users.named(ClaimName(namespace, name))

    def classes_by_name(self) -> Mapping[str, DeviceClass]:
        """The device classes."""
        return self._classes

    def snapshot(self) -> DeviceRoom:
        """The devices, classes and claims; empty while no pod of ours names a claim."""
        if self._room is None:
            self._room = self._snapshot() if self.are_wanted and self._is_known else NO_DEVICES
        return self._room

    def _snapshot(self) -> DeviceRoom:
        return DeviceRoom(
            True,  # noqa: FBT003 - it is read
            tuple(sorted(self.slices, key=lambda piece: piece.name)),
            tuple(self._classes[name] for name in sorted(self._classes)),
            tuple(sorted(self.rules, key=lambda rule: rule.name)),
            tuple(sorted(self.claims, key=lambda claim: claim.key)),
            self._selections,
            self._free.nodes(),
        )


def _allocations(reservation: Reservation | None) -> Mapping[Uid, Collection[DeviceId]]:
    """The devices that a Reservation gives to claims, by claim."""
    entries = () if reservation is None else reservation.entries
    return {
        allocation.uid: [result.device for result in allocation.results]
        for entry in entries
        for allocation in entry.claims
    }


def _missing(claim: PodClaim) -> str:
    """Why a pod has no claim."""
    if claim.claim is None:
        return f"claim {claim.name} is not created yet"
    return f"claim {claim.claim} does not exist"


def _unsupported(member: Member, features: Iterable[str]) -> Member:
    fields = tuple(sorted({*member.unsupported_fields, *features}))
    return replace(member, unsupported_fields=fields)
