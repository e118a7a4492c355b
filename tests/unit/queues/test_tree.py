"""Queues as a tree, and what is wrong with them."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.model.queues import ROOT, QueueMode, Stop
from tutti.queues.tree import Fault, Finding, QueueTree, findings
from tutti.verify.queues.chains import QueueChains

from ...harness.builders import snapshot_of
from .builders import amounts, queue

TEAMS = (queue("research", gpu=8), queue("vision", "research", gpu=4), queue("nlp", "research"))


def test_a_queue_with_unreadable_fields_names_them() -> None:
    fields = ("spec.namespaces",)
    made = replace(queue("a"), unreadable=fields)
    assert findings([made], {}) == [Finding("a", Fault.UNREADABLE, fields)]


def test_paths_lead_to_the_root() -> None:
    tree = QueueTree.of(TEAMS)
    assert tree.paths["vision"] == ("vision", "research", ROOT)
    assert [tree.depths[name] for name in ("vision", "research", ROOT)] == [2, 1, 0]
    assert [*tree.from_the_leaves] == ["nlp", "vision", "research", ROOT]
    assert [tree.is_leaf(name) for name in ("vision", "research", ROOT)] == [True, False, True]


def test_a_chain_of_thousands_of_queues_is_a_tree() -> None:
    names = [f"q{number}" for number in range(3000)]
    chain = [queue(name, parent) for name, parent in zip(names, ["", *names], strict=False)]
    tree = QueueTree.of(chain)
    assert tree.height == len(names)
    assert not tree.broken
    first, *rest = chain
    ring = [replace(first, parent=names[-1]), *rest]
    assert QueueTree.of(ring).broken == frozenset(names)


@given(st.lists(st.integers(-1, 7), min_size=1, max_size=7))
def test_queues_that_are_their_own_ancestors_are_broken(parents: list[int]) -> None:
    """The checker finds the same with code of its own."""
    queues = [queue(f"q{i}", f"q{above}" if above >= 0 else "") for i, above in enumerate(parents)]
    expected = set[str]()
    for start, parent in enumerate(parents):
        above = parent
        for _ in parents:
            if 0 <= above < len(parents) and above != start:
                above = parents[above]
        if above == start or parent >= len(parents):
            expected.add(f"q{start}")
    assert QueueTree.of(queues).broken == expected
    assert QueueChains.of(snapshot_of(*queues)).misplaced == expected


def test_leaves_have_one_tier_and_queues_of_several_children_the_next() -> None:
    tree = QueueTree.of([*TEAMS, queue("flat", gpu=1), queue("only", "flat"), queue("one", "nlp")])
    assert {name: tree.tiers[name] for name in ("vision", "one", "nlp", "research", "only")} == {
        "vision": 0,
        "one": 0,
        "nlp": 0,
        "research": 1,
        "only": 0,
    }
    assert (tree.tiers["flat"], tree.tiers[ROOT]) == (0, 2)
    assert tree.covering_tiers == [0, 1]
    assert QueueTree.of([queue("a"), queue("b")]).covering_tiers == []


def test_a_queue_that_names_no_amount_guarantees_what_its_children_do() -> None:
    tree = QueueTree.of([queue("a"), queue("b", "a", gpu=3), queue("c", "a", gpu=2, cpu=1)])
    assert tree.lines == ("cpu", "gpu")
    assert tree.guarantees["a"] == {"cpu": 1, "gpu": 5}
    assert tree.guarantees[ROOT] == {"cpu": 0, "gpu": 0}
    assert QueueTree.of([queue("a", gpu=1), queue("b", "a", gpu=1)]).guarantees["a"] == {"gpu": 1}


def test_a_queue_in_shadow_guarantees_nothing_itself() -> None:
    shadow = replace(queue("a", gpu=9), mode=QueueMode.SHADOW)
    tree = QueueTree.of([shadow, queue("b", "a", gpu=2)])
    assert tree.guarantees["a"] == {"gpu": 2}
    assert QueueTree.of([shadow]).lines == ()


def test_queues_whose_parent_cannot_be_used_hang_from_the_root_and_start_nothing() -> None:
    queues = [queue("a", "b"), queue("b", "a"), queue("c", "a"), queue("d", "gone"), queue("e")]
    tree = QueueTree.of(queues)
    assert tree.broken == {"a", "b", "d"}
    assert tree.paths["c"] == ("c", "a", ROOT)
    assert [tree.stop_of(name, 0.0) for name in "abcde"] == [Stop.HOLD] * 4 + [Stop.NONE]
    assert [*findings(queues, {})] == [
        Finding("a", Fault.CYCLE, ("b",)),
        Finding("b", Fault.CYCLE, ("a",)),
        Finding("d", Fault.UNKNOWN_PARENT, ("gone",)),
    ]


def test_a_queue_may_name_the_root_as_its_parent_but_not_be_it() -> None:
    assert QueueTree.of([queue("a", ROOT)]).broken == frozenset()
    assert [*findings([queue(ROOT, gpu=1)], {})] == [Finding(ROOT, Fault.RESERVED_NAME)]


def test_a_hold_holds_for_all_queues_below() -> None:
    held = [replace(team, stop=Stop.HOLD) if team.name == "research" else team for team in TEAMS]
    assert QueueTree.of(held).stop_of("vision", 0.0) is Stop.HOLD
    assert QueueTree.of(held).stop_of(ROOT, 0.0) is Stop.NONE
    going = [replace(team, is_terminating=True) for team in TEAMS]
    assert QueueTree.of(going).stop_of("nlp", 0.0) is Stop.HOLD


@pytest.mark.parametrize(
    ("since", "created", "expected"),
    [(5.0, 4.0, Stop.NONE), (5.0, 5.0, Stop.DRAIN), (None, 9.0, Stop.NONE)],
)
def test_a_drain_lets_the_gangs_start_that_were_there_before(
    since: float | None, created: float, expected: Stop
) -> None:
    draining = replace(queue("a"), stop=Stop.DRAIN, draining_since=since)
    tree = QueueTree.of([draining, queue("b")])
    assert tree.stop_of("a", created) is expected
    assert tree.stop_of("b", inf) is Stop.NONE


def test_guarantees_beyond_the_parent_and_beyond_the_cluster_are_findings() -> None:
    queues = [queue("a", gpu=4), queue("b", "a", gpu=3), queue("c", "a", gpu=2), queue("d", gpu=2)]
    assert [*findings(queues, {"gpu": 6})] == [
        Finding("a", Fault.CHILDREN_EXCEED_PARENT, ("gpu",), 5, 4)
    ]
    assert [f for f in findings(queues, {"gpu": 5}) if f.fault is Fault.EXCEEDS_CLUSTER] == [
        Finding("a", Fault.EXCEEDS_CLUSTER, ("gpu",), 6, 5),
        Finding("d", Fault.EXCEEDS_CLUSTER, ("gpu",), 6, 5),
    ]
    assert [*findings([queue("a", gpu=1, cpu=0), queue("b", cpu=2, gpu=0)], {"cpu": 2})] == [
        Finding("a", Fault.EXCEEDS_CLUSTER, ("gpu",), 1, 0)
    ]


def test_a_queue_whose_parent_cannot_be_used_is_not_the_fault_of_others() -> None:
    queues = [queue("a", gpu=4), queue("b", "gone", gpu=3)]
    assert [*findings(queues, {"gpu": 4})] == [Finding("b", Fault.UNKNOWN_PARENT, ("gone",))]
    assert [*findings(queues, {"gpu": 3})] == [
        Finding("a", Fault.EXCEEDS_CLUSTER, ("gpu",), 4, 3),
        Finding("b", Fault.UNKNOWN_PARENT, ("gone",)),
    ]


def test_a_queue_in_shadow_has_the_faults_that_it_would_have_and_causes_none() -> None:
    tried = replace(queue("a", gpu=4, limits=amounts(gpu=3)), mode=QueueMode.SHADOW)
    assert [*findings([tried, queue("b", cpu=2)], {"gpu": 3, "cpu": 2})] == [
        Finding("a", Fault.EXCEEDS_CLUSTER, ("gpu",), 4, 3),
        Finding("a", Fault.LIMIT_BELOW_GUARANTEE, ("gpu",), 4, 3),
        Finding("a", Fault.OMITS_RESOURCE, ("cpu",)),
    ]
    parent = replace(queue("p", gpu=1), mode=QueueMode.SHADOW)
    assert [*findings([parent, queue("c", "p", gpu=2)], {"gpu": 9})] == [
        Finding("p", Fault.CHILDREN_EXCEED_PARENT, ("gpu",), 2, 1)
    ]
    child = replace(queue("c", "p", gpu=3), mode=QueueMode.SHADOW)
    assert [*findings([queue("p", gpu=2), child, queue("d", "p")], {"gpu": 9})] == [
        Finding("c", Fault.EXCEEDS_PARENT, ("gpu",), 3, 2)
    ]
    exceeded = Finding("p", Fault.CHILDREN_EXCEED_PARENT, ("gpu",), 3, 2)
    none = replace(child, guaranteed=amounts(gpu=0))
    assert [*findings([queue("p", gpu=2), none, queue("d", "p", gpu=3)], {"gpu": 9})] == [exceeded]
    more = replace(none, name="e")
    assert [f.queue for f in findings([queue("p", gpu=2), child, more], {"gpu": 9})] == ["c"]


def test_a_queue_that_omits_a_line_and_one_whose_limit_is_below_its_guarantee() -> None:
    queues = [queue("a", gpu=4, limits=amounts(gpu=3, cpu=1)), queue("b", cpu=1, gpu=0)]
    assert [*findings(queues, {"gpu": 9, "cpu": 9})] == [
        Finding("a", Fault.LIMIT_BELOW_GUARANTEE, ("gpu",), 4, 3),
        Finding("a", Fault.OMITS_RESOURCE, ("cpu",)),
    ]
