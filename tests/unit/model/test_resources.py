"""The laws of the only arithmetic there is."""

from hypothesis import given
from hypothesis import strategies as st

from tutti.model.resources import NOTHING, Resources

vectors = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.integers(-9, 9)
).map(Resources.of)


def test_equal_vectors_are_equal_values() -> None:
    assert Resources.of({"b": 1, "a": 2, "c": 0}) == Resources.of({"a": 2, "b": 1})


def test_a_name_that_is_absent_is_zero() -> None:
    assert Resources.of({"cpu": 1})["memory"] == 0
    assert Resources.of({"cpu": 1, "memory": 2})["memory"] == 2


def test_names_are_sorted() -> None:
    assert Resources.of({"b": 1, "a": 2, "c": 0}).names == ("a", "b")


@given(vectors, vectors)
def test_addition_commutes_and_subtraction_undoes_it(one: Resources, other: Resources) -> None:
    assert one + other == other + one
    assert (one + other) - other == one


@given(vectors)
def test_scaling_repeats_addition(one: Resources) -> None:
    assert one.scaled(3) == one + one + one
    assert one.scaled(0) == NOTHING


@given(vectors, vectors)
def test_the_larger_of_two_holds_both(one: Resources, other: Resources) -> None:
    most = one.at_least(other)
    assert one.fits(most)
    assert other.fits(most)


def test_what_is_not_asked_for_may_be_overdrawn() -> None:
    room = Resources.of({"cpu": -1, "memory": 5})
    assert Resources.of({"memory": 5}).fits(room)
    assert not Resources.of({"memory": 6}).fits(room)
    assert not Resources.of({"cpu": 1}).fits(room)
