"""The cap: how many of a plan's placements one cycle begins."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tutti.model.decisions import Assignment, Placement
from tutti.model.keys import GangKey, NodeName, PodKey, Uid
from tutti.operator.dry_run import capped


def placement(name: str, members: int) -> Placement:
    ones = (PodKey("ml", f"{name}-{i}") for i in range(members))
    made = tuple(Assignment(key, Uid(key.name), "1", NodeName("n1")) for key in ones)
    return Placement(GangKey("ml", name), Uid(name), 1, made)


def all_of(placements: Sequence[Placement]) -> Sequence[Placement]:
    """Nobody needs anybody."""
    return placements


@given(st.lists(st.integers(1, 9), max_size=8), st.integers(1, 12))
def test_what_goes_is_a_whole_number_of_gangs_in_order_and_as_many_as_may(
    sizes: list[int], most: int
) -> None:
    plan = [placement(f"g{i}", n) for i, n in enumerate(sizes)]
    gone = capped(plan, most, all_of)
    bound = sum(sizes[: len(gone)])
    assert list(gone) == plan[: len(gone)]
    assert len(gone) <= 1 or bound <= most
    if len(gone) < len(plan):
        assert gone
        assert bound + sizes[len(gone)] > most


def test_who_needs_others_goes_with_them() -> None:
    plan = [placement("a", 2), placement("b", 2), placement("c", 2)]

    def upheld(placements: Sequence[Placement]) -> Sequence[Placement]:
        return [
            placement
            for placement in placements
            if placement is not plan[0] or plan[1] in placements
        ]

    assert capped(plan, 2, upheld) == plan[:2]


def test_where_nobody_can_go_without_the_last_all_go() -> None:
    plan = [placement("a", 2), placement("b", 2)]
    assert capped(plan, 2, lambda _: ()) == plan
