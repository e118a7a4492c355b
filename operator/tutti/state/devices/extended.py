"""Which pods get extended resources by a claim for devices, and which by what nodes publish.

A resource that some node publishes is left to such nodes. The claim of a pod that has one already,
in its status or in a Reservation, stands for the resources that it was made for.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

from ...model.cluster import Member, Node, PodReservation
from ...model.devices import extended
from ...model.devices.claims import MOST_RESULTS, ClaimName, DeviceClaim
from ...model.devices.extended import ClaimPlan, ContainerRequests
from ...model.devices.inventory import DeviceClass
from ...model.keys import PodKey, Uid

Claims = Callable[[ClaimName], DeviceClaim | None]
Reserved = Callable[[Uid], PodReservation | None]


class MissingClaim(NamedTuple):
    """A claim that is to be made for the extended resources of a pod."""

    member: Member
    name: str
    plan: ClaimPlan
    classes: Mapping[str, str]  # by resource


class NamedPlan(NamedTuple):
    """A claim of a pod, and which containers get what of it."""

    claim: str  # its name
    plan: ClaimPlan


class ExtendedResources:
    """The resources that nodes publish and that classes back, and our pods that request them."""

    def __init__(self, touched: Callable[[Uid], None], claims: Claims, reserved: Reserved) -> None:
        """``touched`` is called for each pod that may get its resources in another way by now.

        ``claims`` has the claims by name, and ``reserved`` the entries of Reservations by pod.
        """
        self._touched, self._claims, self._reserved = touched, claims, reserved
        self._published = Counter[str]()  # how many nodes publish a resource
        self._classes: Mapping[str, str] = {}  # by the resource that they back
        self._pods: dict[Uid, Member] = {}  # of ours that wait and request such resources
        # How many of these pods request the same; tens of thousands of pods have few requests.
        self._requests: Counter[tuple[ContainerRequests, ...]] = Counter()
        self._named: set[Uid] = set()  # those whose status names a claim

    def node_changed(self, old: Node | None, new: Node | None) -> None:
        """Take in a node, and what it publishes."""
        before, after = _published(old), _published(new)
        if before == after:
            return
        was = {resource for resource in before | after if self._published[resource]}
        self._published.subtract(before)
        self._published.update(after)
        self._touch(r for r in before | after if (r in was) != (self._published[r] > 0))

    def classes_changed(self, classes: Iterable[DeviceClass]) -> None:
        """Take in all device classes."""
        old, new = self._classes, extended.classes_by_resource(classes)
        self._classes = new
        self._touch(r for r in old.keys() | new.keys() if old.get(r) != new.get(r))

    def classes_listed(self) -> None:
        """Take in that all device classes are known now."""
        self._touch(self._requested)

    def pod_changed(self, uid: Uid, pod: Member | None) -> None:
        """Take in a pod of ours."""
        is_waiting = pod is not None and pod.may_get_a_node
        new = pod if pod is not None and is_waiting and pod.extended_requests else None
        old = self._pods.get(uid) if new is not None else self._pods.pop(uid, None)
        self._named.discard(uid)
        if old is None and new is None:
            return
        if old is not None:
            self._requests[old.extended_requests] -= 1
            if not self._requests[old.extended_requests]:
                del self._requests[old.extended_requests]
        if new is not None:
            self._pods[uid] = new
            self._requests[new.extended_requests] += 1
            if new.extended_claim:
                self._named.add(uid)

    def reservation_changed(self, entries: Iterable[PodReservation]) -> None:
        """Take in that a Reservation with these entries came, changed or went."""
        for entry in entries:
            # Without classes and claims, no pod gets its resources by a claim.
            if entry.uid in self._pods and (self._classes or entry.claims):
                self._touched(entry.uid)

    def claim_changed(self, owner: Uid | None) -> None:
        """Take in that a claim of this pod came, changed or went."""
        if owner in self._pods:
            self._touched(owner)

    @property
    def lacks_publisher(self) -> bool:
        """Whether a pod waits for a resource that no node publishes."""
        return any(not self._published[resource] for resource in self._requested)

    def is_unpublished(self, member: Member) -> bool:
        """Whether no node publishes some extended resource that a pod requests."""
        requests = member.extended_requests
        return any(not self._published[resource] for of in requests for resource, _ in of.counts)

    def resolved(self, member: Member) -> Member:
        """The pod with the claim that stands for its extended resources, and without these."""
        if not member.extended_requests:
            return member
        is_held = self._is_held(member)
        if not (is_held or self._classes):
            return member
        name, resources = self._name(member), self._by_claim(member)
        if not (resources or is_held):
            return member
        shape = member.shape
        requests = extended.without(shape.requests, resources)
        return replace(
            member,
            shape=replace(shape, requests=requests),
            device_claims=tuple(sorted((*member.device_claims, extended.pod_claim(name)))),
        )

    def _name(self, member: Member) -> str:
        return member.extended_claim or extended.claim_name(member.key.name, member.uid)

    def _claim(self, member: Member) -> DeviceClaim | None:
        return self._claims(ClaimName(member.key.namespace, self._name(member)))

    def _is_held(self, member: Member) -> bool:
        """Whether a pod has its claim: by its status, by a Reservation, or by devices of it."""
        if member.extended_claim:
            return True
        if member.node is not None:
            return False
        entry, claim = self._reserved(member.uid), self._claim(member)
        is_reserved = entry is not None and any(
            own.claim == self._name(member) for own in entry.claims
        )
        # Devices that nobody has a right to are given back only while the pod names the claim.
        return is_reserved or (claim is not None and claim.is_allocated)

    def _by_claim(self, member: Member) -> Collection[str]:
        """The resources that a pod gets by its claim."""
        wanted, claim = extended.resources_of(member.extended_requests), self._claim(member)
        if member.extended_claim:
            return {resource for resource in member.extended_resources if resource in wanted}
        backed = {resource for resource in wanted if resource in self._classes}
        if self._is_held(member):
            return backed if claim is None else extended.covered(member.extended_requests, claim)
        if member.node is not None or self._reserved(member.uid) is not None:
            return ()
        unpublished = {resource for resource in backed if not self._published[resource]}
        if claim is None or not unpublished:
            return unpublished
        return extended.covered(member.extended_requests, claim) or unpublished

    def problem(self, member: Member) -> str:
        """Why the claim of a pod cannot do for its extended resources; empty if it can."""
        resources = self._by_claim(member)
        names = ", ".join(sorted(resources))
        plan = extended.claim_plan(member.extended_requests, resources)
        if plan is None:
            most = extended.MOST_REQUESTS
            return f"more of its containers request {names} than the {most} that a claim can name"
        claim = self._claim(member)
        if claim is None and not self._are_backed(resources):
            return "no DeviceClass backs its extended resources any more"
        if claim is None and plan.devices > MOST_RESULTS:
            return (
                f"its containers request {plan.devices} devices ({names}), and a claim can have "
                f"{MOST_RESULTS}"
            )
        if claim is None:
            return f"the claim for its {names} is not created yet"
        if not plan.is_of(claim):
            return f"claim {claim.key.name} is not for what its containers request"
        return ""

    def _are_backed(self, resources: Collection[str]) -> bool:
        """Whether there are resources, and each has a class."""
        return bool(resources) and all(resource in self._classes for resource in resources)

    def missing(self) -> Iterator[MissingClaim]:
        """The claims that pods without scheduling gates wait for; by pod."""
        unpublished = {resource for resource in self._classes if not self._published[resource]}
        uids = self._named.union(self._requesting(unpublished))
        for member in sorted((self._pods[uid] for uid in uids), key=_by_key):
            if member.is_waiting and self._claim(member) is None:
                resources = self._by_claim(member)
                plan = extended.claim_plan(member.extended_requests, resources)
                if plan is None or plan.devices > MOST_RESULTS:
                    continue
                if self._are_backed(resources):
                    yield MissingClaim(member, self._name(member), plan, self._classes)

    def plan(self, member: Member) -> NamedPlan | None:
        """The claim that a pod has by a Reservation; None if its status names it already."""
        if not member.extended_requests or member.extended_claim:
            return None
        claim = self._claim(member)
        if claim is None or not self._is_held(member):
            return None
        resources = extended.covered(member.extended_requests, claim)
        plan = extended.claim_plan(member.extended_requests, resources)
        return None if plan is None else NamedPlan(claim.key.name, plan)

    @property
    def _requested(self) -> AbstractSet[str]:
        """The resources that some pod requests."""
        return {resource for own in self._requests for resource in extended.resources_of(own)}

    def _touch(self, resources: Iterable[str]) -> None:
        for uid in sorted(self._requesting({*resources})):
            self._touched(uid)

    def _requesting(self, resources: AbstractSet[str]) -> Sequence[Uid]:
        """The pods that request one of these resources."""
        some = {own for own in self._requests if resources & {*extended.resources_of(own)}}
        if not some:
            return ()
        return [uid for uid, pod in self._pods.items() if pod.extended_requests in some]


def _by_key(member: Member) -> PodKey:
    return member.key


def _published(node: Node | None) -> AbstractSet[str]:
    """The extended resources of which a node has some."""
    amounts = () if node is None else node.allocatable.amounts
    return {name for name, amount in amounts if amount > 0 and extended.is_extended(name)}
