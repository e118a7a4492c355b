"""Kopf against a small API server: whatever its watches meet, the stores are what there is."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import kopf
import pytest

from tutti.kube import client, errors
from tutti.kube.client import Client
from tutti.kube.list_watch import Item
from tutti.model.keys import NodeName, Uid
from tutti.operator import handlers, kopf_lists
from tutti.operator.kopf_lists import KopfLists, persist
from tutti.state.cluster_state import ClusterState
from tutti.state.reflectors import Reflectors, reflectors_into

from ..apiserver import GROUPS, PODS, ApiServer, Request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tutti.kube.access import Access

PATIENCE = 20.0


class Running:
    """kopf at work on one World."""

    def __init__(self, api: ApiServer, source: Client, *, is_optional: bool = False) -> None:
        self.api = api
        self.state = ClusterState(lambda: None)
        feeds = reflectors_into(self.state, "tutti")
        gangs = tuple(replace(feed, is_optional=is_optional) for feed in feeds.gangs)
        self.feeds: Reflectors = replace(feeds, gangs=gangs)
        self.demand = KopfLists(source, self.feeds.demand, self._note)
        self.begun = 0
        self.current = 0  # how many times the lists became current
        self.on_current: Callable[[], object] = lambda: None
        access = cast("Access", api)
        self.registry = partial(handlers.registry, self.state, self.demand, access, self.feeds)

    async def run(self) -> None:
        """Begin and go on, as ``main`` does."""
        begin = partial(persist, self.demand.list_all)
        await begin()
        await self.demand.run(self.registry, begin=begin, began=self._count)

    def _note(self) -> None:
        assert self.demand.is_current
        self.current += 1
        self.on_current()

    def _count(self) -> None:
        self.begun += 1

    @property
    def known(self) -> dict[str, set[str]]:
        """The uids of all objects that the World knows."""
        pods = {str(member.uid) for member in self.state.pods.pending}
        return {PODS: pods, GROUPS: {str(group.uid) for group in self.state.groups}}

    @property
    def is_true(self) -> bool:
        """Whether that is what there is."""
        return self.known == {plural: set(kept) for plural, kept in self.api.objects.items()}

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for something."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not holds():  # noqa: ASYNC110 - what is waited for knows no event
                    await asyncio.sleep(0.01)
        except TimeoutError:
            pytest.fail(f"not within {PATIENCE} s: {what}; {self.known}, {self.api.requests}")

    async def wait_for_watch(self) -> None:
        """Wait until both kinds are watched and the World knows what there is."""
        await self.until(
            lambda: self.demand.is_current and self.is_true and len(self.api.watches) == 2,
            "the World knows what there is",
        )


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Keep no log record of a task that failed, which would keep the task.

    asyncio tells of it when it is freed; Python 3.11 parses source code for that, and fails where
    it is just parsing some.
    """
    for name in ("kopf", "asyncio"):
        caplog.set_level(logging.CRITICAL, logger=name)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again soon, and look only in tests that need it: a slow start is not to be restarted."""
    monkeypatch.setattr(kopf_lists, "FIRST_CHECK", 3600.0)
    monkeypatch.setattr(kopf_lists, "CHECK_SECONDS", 0.1)
    monkeypatch.setattr(kopf_lists, "LONGEST_WAIT", 0.2)
    monkeypatch.setattr(handlers, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(handlers.Backoffs, "__iter__", lambda _self: iter([0.05] * 1000))


@pytest.fixture
def looks_soon(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - comes first
    """Look soon whether kopf's watches show anything."""
    monkeypatch.setattr(kopf_lists, "FIRST_CHECK", 1.0)


@asynccontextmanager
async def running(api: ApiServer, *, is_optional: bool = False) -> AsyncIterator[Running]:
    """Run kopf from its begin to its end; nothing of it is left behind."""
    async with Client(cast("Access", api)) as source:
        running = Running(api, source, is_optional=is_optional)
        task = asyncio.create_task(running.run())
        try:
            yield running
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            gc.collect()  # coroutines that kopf leaves behind, before a failure is told
        assert not [each for each in asyncio.all_tasks() if each.get_name().startswith("watcher")]


def _of(plural: str, requests: list[Request]) -> list[str]:
    return [request.verb for request in requests if request.plural == plural]


@pytest.mark.parametrize("is_old", [False, True])
async def test_a_watch_of_kopf_begins_at_the_first_list_of_ours_unless_that_is_old(
    monkeypatch: pytest.MonkeyPatch, *, is_old: bool
) -> None:
    """The first lists are of all kinds; nothing may be decided before kopf watches."""
    if is_old:
        monkeypatch.setattr(kopf_lists, "FRESH_SECONDS", -1.0)
    early: list[bool] = []
    async with ApiServer() as api, running(api) as one:
        api.before = lambda asked: early.append(one.demand.is_current and asked.verb == "list")
        api.put(PODS, "a")
        api.put(GROUPS, "g")
        await one.wait_for_watch()
        assert [str(asked) for asked in api.requests[:2]] == ["list podgroups", "list pods"]
        for plural in (PODS, GROUPS):
            lists = ["list"] * (3 if is_old else 2)
            assert _of(plural, api.requests) == [*lists, "watch"]
        assert not any(early)
        assert sorted(api.selectors) == ["list podgroups none,!none", "list pods none,!none"]
        api.put(PODS, "b")
        api.put(GROUPS, "h")
        await one.until(lambda: one.is_true, "watches show what is new")
        api.delete(PODS, "a")
        api.put(PODS, "b", nodeName="n1")
        api.delete(GROUPS, "g")
        await one.until(lambda: one.is_true, "watches show what goes")
        assert one.begun == 1


async def test_what_happens_between_our_first_list_and_the_watch_of_kopf_is_seen() -> None:
    """Also if the watch is refused at first: kopf then asks for its own version again."""
    async with ApiServer() as api:
        api.put(PODS, "ghost")
        api.put(PODS, "stays")
        listed, refused = str(api.version), list[str]()

        def happen(asked: Request) -> None:
            if str(asked) == "list podgroups" and _of(GROUPS, api.requests) == ["list"] * 2:
                api.delete(PODS, "ghost")
                api.put(PODS, "new")

        def refuse(asked: Request) -> int:
            if str(asked) == "watch pods" and len(refused) < 2:
                refused.append(asked.version)
                return 503
            return 0

        api.before, api.refuse = happen, refuse
        async with running(api) as one:
            await one.wait_for_watch()
            assert one.known[PODS] == {"stays", "new"}
            assert refused == [listed, listed]
            assert one.current == 1
            assert _of(PODS, api.requests) == ["list", "list", "watch", "watch", "watch"]


async def test_nothing_is_decided_on_a_list_that_has_become_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cycle could act for a gang that was deleted while other lists were refused."""
    monkeypatch.setattr(kopf_lists, "FRESH_SECONDS", 0.1)
    seen: list[set[str]] = []
    async with ApiServer() as api:
        api.put(PODS, "ghost")

        def happen(asked: Request) -> None:
            if str(asked) == "list podgroups" and _of(GROUPS, api.requests) == ["list"] * 2:
                api.delete(PODS, "ghost")
                time.sleep(0.2)  # the server's answer takes that long

        api.before = happen
        async with running(api) as one:
            one.on_current = lambda: seen.append(one.known[PODS])
            await one.wait_for_watch()
    assert seen == [set()]


async def test_where_versions_go_back_after_our_first_list_all_is_listed_again() -> None:
    """Versions pass that of our list before anyone looks, so the watch alone would not tell."""
    async with ApiServer() as api:
        version = api.version
        for name in ("ghost", "lost"):
            api.put(PODS, name)

        def happen(asked: Request) -> None:
            if str(asked) == "list pods" and _of(PODS, api.requests) == ["list"] * 2:
                api.restore(version)
                api.put(PODS, "after")

        api.before = happen
        async with running(api) as one:
            await one.until(lambda: len(api.watches) == 2, "kopf watches")
            for name in ("b", "c", "d"):
                api.put(PODS, name)
            await one.wait_for_watch()
            assert one.known[PODS] == {"after", "b", "c", "d"}


async def test_what_was_deleted_between_two_lists_goes_before_what_is_new_comes() -> None:
    """An expired watch: nobody may decide on new members beside those that went unseen."""
    async with ApiServer() as api:
        api.put(PODS, "ghost")
        api.put(PODS, "stays")
        api.put(GROUPS, "g")
        async with running(api) as one:
            await one.wait_for_watch()
            api.refuse = lambda _asked: 503
            api.cut()
            api.delete(PODS, "ghost")
            api.delete(GROUPS, "g")
            api.put(PODS, "new")
            api.expire()
            lists = [0]

            def second_list(request: Request) -> int:
                lists[0] += str(request) == "list pods"
                return 403 if lists[0] > 1 and str(request) == "list pods" else 0

            api.refuse = second_list
            await one.until(lambda: lists[0] > 5, "kopf has listed, and we are refused")
            assert one.known[PODS] == {"ghost", "stays"}
            assert not one.demand.is_current
            api.refuse = lambda _asked: 0
            await one.wait_for_watch()
            assert one.known == {PODS: {"stays", "new"}, GROUPS: set()}


@pytest.mark.parametrize("plural", [PODS, GROUPS])
@pytest.mark.parametrize("at", [1, 2])
async def test_a_list_that_is_refused_is_waited_for_and_nothing_is_decided(
    plural: str, at: int
) -> None:
    """The first list of ours, or kopf's."""
    lists = 0

    def from_then_on(request: Request) -> int:
        nonlocal lists
        lists += str(request) == f"list {plural}"
        return 403 if str(request) == f"list {plural}" and at <= lists < at + 4 else 0

    async with ApiServer() as api:
        api.put(PODS, "a")
        api.refuse = from_then_on
        async with running(api) as one:
            await one.until(lambda: lists > at, "it is refused")
            assert not one.demand.is_current
            await one.wait_for_watch()
            assert one.begun == 1


@pytest.mark.parametrize("code", [500, 504, 403, 0])
async def test_a_watch_that_ends_with_an_error_begins_again(code: int) -> None:
    """It is kopf's end, which leaves its other watches behind; there is one of each again."""
    async with ApiServer() as api:
        api.put(PODS, "a")
        async with running(api) as one:
            await one.wait_for_watch()
            api.fail(code)
            api.delete(PODS, "a")
            await one.until(lambda: one.begun == 2, "kopf is begun again")
            await one.wait_for_watch()
            assert one.current == 2
            api.put(PODS, "b")
            await one.until(lambda: one.is_true, "its watches show what is new")
            assert sorted(asked.plural for asked, _ in api.watches) == [GROUPS, PODS]


@pytest.mark.parametrize("status", [400, 404, 410, 422])
async def test_a_watch_that_may_not_begin_is_listed_again(status: int) -> None:
    """An answer that kopf does not try again ends it."""
    async with ApiServer() as api:
        api.put(PODS, "a")
        async with running(api) as one:
            await one.wait_for_watch()
            since = int(api.watches[0][0].version)
            api.refuse = lambda asked: (
                status if asked.verb == "watch" and int(asked.version) <= since + 1 else 0
            )
            api.delete(PODS, "a")
            api.put(PODS, "b")
            await one.until(lambda: one.is_true, "it is shown still")
            api.cut()
            api.put(PODS, "c")
            api.put(GROUPS, "g")
            await one.wait_for_watch()


@pytest.mark.usefixtures("looks_soon")
async def test_where_versions_go_back_all_is_listed_again() -> None:
    """A watch from a version that is to come shows nothing, and ends with no error."""
    async with ApiServer() as api:
        api.put(PODS, "stays")
        async with running(api) as one:
            version = api.version
            for i in range(30):
                api.put(PODS, f"ghost-{i}")
            await one.wait_for_watch()
            api.cut()
            await one.until(lambda: len(api.watches) == 2, "they are watched again")
            api.restore(version)
            api.put(PODS, "after")
            await one.wait_for_watch()
            assert one.known[PODS] == {"stays", "after"}


async def test_crds_that_go_and_come_back_are_noticed() -> None:
    """While there are none nothing is decided, and other kinds need not be restarted by hand."""
    async with ApiServer() as api, running(api) as one:
        await one.wait_for_watch()
        api.kinds.discard(GROUPS)
        api.refuse = lambda asked: 404 if asked.plural == GROUPS else 0
        api.cut()
        await one.until(lambda: not one.demand.is_current, "it is noticed")
        api.put(PODS, "a")
        api.kinds.add(GROUPS)
        api.refuse = lambda _asked: 0
        api.put(GROUPS, "g")
        await one.wait_for_watch()


@pytest.mark.usefixtures("looks_soon")
async def test_an_optional_crd_may_be_absent_and_may_come_and_go() -> None:
    """Pods are served meanwhile; no object is left of a kind that has gone."""

    def absent(request: Request) -> int:
        return 404 if request.plural == GROUPS else 0

    async with ApiServer() as api:
        api.kinds.discard(GROUPS)
        api.refuse = absent
        async with running(api, is_optional=True) as one:
            await one.until(lambda: one.demand.is_current, "the other kinds are watched")
            api.put(PODS, "a")
            await one.until(lambda: one.known[PODS] == {"a"}, "pods are taken in")
            api.kinds.add(GROUPS)
            api.refuse = lambda _asked: 0
            api.put(GROUPS, "g")
            await one.until(lambda: one.known[GROUPS] == {"g"}, "the new kind is watched")
            api.kinds.discard(GROUPS)
            api.refuse = absent
            api.cut()
            await one.until(lambda: one.known[GROUPS] == set(), "nothing is left of it")
            await one.until(lambda: one.demand.is_current, "the other kinds are watched again")


@pytest.mark.usefixtures("looks_soon")
async def test_no_object_is_left_of_an_optional_kind_that_goes_before_kopf_starts() -> None:
    """Kopf never watches the kind; until this is noticed, nothing may be decided."""
    async with ApiServer() as api:
        api.put(GROUPS, "g")

        def groups_go(asked: Request) -> None:
            if str(asked) == "list pods":  # right after the first list of the groups
                api.kinds.discard(GROUPS)
                api.refuse = lambda asked: 404 if asked.plural == GROUPS else 0

        api.before = groups_go
        async with running(api, is_optional=True) as one:
            early: list[set[str]] = []

            def is_current() -> bool:
                if one.demand.is_current:
                    early.append(one.known[GROUPS])
                return bool(early)

            await one.until(is_current, "it is noticed")
            assert early == [set()]


@pytest.mark.usefixtures("looks_soon")
async def test_crds_that_discovery_does_not_show_yet_are_noticed() -> None:
    """The API server answers lists of a new kind before its discovery names it."""
    async with ApiServer() as api:
        api.kinds.discard(GROUPS)
        async with running(api) as one:
            await one.until(lambda: "watch" in _of(PODS, api.requests), "kopf watches pods")
            assert not one.demand.is_current
            api.kinds.add(GROUPS)
            api.put(GROUPS, "g")
            await one.wait_for_watch()
            assert one.begun > 1


async def test_more_than_one_page_is_listed_and_followed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A watch begins once the last page of our list was read."""
    monkeypatch.setattr(client, "PAGE", 2)
    async with ApiServer() as api:
        for i in range(7):
            api.put(PODS, f"p{i}")
        async with running(api) as one:
            await one.wait_for_watch()
            assert _of(PODS, api.requests) == ["list", "list", "watch"]


def _deeds(api: ApiServer, chance: random.Random) -> None:
    """Let one thing happen in the cluster, or to the watches."""
    plural = chance.choice([PODS, PODS, GROUPS])
    there = sorted(api.objects[plural])
    deed = chance.choice(["put", "put", "put", "delete", "bind", "cut", "expire", "fail", "refuse"])
    if deed == "put":
        api.put(plural, f"{plural}-{chance.randrange(8)}-{api.version}")
    elif deed == "delete" and there:
        api.delete(plural, chance.choice(there))
    elif deed == "bind" and there and plural == PODS:
        api.put(plural, chance.choice(there), nodeName="n1")
    elif deed == "cut":
        api.cut()
    elif deed == "expire":
        api.cut()
        api.expire()
    elif deed == "fail":
        api.fail(chance.choice([410, 410, 500]))
    elif deed == "refuse":
        status, verb = chance.choice([403, 429, 503, 410]), chance.choice(["list", "watch"])
        left = [chance.randrange(1, 4)]

        def refuse(request: Request) -> int:
            left[0] -= request.verb == verb
            return status if request.verb == verb and left[0] >= 0 else 0

        api.refuse = refuse


@pytest.mark.usefixtures("looks_soon")
@pytest.mark.parametrize("seed", range(8))
async def test_whatever_happens_no_ghost_stays_and_nothing_is_missed(seed: int) -> None:
    """Objects, watches and refusals by chance; in the end the World knows what there is."""
    chance = random.Random(seed)
    async with ApiServer() as api, running(api) as one:
        await one.wait_for_watch()
        for _ in range(40):
            _deeds(api, chance)
            await asyncio.sleep(chance.choice([0, 0, 0.01, 0.05]))
        api.refuse = lambda _asked: 0
        await one.wait_for_watch()


# What a handler takes in


def _when(running: Running) -> Any:
    (handler,) = (
        each
        for each in running.registry()._watching.get_all_handlers()
        if each.selector is not None and "pods" in str(each.selector)
    )
    return handler.when


def test_events_end_for_pods_alone_that_never_wait_again() -> None:
    """Not for one whose binding was sent and got no answer: it may have failed."""
    api = ApiServer()
    running = Running(api, cast("Client", None))
    may_wait = _when(running)
    for uid in ("sent", "confirmed", "shown", "waits"):
        api.put(PODS, uid)
        body = api.objects[PODS][uid]
        handlers.take_in(running.feeds.pending, {"type": "ADDED", "object": body}, uid)
    members = {member.uid: member for member in running.state.pods.pending}
    for uid in ("sent", "confirmed"):
        running.state.pods.assume(members[Uid(uid)], NodeName("n1"))
    running.state.pods.confirm(Uid("confirmed"), 1.0)
    running.state.pods.bound.put(Item(Uid("shown"), 99, members[Uid("shown")]))
    open_uids = {uid for uid in members if may_wait(uid=uid, event={"type": "MODIFIED"})}
    assert open_uids == {"sent", "waits"}
    running.state.pods.retract(Uid("sent"))
    assert may_wait(uid="sent")


@pytest.mark.parametrize("is_broken", [False, True], ids=["cannot be decoded", "cannot be read"])
def test_a_pod_that_could_not_be_read_before_our_list_is_not_lost(*, is_broken: bool) -> None:
    """An event may be older than our list, whichever list the watch begins at."""
    api = ApiServer()
    running = Running(api, cast("Client", None))
    api.put(PODS, "a")
    body = api.objects[PODS]["a"]
    spec: Any = {"containers": 5} if is_broken else body["spec"] | {"schedulerName": "other"}
    before = body | {"metadata": body["metadata"] | {"resourceVersion": "3"}, "spec": spec}
    after = body | {"metadata": body["metadata"] | {"resourceVersion": "7"}}
    store = running.state.pods.pending
    handlers.take_in(running.feeds.pending, {"type": "MODIFIED", "object": after}, "a")
    handlers.take_in(running.feeds.pending, {"type": "MODIFIED", "object": before}, "a")
    assert [member.uid for member in store] == ["a"]
    before["metadata"]["resourceVersion"] = "9"
    handlers.take_in(running.feeds.pending, {"type": "MODIFIED", "object": before}, "a")
    assert not list(store)


def test_an_event_of_a_list_changes_nothing() -> None:
    """It only adds; our own list, which replaces, follows."""
    api = ApiServer()
    running = Running(api, cast("Client", None))
    api.put(PODS, "a")
    listed: Any = {"type": None, "object": api.objects[PODS]["a"]}
    handlers.take_in(running.feeds.pending, listed, "a")
    assert not running.known[PODS]


def test_kopf_writes_nothing_keeps_little_and_lists_in_pages() -> None:
    settings = kopf.OperatorSettings()
    feeds = reflectors_into(ClusterState(lambda: None), "tutti")
    handlers.configure(settings, feeds)
    assert not settings.posting.enabled
    assert isinstance(settings.persistence.diffbase_storage, handlers.NoDiffBase)
    assert isinstance(settings.persistence.progress_storage, handlers.NoProgress)
    assert settings.watching.chunk_size == client.PAGE
    assert not settings.watching.initial_streaming
    assert settings.queueing.worker_limit is None
    assert settings.queueing.idle_timeout <= 2
    assert settings.process.ultimate_exiting_timeout is None
    selectors = list(settings.watching.field_selectors.values())
    assert selectors == ["spec.nodeName=,spec.schedulerName=tutti"]


def test_the_watches_of_kopf_wait_no_longer_for_a_machine_that_died_than_ours() -> None:
    settings = kopf.OperatorSettings()
    handlers.configure(settings, reflectors_into(ClusterState(lambda: None), "tutti"))
    assert settings.watching.connect_timeout is None, "that of the network counts"
    assert settings.networking.connect_timeout == client.CONNECT_SECONDS == 30


async def test_persisting_waits_out_whatever_the_server_answers() -> None:
    answers = iter([errors.Gone("no", status=404), errors.Refused("no"), None])

    async def attempt() -> None:
        if (problem := next(answers)) is not None:
            raise problem

    await persist(attempt)
    assert not list(answers)
