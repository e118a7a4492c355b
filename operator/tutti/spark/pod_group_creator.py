"""Creates the PodGroups of applications from the fields of their waiting pods.

This takes no room in the cluster, so it is not part of the commit. It runs before each plan, so
that a new application is planned at once. Any replica that leads may create a missing PodGroup.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import spark
from ..kube import errors
from ..kube.backoff import Wait
from ..kube.client import Api
from ..kube.concurrency import Calling, ConcurrencyLimit, is_away
from ..model.applications import ApplicationPod, ConfigMapKey
from ..model.cluster import Member
from ..state.cluster_state import ClusterState
from . import task_groups

if TYPE_CHECKING:
    from ..model.keys import Uid

logger = logging.getLogger(__name__)

FIRST_SECONDS = 0.5  # the first wait; spark-submit creates the ConfigMap right after the driver
LONGEST_SECONDS = 30.0  # the longest wait; an error usually lasts until a user corrects it
MOST_AT_ONCE = 100  # so that no PodGroup is created long after its driver was looked at
DECLARE_SECONDS = 1.0  # how long a cycle waits, so that many drivers delay no binding


class PodGroupCreator:
    """Creates PodGroups; it remembers only when to try again."""

    def __init__(
        self,
        state: ClusterState,
        api: Api,
        *,
        scheduler: str,
        clock: Callable[[], float],
        in_flight: int,
        patience: float,
    ) -> None:
        """``scheduler`` is our scheduler name; executors that name another do not count.

        A cycle waits for at most ``patience`` seconds.
        """
        self._state = state
        self._api = api
        self._scheduler = scheduler
        self._clock = clock
        self._gate = ConcurrencyLimit(in_flight)
        self._reading = asyncio.Lock()
        self._patience = patience
        self._under_way: asyncio.Future[None] | None = None
        self._waits: dict[Uid, Wait] = {}

    async def declare(self) -> None:
        """Create the PodGroups that waiting Spark pods lack, or record why one cannot be created.

        Calls that take longer than a cycle waits continue beside it, and a later cycle gets their
        result.

        Raises:
            errors.Unavailable: the API server is away.
        """
        if self._under_way is None:
            if not (to_make := self._calls_to_make()):
                return
            self._under_way = asyncio.ensure_future(self._gate.all(to_make))
        calls = self._under_way
        await asyncio.wait([calls], timeout=self._patience)
        if calls.done():
            self._under_way = None
            calls.result()

    def forget(self) -> None:
        """Cancel the calls that are under way; the next leader makes them."""
        if self._under_way is not None:
            self._under_way.cancel()
            self._under_way = None

    def _calls_to_make(self) -> Sequence[Calling]:
        """The calls to make now, half for new pods, the oldest first, half for those due longest.

        If there are few of one kind, the other has more.
        """
        now, waiting = self._clock(), self._state.undeclared()
        here = {member.uid for member in waiting}
        self._waits = {uid: wait for uid, wait in self._waits.items() if uid in here}
        new = [member for member in waiting if member.uid not in self._waits]
        tried = [member for member in waiting if member.uid in self._waits]
        due = [member for member in tried if not self._waits[member.uid].left(now)]
        due.sort(key=lambda member: self._waits[member.uid].end(now))
        half = MOST_AT_ONCE // 2
        return [
            partial(self._try, member, member.application)
            for member in (*new[:half], *due[:half], *new[half:], *due[half:])[:MOST_AT_ONCE]
            if member.application is not None
        ]

    def next_retry(self) -> float | None:
        """In how many seconds the next try is due; None if no pod waits for a PodGroup."""
        now = self._clock()
        waits = [self._waits.get(member.uid) for member in self._state.undeclared()]
        return min((0.0 if wait is None else wait.left(now) for wait in waits), default=None)

    async def _try(self, member: Member, app: ApplicationPod) -> None:
        try:
            group = await self._group_of(member, app)
            created = await self._api.declare(member.key.namespace, group)
        except (spark.BadProperty, spark.BadProperties, task_groups.BadTaskGroups) as problem:
            self._put_off(member, str(problem))
        except errors.Conflict:
            # It was created in a cycle before, which a watch will show; or for another pod.
            self._put_off(
                member, f"there is a PodGroup {app.app} already, and it is not this pod's"
            )
        except errors.ApiError as problem:
            if is_away(problem):
                raise
            self._put_off(member, f"PodGroup {app.app} cannot be made: {problem}")
        else:
            self._state.learn_group(created)
            name = created.key.name
            logger.info("pod %s: made PodGroup %s for its application", member.key, name)

    async def _group_of(self, member: Member, app: ApplicationPod) -> dict[str, Any]:
        if not app.is_spark:
            return task_groups.group(member, app)
        return spark.group(member, app, await self._size_of(member, app))

    async def _size_of(self, member: Member, app: ApplicationPod) -> spark.ApplicationSize:
        if (size := spark.declared_size(member, app, self._scheduler)) is not None:
            return size
        if app.properties is None:
            raise spark.BadProperties(
                "the driver mounts no ConfigMap with spark.properties: name a PodGroup for its pods"
            )
        space = member.key.namespace
        properties = await self._text(space, app.properties)
        template = None if app.template is None else await self._text(space, app.template)
        try:
            # Large texts take a while. Only one is read at a time: planning needs a thread, too.
            async with self._reading:
                return await asyncio.to_thread(
                    spark.by_properties, properties, template, member, self._scheduler
                )
        except (spark.BadProperty, spark.BadProperties) as problem:
            where = f"ConfigMap {app.properties.config_map}"
            raise spark.BadProperties(f"{where}: {problem}") from problem

    async def _text(self, namespace: str, key: ConfigMapKey) -> str:
        name = key.config_map
        try:
            text = await self._api.read_text(namespace, key)
        except errors.Gone as problem:
            raise spark.BadProperties(f"ConfigMap {name} does not exist yet") from problem
        except errors.Refused as problem:
            raise spark.BadProperties(f"ConfigMap {name} cannot be read: {problem}") from problem
        if text is None:
            raise spark.BadProperties(f"ConfigMap {name} has no text {key.key}")
        return text

    def _put_off(self, member: Member, sentence: str) -> None:
        wait = self._waits.get(member.uid)
        seconds = FIRST_SECONDS if wait is None else min(2 * wait.seconds, LONGEST_SECONDS)
        self._waits[member.uid] = Wait.begun(self._clock(), seconds)
        self._state.explain(member.uid, sentence)
