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
        """Mark the moment before a list is requested."""

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


async def relist(source: Source, reflector: Reflector[W, V]) -> str:
    """List once and replace the content of the reflector's sink; returns the version to watch from.

    The version is empty where the cluster does not have the kind of an optional reflector.

    Raises:
        errors.ApiError: the list failed; the sink is as before.
    """
    began = reflector.sink.began()
    items: list[Item[V]] = []
    version = continue_token = ""
    # Nothing of a page survives but small values: without this, the collector walks them all
    # again and again while they pile up.
    gc.disable()
    try:
        while not version or continue_token:
            page = wire.parse_page(
                await source.page(reflector.stream, continue_token), reflector.kind
            )
            version, continue_token = page.version, page.continue_token
            if not version.isdigit():
                raise errors.Unavailable(f"a list of {reflector.stream.name} names no version")
            for broken in page.broken:
                logger.error("%s: left out: %s", reflector.stream.name, broken)
            new_items = (_item(reflector, wire_object) for wire_object in page.items)
            items.extend(new_item for new_item in new_items if new_item is not None)
    except errors.Gone as problem:
        if not (reflector.is_optional and problem.status == NOT_FOUND):
            raise
        items, version = [], ""
    finally:
        gc.enable()
    reflector.sink.replace(items, int(version or 0), began)
    return version


async def follow(source: Source, reflector: Reflector[W, V], version: str = "") -> NoReturn:
    """List, then watch, for ever; after an error, log, wait and try again.

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
                version = await relist(source, reflector)
                fruitless = 0
                if not version:
                    await asyncio.sleep(LONGEST_WAIT)  # until there is such a kind
                    continue
            before = version
            async for line in source.watch(reflector.stream, version):
                wait, fruitless = FIRST_WAIT, 0
                version = _take(reflector, line) or version
            # A server that is late ends watches that have much to show: watch again at once. Wait
            # only after a watch that showed nothing new.
            if version == before:
                await asyncio.sleep(FIRST_WAIT)
        except errors.ApiError as problem:
            if isinstance(problem, errors.Gone):
                version = ""
            wait = min(problem.retry_after or wait * 2, LONGEST_WAIT)
            logger.log(
                logging.DEBUG if problem.status == EXPIRED else logging.WARNING,
                "%s: %s Will try again in %.1f s",
                reflector.stream.name,
                problem,
                wait,
            )
            await asyncio.sleep(wait)


def _take(reflector: Reflector[W, V], line: bytes) -> str:
    try:
        event = wire.parse_event(line, reflector.kind)
    except errors.BadObject as broken:
        logger.error("%s: left out: %s", reflector.stream.name, broken)  # noqa: TRY400
        return _leave_out(reflector, line)
    if event.type == "DELETED":
        reflector.sink.drop(uid_of(event.item))
    elif event.type in ("ADDED", "MODIFIED"):
        put(reflector, event.item)
    return event.version


def put(reflector: Reflector[W, V], wire_object: W) -> None:
    """Take in an object that was made or changed."""
    new_item = _item(reflector, wire_object)
    if new_item is not None:
        reflector.sink.put(new_item)
    else:
        # It may have been of interest a moment ago, as a pod that is over now was, and may be
        # again, as a gated one will.
        reflector.sink.leave(uid_of(wire_object))


def _leave_out(reflector: Reflector[W, V], line: bytes) -> str:
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
        reflector.sink.drop(uid)
    else:
        reflector.sink.leave(uid)
    return event.version


def _item(reflector: Reflector[W, V], wire_object: W) -> Item[V] | None:
    try:
        value = reflector.decode(wire_object)
    except errors.BadObject as broken:
        logger.error("%s: left out: %s", reflector.stream.name, broken)  # noqa: TRY400
        return None
    if value is None:
        return None
    return item(wire_object, value)
