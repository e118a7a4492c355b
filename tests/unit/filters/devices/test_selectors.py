"""CEL selectors as Kubernetes evaluates them, and what Tutti says of those that it cannot."""

import subprocess
import sys
from collections import OrderedDict
from dataclasses import replace

import pytest

from tutti.filters.devices import selectors
from tutti.filters.devices.selectors import Read
from tutti.model.devices.inventory import Attribute, Capacity, Device, DeviceId

GPU = "gpu.example.com"
DEVICE = Device(
    DeviceId(GPU, "n1", "gpu-0"),
    (
        Attribute(GPU, "healthy", value=True),
        Attribute(GPU, "index", 3),
        Attribute(GPU, "model", "A100"),
        Attribute(GPU, "version", "1.20.3-rc.1", is_version=True),
    ),
    (Capacity(GPU, "memory", "80Gi"),),
)
MODEL, MEMORY = f'device.attributes["{GPU}"].model', f'device.capacity["{GPU}"].memory'
SINCE = f'device.attributes["{GPU}"].version'

HOLDS = (
    f'device.driver == "{GPU}"',
    f'{MODEL} == "A100"',
    f"device . attributes [ '{GPU}' ] . model == 'A100'",
    f'device.attributes["{GPU}"]["model"] == "A100"',
    f'"index" in device.attributes["{GPU}"]',
    f'has(device.attributes["{GPU}"].model)',
    f'device.attributes[?"{GPU}"].?model.orValue("x") == "A100"',
    'sign(device.capacity[?"other.example.com"].?memory.orValue(quantity("0"))) == 0',
    '!has(device.attributes["other.example.com"].model)',
    f'device.attributes["{GPU}"].?nothing.orValue("x") == "x"',
    f'cel.bind(gpu, device.attributes["{GPU}"], gpu.healthy && gpu.index > 2)',
    f'{MODEL}.lowerAscii().startsWith("a1") && {MODEL}.matches("^A[0-9]+$")',
    f'{MEMORY}.compareTo(quantity("80Gi")) == 0',
    f'{MEMORY} == quantity("81920Mi")',
    f'{MEMORY}.isGreaterThan(quantity("79Gi")) && {MEMORY}.isLessThan(quantity("1Ti"))',
    f'{SINCE}.isLessThan(semver("1.20.3")) && {SINCE}.major() == 1',
    "!device.allowMultipleAllocations",
    f'"device.nothing" != "" && device.driver == "{GPU}" // device',
    "[1, 2, 3].all(n, n > 0)",
    f'{MODEL}.substring(1, 4) == "100" && {MODEL}.substring(4) == "" // .substring(9)',
    f'{MODEL}.replace("0", "1") == "A111" && {MODEL}.replace("0", "1", 1) == "A110"',
    f'{MODEL}.replace("0", "", 0) == "A100" && {MODEL}.replace("", "-", 2) == "-A-100"',
    f'{MODEL}.replace("0", "", -1) == "A1" && {MODEL}.replace("", "-") == "-A-1-0-0-"',
    f'{MODEL}.split("0") == ["A1", "", ""] && {MODEL}.split("0", 2) == ["A1", "0"]',
    f'{MODEL}.split("0", 0).size() == 0 && {MODEL}.split("0", -1).size() == 3',
    f'{MODEL}.split("") == ["A", "1", "0", "0"] && {MODEL}.split("", 2) == ["A", "100"]',
    f'{MODEL}.split("", 4).size() == 4 && {MODEL}.split("", 0) == []',
    f'["a", {MODEL}].join("/") == "a/A100" && {MODEL}.split("0").join() == "A1"',
    f'"{MODEL[-5:]}.substring(9)" != "" && {MODEL}.substring(0, 1) == "A"',
)
FAILS = (
    'device.driver == "other"',
    f'{MODEL} == "H100"',
    'device.attributes["other.example.com"].model == "A100"',  # no such key
    f"{MODEL} > 3",  # no such overload
    MODEL,  # no truth value
    f'{MEMORY}.isGreaterThan(semver("1.0.0"))',
    'quantity("much") == quantity("1")',
    f'"x".matches("(") && device.driver == "{GPU}"',
)


@pytest.mark.parametrize("expression", HOLDS)
def test_it_holds(expression: str) -> None:
    assert selectors.problem([expression]) == ""
    assert selectors.matches([expression], DEVICE)


@pytest.mark.parametrize("expression", FAILS)
def test_it_does_not_hold_or_fails(expression: str) -> None:
    assert selectors.problem([expression]) == ""
    assert not selectors.matches([expression], DEVICE)


@pytest.mark.parametrize("more", [0, 1])
def test_no_expression_makes_a_text_that_is_long(more: int) -> None:
    """A few hundred characters that the API server takes can ask for more than fits in memory."""
    texts = "a" * 256, "b" * 256
    longest = f'"{texts[0]}".replace("a", "{texts[1]}")'  # 65,536 characters
    made = f'"{"a" * 255}{texts[1]}{"c" * more}".replace("a", "{texts[1]}")'
    split = f'("{"c" * more}" + {longest}).split("a")'
    joined = f'[{longest}, "{"c" * more}"].join()'
    for expression in (made, split, joined):
        assert selectors.problem([f"{expression}.size() > 0"]) == ""
        assert selectors.matches([f"{expression}.size() > 0"], DEVICE) is (more == 0)


def test_no_expression_takes_gigabytes() -> None:
    text, once, twice = ("a" * 1500, "b" * 2500, "c" * 2500)
    bomb = f'"{text}".replace("a", "{once}").replace("b", "{twice}").size() > 0'
    assert selectors.problem([bomb]) == ""
    assert not selectors.matches([bomb], DEVICE)


def test_all_expressions_must_hold() -> None:
    assert selectors.matches(HOLDS, DEVICE)
    assert not selectors.matches((*HOLDS, FAILS[0]), DEVICE)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ('ip("10.0.0.1").family() == 4', "the CEL function ip"),
        (f'{MODEL}.find("A") == "A"', "the CEL function find"),
        (f"{MEMORY}.sign() == 1", "the CEL function sign"),
        ("1 +", "a CEL expression not compiled"),
        ("device == device", "an expression that uses device without naming a domain"),
        ("device.attributes.exists(d, true)", "an expression that uses device without"),
        (f'device.attributes["{GPU}"].size() == 4', ""),
    ],
)
def test_what_the_engine_lacks_is_named(expression: str, problem: str) -> None:
    assert selectors.problem([HOLDS[0], expression]).startswith(problem)
    assert selectors.matches([expression], DEVICE) is (problem == "")


MANY = f"[{', '.join(['1'] * 30)}]"
LOOP = f'{MANY}.all(a, {MANY}.all(b, {MANY}.all(c, device.driver != "x")))'


def test_an_expression_that_loops_too_often_for_the_engine_is_named() -> None:
    assert selectors.problem([LOOP]) == "a CEL expression that loops too often"
    assert not selectors.matches([LOOP], DEVICE)


def test_a_device_for_which_it_loops_too_often_is_not_selected() -> None:
    expression = f'device.driver == "{GPU}" && {LOOP}'
    assert selectors.problem([expression]) == ""
    assert not selectors.matches([expression], DEVICE)


def test_an_expression_is_evaluated_once_for_devices_that_are_equal_to_it() -> None:
    expression = f'{MODEL} == "cached"'
    assert selectors.selector(expression).reads == (Read("attributes", GPU, "model"),)
    twin = replace(DEVICE, id=DeviceId(GPU, "n2", "gpu-7"), capacity=())
    selectors.evaluate([expression, FAILS[0]], [DEVICE, twin])
    assert len(selectors._answers[expression]) == 1


@pytest.mark.parametrize(
    "expression",
    [
        f'device.attributes["{GPU}"].exists(name, name == "model")',
        f'device.attributes["{GPU}"].size() == 4',
        f'device.attributes["{GPU}"] . map (name, name) == ["model"] || {SINCE}.major() == 1',
    ],
)
def test_a_function_of_a_whole_domain_is_evaluated_for_each_content_of_it(expression: str) -> None:
    assert Read("attributes", GPU) in selectors.selector(expression).reads
    bare = replace(DEVICE, attributes=(Attribute(GPU, "index", 3),))
    assert [selectors.matches([expression], device) for device in (bare, DEVICE)] == [False, True]


def test_true_is_not_one() -> None:
    one = Device(DEVICE.id, (Attribute(GPU, "kind", 1),))
    truth = Device(DEVICE.id, (Attribute(GPU, "kind", value=True),))
    expression = f'device.attributes["{GPU}"].kind == 1'
    assert [selectors.matches([expression], device) for device in (one, truth)] == [True, False]


def test_a_version_that_is_none_makes_every_expression_about_it_fail() -> None:
    odd = Device(DEVICE.id, (Attribute(GPU, "version", "1.2", is_version=True),))
    assert not selectors.matches([f'{SINCE}.major() == 1 || device.driver != ""'], odd)


def test_a_quantity_that_is_none_makes_every_expression_about_it_fail() -> None:
    odd = Device(DEVICE.id, (), (Capacity(GPU, "memory", "much"),))
    assert not selectors.matches([f'{MEMORY} == quantity("1") || device.driver != ""'], odd)


def test_a_shared_device_says_so() -> None:
    shared = replace(DEVICE, unsupported=("allowMultipleAllocations",))
    assert selectors.matches(["device.allowMultipleAllocations"], shared)


def test_the_cache_does_not_grow_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "MOST_ANSWERS", 2)
    expression = f'device.attributes["{GPU}"].index > 1'
    for i in range(5):
        device = Device(DEVICE.id, (Attribute(GPU, "index", i),))
        assert selectors.matches([expression], device) is (i > 1)
    assert len(selectors._answers[expression]) <= 2


def test_of_compiled_selectors_the_latest_used_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "_selectors", OrderedDict())
    monkeypatch.setattr(selectors, "MOST_CHARACTERS", 25)
    for text in ("10 > 1", "11 > 1", "12 > 1", "13 > 1", "10 > 1", "14 > 1"):
        assert selectors.selector(text).expression == text
    assert [*selectors._selectors] == ["12 > 1", "13 > 1", "10 > 1", "14 > 1"]
    selectors.selector("10 > 1 && 11 > 1 && 12")
    assert [*selectors._selectors] == ["10 > 1 && 11 > 1 && 12"]
    assert selectors.selector("10 > 1 && 11 > 1 && 12 > 1").problem == ""
    assert not selectors._selectors


def test_why_expressions_cannot_be_evaluated_is_answered_for_each() -> None:
    problems = selectors.evaluate([HOLDS[0], "ip(1)"], [DEVICE])
    assert problems == {HOLDS[0]: "", "ip(1)": "the CEL function ip"}


def test_the_engine_is_loaded_with_the_first_selector_alone() -> None:
    asked = f"""
import sys
import tutti.operator.main
from tutti.filters.devices import selectors
print("cel_expr_python" in sys.modules)
selectors.selector({HOLDS[0]!r})
print("cel_expr_python" in sys.modules)
"""
    answer = subprocess.run([sys.executable, "-c", asked], capture_output=True, check=True)
    assert answer.stdout.split() == [b"False", b"True"]
