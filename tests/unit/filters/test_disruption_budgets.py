"""Which evictions PodDisruptionBudgets allow together."""

from dataclasses import replace

from tutti.filters.disruption_budgets import DisruptionBudgets

from ...harness.builders import budget, gang, labels

OLD = gang("old").of(4, gpu=1).each(labels=labels(app="old")).made.members
OTHER = gang("other", namespace="else").of(1, gpu=1).each(labels=labels(app="old")).made.members


def test_a_budget_allows_so_many_evictions_in_all() -> None:
    for allowed, is_short in ((3, True), (4, False)):
        keep = budget("keep", allowed, app="old")
        shortage = DisruptionBudgets.of([keep]).shortage(OLD)
        assert shortage == (((keep,), 4) if is_short else None)


def test_evictions_before_count_once() -> None:
    budgets = DisruptionBudgets.of([budget("keep", 3, app="old")])
    assert budgets.shortage(OLD[:2], budgets.by_budget(OLD[1:3])) is None
    shortage = budgets.shortage(OLD[:2], budgets.by_budget(OLD[2:]))
    assert shortage is not None
    assert shortage.pods == 4


def test_a_pod_of_several_budgets_is_never_evicted() -> None:
    first, second = budget("a", 9, app="old"), budget("b", 9)
    shortage = DisruptionBudgets.of([first, second]).shortage(OLD[:1])
    assert shortage is not None
    assert shortage.budgets == (first, second)


def test_a_budget_is_of_its_namespace_and_of_its_labels() -> None:
    none = replace(budget("none", 0), selector=None)
    budgets = DisruptionBudgets.of([budget("keep", 0, app="old"), budget("x", 0, app="x"), none])
    assert budgets.shortage(OTHER) is None
    assert [b.name for b in budgets.of_pod(OLD[0])] == ["keep"]
    assert DisruptionBudgets.of([]).shortage(OLD) is None


def test_of_several_short_budgets_the_first_by_name_is_named() -> None:
    pods = (OLD[0], replace(OLD[1], labels=labels(app="y")))
    budgets = DisruptionBudgets.of([budget("b", 0, app="old"), budget("a", 0, app="y")])
    shortage = budgets.shortage(pods)
    assert shortage is not None
    assert [str(b) for b in shortage.budgets] == ["ml/a"]
