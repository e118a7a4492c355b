"""Quantities: the whole grammar, exact, and rounded as kube-scheduler rounds them."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.kube.codec.quantity import LARGEST, QuantityError, nanos, offered, requested

WHOLE = {
    "0": 0,
    "1": 1,
    "+1": 1,
    "007": 7,
    "1.": 1,
    "2.0": 2,
    "1k": 1000,
    "1M": 10**6,
    "1G": 10**9,
    "1T": 10**12,
    "1P": 10**15,
    "1E": 10**18,
    "1Ki": 2**10,
    "1Mi": 2**20,
    "1Gi": 2**30,
    "1Ti": 2**40,
    "1Pi": 2**50,
    "1Ei": 2**60,
    "1.5Gi": 3 * 2**29,
    ".5Ki": 512,
    "1e3": 1000,
    "1E3": 1000,
    "1e+3": 1000,
    "2500E-2": 25,
    "1E+03": 1000,
    "9223372036854775807": LARGEST,
    "4000m": 4,
    "3000000u": 3,
    "2000000000n": 2,
}
NOT_QUANTITIES = [
    "",
    " ",
    "1 ",
    " 1",
    "1\n",
    "Gi",
    "+",
    "-",
    ".",
    "1.1.1",
    "1K",
    "1ki",
    "1mi",
    "1i",
    "1e",
    "1e+",
    "1e1.5",
    "1Gi2",
    "1ee3",
    "0x10",
    "1,5",
    "1_000",
    "--1",
    "١",  # noqa: RUF001 - a digit, though not one of ours
    "½",
    "NaN",
    "inf",
    "four",
    "1" * 501,
]


@pytest.mark.parametrize(("text", "amount"), WHOLE.items())
def test_every_suffix_and_exponent_means_what_it_means_in_kubernetes(
    text: str, amount: int
) -> None:
    assert (requested("memory", text), offered("memory", text)) == (amount, amount)


@pytest.mark.parametrize("text", NOT_QUANTITIES)
def test_what_is_no_quantity_is_refused_with_a_sentence(text: str) -> None:
    for read in (requested, offered):
        with pytest.raises(QuantityError, match="is not a quantity such as"):
            read("memory", text)


@pytest.mark.parametrize(
    ("name", "text", "amount"),
    [
        ("cpu", "1", 1000),
        ("cpu", "100m", 100),
        ("cpu", "0.1", 100),
        ("cpu", "1500u", 2),
        ("cpu", "1n", 1),
        ("cpu", "0.0000000001", 1),
        ("memory", "1500m", 2),
        ("memory", "0.1", 1),
        ("memory", "1.1Ki", 1127),
        ("memory", "4294967296500m", 2**32 + 1),
        ("nvidia.com/gpu", "1", 1),
        ("nvidia.com/gpu", "500m", 1),
    ],
)
def test_requests_and_offers_round_up_as_in_kube_scheduler(
    name: str, text: str, amount: int
) -> None:
    assert (requested(name, text), offered(name, text)) == (amount, amount)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1e1000000000", LARGEST),
        ("1e" + "9" * 300, LARGEST),
        ("9" * 400, LARGEST),
        ("8Ei", LARGEST),
        ("10E", LARGEST),
        ("1e-1000000000", 1),
        ("9" * 300 + "e-" + "9" * 190, 1),
        ("0e1000000000", 0),
    ],
)
def test_absurd_amounts_are_capped_at_once(text: str, amount: int) -> None:
    assert (requested("memory", text), offered("memory", text)) == (amount, amount)


@pytest.mark.parametrize("text", ["-1", "-500m", "-1Gi", "-1e1000000000", -3, -0.5])
def test_a_negative_request_is_refused_and_a_negative_offer_is_nothing(text: object) -> None:
    with pytest.raises(QuantityError, match="is negative"):
        requested("memory", text)
    assert offered("memory", text) == 0


@pytest.mark.parametrize(
    ("number", "amount"),
    [(2, 2000), (0.5, 500), (1e22, LARGEST), (10**4000, LARGEST), (1e-9, 1), (0, 0), (-0.0, 0)],
)
def test_json_numbers_are_read_as_what_is_written(number: float, amount: int) -> None:
    assert requested("cpu", number) == amount


@pytest.mark.parametrize("value", [True, None, [], {}, b"1", Decimal(1)])
def test_other_types_are_refused_with_a_sentence(value: object) -> None:
    for read in (requested, offered):
        with pytest.raises(QuantityError, match="a quantity is text or a number"):
            read("memory", value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_none_are_refused(value: float) -> None:
    for read in (requested, offered):
        with pytest.raises(QuantityError):
            read("memory", value)


def test_a_long_text_is_not_quoted_whole() -> None:
    with pytest.raises(QuantityError) as refused:
        requested("memory", "x" * 100_000)
    assert len(str(refused.value)) < 120


def test_sums_are_rounded_once() -> None:
    assert nanos("0.5m") + nanos("0.5m") == nanos("1m")


@settings(deadline=None)
@given(st.integers(0, LARGEST))
def test_an_integer_comes_back_exactly(amount: int) -> None:
    assert requested("memory", str(amount)) == offered("memory", str(amount)) == amount


@settings(deadline=None)
@given(st.integers(0, 2**53))
def test_milli_cpu_comes_back_exactly(amount: int) -> None:
    assert requested("cpu", f"{amount}m") == offered("cpu", f"{amount}m") == amount


@settings(deadline=None)
@given(
    st.decimals(0, 10**6, allow_nan=False, places=12),
    st.sampled_from([("", 1), ("m", Fraction(1, 1000)), ("Ki", 1024), ("M", 10**6), ("e2", 100)]),
)
def test_rounding_is_exact_for_any_decimal(
    number: Decimal, suffix: tuple[str, int | Fraction]
) -> None:
    text, factor = f"{number:f}{suffix[0]}", suffix[1]
    exact = Fraction(number) * factor
    up = -(-exact.numerator // exact.denominator)
    assert (requested("memory", text), offered("memory", text)) == (up, up)


@settings(deadline=None)
@given(st.text(max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        amount = requested("memory", text)
    except QuantityError:
        return
    assert 0 <= amount <= LARGEST
