"""Writes the status of each Queue whose status is not what it should be.

The figures of a queue change with every start of a gang, so they are written less often than
conditions. ``reporter`` writes the status of gangs.
"""

import logging
import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..kube import errors
from ..kube.backoff import Wait
from ..kube.client import Api
from ..kube.codec import encode
from ..kube.codec.queues import QueueObject, encode_past_use
from ..kube.concurrency import ConcurrencyLimit, is_away
from ..model.cluster import Snapshot
from ..model.decisions import Plan
from ..model.queues import ROOT
from ..queues import tree as queue_tree
from ..queues.tree import QueueTree
from ..state.cluster_state import ClusterState
from . import queue_status
from .reporter import AGAIN_SECONDS, CONFLICT_SECONDS

if TYPE_CHECKING:
    from ..model.keys import Uid

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0  # between two looks at all queues
FIGURE_SECONDS = 5.0  # between two writes of one queue's figures, at least
WRITES_PER_SECOND = 10  # of figures, over all queues
WRITES_PER_LOOK = 50  # so that many queues do not delay the next binding
REFUSED_SECONDS = 30.0  # until a refused write is tried again
IN_FLIGHT = 16


class _StatusUpdate(NamedTuple):
    """The status that a Queue should have."""

    queue: QueueObject
    status: Mapping[str, Any]
    is_news: bool  # a condition has turned


class _Pause(NamedTuple):
    """A time without writes to a Queue whose last write failed."""

    wait: Wait
    version: str = ""  # not empty: the pause also ends once the Queue has another resourceVersion


class QueueReporter:
    """Keeps the status of all Queues up to date, with one write for each status that changes."""

    def __init__(
        self, state: ClusterState, api: Api, scheduler: str, *, half_life: float = 0.0
    ) -> None:
        """``scheduler`` is the name that pods ask for.

        ``half_life`` is that of past use, in seconds; if it is 0, no past use is recorded.
        """
        self._state = state
        self._api = api
        self._scheduler = scheduler
        self._half_life = half_life
        self._limit = ConcurrencyLimit(IN_FLIGHT)
        self._looked_at = -math.inf  # when the queues were last looked at
        self._written: dict[Uid, float] = {}  # when each status was last written
        self._pauses: dict[Uid, _Pause] = {}

    async def report(self, snapshot: Snapshot, plan: Plan) -> float | None:
        """Write the statuses that changed; return in how many seconds to call again, if ever.

        Raises:
            errors.Unavailable: the API server is away.
        """
        now = snapshot.taken_at
        if not snapshot.queues:
            return None
        if 0.0 <= (since := now - self._looked_at) < LOOK_SECONDS:
            return LOOK_SECONDS - since
        self._looked_at = now
        here = {queue.uid for queue in snapshot.queues}
        # If the clock went back, the last writes count as made now.
        self._written = {uid: min(at, now) for uid, at in self._written.items() if uid in here}
        versions = {read.queue.uid: read.version for read in self._state.queues}
        self._pauses = {
            uid: pause
            for uid, pause in self._pauses.items()
            if uid in here and pause.wait.left(now) and pause.version in ("", versions.get(uid))
        }
        updates = sorted(self._updates(snapshot, plan), key=self._turn)
        wait = max(FIGURE_SECONDS, len(here) / WRITES_PER_SECOND)
        due: list[_StatusUpdate] = []
        later = math.inf
        for update in updates:
            uid = update.queue.queue.uid
            ready = self._written.get(uid, -math.inf) + (0.0 if update.is_news else wait)
            if pause := self._pauses.get(uid):
                ready = max(ready, pause.wait.until)
            if ready > now or len(due) == WRITES_PER_LOOK:
                later = min(later, max(ready, now + LOOK_SECONDS))
            else:
                due.append(update)
        await self._limit.all(partial(self._write, update, now) for update in due)
        later = min([later, *(pause.wait.until for pause in self._pauses.values())])
        return None if later == math.inf else later - now

    def _updates(self, snapshot: Snapshot, plan: Plan) -> Iterator[_StatusUpdate]:
        """The Queues whose status is not what it should be."""
        tree = QueueTree.of(snapshot.queues)
        faults: dict[str, list[queue_tree.Finding]] = {}
        for fault in queue_tree.findings(snapshot.queues, dict(snapshot.allocatable.amounts)):
            faults.setdefault(fault.queue, []).append(fault)
        uses = {use.name: use for use in plan.queues}
        at = encode.timestamp(snapshot.taken_at)
        for read in self._state.queues:
            queue, observed = read.queue, read.status
            if tree.queues.get(queue.name) != queue or queue.name == ROOT:
                continue  # the Queue has changed since the Snapshot; the next cycle reports on it
            use = uses.get(queue.name, queue_status.NO_USE)
            conditions = queue_status.conditions(
                tree,
                queue.name,
                faults.get(queue.name, ()),
                is_empty=not use.charged.amounts,
                beyond=use.stopped_in_shadow,
            )
            status = queue_status.status(
                queue,
                use,
                conditions,
                observed,
                generation=read.generation,
                scheduler=self._scheduler,
                at=at,
            )
            # The Tutti of another scheduler name may have written the same.
            writer = observed.get("schedulerName", self._scheduler)
            past = queue_status.past_use(queue, use, self._half_life, snapshot.taken_at)
            if past != queue.past_use:
                status = {**status, "pastUse": None if past is None else encode_past_use(past)}
            elif {**status, "schedulerName": writer} == observed:
                continue
            yield _StatusUpdate(read, status, queue_status.is_news(status, observed))

    def _turn(self, update: _StatusUpdate) -> tuple[bool, float, str]:
        """The order of writes: turned conditions first, then the queues written longest ago."""
        queue = update.queue.queue
        return not update.is_news, self._written.get(queue.uid, -math.inf), queue.name

    async def _write(self, update: _StatusUpdate, now: float) -> None:
        queue = update.queue.queue
        try:
            self._state.learn_queue(await self._api.write_queue_status(update.queue, update.status))
        except errors.ApiError as problem:
            if is_away(problem):
                raise
            match problem:
                case errors.Conflict():  # the Queue has changed, which the watch will show
                    seconds, version = CONFLICT_SECONDS, update.queue.version
                case errors.Gone():
                    seconds, version = REFUSED_SECONDS, update.queue.version
                case errors.Refused():
                    seconds, version = REFUSED_SECONDS, ""
                case _:
                    seconds, version = AGAIN_SECONDS, ""
            self._pauses[queue.uid] = _Pause(Wait.begun(now, seconds), version)
            if not version:
                logger.error("the status of queue %s was not written: %s", queue.name, problem)  # noqa: TRY400
        else:
            self._written[queue.uid] = now
