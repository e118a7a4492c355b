"""Quantities and semantic versions as the CEL of Kubernetes has them."""

from collections.abc import Callable
from fractions import Fraction

import pytest

from tests.unit.filters.devices import in_process
from tutti.filters.devices import environment, selectors, values
from tutti.model.devices.inventory import Device, DeviceId

DEVICE = Device(DeviceId("d", "p", "n"))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1),
        ("-1.5", Fraction(-3, 2)),
        ("100m", Fraction(1, 10)),
        ("3u", Fraction(3, 10**6)),
        ("2k", 2000),
        ("1Ki", 1024),
        (".5Gi", 2**29),
        ("1e3", 1000),
        ("1E-3", Fraction(1, 1000)),
        ("2E", 2 * 10**18),
        ("", None),
        ("1KB", None),
        ("much", None),
    ],
)
def test_a_quantity_is_a_number(text: str, number: Fraction | None) -> None:
    assert values.amount(text) == number


def test_a_quantity_of_thousands_of_digits_is_refused_at_once() -> None:
    """A tenant may write it into a selector; a search that goes back would take hours."""
    assert values.amount("0" * 9_000 + "x") is None
    assert values.amount("1" * 4_000 + "e" * 4_000 + "x") is None
    assert values.amount("1" * 9_000) is values.amount("1e" + "1" * 9_000) is None
    assert values.amount("1" * 3_990 + "Ki") == 2**63 - 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1n", Fraction(1, 10**9)),  # the least amount that there is
        ("-0.1n", Fraction(-1, 10**9)),
        ("1.0000000001", Fraction(10**9 + 1, 10**9)),
        ("9Ei", 2**63 - 1),  # the most in binary units
        ("-9Ei", 1 - 2**63),
        ("10E", 10**19),
        ("1e4294967299", 1000),  # an int32
        ("1e99999", 10**1000),
        (".", 0),
        ("+", 0),
        ("Gi", 0),
        ("-00", 0),
        ("1e", None),
        ("1e9223372036854775808", None),
        ("1Ki2", None),
        ("1+3", None),
        ("1e+", None),
        ("1mi", None),
        ("\u0661", None),
    ],
)
def test_a_quantity_is_parsed_as_kubernetes_parses_it(text: str, value: Fraction | None) -> None:
    assert values.amount(text) == value


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("quantity('2').isInteger()", True),
        ("quantity('9E').isInteger()", True),
        ("quantity('16Ti').isInteger()", True),
        ("quantity('0').isInteger()", True),
        ("quantity('10E').isInteger()", False),
        ("quantity('1000m').isInteger()", False),
        ("quantity('0m').isInteger()", False),
        ("quantity('1.0').isInteger()", False),
        ("quantity('1.5Gi').isInteger()", False),
        ("quantity('100Ti').isInteger()", False),
        ("quantity('100Ti') == quantity('102400Gi')", True),
        ("quantity('100Ti').asInteger() > 0 || false", False),
        ("quantity('1.5').add(quantity('0.5')).isInteger()", False),
        ("quantity('1.5').add(quantity('0.5')) == quantity('2')", True),
        ("quantity('2').add(quantity('0m')).isInteger()", True),
        ("quantity('0m').add(quantity('2')).isInteger()", True),
        ("quantity('2').add(quantity('100Ti')).isInteger()", False),
        ("quantity('9E').add(quantity('9E')).isInteger()", False),
        ("quantity('9E').add(quantity('1')).isInteger()", True),
        ("quantity('0.3').asApproximateFloat() > 0.3", True),  # 3 * 0.1
        ("quantity('300m').asApproximateFloat() == 0.3", True),
        ("quantity('7').asApproximateFloat() == 7.0", True),
    ],
)
def test_a_quantity_is_an_integer_if_kubernetes_keeps_it_as_one(
    expression: str,
    holds: bool,  # noqa: FBT001
) -> None:
    assert in_process.holds(expression, DEVICE) is holds
    assert selectors.selector(expression).problem == ""
    assert selectors.matches([expression], DEVICE) is holds


ORDER = (
    *("1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2"),
    *("1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2.0.0"),
)


@pytest.mark.parametrize("i", range(len(ORDER) - 1))
def test_versions_are_ordered_as_semver_orders_them(i: int) -> None:
    first, second = (values.version(text) for text in ORDER[i : i + 2])
    assert (environment.compared(first, second), environment.compared(second, first)) == (-1, 1)
    assert environment.compared(first, first) == 0


def test_the_build_of_a_version_does_not_count() -> None:
    assert environment.compared(values.version("1.0.0+a"), values.version("1.0.0+b")) == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: values.quantity("much"),
        lambda: values.version("1.2"),
        lambda: environment.compared(values.quantity("1"), values.version("1.0.0")),
        lambda: values.version_parts("01.0.0"),
        lambda: values.number_of(values.version("1.0.0")),
        lambda: environment._substring("A100", 1, 5),
        lambda: environment._bool("yes"),
        lambda: environment._int("9223372036854775808"),
        lambda: environment._int("0x10"),
        lambda: environment._int(-(2.0**63)),
        lambda: environment._integer(values.quantity("1.5")),
    ],
)
def test_nonsense_is_an_error(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"no|only|has"):
        call()


@pytest.mark.parametrize(
    "expression",
    [
        'isQuantity("1Gi") && !isQuantity("one")',
        'isSemver("1.2.3") && !isSemver("v1.2.3")',
        'sign(quantity("1Gi")) == 1 && sign(quantity("-1")) == -1 && sign(quantity("0")) == 0',
        'quantity("2k").asInteger() == 2000 && quantity("2k").isInteger()',
        '!quantity("1500m").isInteger() && quantity("1500m").asApproximateFloat() == 1.5',
        'quantity("1").add(quantity("2")) == quantity("3")',
        'quantity("1").add(2) == quantity("3")',
        'quantity("3").sub(quantity("2")) == quantity("1")',
        'quantity("3").sub(2) == quantity("1")',
        'semver("1.2.3").minor() == 2 && semver("1.2.3").patch() == 3',
        'semver("1.2.3").isGreaterThan(semver("1.2.2"))',
        'semver("1.2.3+a") == semver("1.2.3+b")',
        'semver("v01.2", true) == semver("1.2.0") && semver("1.2.3", false).patch() == 3',
        'semver("v1.00.3-rc.1", true) == semver("1.0.3-rc.1")',
        'isSemver("v1", true) && !isSemver("v1", false) && !isSemver("1.2-rc", true)',
        'isSemver("18446744073709551615.0.0") && !isSemver("18446744073709551616.0.0")',
        '!isSemver("1.0.0-18446744073709551616") && !isSemver("1.0.0+a..b")',
        '!isSemver("1.\u0662.0") && !isSemver("x.1", true)',
        '"A100".substring(1, 4) == "100" && "A100".substring(4) == ""',
        'bool("TRUE") && bool("t") && !bool("F") && bool(true)',
        'int("-7") == -7 && int("+3") == 3 && int(-1.9) == -1 && int(5) == 5 && int(2u) == 2',
        '!(int(dyn("1")) != 1) && (int(dyn(true)) == 1 || true)',
        'int(timestamp("1970-01-01T00:01:00Z")) == 60',
        'duration("1.5s").getMilliseconds() == 1500',
        'timestamp("1970-01-01T00:00:01.25Z").getMilliseconds() == 250',
        'timestamp("1970-01-01T00:00:01.25Z").getMilliseconds("Asia/Tokyo") == 250',
        'duration("-0.0015s").getMilliseconds() == -1',
    ],
)
def test_the_functions_of_kubernetes_are_there(expression: str) -> None:
    assert in_process.holds(expression, DEVICE)
    assert selectors.selector(expression).problem == ""
    assert selectors.matches([expression], DEVICE)
