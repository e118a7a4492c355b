"""The quantities and semantic versions of CEL in Kubernetes, and the functions on them.

The engine takes no values of our own types, so each is a map with one key that says its type.
Sources: the Quantity and Semver libraries of k8s.io/apiserver; semver 2.0.0, section 11.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from cel_expr_python import cel

QUANTITY, SEMVER = "quantity", "semver"
Value = Mapping[str, Any]

_QUANTITY = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:(m|n|u|k|[KMGTPE]i?)|[eE]([+-]?\d{1,3}))?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Mapping[str, int] = {
    unit: 1024**n for n, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)
}
_NUMBER = r"(?:0|[1-9]\d*)"
_WORD = rf"(?:{_NUMBER}|\d*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_WORD}(?:\.{_WORD})*))?(?:\+([0-9A-Za-z.-]+))?"
)
_INT64 = range(-(2**63), 2**63)


def amount(text: str) -> Fraction | None:
    """The number that a quantity stands for; None if this is no quantity."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return None
    sign, digits, unit, exponent = found.groups()
    number = Fraction(f"{sign}{digits}")
    if unit in _BINARY:
        return number * _BINARY[unit]
    power: int = int(exponent) if exponent else _DECIMAL[unit or ""]
    scale: int = 10 ** abs(power)
    return number * scale if power > 0 else number / scale


def canonical(text: str) -> str:
    """One text for all spellings of a quantity; the text itself if it is none."""
    number = amount(text)
    return text if number is None else str(number)


def quantity(text: str) -> Value:
    """The CEL value of a quantity; raises ``ValueError``."""
    if (number := amount(text)) is None:
        raise ValueError(f"{text!r} is no quantity")
    return {QUANTITY: str(number)}


def version(text: str) -> Value:
    """The CEL value of a semantic version; raises ``ValueError``."""
    if _VERSION.fullmatch(text) is None:
        raise ValueError(f"{text!r} is no semantic version")
    return {SEMVER: text}


def compared(first: Value, second: Value) -> int:
    """-1, 0 or 1: how two quantities or two versions compare; raises ``ValueError``."""
    one, other = _order(first, second), _order(second, first)
    return int(one > other) - int(one < other)


def _order(value: Value, beside: Value) -> Any:
    if QUANTITY in value and QUANTITY in beside:
        return Fraction(value[QUANTITY])
    if SEMVER in value and SEMVER in beside:
        return _precedence(value[SEMVER])
    raise ValueError("only quantities, or only semantic versions, can be compared")


def _precedence(text: str) -> tuple[Any, ...]:
    """The sort key of a version; the build counts for nothing."""
    major, minor, patch, words, _ = _parts(text)
    before = [
        (0, int(word), "") if word.isdigit() else (1, 0, word) for word in (words or "").split(".")
    ]
    return int(major), int(minor), int(patch), words is None, before if words else []


def _parts(text: str) -> tuple[Any, ...]:
    found = _VERSION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no semantic version")
    return found.groups()


def _number(value: Value) -> Fraction:
    if QUANTITY not in value:
        raise ValueError("it is no quantity")
    return Fraction(value[QUANTITY])


def _integer(value: Value) -> int:
    number = _number(value)
    if number.denominator != 1 or number.numerator not in _INT64:
        raise ValueError("it is no whole number of 64 bits")
    return number.numerator


def _is_integer(value: Value) -> bool:
    number = _number(value)
    return number.denominator == 1 and number.numerator in _INT64


def _sum(first: Value, second: Value | int, sign: int = 1) -> Value:
    added = Fraction(second) if isinstance(second, int) else _number(second)
    return {QUANTITY: str(_number(first) + sign * added)}


def _sign(value: Value) -> int:
    number = _number(value)
    return (number > 0) - (number < 0)


def _functions() -> Iterator[cel.FunctionDecl]:
    kind = cel.Type
    text, whole, truth, value = kind.STRING, kind.INT, kind.BOOL, kind.MAP

    def of(name: str, *overloads: tuple[list[cel.Type], cel.Type, Callable[..., Any]]) -> Any:
        made = [
            cel.Overload(
                f"tutti_{name}_{i}",
                return_type=result,
                parameters=parameters,
                is_member=parameters[0] == value,
                impl=implementation,
            )
            for i, (parameters, result, implementation) in enumerate(overloads)
        ]
        return cel.FunctionDecl(name, made)

    yield of("quantity", ([text], value, quantity))
    yield of("isQuantity", ([text], truth, lambda t: amount(t) is not None))
    yield of("semver", ([text], value, version))
    yield of("isSemver", ([text], truth, lambda t: _VERSION.fullmatch(t) is not None))
    yield of("compareTo", ([value, value], whole, compared))
    yield of("isLessThan", ([value, value], truth, lambda a, b: compared(a, b) < 0))
    yield of("isGreaterThan", ([value, value], truth, lambda a, b: compared(a, b) > 0))
    yield of("sign", ([value], whole, _sign))
    yield of("asInteger", ([value], whole, _integer))
    yield of("isInteger", ([value], truth, _is_integer))
    yield of("asApproximateFloat", ([value], kind.DOUBLE, lambda v: float(_number(v))))
    yield of("add", ([value, value], value, _sum), ([value, whole], value, _sum))
    yield of(
        "sub",
        ([value, value], value, lambda a, b: _sum(a, b, -1)),
        ([value, whole], value, lambda a, b: _sum(a, b, -1)),
    )
    for i, name in enumerate(("major", "minor", "patch")):
        yield of(name, ([value], whole, lambda v, i=i: int(_parts(v.get(SEMVER, ""))[i])))


FUNCTIONS = tuple(_functions())
