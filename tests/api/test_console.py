"""``tutti ui`` on a real API server: what commands say, live, with the rights of the user."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import run
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import aiohttp
import pytest
import yaml

from tutti.console.security import Session

from ..harness import operator_pod
from ..harness.browser.driver import chromium
from ..harness.console import Client
from ..harness.console_process import tutti_ui
from ..harness.operator_process import ACCOUNT, NAMESPACE
from ..harness.proxy import Proxy
from ..harness.rig import Rig, members, pod_group

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

SECONDS = 60.0  # in which the page knows of a change
LINK = re.compile(r"http://127\.0\.0\.1:(\d+)/#token=([\w-]+)")
LISTED = ("pods", "podgroups", "reservations")


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A gang that runs, and one that waits for more nodes."""
    with Rig.start() as started:
        started.nodes(3, cpu=8, memory="32Gi")
        started.create(pod_group("runs", 4), *members("runs", 4, cpu=2))
        started.until_bound("runs", 4)
        started.create(pod_group("waits", 4), *members("waits", 4, cpu=5))
        started.until_waiting("waits", "NotEnoughRoom")
        yield started


@asynccontextmanager
async def opened(folder: Path, kubeconfig: Path) -> AsyncIterator[Client]:
    """The console of a kubeconfig, and a client that used the token of its file."""
    with tutti_ui(folder, "--kubeconfig", str(kubeconfig)) as (link, _):
        text = await asyncio.to_thread(Path(unquote(urlsplit(link).path)).read_text)
        found = LINK.search(text)
        assert found is not None
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
            client = Client(int(found[1]), Session(lambda: ""), http)
            try:
                assert (await client.open(found[2])).status == 200
                yield client
            finally:
                for response in client.responses:
                    response.close()


async def until(client: Client, path: str, wanted: Callable[[Any], bool], **query: str) -> Any:
    """An answer, once it is as it should be."""
    async with asyncio.timeout(SECONDS):
        while not wanted(answer := await client.get(path, **query)):  # noqa: ASYNC110 - polls
            await asyncio.sleep(0.1)
    return answer


async def tutti(rig: Rig, *words: str) -> Any:
    """What a command prints as JSON."""
    config = ("--kubeconfig", str(rig.plane.kubeconfig))
    command = [sys.executable, "-m", "tutti", *words, "-o", "json", *config]
    done = await asyncio.to_thread(run, command, capture_output=True, check=True)
    return json.loads(done.stdout)


async def test_the_page_says_what_the_commands_say_and_follows_the_cluster(
    rig: Rig, tmp_path: Path
) -> None:
    async with opened(tmp_path, rig.plane.kubeconfig) as client:
        about = await client.get("/api/about")
        assert (about["live"], about["missing"]) == (True, [])
        status = await tutti(rig, "status", "-A")
        *_, last = await client.explain("ml/waits")
        assert last["answer"]["gangs"] == (await tutti(rig, "explain", "ml/waits"))["gangs"]
        answer = await client.get("/api/waiting")
        assert answer["states"] == status["states"]
        (waits,) = answer["rows"]
        assert (waits["gang"], waits["reason"], waits["place"]) == ("ml/waits", "NotEnoughRoom", 1)
        gang = await client.get("/api/gang", name="ml/waits")
        events = (await client.get("/api/events", gang="ml/waits"))["events"]
        assert "NotEnoughRoom" in {event["reason"] for event in events}
        assert "Reserved" in {line["type"] for line in gang["conditions"]}
        wish = {"addNodes": [{"count": 4, "like": "node-000"}]}
        told = (await client.post("/api/what-if", wish))["plan"]
        assert [(one["gang"], one["change"]) for one in told["difference"]] == [
            ("ml/waits", "starts now")
        ]
        version = (await client.get("/api/map"))["version"]
        new = [pod_group("new", 1), *members("new", 1, cpu=1)]
        await asyncio.to_thread(rig.create, *new)
        await until(client, "/api/gang", lambda one: one.get("bound") == 1, name="ml/new")
        news = await client.get("/api/map", since=str(version))
        assert [row[0] for row in news["rows"]] == [gang_node(news)]
        assert not news["whole"]


def gang_node(news: Any) -> str:
    """The node of the new gang."""
    rows = (row for row in news["rows"] if any(hold[0] == "ml/new" for hold in row[7]))
    return str(next(rows)[0])


async def test_a_page_follows_the_cluster_and_says_when_it_cannot(rig: Rig, tmp_path: Path) -> None:
    """In Chromium: a gang comes, the API server goes away and comes back, and nobody reloads."""
    account = await asyncio.to_thread(rig.plane.kubeconfig_for_service_account, NAMESPACE, ACCOUNT)
    with Proxy(rig.plane.server, rig.plane.authority) as proxy:
        config = await asyncio.to_thread(proxy.kubeconfig, account)
        with tutti_ui(tmp_path, "--kubeconfig", str(config)) as (link, _):
            async with chromium() as page:
                await page.resize(1280, 800)
                await page.go(link)
                await page.until("document.querySelector('cluster-map canvas') !== null")
                await page.evaluate("location.hash = '#/waiting'")
                await page.until("document.body.innerText.includes('ml/waits')")
                objects = [pod_group("late", 9), *members("late", 2, cpu=1)]
                await asyncio.to_thread(rig.create, *objects)
                await page.until("document.body.innerText.includes('WaitingForMembers')")
                await asyncio.to_thread(proxy.go_away)
                await page.until("document.querySelector('#away') !== null", seconds=30)
                assert "ml/waits" in await page.text("main"), "what was seen last"
                await asyncio.to_thread(proxy.come_back)
                await page.until("document.querySelector('#away') === null", seconds=30)
                await asyncio.to_thread(rig.delete, "podgroups", "late")
                await page.until("!document.body.innerText.includes('ml/late')")
                assert page.complaints == []


async def test_the_operator_says_its_cycles_to_who_may_read_its_metrics(
    rig: Rig, tmp_path: Path
) -> None:
    await asyncio.to_thread(operator_pod.create, rig)
    async with opened(tmp_path, rig.plane.kubeconfig) as client:
        (replica,) = (await client.get("/api/operators"))["replicas"]
        assert (replica["pod"], replica["problem"]) == ("tutti-system/tutti-0", "")
        figures = replica["figures"]
        assert figures["leads"]
        assert figures["cycles"]["done"] > 0
        assert figures["plans"]["proved"] > 0
        assert {stage["stage"]: stage["times"] for stage in figures["stages"]}["plan"] > 0
    meta = {"name": "views", "namespace": "ml"}
    rbac = "rbac.authorization.k8s.io"
    head = {"apiVersion": f"{rbac}/v1", "metadata": {"name": "views"}}
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["list"]},
    ]
    role = {**head, "kind": "ClusterRole", "rules": rules}
    binding = {
        **head,
        "kind": "ClusterRoleBinding",
        "subjects": [{"kind": "ServiceAccount", **meta}],
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "views"},
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}
    await asyncio.to_thread(rig.create, account, role, binding)
    config = await asyncio.to_thread(rig.plane.kubeconfig_for_service_account, "ml", "views")
    other = tmp_path / "other"
    other.mkdir()
    async with opened(other, config) as client:
        (replica,) = (await client.get("/api/operators"))["replicas"]
        assert replica["right"] == "get pods/proxy in namespace tutti-system"
        assert replica["figures"] is None


async def test_who_may_see_one_namespace_sees_it_and_learns_which_rights_are_missing(
    rig: Rig, tmp_path: Path
) -> None:
    meta = {"name": "looks", "namespace": "ml"}
    rbac = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": ["", "tutti.dev"], "resources": LISTED, "verbs": ["list", "watch"]}]
    subject = {"kind": "ServiceAccount", **meta}
    role = {"apiGroup": rbac, "kind": "Role", "name": "looks"}
    head = {"apiVersion": f"{rbac}/v1", "metadata": meta}
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {**head, "kind": "Role", "rules": rules},
        {**head, "kind": "RoleBinding", "subjects": [subject], "roleRef": role},
    ]
    await asyncio.to_thread(rig.create, *objects)
    path = await asyncio.to_thread(rig.plane.kubeconfig_for_service_account, "ml", "looks")
    async with opened(tmp_path, _in_namespace(path)) as client:
        missing = (await client.get("/api/about"))["missing"]
        rights = {one["right"] for one in missing if one["is_forbidden"]}
        assert rights >= {"list nodes", "list namespaces", "list pods", "list podgroups.tutti.dev"}
        assert rights == {one["right"] for one in missing}
        assert "secrets" not in str(missing)
        (waits,) = (await client.get("/api/waiting"))["rows"]
        assert waits["reason"] == "NotEnoughRoom"
        assert (await client.get("/api/map"))["rows"] == []
        gang = await client.get("/api/gang", name="ml/waits")
        events = await client.get("/api/events", gang="ml/waits")
        assert "events is forbidden" in events["problem"]
        assert len(gang["members"]) == 4


def _in_namespace(path: Path) -> Path:
    config = yaml.safe_load(path.read_text())
    config["contexts"][0]["context"]["namespace"] = "ml"
    own = path.with_name("in-ml.kubeconfig")
    own.write_text(yaml.safe_dump(config))
    return own
