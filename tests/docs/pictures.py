"""The pictures of docs/console.md: `python -m tests.docs.pictures` makes them again."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tutti import dump
from tutti.model.decisions import Policy

from ..harness.browser.driver import chromium
from ..harness.builders import gang, node, snapshot_of
from ..harness.console_process import tutti_ui

if TYPE_CHECKING:
    from ..harness.browser.driver import Page

FOLDER = Path(__file__).parents[2] / "docs" / "console"
VIEWS = {
    "map": "map?by=topology.kubernetes.io%2Fzone",
    "waiting": "waiting?explain=research%2Fllm",
    "what-if": "what-if?add=5%3Agpu-1",
}
NODES, GPUS = 40, 8
RUNNING = {"ads": 10, "vision": 24, "speech": 7, "rank": 16, "search": 30, "embed": 12, "eval": 20}
WAITING = {"llm": 32, "tuning": 12, "batch": 20}
SETUP = dump.PlannerConfig("tutti", "ilp", Policy(), {})
SCALE = 2  # GPUs of a member


def cluster() -> str:
    """A dump of GPU nodes in three zones, on which gangs run and for which others wait."""
    zone = "topology.kubernetes.io/zone"
    kind = "node.kubernetes.io/instance-type"
    nodes = [
        node(f"gpu-{n}", cpu=64, memory=512, gpu=GPUS).labelled(
            **{zone: f"zone-{'abc'[n % 3]}", kind: "gpu-8"}
        )
        for n in range(1, NODES + 1)
    ]
    nodes[4], nodes[17] = nodes[4].cordoned(), nodes[17].using(cpu=20, gpu=4)
    free = [
        f"gpu-{n}" for n in range(1, NODES + 1) for _ in range(GPUS // SCALE) if n not in (5, 18)
    ]
    gangs = []
    for name, members in RUNNING.items():
        places, free = free[:members], free[members:]
        running = gang(name, "serving").of(members, cpu=8, gpu=SCALE).bound_on(*places)
        gangs.append(running.priority(100))
    for name, members in WAITING.items():
        gangs.append(gang(name, "research").of(members, cpu=8, gpu=SCALE))
    return dump.write(snapshot_of(*nodes, *gangs, at=5400.0), SETUP)


async def write(page: Page, folder: Path) -> None:
    """Write a picture of every view."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "now.json"
        await asyncio.to_thread(path.write_text, cluster())
        with tutti_ui(Path(place), "-f", path.name) as (link, _):
            await page.resize(1280, 800)
            await page.go(link)
            await page.until("document.querySelector('cluster-map canvas') !== null")
            for name, address in VIEWS.items():
                await page.evaluate(f"location.hash = {json.dumps('#/' + address)}")
                await page.until(
                    "document.querySelector('h1') && "
                    "!/Loading|Planning|made so far/.test(document.body.innerText)",
                    seconds=60,
                )
                await page.evaluate("scrollTo(0, 0); new Promise(requestAnimationFrame)")
                await asyncio.sleep(0.3)
                await page.picture(folder / f"{name}.png")


async def main() -> None:
    """Make them."""
    FOLDER.mkdir(exist_ok=True)
    async with chromium() as page:
        await write(page, FOLDER)


if __name__ == "__main__":
    asyncio.run(main())
