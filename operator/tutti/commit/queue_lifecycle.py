"""Writes of Queues: since when they drain, since when there are any, and finalizers.

A plan obeys these, so they are written before it. A queue that is deleted while gangs are charged
to it must not vanish with its limit. Tutti may stop after any call: the state is read from the
Queues themselves, and the next cycle writes what is missing.
"""

import logging
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial

from ..kube import errors
from ..kube.backoff import REFUSED_SECONDS, Clock, Wait
from ..kube.client import Api
from ..kube.codec.encode import moment
from ..kube.codec.queues import FINALIZER, QueueObject
from ..kube.concurrency import ConcurrencyLimit, is_away
from ..kube.leader_election import assert_leader
from ..model.cluster import Snapshot
from ..model.decisions import Plan
from ..model.keys import LeaderTerm, Uid
from ..model.queues import Stop
from ..state.cluster_state import ClusterState

logger = logging.getLogger(__name__)

CONFLICT_SECONDS = 1.0  # a watch shows a change of a Queue within milliseconds
FAILED_SECONDS = 5.0  # until a write that met a broken server is tried again
OLD_CRD_SECONDS = 300.0  # until a field that an old CRD has dropped is written again


class QueueLifecycle:
    """Keeps the finalizer of each Queue, and the times when its drain and all Queues began."""

    def __init__(
        self, state: ClusterState, api: Api, *, limit: ConcurrencyLimit, clock: Clock
    ) -> None:
        self._state = state
        self._api = api
        self._limit = limit
        self._clock = clock
        self._waits: dict[Uid, Wait] = {}  # of Queues that are left alone after a refused write
        self._old_crd: Wait | None = None  # in which no time of the first Queue is written

    async def prepare(self) -> None:
        """Before a plan, give each Queue its finalizer and note what it must remember.

        That is the time when its drain began, and the time when plans began to have Queues.

        If the API server refuses a write, it is tried again later, and stops no plan.

        Raises:
            errors.Unavailable: the API server is away.
        """
        if (since := self._queues_since()) is not None and not self._has_old_crd:
            await self._limit.all(
                partial(self._note_queues, queue, since)
                for queue in self._writable()
                if queue.queue.queues_since != since
            )
        await self._limit.all(partial(self._hold, queue) for queue in self._lacking_finalizer())
        await self._limit.all(partial(self._note_drain, queue) for queue in self._drains_to_note())

    async def release(self, planned: Snapshot, plan: Plan, term: LeaderTerm) -> None:
        """Let deleted Queues go if no gang is charged to them in the Snapshot of the plan.

        None goes before all others know since when there are Queues, if the CRD has a field for it.

        The Snapshot must show them as deleted already: then this plan and later plans start no gang
        in them. If another replica leads by now, it may have started gangs, so the Lease is
        checked.

        Raises:
            errors.Unavailable: the API server is away.
            Deposed: another replica leads.
        """
        staying = (read.queue for read in self._state.queues if not read.queue.is_terminating)
        is_recorded = self._has_old_crd or all(q.queues_since is not None for q in staying)
        if not (is_recorded and any(queue.is_terminating for queue in planned.queues)):
            return
        unused = {use.name for use in plan.queues if not use.charged.amounts}
        ending = {
            queue.uid for queue in planned.queues if queue.is_terminating and queue.name in unused
        }
        empty = [
            queue
            for queue in self._writable()
            if queue.queue.uid in ending and FINALIZER in queue.finalizers
        ]
        if empty:
            await assert_leader(self._api, term)
        await self._limit.all(partial(self._let_go, queue) for queue in empty)

    def next_retry(self) -> float | None:
        """The seconds until a refused write is due again; None if there is none."""
        now = self._clock()
        return min((wait.left(now) for wait in self._waits.values()), default=None)

    def _writable(self) -> Sequence[QueueObject]:
        now = self._clock()
        here = {queue.queue.uid for queue in self._state.queues}
        self._waits = {u: wait for u, wait in self._waits.items() if u in here and wait.left(now)}
        return [queue for queue in self._state.queues if queue.queue.uid not in self._waits]

    def _lacking_finalizer(self) -> Sequence[QueueObject]:
        """Queues without our finalizer that are not being deleted: these cannot get one."""
        return [
            queue
            for queue in self._writable()
            if FINALIZER not in queue.finalizers and not queue.queue.is_terminating
        ]

    def _drains_to_note(self) -> Sequence[QueueObject]:
        """The Queues that drain without a time, or have the time of a drain that has ended."""
        return [
            queue
            for queue in self._writable()
            if (queue.queue.stop is Stop.DRAIN) != (queue.queue.draining_since is not None)
        ]

    def _queues_since(self) -> float | None:
        """Since when plans have had Queues; None if there are none.

        It is recorded in all of them. An older version has recorded nothing, and left a finalizer.
        Then it is the creation of the first Queue.
        """
        queues = [read.queue for read in self._state.queues]
        recorded = [queue.queues_since for queue in queues if queue.queues_since is not None]
        if not recorded and any(FINALIZER in read.finalizers for read in self._state.queues):
            recorded = [queue.created for queue in queues]
        return min(recorded or [self._clock()]) if queues else None

    async def _note_queues(self, queue: QueueObject, since: float) -> None:
        status = {"queuesSince": moment(since)}
        what = "the time when Queues began"
        written = await self._write(queue, what, self._api.write_queue_status(queue, status))
        if written is not None and written.queue.queues_since is None and not self._has_old_crd:
            self._old_crd = Wait.begun(self._clock(), OLD_CRD_SECONDS)
            logger.error(
                "the CRD of Queues is of an older version and drops status.queuesSince: apply the "
                "CRDs of this version"
            )

    @property
    def _has_old_crd(self) -> bool:
        return self._old_crd is not None and self._old_crd.left(self._clock()) > 0

    async def _hold(self, queue: QueueObject) -> None:
        finalizers = (*queue.finalizers, FINALIZER)
        await self._write(queue, "its finalizer", self._api.set_finalizers(queue, finalizers))

    async def _note_drain(self, queue: QueueObject) -> None:
        since = moment(self._clock()) if queue.queue.stop is Stop.DRAIN else None
        status: Mapping[str, str | None] = {"drainingSince": since}
        await self._write(
            queue, "the time of its drain", self._api.write_queue_status(queue, status)
        )

    async def _let_go(self, queue: QueueObject) -> None:
        rest = [name for name in queue.finalizers if name != FINALIZER]
        logger.info("queue %s: deleted, and no gang is charged to it: it goes", queue.queue.name)
        await self._write(queue, "its end", self._api.set_finalizers(queue, rest))

    async def _write(
        self, queue: QueueObject, what: str, call: Awaitable[QueueObject]
    ) -> QueueObject | None:
        """Make one write and return the new Queue; if refused, the Queue is left alone a while."""
        try:
            written = await call
        except errors.Gone:
            pass  # the watch will show it
        except errors.ApiError as problem:
            if is_away(problem):
                raise
            if isinstance(problem, errors.Conflict):
                self._waits[queue.queue.uid] = Wait.begun(self._clock(), CONFLICT_SECONDS)
                return None  # it has changed, which the watch will show
            is_final = isinstance(problem, errors.Refused)
            seconds = REFUSED_SECONDS if is_final else FAILED_SECONDS
            self._waits[queue.queue.uid] = Wait.begun(self._clock(), seconds)
            logger.error("queue %s: %s was not written: %s", queue.queue.name, what, problem)  # noqa: TRY400
        else:
            self._state.learn_queue(written)
            return written
        return None
