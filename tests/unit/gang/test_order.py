"""Who is considered first."""

from tutti.gang.order import by_age, considered

from ...harness.builders import gang


def names(*gangs: object) -> list[str]:
    return [each.key.name for each in considered(gangs)]  # type: ignore[arg-type]


def test_a_higher_priority_comes_first() -> None:
    low, high = gang("a").of(1), gang("b").of(1).priority(1)
    assert names(low.made, high.made) == ["b", "a"]


def test_among_equal_priorities_the_oldest_comes_first() -> None:
    young, old = gang("a").but(created=2.0), gang("b").but(created=1.0)
    assert names(young.made, old.made) == ["b", "a"]


def test_names_decide_at_last() -> None:
    assert names(gang("b").made, gang("a").made) == ["a", "b"]


def test_members_are_ordered_by_age_then_name() -> None:
    made = gang("a").of(2).last(1, created=-1.0).made
    assert [each.key.name for each in by_age(made.members)] == ["a-1", "a-0"]
    same = gang("a").of(2).each(created=0.0).made
    assert [each.key.name for each in by_age(reversed(same.members))] == ["a-0", "a-1"]
