"""What the claims of a waiting pod require of its node, and what keeps the pod waiting.

Source: kube-scheduler's DynamicResources.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...filters.devices import admin_access, bundles, requests, rows
from ...kube.codec.devices import ADMIN
from ...kube.codec.shapes import DEVICE_CLAIMS
from ...model.cluster import Member, PodReservation
from ...model.devices.claims import (
    MOST_CONSUMERS,
    MOST_RESULTS,
    ClaimAllocation,
    DeviceClaim,
    PodClaim,
    WantedDevices,
)
from ...model.devices.extended import CLAIM_OF
from ...model.devices.inventory import DeviceClass
from ...model.keys import NodeName
from ...model.resources import NOTHING, Resources
from ...model.shapes import Shape
from . import claim_demand
from .claim_users import ClaimUsers
from .extended import ExtendedResources
from .free_devices import SHARING, FreeDevices

OVERLAPPING = "too many selectors whose devices overlap"
UNEVALUATED = "has selectors that are not evaluated yet"


class _Answer(NamedTuple):
    """What is unsupported of claims that want the same; else, what such a claim takes.

    Before all of their expressions are evaluated, neither is known.
    """

    is_known: bool
    unsupported: frozenset[str]
    counts: Resources


class ClaimRequirements:
    """The claims of pods, next to the devices that are free for them."""

    def __init__(
        self,
        users: ClaimUsers,
        extended: ExtendedResources,
        free: FreeDevices,
        classes: Mapping[str, DeviceClass],
        problems: Mapping[str, str],
    ) -> None:
        """All of these change while claims, pods and devices do; ``classes`` is by name.

        ``problems`` has the expressions that are evaluated, and why Tutti cannot do so.
        """
        self.trouble = ""  # why expressions are not evaluated yet
        self._users, self._extended, self._free, self._classes = users, extended, free, classes
        self._problems = problems
        self._answers: dict[WantedDevices, _Answer] = {}  # until something changes
        self._shapes: dict[tuple[Shape, Resources], Shape] = {}  # one object for all pods alike

    def forget(self) -> None:
        """Take in that free devices, classes or selections may have changed."""
        self._answers, self._shapes = {}, {}

    def added(self, member: Member) -> Member:
        """A waiting pod with what its claims require, and the problems that keep it waiting."""
        entry = self._users.reserved(member.uid)
        if entry is not None:
            problem = self._broken(entry, member)
            return replace(member, device_problems=(problem,)) if problem else member
        problems: list[str] = []
        space = member.key.namespace
        claims = [(own, self._users.claim(space, own)) for own in member.device_claims]
        unsupported = {*_mixed(claim for _, claim in claims)}
        wanted = NOTHING
        shape, labels = member.shape, member.labels
        for pod_claim, claim in claims:
            users = () if claim is None else self._users.waiting(claim.key)
            problem = self._problem(claim, pod_claim, member, users)
            if claim is None or problem:
                problems.append(problem)
                continue
            if features := {*self._unsupported(claim, users)}:
                unsupported |= {f"{DEVICE_CLAIMS} ({feature})" for feature in features}
            elif claim.is_allocated:
                shape = claim_demand.on_nodes(shape, claim.nodes)
            elif users[0].uid != member.uid:
                shape = claim_demand.beside(shape, claim.key)
            else:
                wanted += self._answer(claim).counts
                labels = claim_demand.shared(labels, claim.key) if len(users) > 1 else labels
        return replace(
            with_unsupported(member, unsupported) if unsupported else member,
            shape=self._requesting(shape, wanted),
            labels=labels,
            device_problems=tuple(problems),
        )

    def _requesting(self, shape: Shape, wanted: Resources) -> Shape:
        """The shape with these counts of devices."""
        known = self._shapes.get((shape, wanted))
        if known is None:
            known = self._shapes[shape, wanted] = claim_demand.requesting(shape, wanted)
        return known

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
        if problem := requests.broken_class(claim, self._classes):
            return f"{name} {problem}"
        devices = (result.device for result in allocation.results)
        if claim.takes_nothing:
            lost = next((d for d in devices if not self._free.is_on(d, node)), None)
        else:
            lost = next((d for d in devices if not self._free.may_take(d, node, claim.uid)), None)
        return "" if lost is None else f"device {lost} of {name} is gone or in use by now"

    def _problem(
        self,
        claim: DeviceClaim | None,
        pod_claim: PodClaim,
        member: Member,
        users: Sequence[Member],
    ) -> str:
        """Why no devices can be found for a claim of a pod now; empty if they can."""
        if pod_claim.name == CLAIM_OF and (problem := self._extended.problem(member)):
            return problem
        if claim is None:
            return _missing(pod_claim)
        return self._claim_problem(claim, pod_claim, member, users)

    def _claim_problem(
        self, claim: DeviceClaim, pod_claim: PodClaim, member: Member, users: Sequence[Member]
    ) -> str:
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
        problem = self._sharing_problem(users) or requests.problem(claim, self._classes)
        if not (problem or self._answer(claim).is_known):
            problem = ": ".join(filter(None, (UNEVALUATED, self.trouble)))
        return f"{name} {problem}" if problem else ""

    def _sharing_problem(self, users: Sequence[Member]) -> str:
        """Why the pods that name a claim cannot get its devices together; empty if they can."""
        if any(self._users.reserved(user.uid) for user in users):
            return "is reserved for other pods, and does not have its devices yet"
        if len(users) > MOST_CONSUMERS:
            return f"is named by {len(users)} pods, and {MOST_CONSUMERS} may share it"
        return ""

    def _unsupported(self, claim: DeviceClaim, users: Sequence[Member]) -> Iterator[str]:
        """The features that a claim needs and that Tutti does not support yet."""
        if claim.is_allocated:
            if claim.reaches_unknown:
                yield "allocated, with a node selector"
            return
        if len({user.gang for user in users}) > 1:
            yield f"{claim.key.name}, which pods of several gangs that wait share"
        yield from self._answer(claim).unsupported

    def _answer(self, claim: DeviceClaim) -> _Answer:
        """What holds for all claims without devices that want the same."""
        answer = self._answers.get(claim.wanted)
        if answer is None:
            answer = self._answers[claim.wanted] = self._computed(claim)
        return answer

    def _computed(self, claim: DeviceClaim) -> _Answer:
        chosen = bundles.selections(claim, self._classes)
        is_known = all(text in self._problems for of in chosen for text in of.texts)
        unsupported = frozenset(self._uncountable(claim) if is_known else ())
        counts = self._counts(claim) if is_known and not unsupported else NOTHING
        return _Answer(is_known, unsupported, counts)

    def _uncountable(self, claim: DeviceClaim) -> Iterator[str]:
        """The features of a claim, of its classes and of devices that Tutti does not support."""
        yield from requests.unsupported(claim, self._classes, self._problems)
        if claim.takes_nothing:
            yield from self._free.admin.problems(admin_access.wanted(claim, self._classes))
            return
        if sum(count for _, count in self._counted_requests(claim)) > MOST_RESULTS:
            yield "allocationMode: All beside other requests, for more than 32 devices"
        chosen = {*bundles.selections(claim, self._classes)}
        whole = {selected for _, selected in requests.selections(claim, self._classes)}
        are_rows = self._free.asked.without_rows.isdisjoint(whole)
        if not (are_rows and self._free.left_out.isdisjoint(chosen)):
            yield OVERLAPPING
        yield from self._uncounted(claim)
        if claim.most_devices > MOST_RESULTS:
            yield f"firstAvailable[].count, for more than {MOST_RESULTS} devices in all"
        for selected in chosen:
            if selected in self._free.selections:
                yield from self._free.unsupported(self._free.selections.index(selected))

    def _uncounted(self, claim: DeviceClaim) -> Iterator[str]:
        """Why requests of a claim that constraints tie together cannot be counted."""
        counted = self._free.bundles
        if not (counted.are_counted or counted.are_left_out):
            return
        divided = bundles.divided(claim, self._classes)
        problems = (counted.problem(of.bundle) for of in divided.bundles)
        yield from (f"devices.constraints[]: {problem}" for problem in problems if problem)
        if any(selected in counted.left_out for _, selected in divided.loose):
            yield OVERLAPPING
        consuming = [
            index for index, _ in self._counted_requests(claim) if self._free.consumes(index)
        ]
        units = (counted.problem(bundles.unit(self._free.selections[index])) for index in consuming)
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
            (selected, self._free.count(self._free.selections.index(selected), request.count))
            for request, selected in divided.loose
            if selected in self._free.selections
        ]
        tied = [of.bundle for of in divided.bundles if self._free.bundles.knows(of.bundle)]
        return devices + self._free.bundles.requested(tied, loose)

    def _counted_requests(self, claim: DeviceClaim) -> Iterator[tuple[int, int]]:
        for request, selected in requests.selections(claim, self._classes):
            if selected in self._free.selections:
                index = self._free.selections.index(selected)
                yield index, self._free.count(index, request.count)


def _mixed(claims: Iterable[DeviceClaim | None]) -> Iterator[str]:
    """What is unsupported of a pod with claims for admin access and others, none allocated.

    Of these, kube-scheduler lets a device be in both, or not, by their order.
    """
    if len({of.takes_nothing for of in claims if of is not None and not of.is_allocated}) > 1:
        yield f"{DEVICE_CLAIMS} ({ADMIN} beside claims without it)"


def _missing(claim: PodClaim) -> str:
    """Why a pod has no claim."""
    if claim.claim is None:
        return f"claim {claim.name} is not created yet"
    return f"claim {claim.claim} does not exist"


def with_unsupported(member: Member, features: Iterable[str]) -> Member:
    """The pod, which needs these features that Tutti does not support."""
    fields = tuple(sorted({*member.unsupported_fields, *features}))
    return replace(member, unsupported_fields=fields)
