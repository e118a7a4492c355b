"""Adds to our pods what their claims for devices require, and to nodes the devices that are free.

A pod without such claims costs nothing here. Source: kube-scheduler's DynamicResources.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...filters.devices import selectors
from ...filters.devices.selectors import Evaluated
from ...kube import kinds
from ...kube.codec.shapes import DEVICE_CLAIMS
from ...model.cluster import ForeignPod, Member, Node, Reservation
from ...model.devices.claims import (
    NO_DEVICES,
    ClaimName,
    DeviceClaim,
    DeviceRoom,
)
from ...model.devices.inventory import (
    Device,
    DeviceClass,
    DeviceId,
    ResourceSlice,
    TaintRule,
)
from ...model.keys import NodeName, Uid
from ..node_usage import NOTHING_ATTACHED, VolumeUsage
from ..store import Store
from .asked import Asked, asked
from .claim_requirements import ClaimRequirements, with_unsupported
from .claim_users import ClaimUsers
from .extended import ExtendedResources, MissingClaim
from .free_devices import FreeDevices

Wanted = Collection[tuple[str, Collection[Device]]]

UNLISTED = "claims and devices are still being listed"
SECONDS = 60.0  # for expressions, if no thread evaluates them
TURNED_OFF = f"{DEVICE_CLAIMS} (devices.enabled is false)"


class DeviceIndex:
    """The stores of the four kinds that devices need, and the pods that name claims."""

    def __init__(
        self,
        touched: Callable[[Uid], None],
        requirements_touched: Callable[[Uid], None],
        nodes_touched: Callable[[Iterable[NodeName] | None], None],
        wake: Callable[[], None],
        *,
        is_on: bool,
    ) -> None:
        """``touched`` is called for each pod that names other claims, ``wake`` at every change.

        ``requirements_touched`` is called for each pod whose claims may require something else, and
        ``nodes_touched`` with the nodes whose free devices changed; None means any.
        Unless ``is_on``, pods with claims are not placed, and nothing is listed for them.
        """
        self._requirements_touched = requirements_touched
        self._nodes_touched, self._wake = nodes_touched, wake
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
        self._classes: dict[str, DeviceClass] = {}  # by name
        self._users = ClaimUsers()
        self.extended = ExtendedResources(touched, self._users.named, self._users.reserved)
        self._free = FreeDevices()
        # By expression that is evaluated for all devices, or cannot be.
        self._problems: dict[str, str] = {}
        self._evaluates = True  # until a thread does
        self._first_left = ""  # the first expression that was not answered the last time
        self._requirements = ClaimRequirements(
            self._users, self.extended, self._free, self._classes, self._problems
        )
        self._unheld: set[Uid] = set()  # the claims that take no device away from others
        # What standing Reservations give to a claim, by uid of the Reservation.
        self._promised: dict[Uid, dict[Uid | None, Collection[DeviceId]]] = {}
        self._is_outdated = False  # whether ``refresh`` has something to do
        self._are_pods_outdated = False  # every pod with claims, not only those that changed
        self._outdated_pods: list[Uid] = []  # the next at the end
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
        self._classes.clear()
        self._classes.update((device_class.name, device_class) for device_class in self.classes)
        self._are_pods_outdated = True
        self._requirements.forget()
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
        for claim in before:
            self._promised[claim].pop(None if old is None else old.self_uid, None)
        for claim, promised in now.items():
            own = self._promised.setdefault(claim, {})
            own[None if new is None else new.self_uid] = promised
        for claim in before.keys() | now.keys():
            # It may be in two Reservations: new pods have taken it over from pods that are gone.
            devices = {device for held in self._promised[claim].values() for device in held}
            self._free.hold(claim, "Reservation", () if claim in self._unheld else devices)
            if not self._promised[claim]:
                del self._promised[claim]
        if self._users.reservation_changed(old, new) or before or now:
            self._change()
        for reservation in (old, new):
            self.extended.reservation_changed(() if reservation is None else reservation.entries)

    def unevaluated(self) -> Wanted:
        """The expressions, each with the devices that may be new to it; none if no device is.

        A thread is to evaluate them (``selectors.evaluate``), and its answer goes to ``evaluated``.
        After the first call, ``refresh`` evaluates nothing: claims with new expressions wait.
        """
        self._evaluates = False
        return self._unevaluated() if self._is_outdated and self._is_known else ()

    def _unevaluated(self) -> Wanted:
        expressions = self._asked().expressions
        if not expressions:
            if self._free.new_devices():
                self._problems.clear()  # a later claim asks for the answers for these, too
            self._free.forget_new()
            return ()
        known = {text for text, why in self._problems.items() if why != selectors.TOO_MANY}
        new, has_all = self._free.new_devices(), known.issuperset(expressions)
        every = () if has_all else self._free.all_devices()
        self._free.forget_new()
        if has_all and not new:
            return ()
        # The first that was left comes first: else others with many could keep it from its turn.
        in_order = sorted(expressions, key=lambda text: text != self._first_left)
        return [(text, new if text in known else every) for text in in_order]

    def evaluated(self, answer: Evaluated) -> None:
        """Take in which expressions are evaluated, and why Tutti cannot evaluate others."""
        self._first_left = answer.first_left
        if answer[:2] != (self._problems, self._requirements.trouble):
            self._problems.clear()
            self._problems.update(answer.problems)
            self._requirements.trouble = answer.trouble
            self._is_outdated = self._are_pods_outdated = True
            self._room = None

    def refresh(self) -> None:
        """Compute what changed since the last time: before each Snapshot."""
        self._recount()
        self._touch(len(self._outdated_pods))

    def refresh_in_parts(self, pods: int) -> Iterator[None]:
        """Do what ``refresh`` does, and pause after every so many pods for the event loop."""
        self._recount()
        while self._outdated_pods:
            yield
            self._touch(pods)

    def _touch(self, pods: int) -> None:
        for _ in range(min(pods, len(self._outdated_pods))):
            self._requirements_touched(self._outdated_pods.pop())

    def _recount(self) -> None:
        """Count the free devices again, if anything has changed."""
        if self._is_outdated and self.are_wanted:
            if self._evaluates and self._is_known and (unevaluated := self._unevaluated()):
                self.evaluated(selectors.evaluate(unevaluated, SECONDS))
            self._is_outdated = False
            changed = self._recounted() if self._is_known else self._users.take_changed()
            self._outdated_pods = sorted({*self._outdated_pods, *changed}, reverse=True)

    def _recounted(self) -> Collection[Uid]:
        """The pods whose claims may require something else of the devices that are free now."""
        if new := self._free.new_devices():  # that no thread has been given
            known = [text for text, why in self._problems.items() if not why]
            for text in [text for text in known if selectors.lacks_answers(text, new)]:
                del self._problems[text]
        wanted = self._asked()
        if not self._problems.keys() >= {*wanted.expressions}:
            self._is_outdated = True
            self._wake()
        self._are_pods_outdated |= wanted.judged != self._free.asked.judged
        nodes = self._free.refresh(wanted)
        self._requirements.forget()
        self._are_pods_outdated |= self._free.has_new_rows
        changed = self._users.take_changed()
        if self._are_pods_outdated:
            changed = self._users.pods()
        self._are_pods_outdated = False
        if nodes is None or nodes:
            self._nodes_touched(nodes)
        return changed

    def _asked(self) -> Asked:
        """What the claims of waiting pods ask for."""
        have_counters = self._free.have_counters
        return asked(self._users, self._classes, self._problems, have_counters=have_counters)

    def counted(self, node: NodeName) -> VolumeUsage:
        """How many devices a node has for each row, and how many of them are taken."""
        are_counted = self._free.selections or self._free.admin.wanted
        return self._free.counted(node) if are_counted else NOTHING_ATTACHED

    def with_devices(self, member: Member) -> Member:
        """The pod with what its claims require, and the problems that keep it waiting."""
        if self._is_on and member.extended_requests:
            if self._awaits_classes(member):
                return replace(member, device_problems=(UNLISTED,))
            member = self.extended.resolved(member)
        is_claiming = member.device_claims and member.may_get_a_node
        if not is_claiming:
            return member
        if not self._is_on:
            return with_unsupported(member, [TURNED_OFF])
        if not self._is_known:
            return replace(member, device_problems=(UNLISTED,))
        return self._requirements.added(member)

    def _awaits_classes(self, member: Member) -> bool:
        """Whether classes, which are not known yet, may back a resource that a pod waits for."""
        return (
            not self.classes.is_synced
            and member.may_get_a_node
            and self.extended.is_unpublished(member)
        )

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
            self._free.selections,
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
