"""Who borrows first."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from tests.harness.counting import calls_of
from tutti.model.queues import ROOT, PastUse
from tutti.model.resources import NOTHING, Resources
from tutti.queues.share import STEPS, Borrower, Shares, decided_in_fact, decided_together, turns
from tutti.queues.tree import QueueTree

from .builders import key, queue

TREE = QueueTree.of(
    [queue("r"), queue("v", "r", gpu=10), replace(queue("n", "r"), weight=2), queue("s")]
)
TOTALS = {"gpu": 100, "cpu": 1000, "fpga": 0}
Amounts = dict[str, int]


def gpus(n: int) -> Resources:
    return Resources.of({"gpu": n})


def borrower(name: str, queue: str, n: int, priority: int = 0, since: float = 0.0) -> Borrower:
    return Borrower(key(name), queue, priority, since, gpus(n))


def order(shares: Shares, *borrowers: Borrower) -> list[tuple[str, tuple[int, ...]]]:
    return [(turn.gang.key.name, turn.steps) for turn in turns(shares, borrowers)]


def test_a_share_is_the_largest_part_over_the_guarantee_by_weight() -> None:
    shares = Shares(TREE, TOTALS, {})
    assert shares.share("v", gpus(10)) == 0
    assert shares.share("v", gpus(30)) == Fraction(1, 5)
    assert shares.share("n", gpus(30)) == Fraction(3, 20)
    assert shares.share("s", Resources.of({"gpu": 1, "cpu": 500, "fpga": 9})) == Fraction(1, 2)
    assert shares.share("s", NOTHING) == 0


@given(
    st.sampled_from(["r", "v", "n", "s"]),
    st.dictionaries(st.sampled_from([*TOTALS, "tpu"]), st.integers(0, 10_000)),
)
def test_a_step_is_the_whole_number_of_steps_in_the_share(name: str, amounts: Amounts) -> None:
    shares = Shares(TREE, TOTALS, {})
    share = shares.share(name, Resources.of(amounts))
    assert shares.step(name, amounts) == int(share * STEPS)


@given(st.sampled_from(["r", "v", "n"]), st.sampled_from(["gpu", "cpu"]), st.integers(0, 99))
def test_one_more_than_the_most_of_a_step_is_the_next_step(
    name: str, resource: str, step: int
) -> None:
    shares = Shares(TREE, TOTALS, {})
    most = shares.most_within(name, step)
    assert most.keys() == {"gpu", "cpu"}
    assert shares.step(name, {resource: most[resource]}) <= step
    assert shares.step(name, {resource: most[resource] + 1}) == step + 1


def test_a_queue_is_charged_for_all_below_it() -> None:
    below = Shares(TREE, TOTALS, {"v": gpus(3), "n": gpus(4), ROOT: gpus(1)}).below()
    assert [below[name]["gpu"] for name in ("v", "r", "s", ROOT)] == [3, 7, 0, 8]


def test_the_queue_that_has_borrowed_less_comes_first() -> None:
    shares = Shares(TREE, TOTALS, {"v": gpus(30), "s": gpus(9)})
    assert order(shares, borrower("a", "v", 1, 9), borrower("b", "s", 1)) == [
        ("b", (1, 1)),
        ("a", (4, 4)),
    ]


def test_steps_are_compared_level_by_level_from_the_top() -> None:
    shares = Shares(TREE, TOTALS, {"v": gpus(40), "s": gpus(20)})
    assert order(shares, borrower("a", "n", 1), borrower("b", "s", 1)) == [
        ("b", (4, 4)),
        ("a", (6, 0)),
    ]


def test_a_parent_without_other_children_changes_nothing() -> None:
    flat = [queue("a"), queue("b"), queue("x"), queue("y", "x")]
    wrapped = [queue("p"), queue("a", "p"), queue("b"), queue("x"), queue("y", "x")]
    gangs = (
        borrower("1", "a", 9),
        borrower("2", "b", 7, 5),
        borrower("3", "a", 1),
        borrower("4", "y", 6),
    )
    orders = (
        order(Shares(QueueTree.of(queues), TOTALS, {"b": gpus(3)}), *gangs)
        for queues in (flat, wrapped)
    )
    first, second = orders
    assert first == second


def test_gangs_that_come_before_count_and_the_gang_itself_does_not() -> None:
    shares = Shares(TREE, TOTALS, {})
    gangs = borrower("a", "s", 50), borrower("b", "s", 1, since=1.0), borrower("c", "n", 1)
    assert order(shares, *gangs) == [("a", (0, 0)), ("c", (0, 0)), ("b", (10, 10))]
    assert order(shares, *gangs[1:]) == [("c", (0, 0)), ("b", (0, 0))]


def test_two_queues_with_gangs_for_the_whole_cluster_take_turns() -> None:
    gangs = [borrower(f"{q}{i:02}", q, 5) for q in ("s", ROOT) for i in range(20)]
    found = order(Shares(TREE, TOTALS, {}), *gangs)
    first_half = [name[0] for name, _ in found[:20]]
    assert first_half.count("s") == first_half.count("r") == 10


def test_a_gang_that_is_left_out_delays_nobody() -> None:
    shares = Shares(TREE, TOTALS, {})
    head, behind = borrower("a", "s", 50, 9), borrower("b", "s", 1)
    assert order(shares, head, behind)[1] == ("b", (10, 10))
    assert order(shares, behind) == [("b", (0, 0))]


def test_no_gang_comes_before_a_higher_priority_of_its_queue() -> None:
    shares = Shares(TREE, TOTALS, {})
    assert [
        name for name, _ in order(shares, borrower("a", "s", 1), borrower("b", "s", 90, 1))
    ] == [
        "b",
        "a",
    ]


def test_each_amount_over_the_guarantee_counts() -> None:
    shares = Shares(TREE, {"gpu": 10}, {})
    gangs = borrower("a", "s", 1), borrower("b", "s", 1, since=1.0)
    assert order(shares, *gangs) == [("a", (0, 0)), ("b", (2, 2))]


def test_gangs_without_a_queue_are_one_more_child_of_the_root() -> None:
    shares = Shares(TREE, TOTALS, {ROOT: gpus(5), "s": gpus(50)})
    gangs = borrower("a", ROOT, 5), borrower("b", ROOT, 5, since=1.0)
    assert order(shares, *gangs) == [("a", (1, 1)), ("b", (2, 2))]


@given(
    st.lists(
        st.tuples(st.sampled_from(["v", "n", "s", ROOT]), st.integers(0, 40), st.integers(0, 3)),
        max_size=8,
    )
)
def test_within_a_queue_the_order_is_by_priority_and_age(
    given_gangs: list[tuple[str, int, int]],
) -> None:
    gangs = [borrower(f"g{i}", q, n, p, float(i)) for i, (q, n, p) in enumerate(given_gangs)]
    found = [turn.gang for turn in turns(Shares(TREE, TOTALS, {}), gangs)]
    assert sorted(found, key=lambda gang: gang.key) == sorted(gangs, key=lambda gang: gang.key)
    for name in ("v", "n", "s", ROOT):
        own = [gang for gang in found if gang.queue == name]
        assert own == sorted(own, key=lambda gang: (-gang.priority, gang.waiting_since))


def with_past(tree: QueueTree, **means: int) -> QueueTree:
    """The queues with past use in percent, of which half has decayed at 60 seconds."""
    return QueueTree.of(
        replace(
            queue,
            past_use=PastUse(means[name] * 20_000, 0, 0.0, 60.0) if name in means else None,
        )
        for name, queue in tree.queues.items()
        if name != ROOT
    )


def test_past_use_is_a_mean_that_decays_to_the_share_of_now() -> None:
    past = PastUse(mean=800_000, share=200_000, since=100.0, half_life=60.0)
    means = [past.mean_at(now) for now in (0.0, 100.0, 160.0, 220.0, 1e12)]
    assert means == [800_000, 800_000, 500_000, 350_000, 200_000]


def test_past_use_breaks_ties_of_steps_and_priority_alone() -> None:
    shares = Shares(with_past(TREE, s=50), TOTALS, {"v": gpus(20)}, 60.0)
    old, new = borrower("o", "s", 1), borrower("n", "n", 1, since=9.0)
    assert [name for name, _ in order(shares, old, new)] == ["o", "n"], "the share of r is larger"
    shares = replace(shares, charges={})
    assert [name for name, _ in order(shares, old, new)] == ["n", "o"]
    assert names(decided_together(turns(shares, [old, new]))) == ["n", "o"]
    assert names(decided_together(turns(replace(shares, taken_at=900.0), [old, new]))) == ["on"]
    high = replace(old, priority=1)
    assert [name for name, _ in order(shares, high, new)] == ["o", "n"]
    assert names(decided_together(turns(Shares(TREE, TOTALS, {}), [old, new]))) == ["on"]


def test_past_use_is_compared_from_the_top_and_gangs_of_the_root_come_last() -> None:
    shares = Shares(with_past(TREE, r=10, n=90, s=12, v=4), TOTALS, {}, 60.0)
    assert shares.past(["v", "n", "s", "r", ROOT]) == {
        "v": (2, 0),
        "n": (2, 18),
        "s": (2, 2),
        "r": (2, 2),
        ROOT: (inf, inf),
    }
    assert Shares(TREE, TOTALS, {}).past(["v", ROOT]) == {"v": (), ROOT: ()}
    gangs = [borrower(q, q, 1, since=float(i)) for i, q in enumerate((ROOT, "n", "s", "v"))]
    assert [name for name, _ in order(shares, *gangs)] == ["v", "s", "n", ROOT]


def names(levels: Iterable[Sequence[Borrower]]) -> list[str]:
    return ["".join(gang.key.name for gang in level) for level in levels]


def test_turns_of_one_queue_and_priority_that_follow_each_other_are_decided_together() -> None:
    shares = Shares(TREE, TOTALS, {"s": gpus(12)})
    own = [borrower("a", "v", 16), borrower("b", "v", 9), borrower("c", "v", 1)]
    assert names(decided_together(turns(shares, own))) == ["abc"]
    other = borrower("d", "s", 1)
    assert names(decided_together(turns(shares, [*own, other]))) == ["ab", "d", "c"]
    low = borrower("e", "v", 1, priority=-1)
    assert names(decided_together(turns(shares, [*own, low]))) == ["abc", "e"]


def test_who_does_not_start_no_longer_counts_once_decided_on_or_once_too_large() -> None:
    shares = Shares(TREE, TOTALS, {"s": gpus(12)})
    a, b, c = borrower("a", "v", 40), borrower("b", "v", 1, priority=-1), borrower("d", "s", 1)
    assert names(decided_together(turns(shares, [a, b, c]))) == ["a", "d", "b"]

    def nobody(*_: object) -> set[Borrower]:
        return set()

    assert names(decided_in_fact(shares, [a, b, c], {a, b, c}, nobody)) == ["a", "d", "b"]
    assert names(decided_in_fact(shares, [a, b, c], {b, c}, nobody)) == ["a", "b", "d"]

    def too_large(started: Collection[Borrower], others: Collection[Borrower]) -> set[Borrower]:
        return {*others} if started else set()

    assert names(decided_in_fact(shares, [a, b, c], {a}, too_large)) == ["a"]


def test_thousands_of_gangs_are_not_compared_with_each_other() -> None:
    shares = Shares(TREE, TOTALS, {})
    alone = borrower("z", "s", 1, priority=-1)

    def everybody(_: object, others: Collection[Borrower]) -> list[Borrower]:
        return [*others]

    def work(n: int) -> int:
        crowd = [borrower(f"g{i}", "s", 1) for i in range(n)]

        def decide() -> None:
            levels = decided_in_fact(shares, [*crowd, alone], {alone}, lambda *_: [])
            assert [len(level) for level in levels] == [n, 1]
            assert len(decided_in_fact(shares, [*crowd, alone], {crowd[0]}, everybody)) == 1

        return calls_of(decide)

    assert work(5000) <= 11 * work(500)
