"""Quantities and effective requests, written a second time so that the judge shares no error.

Amounts are whole billionths, the finest that Kubernetes writes, so that sums are exact.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from .history import Body

Amounts = dict[str, int]

NANO = 10**9
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_PATTERN = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+)|([A-Za-z]{0,2}))")
POD_LEVEL = ("cpu", "memory", "hugepages-")


@lru_cache(maxsize=65536)
def amount(text: str) -> int:
    """Read ``500m`` or ``1.5Gi`` as billionths, rounded away from zero."""
    match = _PATTERN.fullmatch(text.strip())
    if match is None or not (match[2] or match[3]):
        raise ValueError(f"{text!r} is not a quantity")
    sign, whole, fraction, exponent, suffix = match.groups()
    digits = int((whole or "0") + (fraction or ""))
    tens = 9 - len(fraction or "")
    if exponent:
        tens += int(exponent)
    elif suffix in _BINARY:
        digits <<= _BINARY[suffix]
    elif suffix in _DECIMAL:
        tens += _DECIMAL[suffix]
    else:
        raise ValueError(f"{text!r} is not a quantity: no suffix {suffix!r}")
    nanos: int = digits * 10**tens if tens >= 0 else -(-digits // 10**-tens)
    return -nanos if sign == "-" else nanos


def amounts(quantities: Mapping[str, Any] | None) -> Amounts:
    """Read a list of resources."""
    return {name: amount(str(value)) for name, value in (quantities or {}).items()}


def format_amount(nanos: int) -> str:
    """Write an amount for people."""
    whole, rest = divmod(abs(nanos), NANO)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{'-' if nanos < 0 else ''}{whole}{fraction}"


def effective_requests(spec: Body) -> Amounts:
    """Say what a pod takes of a node: its containers, its init phase, its overhead, one pod.

    Init containers run one after another, each beside the sidecars started before it.
    """
    running = _sum(_requests(container) for container in spec.get("containers", ()))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers", ()):
        requests = _requests(container)
        if container.get("restartPolicy") == "Always":
            sidecars = _sum((sidecars, requests))
            peak = _most((peak, sidecars))
        else:
            peak = _most((peak, _sum((sidecars, requests))))
    total = _most((_sum((running, sidecars)), peak))
    pod_level = amounts((spec.get("resources") or {}).get("requests"))
    total |= {name: value for name, value in pod_level.items() if name.startswith(POD_LEVEL)}
    return _sum((total, amounts(spec.get("overhead")), {"pods": NANO}))


def _requests(container: Body) -> Amounts:
    return amounts((container.get("resources") or {}).get("requests"))


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0) + value
    return total


def _most(parts: Sequence[Amounts]) -> Amounts:
    names = {name for part in parts for name in part}
    return {name: max(part.get(name, 0) for part in parts) for name in names}
