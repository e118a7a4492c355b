"""A run: so many cases, from a seed on, on a control plane of its own."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..controlplane.cluster import ControlPlane
from .comparing import Tally, played
from .scenes import scene
from .stage import stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .comparing import Case

PROBES = 25  # pods that are asked about on one cluster
QUIET = Path(__file__).with_name("audit-policy.yaml")


@contextmanager
def control_plane() -> Iterator[ControlPlane]:
    """An API server for the oracle; who writes what is nobody's concern."""
    with ControlPlane.start(components=(), audit_policy=QUIET) as plane:
        yield plane


def run(
    plane: ControlPlane, cases: int, seed: int, heed: Callable[[list[Case], Tally], None]
) -> Tally:
    """Play scenes until so many pods were asked about; ``heed`` hears of each scene."""

    async def all_of_them() -> Tally:
        tally = Tally()
        async with stage(plane) as ours:
            number = seed
            while tally.cases < cases:
                heed(await played(ours, scene(number, PROBES), tally), tally)
                number += 1
        return tally

    return asyncio.run(all_of_them())
