"""What it is worth to admit a gang."""

import pytest

from tutti.model.decisions import Objective, Policy
from tutti.model.ports import HostPort
from tutti.planning import demand, reduce, value
from tutti.planning.value import AGE_STEPS, MOST_WEIGHT, SHARE_SCALE

from ...builders import GangBuilder, NodeBuilder, gang, node, snapshot

HOURS = 3600.0


def worth(made: GangBuilder, *nodes: NodeBuilder, policy: Policy, now: float = 0.0) -> int:
    seen = snapshot(made, *nodes)
    base = reduce.grid(seen, (m.shape for g in seen.gangs for m in g.members))
    want = demand.whole(demand.census(made.made))
    assert want is not None
    return value.worths(base, [want], policy, now)[0]


def share(made: GangBuilder, *nodes: NodeBuilder) -> int:
    """The share of a gang that is new."""
    return worth(made, *nodes, policy=Policy()) // AGE_STEPS


def test_a_gangs_value_is_its_largest_share_of_any_resource() -> None:
    made = gang("a").of(2, cpu=1, gpu=1)
    assert share(made, node("n1", cpu=8, gpu=4), node("n2", cpu=8, gpu=4)) == SHARE_SCALE // 4


def test_only_the_needed_members_count_the_oldest_of_each_role_first() -> None:
    made = gang("a").role("driver", 1, cpu=1).role("worker", 1, 3, cpu=2).needing(3)
    assert share(made, node("n1", cpu=10)) == SHARE_SCALE // 2


def test_a_host_port_makes_no_gang_larger() -> None:
    made = gang("a").of(1, cpu=1)
    assert share(made.listening(HostPort(80)), node("n1", cpu=4)) == share(made, node("n1", cpu=4))


def test_a_value_is_positive_even_where_there_is_nothing() -> None:
    assert share(gang("a").of(1)) == 1


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
