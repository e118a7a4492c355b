"""Every view and every click of the console, with the mouse and with the keyboard alone."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING
from urllib.parse import quote

from tests.harness.browser import axe
from tests.harness.browser.driver import PageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from tests.harness.browser.driver import Page

WIDTHS = ((1280, 800), (390, 844), (2560, 1300))  # pixels
CLIPBOARD = ("clipboardReadWrite", "clipboardSanitizedWrite")  # a headless browser cannot ask
MOST_TABS = 120  # presses of Tab until what is wanted has the focus
READY = (
    "document.querySelector('h1') && !/Loading|Planning|made so far/.test(document.body.innerText)"
)


def views(gang: str, node: str, queue_change: str) -> dict[str, str]:
    """The address of every view, by a name for its picture."""
    waits, there = quote(gang, safe=""), quote(node, safe="")
    return {
        "map": "map",
        "map-use": "map?colour=use&by=topology.kubernetes.io%2Fzone",
        "map-queues": "map?colour=queue&by=queue",
        "map-table": "map?as=table",
        "map-found": f"map?find={there}",
        "gangs": "gangs?state=started&sort=-Gangs%3ANodes",
        "node": f"map?node={there}",
        "waiting": "waiting",
        "explained": f"waiting?explain={waits}",
        "queues": "queues",
        "would-be-ended": "would-be-ended",
        "gang": f"gang/{waits}?explain=1",
        "planner": "planner",
        "what-if": "what-if",
        "what-if-preemption": "what-if?preemption=Off",
        "before-after": f"what-if?add=2%3A{there}&queue={quote(queue_change)}",
    }


async def show(page: Page, address: str) -> None:
    """Open a view, and wait until all of it is there."""
    await page.evaluate(f"location.hash = {json.dumps('#/' + address)}")
    await page.until(READY, seconds=60)
    await page.evaluate("scrollTo(0, 0); new Promise(requestAnimationFrame)")
    await asyncio.sleep(0.25)


async def look(page: Page, addresses: dict[str, str], pictures: Path | None) -> Sequence[str]:
    """What is wrong with how views look, for those who see them and for those who do not."""
    source = await asyncio.to_thread(axe.script)
    faults = []
    for name, address in addresses.items():
        for width, height in WIDTHS:
            await page.resize(width, height)
            for is_dark in (False, True):
                await page.dark(is_dark=is_dark)
                await show(page, address)
                where = f"{name}, {width} pixels, {'dark' if is_dark else 'light'}"
                faults += [f"{where}: {finding}" for finding in await axe.findings(page, source)]
                wide = await page.evaluate("document.documentElement.scrollWidth")
                if wide > width:
                    faults.append(f"{where}: the page is {wide} pixels wide")
                if pictures is not None and not (is_dark and width != 1280):
                    await page.picture(pictures / f"{name}-{width}{'-dark' * is_dark}.png")
    await page.resize(1280, 800)
    await page.dark(is_dark=False)
    return faults


async def clicks(page: Page) -> None:
    """Click everything that can be clicked, and see what becomes of it.

    Raises:
        PageError: a click does not do what it should.
    """
    there = "document.querySelector"
    await show(page, "map")
    for key, value in (
        ("by", "topology.kubernetes.io/zone"),
        ("colour", "queue"),
        ("colour", "use"),
        ("as", "table"),
    ):
        await choose(page, key, value)
    await press_button(page, "th", "Free")
    await page.until(f"{there}('th[aria-sort=descending] button').innerText === 'Free'")
    frees = (
        "[...document.querySelectorAll('td[data-title=Free]')].map((e) => parseFloat(e.innerText))"
    )
    await page.until(f"(({frees}).every((n, i, all) => !i || all[i - 1] >= n))")
    await press_button(page, "th", "Free")
    await page.until(f"(({frees}).every((n, i, all) => !i || all[i - 1] <= n))")
    await page.click("#find")
    await page.write("no node has these letters")
    await press_button(page, "main", "Show all")
    await page.until(f"{there}('td a') !== null")
    await page.click("td a")  # the first node of the table
    await page.until("location.hash.startsWith('#/map?node=')")
    await page.until(f"{there}('#node h2') !== null")
    await page.click("#node details summary")
    await page.until("document.querySelector('#node details').open")
    await press_button(page, "#node", "Close")
    await page.until(f"!{there}('#node')")
    await page.click(".legend button")
    await page.until(f"{there}('.legend button').getAttribute('aria-pressed') === 'true'")
    await page.click("cluster-map .marks", at=(30, 60))
    await page.until(f"{there}('#node h2') !== null")
    await press_link(page, "#node", "What if it were drained?")
    await page.until("location.hash.startsWith('#/what-if?remove=')")
    await page.until(f"document.querySelectorAll('cluster-map').length === 2 && {READY}", 60)
    await press_button(page, "main", "Take back")
    await page.until("document.body.innerText.includes('Choose a change')")
    await _lists(page)


async def _lists(page: Page) -> None:
    """The same for the views of gangs, queues and plans, and the help."""
    there = "document.querySelector"
    await page.click("button.help")
    await page.until(f"{there}('#help').open")
    await press_button(page, "#help", "Close")
    await page.until(f"!{there}('#help').open")
    await page.click("nav a[href='#/waiting']")
    await page.until(f"{READY} && {there}('td button') !== null")
    await page.click("a.fact[href*=started]")
    await page.until(f"location.hash === '#/gangs?state=started' && {READY}")
    states = "[...document.querySelectorAll('td[data-title=State]')].map((e) => e.innerText)"
    await page.until(f"(({states}).length > 0 && ({states}).every((word) => word === 'started'))")
    await press_button(page, "main", "Show all states")
    await page.until(f"({states}).some((word) => word !== 'started')")
    await page.click("nav a[href='#/waiting']")
    await page.until(f"{READY} && {there}('td button') !== null")
    await page.click("td button")
    await page.until(f"{READY} && {there}('#explanation').innerText.includes('proved')", 60)
    await press_button(page, "#explanation", "Explain again")
    await page.until(f"{READY} && {there}('#explanation').innerText.includes('proved')", 60)
    await press_button(page, "#explanation", "Close")
    await page.click("input[type=search]")
    await page.write("no gang has these letters")
    await page.until("document.body.innerText.includes('No gang that waits has the letters')")
    await show(page, "waiting")
    await page.click("td a")
    await page.until(f"location.hash.startsWith('#/gang/') && {READY}")
    await page.send("Browser.grantPermissions", permissions=list(CLIPBOARD))
    await page.click("h1 .copy")
    await page.until(
        f"navigator.clipboard.readText().then((t) => t === {there}('h1 .name').innerText)"
    )
    await press_button(page, "main", "Explain why it waits")
    await page.until(f"{READY} && {there}('#explanation').innerText.includes('proved')", 60)
    await press_link(page, "main", "What if its priority were 1000?")
    await page.until(f"location.hash.includes('priority=') && {READY}", 60)
    await page.evaluate("history.back()")
    await page.until(f"location.hash.startsWith('#/gang/') && {READY}", 60)
    await press_link(page, "main", "Show it on the map")
    await page.until("location.hash.startsWith('#/map?gang=')")
    await page.click("nav a[href='#/queues']")
    await page.until(f"{there}('#queues svg.bar') !== null")
    await press_link(page, "main", "which gangs they would have stopped")
    await page.until(f"{READY} && {there}('#would-stop td a') !== null")
    await page.click("nav a[href='#/planner']")
    await page.until(f"{READY} && document.body.innerText.includes('proved')", 60)
    await page.until(f"{there}('#operator') !== null")
    await page.click("main details summary")
    await page.until(f"{there}('main details').open")


async def forms(page: Page, node: str, gang: str, queue_change: str, manifest: str) -> None:
    """Fill in every form of What if; each plans before and after.

    Raises:
        PageError: a form does not do what it should.
    """
    wanted = (
        ({"like": node}, "more like"),
        ({"node": node}, "without node"),
        ({"gang": gang, "priority": "7"}, "with priority 7"),
        (_quota(queue_change), "queue "),
        ({"preemption": "R"}, "with preemption Reclaim"),
        ({"objective": "g"}, "with objective gangs"),
        ({"manifest": manifest}, "of manifest"),
    )
    for fields, sentence in wanted:
        await show(page, "what-if")
        await page.evaluate("document.querySelector('.what-if details').open = true")
        for name, value in fields.items():
            if await page.evaluate(f"document.querySelector('[name={name}]').tagName === 'SELECT'"):
                await page.evaluate(f"document.querySelector('[name={name}]').focus()")
                await page.press(value)  # the letter that the choice begins with
            else:
                await page.click(f"[name={name}]")
                await page.write(value)
        await page.click(f"form:has([name={next(iter(fields))}]) button.main")
        await page.until(f"{READY} && document.querySelectorAll('cluster-map').length === 2", 60)
        text = await page.text("main")
        if sentence not in text or "Before" not in text or "After" not in text:
            raise PageError(f"after the form with {fields}, the page says: {text}")


def _quota(queue_change: str) -> dict[str, str]:
    """The fields of the form for QUEUE.limit.RESOURCE=QUANTITY."""
    where, _, quantity = queue_change.partition("=")
    queue, _, resource = where.partition(".limit.")
    return {"queue": queue, "resource": resource, "quantity": quantity}


async def choose(page: Page, key: str, value: str) -> None:
    """Choose in a list, by its keys, as people without a mouse do."""
    await page.evaluate(f"document.querySelector('#{key}').focus()")
    for _ in range(8):
        if await page.evaluate(f"document.querySelector('#{key}').value") == value:
            break
        await page.press("ArrowDown")
    await page.until(f"new URLSearchParams(location.hash.split('?')[1]).get('{key}') === '{value}'")


async def press_button(page: Page, inside: str, text: str) -> None:
    """Click the button with this text."""
    await _press(page, f"{inside} button", text)


async def press_link(page: Page, inside: str, text: str) -> None:
    """Click the link with this text."""
    await _press(page, f"{inside} a", text)


async def _press(page: Page, selector: str, text: str) -> None:
    mark = (
        f"(() => {{ for (const e of document.querySelectorAll({json.dumps(selector)})) "
        f"if (e.innerText.trim() === {json.dumps(text)}) {{ document.querySelector('.to-press')"
        "?.classList.remove('to-press'); e.classList.add('to-press'); return true; } })()"
    )
    await page.until(mark)
    await page.click(".to-press")


async def keys(page: Page) -> None:
    """Do it without a mouse: Tab, Enter, arrows, Escape.

    Raises:
        PageError: something cannot be reached, or does not say where the focus is.
    """
    await page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    await show(page, "map")
    await tab_to(page, "e.matches('.marks')")
    await page.press("ArrowRight")
    await page.press("ArrowDown")
    await page.until("document.querySelector('cluster-map .unseen').textContent.includes('free')")
    await page.press("Enter")
    await page.until("document.querySelector('#node h2') && document.activeElement.id === 'node'")
    await page.press("Escape")
    await page.until("!document.querySelector('#node')")
    await page.until("document.activeElement.matches('.marks')")
    for is_on in (False, True):
        await page.evaluate("document.querySelector('.help').focus()")
        await page.press("Enter")
        await page.until("document.querySelector('#help').open")
        await tab_to(page, "e.matches('#help input')")
        await page.press("Space")
        await page.press("Escape")
        await page.until("!document.querySelector('#help').open")
        await page.press("?")
        await page.until(f"document.querySelector('#help').open === {json.dumps(is_on)}")
    await page.press("Escape")
    await page.until("!document.querySelector('#help').open")
    await page.press("3")
    await page.until(f"location.hash === '#/gangs' && {READY}")
    await page.press("/")
    await page.until("document.activeElement.id === 'find'")
    await page.press("1")  # in a field, a key is a letter
    await page.until("location.hash.startsWith('#/gangs?find=1')")
    await page.evaluate("document.activeElement.blur()")
    await tab_to(page, "e.matches('nav a[href=\"#/waiting\"]')")
    await page.press("Enter")
    await page.until(f"location.hash === '#/waiting' && {READY}")
    await tab_to(page, "e.matches('td button')")
    await page.press("Enter")
    await page.until("document.activeElement.id === 'explanation'")
    await page.until(f"{READY} && document.querySelector('#explanation').innerText.length > 90", 60)
    await tab_to(page, "e.innerText === 'Close'")
    await page.press("Enter")
    await page.until("!document.querySelector('#explanation')")
    await tab_to(page, "e.matches('nav a[href=\"#/what-if\"]')")
    await page.press("Enter")
    await page.until(f"location.hash === '#/what-if' && {READY}")
    await tab_to(page, "e.matches('[name=like]')")
    await page.write(await page.until("document.querySelector('#nodes option')?.value"))
    await page.press("Enter")
    await page.until(f"{READY} && document.querySelectorAll('cluster-map').length === 2", 60)


async def tab_to(page: Page, is_it: str) -> None:
    """Press Tab until the element ``e`` with the focus is the one, and see that it shows."""
    look = f"(() => {{ const e = document.activeElement; return Boolean({is_it}); }})()"
    for _ in range(MOST_TABS):
        await page.press("Tab")
        if await page.evaluate(look):
            ring = "getComputedStyle(document.activeElement).outlineStyle"
            if await page.evaluate(ring) == "none":
                raise PageError(f"nobody sees that the focus is on {is_it}")
            return
    raise PageError(f"Tab never reaches {is_it}")


async def checked(page: Page, name: str, step: Callable[[], Awaitable[None]]) -> Sequence[str]:
    """The faults of a step: that it fails, and what the browser complains of."""
    try:
        await step()
    except AssertionError as problem:  # of the page, or of the cluster
        return [f"{name}: {problem}"]
    found = [f"{name}: {complaint}" for complaint in page.complaints]
    page.complaints.clear()
    return found
