"""A live cluster: listed once in the operator's order, then watched; names unreadable kinds.

A kind that the user may not read in the whole cluster is read in one namespace.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from ..kube import errors, list_watch
from ..kube.calls import Right, Stream
from ..kube.client import Source
from ..kube.gang_sources import ALWAYS, GangSource
from ..model.cluster import Snapshot
from ..model.keys import GangKey
from ..state.cluster_state import ClusterState
from ..state.reflectors import (
    Reflector,
    capacities_into,
    device_classes_into,
    devices_into,
    reflectors_into,
    storage_into,
)
from . import operator_figures
from .observation import MissingKind, Observation, Record, WrongQuestion

FORBIDDEN, NOT_FOUND = 403, 404
MOST_EVENTS = 100
CLAIM_SECONDS = 1.0  # seconds between two checks for a first pod with claims


class Api(Source, operator_figures.Reader, Protocol):
    """Lists, watches and single reads."""


class LiveCluster:
    """The part of a cluster that the user may read, as it changes."""

    is_live = True

    def __init__(
        self,
        api: Api,
        title: str,
        scheduler: str,
        served: Sequence[str] = (),
        *,
        sources: Sequence[GangSource] = ALWAYS,
        reads_devices: bool = True,
        binds_volumes: bool = True,
        hands_over: bool = False,
        namespace: str = "default",
        now: Callable[[], float],
    ) -> None:
        """``namespace`` is read where the cluster may not be; ``now`` is the time since 1970.

        PodDisruptionBudgets and Jobs are read even if preemption is off: what-if questions may turn
        it on.
        ``reads_devices`` and ``binds_volumes`` are as of ``ClusterState``.
        If Tutti ``hands_over``, pods that kube-scheduler binds for it are read.
        """
        self.title = title
        self._now = now
        self._scheduler = scheduler
        self._namespace = namespace
        self._state = state = ClusterState(
            self._wake, reads_devices=reads_devices, binds_volumes=binds_volumes
        )
        feeds = reflectors_into(
            self._state,
            scheduler,
            served,
            sources=sources,
            preempts=True,
            hands_over=hands_over,
        )
        self._feeds = list(feeds)
        # What claims need, and whether a pod names such a claim.
        self._claim_feeds: Sequence[tuple[Sequence[Reflector], Callable[[], bool]]] = (
            (storage_into(state), lambda: state.storage.are_wanted),
            (capacities_into(state), lambda: state.storage.needs_capacities),
            (device_classes_into(state), lambda: state.devices.are_classes_wanted),
            (devices_into(state), lambda: state.devices.are_wanted),
        )
        every = (*self._feeds, *(feed for feeds, _ in self._claim_feeds for feed in feeds))
        optional = frozenset(feed.stream.name for feed in every if feed.is_optional)
        self._api = _Noting(api, self._wake, optional)
        self._version = 1
        self._observed: Observation | None = None
        self._change = asyncio.Event()
        self.is_listed = asyncio.Event()

    async def follow(self) -> None:
        """List everything, then watch it, until this is cancelled."""
        versions = [
            (feed, version) for feed in self._feeds for feed, version in [await self._list(feed)]
        ]
        for feeds, are_wanted in self._claim_feeds:
            for feed in feeds if are_wanted() else ():
                await self._list(feed)
        self.is_listed.set()
        self._wake()
        async with asyncio.TaskGroup() as tasks:
            for feed, version in versions:
                tasks.create_task(list_watch.follow(self._api, feed, version))
            for feeds, are_wanted in self._claim_feeds:
                tasks.create_task(self._follow_once_wanted(feeds, are_wanted))

    async def _list(self, feed: Reflector) -> tuple[Reflector, str]:
        """List once; return the feed to watch, perhaps of one namespace, and its version."""
        with suppress(errors.ApiError):
            return feed, await list_watch.relist(self._api, feed)
        missing = self._api.missing.get(feed.stream.name)
        if missing is not None and missing.is_forbidden and (own := self._in_namespace(feed)):
            with suppress(errors.ApiError):
                version = await list_watch.relist(self._api, own)
                sentence = f"{missing.sentence}; shown is namespace {self._namespace}"
                self._api.narrowed[feed.stream.name] = missing._replace(sentence=sentence)
                return own, version
            self._api.missing[feed.stream.name] = missing
        return feed, ""

    def _in_namespace(self, feed: Reflector) -> Reflector | None:
        stream = feed.stream
        if stream.lists.resource in ("nodes", "namespaces", "priorityclasses"):
            return None
        lists = _within(stream.lists, self._namespace)
        return replace(
            feed,
            stream=stream._replace(lists=lists, watches=_within(stream.watches, self._namespace)),
        )

    async def _follow_once_wanted(
        self, feeds: Sequence[Reflector], are_wanted: Callable[[], bool]
    ) -> None:
        while not are_wanted():  # noqa: ASYNC110 - the state knows no event loop
            await asyncio.sleep(CLAIM_SECONDS)
        async with asyncio.TaskGroup() as tasks:
            for feed in feeds:
                tasks.create_task(list_watch.follow(self._api, feed))

    def _wake(self) -> None:
        self._version += 1
        self._observed = None
        self._change.set()

    @property
    def trouble(self) -> errors.ApiError | None:
        """Why nothing can be shown, if missing rights are not the reason; else None."""
        problems = [*self._api.problems.values()]
        unknown = next((problem for problem in problems if problem.status == NOT_FOUND), None)
        if unknown is not None or len(problems) < len(self._feeds):
            return unknown
        return next((problem for problem in problems if problem.status != FORBIDDEN), None)

    def observe(self) -> Observation:
        """See ``Cluster.observe``; returns the same value until something changes."""
        if self._observed is None:
            snapshot = self._snapshot()  # which may itself find that something has changed
            self._observed = Observation(
                self._version,
                snapshot,
                {group.key: group for group in self._state.groups},
                [*self._api.missing.values(), *self._api.narrowed.values()],
            )
        return self._observed

    def _snapshot(self) -> Snapshot:
        return self._state.snapshot(self._now())

    async def changed(self, version: int) -> None:
        """See ``Cluster.changed``."""
        while self._version <= version:
            self._change.clear()
            await self._change.wait()

    async def events(self, gang: GangKey) -> Sequence[Record]:
        """See ``Cluster.events``."""
        right = _within(Right("", "events", "list"), gang.namespace)
        selector = f"involvedObject.name={gang.name},involvedObject.kind={gang.kind.kind}"
        try:
            page = json.loads(await self._api.api.page(Stream("Events", right, right, selector)))
            records = [_event(item) for item in page.get("items") or ()]
        except errors.ApiError as problem:
            raise WrongQuestion(str(problem)) from problem
        except (ValueError, AttributeError) as problem:
            raise WrongQuestion("the Events cannot be read") from problem
        return sorted(records, key=lambda event: event["at"], reverse=True)[:MOST_EVENTS]

    async def operators(self) -> Sequence[Record]:
        """See ``Cluster.operators``."""
        return await operator_figures.read(self._api.api, self._scheduler, self._namespace)


def _within(right: Right, namespace: str) -> Right:
    """The same right in one namespace."""
    return replace(right, resource=f"namespaces/{namespace}/{right.resource}")


def _event(item: Any) -> dict[str, Any]:
    series = item.get("series") or {}
    times = (series.get("lastObservedTime"), item.get("lastTimestamp"), item.get("eventTime"))
    at = next(filter(None, times), "")
    return {
        "at": str(at),
        "type": str(item.get("type", "")),
        "reason": str(item.get("reason", "")),
        "message": str(item.get("message", "")),
        "count": item.get("count") or series.get("count") or 1,
    }


class _Noting:
    """A source that notes the kinds that cannot be read, and drops the note when they can."""

    def __init__(self, api: Api, wake: Callable[[], None], optional: Collection[str] = ()) -> None:
        """A cluster need not have the kinds of the ``optional`` streams."""
        self.api = api
        self._wake = wake
        self._optional = optional
        self.problems: dict[str, errors.ApiError] = {}  # by stream, like ``missing``
        self.missing: dict[str, MissingKind] = {}
        self.narrowed: dict[str, MissingKind] = {}

    async def page(self, stream: Stream, after: str = "") -> bytes:
        """See ``Source.page``."""
        try:
            body = await self.api.page(stream, after)
        except errors.ApiError as problem:
            self._note(stream, stream.lists, problem)
            raise
        self._answered(stream)
        return body

    async def watch(self, stream: Stream, version: str) -> AsyncIterator[bytes]:
        """See ``Source.watch``; after a failed watch, a list shows whether the kind can be read."""
        try:
            async for line in self.api.watch(stream, version):
                yield line
        except errors.Gone:
            raise
        except errors.ApiError as problem:
            self._note(stream, stream.watches, problem)
            raise errors.Gone(str(problem), retry_after=problem.retry_after) from problem

    def _answered(self, stream: Stream) -> None:
        self.problems.pop(stream.name, None)
        if self.missing.pop(stream.name, None) is not None:
            self._wake()

    def _note(self, stream: Stream, right: Right, problem: errors.ApiError) -> None:
        if problem.status == NOT_FOUND and stream.name in self._optional:
            self._answered(stream)
            return
        self.problems[stream.name] = problem
        group = f".{right.group}" if right.group else ""
        missing = MissingKind(
            stream.name,
            f"{right.verb} {right.resource.rpartition('/')[2]}{group}",
            str(problem).rstrip("."),
            problem.status == FORBIDDEN,
        )
        if self.missing.get(stream.name) != missing:
            self.missing[stream.name] = missing
            self._wake()
