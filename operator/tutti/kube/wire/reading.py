"""Parsers from bytes to wire objects: pages of lists, lines of watches, single objects.

The fast path reads a page in one pass. If that fails, the slow path reads object by object: null
means absent, what is nested too deeply for Python is cut off, as no field that is read is as deep,
and an object that cannot be read is named, so that the others are not lost.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from ..errors import BadObject, Unavailable, from_status
from .base import ListMetadata, Object, Wire

MOST_DEPTH = 200  # of values that are read; no field that is read is as deep
# Tokens of JSON that open and close values, and strings, in which they mean nothing.
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
SENTENCE_LIMIT = 300  # characters; a quoted value may be long
# The beginning of a page as Go writes ListMeta before the items; continue tokens are base64url.
_CONTINUE = re.compile(
    rb'\{"kind":"\w+","apiVersion":"[\w./]+","metadata":\{[^{}\[\]]*?"continue":"([\w=-]+)"'
)

T = TypeVar("T", bound=Object)


class _List(Wire, Generic[T]):
    metadata: ListMetadata = ListMetadata()
    items: tuple[T, ...] = ()


class _Event(Wire, Generic[T]):
    type: str
    object: T


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list; ``broken`` has an error for each object that cannot be read."""

    items: tuple[T, ...]
    version: str
    continue_token: str
    broken: tuple[BadObject, ...] = ()


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """One line of a watch: ADDED, MODIFIED, DELETED, or BOOKMARK, which has only a version."""

    type: str
    item: T

    @property
    def version(self) -> str:
        """The version from which a new watch can continue."""
        return self.item.metadata.resource_version


def parse_page(raw: bytes, kind: type[T]) -> Page[T]:
    """Read a page of a list.

    Raises:
        Unavailable: this is no list; the answer was cut off, or is not from the API server.
    """
    try:
        page = _lists(kind).validate_json(raw)
    except ValidationError:
        return _page_by_item(_json(raw, f"a list of {kind.__name__}s"), kind)
    return Page(page.items, page.metadata.resource_version, page.metadata.continue_token)


def peek_continue_token(raw: bytes) -> str:
    """The continue token of a page that is not decoded yet; empty if it does not come first.

    The API server writes the metadata of a list before its items, except for custom resources.
    """
    match = _CONTINUE.match(raw)
    return match[1].decode() if match else ""


def parse_event(raw: bytes, kind: type[T]) -> WatchEvent[T]:
    """Read one line of a watch.

    Raises:
        ApiError: the line is an ERROR event, which ends the watch.
        BadObject: the object in it cannot be read.
        Unavailable: this is no event; the line was cut off.
    """
    try:
        event = _events(kind).validate_json(raw)
        if event.type != "ERROR":
            return WatchEvent(event.type, event.object)
    except ValidationError:
        pass  # the slow path below reads the line again
    line = _json(raw, f"an event about a {kind.__name__}")
    event_type, body = line.get("type"), line.get("object")
    if event_type == "ERROR":
        raise from_status(body if isinstance(body, dict) else {})
    if not isinstance(event_type, str):
        raise Unavailable(f"an event about a {kind.__name__} has no type")
    if event_type == "BOOKMARK":
        # A bookmark lacks fields that every other object of the kind has.
        bare = kind.model_construct(metadata=parse_one(body, Object).metadata)
        return WatchEvent(event_type, cast("T", bare))  # the stubs of pydantic lose the subclass
    return WatchEvent(event_type, parse_one(body, kind))


def parse_one(raw: object, kind: type[T]) -> T:
    """Read one object, from JSON or from a parsed JSON or YAML value.

    Raises:
        BadObject: it cannot be read; the sentence names the field.
    """
    try:
        if isinstance(raw, bytes | str):
            return kind.model_validate_json(raw)
        return kind.model_validate(raw)
    except ValidationError:
        pass  # try again without nulls
    if isinstance(raw, bytes | str):
        try:
            raw = _loaded(raw)
        except ValueError as problem:
            raise BadObject(f"a {kind.__name__}", f"is not JSON: {problem}") from problem
    try:
        return kind.model_validate(_without_nulls(raw))
    except ValidationError as problem:
        raise BadObject(_name(raw, kind), _sentence(problem)) from problem


@lru_cache
def _lists(kind: type[T]) -> TypeAdapter[_List[T]]:
    return TypeAdapter(_List[kind])  # type: ignore[valid-type]


@lru_cache
def _events(kind: type[T]) -> TypeAdapter[_Event[T]]:
    return TypeAdapter(_Event[kind])  # type: ignore[valid-type]


def _page_by_item(page: Mapping[str, Any], kind: type[T]) -> Page[T]:
    items: list[T] = []
    broken: list[BadObject] = []
    listed = page.get("items") or []
    if not isinstance(listed, list):
        raise Unavailable(f"a list of {kind.__name__}s has no items")
    for raw in listed:
        try:
            items.append(parse_one(raw, kind))
        except BadObject as problem:
            broken.append(problem)
    head = page.get("metadata")
    try:
        metadata = ListMetadata.model_validate(_without_nulls({} if head is None else head))
    except ValidationError as problem:
        raise Unavailable(f"a list of {kind.__name__}s has no readable metadata") from problem
    return Page(tuple(items), metadata.resource_version, metadata.continue_token, tuple(broken))


def _json(raw: bytes, subject: str) -> Mapping[str, Any]:
    try:
        value = _loaded(raw)
    except ValueError as problem:
        raise Unavailable(f"{subject} is not JSON: {problem}") from problem
    if not isinstance(value, dict):
        raise Unavailable(f"{subject} is not a JSON object")
    return value


def _loaded(raw: bytes | str) -> Any:
    """The value that this JSON has, without what is nested too deeply.

    Raises:
        ValueError: it is no JSON.
    """
    try:
        return json.loads(raw)
    except RecursionError:
        return json.loads(_shallow(raw.encode() if isinstance(raw, str) else raw))


def _shallow(raw: bytes) -> bytes:
    """The same JSON with null for each value that is nested more than ``MOST_DEPTH`` deep."""
    parts: list[bytes] = []
    depth = begin = 0
    for token in _BRACKETS.finditer(raw):
        if token[0] in b"[{":
            depth += 1
            if depth == MOST_DEPTH + 1:
                parts += [raw[begin : token.start()], b"null"]
                begin = len(raw)
        elif token[0] in b"]}":
            if depth == MOST_DEPTH + 1:
                begin = token.end()
            depth -= 1
    return b"".join([*parts, raw[begin:]])


def _without_nulls(value: Any, levels: int = MOST_DEPTH) -> Any:
    """The value without nulls, and without deeper levels; Go writes null for an empty list."""
    if not isinstance(value, Mapping | list):
        return value
    if not levels:
        return None
    if isinstance(value, Mapping):
        own = ((key, inner) for key, inner in value.items() if inner is not None)
        return {key: _without_nulls(inner, levels - 1) for key, inner in own}
    return [_without_nulls(inner, levels - 1) for inner in value if inner is not None]


def _name(raw: object, kind: type[Object]) -> str:
    metadata = raw.get("metadata") if isinstance(raw, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str):
        return f"a {kind.__name__} without a name"
    namespace = metadata.get("namespace")
    name: str = metadata["name"]
    return f"{namespace}/{name}" if isinstance(namespace, str) and namespace else name


def _sentence(problem: ValidationError) -> str:
    first, *remaining = problem.errors(include_url=False, include_context=False)
    where = ".".join(str(part) for part in first["loc"]) or "it"
    rest = f", and {len(remaining)} more" if remaining else ""
    return f"{where}: {first['msg']}{rest}"[:SENTENCE_LIMIT]
