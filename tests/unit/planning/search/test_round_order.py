"""What is decided together, and where members beyond those needed come in."""

from collections.abc import Sequence

import numpy as np

from tutti.gang import demand, order
from tutti.gang.demand import MemberCounts, PlacementRequest
from tutti.planning.compile import grids
from tutti.planning.search.round_order import Round, once_held, rounds
from tutti.planning.search.starvation import StarvedGang

from ....harness.builders import GangBuilder, gang, snapshot_of

Said = Sequence[tuple[list[str], list[str]]]


def looked_at(*gangs: GangBuilder) -> tuple[Sequence[MemberCounts], Sequence[PlacementRequest]]:
    found = [demand.count_members(one) for one in order.considered(gang.made for gang in gangs)]
    return found, [want for census in found if (want := demand.start_request(census)) is not None]


def said(rounds: Sequence[Round]) -> Said:
    """Of each round, who starts and who may grow."""
    return [
        ([w.gang.key.name for w in step.wants], [c.gang.key.name for c in step.growing])
        for step in rounds
    ]


def steps(*gangs: GangBuilder) -> Said:
    return said(rounds(*looked_at(*gangs)))


def parted(*gangs: GangBuilder, starved: str) -> Sequence[Round]:
    """The rounds where the gangs of these names, by priority from the top, have starved."""
    found, wants = looked_at(*gangs)
    base, nothing = grids.grid(snapshot_of(), ()), np.zeros((0, 1), dtype=np.int64)
    named = [want for name in starved for want in wants if want.gang.key.name == name]
    return rounds(found, wants, [StarvedGang(want, base, nothing, ()) for want in named])


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


QUEUED = (
    gang("a").of(1).priority(5),
    gang("b").of(2).needing(1).priority(5),
    gang("c").of(1).priority(3),
    gang("d").of(1).priority(3),
    gang("e").of(1),
    gang("f").of(1),
)


def test_every_gang_that_goes_first_ends_a_round() -> None:
    rounds = parted(*QUEUED, starved="adf")
    assert said(rounds) == [
        (["a"], []),
        (["b"], ["b"]),
        (["d"], []),
        (["c", "f"], []),
        (["e"], []),
    ]
    firsts = [step.starved.want.gang.key.name for step in rounds if step.starved is not None]
    assert firsts == ["a", "d", "f"]
    ahead = [want.gang.key.name for step in rounds for want in step.wants if want.is_starved]
    assert ahead == ["a", "d", "f"]


def test_once_room_is_held_only_members_beyond_those_needed_part_what_is_left() -> None:
    rounds = parted(*QUEUED, starved="adf")
    left = once_held(rounds[1:])
    assert said(left) == [(["b"], ["b"]), (["d", "c", "f", "e"], [])]
    assert [step.starved for step in left] == [None, None]
    assert said(once_held(left[:1])) == [(["b"], ["b"])]
    assert once_held([]) == []
