"""Selectors of devices, read a second time so that the judge shares no error.

Only the forms that scenes of tests use are read; any other raises, so that nothing passes unread.
"""

import re
from collections.abc import Mapping
from typing import Any

from .quantities import amount

_DRIVER = re.compile(r'device\.driver == "([^"]*)"')
_ATTRIBUTE = re.compile(r'device\.attributes\["([^"]*)"\]\.(\w+) == "([^"]*)"')
_CAPACITY = re.compile(
    r'device\.capacity\["([^"]*)"\]\.(\w+)\.compareTo\(quantity\("([^"]*)"\)\) (>=|>|==|<|<=) 0'
)
# By operator, the signs of a difference for which it holds.
_SIGNS = {">=": (0, 1), ">": (1,), "==": (0,), "<": (-1,), "<=": (-1, 0)}


def selects(expression: str, driver: str, device: Mapping[str, Any]) -> bool:
    """Whether an expression selects a device of a driver, as a slice lists it.

    Raises:
        ValueError: the expression has a form that is not read here.
    """
    held = [_holds(part.strip(), driver, device) for part in expression.split("&&")]
    return all(held)


def _holds(text: str, driver: str, device: Mapping[str, Any]) -> bool:
    if match := _DRIVER.fullmatch(text):
        return match[1] == driver
    if match := _ATTRIBUTE.fullmatch(text):
        listed = _listed(device, "attributes", driver, match[1], match[2])
        return listed is not None and match[3] in (listed.get("string"), listed.get("version"))
    if match := _CAPACITY.fullmatch(text):
        listed = _listed(device, "capacity", driver, match[1], match[2])
        if listed is None:
            return False
        there, wanted = amount(str(listed["value"])), amount(match[3])
        return (there > wanted) - (there < wanted) in _SIGNS[match[4]]
    raise ValueError(f"the judge reads no selector like {text!r}")


def _listed(
    device: Mapping[str, Any], field: str, driver: str, domain: str, name: str
) -> Mapping[str, Any] | None:
    """An attribute or a capacity; the driver is the domain of a name without one."""
    listed = device.get(field) or {}
    answer: Mapping[str, Any] | None = listed.get(f"{domain}/{name}")
    return listed.get(name) if answer is None and domain == driver else answer
