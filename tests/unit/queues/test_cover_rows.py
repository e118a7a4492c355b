"""The rows that any set of covered starts keeps, and the starts that are in none."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tutti.model.queues import ROOT
from tutti.queues.cover import QueuedGang, would_be_covered
from tutti.queues.cover_rows import CoverRow, cover_rows
from tutti.queues.tree import QueueTree

from .builders import key, queue, queued

TREE = QueueTree.of([queue("p", gpu=8), queue("a", "p", gpu=4), queue("b", "p"), queue("c")])


def names(running: Sequence[QueuedGang], *starts: QueuedGang) -> list[str]:
    return [start.key.name for start in cover_rows(TREE, running, starts).starts]


def test_a_start_beyond_every_guarantee_above_it_is_in_no_covered_set() -> None:
    assert names([], queued("x", "a", gpu=8), queued("y", "a", gpu=9)) == ["x"]
    assert names([], queued("x", "c", gpu=1), queued("y", ROOT, gpu=1)) == []


def test_a_start_is_ruled_out_by_gangs_that_come_before_and_request_no_more() -> None:
    full = [queued(f"r{i}", "a", started=float(i), gpu=1) for i in range(8)]
    assert names(full, queued("x", "a", gpu=1)) == []
    assert names(full, queued("x", "a", priority=1, gpu=1)) == ["x"]
    assert names(full[:7], queued("x", "a", gpu=1), queued("y", "a", gpu=2)) == ["x"]


def test_what_stays_covered_takes_from_the_rows() -> None:
    running = [queued("r", "a", started=1.0, gpu=3)]
    found = cover_rows(TREE, running, [queued("x", "a", gpu=1), queued("y", "b", gpu=5)])
    assert found.rows == (CoverRow("p", "gpu", 5, frozenset({key("x"), key("y")})),)
    found = cover_rows(TREE, running, [queued("x", "a", gpu=1), queued("y", "b", gpu=6)])
    assert [start.key.name for start in found.starts] == ["x"]


def test_only_queues_up_to_the_tier_cover_a_start() -> None:
    starts = queued("x", "a", gpu=4), queued("y", "a", gpu=5), queued("z", "b", gpu=1)
    found = cover_rows(TREE, [], starts, tier=0)
    assert found.rows == (CoverRow("a", "gpu", 4, frozenset({key("x")})),)
    assert found.starts == starts[:1]
    assert cover_rows(TREE, [], starts, tier=1).starts == starts


def test_gangs_that_must_be_covered_with_the_starts_take_from_the_rows() -> None:
    """Those of the same priority may come after the starts in the walk, by their names."""
    began = [queued("r", "a", gpu=3), queued("s", "b", gpu=4)]
    starts = queued("x", "a", gpu=1), queued("y", "b", gpu=2)
    found = cover_rows(TREE, began, starts, 1, {key("r"), key("s")})
    assert found.starts == starts[:1]
    assert found.rows == (CoverRow("p", "gpu", 1, frozenset({key("x")})),)
    assert cover_rows(TREE, began, starts).starts == starts


def test_a_fault_lets_children_cover_more_than_their_parent_guarantees() -> None:
    tree = QueueTree.of([queue("p", gpu=2), queue("a", "p", gpu=4)])
    found = cover_rows(tree, [], [queued("x", "a", gpu=4)])
    assert {(row.queue, row.room) for row in found.rows} == {("a", 4), ("p", 4)}


def test_a_protected_start_is_covered_by_its_own_queue_or_in_no_set() -> None:
    """Only protected gangs of its queue come before it."""
    start = replace(queued("x", "a", gpu=2), is_protected=True)
    assert names([], start) == ["x"]
    assert names([], replace(start, queue="b")) == []  # its parent alone guarantees that much
    above = queued("r", "a", priority=9, started=1.0, gpu=2)
    assert names([above, replace(above, key=key("s"))], start) == ["x"]
    first, second = (replace(above, key=key(n), is_protected=True) for n in "rs")
    assert names([first], start) == ["x"]
    assert names([first, second], start) == []
    stays = cover_rows(TREE, [first, above], [start]).rows
    assert CoverRow("a", "gpu", 2, frozenset({start.key})) in stays


SIZES = st.integers(0, 5)
GANGS = st.tuples(st.sampled_from("abc"), st.integers(0, 1), SIZES, SIZES, st.booleans())
SOME = st.lists(GANGS, max_size=4)


@given(SOME, SOME, SOME, st.lists(st.integers(0, 8), min_size=8, max_size=8), st.integers(0, 1))
def test_no_covered_set_breaks_a_row(
    running: list[tuple[str, int, int, int, bool]],
    begun: list[tuple[str, int, int, int, bool]],
    starts: list[tuple[str, int, int, int, bool]],
    guaranteed: list[int],
    tier: int,
) -> None:
    p, a, b, c = zip(guaranteed[::2], guaranteed[1::2], strict=True)
    tree = QueueTree.of(
        queue(name, parent, gpu=pair[0], cpu=pair[1])
        for name, parent, pair in (("p", "", p), ("a", "p", a), ("b", "p", b), ("c", "", c))
    )
    there = [
        replace(
            queued(f"r{i}", own, priority, started=float(i), gpu=gpu, cpu=cpu),
            is_protected=is_protected,
        )
        for i, (own, priority, gpu, cpu, is_protected) in enumerate(running)
    ]
    together = [
        replace(
            queued(f"{'az'[i % 2]}{i}", own, priority, gpu=gpu, cpu=cpu), is_protected=is_protected
        )
        for i, (own, priority, gpu, cpu, is_protected) in enumerate(begun)
    ]
    waiting = [
        replace(queued(f"w{i}", own, priority, gpu=gpu, cpu=cpu), is_protected=is_protected)
        for i, (own, priority, gpu, cpu, is_protected) in enumerate(starts)
    ]
    found = cover_rows(tree, [*there, *together], waiting, tier, {gang.key for gang in together})
    for chosen in range(1, 1 << len(waiting)):
        some = [start for i, start in enumerate(waiting) if chosen >> i & 1]
        if would_be_covered(tree, there, [*together, *some], tier):
            assert {start.key for start in some} <= {start.key for start in found.starts}
            for row in found.rows:
                used = sum(start.minimum[row.line] for start in some if start.key in row.gangs)
                assert used <= row.room
