"""Binds or hands over one pod, or binds one claim, and finds out what an unclear answer means.

Nothing here knows of Reservations: the commit decides what is bound when.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from ..kube import errors
from ..kube.backoff import CONFLICT_SECONDS, REFUSED_SECONDS, Clock
from ..kube.client import Api
from ..kube.codec import encode
from ..kube.concurrency import is_away
from ..kube.list_watch import Item
from ..model.cluster import BoundBy, Member
from ..model.decisions import Assignment
from ..model.keys import GangKey, NodeName, PodKey, Uid
from ..model.volumes import ClaimKey, VolumeChoice
from ..state.cluster_state import ClusterState
from ..verify import plan_checks

logger = logging.getLogger(__name__)

LATE_SECONDS = 0.5  # seconds by which the watch may lag behind the answers of bindings
WAIT_SECONDS, MOST_WAITS = 0.05, 20  # one wait for the watch, and how many in a cycle
SENTENCE_LIMIT = 500  # characters of a reason in the condition of a pod


class VolumeBinder:
    """Gives volumes to claims, or has volumes provisioned for them (docs/storage.md).

    It deletes nothing. The PV controller or a provisioner completes what is begun here.
    """

    def __init__(self, state: ClusterState, api: Api, clock: Clock) -> None:
        self._state = state
        self._api = api
        self._clock = clock

    async def bind(self, gang: GangKey, choice: VolumeChoice) -> None:
        """Bind the claim of a choice to its volume, or say for which node it is provisioned.

        A claim or volume that has changed is left alone: the watch shows why.
        """
        claim = self._state.storage.claim(ClaimKey(gang.namespace, choice.claim))
        if claim is None or claim.uid != choice.uid:
            return
        key = Uid(choice.uid)
        what = f"claim {choice.claim}: binding it"
        with self._state.refusals.backing_off_on_refusal(key, gang, what, self._clock):
            try:
                if choice.volume:
                    volume = await self._api.bind_claim(claim, choice.volume)
                    self._state.storage.volumes.put(Item(*volume))
                else:
                    selected = await self._api.select_node(claim, choice.node)
                    self._state.storage.claims.put(Item(*selected))
            except errors.Gone:
                return
            self._state.refusals.forget(key)

    async def unselect(self, namespace: str, choice: VolumeChoice) -> None:
        """Remove the node for which a claim is provisioned, unless its volume has been made.

        Raises:
            errors.ApiError: it is not certain that no node is selected any more.
        """
        claim = self._state.storage.claim(ClaimKey(namespace, choice.claim))
        if claim is None or claim.uid != choice.uid or claim.selected_node != choice.node:
            return
        with suppress(errors.Gone):
            released = await self._api.select_node(claim, None)
            self._state.storage.claims.put(Item(*released))


class Binder:
    """Binds members, and finds out what became of bindings without a clear answer."""

    def __init__(self, state: ClusterState, api: Api, clock: Clock) -> None:
        self._state = state
        self._api = api
        self._clock = clock

    def fitting(self, members: Sequence[tuple[Member, NodeName]]) -> Sequence[Member]:
        """The members, taken in order, for which the watch shows room; none if it is late."""
        if self.is_late:
            return ()
        nodes = {name: self._state.node(name) for name in {name for _, name in members}}
        known = {name: node for name, node in nodes.items() if node is not None}
        return plan_checks.fitting(known, members)

    async def bind(self, gang: GangKey, assignment: Assignment, member: Member) -> None:
        """Bind a member, unless its node has no room for it now, or the room cannot be known."""
        if not self.fitting([(member, assignment.node)]):
            return  # the next cycle decides what became of the room, or waits for the watch
        logger.debug(
            "pod %s (%s): binding it to node %s; bound pods are seen up to version %d",
            *(assignment.pod, assignment.uid, assignment.node, self._state.pods.bound.newest),
        )
        self._state.pods.assume(member, assignment.node)
        try:
            await self._place(assignment, member)
        except (errors.Conflict, errors.Gone) as answer:
            pod = await self.reread(assignment.pod, assignment.uid)
            if pod is not None and pod.is_waiting and pod.version == assignment.version:
                # No change explains the refusal, so no event will tell when it ends.
                sentence = f"pod {assignment.pod}: binding refused: {answer}"
                self._back_off(gang, assignment, sentence, CONFLICT_SECONDS)
        except errors.Refused as refusal:
            self._state.pods.retract(assignment.uid)
            sentence = f"pod {assignment.pod}: binding refused: {refusal}"
            self._back_off(gang, assignment, sentence, REFUSED_SECONDS)
        except errors.Unavailable as trouble:
            if is_away(trouble):
                raise
            sentence = f"pod {assignment.pod}: binding failed: {trouble}"
            if await self.fence(member, sentence):
                self._back_off(gang, assignment, sentence, CONFLICT_SECONDS)
        else:
            self._state.refusals.forget(assignment.uid)

    async def _place(self, assignment: Assignment, member: Member) -> None:
        """Bind the member, or hand it over to kube-scheduler; nothing takes either back."""
        if member.bound_by is BoundBy.KUBE_SCHEDULER:
            self._take_in(await self._api.hand_over(assignment, self._clock()))
        else:
            await self._api.bind(assignment)
            self._state.pods.confirm(assignment.uid, self._clock())

    def _back_off(
        self, gang: GangKey, assignment: Assignment, sentence: str, seconds: float
    ) -> None:
        refusals, now = self._state.refusals, self._clock()
        refusals.back_off(assignment.uid, gang, sentence, seconds=seconds, now=now)

    @property
    def is_late(self) -> bool:
        """Whether the watch lags behind the answers of bindings."""
        return self._state.pods.late(self._clock()) >= LATE_SECONDS

    async def wait_for_watch(self) -> None:
        """Wait while the watch is late, but only for a limited time.

        An overloaded API server answers bindings long before it shows them. Room that other pods
        have taken meanwhile would then be used twice.
        """
        for _ in range(MOST_WAITS):
            if not self.is_late:
                return
            await asyncio.sleep(WAIT_SECONDS)

    async def fence(self, member: Member, sentence: str, reason: str = "SchedulerError") -> bool:
        """Change a pod, so that no binding or eviction sent before can still succeed.

        Returns whether that is certain. Otherwise the pod had changed already, and was read again.
        """
        condition = encode.SCHEDULED if member.node is None else encode.DISRUPTED
        # The version makes the message unique: a patch that changes nothing would not fence
        # anything.
        words = sentence.partition(encode.FENCE)[0][:SENTENCE_LIMIT]
        message = f"{words}{encode.FENCE}{member.version} will succeed)"
        why = encode.Why(reason, message, self._clock(), condition)
        try:
            pod = await self._api.say_of_pod(member, why)
        except (errors.Conflict, errors.Gone):
            return await self.reread(member.key, member.uid) is None
        self._state.pods.learn(pod)
        self._state.pods.retract(member.uid)
        return pod.version != member.version

    async def is_bound(self, member: Member) -> bool:
        """Whether a member counts as bound at this moment, whatever the watch shows."""
        try:
            pod = await self._api.read_member(member.key)
        except errors.Gone:
            return False
        return pod.uid == member.uid and pod.counts_as_bound

    async def reread(self, key: PodKey, uid: Uid) -> Member | None:
        """Read a pod whose binding had no clear answer; only the pod itself tells what happened."""
        try:
            pod = await self._api.read_member(key)
        except errors.Gone:
            pod = None
        if pod is None or pod.uid != uid:
            self._state.pods.forget(uid)
            return None
        self._take_in(pod)
        return pod

    def _take_in(self, pod: Member) -> None:
        """Take in a pod as the API server just showed it, after a call about it."""
        if pod.node is not None and not pod.is_handed_over:
            self._state.pods.assume(pod, pod.node)
            self._state.pods.confirm(pod.uid, self._clock())
        else:
            self._state.pods.learn(pod)
            self._state.pods.retract(pod.uid)
