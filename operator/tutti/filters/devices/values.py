"""The quantities and semantic versions of CEL in Kubernetes.

The engine takes no values of our own types, so each is a map with a key that says its type.
Sources: ``resource`` of k8s.io/apimachinery, which quantities are parsed and added as in; the
Quantity and Semver libraries of k8s.io/apiserver; semver 2.0.0, section 11; blang/semver.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

QUANTITY, SEMVER = "quantity", "semver"
Value = Mapping[str, Any]

INT64, UINT64 = range(-(2**63), 2**63), range(2**64)
_FORM = "form"  # of a quantity: see ``value_of``
_FORM_BITS = 11

# The repeats are possessive: otherwise a text of thousands of digits takes hours to be refused.
_QUANTITY = re.compile(r"[+-]?0*+([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+)([+-]?[0-9]*+)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Mapping[str, int] = {
    unit: 10 * n for n, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)
}
_SMALLEST = -9  # the power of ten below which nothing is kept
_MOST_POWER = 1000  # of ten; as good as any other that is as absurd
_MOST_DIGITS = 18
_MOST_READ = 4_000  # characters; of more digits Python makes no integer
_VERSION_NUMBERS = 3
_NUMBER = r"(?:0|[1-9][0-9]*)"
_WORD = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_BUILD = r"[0-9A-Za-z-]+"
_VERSION = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_WORD}(?:\.{_WORD})*))?"
    rf"(?:\+({_BUILD}(?:\.{_BUILD})*))?"
)


class Number(NamedTuple):
    """A quantity as Kubernetes keeps it: in an int64 and a power of ten, or with any digits."""

    value: Fraction
    power: int  # of ten, by which the digits count
    is_small: bool  # in an int64; only such numbers are integers for CEL


def number(text: str) -> Number | None:
    """The number that a quantity stands for; None if this is no quantity."""
    match = _QUANTITY.fullmatch(text[: _MOST_READ + 1])
    if match is None or not 0 < len(text) <= _MOST_READ:
        return None
    whole, part, suffix, exponent = (group or "" for group in match.groups())
    bits = _BINARY.get(suffix, 0)
    if exponent:
        if suffix not in ("e", "E") or not exponent.lstrip("+-") or int(exponent) not in INT64:
            return None
        power = (int(exponent) + 2**31) % 2**32 - 2**31  # as an int32
        power = min(max(power, -_MOST_POWER), _MOST_POWER)
    elif suffix in _DECIMAL or bits:
        power = _DECIMAL.get(suffix, 0)
    else:
        return None
    digits = int((whole or "0") + part) * (-1 if text[0] == "-" else 1)
    precise = power - len(part)
    value = digits * 2**bits * Fraction(10) ** precise
    if _is_small(max(len(whole), 1), len(part), bits) and precise >= _SMALLEST:
        return Number(value, precise, is_small=True)
    least = Fraction(1, 10**-_SMALLEST)
    steps = -(-abs(value) // least)  # away from zero
    value = least * steps * (-1 if value < 0 else 1)
    if bits and abs(value) > INT64[-1]:
        return Number(Fraction(INT64[-1] * (-1 if value < 0 else 1)), 0, is_small=False)
    return Number(value, _SMALLEST, is_small=False)


def _is_small(whole: int, part: int, bits: int) -> bool:
    """Whether so many digits, and such a unit, are kept in an int64."""
    if bits:
        return not part and 15 - whole - bits * 3 // 10 - 1 >= 0
    return whole + part <= _MOST_DIGITS


def added(one: Number, other: Number) -> Number:
    """The sum of two numbers, in the form in which Kubernetes has it."""
    total, power = one.value + other.value, min(one.power, other.power)
    if one.is_small and other.is_small:
        if other.value == 0:
            return one
        if one.value == 0:
            return other
        parts = (one.value, other.value, total)
        fits = all((of / Fraction(10) ** power).numerator in INT64 for of in parts)
        return Number(total, power, is_small=fits)
    return Number(total, power, is_small=False)


def amount(text: str) -> Fraction | None:
    """The value of a quantity; None if this is no quantity."""
    parsed = number(text)
    return None if parsed is None else parsed.value


def quantity(text: str) -> Value:
    """The CEL value of a quantity; raises ``ValueError``."""
    if (parsed := number(text)) is None:
        raise ValueError(f"{text!r} is no quantity")
    return value_of(parsed)


def value_of(amount: Number) -> Value:
    """The CEL value of a number.

    Equal quantities may be kept in different forms. So the bits of the form are zeros, of which
    each is an int or a float: to CEL all of them are equal.
    """
    form = (amount.power - _SMALLEST) * 2 + amount.is_small
    bits = [0.0 if bit == "1" else 0 for bit in f"{form:0{_FORM_BITS}b}"]
    return {QUANTITY: str(amount.value), _FORM: bits}


def number_of(value: Value) -> Number:
    """The number that is this CEL value; raises ``ValueError``."""
    if QUANTITY not in value:
        raise ValueError("it is no quantity")
    form = int("".join("1" if isinstance(bit, float) else "0" for bit in value[_FORM]), 2)
    return Number(Fraction(value[QUANTITY]), form // 2 + _SMALLEST, is_small=bool(form % 2))


def version(text: str) -> Value:
    """The CEL value of a semantic version, for which its build counts nothing.

    Raises:
        ValueError: it is none.
    """
    version_parts(text)
    return {SEMVER: text.partition("+")[0]}


def normalized(text: str) -> str:
    """A version without a leading v and leading zeros, and with all three numbers if it has one.

    Raises:
        ValueError: it is short, but has words or a build.
    """
    parts = [
        _without_zeros(part) for part in text.removeprefix("v").split(".", _VERSION_NUMBERS - 1)
    ]
    missing = _VERSION_NUMBERS - len(parts)
    if missing and set("+-") & set(parts[-1]):
        raise ValueError("a short version has no words and no build")
    return ".".join([*parts, *["0"] * missing])


def _without_zeros(part: str) -> str:
    return re.sub(r"^0+(?=[0-9])", "", part)


def version_parts(text: str) -> tuple[Any, ...]:
    """The numbers of a semantic version, its words and its build; raises ``ValueError``."""
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no semantic version")
    words = (match[4] or "").split(".")
    if any(word.isdigit() and int(word) not in UINT64 for word in (*match.groups()[:3], *words)):
        raise ValueError(f"{text!r} has a number of more than 64 bits")
    return match.groups()
