"""What is decided together, and where members beyond those needed come in."""

from collections.abc import Sequence

from tutti.planning import demand, order
from tutti.planning.rounds import rounds

from ...builders import GangBuilder, gang


def steps(*gangs: GangBuilder) -> Sequence[tuple[list[str], list[str]]]:
    """Of each round, who starts and who may grow."""
    found = [demand.census(one) for one in order.considered(each.made for each in gangs)]
    wants = [want for census in found if (want := demand.whole(census)) is not None]
    return [
        ([w.gang.key.name for w in step.wants], [c.gang.key.name for c in step.growing])
        for step in rounds(found, wants)
    ]


def test_whole_gangs_of_all_priorities_are_one_decision() -> None:
    made = steps(gang("a").of(1), gang("b").of(2).priority(5), gang("c").of(1).priority(5))
    assert made == [(["b", "c", "a"], [])]


def test_members_beyond_those_needed_come_before_lower_priorities() -> None:
    made = steps(
        gang("a").of(1),
        gang("b").of(2).needing(1).priority(5),
        gang("c").of(1).priority(5),
        gang("d").of(1).priority(7),
    )
    assert made == [(["d", "b", "c"], ["b"]), (["a"], [])]


def test_a_started_gang_that_may_grow_parts_the_decision_too() -> None:
    grown = gang("b").of(2).needing(1).bound_on("n1").priority(5)
    assert steps(gang("a").of(1), grown) == [([], ["b"]), (["a"], [])]


def test_where_nobody_waits_there_is_no_round() -> None:
    assert steps(gang("a").of(1).bound_on("n1")) == []
