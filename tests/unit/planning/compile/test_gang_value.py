"""What it is worth to admit a gang."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.gang import demand
from tutti.model.decisions import Objective, Policy
from tutti.model.ports import HostPort
from tutti.model.resources import Resources
from tutti.model.shapes import Shape
from tutti.planning.compile import gang_value, grids
from tutti.planning.compile.gang_value import AGE_STEPS, MOST_WEIGHT, SHARE_SCALE

from ....harness.builders import GangBuilder, NodeBuilder, gang, node, snapshot_of

HOURS = 3600.0


def worth(gang: GangBuilder, *nodes: NodeBuilder, policy: Policy, now: float = 0.0) -> int:
    snapshot = snapshot_of(gang, *nodes)
    base = grids.grid(snapshot, (m.shape for g in snapshot.gangs for m in g.members))
    want = demand.start_request(demand.count_members(gang.made))
    assert want is not None
    return gang_value.worths(base, [want], policy, now)[0]


def share(gang: GangBuilder, *nodes: NodeBuilder) -> int:
    """The share of a gang that is new."""
    return worth(gang, *nodes, policy=Policy()) // AGE_STEPS


def test_a_gangs_value_is_its_largest_share_of_any_resource() -> None:
    made = gang("a").of(2, cpu=1, gpu=1)
    assert share(made, node("n1", cpu=8, gpu=4), node("n2", cpu=8, gpu=4)) == SHARE_SCALE // 4


def test_only_the_needed_members_count_the_oldest_of_each_role_first() -> None:
    made = gang("a").role("driver", 1, cpu=1).role("worker", 1, 3, cpu=2).needing(3)
    assert share(made, node("n1", cpu=10)) == SHARE_SCALE // 2


def test_a_host_port_makes_no_gang_larger() -> None:
    made = gang("a").of(1, cpu=1)
    assert share(made.listening(HostPort(80)), node("n1", cpu=4)) == share(made, node("n1", cpu=4))


GI = 2**30


def exact(gang: GangBuilder, *nodes: NodeBuilder) -> Fraction:
    """The largest share of a resource's total, worked out without the planner."""
    asked = Counter({"pods": len(gang.made.members)})
    for member in gang.made.members:
        asked.update(dict(member.shape.requests.amounts))
    totals = Counter[str]()
    for one in nodes:
        totals.update(dict(one.made.allocatable.amounts))
    return max(Fraction(n, totals[name]) for name, n in asked.items() if totals[name])


def values(gangs: Sequence[GangBuilder], *nodes: NodeBuilder) -> list[int]:
    snapshot = snapshot_of(*gangs, *nodes)
    base = grids.grid(snapshot, (m.shape for g in snapshot.gangs for m in g.members))
    wants = [demand.start_request(demand.count_members(gang.made)) for gang in gangs]
    return list(gang_value.worths(base, [want for want in wants if want], Policy(), 0.0))


def test_a_small_share_of_a_plentiful_resource_stays_small() -> None:
    nodes = [node(f"n{i}", cpu=64, memory=512, gpu=8) for i in range(200)]
    gpus = gang("gpus").of(8, cpu=1, gpu=1)
    odd = gang("odd").of(1).each(shape=Shape(Resources.of({"memory": 1_000_000_001})))
    found = values([gpus, odd], *nodes)
    assert found[0] / (SHARE_SCALE * AGE_STEPS) == pytest.approx(8 / 1600, 1e-7)
    assert found[1] / (SHARE_SCALE * AGE_STEPS) == pytest.approx(float(exact(odd, *nodes)), 1e-4)


def test_gangs_that_differ_in_one_device_are_worth_multiples_of_it() -> None:
    nodes = [node(f"n{i}", cpu=64, gpu=7) for i in range(3)]
    found = values([gang("a").of(2, gpu=1), gang("b").of(1, gpu=3)], *nodes)
    assert found[0] * 3 == found[1] * 2


def test_where_amounts_share_no_unit_devices_still_do() -> None:
    nodes = [node(f"n{i}", cpu=64, memory=512, gpu=7) for i in range(3)]
    odd = gang("odd").of(1).each(shape=Shape(Resources.of({"memory": 300 * GI + 1})))
    found = values([gang("a").of(2, gpu=1), gang("b").of(1, gpu=3), odd], *nodes)
    assert found[0] * 3 == found[1] * 2


clusters = st.lists(
    st.builds(
        lambda cpu, memory, gpu: (cpu, memory, gpu),
        st.integers(1, 10**7),
        st.integers(1, 2**45),
        st.integers(0, 16),
    ),
    min_size=1,
    max_size=4,
)


def odd_node(name: str, amounts: tuple[int, int, int]) -> NodeBuilder:
    """A node with amounts in their smallest units."""
    return node(name).but(allocatable=resources_of(*amounts, pods=110))


def resources_of(cpu: int, memory: int, gpu: int, pods: int = 0) -> Resources:
    return Resources.of({"cpu": cpu, "memory": memory, "nvidia.com/gpu": gpu, "pods": pods})


@given(
    clusters,
    st.lists(
        st.tuples(st.integers(0, 10**7), st.integers(0, 2**45), st.integers(0, 16)),
        min_size=2,
        max_size=5,
    ),
)
def test_values_rank_as_exact_shares_do(
    rooms: list[tuple[int, int, int]], asks: list[tuple[int, int, int]]
) -> None:
    nodes = [odd_node(f"n{i}", amounts) for i, amounts in enumerate(rooms)]
    made = [gang(f"g{i}").of(1).each(shape=Shape(resources_of(*ask))) for i, ask in enumerate(asks)]
    ranked = list(zip([exact(one, *nodes) for one in made], values(made, *nodes), strict=True))
    for (one, worth_of_one), (other, worth_of_other) in combinations(sorted(ranked), 2):
        assert worth_of_one <= worth_of_other
        if other - one > 1e-9:
            assert worth_of_one < worth_of_other


@given(clusters, st.tuples(st.integers(0, 10**7), st.integers(0, 2**45), st.integers(0, 16)))
def test_what_others_ask_for_changes_no_value(
    rooms: list[tuple[int, int, int]], ask: tuple[int, int, int]
) -> None:
    nodes = [odd_node(f"n{i}", amounts) for i, amounts in enumerate(rooms)]
    made = gang("a").of(1).each(shape=Shape(resources_of(*ask)))
    odd = gang("odd").of(1).each(shape=Shape(resources_of(1, 1_000_000_001, 0)))
    alone, beside = values([made], *nodes)[0], values([made, odd], *nodes)[0]
    share = exact(made, *nodes)
    assert abs(Fraction(alone - beside, SHARE_SCALE * AGE_STEPS)) <= 4e-9 * max(1.0, float(share))


def test_what_lower_priorities_ask_for_changes_nothing() -> None:
    nodes = node("n1", cpu=8, memory=512, gpu=7)
    made = gang("a").of(2, gpu=1).priority(1)
    odd = gang("odd").of(1).each(shape=Shape(Resources.of({"memory": 300 * GI + 1})))
    assert values([made, odd], nodes)[0] == values([made], nodes)[0]


def test_a_value_is_positive_even_where_there_is_nothing() -> None:
    assert share(gang("a").of(1)) > 0


@pytest.mark.parametrize(
    ("waited", "weight"),
    [(-60.0, 1.0), (0.0, 1.0), (0.24 * HOURS, 1.0), (0.25 * HOURS, 1.25), (1 * HOURS, 2.0)],
)
def test_a_gang_that_waits_is_worth_more_in_steps(waited: float, weight: float) -> None:
    made = gang("a").of(1, cpu=1)
    nodes = node("n1", cpu=2)
    found = worth(made, nodes, policy=Policy(age_seconds=HOURS), now=waited)
    assert found == SHARE_SCALE // 2 * AGE_STEPS * weight


def test_an_age_has_a_largest_weight() -> None:
    made = gang("a").of(1, cpu=1)
    found = worth(made, node("n1", cpu=1), policy=Policy(), now=1e9)
    assert found == SHARE_SCALE * AGE_STEPS * (1 + MOST_WEIGHT)


@pytest.mark.parametrize(("objective", "found"), [(Objective.GANGS, 1), (Objective.MEMBERS, 3)])
def test_gangs_and_members_are_counted_whatever_their_age(objective: Objective, found: int) -> None:
    made = gang("a").of(5, cpu=1).needing(3)
    policy = Policy(objective=objective)
    assert worth(made, node("n1", cpu=8), policy=policy, now=1e9) == found


def test_a_gang_ages_from_when_its_members_are_there() -> None:
    made = gang("a").of(2, cpu=1).only("a-0", created=HOURS).only("a-1", created=HOURS)
    policy = Policy(age_seconds=HOURS)
    assert worth(made, node("n1", cpu=2), policy=policy, now=HOURS) == SHARE_SCALE * AGE_STEPS
