"""Small clusters with devices: a plan starts a gang exactly if trying everything finds a way.

The other side places pod after pod on every node, and gives each request every device; it knows
neither counts nor shapes. In every second scene, some devices of a claim have one numa number.
"""

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.harness.builders import gang, node
from tests.harness.fake_devices import DRIVER, claim, device, device_class
from tests.harness.fakes import Clock, FakeCluster, Life
from tutti.model.devices.claims import PodClaim
from tutti.model.devices.inventory import ResourceSlice
from tutti.model.keys import NodeName
from tutti.planning.plan import plan
from tutti.strategies import load
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget
from tutti.verify import plan_checks

COLOURS = ("red", "green", "blue")
NUMAS = (0, 0, 1, 1, 2, None)
NODES, CPU = 2, 3
SEEDS = range(250)
Inventory = Mapping[str, Mapping[str, tuple[str, int | None]]]  # by node: colour and numa number


@dataclass(frozen=True)
class Wanted:
    """One request: the colours that will do, the first alternative first, and how many devices."""

    colours: tuple[frozenset[str], ...]
    count: int | None  # None: all of a node
    is_tied: bool = False  # all devices of such requests of a claim have one numa number


@dataclass(frozen=True)
class Scene:
    """The devices of the nodes, the requests of each claim, and the claim of each pod."""

    inventory: Inventory
    claims: Sequence[Sequence[Wanted]]
    pods: Sequence[int]


def scene(seed: int) -> Scene:
    """The scene of this number."""
    draw = random.Random(seed)
    inventory = {
        f"n{i}": {
            f"d{j}": (draw.choice(COLOURS), draw.choice(NUMAS)) for j in range(draw.randint(0, 4))
        }
        for i in range(NODES)
    }
    claims = [[_wanted(draw) for _ in range(draw.choice((1, 1, 2)))] for _ in range(3)]
    if seed % 2:
        claims = [[_tied(wanted, draw) for wanted in own] for own in claims]
    pods = [draw.randrange(3) if draw.random() < 0.3 else i for i in range(draw.choice((2, 3)))]
    return Scene(inventory, claims, pods)


def _wanted(draw: random.Random) -> Wanted:
    def colours() -> frozenset[str]:
        return frozenset(draw.sample(COLOURS, draw.randint(1, 2)))

    match draw.choice(("count", "count", "first", "all")):
        case "first":
            return Wanted((colours(), colours()), 1)
        case "all":
            return Wanted((colours(),), None)
        case _:
            return Wanted((colours(),), draw.choice((1, 1, 2)))


def _tied(wanted: Wanted, draw: random.Random) -> Wanted:
    is_count = wanted.count is not None and len(wanted.colours) == 1
    return replace(wanted, is_tied=is_count and draw.random() < 0.8)


def has_a_way(made: Scene) -> bool:
    """Whether all pods find a node, and their claims devices."""
    for places in itertools.product(made.inventory, repeat=len(made.pods)):
        homes: dict[int, set[str]] = {}
        for own, place in zip(made.pods, places, strict=True):
            homes.setdefault(own, set()).add(place)
        fits = all(places.count(place) <= CPU for place in places)
        if fits and all(len(home) == 1 for home in homes.values()):
            asked = [(own, min(homes[own]), w) for own in sorted(homes) for w in made.claims[own]]
            if _given(made.inventory, asked, frozenset(), {}):
                return True
    return False


def _given(
    inventory: Inventory,
    asked: Sequence[tuple[int, str, Wanted]],
    taken: frozenset[tuple[str, str]],
    numa: Mapping[int, int | None],
) -> bool:
    if not asked:
        return True
    (own, home, wanted), *rest = asked
    devices = inventory[home]
    for colours in wanted.colours:
        meeting = [name for name, (colour, _) in devices.items() if colour in colours]
        count = len(meeting) if wanted.count is None else wanted.count
        for chosen in itertools.combinations(meeting, count) if count else ():
            new = {(home, name) for name in chosen}
            numbers = {devices[name][1] for name in chosen}
            known = {**numa}
            if wanted.is_tied:
                number = known.setdefault(own, devices[chosen[0]][1])
                if number is None or numbers != {number}:
                    continue
            if not new & taken and _given(inventory, rest, taken | new, known):
                return True
    return False


def _request(name: str, wanted: Wanted) -> dict[str, Any]:
    def part(colours: frozenset[str]) -> dict[str, Any]:
        listed = ", ".join(f'"{colour}"' for colour in sorted(colours))
        text = f'device.attributes["{DRIVER}"].colour in [{listed}]'
        return {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": text}}]}

    if len(wanted.colours) > 1:
        parts = [{"name": f"p{i}", **part(of)} for i, of in enumerate(wanted.colours)]
        return {"name": name, "firstAvailable": parts}
    mode = {"allocationMode": "All"} if wanted.count is None else {"count": wanted.count}
    return {"name": name, "exactly": {**part(wanted.colours[0]), **mode}}


def cluster_of(made: Scene) -> FakeCluster:
    """The scene as objects of the API."""
    cluster = FakeCluster()
    cluster.put_devices(device_class())
    for name, devices in made.inventory.items():
        cluster.add(node(name, cpu=CPU).labelled(hostname=name))
        listed = tuple(device(d, name, (), **_attributes(*of)) for d, of in devices.items())
        cluster.put_devices(ResourceSlice(name, DRIVER, name, node=NodeName(name), devices=listed))
    for i, asked in enumerate(made.claims):
        requests = [_request(f"r{j}", wanted) for j, wanted in enumerate(asked)]
        tied = [f"r{j}" for j, wanted in enumerate(asked) if wanted.is_tied]
        constraint = {"requests": tied, "matchAttribute": f"{DRIVER}/numa"}
        cluster.put_devices(claim(f"c{i}", *requests, constraints=[constraint] if tied else []))
    names = iter(made.pods)
    cluster.add(
        gang("a")
        .of(len(made.pods), cpu=1)
        .where(lambda member: replace(member, device_claims=(_named(names),)))
    )
    return cluster


def _attributes(colour: str, numa: int | None) -> dict[str, str | int]:
    return {"colour": colour} if numa is None else {"colour": colour, "numa": numa}


def _named(names: Iterator[int]) -> PodClaim:
    return PodClaim("gpu", f"c{next(names)}")


@pytest.mark.parametrize("strategy", ["bestfit", "ilp"])
def test_a_gang_starts_exactly_if_some_choice_of_nodes_and_devices_will_do(strategy: str) -> None:
    started = 0
    for seed in SEEDS:
        made = scene(seed)
        snapshot = Life(cluster_of(made), Clock()).state.snapshot(0.0)
        planned = plan(snapshot, load(strategy), BestFit(), Budget())
        assert not list(plan_checks.violations(snapshot, planned)), seed
        started += len(planned.placements)
        if strategy == "ilp":
            assert bool(planned.placements) is has_a_way(made), seed
        elif planned.placements:
            assert has_a_way(made), seed
    assert len(SEEDS) // 5 < started < len(SEEDS) * 4 // 5
