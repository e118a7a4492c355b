"""What people read on the page is what the commands print, over 50 generated dumps, in Chromium."""

from __future__ import annotations

import json
import re
import time
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from click.testing import CliRunner

from tests.conformance.queues import instances, planner
from tests.conformance.unchanged import cases
from tests.harness.browser.driver import PageError
from tutti import cli, dump
from tutti.cli import status
from tutti.cli.output import offline
from tutti.cli.output.answers import CommandAnswers
from tutti.cli.output.gang_rows import rows
from tutti.cli.output.watch import View
from tutti.console.observation import Files
from tutti.console.security import Session
from tutti.console.server import Console, serving
from tutti.dump.load import snapshot_of
from tutti.model.decisions import Policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.harness.browser.driver import Page

NUMBER = 50
STEP = 97  # so that all strategies and themes are among them
MOST_ROWS = 100  # of a table at once
MOST_NODES = 12  # of a gang that are listed at once
NONE = "\N{EN DASH}"
WAITING = "Gangs that wait or lack members"
CLAIMS = "Gangs that would end so that others start"
CELLS = """
[...document.querySelectorAll('[aria-label="%s"] tbody tr')]
  .map((row) => [...row.cells].map((cell) => cell.innerText.replace(/\\s+/g, ' ').trim()))
"""


def texts() -> Sequence[bytes]:
    """Dumps of many kinds, and as many with queues."""
    generated = [cases.generated(number * STEP).text for number in range(NUMBER // 2)]
    config = dump.PlannerConfig("tutti", "bestfit", Policy(), {})
    queued = [
        dump.write(planner.snapshot(instances.world(seed)), config).encode()
        for seed in range(1, NUMBER - len(generated) + 1)
    ]
    return [*generated, *queued]


def tutti(command: str, text: bytes, *words: str) -> Any:
    """What a command prints as JSON of a dump."""
    done = CliRunner().invoke(cli.main, [command, "-o", "json", "-f", "-", *words], input=text)
    return json.loads(done.stdout)


async def compare(page: Page, text: bytes) -> None:
    """Open the console of a dump, and compare.

    Raises:
        PageError: the page says something else.
    """
    source = [dump.Text("a dump", text)]
    objects = dump.read(source)
    snapshot = snapshot_of(objects)
    numbers = count()
    session = Session(lambda: f"secret-{next(numbers)}")
    answers = CommandAnswers(offline.setup_of(objects), source)
    console = Console(Files("a dump", snapshot), answers, session, monotonic=time.monotonic)
    async with serving(console, 0) as port:
        await page.go("about:blank")
        await page.go(f"http://127.0.0.1:{port}/#token={session.token}")
        await page.until("document.querySelector('h1') !== null")
        plan = tutti("plan", text)
        await _plan(page, plan)
        await _waiting(page, status.gangs(View(snapshot, rows(snapshot, {}, None), None)), plan)
        await _queues(page, tutti("queue", text))
        await _claims(page, text)
        await _explanation(page, plan, text)
        await page.go("about:blank")  # nobody follows a console that ends
        await page.until("location.href === 'about:blank'")


async def _shown(page: Page, view: str, title: str, number: int) -> list[list[str]]:
    """The cells of a table of a view, once as many rows are there."""
    await page.evaluate(f"location.hash = '#/{view}'")
    cells = CELLS % title
    expected = min(number, MOST_ROWS)
    await page.until(f"document.querySelector('h1') && {cells}.length === {expected}", 60)
    found: list[list[str]] = await page.evaluate(cells)
    return found


def _expect(what: str, found: Sequence[Any], expected: Sequence[Any]) -> None:
    for one, other in zip(found, expected, strict=False):
        if one != other:
            raise PageError(f"{what}: the page says {one}, the command {other}")


def _name(row: Any) -> str:
    return row["gang"] if row["kind"] == "PodGroup" else f"{row['gang']}/{row['kind']}"


def _words(*parts: str) -> str:
    return " ".join(" ".join(parts).split())


async def _plan(page: Page, plan: Any) -> None:
    found = await _shown(page, "planner", "Gangs of the plan", len(plan["gangs"]))
    expected = [
        [
            _name(row),
            str(row["priority"]),
            row["answer"],
            _words(row["sentence"]) if row["sentence"] else "",
        ]
        for row in plan["gangs"]
    ]
    sentences = [row["sentence"] for row in plan["gangs"]]
    read = [
        [*cells[:3], cells[3] if sentence else ""]
        for cells, sentence in zip(found, sentences, strict=False)
    ]
    _expect("plan", read, expected)
    for cells, row in zip(found, plan["gangs"], strict=False):
        if not row["sentence"]:
            _expect_places(cells[3], row["nodes"])
    badge = await page.text("main .badge")
    if badge != ("proved" if plan["proved"] else "not proved"):
        raise PageError(f"the page says {badge}")


def _expect_places(cell: str, nodes: Any) -> None:
    """The first nodes of a gang are in the cell, and the number of the others."""
    left = len(nodes) - MOST_NODES
    some = cell.partition(" and ")[0] if left > 0 else cell
    shown = re.findall(r"(\S+) \((\d+)\)", some)
    if len(shown) != min(len(nodes), MOST_NODES) or {*shown} - {
        (node, str(n)) for node, n in nodes.items()
    }:
        raise PageError(f"the page says {cell}, the command {nodes}")
    if left > 0 and f"and {left} more node" not in cell:
        raise PageError(f"the page says {cell} of {len(nodes)} nodes")


async def _claims(page: Page, text: bytes) -> None:
    """Who would end with preemption is what ``tutti plan --preemption Full`` says."""
    claims = tutti("plan", text, "--preemption", "Full")["after"].get("claims", [])
    found = await _shown(page, "what-if?preemption=Full", CLAIMS, len(claims))
    expected = [
        [
            claim["gang"].replace(" (Pod)", "/Pod"),
            {"guarantee": "a guarantee covers it", "priority": "its priority is higher"}[
                claim["by"]
            ],
            _words(*map(_victim, claim["victims"])) or "pods that terminate already",
        ]
        for claim in claims
    ]
    _expect("claims", [cells[:3] for cells in found], expected)


def _victim(victim: Any) -> str:
    noun = "pod" if victim["whole"] else "extra pod"
    number = len(victim["pods"])
    return f"{number} {noun}{'s' * (number != 1)} of {victim['gang'].replace(' (Pod)', '/Pod')}"


async def _explanation(page: Page, plan: Any, text: bytes) -> None:
    """Why the first gang waits is what ``tutti explain`` prints."""
    for row in [row for row in plan["gangs"] if row["answer"] == "waits"][:1]:
        if row["kind"] != "PodGroup":
            continue
        done = CliRunner().invoke(cli.main, ["explain", "-f", "-", row["gang"]], input=text)
        expected = [line.strip().removeprefix("- ") for line in done.stdout.splitlines()]
        await page.evaluate(f"location.hash = '#/waiting?explain={quote(row['gang'], safe='')}'")
        await page.until("document.querySelector('#explanation button')?.innerText", 60)
        await page.until(
            "document.querySelector('#explanation').innerText.includes('Explain again')", 60
        )
        found = await page.evaluate(
            "[...document.querySelectorAll('#explanation .message')].map((e) => e.innerText)"
        )
        _expect("explanation", list(map(_words, found)), list(map(_words, expected)))


async def _waiting(page: Page, gangs: Any, plan: Any) -> None:
    waits = [row for row in gangs if row["state"] in ("waiting", "degraded")]
    found = await _shown(page, "waiting", WAITING, len(waits))
    planned = {(row["gang"], row["kind"] == "Pod"): row for row in plan["gangs"]}
    status_rows: dict[str, list[list[str]]] = {}
    for row in waits:
        name = f"{row['namespace']}/{row['name']}"
        status_rows.setdefault(name, []).append(
            [row["state"], f"{row['bound']}/{row['needed']}", str(row["priority"])]
        )
    # With queues, there is a column more.
    for _, gang, state, *_, bound, priority, _ in found:
        name = "/".join(gang.split("/")[:2])
        if [state, bound, priority] not in status_rows.get(name, []):
            raise PageError(f"waiting: the page says {gang} {state} {bound} {priority}")
        row = planned.get((name, gang.endswith("/Pod")))
        if row is not None and row["answer"] == "waits":  # its reason comes after the list
            await page.until(f"{CELLS % WAITING}.some((cells) => {_matches(gang, row['reason'])})")


def _matches(gang: str, reason: str) -> str:
    return f"cells[1] === {json.dumps(gang)} && cells.join(' ').includes({json.dumps(reason)})"


async def _queues(page: Page, answer: Any) -> None:
    if not answer["queues"]:
        return
    gangs = answer["gangs"]
    found = await _shown(page, "queues", "Gangs of the queues", len(gangs))
    expected = [
        [
            _name(row),
            row["queue"],
            "runs" if row["charged"] else "waits",
            str(row["priority"]),
            _words(", ".join(f"{n} {name}" for name, n in row["charged"].items())),
        ]
        for row in gangs
    ]
    _expect("gangs of queues", found, expected)
    lines: dict[str, list[list[str]]] = {}
    name = ""
    for cells in await page.evaluate(CELLS % "Queues"):
        name = cells[0].removesuffix(" shadow") or name
        lines.setdefault(name, []).append(cells[1:])
    for queue in answer["queues"]:
        own = lines[queue["name"]]
        if own[0][7:9] != [str(queue["waiting"]), f"{int(100 * queue['share'])} %"]:
            raise PageError(f"queue {queue['name']}: the page says {own[0]}")
        for resource, _, *amounts in (line[:7] for line in own if line[0] != NONE):
            keys = ("charged", "covered", "borrowed", "guaranteed")
            wanted = [queue[key].get(resource, "0") for key in keys]
            wanted.append(queue["limits"].get(resource, NONE))
            if amounts != wanted:
                raise PageError(f"queue {queue['name']}: {amounts}, the command {wanted}")


async def faults(page: Page) -> Sequence[str]:
    """What the page says otherwise than the commands."""
    found = []
    for number, text in enumerate(texts()):
        try:
            await compare(page, text)
        except PageError as problem:
            found.append(f"dump {number}: {problem}")
    return [*found, *page.complaints]
