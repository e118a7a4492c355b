"""Lists and watches without kopf, which is too slow for large streams and may miss deletions.

A list replaces the content of its store, so an object that was deleted while no watch ran is
removed. Each page is decoded at once, and only the fields that decisions use are kept.
"""

import asyncio
import gc
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, NoReturn, Protocol, TypeVar

from ..model.keys import Uid
from . import errors, wire
from .calls import Stream
from .client import Source

logger = logging.getLogger(__name__)

V = TypeVar("V")
W = TypeVar("W", bound=wire.Object)

FIRST_WAIT = 0.2  # seconds after the first failure
MOST_FRUITLESS = 10  # watches in a row without an event before a new list
LONGEST_WAIT = 5.0  # seconds within which an API server that comes back is noticed
NOT_FOUND = 404  # the answer to a list if the API server does not have this kind
EXPIRED = 410  # a watch has to begin again with a list, which is normal


class Item(NamedTuple, Generic[V]):
    """One object of a stream: its uid, its version and its decoded value."""

    uid: Uid
    version: int  # metadata.resourceVersion; comparable within one kind (KEP-5504)
    value: V


class ObjectList(Generic[V]):
    """A whole list: the versions and the decoded values of its objects, by uid.

    A list may have 50,000 pods, and two dicts take less memory than an ``Item`` for each.
    """

    __slots__ = ("values", "versions")

    def __init__(self, items: Iterable[Item[V]] = ()) -> None:
        self.values: dict[Uid, V] = {}
        self.versions: dict[Uid, int] = {}
        self.extend(items)

    def extend(self, items: Iterable[Item[V]]) -> None:
        """Add objects; of two with one uid, the last one counts."""
        for uid, version, value in items:
            self.values[uid], self.versions[uid] = value, version


def uid_of(wire_object: wire.Object) -> Uid:
    """The uid of a wire object."""
    return Uid(wire_object.metadata.uid)


def item(wire_object: wire.Object, value: V) -> Item[V]:
    """The item for a decoded value, with the uid and version of its object."""
    return Item(uid_of(wire_object), int(wire_object.metadata.resource_version), value)


class ReflectorSink(Protocol[V]):
    """The target of the objects of a stream, such as ``state.store.Store``."""

    is_fresh: bool  # listed since the last ``expire``

    def expire(self) -> None:
        """Trust no list that began before now."""

    def began(self) -> int:
        """Mark the moment before a list is requested."""

    def known(self, uid: Uid, version: int, listed: int) -> V | None:
        """The value of this version of an object, for a list of the version ``listed``, if any."""

    def replace(self, objects: ObjectList[V], version: int, began: int) -> None:
        """Take in a whole list, which is the sink's from now on; other objects are gone."""

    def put(self, item: Item[V]) -> None:
        """Take in one object."""

    def drop(self, uid: Uid) -> None:
        """Forget one object for good."""

    def leave(self, uid: Uid, version: int) -> None:
        """Forget one object that may come back, unless a newer version is known."""


@dataclass(frozen=True, slots=True)
class Reflector(Generic[W, V]):
    """A stream, the decoder of its objects, and their target; None is not stored."""

    stream: Stream
    kind: type[W]
    decode: Callable[[W], V | None]
    sink: ReflectorSink[V]
    is_optional: bool = False  # the cluster may have no such kind: then there are no objects


async def relist(source: Source, reflector: Reflector[W, V]) -> str:
    """List once, replace the content of the sink, and return the version to watch from.

    The version is empty if the cluster does not have the kind of an optional reflector.

    Raises:
        errors.ApiError: the list failed; the sink is unchanged.
    """
    began = reflector.sink.began()
    pages = _PageReader(source, reflector.stream)
    objects: ObjectList[V] = ObjectList()
    version = continue_token = ""
    # Only small values are kept of a page. Otherwise the garbage collector would scan all of them
    # again and again while their number grows.
    gc.disable()
    try:
        while not version or continue_token:
            page = wire.parse_page(await pages.read(continue_token), reflector.kind)
            version, continue_token = page.version, page.continue_token
            if not version.isdigit():
                raise errors.Unavailable(f"a list of {reflector.stream.name} names no version")
            for broken in page.broken:
                logger.error("%s: left out: %s", reflector.stream.name, broken)
            at = int(version)
            new_items = (_listed_item(reflector, wire_object, at) for wire_object in page.items)
            objects.extend(new_item for new_item in new_items if new_item is not None)
            del page  # or else there would be two once the next page is parsed
    except errors.Gone as problem:
        if not (reflector.is_optional and problem.status == NOT_FOUND):
            raise
        objects, version = ObjectList(), ""
    finally:
        gc.enable()
        pages.close()
    reflector.sink.replace(objects, int(version or 0), began)
    return version


class _PageReader:
    """Reads the pages of a list; the server prepares the next page while a page is decoded."""

    def __init__(self, source: Source, stream: Stream) -> None:
        self._source = source
        self._stream = stream
        self._next_token = ""
        self._next_page: asyncio.Task[bytes] | None = None

    async def read(self, token: str) -> bytes:
        """Read the first page, or the page after a continue token; raises ``errors.ApiError``."""
        if self._next_page is not None and self._next_token == token:
            raw = await self._next_page
        else:
            raw = await self._source.page(self._stream, token)
        self.close()
        self._next_token = wire.peek_continue_token(raw)
        if self._next_token:
            request = self._source.page(self._stream, self._next_token)
            self._next_page = asyncio.ensure_future(request)
            await asyncio.sleep(0)  # sends the request
        return raw

    def close(self) -> None:
        """Give up the request for the next page, if there is one."""
        if self._next_page is not None:
            self._next_page.add_done_callback(_retrieve)
            self._next_page.cancel()
            self._next_page = None


def _retrieve(page: asyncio.Task[bytes]) -> None:
    """Retrieve the error of a page that is not used, because asyncio would log it."""
    if not page.cancelled():
        page.exception()


async def follow(source: Source, reflector: Reflector[W, V], version: str = "") -> NoReturn:
    """List, then watch, for ever; after an error, log, wait and try again.

    With a ``version``, begin with a watch from there; its list was taken in already.
    """
    wait = FIRST_WAIT
    fruitless = 0
    while True:
        fruitless += 1
        if fruitless > MOST_FRUITLESS:
            version = ""  # no watch starts from it, as if it is from before a restore of etcd
        try:
            if not version:
                version = await relist(source, reflector)
                fruitless = 0
                if not version:
                    await asyncio.sleep(LONGEST_WAIT)  # the kind may be added later
                    continue
            before = version
            async for line in source.watch(reflector.stream, version):
                wait, fruitless = FIRST_WAIT, 0
                version = _take(reflector, line) or version
            # An overloaded server may end watches that have many events: then watch again at once.
            # Wait only after a watch that showed nothing new.
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
    """Take in an object that was created or changed."""
    new_item = _item(reflector, wire_object)
    if new_item is not None:
        reflector.sink.put(new_item)
    else:
        # The object may have been stored until now, like a pod that has just ended. It may be
        # stored again, like a gated pod.
        leave(reflector, wire_object)


def leave(reflector: Reflector[Any, Any], wire_object: wire.Object) -> None:
    """Forget an object of which this version is not stored."""
    version = int(wire_object.metadata.resource_version)
    reflector.sink.leave(uid_of(wire_object), version)


def _leave_out(reflector: Reflector[W, V], line: bytes) -> str:
    """Forget an object that cannot be read, as if a list left it out.

    Raises:
        errors.Gone: the uid of the object cannot be read; a new list is needed.
    """
    try:
        event = wire.parse_event(line, wire.Object)
    except errors.BadObject as broken:
        raise errors.Gone(f"{broken}.") from broken
    if event.type == "DELETED":
        reflector.sink.drop(uid_of(event.item))
    else:
        leave(reflector, event.item)
    return event.version


def _listed_item(reflector: Reflector[W, V], wire_object: W, listed: int) -> Item[V] | None:
    """The item of an object in a list of this version; what is known already is not decoded."""
    uid, version = uid_of(wire_object), wire_object.metadata.resource_version
    known = reflector.sink.known(uid, int(version), listed) if version.isdigit() else None
    return _item(reflector, wire_object) if known is None else Item(uid, int(version), known)


def _item(reflector: Reflector[W, V], wire_object: W) -> Item[V] | None:
    try:
        value = reflector.decode(wire_object)
    except errors.BadObject as broken:
        logger.error("%s: left out: %s", reflector.stream.name, broken)  # noqa: TRY400
        return None
    if value is None:
        return None
    return item(wire_object, value)
