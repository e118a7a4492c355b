"""The environment of CEL selectors in Kubernetes: functions on quantities and versions.

It loads the CEL engine, which takes memory and time that only clusters with devices should pay.
Sources: ``cel`` of k8s.io/dynamic-resource-allocation; the Quantity and Semver libraries of
k8s.io/apiserver; semver 2.0.0, section 11.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext.ext_bindings import ExtBindings
from cel_expr_python.ext.ext_optional import ExtOptional
from cel_expr_python.ext.ext_strings import ExtStrings

from .values import (
    INT64,
    QUANTITY,
    SEMVER,
    Number,
    Value,
    added,
    normalized,
    number,
    number_of,
    quantity,
    value_of,
    version,
    version_parts,
)

_OURS = "tutti_"  # before the names of functions that replace those of the engine
MOST_CHARACTERS = 65_536  # of a text that replace or join makes, or that is split
_WHOLE = re.compile(r"[+-]?[0-9]+")
_TRUTHS = {"1", "t", "T", "TRUE", "true", "True"}
_FALSEHOODS = {"0", "f", "F", "FALSE", "false", "False"}


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


def _integer(value: Value) -> int:
    if not _is_integer(value):
        raise ValueError("it is no whole number of 64 bits")
    return number_of(value).value.numerator


def _is_integer(value: Value) -> bool:
    kept = number_of(value)
    return kept.is_small and kept.power >= 0 and kept.value.numerator in INT64


def _float(value: Value) -> float:
    """With the rounding of kube-scheduler, whose digits are a float before their power counts."""
    kept = number_of(value)
    digits = float(kept.value / Fraction(10) ** kept.power)
    return digits * float(f"1e{kept.power}") if kept.power else digits


def _sum(first: Value, second: Value | int, sign: int = 1) -> Value:
    if isinstance(second, int):
        other = Number(Fraction(second), 0, is_small=True)
    else:
        other = number_of(second)
    return value_of(added(number_of(first), other._replace(value=sign * other.value)))


def _sign(value: Value) -> int:
    amount = number_of(value).value
    return (amount > 0) - (amount < 0)


def _version(text: str, normalize: object) -> Value:
    return version(normalized(text) if normalize else text)


def _is_version(text: str, *normalize: object) -> bool:
    try:
        _version(text, any(normalize))
    except ValueError:
        return False
    return True


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise ValueError("it has no such substring")
    return text[start:end]


def _replaced(text: str, old: str, new: str, most: int = -1) -> str:
    """A few characters can ask for a text of gigabytes."""
    count = text.count(old)
    count = min(count, most) if most >= 0 else count
    if len(text) + count * (len(new) - len(old)) > MOST_CHARACTERS:
        raise ValueError("the text is too long")
    return text.replace(old, new, count)


def _split(text: str, separator: str, most: int = -1) -> Sequence[str]:
    if len(text) > MOST_CHARACTERS:
        raise ValueError("the text is too long")
    if most == 0:
        return []
    if separator:
        return text.split(separator, most - 1 if most > 0 else -1)
    pieces = list(text)
    return pieces if most < 0 or len(pieces) <= most else [*pieces[: most - 1], text[most - 1 :]]


def _joined(texts: Sequence[str], separator: str = "") -> str:
    if sum(map(len, texts)) + len(separator) * len(texts) > MOST_CHARACTERS:
        raise ValueError("the text is too long")
    return separator.join(texts)


def _bool(text: str) -> bool:
    if text not in _TRUTHS | _FALSEHOODS:
        raise ValueError(f"{text!r} is no bool")
    return text in _TRUTHS


def _int(value: float | str | datetime) -> int:
    if isinstance(value, str):
        if not _WHOLE.fullmatch(value):
            raise ValueError(f"{value!r} is no int")
        whole = int(value)
    else:
        whole = int(value.timestamp() // 1 if isinstance(value, datetime) else value)
    if whole not in INT64 or (isinstance(value, float) and whole == INT64[0]):  # as in cel-go
        raise ValueError("it is no int of 64 bits")
    return whole


def _functions() -> Iterator[cel.FunctionDecl]:
    kind = cel.Type
    text, whole, truth, value = kind.STRING, kind.INT, kind.BOOL, kind.MAP

    def of(name: str, *overloads: tuple[list[cel.Type], cel.Type, Callable[..., Any]]) -> Any:
        return declared(name, overloads, [types[0] == value for types, _, _ in overloads])

    def declared(name: str, overloads: Any, members: list[bool]) -> Any:
        made = [
            cel.Overload(
                f"tutti_{name}_{i}",
                return_type=result,
                parameters=parameters,
                is_member=is_member,
                impl=implementation,
            )
            for i, ((parameters, result, implementation), is_member) in enumerate(
                zip(overloads, members, strict=True)
            )
        ]
        return cel.FunctionDecl(name, made)

    yield of("quantity", ([text], value, quantity))
    yield of("isQuantity", ([text], truth, lambda t: number(t) is not None))
    yield of("semver", ([text], value, version), ([text, truth], value, _version))
    yield of("isSemver", ([text], truth, _is_version), ([text, truth], truth, _is_version))
    yield of("compareTo", ([value, value], whole, compared))
    yield of("isLessThan", ([value, value], truth, lambda a, b: compared(a, b) < 0))
    yield of("isGreaterThan", ([value, value], truth, lambda a, b: compared(a, b) > 0))
    yield declared("sign", [([value], whole, _sign)], [False])  # as Kubernetes declares it
    yield of("asInteger", ([value], whole, _integer))
    yield of("isInteger", ([value], truth, _is_integer))
    yield of("asApproximateFloat", ([value], kind.DOUBLE, _float))
    yield of("add", ([value, value], value, _sum), ([value, whole], value, _sum))
    yield of(
        "sub",
        ([value, value], value, lambda a, b: _sum(a, b, -1)),
        ([value, whole], value, lambda a, b: _sum(a, b, -1)),
    )
    for i, name in enumerate(("major", "minor", "patch")):
        yield of(name, ([value], whole, lambda v, i=i: int(version_parts(v.get(SEMVER, ""))[i])))
    substring = [([text, whole], text, _substring), ([text, whole, whole], text, _substring)]
    yield declared(f"{_OURS}substring", substring, [True, True])
    replace = [([text] * 3, text, _replaced), ([text] * 3 + [whole], text, _replaced)]
    yield declared(f"{_OURS}replace", replace, [True, True])
    split = [([text] * 2, kind.LIST, _split), ([text] * 2 + [whole], kind.LIST, _split)]
    yield declared(f"{_OURS}split", split, [True, True])
    join = [([kind.LIST], text, _joined), ([kind.LIST, text], text, _joined)]
    yield declared(f"{_OURS}join", join, [True, True])
    yield of(f"{_OURS}bool", ([text], truth, _bool), ([truth], truth, lambda t: t))
    numbers = (whole, kind.UINT, kind.DOUBLE, text, kind.TIMESTAMP)  # no bool, as in cel-go
    yield of(f"{_OURS}int", *(([each], whole, _int) for each in numbers))
    milliseconds = [
        ([kind.DURATION], whole, lambda of: int(of / timedelta(milliseconds=1))),  # towards zero
        ([kind.TIMESTAMP], whole, lambda of: of.microsecond // 1000),
        ([kind.TIMESTAMP, text], whole, lambda of, _zone: of.microsecond // 1000),
    ]
    yield declared(f"{_OURS}getMilliseconds", milliseconds, [True, True, True])
