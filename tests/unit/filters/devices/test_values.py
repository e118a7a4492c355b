"""Quantities and semantic versions as the CEL of Kubernetes has them."""

from collections.abc import Callable
from fractions import Fraction

import pytest

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
    assert values.canonical(text) == (text if number is None else str(Fraction(number)))


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
        lambda: environment._number(values.version("1.0.0")),
        lambda: environment._integer(values.quantity("1.5")),
    ],
)
def test_nonsense_is_an_error(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"no|only"):
        call()


@pytest.mark.parametrize(
    "expression",
    [
        'isQuantity("1Gi") && !isQuantity("one")',
        'isSemver("1.2.3") && !isSemver("v1.2.3")',
        'quantity("1Gi").sign() == 1 && quantity("-1").sign() == -1 && quantity("0").sign() == 0',
        'quantity("2k").asInteger() == 2000 && quantity("2k").isInteger()',
        '!quantity("1500m").isInteger() && quantity("1500m").asApproximateFloat() == 1.5',
        'quantity("1").add(quantity("2")) == quantity("3")',
        'quantity("1").add(2) == quantity("3")',
        'quantity("3").sub(quantity("2")) == quantity("1")',
        'quantity("3").sub(2) == quantity("1")',
        'semver("1.2.3").minor() == 2 && semver("1.2.3").patch() == 3',
        'semver("1.2.3").isGreaterThan(semver("1.2.2"))',
    ],
)
def test_the_functions_of_kubernetes_are_there(expression: str) -> None:
    assert selectors.problem([expression]) == ""
    assert selectors.matches([expression], DEVICE)
