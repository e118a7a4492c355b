"""A live cluster, looked at once: what every command does that needs no files.

It lists everything that the operator watches; nothing is written.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..model.cluster import Snapshot


async def observed(name: str, kubeconfig: str | None, context: str | None) -> Snapshot:
    """List everything once, in the operator's order: what waits before what counts."""
    from ..feeds import feeds_into, storage_into
    from ..kube import supply
    from ..kube.access import Access
    from ..kube.client import Client
    from ..world import World

    world = World(lambda: None)
    access = await Access.load(kubeconfig, context)
    async with Client(access) as api:
        for feed in feeds_into(world, name):
            await supply.relist(api, feed)
        for feed in storage_into(world) if world.storage.are_wanted else ():
            await supply.relist(api, feed)
    return world.snapshot(time.time())
