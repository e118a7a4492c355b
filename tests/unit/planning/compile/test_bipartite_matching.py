"""Who gets which place: as many as can, the first ones before the others."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tutti.planning.compile.bipartite_matching import matched


def test_each_takes_the_first_place_that_fits() -> None:
    assert matched("aab", {"a": "xy", "b": "yz"}, {"x": 1, "y": 1, "z": 9}) == {
        0: "x",
        1: "y",
        2: "z",
    }


def test_whoever_has_a_choice_makes_place_for_one_who_has_none() -> None:
    assert matched("ab", {"a": "xy", "b": "x"}, {"x": 1, "y": 1}) == {0: "y", 1: "x"}
    kinds = {"a": "xy", "b": "yz", "c": "x"}
    assert matched("abc", kinds, {"x": 1, "y": 1, "z": 1}) == {0: "y", 1: "z", 2: "x"}


def test_nobody_who_came_first_loses_a_place() -> None:
    assert matched("abbb", {"a": "x", "b": "xy"}, {"x": 2, "y": 0}) == {0: "x", 1: "x"}


def test_where_nothing_fits_nobody_gets_anything() -> None:
    assert matched("ab", {"a": "", "b": "x"}, {"x": 1}) == {1: "x"}
    assert matched("", {}, {"x": 1}) == {}


KINDS, PLACES = "abc", "wxyz"


@given(
    st.lists(st.sampled_from(KINDS), max_size=6),
    st.fixed_dictionaries({kind: st.lists(st.sampled_from(PLACES), unique=True) for kind in KINDS}),
    st.fixed_dictionaries({place: st.integers(0, 2) for place in PLACES}),
)
def test_no_other_choice_serves_the_first_ones_better(
    asking: Sequence[str], fits: Mapping[str, Sequence[str]], room: Mapping[str, int]
) -> None:
    found = matched(asking, fits, room)
    assert all(place in fits[asking[who]] for who, place in found.items())
    assert all(n <= room[place] for place, n in Counter(found.values()).items())
    ways = product(*([*fits[kind], None] for kind in asking))
    sound = (way for way in ways if all(way.count(place) <= n for place, n in room.items()))
    best = max([place is not None for place in way] for way in sound)
    assert best == [who in found for who in range(len(asking))]
