"""What Tutti watches through kopf, as a kopf operator: objects that declare gangs, waiting pods.

No decisions here: a handler puts the object of an event into its store, and awaits nothing.
``kopf_lists`` makes the lists at which kopf's watches begin, and handles failures of kopf.
"""

import logging
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import kopf

from ..kube import client, errors, list_watch, wire
from ..kube.access import Access
from ..model.keys import Uid
from ..state.cluster_state import ClusterState
from ..state.reflectors import Reflectors
from .kopf_lists import KopfLists

logger = logging.getLogger(__name__)

# Seconds for which kopf keeps the worker and the last event of an object. Most pods are bound
# within this time; a new worker for that event would cost more.
IDLE_SECONDS = 2.0


class NoDiffBase(kopf.AnnotationsDiffBaseStorage):
    """Keeps nothing on objects to compare with: ``on.event`` handlers never ask what changed.

    kopf's own storages copy every object several times to find that out.
    """

    def build(self, **_: Any) -> kopf.BodyEssence:
        """Nothing of an object is essential."""
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> None:
        """Nothing was kept."""


class NoProgress(kopf.StatusProgressStorage):
    """``on.event`` handlers run once and have no progress that an object could carry."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """There is nothing to clear, so no copy is needed."""
        return essence


class Backoffs(Iterable[float]):
    """Seconds between kopf's tries, without end: Tutti waits for an API server that is away."""

    def __iter__(self) -> Iterator[float]:
        """Yield waits that grow to five seconds and stay there."""
        yield from (0.2, 0.5, 1.0, 2.0)
        while True:
            yield 5.0


def registry(
    state: ClusterState,
    demand: KopfLists,
    access: Access,
    feeds: Reflectors,
    absent: Collection[str] = (),
) -> kopf.OperatorRegistry:
    """All handlers of kopf, registered explicitly: there is no global registry.

    The kinds at the ``absent`` paths are not watched.
    """
    handlers = kopf.OperatorRegistry()

    @kopf.on.startup(registry=handlers)
    async def start(settings: kopf.OperatorSettings, **_: Any) -> None:
        configure(settings, feeds)

    @kopf.on.login(registry=handlers)
    async def login(**_: Any) -> kopf.AiohttpSession:
        session = access.session(demand.watch_from_own_list)
        return kopf.AiohttpSession(server=access.server, aiohttp_session=session)

    @kopf.on.cleanup(registry=handlers)
    async def stop(**_: Any) -> None:
        demand.reset()

    for feed in feeds.gangs:
        if feed.stream.path not in absent:
            watch_gangs(handlers, feed)

    def may_wait(uid: str, **_: Any) -> bool:
        # Half of the cost of an event is the call of the handler. After its binding, a pod of ours
        # changes twice more and leaves the selection; the store has then dropped it for good, and
        # the events need no handler. While a binding has no answer yet, all events of the pod
        # count.
        return not state.pods.pending.has_dropped(Uid(uid))

    @kopf.on.event("", "v1", "pods", registry=handlers, when=may_wait)
    async def pod_changed(event: kopf.RawEvent, uid: str, **_: Any) -> None:
        take_in(feeds.pending, event, uid)

    return handlers


def watch_gangs(handlers: kopf.OperatorRegistry, feed: list_watch.Reflector[Any, Any]) -> None:
    """Watch a kind of objects that declare gangs."""
    watched = feed.stream.watches

    @kopf.on.event(watched.group, watched.version, watched.resource, registry=handlers)
    async def gang_changed(event: kopf.RawEvent, uid: str, **_: Any) -> None:
        take_in(feed, event, uid)


def configure(settings: kopf.OperatorSettings, feeds: Reflectors) -> None:
    """Let kopf list and watch, and do nothing else."""
    # Tutti writes its own Events, once each; kopf would make Events of its log lines.
    settings.posting.enabled = False
    # Nothing is written into users' objects, so nothing needs to be read back from there.
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.persistence.progress_storage = NoProgress()
    # ``kopf_lists`` notices CRDs that come or go; kopf would need rights to watch them.
    settings.scanning.disabled = True
    settings.networking.error_backoffs = Backoffs()
    settings.networking.request_timeout = client.REQUEST_SECONDS
    settings.networking.connect_timeout = client.CONNECT_SECONDS
    settings.watching.field_selectors["", "v1", "pods"] = feeds.pending.stream.selector
    settings.watching.chunk_size = client.PAGE
    # kopf's watches begin at lists of our own. A streamed list ends with no request that we could
    # see.
    settings.watching.initial_streaming = False
    settings.watching.server_timeout = client.WATCH_SECONDS
    # No lower layer notices a server that vanished without closing the connection.
    settings.watching.inactivity_timeout = client.WATCH_SECONDS + client.REQUEST_SECONDS
    # With a limit, the events of late objects would wait for idle workers of other objects.
    settings.queueing.worker_limit = None
    # A worker holds the body of its last event, and thousands of pods come at once.
    settings.queueing.idle_timeout = IDLE_SECONDS
    # kopf may be restarted; with a timeout, it would kill this process that long after it was
    # stopped.
    settings.process.ultimate_exiting_timeout = None


def take_in(feed: list_watch.Reflector[Any, Any], event: Mapping[str, Any], uid: str) -> None:
    """Take one event in; an object that cannot be read is logged and left out, as in a list.

    The objects that kopf lists (events without a type) are not taken in: only a list of our own
    replaces the whole store.
    """
    if event["type"] is None:
        return
    if event["type"] == "DELETED":
        feed.sink.drop(Uid(uid))
        return
    try:
        list_watch.put(feed, wire.parse_one(event["object"], feed.kind))
    except errors.BadObject as broken:
        logger.error("%s: ignored an object: %s", feed.stream.name, broken)  # noqa: TRY400
        feed.sink.leave(Uid(uid), _version(event["object"]))


def _version(body: Mapping[str, Any]) -> int:
    """The version of an object that cannot be read; if its version cannot be read, the newest."""
    metadata = body.get("metadata")
    text = metadata.get("resourceVersion") if isinstance(metadata, Mapping) else None
    return int(text) if isinstance(text, str) and text.isdigit() else sys.maxsize
