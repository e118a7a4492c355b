"""Kubernetes quantities as exact integers, rounded up; quantities of quotas are rounded down.

The grammar and the resolution of one nano are from
k8s.io/apimachinery/pkg/api/resource/quantity.go. There, amounts above 2^63-1 are undefined; here
they are capped. The amounts of nodes are rounded up, too, by less than a milli-CPU or a byte, as in
kube-scheduler and the kubelets that admit pods. Any other rounding would over-commit a node, or
waste room.
"""

import re
from functools import lru_cache

LARGEST = 2**63 - 1
CPU = "cpu"  # the only resource that is counted in thousandths
MILLION, BILLION = 10**6, 10**9

_NANO = 9  # decimal places
_LENGTH_LIMIT = 500  # the API server prints at most about 30 characters
_BEYOND = 40  # a power of ten far above LARGEST
_GRAMMAR = re.compile(
    r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:([numkMGTPE])|([KMGTPE]i)|[eE]([+-]?[0-9]+))?",
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


class QuantityError(ValueError):
    """A text that is not a Kubernetes quantity, or a request that is negative."""


def requested(name: str, quantity: object) -> int:
    """A request, rounded up: milli-CPU for ``cpu``, else whole units."""
    return rounded_up(name, nanos(quantity))


def offered(name: str, quantity: object) -> int:
    """The amount of a node, rounded up as in kube-scheduler and kubelets, and at least 0."""
    return max(0, rounded_up(name, _exactly(_written(quantity))))


def granted(name: str, quantity: object) -> int:
    """The amount of a quota, rounded down: milli-CPU for ``cpu``, else whole units."""
    return min(nanos(quantity) // _unit(name), LARGEST)


def as_text(name: str, amount: int) -> str:
    """An amount as a Kubernetes quantity: milli-CPU for ``cpu``, else whole units."""
    return f"{amount}m" if name == CPU else str(amount)


def nanos(quantity: object) -> int:
    """A requested amount in billionths, rounded up, so that sums are exact as in Kubernetes."""
    return _nonnegative(quantity if isinstance(quantity, str) else _written(quantity))


def rounded_up(name: str, amount: int) -> int:
    """Billionths as milli-CPU for ``cpu``, else as whole units, rounded up."""
    return min(-(-amount // _unit(name)), LARGEST)


def _unit(name: str) -> int:
    return MILLION if name == CPU else BILLION


def _written(quantity: object) -> str:
    """A quantity as text; hand-written manifests and custom resources may have numbers."""
    if isinstance(quantity, str):
        return quantity
    if isinstance(quantity, bool) or not isinstance(quantity, int | float):
        raise QuantityError(f"a quantity is text or a number, not {type(quantity).__name__}")
    if isinstance(quantity, int) and abs(quantity) > LARGEST:
        return f"{'-' if quantity < 0 else ''}{LARGEST}"  # str() of a huge integer raises
    return repr(quantity)


@lru_cache(maxsize=65536)
def _nonnegative(text: str) -> int:
    amount = _exactly(text)
    if amount < 0:
        raise QuantityError(f"the quantity {text} is negative")
    return amount


def _exactly(text: str) -> int:
    """Read a quantity as billionths, rounded up."""
    match = _GRAMMAR.fullmatch(text) if len(text) <= _LENGTH_LIMIT else None
    if match is None:
        excerpt = text if len(text) <= 40 else text[:40] + "…"  # noqa: PLR2004 - enough to find it
        raise QuantityError(f"{excerpt!r} is not a quantity such as 500m, 2 or 1.5Gi")
    sign, number, decimal, binary, exponent = match.groups()
    whole, _, fraction = number.partition(".")
    mantissa = int(whole + fraction)
    power = _NANO - len(fraction)
    power += _DECIMAL[decimal] if decimal else int(exponent or 0)
    if binary:
        mantissa <<= _BINARY[binary]
    if sign == "-":
        mantissa = -mantissa
    return _scaled(mantissa, power)


def _scaled(mantissa: int, power: int) -> int:
    """Multiply by a power of ten, which may be huge; the result is capped before it grows."""
    largest = LARGEST * BILLION
    if mantissa == 0:
        return 0
    if power >= 0:
        amount = mantissa * int(10 ** min(power, _BEYOND))
    else:
        # Beyond the digits of the mantissa, all divisors give the same result: 0, or 1 rounded up.
        divisor = int(10 ** min(-power, len(str(abs(mantissa))) + 1))
        amount = -(-mantissa // divisor)
    return max(-largest, min(amount, largest))
