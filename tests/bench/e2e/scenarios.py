"""What is made in each scenario, and how much of it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAMESPACE = "bench"
PRIORITY_CLASS = "high"  # of gangs that come while others run
LARGE = 64  # members from which on a gang counts as a large one
_SIZES = (4, 8, 16, 32, 64, 128, 256, 512)
_LEAST_NODES = 10
GPUS_PER_NODE = 8
# Source: docs/scale-tests/example-results.json of KAI-Scheduler, reclaims on 500 nodes.
KAI_SECONDS = {"g": 13.9, "h": 694, "i": 717}


@dataclass(frozen=True, slots=True)
class Scenario:
    """Nodes, gangs that fit them at once, and pods that are bound before it begins.

    Pods that only wait come with the gangs, as many with each; at a start they are there already.
    If pods of low priority run, the gangs have a high priority and fit once enough of them end.
    """

    name: str
    title: str
    nodes: int
    sizes: Sequence[int]
    bound_before: int = 0
    is_start: bool = False  # what counts is the time from the scheduler's start
    waiting: int = 0  # pods that name Tutti, of gangs that never have all their members
    running: int = 0  # pods of low priority that fill the nodes and may be ended

    @property
    def pods(self) -> int:
        """The members of all gangs."""
        return sum(self.sizes)

    @property
    def is_throughput(self) -> bool:
        """Whether all gangs fit as they come, and nothing else is asked."""
        return not (self.is_start or self.waiting or self.running)


def scenarios(scale: float) -> Mapping[str, Scenario]:
    """All scenarios by name, with so much of everything; sizes of gangs stay, except the one."""

    def scaled(n: int) -> int:
        return max(1, round(n * scale))

    def nodes(n: int) -> int:
        return max(_LEAST_NODES, scaled(n))

    eights, mixed, one = (8,) * scaled(375), _mixed(scaled(10_000)), (scaled(1_000),)
    texts = {
        "a": f"{nodes(1_000)} nodes, {sum(eights)} pods as {len(eights)} gangs of 8",
        "b": f"{nodes(5_000)} nodes, {sum(mixed)} pods as {len(mixed)} gangs of 4 to {max(mixed)}",
        "c": f"{nodes(1_000)} nodes, one gang of {one[0]}",
        "d": f"start with {nodes(5_000)} nodes and {scaled(50_000)} bound pods",
        "e": f"(a), and a burst of {scaled(20_000)} pods that wait",
        "f": f"start with {nodes(1_000)} nodes and {scaled(50_000)} pods that wait",
    }
    full, tens = nodes(500), (10,) * scaled(50)
    running = full * GPUS_PER_NODE
    claims = {"g": (1,), "h": (1,) * running, "i": tens}
    what = {"g": "one pod", "h": f"{running} single pods", "i": f"{len(tens)} gangs of 10"}
    return {
        "a": Scenario("a", texts["a"], nodes(1_000), eights),
        "b": Scenario("b", texts["b"], nodes(5_000), mixed),
        "c": Scenario("c", texts["c"], nodes(1_000), one),
        "d": Scenario("d", texts["d"], nodes(5_000), (8,), scaled(50_000), is_start=True),
        "e": Scenario("e", texts["e"], nodes(1_000), eights, waiting=scaled(20_000)),
        "f": Scenario("f", texts["f"], nodes(1_000), (8,), waiting=scaled(50_000), is_start=True),
        **{
            name: Scenario(
                name,
                f"{full} nodes full of {running} single pods, and {what[name]} of higher priority; "
                f"{KAI_SECONDS[name]} s by KAI-Scheduler on other machines, at scale 1",
                full,
                sizes,
                running=running,
            )
            for name, sizes in claims.items()
        },
    }


def _mixed(pods: int) -> tuple[int, ...]:
    """Gangs of 4 to 512 members, as many pods in each size, in an order that is always the same."""
    sizes: list[int] = []
    for i, size in enumerate(reversed(_SIZES)):
        share = (pods - sum(sizes)) // (len(_SIZES) - i)
        sizes += [size] * (share // size)
    sizes += [4] * ((pods - sum(sizes)) // 4)
    random.Random(512).shuffle(sizes)
    return tuple(sizes) or (4,)
