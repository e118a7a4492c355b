"""A sample of the oracle, that it notices what is wrong, and that it shares no code with Tutti.

All of it: ``python -m tests.conformance.device_oracle``.
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tutti.planning.plan import plan
from tutti.strategies import load
from tutti.strategies.best_fit import BestFit

from ...harness.builders import AMPLE_BUDGET
from . import counting, drawing, model, planner, smaller
from .counting import KINDS
from .judging import judge
from .lawful import Answer, Given, Level, faults
from .world import (
    GANGS,
    Device,
    DeviceClaim,
    Gang,
    Node,
    Pod,
    Request,
    StorageClass,
    Tie,
    Volume,
    VolumeClaim,
    Wanted,
    World,
)

if TYPE_CHECKING:
    from .counting import Change

SAMPLE = range(1, 61)
SPEAKS_TO_THE_PROJECT = {"planner.py", "__main__.py", Path(__file__).name}


@cache
def answered(seed: int) -> Answer:
    """What ``ilp`` answers to the cluster of a seed."""
    world = drawing.world(seed)
    seen = planner.snapshot(world)
    made = plan(seen, load("ilp"), BestFit(), AMPLE_BUDGET, planner.policy(world))
    return planner.answer(seen, made)


def test_plans_are_lawful_and_each_priority_is_the_best() -> None:
    seen, proved = Counter[str](), 0
    for seed in SAMPLE:
        judgement = judge(drawing.world(seed), answered(seed))
        assert judgement.wrong == (), seed
        seen += judgement.seen
        proved += answered(seed).is_proved or bool(drawing.world(seed).shared_volumes)
    assert proved >= len(SAMPLE) * 0.95
    assert [kind for kind in KINDS if not seen[kind]] == []


def test_plans_of_the_other_engine_are_the_best_too() -> None:
    for seed in range(1001, 1021):
        judgement, made = planner.judged(drawing.world(seed), load("ilp-highs"))
        assert judgement.wrong == (), seed
        assert made.proved or drawing.world(seed).shared_volumes, seed


def test_a_heuristic_is_lawful_and_seen_to_miss_the_best() -> None:
    missed = 0
    for seed in range(1, 31):
        world = drawing.world(seed)
        judgement, made = planner.judged(world, BestFit())
        assert [told for told in judgement.wrong if "fits beside the plan" not in told] == [], seed
        claimed = replace(planner.answer(planner.snapshot(world), made), is_proved=True, levels=())
        missed += any("and the best is" in told for told in judge(world, claimed).wrong)
    assert missed


@pytest.mark.parametrize(
    "mistake",
    [
        counting.without_counters,
        counting.without_ties,
        counting.without_limits,
        counting.without_claims_for_one,
        counting.with_volumes_twice,
        counting.with_devices_twice,
    ],
    ids=lambda mistake: mistake.__name__,
)
def test_an_oracle_with_a_mistake_differs(mistake: Change) -> None:
    told = [
        sentence
        for seed in range(1, 41)
        for sentence in judge(drawing.world(seed), answered(seed), mistake).wrong
    ]
    assert any("and the best is" in sentence for sentence in told)


# What a person can work out.

NODE = Node(cpu=4, pods=110, zone="a")
ANY = DeviceClaim((Request((Wanted("gpu"),)),))


def gang(name: str, *pods: Pod, priority: int = 0) -> Gang:
    return Gang(name, priority, len(pods), pods)


def gpu(number: int, node: int = 0, consumes: tuple[int, ...] = (), **values: int | str) -> Device:
    return Device(f"gpu-{number}", node, "gpu", {"model": "red", **values}, consumes)


def best(world: World) -> list[int]:
    return [int(value) for value in model.best(world, {})]


def test_a_device_is_given_once_and_a_claim_that_is_shared_counts_once() -> None:
    a, b = (gang(name, Pod(1, (f"{name}-0",))) for name in ("a", "b"))
    claims = {"a-0": ANY, "b-0": ANY}
    world = World(GANGS, (NODE,), (a, b), (gpu(0),), claims)
    assert best(world) == [1]
    assert best(replace(world, devices=(gpu(0), gpu(1)))) == [2]
    assert best(replace(world, devices=(replace(gpu(0), is_held=True),))) == [0]
    shared = gang("a", Pod(1, ("a-0",)), Pod(1, ("a-0",)))
    two_nodes = replace(world, nodes=(replace(NODE, cpu=1), replace(NODE, cpu=2)), gangs=(shared,))
    assert best(replace(two_nodes, devices=(gpu(0, 1),))) == [1]
    assert best(two_nodes) == [0]


def test_counters_are_not_exceeded() -> None:
    a, b = (gang(name, Pod(1, (f"{name}-0",))) for name in ("a", "b"))
    two = (gpu(0, consumes=(3,)), gpu(1, consumes=(2,)))
    node = replace(NODE, counters=(4,))
    world = World(GANGS, (node,), (a, b), two, {"a-0": ANY, "b-0": ANY})
    assert best(world) == [1]
    assert best(counting.without_counters(world)) == [2]
    assert best(replace(world, nodes=(replace(node, counters=(5,)),))) == [2]
    held = replace(gpu(2, consumes=(5,)), is_held=True)
    assert best(replace(world, devices=(*two, held))) == [0]
    assert best(replace(world, devices=(gpu(3), held))) == [1]


def test_constraints_and_requests_for_all_devices_and_for_alternatives_hold() -> None:
    pair = Request((Wanted("gpu"),), 2)
    devices = (gpu(0, root=0), gpu(1, root=1), gpu(2))
    world = World(GANGS, (NODE,), (gang("a", Pod(1, ("a-0",))),), devices)

    def with_claim(*ties: Tie, request: Request = pair) -> World:
        return replace(world, claims={"a-0": DeviceClaim((request,), ties)})

    assert best(with_claim()) == [1]
    assert best(with_claim(Tie("root"))) == [0]
    assert best(with_claim(Tie("root", is_distinct=True))) == [1]
    assert best(with_claim(Tie("port", is_distinct=True))) == [0]
    all_of = Request((Wanted("gpu"),), None)
    assert best(with_claim(request=all_of)) == [1]
    held = replace(with_claim(request=all_of), devices=(*devices, replace(gpu(3), is_held=True)))
    assert best(held) == [0]
    assert best(replace(with_claim(request=all_of), devices=())) == [0]
    either = Request((Wanted("gpu", ("blue",)), Wanted("gpu", ("red",))))
    assert best(with_claim(request=either)) == [1]
    assert best(with_claim(Tie("port", ((0, 1),)), request=either)) == [0]
    assert best(with_claim(Tie("port", ((0, 0),)), request=either)) == [1]


LOCAL = VolumeClaim("local", 10)
PV = Volume("pv", "local", 10, host=0)


def test_a_volume_is_given_once_and_made_where_there_is_a_place_for_it() -> None:
    a, b = (gang(name, Pod(1, volumes=(f"{name}-0",))) for name in ("a", "b"))
    claims = {"a-0": LOCAL, "b-0": LOCAL}
    classes = {"local": StorageClass()}
    world = World(GANGS, (NODE,), (a, b), volumes=(PV,), classes=classes, volume_claims=claims)
    assert best(world) == [1]
    assert best(counting.with_volumes_twice(world)) == [2]
    assert best(replace(world, volumes=(replace(PV, size=9),))) == [0]
    assert best(replace(world, volumes=(replace(PV, is_taken=True),))) == [0]
    made = {"local": StorageClass("x", ("b",))}
    assert best(replace(world, classes=made)) == [1]
    made = {"local": StorageClass("x", None, ((0, 10),))}
    assert best(replace(world, classes=made)) == [2]
    limited = replace(NODE, limits={"x": 2}, attached={"x": 1})
    assert best(replace(world, classes=made, nodes=(limited,))) == [1]
    own = {"a-0": VolumeClaim("local", 10, "pv"), "b-0": LOCAL}
    assert best(replace(world, volumes=(replace(PV, host=1),), volume_claims=own)) == [0]


def test_of_pods_with_one_claim_for_one_pod_one_starts() -> None:
    a, b = (gang(name, Pod(1, volumes=("v",))) for name in ("a", "b"))
    claims, classes = {"v": replace(LOCAL, is_for_one=True)}, {"local": StorageClass("x")}
    world = World(GANGS, (NODE, NODE), (a, b), classes=classes, volume_claims=claims)
    assert best(world) == [1]
    assert best(counting.without_claims_for_one(world)) == [2]
    assert best(replace(world, gangs=(gang("a", *a.pods, *b.pods),))) == [0]
    assert best(replace(world, gangs=(Gang("a", 0, 1, (*a.pods, *b.pods)),))) == [1]
    both = Answer({"a": {0: 0}, "b": {0: 1}}, {}, {"v": ""})
    assert "claim v is for one pod, and 2 use it" in " ".join(faults(world, both))


def test_a_volume_that_pods_share_counts_once_on_a_node() -> None:
    a, b = (gang(name, Pod(1, volumes=("v",)), Pod(1, volumes=("v",))) for name in ("a", "b"))
    pv = replace(PV, driver="x", is_taken=True)
    claims = {"v": VolumeClaim("local", 10, "pv", is_bound=True)}
    node = replace(NODE, limits={"x": 1})
    classes = {"local": StorageClass("x")}
    world = World(GANGS, (node,), (a, b), (), {}, (pv,), classes, claims)
    assert best(world) == [2]
    assert [*faults(world, Answer({"a": {0: 0, 1: 0}, "b": {0: 0, 1: 0}}))] == []
    assert best(replace(world, nodes=(replace(node, attached={"x": 1}),))) == [0]
    other = gang("c", Pod(1, volumes=("w",)))
    claims["w"] = VolumeClaim("local", 10, "pw", is_bound=True)
    more = (pv, replace(pv, name="pw"))
    both = replace(world, gangs=(a, other), volumes=more, volume_claims=claims)
    assert best(both) == [1]
    told = " ".join(faults(both, Answer({"a": {0: 0, 1: 0}, "c": {0: 0}})))
    assert "node 0 takes 2 more volumes of x" in told


def test_a_higher_priority_counts_more_than_any_gangs_below_and_gangs_start_whole() -> None:
    high, low = gang("a", *[Pod(1)] * 3, priority=1), [gang(name, Pod(2)) for name in "bc"]
    assert best(World(GANGS, (NODE,), (high, *low))) == [1, 0]
    assert best(World(GANGS, (NODE,), (gang("a", *[Pod(1)] * 5, priority=1), *low))) == [0, 2]
    elastic = Gang("a", 1, 1, (Pod(1),) * 3)
    assert best(World(GANGS, (NODE,), (elastic, *low))) == [1, 1]
    grown = model.best(World(GANGS, (NODE,), (elastic, *low)), {"a": frozenset({0, 1, 2})})
    assert [*grown] == [1, 0]


def test_it_notices_what_a_plan_may_not_do() -> None:
    a, b = (gang(name, Pod(1, (f"{name}-0",), (f"{name}-v",))) for name in ("a", "b"))
    world = World(
        GANGS,
        (replace(NODE, counters=(3,)), NODE),
        (a, b),
        (gpu(0, consumes=(2,)), gpu(1, consumes=(2,)), gpu(2, 1)),
        {"a-0": ANY, "b-0": ANY},
        (PV, replace(PV, name="large", size=20)),
        {"local": StorageClass()},
        {"a-v": LOCAL, "b-v": LOCAL},
    )

    def told(devices: tuple[str, str], volumes: tuple[str, str], node: int = 0) -> str:
        given = {f"{name}-0": (Given(0, 0, of),) for name, of in zip("ab", devices, strict=True)}
        chosen = {f"{name}-v": of for name, of in zip("ab", volumes, strict=True)}
        return " ".join(faults(world, Answer({"a": {0: 0}, "b": {0: node}}, given, chosen)))

    assert "counter 0 of node 0 is exceeded" in told(("gpu-0", "gpu-1"), ("pv", "large"))
    assert "device gpu-0 is given 2 times" in told(("gpu-0", "gpu-0"), ("pv", "large"))
    assert "volume pv is given 2 times" in told(("gpu-0", "gpu-1"), ("pv", "pv"))
    assert "not on one node" in told(("gpu-0", "gpu-2"), ("pv", "large"))
    assert "volume pv will not do on 1" in told(("gpu-0", "gpu-2"), ("large", "pv"), node=1)
    assert "no volume is to be made" in told(("gpu-0", "gpu-2"), ("pv", ""), node=1)
    alone = Answer({"a": {0: 0}}, {"a-0": (Given(0, 0, "gpu-0"),)}, {"a-v": "large"})
    assert "a volume smaller than large is left" in " ".join(faults(world, alone))
    better = replace(alone, volumes={"a-v": "pv"}, reasons={"b": "NotEnoughRoom"})
    assert [*judge(world, replace(better, levels=(Level(0, 1, 0),))).wrong] == [
        "priority 0: the bound 0 is below 1.0",
        "priority 0 is proved, and its bound 0 is not 1",
    ]
    spare = replace(world, volumes=(*world.volumes, replace(PV, name="other", host=1)))
    assert [*judge(spare, replace(better, levels=(Level(0, 2, 2),))).wrong] == [
        "starts 1, and the best is 2; proved: True",
        "priority 0 says 2 of 1.0",
        "b waits with reason NotEnoughRoom, and fits beside the plan",
    ]


def test_a_smaller_cluster_keeps_the_fault() -> None:
    world = smaller.smallest(drawing.world(1), lambda one: any(g.need > 1 for g in one.gangs))
    assert [gang.need for gang in world.gangs] == [2]


def test_it_shares_no_code_with_what_it_judges() -> None:
    for path in Path(__file__).parent.glob("*.py"):
        if path.name in SPEAKS_TO_THE_PROJECT:
            continue
        for at in ast.walk(ast.parse(path.read_text())):
            names = [at.module or ""] if isinstance(at, ast.ImportFrom) else []
            names += [alias.name for alias in at.names] if isinstance(at, ast.Import) else []
            assert not any(name.split(".")[0] == "tutti" for name in names), path.name
