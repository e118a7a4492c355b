"""Keeps kopf running, and lets its watches begin at lists of our own.

kopf has two gaps. It never learns which objects were deleted while one of its watches had expired,
and it ends at the first answer that it does not expect. This module fills both.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, NamedTuple, NoReturn

import aiohttp
import kopf

from ..kube import client, errors, list_watch, wire
from ..kube.client import Source

logger = logging.getLogger(__name__)

FIRST_WAIT = 0.2  # seconds after the first failure
LONGEST_WAIT = 5.0  # seconds; an API server that comes back is noticed within this time
NOT_FOUND = 404  # the API server's status for a kind that it does not know
CHECK_SECONDS = 60.0  # between two checks that kopf still watches
FIRST_CHECK = 10.0  # seconds until the first check; doubled with each failure
MOST_FAILURES = 5  # failures beyond this number do not lengthen the waits
SILENCE_SECONDS = client.WATCH_SECONDS + 3 * client.REQUEST_SECONDS  # kopf asks more often
NOTHING = "none,!none"  # a label selector that matches no object
FRESH_SECONDS = 2.0  # a watch begins at a list of ours that ended no longer ago than this
WATCHER = "watcher for "  # names of the tasks that kopf leaves running when one of them fails


class OwnList(NamedTuple):
    """The last list of a feed that we made."""

    version: str  # empty if the cluster did not have the kind
    ended: float  # loop time


class KopfLists:
    """What kopf watches, and whether the stores are as new as its watches."""

    def __init__(
        self,
        source: Source,
        feeds: Iterable[list_watch.Reflector[Any, Any]],
        on_current: Callable[[], None],
    ) -> None:
        """``feeds`` have different paths: kopf has one watch of each kind.

        ``on_current`` is called when the lists become current, which no change of an object shows.
        """
        self._source = source
        self._on_current = on_current
        self._feeds = {feed.stream.path: feed for feed in feeds}
        self._due: set[str] = set(self._feeds)
        self._absent: set[str] = set()  # optional feeds whose kind the cluster does not have
        self._asked: dict[str, float] = {}  # loop time of kopf's last request, by path
        self._watched: dict[str, int] = {}  # version that the last watch began at, by path
        self._listed: dict[str, OwnList] = {}  # our last list, by path
        self._kopf_listed: dict[str, str] = {}  # version of kopf's list, by path

    @property
    def is_current(self) -> bool:
        """Whether each feed is watched from a list of ours; until then, nothing may be decided."""
        return self._due <= self._absent

    def reset(self) -> None:
        """Trust no list made before now."""
        self._due = set(self._feeds)
        for by_path in (self._asked, self._watched, self._listed, self._kopf_listed):
            by_path.clear()

    async def list_all(self) -> None:
        """List all feeds; a watch that begins soon after begins there, without another list.

        Raises:
            errors.ApiError: a list failed; begin again.
        """
        for path in self._feeds:
            await self._list(path)

    async def _list(self, path: str) -> None:
        version = await list_watch.relist(self._source, self._feeds[path])
        self._listed[path] = OwnList(version, asyncio.get_running_loop().time())

    def _is_fresh(self, path: str) -> bool:
        """Whether we listed objects of the kind a short time ago.

        An older list may name gangs and pods that have gone since. A cycle might act on them before
        the watch has shown what has happened.
        """
        listed = self._listed.get(path, OwnList("", 0.0))
        age = asyncio.get_running_loop().time() - listed.ended
        return bool(listed.version) and age <= FRESH_SECONDS

    async def watch_from_own_list(
        self, request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Let kopf's watch begin at a list of our own, which is made now unless there is a new one.

        This is a middleware of kopf's session. kopf's own list gets a selector that matches
        nothing. Otherwise kopf would begin a worker for each object, and its list would only add
        objects: new members would then join members whose deletion was not seen. As long as kopf
        asks for the version of its own list, it gets that of ours.
        """
        path = next((feed for feed in self._feeds if request.url.path.endswith(feed)), None)
        if path is None:
            return await send(request)
        self._asked[path] = asyncio.get_running_loop().time()
        if "watch" not in request.url.query:
            if path not in self._due:
                self._due.add(path)
                self._listed.pop(path, None)
            request.url = request.url.update_query(labelSelector=NOTHING)
            return await send(request)
        version = request.url.query.get("resourceVersion", "0")
        if path in self._due:
            await self._list_unless_fresh(path, version)
            self._kopf_listed[path] = version
            self._due.discard(path)
            if self.is_current:
                self._on_current()
        if version == self._kopf_listed.get(path):
            version = self._listed[path].version or version  # none if the kind has gone
            request.url = request.url.update_query(resourceVersion=version)
        self._watched[path] = int(version)
        return await send(request)

    async def _list_unless_fresh(self, path: str, kopf_version: str) -> None:
        # Versions go back if etcd was restored between our list and that of kopf.
        if not self._is_fresh(path) or int(self._listed[path].version) > int(kopf_version):
            try:
                await self._list(path)
            except errors.ApiError as problem:
                raise aiohttp.ClientConnectionError(str(problem)) from problem  # kopf tries again

    async def run(
        self,
        registry: Callable[[Collection[str]], kopf.OperatorRegistry],
        *,
        begin: Callable[[], Awaitable[None]],
        began: Callable[[], None],
    ) -> NoReturn:
        """Run kopf, and restart it whenever it ends or no longer watches.

        ``registry`` makes the handlers of kopf, given the paths that kopf must not watch: the
        cluster does not have these kinds, and kopf would warn about each. ``begin`` is awaited
        before each restart, and returns once ``list_all`` has succeeded, as it must have before
        the first start. ``began`` is called after each start, because kopf then has set its own
        signal handlers.
        """
        failures, clock = 0, asyncio.get_running_loop().time
        while True:
            start = clock()
            self._absent = {path for path in self._feeds if await self._clear_if_absent(path)}
            tasks = await kopf.spawn_tasks(
                registry=registry(self._absent), clusterwide=True, standalone=True
            )
            began()
            checking = asyncio.create_task(self._until_unwatched(FIRST_CHECK * 2**failures))
            try:
                await asyncio.wait([*tasks, checking], return_when=asyncio.FIRST_COMPLETED)
                is_sound = self.is_current and clock() - start > CHECK_SECONDS
                failures = 0 if is_sound else min(failures + 1, MOST_FAILURES)
            finally:
                self.reset()
                checking.cancel()
                await _stop(tasks)
                self.reset()  # a request of kopf may have ended since
            why = _why([checking, *tasks]) or "it ended"
            wait = min(FIRST_WAIT * 2**failures, LONGEST_WAIT)
            logger.warning("kopf: %s. Will begin again in %.1f s", why, wait)
            await asyncio.sleep(wait)
            await begin()

    async def _until_unwatched(self, patience: float) -> str:
        """Wait until kopf's watches show nothing any more; return how that is known."""
        await asyncio.sleep(patience)
        while True:
            for path in self._feeds:
                if problem := await self._watch_problem(path):
                    return problem
            await asyncio.sleep(CHECK_SECONDS)

    async def _clear_if_absent(self, path: str) -> bool:
        """Forget the objects of an optional kind that the cluster lacks; return whether it does.

        A list may have shown some, and kopf will not watch that kind.
        """
        if not self._feeds[path].is_optional:
            return False
        try:
            if not self._is_fresh(path):
                await self._list(path)
        except errors.ApiError:
            return False  # the next list, by kopf or by us, will tell
        return not self._listed[path].version

    async def _is_absent(self, path: str) -> bool:
        """Whether the cluster does not have the kind of a feed, and need not have it."""
        if not self._feeds[path].is_optional:
            return False
        try:
            await self._source.page(self._feeds[path].stream)
        except errors.ApiError as problem:
            return problem.status == NOT_FOUND
        return False

    async def _watch_problem(self, path: str) -> str:
        name = self._feeds[path].stream.name
        if path in self._absent:
            return "" if await self._is_absent(path) else f"there are {name} now"
        now = asyncio.get_running_loop().time()
        if now - self._asked.get(path, -SILENCE_SECONDS) > SILENCE_SECONDS:
            return f"the {name} are not watched"
        if path in self._due or path not in self._watched:
            return ""  # a list is in progress
        try:
            page = wire.parse_page(await self._source.page(self._feeds[path].stream), wire.Object)
        except errors.ApiError:
            return ""  # kopf will notice
        if page.version.isdigit() and int(page.version) < self._watched[path]:
            return f"the versions of the {name} went back, as after a restore of etcd"
        return ""


async def persist(attempt: Callable[[], Awaitable[None]]) -> None:
    """Try until ``attempt`` succeeds, and log each new problem."""
    wait = FIRST_WAIT
    last_problem = ""
    while True:
        try:
            await attempt()
        except errors.ApiError as problem:
            sentence = str(problem)
            if problem.status == NOT_FOUND:
                sentence = "the CRDs are not installed: run `tutti crds | kubectl apply -f -`."
            if sentence != last_problem:
                logger.warning("%s Will look again", sentence)
                last_problem = sentence
            wait = min(wait * 2, LONGEST_WAIT)
            await asyncio.sleep(wait)
        else:
            return


async def _stop(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Stop kopf's root tasks, and the watchers that kopf leaves running when one of them fails."""
    left = {task for task in asyncio.all_tasks() if task.get_name().startswith(WATCHER)}
    left.update(tasks)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def _why(tasks: Iterable[asyncio.Task[Any]]) -> str:
    for task in tasks:
        if task.cancelled() or not task.done():
            continue
        if problem := task.exception():
            return str(problem) or repr(problem)
        if isinstance(problem := task.result(), str):
            return problem
    return ""
