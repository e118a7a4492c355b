"""What the requests of claims select, and whether a device will do for a selection."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

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


def selection(request: DeviceRequest, classes: Mapping[str, DeviceClass]) -> Selection:
    """What a request selects; requests that select alike have equal selections.

    Raises:
        KeyError: a class does not exist.
    """
    if request.alternatives:
        parts = tuple(selection(part, classes) for part in request.alternatives)
        label = " or ".join(part.label for part in parts)
        return Selection(label, alternatives=parts)
    of_class = classes[request.device_class].selectors
    expressions = tuple(sorted({*of_class, *request.selectors}))
    tolerations = tuple(sorted(set(request.tolerations), key=str))
    label = f"all of {request.device_class}" if request.takes_all else request.device_class
    if tolerations or expressions != tuple(sorted(set(of_class))):
        label += f"#{digest((expressions, tolerations))}"
    return Selection(label, expressions, tolerations, request.takes_all)


def digest(value: object) -> str:
    """A few characters that tell values with different ``repr`` apart, for users."""
    from hashlib import sha256  # noqa: PLC0415 - OpenSSL takes 4 MB, and most plans need none

    return sha256(repr(value).encode()).hexdigest()[:6]


def selections(
    claim: DeviceClaim, classes: Mapping[str, DeviceClass]
) -> Iterator[tuple[DeviceRequest, Selection]]:
    """Each request of a claim whose classes exist, with what it selects.

    Requests with alternatives for several devices select no one thing: see ``plural``.
    """
    for request in claim.requests:
        if not request.is_plural and all(name in classes for name in request.classes):
            yield request, selection(request, classes)


def plural(
    claim: DeviceClaim, classes: Mapping[str, DeviceClass]
) -> Iterator[tuple[DeviceRequest, Sequence[Selection]]]:
    """Each request with alternatives for several devices, with what the alternatives select."""
    for request in claim.requests:
        if request.is_plural and all(name in classes for name in request.classes):
            yield request, [selection(part, classes) for part in request.alternatives]


def problem(claim: DeviceClaim, classes: Mapping[str, DeviceClass]) -> str:
    """Why no devices can be found for a claim before users change something; empty if they can."""
    for request in claim.requests:
        for name in request.classes:
            if name not in classes:
                return f"names device class {name}, which does not exist"
    return ""


def broken_class(claim: DeviceClaim, classes: Mapping[str, DeviceClass]) -> str:
    """Why devices that were chosen for a claim may not be written into it; empty if they may.

    A class of the claim has gone, or it has features by now that Tutti does not support yet.
    """
    if missing := problem(claim, classes):
        return missing
    for name in (name for request in claim.requests for name in request.classes):
        if features := classes[name].unsupported:
            return f"names device class {name}, which has {', '.join(features)} by now"
    return ""


def unsupported(
    claim: DeviceClaim, classes: Mapping[str, DeviceClass], problems: Mapping[str, str]
) -> Iterator[str]:
    """The features of a claim and its classes that Tutti does not support yet.

    ``problems`` says why Tutti cannot evaluate an expression, as far as that is known.
    """
    yield from claim.unsupported
    every = [(request, [selected]) for request, selected in selections(claim, classes)]
    for request, selected in (*every, *plural(claim, classes)):
        for name in request.classes:
            yield from classes[name].unsupported
        for of in selected:
            yield from [why for text in of.texts if (why := problems.get(text))][:1]


def is_met(selected: Selection, device: Device, rules: Collection[TaintRule]) -> bool:
    """Whether a device has no taint that the selection does not tolerate, and meets its CEL."""
    if selected.alternatives:
        return any(is_met(part, device, rules) for part in selected.alternatives)
    return is_untainted(selected, device, rules) and selectors.matches(selected.expressions, device)


def is_untainted(selected: Selection, device: Device, rules: Iterable[TaintRule]) -> bool:
    """Whether a device has no taint that the selection does not tolerate."""
    taints = (*device.taints, *(rule.taint for rule in rules if rule.matches(device.id)))
    return all(is_tolerated(taint, selected.tolerations) for taint in taints)


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
