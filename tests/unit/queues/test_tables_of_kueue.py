"""Facts of Kueue's public tables beside our answers: what queues have borrowed, who is admitted.

Transcribed from pkg/cache/scheduler/fair_sharing_test.go and pkg/scheduler/scheduler_fs_test.go of
Kueue ff69552e. A cohort is a queue that guarantees its own quota and that of its members together;
a flavor is a resource of its own where pods cannot choose. Each other answer of ours has its class.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import ceil, inf
from types import MappingProxyType
from typing import NamedTuple

import pytest

from tutti.model.cluster import Node
from tutti.model.decisions import Policy
from tutti.model.keys import NodeName, Uid
from tutti.model.queues import Queue, QueueRecord, RoleAtStart
from tutti.model.resources import Resources
from tutti.model.shapes import Shape
from tutti.planning.plan import plan
from tutti.queues.share import Shares
from tutti.queues.tree import QueueTree
from tutti.strategies import STRATEGIES
from tutti.strategies.problem import Budget

from ...harness.builders import (
    GangBuilder,
    NodeBuilder,
    Part,
    gang,
    reservation,
    snapshot,
    space,
)

Amounts = dict[str, int]

# Why our answer is another, in a sentence each.
FLAVORS = "a quota of ours counts a resource on all nodes: kinds of nodes are no lines of their own"
WEIGHTS = "weights of ours are whole numbers from 1, and a share has no scale that it could lose"
LIMITS = "a limit of ours stops starts and does not make a share larger: shares compare queues"


class Case(NamedTuple):
    """Queues by parent, weight and guarantee; totals; use of each; what Kueue says, in thousandths.

    ``unlike`` has our answers where they are others, and why.
    """

    name: str
    queues: dict[str, tuple[str, int, Amounts]]
    totals: Amounts
    use: dict[str, Amounts]
    kueue: dict[str, float]
    unlike: Mapping[str, int] = MappingProxyType({})
    why: str = ""


def two(
    own: Amounts, lends: Amounts, weight: int = 1, other: int = 1
) -> dict[str, tuple[str, int, Amounts]]:
    return {
        "cohort": ("", 1, {}),
        "cq": ("cohort", weight, own),
        "lending": ("cohort", other, lends),
    }


def nested(root: int, own: int) -> dict[str, tuple[str, int, Amounts]]:
    return {
        "root-cohort": ("", 1, {"gpu": root}),
        "child": ("root-cohort", 2, {}),
        "cq": ("child", 1, {"gpu": own}),
    }


def says(cq: float, **more: float) -> dict[str, float]:
    return {"cq": cq, "lending": 0, "cohort": 0, **more}


SMALL = two({"cpu": 2, "gpu": 5}, {"cpu": 8, "gpu": 5})
TEN = {"cpu": 10, "gpu": 10}
CASES = [
    Case(
        "no cohort",
        {"cq": ("", 1, {"cpu": 2000, "gpu": 5})},
        {"cpu": 2000, "gpu": 5},
        {"cq": {"cpu": 1, "gpu": 2}},
        {"cq": 0},
    ),
    Case("usage below nominal", SMALL, TEN, {"cq": {"cpu": 1, "gpu": 2}}, says(0)),
    Case("usage above nominal", SMALL, TEN, {"cq": {"cpu": 3, "gpu": 7}}, says(200)),
    Case(
        "slightly above nominal, large quotas",
        two({"gpu": 500}, {"gpu": 1000}, other=300),
        {"gpu": 1500},
        {"cq": {"gpu": 501}},
        says(1),
    ),
    Case(
        "way above nominal, large quotas and weights",
        two({"gpu": 500}, {"gpu": 1000}, 300, 300),
        {"gpu": 1500},
        {"cq": {"gpu": 800}},
        says(1),
    ),
    Case("one resource above nominal", SMALL, TEN, {"cq": {"cpu": 3, "gpu": 3}}, says(100)),
    Case("with a workload above nominal", SMALL, TEN, {"cq": {"cpu": 5, "gpu": 6}}, says(300)),
    Case(
        "a resource with zero lendable",
        two({"cpu": 2, "gpu": 2}, {"cpu": 8, "gpu": 64}),
        {"cpu": 10, "gpu": 66},
        {"cq": {"cpu": 5, "gpu": 5}},
        says(300),
    ),
    Case(
        "multiple flavors",
        two({"cpu": 100}, {"cpu": 100}),
        {"cpu": 200},
        {"cq": {"cpu": 30}},
        says(25),
        {"cq": 0},
        FLAVORS,
    ),
    Case("integer weight", two({"gpu": 5}, {"gpu": 5}, 2), TEN, {"cq": {"gpu": 7}}, says(100)),
    Case(
        "decimal weight",
        two({"gpu": 5}, {"gpu": 5}, 1, 2),
        TEN,
        {"cq": {"gpu": 7}},
        says(400),
        {"cq": 200},
        WEIGHTS,
    ),
    Case(
        "zero weight",
        two({"gpu": 5}, {"gpu": 10}),
        {"gpu": 15},
        {"cq": {"gpu": 7}},
        says(inf),
        {"cq": 134},
        WEIGHTS,
    ),
    Case(
        "cohort has resource share",
        nested(50, 5),
        {"gpu": 50},
        {"cq": {"gpu": 10}},
        {"cq": 100, "child": 50, "root-cohort": 0},
    ),
    Case(
        "resources only at the root cohort",
        nested(50, 0),
        {"gpu": 50},
        {"cq": {"gpu": 10}},
        {"cq": 200, "child": 100, "root-cohort": 0},
    ),
    Case(
        "affected by borrowing limit",
        {**nested(50, 0), "child": ("root-cohort", 1, {"gpu": 0})},
        {"gpu": 50},
        {"cq": {"gpu": 10}},
        {"cq": 1000, "child": 200, "root-cohort": 0},
        {"cq": 200},
        LIMITS,
    ),
    Case(
        "unlimited lendable capacity",
        two({"cpu": 0}, {"cpu": 10**18}),
        {"cpu": 10**18},
        {"cq": {"cpu": 1}},
        says(1),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_shares_are_those_of_kueue_or_differ_for_a_reason(case: Case) -> None:
    queues = [
        Queue(name, Uid(name), parent, tuple(sorted(guarantee.items())), weight=weight)
        for name, (parent, weight, guarantee) in case.queues.items()
    ]
    tree = QueueTree.of(queues)
    charges = {name: Resources.of(use) for name, use in case.use.items()}
    shares = Shares(tree, case.totals, charges)
    below = shares.below()
    ours = {name: ceil(shares.share(name, below[name]) * 1000) for name in case.kueue}
    assert ours == {**case.kueue, **case.unlike}
    assert bool(case.unlike) == bool(case.why)


class Admission(NamedTuple):
    """Queues by parent, guarantee, limit and weight; gangs by queue, size and priority.

    Gangs stand in the order in which they came. A quota of a cohort that has no parent is room for
    all, and no guarantee. ``kueue`` are those that Kueue admits. ``unlike`` are the sets of which
    we start one, and why.
    """

    name: str
    queues: Mapping[str, tuple[str, Amounts] | tuple[str, Amounts, Amounts, int]]
    totals: Amounts
    runs: dict[str, tuple[str, Amounts]]
    waits: Mapping[str, tuple[str, Amounts] | tuple[str, Amounts, int]]
    kueue: set[str]
    unlike: tuple[set[str], ...] = ()
    why: str = ""


AFTER = "a turn of ours is taken before the gang counts: its own size does not delay it"
STEPS = "shares of ours that differ by less than 5 % are equal, so that priority counts"
LENDING = "a guarantee of ours that is not used is lent; what others may not have is their limit"
OWN = "a guarantee of ours is its queue's own: what a sibling borrows takes nothing of it"
SUBTREE = {"a0": ("", {"cpu": 10}), "b0": ("", {}), "b": ("b0", {"cpu": 5}), "c": ("b0", {})}
BORROWED = {"c0": ("c", {"cpu": 10})}
EQUAL = {"wl-a": ("a", {"cpu": 5}), "wl-b": ("b", {"cpu": 5})}
ADMISSIONS = [
    Admission(
        "lowest share first",
        {
            "eng": ("", {"cpu": 110}),
            "alpha": ("eng", {"cpu": 50}),
            "beta": ("eng", {"cpu": 50}),
        },
        {"cpu": 110},
        {"all_nominal": ("alpha", {"cpu": 50}), "borrowing": ("beta", {"cpu": 55})},
        {"older_new": ("beta", {"cpu": 1}), "new": ("alpha", {"cpu": 5})},
        {"new"},
    ),
    Admission(
        "nominal first",
        {"a": ("", {"on-demand": 50, "spot": 50}), "b": ("", {"on-demand": 10, "spot": 50})},
        {"on-demand": 60, "spot": 100},
        {"spot-heavy": ("a", {"spot": 80}), "light-usage": ("b", {"on-demand": 5})},
        {"borrow-wl": ("b", {"on-demand": 15}), "nom-wl": ("a", {"on-demand": 45})},
        {"nom-wl"},
    ),
    Admission(
        "a subtree that does not borrow",
        {**SUBTREE, "a": ("a0", {})},
        {"cpu": 15},
        BORROWED,
        EQUAL,
        {"wl-a"},
        ({"wl-a"}, {"wl-b"}),
        OWN,
    ),
    Admission(
        "a subtree that does not borrow, deeper",
        {
            "top": ("", {"cpu": 10}),
            "a0": ("top", {"cpu": 10}),
            "a": ("a0", {}),
            **{name: SUBTREE[name] for name in ("b0", "b", "c")},
        },
        {"cpu": 15},
        BORROWED,
        EQUAL,
        {"wl-a"},
        ({"wl-a"}, {"wl-b"}),
        OWN,
    ),
    Admission(
        "quotas of queues and of cohorts",
        {
            "a0": ("", {"cpu": 18}),
            "a1": ("a0", {"cpu": 5}),
            "a2": ("a0", {"cpu": 3}),
            "b0": ("", {"cpu": 18}),
            "b": ("b0", {"cpu": 5}),
            "c": ("b0", {"cpu": 3}),
        },
        {"cpu": 36},
        {"a2-admitted": ("a2", {"cpu": 6}), "c-admitted": ("c", {"cpu": 20})},
        {"wl-a1": ("a1", {"cpu": 7}), "wl-b": ("b", {"cpu": 4})},
        {"wl-a1"},
    ),
    Admission(
        "wins the tournament",
        {
            "B": ("", {}),
            "C": ("", {}),
            "d": ("B", {}),
            "e": ("B", {}),
            "f": ("C", {}),
            "g": ("C", {}),
        },
        {"cpu": 200},
        {"d0": ("d", {"cpu": 10}), "e0": ("e", {"cpu": 20}), "g0": ("g", {"cpu": 100})},
        {
            "d1": ("d", {"cpu": 70}),
            "e1": ("e", {"cpu": 61}),
            "f1": ("f", {"cpu": 1}),
            "g1": ("g", {"cpu": 1}),
        },
        {"d1"},
    ),
    Admission(
        "lowest share after admission",
        {"b": ("", {}), "c": ("", {})},
        {"cpu": 100},
        {"b0": ("b", {"cpu": 10})},
        {"b1": ("b", {"cpu": 50}), "c1": ("c", {"cpu": 75})},
        {"b1"},
        ({"c1"},),
        AFTER,
    ),
    Admission(
        "two queues of the least weight, the one that borrows less",
        {"b": ("", {}), "c": ("", {})},
        {"cpu": 8},
        {"b0": ("b", {"cpu": 4})},
        {"b1": ("b", {"cpu": 4}, 9001), "c1": ("c", {"cpu": 4})},
        {"c1"},
    ),
    Admission(
        "two queues of high weight, the one that borrows less",
        {"b": ("", {}, {}, 10_000), "c": ("", {}, {}, 10_000)},
        {"cpu": 8},
        {"b0": ("b", {"cpu": 4})},
        {"b1": ("b", {"cpu": 4}, 9001), "c1": ("c", {"cpu": 4})},
        {"c1"},
        ({"b1"},),
        STEPS,
    ),
    Admission(
        "queues without siblings and without a cohort",
        {"a": ("", {}), "B": ("", {"cpu": 10}), "b": ("B", {"cpu": 10}), "c": ("", {"cpu": 10})},
        {"cpu": 30},
        {},
        {"a1": ("a", {"cpu": 10}), "b1": ("b", {"cpu": 10}), "c1": ("c", {"cpu": 10})},
        {"a1", "b1", "c1"},
    ),
    Admission(
        "highest priority first",
        {"b": ("", {}), "c": ("", {})},
        {"cpu": 10},
        {},
        {"b1": ("b", {"cpu": 10}, 99), "c1": ("c", {"cpu": 10}, 101)},
        {"c1"},
    ),
    Admission(
        "a queue that is full",
        {"sales": ("", {"cpu": 50}, {"cpu": 50}, 1)},
        {"cpu": 200},
        {"assigned": ("sales", {"cpu": 40})},
        {"new": ("sales", {"cpu": 11})},
        set(),
    ),
    *(
        Admission(
            f"two queues of a cohort, {alpha} and {beta}",
            {
                "alpha": ("", {"cpu": 50}, {"cpu": 100}, 1),
                "beta": ("", {"cpu": 50}, {"cpu": 60}, 1),
            },
            {"cpu": 100},
            {},
            {"a": ("alpha", {"cpu": alpha}), "b": ("beta", {"cpu": beta})},
            admitted,
        )
        for alpha, beta, admitted in (
            (40, 40, {"a", "b"}),
            (45, 56, {"a"}),
            (45, 55, {"a", "b"}),
        )
    ),
    *(
        Admission(
            f"two queues borrow {first} and {second}",
            {f"cq{i}": ("", {"r1": 10, "r2": 10}, {"r1": 20, "r2": 20}, 1) for i in (1, 2, 3)},
            {"r1": 30, "r2": 30},
            {},
            {"wl1": ("cq1", first, -1), "wl2": ("cq2", second, -2)},
            admitted,
        )
        for first, second, admitted in (
            ({"r1": 16}, {"r2": 16}, {"wl1", "wl2"}),
            ({"r1": 16}, {"r1": 14}, {"wl1", "wl2"}),
            ({"r1": 16}, {"r1": 16}, {"wl1"}),
        )
    ),
    Admission(
        "who borrows less in a tree first",
        {"guaranteed": ("", {"cpu": 4}), "g": ("guaranteed", {}), "best": ("", {})},
        {"cpu": 4},
        {},
        {"mine": ("g", {"cpu": 4}), "best-effort": ("best", {"cpu": 4}, 3)},
        {"mine"},
    ),
    Admission(
        "lending limit",
        {"lend-a": ("", {"cpu": 3}), "lend-b": ("", {"cpu": 2})},
        {"cpu": 5},
        {"a": ("lend-b", {"cpu": 2})},
        {"b": ("lend-b", {"cpu": 3})},
        set(),
        ({"b"},),
        LENDING,
    ),
]


@pytest.mark.parametrize("case", ADMISSIONS, ids=lambda case: case.name)
def test_gangs_start_that_kueue_admits_or_others_for_a_reason(case: Admission) -> None:
    queues = [_queue(name, *declared) for name, declared in case.queues.items()]
    parts: list[Part] = [space("ml"), _node(case.totals), *queues]
    for name, (into, use) in case.runs.items():
        bound = _gang(name, into, use, 0.0).bound_on("n1")
        start = (RoleAtStart("", 1, bound.members[0].shape.requests),)
        record = QueueRecord(into, Uid(into), 1.0, start)
        parts += [bound, replace(reservation(bound), record=record)]
    for at, (name, (into, use, *priority)) in enumerate(case.waits.items()):
        parts.append(_gang(name, into, use, float(at)).priority(sum(priority)))
    patient = Policy(age_seconds=1e9, starvation_seconds=1e9)
    seen = snapshot(*parts, at=10.0)
    made = plan(seen, STRATEGIES["ilp"](), STRATEGIES["bestfit"](), Budget(), patient)
    started = {placement.gang.name for placement in made.placements}
    assert started in (case.unlike or (case.kueue,))
    assert bool(case.unlike) == bool(case.why)


def _queue(
    name: str, parent: str, guarantee: Amounts, limit: Amounts | None = None, weight: int = 1
) -> Queue:
    limits = tuple(sorted((limit or {}).items()))
    return Queue(name, Uid(name), parent, tuple(sorted(guarantee.items())), limits, weight)


def _node(totals: Amounts) -> NodeBuilder:
    return NodeBuilder(Node(NodeName("n1"), Resources.of({**totals, "pods": 110})))


def _gang(name: str, into: str, use: Amounts, created: float) -> GangBuilder:
    shape = Shape(Resources.of({**use, "pods": 1}))
    return gang(name).of(1).each(shape=shape).but(queue=into, created=created)


def test_most_answers_are_equal_and_the_others_have_few_reasons() -> None:
    values = sum(len(case.kueue) for case in CASES) + len(ADMISSIONS)
    others = sum(len(case.unlike) for case in CASES) + sum(bool(one.why) for one in ADMISSIONS)
    assert Fraction(values - others, values) > Fraction(8, 10)
    reasons = {case.why for case in CASES} | {one.why for one in ADMISSIONS}
    assert len(reasons - {""}) == 7
