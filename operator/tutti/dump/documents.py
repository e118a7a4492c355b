"""Splits files into API objects that know their place: file, document, item of a List.

Files may come from untrusted sources. Any text gives objects, or one error in one sentence.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

import yaml

ALIAS_LIMIT = 100_000  # lists and maps that aliases may add to a document
DEPTH_LIMIT = 200  # far more than any API object has
DOCUMENTS_LIMIT = 100_000  # of one text
YAML_LIMIT = 12_000_000  # characters; the nodes of libyaml take 70 bytes for each
LISTS_LIMIT = 3  # how deep Lists may be nested
MERGE_LIMIT = 1_000_000  # keys that ``<<`` may copy in one document
SOURCES_LIMIT = 16  # maps that one ``<<`` may name
SHOWN = 120  # characters that are quoted

# The exceptions of PyYAML's constructors for a value that does not match its tag.
_UNREADABLE = (
    yaml.YAMLError,
    ValueError,
    LookupError,
    AttributeError,
    TypeError,
    OverflowError,
    RecursionError,
)
_MERGE = "tag:yaml.org,2002:merge"


class BadFile(Exception):  # noqa: N818 - named for the situation, as in ``errors``
    """A file cannot be used; the message is one line with document, field and reason."""

    def __init__(self, place: str, sentence: str) -> None:
        super().__init__(" ".join(f"{place}: {sentence}".split()))


class Text(NamedTuple):
    """The name and the content of one file."""

    name: str
    content: bytes


class Document(NamedTuple):
    """One API object, and its place in a file."""

    place: str
    kind: str
    group: str  # its API group, such as "tutti.dev"; empty for the core API
    raw: Mapping[str, Any]

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of the object; empty if it is not a map."""
        value = self.raw.get("metadata")
        return value if isinstance(value, Mapping) else {}


class Loader(yaml.CSafeLoader):
    """A loader of YAML 1.1, as kubectl reads it, with limits on merge keys."""

    merged = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Copy the maps that ``<<`` names, within limits."""
        for key, value in node.value:
            is_list = isinstance(value, yaml.SequenceNode)
            if key.tag == _MERGE and is_list and len(value.value) > SOURCES_LIMIT:
                raise yaml.YAMLError(f"a merge key names more than {SOURCES_LIMIT} maps")
        super().flatten_mapping(node)
        self.merged += len(node.value)
        if self.merged > MERGE_LIMIT:
            raise yaml.YAMLError(f"merge keys copy more than {MERGE_LIMIT:,} values")


class JsonLoader(Loader):
    """A loader of YAML 1.2 with the JSON schema, as Java's snakeyaml-engine reads it.

    ``yes``, ``007`` and ``2026-01-01`` are text in it, and ``<<`` is an ordinary key.
    """


JsonLoader.yaml_implicit_resolvers = {}  # without those of YAML 1.1
for _kind, _pattern in (
    ("null", "null|"),
    ("bool", "true|false"),
    ("int", "-?(0|[1-9][0-9]*)"),
    ("float", r"-?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]+)?|-?\.inf|\.nan"),
):
    _tag, _whole = f"tag:yaml.org,2002:{_kind}", re.compile(rf"(?:{_pattern})\Z")
    JsonLoader.add_implicit_resolver(_tag, _whole, None)


def documents(text: Text, loader: type[Loader] = Loader, kind: str = "") -> Iterator[Document]:
    """The API objects of one file; each List comes before its items.

    ``kind`` is that of objects that name none; if it is empty, they are refused.

    Raises:
        BadFile: the text is not YAML or JSON, or something in it is not an API object.
    """
    for number, raw in enumerate(_parsed(text, loader), start=1):
        place = f"{text.name}, document {number}"
        if raw is not None:
            yield from _objects(raw, place, kind)


def _parsed(text: Text, kind: type[Loader]) -> Iterator[Any]:
    try:
        content = text.content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise BadFile(text.name, f"is not text: byte {problem.start} is no UTF-8") from problem
    if content.lstrip().startswith("{"):
        try:
            raw = json.loads(content)
        except (ValueError, RecursionError):
            pass  # several documents, or YAML in braces
        else:
            _demand_sane(raw, f"{text.name}, document 1")
            yield raw
            return
    if len(content) > YAML_LIMIT:
        size = f"is {len(content) / 1e6:,.0f} million characters of YAML"
        most = f"at most {YAML_LIMIT // 1_000_000} million are read"
        raise BadFile(text.name, f"{size}, {most}: write it as JSON, as `kubectl get -o json` does")
    _demand_shallow(content, text.name)
    number = 1
    loader = None
    try:
        loader = kind(content)
        while loader.check_data():  # type: ignore[no-untyped-call]  # the stub lacks the type
            raw = loader.get_data()
            _demand_sane(raw, f"{text.name}, document {number}")
            yield raw
            loader.merged = 0
            number += 1
    except _UNREADABLE as problem:
        place = f"{text.name}, document {number}"
        raise BadFile(place, f"cannot be read: {_error_line(problem)}") from problem
    finally:
        if loader is not None:
            loader.dispose()


def _demand_shallow(content: str, name: str) -> None:
    """Refuse a text that is nested too deeply, before libyaml composes it by recursion in C."""
    number = depth = 0
    parser = Loader(content)
    try:
        while parser.check_event():
            event = parser.get_event()
            number += isinstance(event, yaml.DocumentStartEvent)
            if number > DOCUMENTS_LIMIT:
                most = f"has more than {DOCUMENTS_LIMIT:,} documents"
                raise BadFile(name, f"{most}: leave out empty ones, or make Lists of them")
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEPTH_LIMIT:
                _refuse_depth(f"{name}, document {number}")
    except yaml.YAMLError:
        return  # the reader reports it
    finally:
        parser.dispose()


def _refuse_depth(place: str) -> NoReturn:
    raise BadFile(place, f"it is nested more than {DEPTH_LIMIT} deep")


def _error_line(problem: Exception) -> str:
    """The error on one line; the messages of PyYAML have several."""
    if isinstance(problem, RecursionError):
        return "it is nested too deeply"
    if isinstance(problem, yaml.MarkedYAMLError) and problem.problem_mark is not None:
        return f"line {problem.problem_mark.line + 1}: {problem.problem or problem.context}"
    return str(problem)[:SHOWN] or type(problem).__name__


def _demand_sane(raw: Any, place: str) -> None:
    """Refuse a value that is too large or too deep once aliases are resolved."""
    sizes: dict[int, int] = {}  # of containers that have been measured
    path: set[int] = set()  # containers that are being measured
    todo: list[tuple[Any, bool]] = [(raw, False)]
    while todo:
        value, is_measured = todo.pop()
        name = id(value)
        if is_measured:
            path.discard(name)
            sizes[name] = 1 + sum(sizes.get(id(inner), 1) for inner in _inner(value))
            if sizes[name] > len(sizes) + ALIAS_LIMIT:
                raise BadFile(place, f"its aliases stand for more than {ALIAS_LIMIT:,} values")
        elif name in path:
            raise BadFile(place, "an alias stands for something that it is part of")
        elif name not in sizes and isinstance(value, dict | list | tuple | set):
            path.add(name)
            if len(path) > DEPTH_LIMIT:
                _refuse_depth(place)
            todo.append((value, True))
            todo.extend((inner, False) for inner in _inner(value))


def _inner(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value
    return [item for item in inner if isinstance(item, dict | list | tuple | set)]


def _objects(
    raw: Any, place: str, kind: str = "", version: str = "", depth: int = 0
) -> Iterator[Document]:
    if depth > LISTS_LIMIT:
        raise BadFile(place, f"is a List in more than {LISTS_LIMIT} Lists")
    if not isinstance(raw, Mapping):
        raise BadFile(place, f"is no API object but {_excerpt(raw)}")
    kind, version = raw.get("kind") or kind, raw.get("apiVersion") or version
    if not isinstance(kind, str) or not kind:
        raise BadFile(place, "kind: is missing, or no text")
    if not isinstance(version, str):
        raise BadFile(place, "apiVersion: is no text")
    group = version.rpartition("/")[0]
    items = raw.get("items")
    if not kind.endswith("List") or not (items is None or isinstance(items, list)):
        yield Document(place, kind, group, raw)
        return
    yield Document(place, "List", "", {"metadata": raw.get("metadata")})
    for number, item in enumerate(items or (), start=1):
        # The items of a list of one kind need not name the kind.
        inner = f"{place}, item {number}"
        yield from _objects(item, inner, kind.removesuffix("List"), version, depth + 1)


def _excerpt(raw: Any) -> str:
    word = {list: "a list", str: "text", bool: "a truth value"}.get(type(raw), "a number")
    return f"{word}: {str(raw)[:40]!r}" if isinstance(raw, str) else word
