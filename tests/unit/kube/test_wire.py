"""Reading pages, events and single objects, hostile ones included."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tutti.kube import errors, wire
from tutti.kube.codec.devices import decode_device_claim, decode_device_class, decode_slice
from tutti.kube.gang_sources.pod_group import PodGroup
from tutti.kube.wire import devices

from .objects import GROUP, NODE, POD, RESERVATION, Json, merged


def page(*items: object, **metadata: object) -> bytes:
    """A list as the API server answers it."""
    head = {"resourceVersion": "77", "continue": "more", **metadata}
    return json.dumps({"kind": "PodList", "metadata": head, "items": items}).encode()


def line(kind: str, item: object) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": kind, "object": item}).encode()


def nested(depth: int) -> Any:
    """A list in a list in a list."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_a_page_has_its_items_version_and_continuation() -> None:
    got = wire.parse_page(page(POD, POD), wire.Pod)
    assert [item.metadata.name for item in got.items] == ["train-0", "train-0"]
    assert (got.version, got.continue_token, got.broken) == ("77", "more", ())


@pytest.mark.parametrize(
    "raw", [b'{"items": null, "metadata": {"resourceVersion": "77"}}', page(resourceVersion="77")]
)
def test_an_empty_page_is_a_page(raw: bytes) -> None:
    got = wire.parse_page(raw, wire.Node)
    assert (got.items, got.version) == ((), "77")


def test_null_means_absent_everywhere() -> None:
    bare = {
        "metadata": {"name": "a", "uid": "u", "labels": None, "creationTimestamp": None},
        "spec": {"containers": None, "tolerations": None, "affinity": None, "volumes": [None]},
        "status": None,
    }
    got = wire.parse_page(page(bare, POD), wire.Pod)
    assert got.broken == ()
    assert got.items[0].spec == wire.PodSpec()
    assert got.items[1] == wire.parse_one(POD, wire.Pod)


BROKEN: dict[str, tuple[object, str, str]] = {
    "labels are a list": (
        merged(POD, {"metadata": {"labels": ["a"]}}),
        "ml/train-0",
        "metadata.labels: Input should be a valid dictionary",
    ),
    "a toleration is a number": (
        merged(POD, {"spec": {"tolerations": [7]}}),
        "ml/train-0",
        "spec.tolerations.0: ",
    ),
    "the time has no zone": (
        merged(POD, {"metadata": {"creationTimestamp": "2026-01-01T00:00:00"}}),
        "ml/train-0",
        "metadata.creationTimestamp: Input should have timezone info",
    ),
    "metadata is text": ({"metadata": "x"}, "a Pod without a name", "metadata: "),
    "the object is a number": (7, "a Pod without a name", "it: "),
    "it is a list": ([POD], "a Pod without a name", "it: "),
    "a field that is read is nested deeply": (
        merged(POD, {"metadata": {"uid": nested(700)}}),
        "ml/train-0",
        "metadata.uid: Input should be a valid string",
    ),
}


@pytest.mark.parametrize(("item", "name", "sentence"), BROKEN.values(), ids=BROKEN)
def test_a_broken_item_is_named_and_its_neighbours_are_read(
    item: object, name: str, sentence: str
) -> None:
    got = wire.parse_page(page(POD, item, POD), wire.Pod)
    assert len(got.items) == 2
    assert (got.version, got.continue_token) == ("77", "more")
    (broken,) = got.broken
    assert broken.name == name
    assert broken.sentence.startswith(sentence)
    assert len(broken.sentence) <= 300


def test_what_no_decision_uses_may_be_nested_deeply() -> None:
    deep = merged(POD, {"metadata": {"managedFields": nested(300)}})
    assert wire.parse_page(page(deep), wire.Pod).items[0].metadata.name == "train-0"


def deep(depth: int, inner: str = "[]") -> str:
    """A list in a list in a list, as text."""
    return "[" * depth + inner + "]" * depth


def claiming(name: str, parameters: str) -> str:
    """A ResourceClaim with these opaque parameters; the API server takes them 5,000 levels deep."""
    config = f'[{{"opaque": {{"driver": "x", "parameters": {{"a": {parameters}}}}}}}]'
    metadata = f'{{"name": "{name}", "namespace": "ml", "uid": "{name}", "resourceVersion": "7"}}'
    result = '{"request": "gpu", "driver": "x", "pool": "n1", "device": "gpu-0"}'
    status = f'{{"allocation": {{"devices": {{"results": [{result}]}}}}}}'
    spec = f'{{"devices": {{"requests": null, "config": {config}}}}}'
    return f'{{"metadata": {metadata}, "spec": {spec}, "status": {status}}}'


DEPTHS = [100, 250, 500, 900, 950, 1_000, 5_000, 100_000]


def kept(claim: devices.ResourceClaim) -> bool:
    """Whether a claim counts, and Tutti takes it for none whose parameters it could write."""
    read = decode_device_claim(claim)
    (result,) = read.allocated or ()
    is_known = read.unsupported == ("devices.config[] (nested too deeply)",)
    return is_known and result.device.name == "gpu-0" and not read.config


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_claim_that_is_nested_deeply_is_read_like_all_others(depth: int) -> None:
    items = f"{claiming('a', '[]')}, {claiming('bad', deep(depth))}, {claiming('b', deep(50))}"
    listed = f'{{"metadata": {{"resourceVersion": "77"}}, "items": [{items}]}}'.encode()
    got = wire.parse_page(listed, devices.ResourceClaim)
    first, bad, last = got.items
    assert [of.metadata.name for of in got.items] == ["a", "bad", "b"]
    assert kept(bad)
    assert all(decode_device_claim(item).config for item in (first, last))


@pytest.mark.parametrize("depth", DEPTHS)
def test_an_event_about_a_claim_that_is_nested_deeply_is_read(depth: int) -> None:
    bad = claiming("bad", deep(depth))
    event = f'{{"type": "ADDED", "object": {bad}}}'.encode()
    assert kept(wire.parse_event(event, devices.ResourceClaim).item)
    assert kept(wire.parse_one(bad, devices.ResourceClaim))
    assert kept(wire.parse_one(bad.encode(), devices.ResourceClaim))


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_class_that_is_nested_deeply_is_known_and_not_supported(depth: int) -> None:
    config = f'[{{"opaque": {{"driver": "x", "parameters": {{"a": {deep(depth)}}}}}}}]'
    raw = f'{{"metadata": {{"name": "gpu", "uid": "u"}}, "spec": {{"config": {config}}}}}'
    read = decode_device_class(wire.parse_one(raw, devices.DeviceClass))
    assert (read.unsupported, read.config) == (("config[] (nested too deeply)",), "")


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_pod_and_devices_with_deep_fields_are_not_lost(depth: int) -> None:
    def read(raw: Json, where: str, kind: type[wire.Object]) -> wire.Object:
        text = json.dumps(merged(raw, {where: {"null": None, "unknown": "DEEP"}}))
        listed = f'{{"items": [{text}]}}'.replace('"DEEP"', deep(depth))
        (item,) = wire.parse_page(listed.encode(), kind).items
        return item

    assert read(POD, "spec", wire.Pod) == wire.Pod.model_validate(POD)
    own = {"name": "gpu-0", "deep": "DEEP", "capacity": None}
    spec = {"driver": "x", "pool": {"name": "n1"}, "devices": [own]}
    piece = read(
        {"metadata": {"name": "a", "uid": "u"}, "spec": spec}, "spec", devices.ResourceSlice
    )
    assert isinstance(piece, devices.ResourceSlice)
    (device,) = decode_slice(piece).devices
    assert device.id.name == "gpu-0"


def test_brackets_in_text_nest_nothing() -> None:
    text = json.dumps('[{"' * 1_000 + "\\")
    inner = f'{{"\\"[": {deep(5_000, text)}, "b": 1}}'
    raw = f'{{"metadata": {{"resourceVersion": "1", "a": {inner}, "continue": {text}}}}}'.encode()
    assert wire.parse_page(raw, wire.Pod).continue_token == json.loads(text)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"not json",
        page(POD)[:-20],
        b"[]",
        b'{"items": 3}',
        b'{"items": [], "metadata": []}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_what_is_no_list_is_an_answer_to_be_asked_for_again(raw: bytes) -> None:
    with pytest.raises(errors.Unavailable):
        wire.parse_page(raw, wire.Pod)


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
def test_an_event_carries_its_object_and_version(kind: str) -> None:
    event = wire.parse_event(line(kind, POD), wire.Pod)
    assert (event.type, event.version, event.item.metadata.name) == (kind, "4711", "train-0")


def test_a_bookmark_has_only_a_version() -> None:
    bookmark = {
        "kind": "Pod",
        "metadata": {"resourceVersion": "4800", "creationTimestamp": None},
        "spec": {"containers": None},
        "status": {},
    }
    event = wire.parse_event(line("BOOKMARK", bookmark), wire.Pod)
    assert (event.type, event.version) == ("BOOKMARK", "4800")


@pytest.mark.parametrize("kind", [wire.Pod, wire.Node, PodGroup, wire.Reservation])
def test_the_end_of_a_watch_is_raised_with_its_reason(kind: type[wire.Object]) -> None:
    gone = {
        "kind": "Status",
        "status": "Failure",
        "code": 410,
        "message": "too old",
        "metadata": {},
    }
    with pytest.raises(errors.Gone, match="too old"):
        wire.parse_event(line("ERROR", gone), kind)
    with pytest.raises(errors.Unavailable):
        wire.parse_event(line("ERROR", None), kind)


def test_an_event_about_a_broken_object_names_it() -> None:
    bad = merged(POD, {"spec": {"containers": 1}})
    with pytest.raises(errors.BadObject, match=r"^ml/train-0: spec\.containers: "):
        wire.parse_event(line("MODIFIED", bad), wire.Pod)


@pytest.mark.parametrize("raw", [b"", b"{}", b"[]", b'{"type": 1}', line("ADDED", POD)[:-9]])
def test_a_cut_line_is_to_be_asked_for_again(raw: bytes) -> None:
    with pytest.raises(errors.Unavailable):
        wire.parse_event(raw, wire.Pod)


def test_one_object_is_read_from_bytes_and_from_maps_alike() -> None:
    for one, kind in (
        (NODE, wire.Node),
        (POD, wire.Pod),
        (GROUP, PodGroup),
        (RESERVATION, wire.Reservation),
    ):
        assert wire.parse_one(json.dumps(one).encode(), kind) == wire.parse_one(one, kind)


def test_yaml_turns_times_into_values_and_they_are_read() -> None:
    parsed: Json = merged(
        POD, {"metadata": {"creationTimestamp": datetime(2026, 1, 1, tzinfo=UTC)}}
    )
    assert wire.parse_one(parsed, wire.Pod).metadata.creation_timestamp is not None


def test_bytes_that_are_no_json_are_a_broken_object() -> None:
    with pytest.raises(errors.BadObject, match="a Pod: is not JSON"):
        wire.parse_one(b"{", wire.Pod)


def test_wire_objects_cannot_be_changed() -> None:
    one = wire.parse_one(NODE, wire.Node)
    with pytest.raises(ValueError, match="frozen"):
        one.metadata.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("kind", [wire.Node, wire.Pod, PodGroup, wire.Reservation])
def test_a_bookmark_has_a_version_and_lacks_all_else(kind: type[wire.Object]) -> None:
    bare = {"kind": kind.__name__, "metadata": {"resourceVersion": "99", "creationTimestamp": None}}
    got = wire.parse_event(line("BOOKMARK", bare), kind)
    assert (got.type, got.version) == ("BOOKMARK", "99")
