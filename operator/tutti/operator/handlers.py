"""What Tutti watches through kopf, as a kopf operator: what declares gangs, and pods that wait.

No decisions here: a handler puts what an event shows into its store, and awaits nothing. Which
lists surround kopf's, and what happens when kopf fails, is in ``kopf_lists``.
"""

import logging
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

# How long kopf keeps a worker, and the last event, of an object. Most pods are bound before that
# is over; a new worker for that event would cost more.
IDLE_SECONDS = 2.0


class NoDiffBase(kopf.AnnotationsDiffBaseStorage):
    """Nothing is kept on objects to compare with: ``on.event`` handlers never ask what changed.

    kopf's own storages copy every object several times over to find that out.
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
    """Waits between kopf's tries, without end: an API server that is away is waited for."""

    def __iter__(self) -> Iterator[float]:
        """Grow to five seconds and stay there."""
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
    """Everything that kopf should do for us, explicitly: no global registry.

    The kinds at the ``absent`` paths are not watched.
    """
    handlers = kopf.OperatorRegistry()

    @kopf.on.startup(registry=handlers)
    async def start(settings: kopf.OperatorSettings, **_: Any) -> None:
        configure(settings, feeds)
        demand.reset()

    @kopf.on.login(registry=handlers)
    async def login(**_: Any) -> kopf.AiohttpSession:
        session = access.session(demand.list_after_kopf)
        return kopf.AiohttpSession(server=access.server, aiohttp_session=session)

    @kopf.on.cleanup(registry=handlers)
    async def stop(**_: Any) -> None:
        demand.reset()

    for feed in feeds.gangs:
        if feed.stream.path not in absent:
            watch_gangs(handlers, feed)

    def may_wait(uid: str, **_: Any) -> bool:
        # Half of an event's cost is the handler's invocation. A pod of ours is changed twice more
        # once it is bound, and leaves the selection: its store knows better by then, and forgot it
        # for good. A binding that has no answer yet is not such: its events all count.
        return not state.pending.has_dropped(Uid(uid))

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
    # What Tutti tells people it writes itself, once: kopf would make Events of its log lines.
    settings.posting.enabled = False
    # Nothing is written into users' objects, so nothing needs to be read back from there.
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.persistence.progress_storage = NoProgress()
    # ``kopf_lists`` notices CRDs that come or go; kopf would need rights to watch them.
    settings.scanning.disabled = True
    settings.networking.error_backoffs = Backoffs()
    settings.networking.request_timeout = client.REQUEST_SECONDS
    settings.watching.field_selectors["", "v1", "pods"] = feeds.pending.stream.selector
    settings.watching.chunk_size = client.PAGE
    # Our own list follows each of kopf's; a streamed one ends at no request that could be seen.
    settings.watching.initial_streaming = False
    settings.watching.server_timeout = client.WATCH_SECONDS
    # Below this, a server that vanished without a word is noticed by nobody.
    settings.watching.inactivity_timeout = client.WATCH_SECONDS + client.REQUEST_SECONDS
    # A limit would let the events of the objects that come last wait for idle workers of others.
    settings.queueing.worker_limit = None
    # A worker holds the body of its last event: thousands of pods come at once.
    settings.queueing.idle_timeout = IDLE_SECONDS
    # kopf may be begun anew; it would kill this process so long after it was stopped.
    settings.process.ultimate_exiting_timeout = None


def take_in(feed: list_watch.Reflector[Any, Any], event: Mapping[str, Any], uid: str) -> None:
    """Take one event in; an object that cannot be read is said and left out, as by a list.

    What kopf lists (events without a type) is not taken in: our own list, which replaces all,
    follows it.
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
        feed.sink.leave(Uid(uid))
