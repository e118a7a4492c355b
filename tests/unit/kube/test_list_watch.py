"""The supply side and a scripted server: lists replace, watches add, failures are waited out."""

import asyncio
import gc
import json
import logging
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import pytest

from tutti.kube import errors, kinds, list_watch, wire
from tutti.kube.calls import Stream
from tutti.kube.codec import decode
from tutti.kube.list_watch import Item, ObjectList, Reflector
from tutti.model.cluster import ForeignPod
from tutti.model.keys import Uid
from tutti.model.resources import Resources
from tutti.state.store import Store

from . import objects

Json = dict[str, Any]
Script = list[list[bytes] | errors.ApiError]


class Scripted:
    """A Source that answers from two scripts, and is done when a watch has no more."""

    def __init__(self, pages: Script, watches: Script) -> None:
        self._pages = iter(pages)
        self._rest: Iterator[bytes] = iter(())
        self._watches: Iterator[list[bytes] | errors.ApiError] = iter(watches)
        self.asked: list[str] = []
        self.are_shown = asyncio.Event()  # a watch showed nothing, or there are no more
        self.is_done = asyncio.Event()

    async def page(self, stream: Stream, after: str = "") -> bytes:
        """Answer with the next list's next page."""
        assert stream is kinds.BOUND
        if not after:
            self.asked.append("list")
            answer = next(self._pages)
            if isinstance(answer, errors.ApiError):
                raise answer
            self._rest = iter(answer)
        return next(self._rest)

    async def watch(self, stream: Stream, version: str) -> AsyncIterator[bytes]:
        """Answer with the next watch."""
        self.asked.append(version)
        answer = next(self._watches, None)
        assert stream is kinds.BOUND
        if not answer:
            self.are_shown.set()
        if answer is None:
            self.is_done.set()
            await asyncio.Event().wait()
        if isinstance(answer, errors.ApiError):
            raise answer
        for line in answer or ():
            yield line


class Heard:
    """A Sink that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.is_fresh = False

    def expire(self) -> None:
        """Nobody asks here whether a list is fresh."""

    def began(self) -> int:
        """Number the lists."""
        return 1

    def known(self, uid: Uid, version: int, listed: int) -> ForeignPod | None:
        """Nothing is kept here."""

    def replace(self, objects: ObjectList[ForeignPod], version: int, began: int) -> None:
        """Note a list."""
        self.told.append((version, sorted(objects.versions), began))

    def put(self, item: Item[ForeignPod]) -> None:
        """Note an object."""
        self.told.append(("put", item.uid, item.version))

    def drop(self, uid: Uid) -> None:
        """Note a deletion."""
        self.told.append(("drop", uid))

    def leave(self, uid: Uid, version: int) -> None:
        """Note a departure."""
        self.told.append(("leave", uid, version))


def pod(uid: str, version: int, phase: str = "Running", cpu: object = "1") -> Json:
    spec = {"nodeName": "n1", "containers": [objects.container(cpu=cpu)]}
    meta = {"uid": uid, "resourceVersion": str(version), "name": uid}
    return objects.merged(objects.POD, {"metadata": meta, "spec": spec, "status": {"phase": phase}})


def page(version: int, *pods: Json, more: str = "") -> bytes:
    head = {"resourceVersion": str(version), "continue": more}
    return json.dumps({"kind": "PodList", "metadata": head, "items": pods}).encode()


def line(kind: str, body: Json) -> bytes:
    return json.dumps({"type": kind, "object": body}).encode()


async def followed(
    pages: Script, watches: Script, *, is_optional: bool = False
) -> tuple[list[object], list[str]]:
    """What the sink heard and the source was asked, until the scripts end."""
    source, sink = Scripted(pages, watches), Heard()
    feed = Reflector(kinds.BOUND, wire.Pod, decode.decode_occupant, sink, is_optional)
    following = asyncio.create_task(list_watch.follow(source, feed))
    await asyncio.wait([following, asyncio.ensure_future(source.is_done.wait())], timeout=10,
                       return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
    assert not following.done(), following.exception()
    following.cancel()
    with suppress(asyncio.CancelledError):
        await following
    return sink.told, source.asked


async def test_a_list_of_several_pages_is_taken_whole_and_watched_from_its_version() -> None:
    told, asked = await followed([[page(5, pod("a", 1), more="x"), page(5, pod("b", 2))]], [])
    assert told == [(5, ["a", "b"], 1)]
    assert asked == ["list", "5"]


async def test_a_watch_adds_changes_and_removes_and_moves_the_version_on() -> None:
    lines = [
        line("ADDED", pod("a", 6)),
        line("MODIFIED", pod("a", 7)),
        line("DELETED", pod("a", 8)),
        line("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "90"}}),
    ]
    told, asked = await followed([[page(5)]], [lines])
    assert told == [(5, [], 1), ("put", "a", 6), ("put", "a", 7), ("drop", "a")]
    assert asked == ["list", "5", "90"]


async def test_what_is_of_no_interest_any_more_leaves_and_may_come_back() -> None:
    lines = [line("MODIFIED", pod("a", 6, "Succeeded")), line("MODIFIED", pod("a", 7))]
    told, _ = await followed([[page(5, pod("a", 1), pod("b", 2, "Failed"))]], [lines])
    assert told == [(5, ["a"], 1), ("leave", "a", 6), ("put", "a", 7)]


@pytest.mark.parametrize("is_in_stream", [True, False], ids=["as an event", "as an answer"])
async def test_an_expired_watch_begins_again_with_a_list(*, is_in_stream: bool) -> None:
    expired = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    first: list[bytes] | errors.ApiError = [line("ERROR", expired)]
    if not is_in_stream:
        first = errors.Gone("too old", status=410)
    told, asked = await followed([[page(5, pod("a", 1))], [page(9, pod("b", 7))]], [first])
    assert told == [(5, ["a"], 1), (9, ["b"], 1)]
    assert asked == ["list", "5", "list", "9"]


async def test_a_server_that_is_away_is_waited_for_and_taken_up_where_it_was() -> None:
    away = errors.Unavailable("away.")
    told, asked = await followed([away, [page(5)]], [away, [line("ADDED", pod("a", 6))]])
    assert told == [(5, [], 1), ("put", "a", 6)]
    assert asked == ["list", "list", "5", "5", "6"]


async def test_a_watch_that_ends_is_taken_up_at_once_unless_it_showed_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(list_watch, "FIRST_WAIT", 3600.0)
    added = [line("ADDED", pod("a", version)) for version in (2, 3)]
    source = Scripted([[page(1)]], [added[:1], added[1:], []])
    feed = Reflector(kinds.BOUND, wire.Pod, decode.decode_occupant, Heard())
    following = asyncio.create_task(list_watch.follow(source, feed))
    async with asyncio.timeout(60):
        await source.are_shown.wait()
    await asyncio.wait([following], timeout=0.1)
    following.cancel()
    assert source.asked == ["list", "1", "2", "3"]


async def test_a_list_that_is_not_there_is_not_asked_for_in_a_loop() -> None:
    source = Scripted([errors.Gone("no such resource", status=404)] * 100, [])
    feed = Reflector(kinds.BOUND, wire.Pod, decode.decode_occupant, Heard())
    following = asyncio.create_task(list_watch.follow(source, feed))
    await asyncio.wait([following], timeout=0.3)
    assert not following.done()
    following.cancel()
    assert len(source.asked) == 1


async def test_a_kind_that_may_be_missing_is_looked_for_again_and_not_complained_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(list_watch, "LONGEST_WAIT", 0.01)
    missing = errors.Gone("no such resource", status=404)
    told, asked = await followed([missing, missing, [page(5)]], [], is_optional=True)
    assert (told, asked) == ([(0, [], 1), (0, [], 1), (5, [], 1)], ["list", "list", "list", "5"])
    assert caplog.text == ""


async def test_where_no_watch_begins_any_more_all_are_listed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a restore of etcd the version to watch from is in the future for a long time."""
    monkeypatch.setattr(list_watch, "LONGEST_WAIT", 0.0)
    tries = list_watch.MOST_FRUITLESS + 1
    ahead: Script = [errors.Unavailable("Too large resource version.")] * tries
    told, asked = await followed([[page(9, pod("a", 8))], [page(5, pod("b", 1))]], ahead)
    assert told == [(9, ["a"], 1), (5, ["b"], 1)]
    assert asked == ["list", *["9"] * tries, "list", "5"]


async def test_an_answer_that_is_no_list_clears_nothing() -> None:
    told, _ = await followed([[b"{}"], [b"not json"], [page(5)]], [])
    assert told == [(5, [], 1)]


async def test_broken_objects_are_left_out_and_said(caplog: pytest.LogCaptureFixture) -> None:
    listed = page(5, pod("a", 1), pod("bad", 2, cpu="many"), {"metadata": {"name": 3}})
    unreadable = objects.merged(pod("b", 8), {"spec": "none"})
    lines = [
        line("ADDED", pod("worse", 6, cpu=[])),
        line("ADDED", pod("c", 7)),
        line("MODIFIED", unreadable),
        line("DELETED", objects.merged(pod("c", 9), {"status": 7})),
    ]
    with caplog.at_level(logging.ERROR):
        told, asked = await followed([[listed]], [lines])
    assert told == [
        (5, ["a"], 1),
        ("leave", "worse", 6),
        ("put", "c", 7),
        ("leave", "b", 8),
        ("drop", "c"),
    ]
    assert asked[-1] == "9"
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 5
    assert all("left out" in one for one in said)


async def test_an_object_that_is_nested_deeply_ends_no_watch() -> None:
    deep = json.dumps(pod("deep", 6)).replace('"spec": {', '"spec": {"a": ' + "[" * 5_000, 1)
    deep = deep.replace("[" * 5_000, "[" * 5_000 + "]" * 5_000 + ", ")
    event = f'{{"type": "MODIFIED", "object": {deep}}}'.encode()
    told, asked = await followed([[page(5)]], [[event, line("ADDED", pod("c", 7))]])
    assert told == [(5, [], 1), ("put", "deep", 6), ("put", "c", 7)]
    assert asked[-1] == "7"


async def test_where_nothing_says_which_object_is_broken_all_are_listed_again() -> None:
    lines = [line("DELETED", {"metadata": {"labels": 3}}), line("ADDED", pod("b", 7))]
    told, asked = await followed([[page(5, pod("a", 1))], [page(9, pod("b", 7))]], [lines])
    assert told == [(5, ["a"], 1), (9, ["b"], 1)]
    assert asked == ["list", "5", "list", "9"]


async def test_only_what_changed_since_the_last_list_is_decoded() -> None:
    decoded: list[str] = []

    def decoder(wire_pod: wire.Pod) -> ForeignPod | None:
        decoded.append(wire_pod.metadata.name)
        return decode.decode_occupant(wire_pod)

    over = pod("over", 3, phase="Succeeded")
    first = page(5, pod("a", 1), pod("b", 2), over)
    second = page(8, pod("a", 1), pod("b", 7, cpu="2"), over)
    restored = page(6, pod("a", 1, cpu="3"), pod("b", 2))
    source = Scripted([[first], [second], [restored]], [])
    store: Store[ForeignPod] = Store(lambda *_: None, lambda _: None)
    feed = Reflector(kinds.BOUND, wire.Pod, decoder, store)
    await list_watch.relist(source, feed)
    kept = store.get(Uid("a"))
    await list_watch.relist(source, feed)
    assert decoded == ["a", "b", "over", "b", "over"]
    assert store.get(Uid("a")) is kept
    changed = store.get(Uid("b"))
    assert changed is not None
    assert changed.requests == Resources.of({"cpu": 2000, "pods": 1})
    # Versions have gone back: an object of the same version may be another one.
    decoded.clear()
    await list_watch.relist(source, feed)
    assert decoded == ["a", "b"]
    other = store.get(Uid("a"))
    assert other is not None
    assert other.requests == Resources.of({"cpu": 3000, "pods": 1})


async def test_the_collector_runs_again_after_a_list_that_failed() -> None:
    import gc  # noqa: PLC0415 - only this test looks at it

    source = Scripted([errors.Unavailable("away.")], [])
    feed = Reflector(kinds.BOUND, wire.Pod, decode.decode_occupant, Heard())
    with pytest.raises(errors.Unavailable):
        await list_watch.relist(source, feed)
    assert gc.isenabled()


# The next page


class Paged:
    """A Source of pages by continue token, which notes when a request begins."""

    def __init__(self, pages: dict[str, bytes | errors.ApiError]) -> None:
        self._pages = pages
        self.noted: list[str] = []

    async def page(self, stream: Stream, after: str = "") -> bytes:
        """Answer one turn of the event loop later."""
        assert stream is kinds.BOUND
        self.noted.append(f"asked for {after}")
        await asyncio.sleep(0)
        answer = self._pages[after]
        if isinstance(answer, errors.ApiError):
            raise answer
        return answer

    def watch(self, stream: Stream, version: str) -> AsyncIterator[bytes]:
        """Nobody watches here."""
        raise AssertionError(stream, version)

    async def relist(self) -> list[object]:
        """What the sink was told of one list."""
        sink = Heard()

        def decoded(body: wire.Pod) -> ForeignPod:
            self.noted.append(f"decoded {body.metadata.uid}")
            return decode.decode_occupant(body)  # type: ignore[return-value]

        await list_watch.relist(self, Reflector(kinds.BOUND, wire.Pod, decoded, sink))
        return sink.told


def as_go_writes(token: str, *pods: Json, version: str = "5", rest: str = "") -> bytes:
    head = f'{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"'
    more = f',"continue":"{token}","remainingItemCount":1' if token else ""
    return f'{head}{more}}},"items":{json.dumps(pods)}{rest}}}'.encode()


async def test_the_server_prepares_the_next_page_while_a_page_is_decoded() -> None:
    source = Paged({"": as_go_writes("t1", pod("a", 1)), "t1": as_go_writes("", pod("b", 2))})
    assert await source.relist() == [(5, ["a", "b"], 1)]
    assert source.noted == ["asked for ", "asked for t1", "decoded a", "decoded b"]


async def test_a_token_that_only_looks_like_that_of_the_list_is_not_used() -> None:
    again = ',"metadata":{"resourceVersion":"5","continue":"t1"}'
    pages = {"": as_go_writes("x", pod("a", 1), rest=again), "t1": as_go_writes("", pod("b", 2))}
    source = Paged({**pages, "x": as_go_writes("", pod("wrong", 3))})
    assert await source.relist() == [(5, ["a", "b"], 1)]
    assert source.noted == ["asked for ", "asked for x", "decoded a", "asked for t1", "decoded b"]


@pytest.mark.parametrize("page_after", [errors.Gone("expired", status=410), as_go_writes("")])
async def test_the_next_page_is_given_up_with_a_list_that_cannot_be_used(
    page_after: bytes | errors.ApiError, caplog: pytest.LogCaptureFixture
) -> None:
    source = Paged({"": as_go_writes("t1", pod("a", 1), version=""), "t1": page_after})
    with pytest.raises(errors.Unavailable, match="names no version"):
        await source.relist()
    for _ in range(5):
        await asyncio.sleep(0)
    gc.collect()
    assert not caplog.text


async def test_no_object_of_a_page_is_in_memory_when_the_next_page_is_parsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = Paged({"": as_go_writes("t1", pod("a", 1)), "t1": as_go_writes("", pod("b", 2))})
    bodies: list[weakref.ref[wire.Pod]] = []
    alive: list[int] = []
    parse_page = wire.parse_page

    def parsed(raw: bytes, kind: type[wire.Pod]) -> object:
        alive.append(sum(body() is not None for body in bodies))
        return parse_page(raw, kind)

    def decoded(body: wire.Pod) -> None:
        bodies.append(weakref.ref(body))

    monkeypatch.setattr(wire, "parse_page", parsed)
    await list_watch.relist(source, Reflector(kinds.BOUND, wire.Pod, decoded, Heard()))
    assert alive == [0, 0]
    assert len(bodies) == 2


async def test_an_error_of_the_next_page_ends_the_list() -> None:
    source = Paged({"": as_go_writes("t1", pod("a", 1)), "t1": errors.Gone("old", status=410)})
    with pytest.raises(errors.Gone):
        await source.relist()
    assert source.noted == ["asked for ", "asked for t1", "decoded a"]
