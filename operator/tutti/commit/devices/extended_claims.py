"""Makes the claims that stand for extended resources of pods, and names them to the kubelet.

A claim is made before the plan, like one that a template makes; from then on it is a claim like any
other. The status of its pod names it before the pod is bound: see docs/devices.md.
"""

from collections.abc import Iterable, Mapping, MutableMapping, MutableSet
from functools import partial

from ...kube import errors
from ...kube.backoff import Clock
from ...kube.client import Api
from ...kube.concurrency import ConcurrencyLimit
from ...model.cluster import Member
from ...model.devices import extended
from ...model.keys import GangKey, Uid
from ...state.cluster_state import ClusterState
from ...state.devices.extended import MissingClaim, NamedPlan

NOT_KEPT = "the API server keeps no status.extendedResourceClaimStatus (DRAExtendedResource is off)"
WRITES_PER_CYCLE = 500  # so that thousands of pods do not delay the next plan for long


class ExtendedClaims:
    """The claims of pods whose extended resources a DeviceClass backs."""

    def __init__(
        self, state: ClusterState, api: Api, limit: ConcurrencyLimit, clock: Clock
    ) -> None:
        self._state = state
        self._api = api
        self._refusals = state.refusals
        self._limit = limit
        self._clock = clock

    async def make(self) -> bool:
        """Make the claims that pods wait for, at most ``WRITES_PER_CYCLE`` of them.

        Returns whether there were some.

        A claim has a name of its own for its pod, so after a crash it is not made twice.

        Raises:
            errors.Unavailable: the API server is away.
        """
        now = self._clock()
        missing = [
            claim
            for claim in self._state.devices.missing_claims()
            if not self._refusals.holds_off(claim.member.uid, now)
        ]
        await self._limit.all(partial(self._make, claim) for claim in missing[:WRITES_PER_CYCLE])
        return bool(missing)

    async def _make(self, claim: MissingClaim) -> None:
        member, requests = claim.member, claim.plan.requests(claim.classes)
        what = f"making claim {claim.name} for the extended resources of pod {member.key}"
        with self._refusals.backing_off_on_refusal(member.uid, member.gang, what, self._clock):
            try:
                made = await self._api.make_claim(member, claim.name, requests)
            except errors.Gone:
                return  # its namespace is gone
            self._state.learn_claim(made)
            self._refusals.forget(member.uid)

    async def name(
        self, pods: Iterable[tuple[GangKey, Member]], lacking: MutableSet[GangKey]
    ) -> Mapping[Uid, str]:
        """Name the claims of pods that are to be bound in the status of the pods.

        Returns the new versions of these pods. ``lacking`` gets the gangs of which some pod could
        not be changed: no pod of these may be bound in this cycle.

        Raises:
            errors.Unavailable: the API server is away.
        """
        named: dict[Uid, str] = {}
        planned = [
            (gang, member, self._state.devices.extended.plan(member)) for gang, member in pods
        ]
        for gang, member, plan in planned:
            is_named = plan is not None or member.extended_claim
            if not is_named and extended.has_claim(member.device_claims):
                lacking.add(gang)  # the claim is gone by now
        await self._limit.all(
            partial(self._name, gang, member, plan, named, lacking)
            for gang, member, plan in planned
            if plan is not None
        )
        return named

    async def _name(
        self,
        gang: GangKey,
        member: Member,
        plan: NamedPlan,
        named: MutableMapping[Uid, str],
        lacking: MutableSet[GangKey],
    ) -> None:
        """Name the claim of a pod; ``lacking`` gets its gang unless that surely worked."""
        what = f"naming claim {plan.claim} in the status of pod {member.key}"
        with self._refusals.backing_off_on_refusal(member.uid, gang, what, self._clock):
            changed = await self._api.name_claim(member, plan.claim, plan.plan.mappings)
            self._state.pods.learn(changed)
            if changed.extended_claim != plan.claim:
                raise errors.Refused(NOT_KEPT)
            named[member.uid] = changed.version
        if member.uid not in named:
            lacking.add(gang)
