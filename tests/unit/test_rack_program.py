"""The program over racks beside a search through all placements, on very small clusters."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest

from tutti.planning.plan import plan
from tutti.strategies.best_fit import BestFit
from tutti.strategies.ilp.strategy import IlpStrategy
from tutti.strategies.problem import Budget

from ..bench.planner import network, rack_program, racks
from ..bench.planner.scenes import few_racks
from ..harness.builders import NodeBuilder, gang, node, snapshot_of, topology

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tutti.model.cluster import Gang, Snapshot
    from tutti.model.keys import Uid
    from tutti.model.resources import Resources

NETWORK = topology("block", "rack")
SECONDS = 60.0


def in_rack(name: str, rack: str, *, gpu: float, cpu: float = 8, pods: int = 110) -> NodeBuilder:
    return node(name, pods=pods, gpu=gpu, cpu=cpu).labelled(block="b", rack=rack)


def by_members(picture: Snapshot) -> Mapping[Uid, int]:
    return {made.uid: len(made.members) for made in picture.gangs}


def proved(picture: Snapshot, values: Mapping[Uid, int] | None = None) -> int:
    """The value that the program proves."""
    found = rack_program.best(picture, values or by_members(picture), SECONDS)
    assert found.value == found.bound
    return found.value


# ---- a search through all placements


def most(picture: Snapshot, values: Mapping[Uid, int]) -> int:
    """The most that any choice of gangs, each with any nodes for its members, is worth."""
    names = [dict(n.labels)["rack"] for n in picture.nodes]
    return _most(picture.gangs, values, names, [n.allocatable - n.used for n in picture.nodes])


def _most(
    gangs: Sequence[Gang], values: Mapping[Uid, int], names: Sequence[str], left: list[Resources]
) -> int:
    if not gangs:
        return 0
    first, *rest = gangs
    found = [_most(rest, values, names, left)]
    request = first.members[0].shape.requests
    for counts in _divided(len(first.members), len(left)):
        after = [room - request.scaled(n) for room, n in zip(left, counts, strict=True)]
        is_over = any(n < 0 for room in after for _, n in room.amounts)
        if not is_over and _keeps_rules(first, names, counts):
            found.append(values[first.uid] + _most(rest, values, names, after))
    return max(found)


def _divided(count: int, nodes: int) -> Iterator[tuple[int, ...]]:
    """All ways to divide so many members over so many nodes."""
    if nodes == 1:
        yield (count,)
        return
    for n in range(count + 1):
        for others in _divided(count - n, nodes - 1):
            yield (n, *others)


def _keeps_rules(made: Gang, names: Sequence[str], counts: Sequence[int]) -> bool:
    members = Counter[str]()
    for name, n in zip(names, counts, strict=True):
        members[name] += n
    used = [n for n in members.values() if n]
    if made.same_domain and len(used) > 1:
        return False
    return all(sum(n % own.size > 0 for n in used) <= 1 for own in made.segments)


def drawn(chance: Random) -> Snapshot:
    """Up to three racks and four gangs; every second gang is in one rack or in segments."""
    nodes = [
        in_rack(
            f"n{i}", f"r{chance.randint(0, 2)}", gpu=chance.randint(0, 4), cpu=chance.choice((3, 8))
        )
        for i in range(chance.randint(2, 4))
    ]
    gangs = []
    for name in "abcd"[: chance.randint(2, 4)]:
        gpu = chance.choice((1, 1, 2))
        made = gang(name).of(chance.randint(1, 5), gpu=gpu, cpu=chance.choice((1, gpu)))
        match chance.randint(0, 3):
            case 0:
                made = made.together("rack")
            case 1 | 2:
                made = made.in_segments(chance.randint(1, 4), "rack")
        gangs.append(made)
    return snapshot_of(*nodes, *gangs, NETWORK)


def test_it_agrees_with_a_search_through_all_placements() -> None:
    some, short = 0, 0
    for seed in range(150):
        chance = Random(seed)
        picture = drawn(chance)
        values = {made.uid: chance.randint(1, 9) for made in picture.gangs}
        assert proved(picture, values) == most(picture, values), seed
        some += 0 < most(picture, values) < sum(values.values())
        short += any(len(g.members) % own.size for g in picture.gangs for own in g.segments)
    assert some > 50
    assert short > 50


# ---- what is in one rack


def test_one_rack_holds_a_gang_or_none_does() -> None:
    nodes = [in_rack("n1", "r1", gpu=2), in_rack("n2", "r1", gpu=1), in_rack("n3", "r2", gpu=2)]
    wanted = gang("a").of(4, gpu=1)
    assert proved(snapshot_of(*nodes, wanted, NETWORK)) == 4
    assert proved(snapshot_of(*nodes, wanted.together("rack"), NETWORK)) == 0
    assert proved(snapshot_of(*nodes, gang("a").of(3, gpu=1).together("rack"), NETWORK)) == 3


def test_racks_of_ten_and_ten_hold_sixteen_as_six_six_and_four() -> None:
    nodes = [in_rack(f"n{i}", f"r{i}", gpu=10, cpu=10) for i in range(2)]
    wanted = gang("a").of(16, gpu=1)
    assert proved(snapshot_of(*nodes, wanted.in_segments(6, "rack"), NETWORK)) == 16
    assert proved(snapshot_of(*nodes, wanted.in_segments(11, "rack"), NETWORK)) == 0


def test_members_take_whole_places_on_nodes() -> None:
    """Three nodes with a GPU have three GPUs, and no place for a member of two."""
    nodes = [in_rack(f"n{i}", "r", gpu=1) for i in range(3)]
    assert proved(snapshot_of(*nodes, gang("a").of(1, gpu=2), NETWORK)) == 0


def test_a_node_has_places_for_pods_and_room_that_others_use() -> None:
    full = in_rack("n1", "r", gpu=4, pods=2)
    assert proved(snapshot_of(full, gang("a").of(3, gpu=1), NETWORK)) == 0
    used = in_rack("n1", "r", gpu=4).using(gpu=2, cpu=1)
    assert proved(snapshot_of(used, gang("a").of(3, gpu=1), NETWORK)) == 0
    assert proved(snapshot_of(used, gang("a").of(2, gpu=1), NETWORK)) == 2


def test_of_equal_gangs_as_many_start_as_have_room() -> None:
    nodes = [in_rack(f"n{i}", f"r{i}", gpu=4) for i in range(3)]
    gangs = [gang(f"g{i}").of(3, gpu=1).together("rack") for i in range(5)]
    assert proved(snapshot_of(*nodes, *gangs, NETWORK)) == 9


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(8, id="more than 300 pairs of a gang and a rack"),
        pytest.param(2, id="members in segments and in one rack"),
        pytest.param(49, id="a program that cuts make harder"),
    ],
)
def test_a_plan_is_worth_as_much_as_the_program_says(seed: int) -> None:
    (scene, *_) = few_racks(1.0)
    picture = racks.snapshot(scene.nodes, scene.gangs, scene.full, seed, racks.FEW_BLOCKS)
    gpus = {
        made.uid: sum(m.shape.requests[network.GPU] for m in made.members) for made in picture.gangs
    }
    made = plan(picture, IlpStrategy(), BestFit(), Budget())
    assert sum(gpus[placement.uid] for placement in made.placements) == proved(picture, gpus)
    assert made.proved


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (gang("a").of(2, gpu=1).together("block"), "another level"),
        (gang("a").of(2, gpu=1).in_segments(2, "block"), "another level"),
        (gang("a").of(1, gpu=1).of(1, gpu=2), "equal"),
        (gang("a").of(2, gpu=1).needing(1), "not all members are needed"),
        (gang("a").of(2, gpu=1).together("rack").together("block"), "one rule"),
        (gang("a").role("w", 2, gpu=1).together("rack", "w"), "one rule"),
    ],
    ids=["block", "segments in blocks", "two shapes", "further members", "two rules", "a role"],
)
def test_it_refuses_what_it_does_not_know(made: object, sentence: str) -> None:
    picture = snapshot_of(in_rack("n1", "r", gpu=4), made, NETWORK)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=sentence):
        rack_program.best(picture, by_members(picture), SECONDS)


def test_it_refuses_more_racks_than_it_is_made_for() -> None:
    nodes = [in_rack(f"n{i}", f"r{i}", gpu=1) for i in range(rack_program.MOST_RACKS + 1)]
    picture = snapshot_of(*nodes, gang("a").of(1, gpu=1), NETWORK)
    with pytest.raises(ValueError, match="49 racks"):
        rack_program.best(picture, by_members(picture), SECONDS)


def test_the_scene_has_48_racks_and_all_kinds_of_gangs() -> None:
    picture = racks.snapshot(864, 21, 0.85, seed=1, blocks=racks.FEW_BLOCKS)
    assert (
        len({tuple(dict(n.labels)[level] for level in network.LEVELS) for n in picture.nodes}) == 48
    )
    assert Counter((bool(g.same_domain), bool(g.segments)) for g in picture.gangs) == {
        (True, False): 7,
        (False, True): 7,
        (False, False): 7,
    }
