"""A run: so many cases, from a seed on, on a control plane of its own."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ...harness.controlplane.cluster import ControlPlane
from ...harness.judge import background
from .allocating import allocated
from .comparing import Tally, played
from .scenes import scene
from .smaller import smallest
from .stage import stage
from .together import Plans, carried_out

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
    plane: ControlPlane,
    cases: int,
    seed: int,
    heed: Callable[[list[Case], Tally], None],
    *,
    shrinks: int = 0,
) -> tuple[Tally, Plans]:
    """Play scenes until so many pods were asked about; ``heed`` hears of each scene.

    On each scene's cluster gangs are planned, too. The first disagreements are made smaller, up to
    so many.
    """

    async def all_of_them() -> tuple[Tally, Plans]:
        tally, plans = Tally(), Plans()
        async with stage(plane) as ours:
            number = seed
            while tally.cases < cases:
                known = len(tally.wrong)
                asked = await played(ours, scene(number, PROBES), tally)
                for i in range(known, min(len(tally.wrong), shrinks)):
                    name = tally.wrong[i][0].name
                    small = await smallest(ours, scene(number, PROBES), name)
                    tally.wrong[i] = small or tally.wrong[i]
                await carried_out(ours, scene(number, 0), plans)
                asked += await allocated(ours, scene(number, 1), tally, plans)
                heed(asked, tally)
                number += 1
        return tally, plans

    return background.run(all_of_them())
