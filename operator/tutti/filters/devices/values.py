"""The quantities and semantic versions of CEL in Kubernetes.

The engine takes no values of our own types, so each is a map with one key that says its type.
Sources: the Quantity and Semver libraries of k8s.io/apiserver; semver 2.0.0, section 11.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

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
    version_parts(text)
    return {SEMVER: text}


def version_parts(text: str) -> tuple[Any, ...]:
    """The numbers of a semantic version, its words and its build; raises ``ValueError``."""
    found = _VERSION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no semantic version")
    return found.groups()
