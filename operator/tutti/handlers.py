"""The demand side: PodGroups, through kopf, into the World.

No decisions here. Only ``on.event``: level-triggered, and kopf writes nothing into users' objects.
kopf never learns what was deleted while its watch had expired: whenever it lists, so do we.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

import aiohttp
import kopf

from .kube import client, errors, supply, wire
from .kube.access import Access
from .kube.client import Source
from .world import World

logger = logging.getLogger(__name__)

RELIST_SECONDS = 60.0  # how long a ghost of the demand side can live, at most


class NoMemory(kopf.AnnotationsDiffBaseStorage):
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


async def relist(source: Source, groups: supply.Feed[Any, Any]) -> NoReturn:
    """List the PodGroups again and again, so that nothing kopf has missed stays for long."""
    while True:
        await asyncio.sleep(RELIST_SECONDS)
        try:
            await supply.relist(source, groups)
        except errors.ApiError as problem:
            logger.warning("listing the PodGroups: %s Will try again", problem)


def registry(
    world: World, access: Access, source: Source, groups: supply.Feed[Any, Any]
) -> kopf.OperatorRegistry:
    """Everything that kopf should do for us, explicitly: no global registry."""
    handlers = kopf.OperatorRegistry()

    @kopf.on.startup(registry=handlers)
    async def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.posting.enabled = False
        settings.scanning.disabled = True
        settings.persistence.diffbase_storage = NoMemory()
        settings.persistence.progress_storage = NoProgress()
        settings.networking.error_backoffs = Backoffs()
        settings.networking.request_timeout = client.REQUEST_SECONDS
        settings.watching.server_timeout = client.WATCH_SECONDS
        # Below this, a server that vanished without a word is noticed by nobody.
        settings.watching.inactivity_timeout = client.WATCH_SECONDS + client.REQUEST_SECONDS

    @kopf.on.login(registry=handlers)
    async def login(**_: Any) -> kopf.AiohttpSession:
        session = access.session(_listing_along(world, source, groups))
        return kopf.AiohttpSession(server=access.server, aiohttp_session=session)

    @kopf.on.event("tutti.dev", "v1alpha1", "podgroups", registry=handlers)
    async def group_seen(event: kopf.RawEvent, **_: Any) -> None:
        _fold(event, groups)

    return handlers


def _fold(event: Mapping[str, Any], groups: supply.Feed[Any, Any]) -> None:
    """Take one event in; an object that cannot be read is said and left out, as by a list."""
    try:
        if event["type"] == "DELETED":
            groups.sink.drop(supply.uid_of(wire.parse_one(event["object"], wire.Object)))
            return
        one = wire.parse_one(event["object"], wire.PodGroup)
        if (group := groups.decode(one)) is not None:
            groups.sink.put(supply.item(one, group))
    except errors.BadObject as broken:
        logger.error("left out: %s", broken)  # noqa: TRY400
        with contextlib.suppress(errors.BadObject):  # then the next regular list clears it
            groups.sink.leave(supply.uid_of(wire.parse_one(event["object"], wire.Object)))


def _listing_along(
    world: World, source: Source, groups: supply.Feed[Any, Any]
) -> aiohttp.ClientMiddlewareType:
    """List the same right before kopf lists again: that clears what left in the gap."""

    async def listing_along(
        request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        is_list = not request.url.query.keys() & {"watch", "continue"}
        if request.url.path == groups.stream.path and is_list and world.is_synced:
            with contextlib.suppress(errors.ApiError):  # then the next regular list clears it
                await supply.relist(source, groups)
        return await send(request)

    return listing_along
