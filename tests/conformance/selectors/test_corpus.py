"""The expressions: as many as are asked for, the same each time, and of every kind."""

from __future__ import annotations

import re

import pytest

from tutti.filters.devices import selectors

from .asking import devices
from .byhand import BY_HAND
from .corpus import corpus
from .grammar import KINDS
from .inventory import GPUS, NODES, cluster

# What Kubernetes has that selectors of devices are likely to use.
FUNCTIONS = (
    *("add", "all", "asApproximateFloat", "asInteger", "bool", "charAt", "compareTo", "contains"),
    *("cel.bind", "double", "endsWith", "exists", "exists_one", "filter", "has", "hasValue"),
    *("indexOf", "int", "isGreaterThan", "isInteger", "isLessThan", "isQuantity", "isSemver"),
    *("join", "lastIndexOf", "lowerAscii", "major", "map", "matches", "minor", "optMap", "or"),
    *("orValue", "patch", "quantity", "replace", "semver", "sign", "size", "split", "startsWith"),
    *("string", "sub", "substring", "trim", "uint", "upperAscii", "value"),
)


def test_the_same_seed_gives_the_same_expressions_and_another_gives_others() -> None:
    first = corpus(1, 800)
    assert first == corpus(1, 800)
    assert len({case.expression for case in first}) == len(first) == 800
    assert len({*first} & {*corpus(2, 800)}) < 600


def test_all_that_is_written_by_hand_is_there_however_few_are_asked_for() -> None:
    by_hand = {text for texts in BY_HAND.values() for text in texts}
    assert {case.expression for case in corpus(1, 1)} == by_hand


@pytest.mark.parametrize("seed", [1, 7])
def test_every_kind_and_every_function_occurs_among_500(seed: int) -> None:
    last = corpus(seed, 900)[-500:]
    assert {case.kind for case in last} == KINDS.keys()
    text = "\n".join(case.expression for case in last)
    assert [name for name in FUNCTIONS if not re.search(rf"\b{re.escape(name)}\(", text)] == []
    for word in (" in ", " ? ", "&&", "||", "!", "%", "/", ".?", "[?", "device.driver"):
        assert word in text


def test_devices_of_all_nodes_differ_and_most_of_the_expressions_tell_some_apart() -> None:
    found = devices(cluster().beside)
    assert found.keys() == {*NODES}
    assert len({(one.attributes, one.capacity) for one in found.values()}) == GPUS + 1
    telling = 0
    cases = [case for case in corpus(1, 500) if not selectors.selector(case.expression).problem][
        -100:
    ]
    for case in cases:
        met = sum(selectors.matches([case.expression], one) for one in found.values())
        telling += 0 < met < len(found)
    assert telling > len(cases) / 3
