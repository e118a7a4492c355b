"""A wrong answer is noticed, and what is left out of the comparison is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .asking import Verdict, devices
from .byhand import KNOWN
from .comparing import compared, matches, sentences
from .corpus import Case
from .inventory import NODES, A, cluster

if TYPE_CHECKING:
    from tutti.model.devices.inventory import Device

DEVICES = devices(cluster().beside)
FIRST = Verdict(Case("lists", f"{A}.index in [0]"), frozenset({"n0"}), frozenset({"nic"}))
ALL = Verdict(Case("drivers", 'device.driver != ""'), frozenset(NODES))
VERSION = f'!({A}.firmware == "2.0.0")'


def test_equal_answers_are_counted() -> None:
    tally = compared([FIRST, ALL], DEVICES)
    assert (tally.agreed, tally.telling, tally.failing, tally.wrong) == (2, 1, 1, [])
    assert tally.is_good


def test_a_planted_wrong_answer_is_noticed() -> None:
    def planted(expression: str, device: Device) -> bool:
        return matches(expression, device) or (device.id.pool == "n3" and " in " in expression)

    tally = compared([FIRST, ALL], DEVICES, planted)
    assert not tally.is_good
    assert [(verdict, ours) for verdict, ours in tally.wrong] == [(FIRST, frozenset({"n0", "n3"}))]
    said = [*sentences(tally)]
    assert "  Tutti only:          n3" in said
    assert said[-1].endswith("1 differ")


def test_an_answer_that_kube_scheduler_takes_back_is_noticed_too() -> None:
    tally = compared([Verdict(FIRST.case, frozenset({"n0", "n1"}))], DEVICES)
    assert "  kube-scheduler only: n1" in [*sentences(tally)]
    assert not tally.is_good


def test_what_is_refused_or_not_modelled_is_counted_apart() -> None:
    refused = [Verdict(Case("x", text), refusal="422") for text in ("1 +", "1", "2")]
    unmodelled = Verdict(Case("x", 'isIP("::1")'), frozenset(NODES))
    tally = compared([*refused, unmodelled, *[ALL] * 19], DEVICES)
    assert (tally.refused, tally.admitted.total(), tally.unmodelled.total()) == (3, 2, 1)
    assert tally.is_good
    assert "not modelled: the CEL function isIP: 1" in [*sentences(tally)]
    assert not compared([*refused, unmodelled, *[ALL] * 18], DEVICES).is_good  # over 5 %
    assert not compared([*refused, *[ALL] * 6], DEVICES).is_good  # over 30 % refused


def test_a_known_difference_is_one_where_kube_scheduler_fails_and_only_there() -> None:
    known = Case(KNOWN, VERSION)
    gpus = frozenset(NODES[:-1])
    assert compared([Verdict(known, failed=gpus)], DEVICES).known == 1
    assert len(compared([Verdict(known, failed=gpus - {"n0"})], DEVICES).wrong) == 1
    assert len(compared([Verdict(Case("versions", VERSION), failed=gpus)], DEVICES).wrong) == 1
