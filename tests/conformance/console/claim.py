"""A claim on a real cluster whose victim ends slowly: who ends for whom, as every view tells it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.api.bodies import queue
from tests.harness.rig import Rig, members, pod_group

from . import walk

if TYPE_CHECKING:
    from tests.harness.browser.driver import Page

FINALIZER = "tutti.test/stays"  # keeps a pod that terminates on its node
FREE = 3  # nodes of which the borrower takes all
TEXT = "document.querySelector('main').innerText"
VIEWS = {
    "ending": "would-be-ended",
    "claimant": "gang/ml%2Fclaims",
    "victim": "gang/ml%2Fborrows",
    "claim-on-the-map": "map",
}


def begin(rig: Rig) -> None:
    """A gang of a queue without a guarantee takes room, and one with a guarantee claims it."""
    rig.create(queue({"namespaces": {}}, "lent"))
    for name, into, n, cpu in (("borrows", "lent", FREE, 7), ("claims", "team", 1, 5)):
        group = pod_group(name, n)
        group["spec"]["queue"] = into
        pods = members(name, n, cpu=cpu)
        if name == "borrows":
            for pod in pods:
                pod["metadata"]["finalizers"] = [FINALIZER]
        rig.create(group, *pods)
        if name == "borrows":
            rig.until_bound(name, n)


def end(rig: Rig) -> None:
    """Let the victim go, so that the claimant starts."""
    for n in range(FREE):
        path = f"/api/v1/namespaces/ml/pods/borrows-{n}"
        rig.plane.request("PATCH", path, {"metadata": {"finalizers": None}})
    rig.until_bound("claims", 1)


async def seen(page: Page) -> None:
    """The claim is in every view that tells of it.

    Raises:
        PageError: it is not.
    """
    await walk.show(page, "would-be-ended")
    await page.until("document.querySelector('#ending')?.innerText.includes('ml/claims')", 60)
    await page.until(f"document.querySelector('#ending').innerText.includes('{FREE} pods')")
    await walk.press_link(page, "#ending", "ml/borrows")
    await page.until("document.querySelector('#end')?.innerText.includes('ml/claims')")
    await page.until(f"{TEXT}.includes('to be ended, terminating')", 30)
    await walk.press_link(page, "#end", "ml/claims")
    await page.until("document.querySelector('#claim')?.innerText.includes('ml/borrows')")
    await page.until(f"{TEXT}.includes('(reserved)')")
    await walk.show(page, "map?as=table")
    await page.until(f"{TEXT}.includes('1 claimed') && {TEXT}.includes('1 ending')")


async def over(page: Page, rig: Rig) -> None:
    """Once the victim has gone, the page says so by itself.

    Raises:
        PageError: it does not.
    """
    await walk.show(page, "would-be-ended")
    await asyncio.to_thread(end, rig)
    await page.until("!document.querySelector('#ending')", 30)
