"""What a gang says that a limit keeps waiting."""

from tutti.gang import finding_text
from tutti.gang.findings import QueueAtLimit
from tutti.model.keys import GangKey
from tutti.model.resources import Resources
from tutti.queues.at_limit import LimitedGangs, WaitingGang
from tutti.queues.limits import QueueLimit

GPU = "nvidia.com/gpu"


def key(name: str) -> GangKey:
    return GangKey("ml", name)


def found(
    wanted: int,
    running: dict[str, int],
    *waiting: WaitingGang,
    credit: int = 0,
    in_use: int = 48,
) -> QueueAtLimit:
    """What gang ``x`` of queue vision says; all are of its queue, but for ``other``."""
    queues = {key(name): "vision" for name in running} | {key("x"): "vision"}
    queues |= {w.key: "nlp" if w.key.name == "other" else "vision" for w in waiting}
    charges = {key(name): Resources.of({GPU: n, "pods": 1}) for name, n in running.items()}
    gangs = frozenset(queues) - {key("elsewhere")}
    limit = QueueLimit("vision", GPU, 48, in_use, gangs)
    limited = LimitedGangs(queues, charges, (*waiting, WaitingGang(key("x"), 0, 9.0)))
    return limited.finding(limit, key("x"), wanted, credit)


def test_the_smallest_gang_that_is_enough_would_have_to_end() -> None:
    finding = found(8, {"a": 9, "b": 8, "c": 7, "elsewhere": 8, "none": 0})
    assert (finding.enough, finding.ending) == (56, ((key("b"), 8),))


def test_no_gang_is_told_that_its_own_end_would_help() -> None:
    """A gang that needs a replacement is charged, too."""
    assert found(8, {"x": 8, "a": 9}).ending == ((key("a"), 9),)
    assert found(8, {"x": 8, "a": 4}).ending == ()


def test_where_no_gang_is_enough_it_takes_the_fewest() -> None:
    assert found(16, {"a": 9, "b": 8, "c": 1}).ending == ((key("a"), 9), (key("b"), 8))
    assert found(18, {"a": 9, "b": 8, "c": 1}).ending == (
        (key("a"), 9),
        (key("b"), 8),
        (key("c"), 1),
    )


def test_more_than_a_sentence_can_name_are_not_named() -> None:
    assert found(16, dict.fromkeys("abcd", 4)).ending == ()
    assert found(16, {}).ending == ()


def test_a_credit_is_not_asked_for_again() -> None:
    finding = found(8, {"a": 2}, credit=6)
    assert (finding.enough, finding.ending) == (50, ((key("a"), 2),))


def test_a_limit_that_is_exceeded_asks_for_more() -> None:
    assert found(1, {"a": 8}, in_use=55).enough == 56


def test_gangs_of_its_queue_with_a_higher_priority_or_more_patience_come_before() -> None:
    waiting = [
        WaitingGang(key("late"), 0, 10.0),
        WaitingGang(key("early"), 0, 8.0),
        WaitingGang(key("high"), 5, 20.0),
        WaitingGang(key("other"), 9, 1.0),
    ]
    assert found(1, {}, *waiting).before == (key("high"), key("early"))
    crowd = [WaitingGang(key(f"g{n}"), 1, float(n)) for n in range(5)]
    finding = found(1, {}, *crowd)
    assert (finding.before, finding.more_before) == ((key("g0"), key("g1"), key("g2")), 2)


def test_a_gang_that_has_no_queue_is_in_no_line() -> None:
    stray = WaitingGang(key("stray"), 9, 0.0)
    limited = LimitedGangs({key("x"): "vision"}, {}, [stray])
    limit = QueueLimit("vision", GPU, 48, 48, frozenset([key("x")]))
    assert limited.finding(limit, key("x"), 1, 0).before == ()


def test_it_says_so_in_one_sentence() -> None:
    crowd = [WaitingGang(key(f"g{n}"), 1, float(n)) for n in range(5)]
    assert finding_text.text(found(8, {"a": 8}, *crowd)) == (
        "queue vision is at its limit: 48 of 48 nvidia.com/gpu are in use, 8 wanted; a limit of 56 "
        "would be enough for it alone, or the end of ml/a (8); before it in its queue: ml/g0, "
        "ml/g1, ml/g2, 2 more"
    )
    assert finding_text.text(found(16, {"a": 9, "b": 8})).endswith(
        "a limit of 64 would be enough, or the end of ml/a (9) and ml/b (8)"
    )


def test_gangs_at_the_same_limit_are_told_the_same_ends() -> None:
    queues = {key(name): "vision" for name in "axy"}
    limited = LimitedGangs(queues, {key("a"): Resources.of({GPU: 8})})
    limit = QueueLimit("vision", GPU, 48, 48, frozenset(queues))
    ends = [limited.finding(limit, key(name), 8, 0).ending for name in "xy"]
    assert ends == [((key("a"), 8),)] * 2
