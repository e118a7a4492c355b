"""Small clusters with devices: a plan starts a gang exactly if trying everything finds a way.

The other side places pod after pod on every node, and gives each request every device; it knows
neither counts nor shapes. In every second scene, constraints tie devices of a claim; in every
third, some claims are for admin access, and some devices are held by others or broken. In every
fifth, most devices consume some of two counters of their node.
"""

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.harness.builders import gang, node
from tests.harness.fake_devices import DRIVER, claim, device, device_class
from tests.harness.fakes import Clock, FakeCluster, Life
from tutti.model.devices.claims import PodClaim
from tutti.model.devices.inventory import Counter, DeviceTaint, ResourceSlice
from tutti.model.keys import NodeName
from tutti.planning.plan import plan
from tutti.strategies import load
from tutti.strategies.best_fit import BestFit
from tutti.verify import plan_checks

from ....harness.builders import AMPLE_BUDGET

COLOURS = ("red", "green", "blue")
ATTRIBUTES = {"numa": (0, 0, 1, 1, 2, None), "port": (0, 1, 2, 3, 3)}
NODES, CPU = 2, 3
TAINT = DeviceTaint("broken", "", "NoSchedule")
SEEDS = range(620)
PLURAL = 500  # scenes from here on have alternatives for several devices
Found = tuple[str, Mapping[str, int | None]]  # the colour of a device, and its attributes
Inventory = Mapping[str, Mapping[str, Found]]  # by node and name


@dataclass(frozen=True)
class Wanted:
    """One request: the colours that will do, the first alternative first, and how many devices."""

    colours: tuple[frozenset[str], ...]
    count: int | None  # None: all of a node
    counts: tuple[int, ...] = ()  # of alternatives for several devices

    def number(self, alternative: int) -> int | None:
        """How many devices it takes."""
        return self.counts[alternative] if self.counts else self.count


@dataclass(frozen=True)
class Tie:
    """A constraint: the devices of what it names have one value of an attribute, or different."""

    attribute: str
    names: tuple[str, ...]
    is_distinct: bool

    def holds(self, answers: Mapping[str, Sequence[Found]]) -> bool:
        """Whether it does, for devices by the name of the request or the alternative."""
        own = [
            of.get(self.attribute)
            for name, devices in answers.items()
            if not self.names or {name, name.split("/")[0]} & {*self.names}
            for _, of in devices
        ]
        wanted = len(own) if self.is_distinct else 1
        return not own or (None not in own and len({*own}) == wanted)


@dataclass(frozen=True)
class Scene:
    """The devices of the nodes, the requests of each claim, and the claim of each pod."""

    inventory: Inventory
    claims: Sequence[Sequence[Wanted]]
    pods: Sequence[int]
    ties: Sequence[Sequence[Tie]]  # of each claim
    administered: frozenset[int] = frozenset()  # the claims for admin access
    held: frozenset[tuple[str, str]] = frozenset()  # devices that another claim has
    broken: frozenset[tuple[str, str]] = frozenset()  # devices with a taint
    # Of two counters, how much a device consumes; and how much each node has.
    uses: Mapping[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    counters: tuple[int, int] = (0, 0)


def scene(seed: int) -> Scene:
    """The scene of this number."""
    draw = random.Random(seed)
    inventory = {
        f"n{i}": {
            f"d{j}": (draw.choice(COLOURS), {k: draw.choice(v) for k, v in ATTRIBUTES.items()})
            for j in range(draw.randint(0, 5 if seed % 2 else 4))
        }
        for i in range(NODES)
    }
    claims = [[_wanted(draw) for _ in range(draw.choice((1, 1, 2)))] for _ in range(3)]
    pods = [draw.randrange(3) if draw.random() < 0.3 else i for i in range(draw.choice((2, 3)))]
    ties = [_ties(own, draw) if seed % 2 else [] for own in claims]
    made = Scene(inventory, claims, pods, ties)
    if seed >= PLURAL:
        return _with_alternatives_for_several(made, draw)
    if seed % 5 == 0:
        return _with_counters(made, draw)
    return _with_admin_access(made, draw) if seed % 3 == 0 else made


def _with_alternatives_for_several(made: Scene, draw: random.Random) -> Scene:
    """Some claims with other numbers for each alternative; constraints are for others alone."""
    claims = [
        [
            replace(of, colours=(*of.colours, of.colours[0])[:2], count=1, counts=(a, b))
            if draw.random() < 0.6
            else of
            for of in own
            for a, b in [(draw.choice((1, 2)), draw.choice((1, 2, 3)))]
        ]
        for own in made.claims
    ]
    ties = [
        [] if any(max(of.counts, default=1) > 1 for of in own) else known
        for own, known in zip(claims, made.ties, strict=True)
    ]
    return replace(made, claims=claims, ties=ties)


def _with_counters(made: Scene, draw: random.Random) -> Scene:
    """Without what is not modelled of devices that consume counters."""
    named = [(home, name) for home, devices in made.inventory.items() for name in devices]
    return replace(
        made,
        claims=[
            [
                replace(_for_admin(of), count=draw.choice((1, 1, 2)))
                for of in (own if ties else own[:1])
            ]
            for own, ties in zip(made.claims, made.ties, strict=True)
        ],
        ties=[
            [replace(of, names=tuple(n for n in of.names if "/" not in n)) for of in own]
            for own in made.ties
        ],
        held=frozenset(of for of in named if draw.random() < 0.1),
        uses={of: (draw.randint(0, 4), draw.randint(0, 3)) for of in named if draw.random() < 0.8},
        counters=(draw.randint(4, 8), draw.randint(3, 6)),
    )


def _with_admin_access(made: Scene, draw: random.Random) -> Scene:
    named = [(home, name) for home, devices in made.inventory.items() for name in devices]
    claims = [[_for_admin(wanted) for wanted in own] for own in made.claims]
    administered = frozenset(i for i in range(len(claims)) if draw.random() < 0.6)
    return replace(
        made,
        claims=[claims[i] if i in administered else own for i, own in enumerate(made.claims)],
        ties=[[] if i in administered else own for i, own in enumerate(made.ties)],
        administered=administered,
        held=frozenset(of for of in named if draw.random() < 0.4),
        broken=frozenset(of for of in named if draw.random() < 0.1),
    )


def _for_admin(wanted: Wanted) -> Wanted:
    """Without alternatives, which such claims cannot have or are not modelled."""
    return replace(wanted, colours=wanted.colours[:1])


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


def _ties(own: Sequence[Wanted], draw: random.Random) -> Sequence[Tie]:
    """Constraints for all requests of a claim, or some requests and alternatives."""
    every = [
        name
        for i, of in enumerate(own)
        for name in (f"r{i}", *(n for n in _names(i, of) if "/" in n))
    ]
    return [
        Tie(
            draw.choice((*ATTRIBUTES,)),
            tuple(sorted(draw.sample(every, draw.randint(0, min(2, len(every)))))),
            is_distinct=draw.random() < 0.5,
        )
        for _ in range(draw.choice((0, 1, 1, 1, 2)))
    ]


def _names(i: int, wanted: Wanted) -> Sequence[str]:
    """The names that devices of a request may be for, one for each of its colours."""
    several = [f"r{i}/p{j}" for j in range(len(wanted.colours))]
    return several if len(several) > 1 else [f"r{i}"]


def has_a_way(made: Scene) -> bool:
    """Whether all pods find a node, and their claims devices."""
    for places in itertools.product(made.inventory, repeat=len(made.pods)):
        homes: dict[int, set[str]] = {}
        for own, place in zip(made.pods, places, strict=True):
            homes.setdefault(own, set()).add(place)
        fits = all(places.count(place) <= CPU for place in places)
        if fits and all(len(home) == 1 for home in homes.values()):
            asked = [
                (own, min(homes[own]), _names(i, wanted), wanted)
                for own in sorted(homes)
                for i, wanted in enumerate(made.claims[own])
            ]
            ordinary = [of for of in asked if of[0] not in made.administered]
            if _given(made, ordinary, made.held, {}) and all(
                _given(made, [of for of in asked if of[0] == i], frozenset(), {})
                for i in made.administered
            ):
                return True
    return False


def _given(
    made: Scene,
    asked: Sequence[tuple[int, str, Sequence[str], Wanted]],
    taken: frozenset[tuple[str, str]],
    answers: Mapping[int, Mapping[str, Sequence[Found]]],
) -> bool:
    if any(not tie.holds(answers[i]) for i in answers for tie in made.ties[i]):
        return False
    if not asked:
        return all(
            sum(made.uses.get(of, (0, 0))[i] for of in taken if of[0] == home) <= most
            for home in made.inventory
            for i, most in enumerate(made.counters)
        )
    (own, home, names, wanted), *rest = asked
    devices = made.inventory[home]
    for i, (name_, colours) in enumerate(zip(names, wanted.colours, strict=True)):
        meeting = [name for name, (colour, _) in devices.items() if colour in colours]
        number = wanted.number(i)
        count = len(meeting) if number is None else number
        for chosen in itertools.combinations(meeting, count) if count else ():
            new = {(home, name) for name in chosen}
            more = {**answers.get(own, {}), name_: [devices[name] for name in chosen]}
            known = {**answers, own: more}
            if not new & (taken | made.broken) and _given(made, rest, taken | new, known):
                return True
    return False


def _request(name: str, wanted: Wanted) -> dict[str, Any]:
    def part(colours: frozenset[str]) -> dict[str, Any]:
        listed = ", ".join(f'"{colour}"' for colour in sorted(colours))
        text = f'device.attributes["{DRIVER}"].colour in [{listed}]'
        return {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": text}}]}

    if len(wanted.colours) > 1:
        parts = [
            {"name": f"p{i}", "count": wanted.number(i), **part(of)}
            for i, of in enumerate(wanted.colours)
        ]
        return {"name": name, "firstAvailable": parts}
    mode = {"allocationMode": "All"} if wanted.count is None else {"count": wanted.count}
    return {"name": name, "exactly": {**part(wanted.colours[0]), **mode}}


def cluster_of(made: Scene) -> FakeCluster:
    """The scene as objects of the API."""
    cluster = FakeCluster()
    cluster.put_devices(device_class())
    for name, devices in made.inventory.items():
        cluster.add(node(name, cpu=CPU).labelled(hostname=name))
        listed = tuple(
            replace(
                device(d, name, (TAINT,) * ((name, d) in made.broken), **_attributes(*of)),
                counters=_counters(made.uses.get((name, d), ())),
            )
            for d, of in devices.items()
        )
        own = ResourceSlice(name, DRIVER, name, 1, 2, NodeName(name), listed)
        sets = replace(own, name=f"{name}-sets", devices=(), counters=_counters(made.counters))
        cluster.put_devices(own, sets)
    if made.held:
        results = [
            {"request": "gpu", "driver": DRIVER, "pool": home, "device": name}
            for home, name in sorted(made.held)
        ]
        other = claim("other") | {"status": {"allocation": {"devices": {"results": results}}}}
        cluster.put_devices(other)
    for i, asked in enumerate(made.claims):
        requests = [_request(f"r{j}", wanted) for j, wanted in enumerate(asked)]
        for wanted in requests if i in made.administered else ():
            wanted["exactly"]["adminAccess"] = True
        constraints = [
            {
                "requests": [*tie.names],
                "distinctAttribute" if tie.is_distinct else "matchAttribute": (
                    f"{DRIVER}/{tie.attribute}"
                ),
            }
            for tie in made.ties[i]
        ]
        cluster.put_devices(claim(f"c{i}", *requests, constraints=constraints))
    names = iter(made.pods)
    cluster.add(
        gang("a")
        .of(len(made.pods), cpu=1)
        .where(lambda member: replace(member, device_claims=(_named(names),)))
    )
    return cluster


def _counters(amounts: Iterable[int]) -> tuple[Counter, ...]:
    return tuple(Counter("set", f"c{i}", f"{n}Gi") for i, n in enumerate(amounts))


def _attributes(colour: str, values: Mapping[str, int | None]) -> dict[str, str | int]:
    return {"colour": colour, **{name: n for name, n in values.items() if n is not None}}


def _named(names: Iterator[int]) -> PodClaim:
    return PodClaim("gpu", f"c{next(names)}")


@pytest.mark.parametrize("strategy", ["bestfit", "ilp"])
def test_a_gang_starts_exactly_if_some_choice_of_nodes_and_devices_will_do(strategy: str) -> None:
    started = 0
    for seed in SEEDS:
        made = scene(seed)
        snapshot = Life(cluster_of(made), Clock()).state.snapshot(0.0)
        planned = plan(snapshot, load(strategy), BestFit(), AMPLE_BUDGET)
        assert not list(plan_checks.violations(snapshot, planned)), seed
        assert not any(member.unsupported_fields for member in snapshot.gangs[0].members), seed
        started += len(planned.placements)
        if strategy == "ilp":
            assert bool(planned.placements) is has_a_way(made), seed
        elif planned.placements:
            assert has_a_way(made), seed
    assert len(SEEDS) // 5 < started < len(SEEDS) * 4 // 5
