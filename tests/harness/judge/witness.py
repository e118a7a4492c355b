"""The Witness: watches pods, nodes, gangs, claims and Reservations in a thread during a test.

It writes nothing. Its start and its end are exact revisions, the same for all kinds, so that
what it tells is complete between them but for marked gaps.
"""

import asyncio
from collections.abc import Collection, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

from .background import Answer, Background
from .following import RETRY_SECONDS, Follower, Progress
from .history import FOREIGN, TUTTI_READS, Gap, History, Kind
from .kubeconfig import read_door

START_SECONDS = 20.0
STOP_SECONDS = 20.0


class WitnessError(Exception):
    """The API server did not answer in time, so that nothing certain can be told."""


class Witness:
    """Sees every change of pods, nodes, PodGroups, claims and Reservations from start to stop."""

    def __init__(self, kubeconfig: Path, gang_sources: Collection[str] = TUTTI_READS) -> None:
        """``gang_sources`` are the kinds of others that declare gangs for Tutti, by resource."""
        self._kubeconfig = kubeconfig
        unread = {kind for name, kind in FOREIGN.items() if name not in gang_sources}
        self._kinds = [kind for kind in Kind if kind not in unread]
        self._background = Background("witness")
        self._session: aiohttp.ClientSession | None = None
        self._followers: tuple[Follower, ...] = ()
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._start = 0
        self._end: int | None = None
        self._began = self._ended = datetime.now(UTC)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        except WitnessError:
            if error is None:  # else the test's own error says more
                raise

    def start(self) -> None:
        """Return once the state of one revision is known and every watch runs from it."""
        self._began = datetime.now(UTC)
        self._background.start()
        try:
            self._run(self._open(), START_SECONDS)
        except BaseException:
            self._leave()
            raise

    def stop(self) -> None:
        """Return once everything that happened before this call is known; again is harmless."""
        if not self._background.is_running:
            return
        try:
            self._end = self._run(self._reach_now(), STOP_SECONDS)
            self._ended = datetime.now(UTC)
        finally:
            self._leave()

    @property
    def is_watching(self) -> bool:
        """Whether every watch runs, as it does not for a while after the API server was away."""
        return all(follower.is_watching or follower.is_absent for follower in self._followers)

    def history(self) -> History:
        """Give what was seen, from the start's revision to the end's."""
        if self._end is None:
            raise WitnessError("the witness has not been stopped, or could not finish")
        gaps = [
            gap for follower in self._followers for gap in follower.gaps if gap.upto > self._start
        ]
        return History.of(
            (
                event
                for follower in self._followers
                for event in follower.events
                if event.revision <= self._end
            ),
            start=self._start,
            gaps=(Gap(gap.kind, max(gap.after, self._start), gap.upto) for gap in gaps),
            began=self._began,
            ended=self._ended,
        )

    async def _open(self) -> None:
        door = read_door(self._kubeconfig)
        self._session = aiohttp.ClientSession(
            door.server,
            headers=door.headers,
            connector=aiohttp.TCPConnector(ssl=door.tls or True),
        )
        while True:
            try:
                await self._begin(self._session)
            except (aiohttp.ClientError, OSError, TimeoutError):
                await asyncio.sleep(RETRY_SECONDS)
            else:
                break
        self._tasks = tuple(asyncio.create_task(follower.follow()) for follower in self._followers)
        await asyncio.gather(*(follower.settled.wait() for follower in self._followers))

    async def _begin(self, session: aiohttp.ClientSession) -> None:
        """List all kinds at one revision: that of the first, read by quorum."""
        progress = Progress()
        followers = tuple(Follower(session, kind, progress) for kind in self._kinds)
        revision = None
        for follower in followers:
            at = await follower.begin(revision)
            revision = revision or at
        self._followers, self._start = followers, revision or 0

    async def _reach_now(self) -> int:
        assert self._session is not None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        last = Follower(self._session, Kind.PODS, Progress())
        while True:
            try:
                now = await last.begin(None)
            except (aiohttp.ClientError, OSError, TimeoutError):
                await asyncio.sleep(RETRY_SECONDS)
            else:
                break
        await asyncio.gather(*(follower.close() for follower in self._followers))
        return now or 0

    def _run(self, work: Coroutine[Any, Any, Answer], seconds: float) -> Answer:
        try:
            return self._background.run(work, seconds)
        except TimeoutError as error:
            raise WitnessError(f"no answer of the API server in {seconds:g} s") from error

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    def _leave(self) -> None:
        self._background.run(self._close(), STOP_SECONDS)
        self._background.leave()
