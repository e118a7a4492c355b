"""What requests select, and which devices will do for them."""

import pytest

from tests.harness.fake_devices import DRIVER, device, device_class
from tutti.filters.devices import requests, selectors
from tutti.model.devices.claims import ClaimName, DeviceClaim, DeviceRequest
from tutti.model.devices.inventory import (
    DeviceClass,
    DeviceId,
    DeviceTaint,
    DeviceToleration,
    TaintRule,
)
from tutti.model.keys import Uid

GPU = device_class()
CLASSES = {"gpu": GPU, "tpu": device_class("tpu", "false")}
PLAIN = DeviceRequest("one", "gpu")
TAINT = DeviceTaint("broken", "yes", "NoExecute")


def claim(*wanted: DeviceRequest, **fields: tuple[str, ...]) -> DeviceClaim:
    return DeviceClaim(ClaimName("ml", "c"), Uid("c"), wanted, **fields)  # type: ignore[arg-type]


def test_a_request_without_selectors_of_its_own_has_the_name_of_its_class() -> None:
    assert requests.selection(PLAIN, CLASSES).label == "gpu"
    other = DeviceRequest("two", "gpu", 3, GPU.selectors)
    assert requests.selection(other, CLASSES) == requests.selection(PLAIN, CLASSES)


def test_requests_that_select_alike_are_equal_whatever_their_order() -> None:
    first = requests.selection(DeviceRequest("a", "gpu", 1, ("true", "1 == 1")), CLASSES)
    second = requests.selection(DeviceRequest("b", "gpu", 2, ("1 == 1", "true")), CLASSES)
    assert first == second
    assert first.label.startswith("gpu#")


def test_a_request_with_alternatives_selects_what_one_of_them_selects() -> None:
    tolerant = (DeviceToleration(operator="Exists"),)
    parts = (DeviceRequest("t", "tpu"), DeviceRequest("g", "gpu", tolerations=tolerant))
    request = DeviceRequest("r", "", alternatives=parts)
    selected = requests.selection(request, CLASSES)
    assert selected.label.startswith("tpu or gpu#")
    assert set(selected.texts) == {*GPU.selectors, "false"}
    assert requests.is_met(selected, device("g", "n1", (TAINT,)), ())
    other = requests.selection(DeviceRequest("r", "", alternatives=parts[:1]), CLASSES)
    assert not requests.is_met(other, device("g", "n1"), ())
    assert requests.problem(claim(request), {"gpu": GPU}).startswith("names device class tpu")
    assert list(requests.selections(claim(request), {"gpu": GPU})) == []


def test_a_request_for_all_devices_is_another_selection() -> None:
    every = requests.selection(DeviceRequest("a", "gpu", takes_all=True), CLASSES)
    assert every != requests.selection(PLAIN, CLASSES)
    assert every.label == "all of gpu"


def test_a_claim_of_a_class_that_does_not_exist_has_a_problem() -> None:
    assert requests.problem(claim(PLAIN), {"gpu": GPU}) == ""
    lacking = claim(PLAIN, DeviceRequest("two", "tpu"))
    assert "device class tpu, which does not exist" in requests.problem(lacking, {"gpu": GPU})
    assert [r.name for r, _ in requests.selections(lacking, {"gpu": GPU})] == ["one"]


def test_devices_are_not_written_into_a_claim_whose_class_has_gone_or_is_unsupported_by_now() -> (
    None
):
    assert requests.broken_class(claim(PLAIN), {"gpu": GPU}) == ""
    sentence = "names device class gpu, which does not exist"
    assert requests.broken_class(claim(PLAIN), {}) == sentence
    odd = DeviceClass("gpu", (), ("spec.a", "spec.b"))
    sentence = "names device class gpu, which has spec.a, spec.b by now"
    assert requests.broken_class(claim(PLAIN), {"gpu": odd}) == sentence


def test_what_claim_class_and_expressions_need_is_named() -> None:
    odd_class = DeviceClass("gpu", ("ip(1)",), ("selectors[]",))
    own = claim(PLAIN, unsupported=("devices.constraints",))
    problems = selectors.evaluate([(of, []) for of in odd_class.selectors], 60.0).problems
    named = [*requests.unsupported(own, {"gpu": odd_class}, problems)]
    assert named == ["devices.constraints", "selectors[]", "the CEL function ip"]


@pytest.mark.parametrize(
    ("toleration", "is_tolerated"),
    [
        (DeviceToleration("broken", "Equal", "yes"), True),
        (DeviceToleration("broken", "Equal", "no"), False),
        (DeviceToleration("broken", "Exists"), True),
        (DeviceToleration("", "Exists"), True),
        (DeviceToleration("other", "Exists"), False),
        (DeviceToleration("broken", "Exists", effect="NoExecute"), True),
        (DeviceToleration("broken", "Exists", effect="NoSchedule"), False),
        (DeviceToleration("broken", "Odd"), False),
    ],
)
def test_a_taint_has_to_be_tolerated(toleration: DeviceToleration, is_tolerated: bool) -> None:  # noqa: FBT001
    selected = requests.selection(DeviceRequest("a", "gpu", tolerations=(toleration,)), CLASSES)
    assert requests.is_met(selected, device("gpu-0", "n1", taints=(TAINT,)), ()) is is_tolerated


def test_taints_of_rules_count_and_other_effects_do_not() -> None:
    plain = requests.selection(PLAIN, CLASSES)
    own = device("gpu-0", "n1", taints=(DeviceTaint("x", "", "None"),))
    assert requests.is_met(plain, own, ())
    for rule, holds in (
        (TaintRule("r", TAINT, DRIVER, "n1", "gpu-0"), False),
        (TaintRule("r", TAINT), False),
        (TaintRule("r", TAINT, matches_nothing=True), True),
        (TaintRule("r", TAINT, pool="n2"), True),
    ):
        assert requests.is_met(plain, own, [rule]) is holds


def test_a_device_says_where_it_is() -> None:
    assert str(DeviceId("d", "p", "n")) == "d/p/n"
