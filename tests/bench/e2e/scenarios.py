"""What is made in each scenario, and how much of it."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .arrivals import drawn, use_without_waiting
from .churn import Span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .arrivals import Arrival

NAMESPACE = "bench"
PRIORITY_CLASS = "high"  # of gangs that come while others run
LARGE = 64  # members from which on a gang counts as a large one
_SIZES = (4, 8, 16, 32, 64, 128, 256, 512)
_LEAST_NODES = 10
GPUS_PER_NODE = 8
FEW = {"bench.tutti.dev/few": "yes"}  # the label of the nodes that gangs select that never fit
FEW_NODES = 3
_NEVER_SIZE = 30  # members with one GPU each, of 24 on these nodes
FITTING_PER_NEVER = 4
MINUTES = 10.0  # of arrivals
# Source: docs/scale-tests/example-results.json of KAI-Scheduler, reclaims on 500 nodes.
KAI_SECONDS = {"g": 13.9, "h": 694, "i": 717}


@dataclass(frozen=True, slots=True)
class Scenario:
    """Nodes, gangs that fit them at once, and pods that are bound before it begins.

    Pods that only wait come with the gangs, as many with each; at a start they are there already.
    If pods of low priority run, the gangs have a high priority and fit once enough of them end.
    If gangs arrive, they do not come at once, and end: their sizes are those of the arrivals.
    """

    name: str
    title: str
    nodes: int
    sizes: Sequence[int]
    bound_before: int = 0
    is_start: bool = False  # what counts is the time from the scheduler's start
    waiting: int = 0  # pods that name Tutti, of gangs that never have all their members
    running: int = 0  # pods of low priority that fill the nodes and may be ended
    never: Sequence[int] = ()  # gangs beside the others that select too few nodes
    arrivals: Sequence[Arrival] = ()
    minutes: float = 0.0  # of arrivals

    @property
    def pods(self) -> int:
        """The members of all gangs that fit."""
        return sum(self.sizes)

    @property
    def is_throughput(self) -> bool:
        """Whether all gangs fit as they come, and nothing else is asked."""
        return not (self.is_start or self.waiting or self.running or self.fills_nodes)

    @property
    def fills_nodes(self) -> bool:
        """Whether all GPUs are for the gangs, which wait for some at times."""
        return bool(self.never or self.arrivals)

    @property
    def gpus(self) -> int:
        """What all nodes have."""
        return self.nodes * GPUS_PER_NODE


def scenarios(scale: float, minutes: float = MINUTES) -> Mapping[str, Scenario]:
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
        "j": _starving(nodes(200)),
        "k": _churn(nodes(200), minutes),
    }


def _starving(nodes: int) -> Scenario:
    """Gangs of 8 that fill all nodes, and others that never fit, a fifth of all."""
    fitting = (8,) * (nodes * GPUS_PER_NODE // 8)
    never = (_NEVER_SIZE,) * math.ceil(len(fitting) / FITTING_PER_NEVER)
    title = (
        f"{nodes} nodes that {len(fitting)} gangs of 8 fill, amid {len(never)} gangs of "
        f"{_NEVER_SIZE} that never fit"
    )
    return Scenario("j", title, nodes, fitting, never=never)


def _churn(nodes: int, minutes: float) -> Scenario:
    """Gangs that arrive for so many minutes, run and end."""
    gpus, span = nodes * GPUS_PER_NODE, Span(0.0, minutes * 60)
    arrivals = drawn(gpus, span.seconds)
    sizes = [arrival.size for arrival in arrivals]
    use = use_without_waiting(arrivals, gpus, span.counts_from, span.end)
    title = (
        f"{nodes} nodes, and {len(sizes)} gangs of {min(sizes)} to {max(sizes)} that come in "
        f"{minutes:g} minutes and end; if none waited, they would use {use:.2f} of the GPUs"
    )
    return Scenario("k", title, nodes, sizes, arrivals=arrivals, minutes=minutes)


def _mixed(pods: int) -> tuple[int, ...]:
    """Gangs of 4 to 512 members, as many pods in each size, in an order that is always the same."""
    sizes: list[int] = []
    for i, size in enumerate(reversed(_SIZES)):
        share = (pods - sum(sizes)) // (len(_SIZES) - i)
        sizes += [size] * (share // size)
    sizes += [4] * ((pods - sum(sizes)) // 4)
    random.Random(512).shuffle(sizes)
    return tuple(sizes) or (4,)
