"""How quickly the console answers a person who looks at a large cluster that changes all the time.

Every input is a real one. It lasts from its event until the frame is painted that shows the answer.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.harness.browser.driver import chromium
from tests.harness.console_process import tutti_ui

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.harness.browser.driver import Page

NODES, WAITING, CHANGES = 12_000, 2_000, 20.0
MOST_MILLISECONDS = 100.0  # from input to paint, at the 95th percentile
MOST_BYTES, MOST_CORES, MOST_SECONDS = 500e6, 0.5, 3.0  # of the server; until the first picture
REPEATS = 12
REST = 0.35  # seconds between two inputs: a person reads
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: large
contexts: [{{name: large, context: {{cluster: large, user: large}}}}]
clusters: [{{name: large, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: large, user: {{}}}}]
"""
# After a frame in which the answer is there, a message comes when that frame is painted.
CLOCK = """
(() => {
  let begun = null;
  for (const kind of ['pointerdown', 'keydown', 'pointermove', 'beforeinput'])
    addEventListener(kind, (event) => { begun ??= event.timeStamp; }, { capture: true });
  window.expecting = (isThere) => {
    begun = null;
    window.took = new Promise((done) => {
      const look = () => {
        if (begun === null || !isThere()) return requestAnimationFrame(look);
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => done(performance.now() - begun);
        port2.postMessage(0);
      };
      requestAnimationFrame(look);
    });
  };
})()
"""


@contextmanager
def large_cluster(nodes: int, waiting: int, changes: float) -> Iterator[str]:
    """An API server with a large cluster: its kubeconfig's text."""
    words = ["--nodes", str(nodes), "--waiting", str(waiting), "--changes", str(changes)]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.conformance.console.large_cluster", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield KUBECONFIG.format(port=int(process.stdout.readline()))
        finally:
            process.terminate()


class Stopwatch:
    """Times inputs, in milliseconds, by what was done."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.times: dict[str, list[float]] = {}

    async def begin(self, is_there: str) -> None:
        """Expect an input, and that this expression is true then."""
        await self._page.evaluate(f"expecting(() => {is_there})")

    async def end(self, title: str) -> None:
        """The answer to the input is painted."""
        await asyncio.sleep(0)
        self.times.setdefault(title, []).append(await self._page.evaluate("took"))
        await asyncio.sleep(REST)

    async def click(
        self, title: str, selector: str, is_there: str, at: tuple[float, float] | None = None
    ) -> None:
        """Time a click."""
        point = await self._page.point(selector, at=at)
        await self.begin(is_there)
        await self._page.click_at(*point)
        await self.end(title)

    async def press(self, title: str, key: str, is_there: str) -> None:
        """Time a key."""
        await self.begin(is_there)
        await self._page.press(key)
        await self.end(title)


def link(view: str) -> str:
    """The link to a view."""
    return f"nav a[href='#/{view}']"


def heading(title: str, more: str = "true") -> str:
    """The view is there, with its content."""
    return f"document.querySelector('h1')?.innerText.startsWith('{title}') && {more}"


ROWS = "document.querySelector('td') !== null"
MAP = heading("Cluster map", "document.querySelector('cluster-map')?.isDrawn")


SELECTS = (
    ("as", "ArrowDown", "table"),
    ("as", "ArrowUp", "map"),
    ("colour", "ArrowDown", "queue"),
    ("colour", "ArrowDown", "use"),
    ("colour", "ArrowUp", "queue"),
    ("colour", "ArrowUp", "gang"),
)


async def use(page: Page, watch: Stopwatch) -> None:
    """Go through the views as a person does."""
    await watch.click("to Waiting", link("waiting"), heading("Waiting", ROWS))
    await watch.click("to a gang", "td a .name", heading("ml/waits", ROWS))
    await watch.click("to Queues", link("queues"), heading("Queues"))
    await watch.click("to Waiting", link("waiting"), heading("Waiting", ROWS))
    await page.evaluate("document.querySelector('input[type=search]').focus()")
    await watch.press("find", "7", "document.querySelector('td .name').innerText.includes('7')")
    await watch.click("to What if", link("what-if"), heading("What if"))
    await watch.click("to Map", link("map"), MAP)
    node = "document.querySelector('#node h2')"
    await watch.click("open a node", "cluster-map .marks", node, at=(200, 100))
    await page.evaluate("document.querySelector('cluster-map .marks').focus()")
    before = "document.querySelector('cluster-map .unseen').textContent !== window.told"
    await page.evaluate("window.told = document.querySelector('cluster-map .unseen').textContent")
    await watch.press("arrow key", "ArrowRight", before)
    stressed = "location.hash.includes('gang=') && document.querySelector('cluster-map').isDrawn"
    await watch.click("stress a gang", ".legend button", stressed)
    for key, step, value in SELECTS:
        is_there = ROWS if value == "table" else "document.querySelector('cluster-map')?.isDrawn"
        await page.evaluate(f"document.querySelector('#{key}').focus()")
        chosen = f"location.hash.includes('{key}={value}') && {is_there}"
        await watch.press(f"{key} {value}", step, chosen)


class Figures(NamedTuple):
    """What was measured."""

    times: Mapping[str, Sequence[float]]  # milliseconds from input to paint, by what was done
    first_picture: float  # seconds from the answer of the console to the map
    most_bytes: float  # of the server
    cores: float

    @property
    def slowest_twentieth(self) -> float:
        """The 95th percentile of all inputs, in milliseconds."""
        return percentile([time for times in self.times.values() for time in times], 0.95)

    def faults(self) -> Sequence[str]:
        """What is more than it may be."""
        limits = (
            ("p95 from input to paint, ms", self.slowest_twentieth, MOST_MILLISECONDS),
            ("first picture, s", self.first_picture, MOST_SECONDS),
            ("memory of the server, bytes", self.most_bytes, MOST_BYTES),
            ("cores of the server", self.cores, MOST_CORES),
        )
        return [f"{what}: {n:.4g}, over {most:.4g}" for what, n, most in limits if n > most]

    def lines(self) -> Iterator[str]:
        """A line for each kind of input, and one for all of them."""
        for title, times in self.times.items():
            yield f"{title:18} p50 {percentile(times, 0.5):5.0f} ms  most {max(times):5.0f} ms"
        yield (
            f"all: p95 {self.slowest_twentieth:.0f} ms; first picture {self.first_picture:.2f} s; "
            f"server {self.most_bytes / 1e6:.0f} MB, {self.cores:.2f} cores"
        )


def percentile(numbers: Sequence[float], share: float) -> float:
    """The smallest number that is not less than so many of them."""
    return sorted(numbers)[max(0, math.ceil(share * len(numbers)) - 1)]


async def measure(nodes: int, waiting: int, changes: float, repeats: int) -> Figures:
    """Use the console of a large cluster, again and again."""
    with (
        large_cluster(nodes, waiting, changes) as kubeconfig,
        tempfile.TemporaryDirectory() as place,
    ):
        config = Path(place) / "kubeconfig"
        config.write_text(kubeconfig)
        with tutti_ui(Path(place), "--kubeconfig", str(config)) as (address, server):
            async with chromium() as page:
                await page.resize(1280, 800)
                await page.send("Page.addScriptToEvaluateOnNewDocument", source=CLOCK)
                begin = time.monotonic()
                await page.go(address)
                await page.until(MAP)
                first = time.monotonic() - begin
                watch = Stopwatch(page)
                used, at = cpu_seconds(server), time.monotonic()
                for _ in range(repeats):
                    await use(page, watch)
                cores = (cpu_seconds(server) - used) / (time.monotonic() - at)
                if page.complaints:
                    raise AssertionError(page.complaints)
                return Figures(watch.times, first, most_bytes(server), cores)


def cpu_seconds(process: int) -> float:
    """The CPU time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def most_bytes(process: int) -> float:
    """The most memory that a process has had."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found is not None
    return 1024.0 * int(found[1])


async def main() -> int:
    """Print what was measured; 0 if it is within its limits."""
    figures = await measure(NODES, WAITING, CHANGES, REPEATS)
    for line in figures.lines():
        print(line)
    for fault in figures.faults():
        print(f"FAIL {fault}")
    return 1 if figures.faults() else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
