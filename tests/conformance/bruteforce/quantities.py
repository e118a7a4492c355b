"""Kubernetes quantities as exact fractions, and the same amounts in other words."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

_GRAMMAR = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:([eE])([+-]?\d+)|([numkMGTPE]|[KMGTPE]i|))")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def amount(text: object) -> Fraction:
    """What a quantity says, exactly.

    Raises:
        ValueError: it is no quantity.
    """
    match = _GRAMMAR.fullmatch(str(text))
    if match is None:
        raise ValueError(f"{text!r} is not a quantity")
    sign, digits, _, exponent, suffix = match.groups()
    value = Fraction(digits if not digits.startswith(".") else f"0{digits}")
    if exponent is not None:
        value *= Fraction(10) ** int(exponent)
    elif suffix in _BINARY:
        value *= 2 ** _BINARY[suffix]
    else:
        value *= Fraction(10) ** _DECIMAL[suffix or ""]
    return -value if sign == "-" else value


def units(resource: str, value: Fraction) -> int:
    """Thousandths of a CPU, whole units of all else; rounded up."""
    return math.ceil(value * 1000 if resource == "cpu" else value)


def in_other_words(text: object, random: Random) -> str:
    """The same amount, written in another way."""
    value = amount(text)
    if value.denominator != 1:
        thousandths = value * 1000
        ways = [f"{thousandths.numerator}m"] if thousandths.denominator == 1 else []
        ways.append(f"{(value * 10**6).numerator}u")
        return random.choice([way for way in ways if way != text] or [str(text)])
    whole = int(value)
    ways = [str(whole), f"{whole}e0", f"{whole}.0", f"{whole * 1000}m"]
    ways += [f"{whole // 2**n}{unit}" for unit, n in _BINARY.items() if whole % 2**n == 0 < whole]
    ways += [
        f"{whole // 10**n}{unit}"
        for unit, n in _DECIMAL.items()
        if n > 0 and whole % 10**n == 0 < whole
    ]
    if whole * 1000 >= 2**63:
        ways.remove(f"{whole * 1000}m")
    return random.choice([way for way in ways if way != str(text)])
