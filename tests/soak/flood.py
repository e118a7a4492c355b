"""One tenant floods the cluster with PodGroups; the gangs of another start all the same.

Every tenth of the flood has its pods, which ask for more than any node has: it is planned for, told
why it waits, and waits for ever. The others have no pods.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..rig import members, pod_group

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from ..rig import Rig

NODES = 4
MEMBERS = 4
ASKING = 10  # every so manieth has pods
FLOODED = "flood"
PAUSE_SECONDS = 0.5
AFTER = 3  # gangs that come when all of the flood is there


@dataclass(frozen=True, slots=True)
class Flood:
    """Seconds from a gang's last pod to its last binding, while the flood rose and afterwards."""

    groups: int
    seconds: float  # until all of it was there
    rising: tuple[float, ...]
    standing: tuple[float, ...]

    @property
    def slowest(self) -> float:
        """What the unluckiest gang had to wait."""
        return max((*self.rising, *self.standing))


def run(rig: Rig, groups: int) -> Flood:
    """Let so many PodGroups come at once, and gangs of another namespace beside them."""
    rig.nodes(NODES, cpu=64, memory="256Gi", pods=1000)
    rig.plane.create_namespace(FLOODED)
    began = time.monotonic()
    rising = threading.Thread(target=rig.plane.create, args=(_flood(groups),))
    rising.start()
    waits = [_start(rig, 0)]
    while rising.is_alive():
        time.sleep(PAUSE_SECONDS)
        waits.append(_start(rig, len(waits)))
    rising.join()
    seconds, early = time.monotonic() - began, len(waits)
    waits += [_start(rig, early + n) for n in range(AFTER)]
    there = rig.plane.request("GET", f"{_GROUPS}?limit=1")
    found = len(there["items"]) + there["metadata"].get("remainingItemCount", 0)
    assert found == groups, f"{found} of {groups} PodGroups were made"
    return Flood(groups, seconds, tuple(waits[:early]), tuple(waits[early:]))


_GROUPS = f"/apis/tutti.dev/v1alpha1/namespaces/{FLOODED}/podgroups"


def _flood(groups: int) -> Iterator[Mapping[str, Any]]:
    names = [f"flood-{number}" for number in range(groups)]
    for name in names:
        yield pod_group(name, 1, namespace=FLOODED)
    for name in names[::ASKING]:
        yield from members(name, 1, namespace=FLOODED, cpu=1000)


def _start(rig: Rig, number: int) -> float:
    """Start a gang, and answer how long that took."""
    name = f"train-{number}"
    rig.create(pod_group(name, MEMBERS), *members(name, MEMBERS, cpu="100m"))
    created = time.monotonic()
    rig.until_bound(name, MEMBERS)
    return time.monotonic() - created
