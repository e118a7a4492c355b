"""What the requests of claims select, and whether a device will do for a selection."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from ...model.devices.claims import DeviceClaim, DeviceRequest, Selection
from ...model.devices.inventory import (
    Device,
    DeviceClass,
    DeviceTaint,
    DeviceToleration,
    TaintRule,
)
from . import selectors

HARD_EFFECTS = ("NoSchedule", "NoExecute")


def selection(request: DeviceRequest, device_class: DeviceClass) -> Selection:
    """What a request selects; requests that select alike have equal selections."""
    expressions = tuple(sorted({*device_class.selectors, *request.selectors}))
    tolerations = tuple(sorted(set(request.tolerations), key=str))
    label = request.device_class
    if tolerations or expressions != tuple(sorted(set(device_class.selectors))):
        words = repr((expressions, tolerations)).encode()
        label += f"#{hashlib.sha256(words).hexdigest()[:6]}"
    return Selection(label, expressions, tolerations)


def selections(
    claim: DeviceClaim, classes: Mapping[str, DeviceClass]
) -> Iterator[tuple[DeviceRequest, Selection]]:
    """Each request of a claim whose class exists, with what it selects."""
    for request in claim.requests:
        if (device_class := classes.get(request.device_class)) is not None:
            yield request, selection(request, device_class)


def problem(claim: DeviceClaim, classes: Mapping[str, DeviceClass]) -> str:
    """Why no devices can be found for a claim before users change something; empty if they can."""
    for request in claim.requests:
        if request.device_class not in classes:
            return f"names device class {request.device_class}, which does not exist"
    return ""


def unsupported(claim: DeviceClaim, classes: Mapping[str, DeviceClass]) -> Iterator[str]:
    """The features of a claim and its classes that Tutti does not support yet."""
    yield from claim.unsupported
    for request, selected in selections(claim, classes):
        yield from classes[request.device_class].unsupported
        yield from filter(None, [selectors.problem(selected.expressions)])


def is_met(selected: Selection, device: Device, rules: Iterable[TaintRule]) -> bool:
    """Whether a device has no taint that the selection does not tolerate, and meets its CEL."""
    taints = (*device.taints, *(rule.taint for rule in rules if rule.matches(device.id)))
    if not all(is_tolerated(taint, selected.tolerations) for taint in taints):
        return False
    return selectors.matches(selected.expressions, device)


def is_tolerated(taint: DeviceTaint, tolerations: Iterable[DeviceToleration]) -> bool:
    """Whether the taint keeps no device from a request with these tolerations."""
    return taint.effect not in HARD_EFFECTS or any(
        toleration.effect in ("", taint.effect)
        and toleration.key in ("", taint.key)
        and (
            toleration.operator == "Exists"
            or (toleration.operator == "Equal" and toleration.value == taint.value)
        )
        for toleration in tolerations
    )
