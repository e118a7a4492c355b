"""The environment of CEL selectors in Kubernetes: functions on quantities and versions.

It loads the CEL engine, which takes memory and time that only clusters with devices should pay.
Sources: ``cel`` of k8s.io/dynamic-resource-allocation; the Quantity and Semver libraries of
k8s.io/apiserver; semver 2.0.0, section 11.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext.ext_bindings import ExtBindings
from cel_expr_python.ext.ext_optional import ExtOptional
from cel_expr_python.ext.ext_strings import ExtStrings

from .values import QUANTITY, SEMVER, Value, amount, quantity, version, version_parts

_INT64 = range(-(2**63), 2**63)


def environment() -> cel.Env:
    """An environment with one variable, ``device``."""
    libraries = [ExtStrings(), ExtBindings(), ExtOptional()]
    return cel.NewEnv(
        variables={"device": cel.Type.DYN}, extensions=libraries, functions=[*_functions()]
    )


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
    major, minor, patch, words, _ = version_parts(text)
    before = [
        (0, int(word), "") if word.isdigit() else (1, 0, word) for word in (words or "").split(".")
    ]
    return int(major), int(minor), int(patch), words is None, before if words else []


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


def _is_version(text: str) -> bool:
    try:
        version_parts(text)
    except ValueError:
        return False
    return True


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
    yield of("isSemver", ([text], truth, _is_version))
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
        yield of(name, ([value], whole, lambda v, i=i: int(version_parts(v.get(SEMVER, ""))[i])))
