"""Which gangs a guarantee covers."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tutti.model.queues import Queue
from tutti.queues.cover import Cover, QueuedGang, walk, would_be_covered
from tutti.queues.tree import QueueTree

from .builders import key, queue, queued

RESEARCH = QueueTree.of([queue("r", gpu=8), queue("v", "r", gpu=4), queue("n", "r", gpu=2)])


def covered_by(tree: QueueTree, *gangs: QueuedGang) -> dict[str, str]:
    return {gang.name: by for gang, by in walk(tree, gangs).gangs.items()}


def test_the_highest_priority_comes_first_then_the_earliest_start_then_the_name() -> None:
    tree = QueueTree.of([queue("q", gpu=4)])
    old, new = queued("b", "q", started=1, gpu=4), queued("a", "q", started=2, gpu=4)
    assert covered_by(tree, new, old) == {"b": "q"}
    assert covered_by(tree, new, old, queued("c", "q", 5, gpu=4)) == {"c": "q"}
    assert covered_by(tree, queued("a", "q", gpu=4), queued("b", "q", gpu=4)) == {"a": "q"}


def test_a_gang_that_does_not_fit_is_passed_over() -> None:
    tree = QueueTree.of([queue("q", gpu=4, cpu=2)])
    large, small = queued("a", "q", gpu=1, cpu=3), queued("b", "q", gpu=4, cpu=2)
    assert covered_by(tree, large, small) == {"b": "q"}


def test_the_parent_covers_with_what_its_children_leave() -> None:
    gangs = queued("a", "v", gpu=4), queued("b", "v", gpu=4), queued("c", "n", gpu=1)
    assert covered_by(RESEARCH, *gangs) == {"a": "v", "c": "n"}
    assert covered_by(RESEARCH, *gangs[:2]) == {"a": "v", "b": "r"}
    cover = walk(RESEARCH, gangs[:2])
    assert [cover.rank(RESEARCH, key(name)) for name in ("a", "b", "c")] == [2, 1, None]
    assert cover.used["r"]["gpu"] == 4


def test_extras_of_a_protected_gang_come_by_priority_like_others() -> None:
    tree = QueueTree.of([queue("q", gpu=3)])
    protected = replace(queued("a", "q", 1, gpu=1, extras=(1,)), is_protected=True)
    other = queued("b", "q", 2, gpu=1, extras=(1,))
    assert [*walk(tree, [protected, other]).extras] == [(key("b"), "x0")]


def test_extras_come_after_all_minimums_of_their_queue_and_one_by_one() -> None:
    tree = QueueTree.of([queue("q", gpu=4)])
    gangs = queued("a", "q", 9, gpu=1, extras=(1, 3, 1)), queued("b", "q", gpu=1)
    cover = walk(tree, gangs)
    assert {pod for _, pod in cover.extras} == {"x0", "x2"}


def test_extras_of_a_gang_that_borrows_borrow_until_a_queue_covers_the_gang() -> None:
    tree = QueueTree.of([queue("p", gpu=6), queue("q", "p", gpu=4)])
    cover = walk(tree, [queued("a", "q", gpu=5, extras=(1, 1))])
    assert cover == Cover({key("a"): "p"}, {(key("a"), "x0"): "p"}, cover.used)


def test_a_queue_that_guarantees_nothing_covers_nobody() -> None:
    tree = QueueTree.of([queue("q", gpu=1), queue("z")])
    gangs = (queued(name, queue, cpu=9) for name, queue in (("a", "q"), ("b", "z"), ("c", "root")))
    assert covered_by(tree, *gangs) == {"a": "q"}


def test_starts_are_covered_together_or_not() -> None:
    tree = QueueTree.of([queue("q", gpu=2)])
    one, two = queued("a", "q", gpu=1), queued("b", "q", gpu=2)
    assert would_be_covered(tree, [], [one])
    assert would_be_covered(tree, [], [two])
    assert not would_be_covered(tree, [], [one, two])


def test_only_queues_up_to_a_tier_cover_starts() -> None:
    tree = QueueTree.of([queue("p", gpu=6), queue("a", "p", gpu=2), queue("b", "p", gpu=2)])
    own, more = queued("own", "b", gpu=2), [queued(f"x{i}", "a", 9, gpu=1) for i in range(3)]
    assert would_be_covered(tree, [], [own, *more[:2]], 0)
    assert not would_be_covered(tree, [], [own, *more], 0)
    assert would_be_covered(tree, [], [own, *more], 1)
    assert not would_be_covered(tree, [], [queued("z", "root", gpu=0)], 1)


def test_no_start_strips_a_gang_of_its_own_queue_that_comes_before_it() -> None:
    tree = QueueTree.of([queue("p", gpu=6), queue("a", "p", gpu=2), queue("b", "p", gpu=0)])
    large, small = queued("large", "a", 9, started=1, gpu=5), queued("small", "a", 5, gpu=2)
    assert covered_by(tree, large, small) == {"small": "a"}
    assert not would_be_covered(tree, [large], [small])
    other = queued("other", "b", 9, started=1, gpu=5)
    assert would_be_covered(tree, [other], [small])
    equal, higher = queued("equal", "a", 9, gpu=2), queued("higher", "a", 10, gpu=2)
    assert not would_be_covered(tree, [large], [equal])
    assert would_be_covered(tree, [large], [higher])


def test_a_gang_that_borrows_anyway_is_no_reason_against_a_start() -> None:
    tree = QueueTree.of([queue("a", gpu=2)])
    borrower = queued("r", "a", 1, started=1, gpu=3)
    assert would_be_covered(tree, [borrower], [queued("s", "a", gpu=1)])


def test_starts_strip_a_gang_only_if_those_of_its_own_queue_suffice_for_that() -> None:
    tree = QueueTree.of([queue("p", gpu=6), queue("a", "p", gpu=2), queue("b", "p", gpu=2)])
    large, small = queued("large", "a", 2, started=1, gpu=3), queued("x", "a", 2, started=2, gpu=1)
    first, other = queued("first", "a", 1, gpu=1), queued("other", "b", gpu=2)
    assert "large" not in covered_by(tree, large, small, first, other)
    assert would_be_covered(tree, [large, small], [first, other])
    assert not would_be_covered(tree, [large, small, replace(other, started=3)], [first])


AMOUNT = st.integers(0, 4)
GANGS = st.lists(
    st.tuples(st.sampled_from("vnr"), st.integers(0, 2), AMOUNT, st.integers(0, 3)), max_size=7
)


def running(drawn: list[tuple[str, int, int, int]]) -> list[QueuedGang]:
    return [
        queued(f"g{i}", name, priority, started=at, gpu=n)
        for i, (name, priority, n, at) in enumerate(drawn)
    ]


def waiting(drawn: list[tuple[str, int, int, int]]) -> list[QueuedGang]:
    return [
        queued(f"w{i}", name, priority, gpu=n) for i, (name, priority, n, _) in enumerate(drawn)
    ]


@given(GANGS)
def test_no_queue_covers_more_than_it_guarantees(
    drawn: list[tuple[str, int, int, int]],
) -> None:
    gangs = running(drawn)
    cover = walk(RESEARCH, gangs)
    for name in "vnr":
        below = [
            gang.minimum["gpu"]
            for gang in gangs
            if gang.key in cover.gangs and name in RESEARCH.paths[cover.gangs[gang.key]]
        ]
        assert sum(below) <= RESEARCH.guarantees[name]["gpu"]
    assert walk(RESEARCH, gangs[::-1]) == cover


@given(GANGS)
def test_who_borrows_changes_nothing_by_ending(
    drawn: list[tuple[str, int, int, int]],
) -> None:
    gangs = running(drawn)
    cover = walk(RESEARCH, gangs)
    assert walk(RESEARCH, [gang for gang in gangs if gang.key in cover.gangs]) == cover


@given(GANGS, GANGS)
def test_covered_starts_raise_the_number_covered_at_the_first_level_they_change(
    drawn: list[tuple[str, int, int, int]], drawn_starts: list[tuple[str, int, int, int]]
) -> None:
    gangs, starts = running(drawn), waiting(drawn_starts)
    if starts and would_be_covered(RESEARCH, gangs, starts):
        assert potential(RESEARCH, [*gangs, *starts]) > potential(RESEARCH, gangs)


def potential(tree: QueueTree, gangs: list[QueuedGang]) -> list[int]:
    cover = walk(tree, gangs)
    ranks = [(cover.rank(tree, gang.key), gang.priority) for gang in gangs]
    return [ranks.count((depth, priority)) for depth in (2, 1) for priority in (2, 1, 0)]


def test_a_declared_queue_is_a_value() -> None:
    assert isinstance(queue("q"), Queue)
    assert queue("q", gpu=1) == queue("q", gpu=1)


def test_a_protected_start_needs_the_guarantee_of_its_own_queue() -> None:
    tree = QueueTree.of([queue("p", gpu=8), queue("a", "p", gpu=4)])
    start = replace(queued("x", "a", gpu=5), is_protected=True)
    assert would_be_covered(tree, [], [replace(start, is_protected=False)])
    assert not would_be_covered(tree, [], [start])
    assert would_be_covered(tree, [], [queued("x", "a", gpu=4), queued("y", "a", gpu=4)])
    leaf = QueueTree.of([queue("a", gpu=4)])
    lower = queued("low", "a", started=1.0, gpu=4)
    small = replace(queued("x", "a", priority=1, gpu=4), is_protected=True)
    assert would_be_covered(leaf, [lower], [small])
    assert not would_be_covered(leaf, [replace(lower, priority=1)], [small])


def test_no_start_takes_the_cover_of_a_protected_gang_whatever_its_name_or_priority() -> None:
    """Two starts of one plan come in the order of their names."""
    tree = QueueTree.of([queue("p", gpu=8), queue("a", "p", gpu=4)])
    first = replace(queued("z", "a", gpu=4), is_protected=True)
    later = replace(queued("b", "a", priority=9, gpu=4), is_protected=True)
    assert not would_be_covered(tree, [first], [later])
    assert would_be_covered(tree, [first], [replace(later, is_protected=False)])
    borrows = replace(queued("large", "a", started=1.0, gpu=5), is_protected=True)
    assert would_be_covered(tree, [borrows], [later])
