"""One kind's list and watch, with every event kept.

Separate from the Witness, which is about when to start and to stop. A watch that the server has
forgotten is listed again, and the revisions in between are marked as a gap.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import aiohttp

from .history import FOREIGN, Body, Change, Event, Gap, Kind

RETRY_SECONDS = 0.1
APPEAR_SECONDS = 0.5  # between two looks for a kind that most clusters never have
SETTLED_SECONDS = 0.05  # a refused watch says so at once
OPTIONAL = (
    Kind.QUEUES,
    Kind.TOPOLOGIES,
    Kind.KUEUE_TOPOLOGIES,
    Kind.KAI_TOPOLOGIES,
    Kind.DEVICE_CLAIMS,
    Kind.DEVICE_SLICES,
)
WATCH_SECONDS = 300
CLOSING_SECONDS = 1  # what a watch still owes comes first, at once
QUIET_SECONDS = 0.1
LAG_SECONDS = 1.0  # while connected, no stream is further behind the others than this
_RETRIED = (aiohttp.ClientError, OSError, TimeoutError, json.JSONDecodeError)


class ExpiredError(Exception):
    """The server no longer has the events after our revision."""


class Progress:
    """The highest revision that any stream has seen, and when."""

    def __init__(self) -> None:
        self._samples: list[tuple[float, int]] = [(0.0, 0)]

    def note(self, revision: int) -> None:
        """Take in a revision."""
        if revision > self._samples[-1][1]:
            self._samples.append((time.monotonic(), revision))

    def surely_seen(self) -> int:
        """Give what every connected stream has seen: what any had, a moment ago."""
        limit = time.monotonic() - LAG_SECONDS
        return next((revision for at, revision in reversed(self._samples) if at <= limit), 0)


class Follower:
    """Follows one kind from an exact revision; what it has seen is in ``events`` and ``gaps``."""

    def __init__(self, session: aiohttp.ClientSession, kind: Kind, progress: Progress) -> None:
        self.kind = kind
        self.events: list[Event] = []
        self.gaps: list[Gap] = []
        self.settled = asyncio.Event()
        self.is_watching = False
        self._session = session
        self._progress = progress
        self._revision: int | None = None  # None: the kind does not exist (yet)
        self._sure = 0
        self._known: dict[str, Body] = {}

    @property
    def is_absent(self) -> bool:
        """Whether the cluster does not have the kind, and need not have it."""
        return self._revision is None and self.kind in (*FOREIGN.values(), *OPTIONAL)

    async def begin(self, revision: int | None) -> int | None:
        """Take the state at this revision, or now, as initial; gives the revision."""
        listed = await self._list(revision)
        if listed is None:
            self.settled.set()
            return None
        self._revision, items = listed
        for body in items:
            self._keep(Change.INITIAL, body, _revision(body))
        return self._revision

    async def follow(self) -> None:
        """Watch for ever; an API server that is away is waited for."""
        while True:
            try:
                await self._follow_once(WATCH_SECONDS)
            except _RETRIED:
                await asyncio.sleep(RETRY_SECONDS)

    async def close(self) -> None:
        """See everything that had happened before this call."""
        while True:
            try:
                listed = await self._list(None)
                await self._close_once(listed[1] if listed else [])
            except _RETRIED:
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    async def _close_once(self, items: list[Body]) -> None:
        if self._revision is None:
            await self._appear()
            return
        target = _revisions(items)
        lines = self._lines(CLOSING_SECONDS)
        try:
            while True:
                is_there = self._has_reached(target)
                async with asyncio.timeout(QUIET_SECONDS if is_there else None):
                    line = await anext(lines, None)
                if line is not None:
                    self._take(line)
                elif is_there:
                    return
                else:  # the watch has ended before it showed what it owes, or more has happened
                    listed = await self._list(None)
                    target = _revisions(listed[1] if listed else [])
                    lines = self._lines(CLOSING_SECONDS)
        except TimeoutError:
            return
        except ExpiredError:
            await self._relist()
        finally:
            await lines.aclose()

    def _has_reached(self, target: dict[str, int]) -> bool:
        return self._known.keys() == target.keys() and all(
            _revision(self._known[uid]) >= revision for uid, revision in target.items()
        )

    async def _follow_once(self, seconds: int) -> None:
        if self._revision is None and not await self._appear():
            await asyncio.sleep(APPEAR_SECONDS if self.is_absent else RETRY_SECONDS)
            return
        try:
            async with aclosing(self._lines(seconds)) as lines:
                async for line in lines:
                    self._take(line)
        except ExpiredError:
            await self._relist()
        finally:
            self._sure = max(self._revision or 0, self._progress.surely_seen())

    async def _appear(self) -> bool:
        """Look whether the kind exists now; all its objects are then new."""
        listed = await self._list(None)
        if listed is None:
            return False
        self._revision, items = listed
        for body in items:
            self._keep(Change.ADDED, body, _revision(body))
        return True

    async def _relist(self) -> None:
        """Replace what is known by what is there, and mark the gap."""
        listed = await self._list(None)
        upto, items = listed or (self._sure, [])
        there = {body["metadata"]["uid"]: body for body in items}
        for uid in self._known.keys() - there.keys():
            self._keep(Change.DELETED, self._known[uid], upto)
        for uid, body in there.items():
            old = self._known.get(uid)
            if old is None or _revision(old) != _revision(body):
                change = Change.ADDED if old is None else Change.MODIFIED
                self._keep(change, body, _revision(body))
        after = max(self._revision or 0, self._sure)
        if self.settled.is_set() and upto > after:
            self.gaps.append(Gap(self.kind, after, upto))
        self._revision = upto if listed else None

    async def _list(self, revision: int | None) -> tuple[int, list[Body]] | None:
        """List now, by quorum, or at an exact revision; None where the kind does not exist."""
        query = {}
        if revision is not None:
            query = {"resourceVersion": str(revision), "resourceVersionMatch": "Exact"}
        limit = aiohttp.ClientTimeout(total=30)
        async with self._session.get(self.kind, params=query, timeout=limit) as response:
            if response.status == 404:
                return None
            response.raise_for_status()
            answer = await response.json(content_type=None)
        return int(answer["metadata"]["resourceVersion"]), answer.get("items") or []

    async def _lines(self, seconds: int) -> AsyncGenerator[dict[str, Any], None]:
        """Watch from our revision; aiohttp's own line reader refuses lines above its buffer."""
        query = {
            "watch": "1",
            "resourceVersion": str(self._revision),
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        limit = aiohttp.ClientTimeout(total=None, sock_connect=5)
        async with self._session.get(self.kind, params=query, timeout=limit) as response:
            if response.status in (404, 410):
                raise ExpiredError
            response.raise_for_status()
            loop = asyncio.get_running_loop()
            settling = loop.call_later(SETTLED_SECONDS, self._settle)
            rest = b""
            try:
                async for chunk in response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        yield json.loads(line)
            finally:
                settling.cancel()
                self.is_watching = False
                if response.connection and response.connection.transport:
                    response.connection.transport.abort()  # a watch has no polite end

    def _settle(self) -> None:
        self.is_watching = True
        self.settled.set()

    def _take(self, line: dict[str, Any]) -> None:
        body = line["object"]
        if line["type"] == "ERROR":
            if body.get("code") == 410:
                raise ExpiredError
            raise aiohttp.ClientError(body.get("message"))
        revision = _revision(body)
        if line["type"] != "BOOKMARK":
            self._keep(Change(line["type"]), body, revision)
        self._revision = max(self._revision or 0, revision)

    def _keep(self, change: Change, body: Body, revision: int) -> None:
        body["metadata"].pop("managedFields", None)
        uid = body["metadata"]["uid"]
        self.events.append(Event(self.kind, change, revision, body))
        if change is Change.DELETED:
            self._known.pop(uid, None)
        else:
            self._known[uid] = body
        self._progress.note(revision)


def _revisions(items: list[Body]) -> dict[str, int]:
    return {body["metadata"]["uid"]: _revision(body) for body in items}


def _revision(body: Body) -> int:
    return int(body["metadata"]["resourceVersion"])
