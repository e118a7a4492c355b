"""The console of console.md in a real Chromium, as users open it: at most a minute, no root."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest

from tutti import dump
from tutti.model.decisions import Policy
from tutti.model.queues import Preemption

from ..docs import pictures
from ..harness.browser.driver import Page, chromium
from ..harness.builders import Part, gang, node, single, snapshot_of
from ..harness.console_process import tutti_ui
from ..unit.cli.test_plan import SETUP
from ..unit.console.test_cluster_map import claimed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MARKUP = "<img src=x onerror=hacked=1>"
SCRIPT = '"><svg onload=hacked=2>${hacked=3}'
TURNED = "abc\u202egpj.exe"
LONG = "l" * 253
VIEWS = (
    "map",
    "map?as=table",
    "map?find=n",
    "waiting",
    "gangs?sort=-Gangs%3AGang",
    "queues",
    "would-be-ended",
    "planner",
    "what-if",
    "gang/ml%2Ftrain",
)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A cluster whose names want to be markup, run from right to left, or are as long as may be."""
    parts: list[Part] = [
        node("n1", cpu=4).labelled(**{"topology.kubernetes.io/zone": SCRIPT}).tainted(SCRIPT),
        node(MARKUP, cpu=4).labelled(**{"topology.kubernetes.io/zone": MARKUP}),
        node(LONG, cpu=1),
        gang("train").of(9, cpu=4),
        gang(SCRIPT).of(2, cpu=1).bound_on(MARKUP, MARKUP),
        gang(LONG).of(2, cpu=4),
        single(TURNED, cpu=64),
    ]
    path = tmp_path / "hostile.json"
    path.write_text(dump.write(snapshot_of(*parts), SETUP))
    return path


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    """A browser that nobody has used."""
    async with chromium() as opened:
        await opened.resize(1280, 800)
        yield opened


async def _shown(page: Page, view: str) -> str:
    """A view, once everything that it waits for is there."""
    await page.evaluate(f"location.hash = {json.dumps('#/' + view)}")
    await page.until(
        "document.querySelector('h1') && !/Loading|Planning/.test(document.body.innerText)"
    )
    await asyncio.sleep(0.1)
    return await page.text()


async def test_names_stay_names_and_the_token_is_used_up(
    page: Page, hostile: Path, tmp_path: Path
) -> None:
    with tutti_ui(tmp_path, "-f", str(hostile)) as (link, pid):
        assert link.startswith("file:///")
        page_text = await asyncio.to_thread(Path(unquote(urlsplit(link).path)).read_text)
        (token,) = {*re.findall(r"#token=([\w-]+)", page_text)}
        for process in ("self", str(pid)):
            command_line = await asyncio.to_thread(Path(f"/proc/{process}/cmdline").read_text)
            assert token not in command_line
        await page.go(link)
        await page.until("document.querySelector('cluster-map canvas') !== null")
        assert await page.evaluate("location.href.includes('token')") is False
        assert await page.evaluate("document.cookie") == "", "no script can read the cookie"
        for view in VIEWS:
            told = await _shown(page, view)
            for width in (390, 1280, 2560):
                await page.resize(width, 844)
                await page.until(f"document.documentElement.scrollWidth <= {width}")
            assert await page.evaluate("typeof hacked") == "undefined"
            assert await page.evaluate("document.querySelectorAll('img, svg').length") == 0
            if view == "waiting":
                assert "abc\\u202egpj.exe" in told
                assert LONG in told
            if view == "map?as=table":
                assert MARKUP in told
                assert SCRIPT in told
        assert page.complaints == []
        await _forbids_scripts(page)
        os.kill(pid, signal.SIGTERM)
        await page.until("document.querySelector('#lost') !== null")


async def _forbids_scripts(page: Page) -> None:
    """Were markup to get into the page, it still could not run."""
    with pytest.raises(AssertionError, match="TrustedHTML"):
        await page.evaluate("document.createElement('div').innerHTML = '<b>x</b>'")
    run = (
        "new Promise((done) => { const s = document.createElement('script');"
        "s.onerror = () => done('blocked'); s.onload = () => done('ran');"
        "try { s.src = 'data:text/javascript,1'; document.head.append(s); }"
        " catch { done('blocked'); } })"
    )
    assert await page.evaluate(run) == "blocked"


async def test_hover_click_keys_and_explain_tell_what_the_commands_tell(
    page: Page, tmp_path: Path
) -> None:
    path = tmp_path / "now.json"
    path.write_text(
        dump.write(
            snapshot_of(
                node("n1", cpu=4),
                node("n2", cpu=4),
                gang("runs").of(2, cpu=1).bound_on("n1", "n1"),
                gang("train").of(3, cpu=3),
            ),
            SETUP,
        )
    )
    with tutti_ui(tmp_path, "-f", str(path)) as (link, _):
        await page.go(link)
        await page.until("document.querySelector('cluster-map canvas') !== null")
        await page.evaluate("new Promise(requestAnimationFrame)")
        await page.click("cluster-map .marks", at=(30, 60))
        assert "ml/runs: 2 members, 2 CPU, bound" in await page.text("cluster-map .tip")
        await page.until("document.querySelector('#node')?.innerText.includes('ml/runs')")
        assert await page.evaluate("location.hash") == "#/map?node=n1"
        await page.evaluate("document.querySelector('cluster-map .marks').focus()")
        for key in ("ArrowRight", "ArrowRight", "Enter"):
            await page.press(key)
        await page.until("location.hash === '#/map?node=n2'")
        await _shown(page, "waiting")
        await page.click("button[aria-label='Explain ml/train']")
        told = await page.until(
            "document.querySelector('#explanation')?.innerText.includes('proved') && "
            "document.querySelector('#explanation').innerText"
        )
        assert "3 members need 3 cpu each" in told
        lists = await page.evaluate(
            "[...document.querySelectorAll('#explanation ul')]"
            ".map((list) => list.previousElementSibling.innerText)"
        )
        assert all(line.endswith(":") for line in lists), "each list follows what it is a list of"
        assert lists
        assert await page.evaluate("location.hash") == "#/waiting?explain=ml%2Ftrain"
        told = await _shown(page, "what-if?add=2%3An1")
        assert "starts now" in told
        assert await page.evaluate("document.querySelectorAll('cluster-map').length") == 2
        assert page.complaints == []


async def test_the_pictures_of_the_docs_can_be_made_again(page: Page, tmp_path: Path) -> None:
    await pictures.write(page, tmp_path)
    for name in pictures.VIEWS:
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
        assert (pictures.FOLDER / f"{name}.png").exists(), "python -m tests.docs.pictures"
    readme = (pictures.FOLDER.parents[1] / "README.md").read_text()
    assert "docs/console/map.png" in readme


async def test_queues_are_a_tree_with_bars_and_their_quotas_can_be_tried(
    page: Page, tmp_path: Path
) -> None:
    example = Path(__file__).parents[2] / "docs" / "queues" / "cluster.yaml"
    with tutti_ui(tmp_path, "-f", str(example)) as (link, _):
        await page.go(link)
        await page.until("document.querySelector('cluster-map canvas') !== null")
        await _shown(page, "queues")
        told = await page.until(
            "document.querySelectorAll('#queues svg.bar').length === 3 && document.body.innerText"
        )
        assert "vision/train" in told
        widths = await page.evaluate(
            "[...document.querySelectorAll('#queues tr:last-child rect')]"
            ".map((r) => r.getAttribute('width'))"
        )
        assert widths == ["80.0%", "80.0%", "2"]
        told = await _shown(page, "map?colour=queue&by=queue")
        legend = await page.until(
            "document.querySelector('.legend').innerText.includes('vision') && "
            "document.querySelector('.legend').innerText"
        )
        assert "vision/train" not in legend, "colours are those of queues"
        told = await _shown(page, "would-be-ended")
        assert "No queue is in shadow, so there is nothing to show." in told
        assert "no gang would end so that another starts" in told
        told = await _shown(page, "what-if?queue=vision.limit.nvidia.com%2Fgpu%3D12")
        assert "starts now" in told
        assert page.complaints == []


async def test_claims_of_the_plan_are_listed(page: Page, tmp_path: Path) -> None:
    low = gang("low").of(4, cpu=1).bound_on(*["n1"] * 4)
    snapshot = snapshot_of(node("n1", cpu=4), low, gang("high").of(2, cpu=2).priority(9))
    path = tmp_path / "now.json"
    on = replace(SETUP, policy=Policy(preemption=Preemption.FULL))
    path.write_text(dump.write(snapshot, on))
    with tutti_ui(tmp_path, "-f", str(path)) as (link, _):
        await page.go(link)
        await page.until("document.querySelector('cluster-map canvas') !== null")
        await page.evaluate("location.hash = '#/would-be-ended'")
        told = await page.until(
            "document.querySelector('#claims') && document.querySelector('#claims').innerText"
        )
        assert "ml/high" in told
        assert "its priority is higher" in told
        assert "4 pods of ml/low" in told
        assert page.complaints == []


async def test_who_ends_now_so_that_others_start_is_told_by_both_gangs(
    page: Page, tmp_path: Path
) -> None:
    path = tmp_path / "now.json"
    path.write_text(dump.write(claimed(), SETUP))
    with tutti_ui(tmp_path, "-f", str(path)) as (link, _):
        await page.go(link)
        await page.until("document.querySelector('cluster-map canvas') !== null")
        await _shown(page, "would-be-ended")
        told = await page.until("document.querySelector('#ending')?.innerText")
        assert "ml/old: 2 pods: 1 terminating" in told
        await _shown(page, "gang/ml%2Fold")
        await page.until("document.querySelector('#end')?.innerText.includes('ml/new')")
        await _shown(page, "gang/ml%2Fnew")
        await page.until("document.querySelector('#claim')?.innerText.includes('ml/old')")
        assert page.complaints == []


async def test_tables_sort_and_the_address_keeps_the_order(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "now.json"
    names = ("job-10", "job-9", "Job-1")
    gangs = [gang(name).of(n, cpu=9) for n, name in enumerate(names, 1)]
    path.write_text(dump.write(snapshot_of(node("n1", cpu=4), *gangs), SETUP))
    order = "[...document.querySelectorAll('td .name')].map((e) => e.innerText).join(' ')"
    with tutti_ui(tmp_path, "-f", str(path)) as (link, _):
        await page.go(link)
        await page.until("document.querySelector('cluster-map canvas') !== null")
        await _shown(page, "gangs")
        await page.until(f"{order} === 'ml/Job-1 ml/job-9 ml/job-10'")
        await page.click("th:first-child button")
        assert await page.evaluate("location.hash") == "#/gangs?sort=Gangs%3AGang"
        await page.click("th:first-child button")
        await page.until(f"{order} === 'ml/job-10 ml/job-9 ml/Job-1'")
        await page.evaluate("location.reload()")
        await page.until(f"{order} === 'ml/job-10 ml/job-9 ml/Job-1'")
        await page.click("#find")
        await page.write("JOB-9")
        await page.until(f"{order} === 'ml/job-9'")
        assert page.complaints == []
