"""Lists and watches of our own, for what kopf would be too slow or too forgetful for.

A list replaces everything, so what was deleted while no watch was looking leaves no ghost; pages
are decoded at once and only the fields that a decision uses are kept.
"""

import asyncio
import gc
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, NamedTuple, NoReturn, Protocol, TypeVar

from ..model.keys import Uid
from . import errors, wire
from .calls import Stream
from .client import Source

logger = logging.getLogger(__name__)

V = TypeVar("V")
W = TypeVar("W", bound=wire.Object)

FIRST_WAIT = 0.2  # seconds after the first failure
MOST_FRUITLESS = 10  # watches without a single event before everything is listed again
LONGEST_WAIT = 5.0  # an API server that comes back is noticed within this
NOT_FOUND = 404  # of a list: the API server does not have this kind
EXPIRED = 410  # a watch that has to begin again with a list: everyday life


class Item(NamedTuple, Generic[V]):
    """One object of a stream: who it is, how new, and what it says."""

    uid: Uid
    version: int  # metadata.resourceVersion; comparable within one kind (KEP-5504)
    value: V


def uid_of(wire_object: wire.Object) -> Uid:
    """The uid of a wire object."""
    return Uid(wire_object.metadata.uid)


def item(wire_object: wire.Object, value: V) -> Item[V]:
    """Label a decoded value with its object's uid and version."""
    return Item(uid_of(wire_object), int(wire_object.metadata.resource_version), value)


class ReflectorSink(Protocol[V]):
    """Where a stream's objects go; ``state.store.Store`` is one."""

    is_fresh: bool  # listed since the last ``expire``

    def expire(self) -> None:
        """Trust no list that began before now."""

    def began(self) -> int:
        """Mark the moment before a list is asked for."""

    def replace(self, items: Iterable[Item[V]], version: int, began: int) -> None:
        """Take a whole list: what it does not name is gone."""

    def put(self, item: Item[V]) -> None:
        """Take one object."""

    def drop(self, uid: Uid) -> None:
        """Forget one object for good."""

    def leave(self, uid: Uid) -> None:
        """Forget one object that may be of interest again."""


@dataclass(frozen=True, slots=True)
class Reflector(Generic[W, V]):
    """A stream, how its objects are decoded, and where they go; None is of no interest."""

    stream: Stream
    kind: type[W]
    decode: Callable[[W], V | None]
    sink: ReflectorSink[V]
    is_optional: bool = False  # the cluster may have no such kind: then there are no objects


async def relist(source: Source, feed: Reflector[W, V]) -> str:
    """List a feed once and replace what its sink holds; answers the version to watch from.

    That is empty where the cluster does not have the kind of an optional feed.

    Raises:
        errors.ApiError: the list could not be had; the sink is as it was.
    """
    began = feed.sink.began()
    items: list[Item[V]] = []
    version = more = ""
    # Nothing of a page survives but small values: without this, the collector walks them all
    # again and again while they pile up.
    gc.disable()
    try:
        while not version or more:
            page = wire.parse_page(await source.page(feed.stream, more), feed.kind)
            version, more = page.version, page.continue_token
            if not version.isdigit():
                raise errors.Unavailable(f"a list of {feed.stream.name} names no version")
            for broken in page.broken:
                logger.error("%s: left out: %s", feed.stream.name, broken)
            new_items = (_item(feed, wire_object) for wire_object in page.items)
            items.extend(new_item for new_item in new_items if new_item is not None)
    except errors.Gone as problem:
        if not (feed.is_optional and problem.status == NOT_FOUND):
            raise
        items, version = [], ""
    finally:
        gc.enable()
    feed.sink.replace(items, int(version or 0), began)
    return version


async def follow(source: Source, feed: Reflector[W, V], version: str = "") -> NoReturn:
    """List, then watch, for ever; what fails is said, waited out, and taken up again.

    With the ``version`` of a list that was taken in already, watch from there.
    """
    wait = FIRST_WAIT
    fruitless = 0
    while True:
        fruitless += 1
        if fruitless > MOST_FRUITLESS:
            version = ""  # one from before etcd was restored, say, which no watch will start from
        try:
            if not version:
                version = await relist(source, feed)
                fruitless = 0
                if not version:
                    await asyncio.sleep(LONGEST_WAIT)  # until there is such a kind
                    continue
            before = version
            async for line in source.watch(feed.stream, version):
                wait, fruitless = FIRST_WAIT, 0
                version = _take(feed, line) or version
            # A server that is late ends watches that have much to show, and is asked again at
            # once; one, or something in between, that shows nothing new and ends them is not.
            if version == before:
                await asyncio.sleep(FIRST_WAIT)
        except errors.ApiError as problem:
            if isinstance(problem, errors.Gone):
                version = ""
            wait = min(problem.retry_after or wait * 2, LONGEST_WAIT)
            logger.log(
                logging.DEBUG if problem.status == EXPIRED else logging.WARNING,
                "%s: %s Will try again in %.1f s",
                feed.stream.name,
                problem,
                wait,
            )
            await asyncio.sleep(wait)


def _take(feed: Reflector[W, V], line: bytes) -> str:
    try:
        event = wire.parse_event(line, feed.kind)
    except errors.BadObject as broken:
        logger.error("%s: left out: %s", feed.stream.name, broken)  # noqa: TRY400
        return _leave_out(feed, line)
    if event.type == "DELETED":
        feed.sink.drop(uid_of(event.item))
    elif event.type in ("ADDED", "MODIFIED"):
        put(feed, event.item)
    return event.version


def put(feed: Reflector[W, V], wire_object: W) -> None:
    """Take in an object that was made or changed."""
    new_item = _item(feed, wire_object)
    if new_item is not None:
        feed.sink.put(new_item)
    else:
        # It may have been of interest a moment ago, as a pod that is over now was, and may be
        # again, as a gated one will.
        feed.sink.leave(uid_of(wire_object))


def _leave_out(feed: Reflector[W, V], line: bytes) -> str:
    """Forget an object that cannot be read, as a list does that leaves it out.

    Raises:
        errors.Gone: nothing says which object that is; a list shows what is left.
    """
    try:
        event = wire.parse_event(line, wire.Object)
    except errors.BadObject as broken:
        raise errors.Gone(f"{broken}.") from broken
    uid = uid_of(event.item)
    if event.type == "DELETED":
        feed.sink.drop(uid)
    else:
        feed.sink.leave(uid)
    return event.version


def _item(feed: Reflector[W, V], wire_object: W) -> Item[V] | None:
    try:
        value = feed.decode(wire_object)
    except errors.BadObject as broken:
        logger.error("%s: left out: %s", feed.stream.name, broken)  # noqa: TRY400
        return None
    if value is None:
        return None
    return item(wire_object, value)
