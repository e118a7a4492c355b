"""Requests of a claim that constraints tie together.

A *bundle* has the requests whose devices must have the same value of an attribute. It gets all of
its devices from one node, or none. Source: ``matchAttributeConstraint`` of the allocator of
k8s.io/dynamic-resource-allocation.
"""

import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ...model.devices.claims import AttributeName, DeviceClaim, DeviceRequest, Selection
from ...model.devices.inventory import Device, DeviceClass
from . import requests
from .counters import Uses

Value = Hashable  # of an attribute, with its type; None if the device does not have it


Seen = tuple[int, tuple[Value, ...], Uses]  # of a device: selections, values, counters


class Match(NamedTuple):
    """The devices of these parts of a bundle have one value of an attribute."""

    attribute: AttributeName
    parts: tuple[int, ...]


class Bundle(NamedTuple):
    """What each request of a bundle selects, for how many devices, and what must match."""

    parts: tuple[tuple[Selection, int], ...]
    matches: tuple[Match, ...] = ()

    @property
    def label(self) -> str:
        """For users: the classes and the attributes, and a digest that tells bundles apart."""
        if not self.matches:
            return self.parts[0][0].label
        devices = " + ".join(
            f"{count} {selected.label}" if count > 1 else selected.label
            for selected, count in self.parts
        )
        names = " and ".join(dict.fromkeys(match.attribute.name for match in self.matches))
        digest = hashlib.sha256(repr(self).encode()).hexdigest()[:6]
        return f"{devices} with one {names}#{digest}"


class Divided(NamedTuple):
    """The bundles of a claim, each with its requests, and the requests that are in none."""

    bundles: tuple[tuple[Bundle, tuple[DeviceRequest, ...]], ...]
    loose: tuple[tuple[DeviceRequest, Selection], ...]


def unit(selected: Selection) -> Bundle:
    """One device of a selection, which matches no other."""
    return Bundle(((selected, 1),))


def divided(claim: DeviceClaim, classes: Mapping[str, DeviceClass]) -> Divided:
    """The requests of a claim whose classes exist; constraints that share one tie all of theirs."""
    chosen = list(requests.selections(claim, classes))
    tied: list[set[str]] = []
    for constraint in claim.constraints:
        names = set(constraint.requests or (request.name for request in claim.requests))
        names.update(*(known for known in tied if known & names))
        tied = [known for known in tied if not known & names] + [names]
    bundles = []
    for names in tied:
        own = [pair for pair in chosen if pair[0].name in names]
        at = {request.name: i for i, (request, _) in enumerate(own)}
        matches = (
            Match(
                constraint.attribute,
                tuple(sorted(at[name] for name in (constraint.requests or at) if name in at)),
            )
            for constraint in claim.constraints
            if not constraint.requests or names.issuperset(constraint.requests)
        )
        parts = tuple((selected, request.count) for request, selected in own)
        bundle = Bundle(parts, tuple(sorted(set(matches))))
        bundles.append((bundle, tuple(request for request, _ in own)))
    bound = {name for names in tied for name in names}
    return Divided(tuple(bundles), tuple(pair for pair in chosen if pair[0].name not in bound))


def value(device: Device, attribute: AttributeName) -> Value:
    """The value of an attribute with its type; None if the device does not have it."""
    for known in device.attributes:
        if (known.domain, known.name) == attribute:
            return known.is_version, type(known.value).__name__, known.value
    return None


class Kind(NamedTuple):
    """Equal devices: the selections that they meet, their values, and how many there are.

    Values are numbered for each attribute; -1 stands for a device without the attribute.
    """

    selections: int
    values: tuple[int, ...]
    devices: int
    counters: Uses = ()  # that each consumes


def kinds(devices: Iterable[Seen]) -> tuple[Kind, ...]:
    """The kinds of devices, which have selections, values and counters; alike nodes have the same.

    Only which devices have equal values matters, so values become numbers.
    """
    listed = list(devices)
    width = len(listed[0][1]) if listed else 0
    numbers = [_numbers([(of[0], of[1][i]) for of in listed]) for i in range(width)]
    counted = Counter(
        (mask, tuple(numbers[i][of] for i, of in enumerate(values)), uses)
        for mask, values, uses in listed
    )
    return tuple(Kind(mask, values, n, uses) for (mask, values, uses), n in sorted(counted.items()))


def _numbers(listed: Sequence[tuple[int, Value]]) -> Mapping[Value, int]:
    """A number for each value; values whose devices meet the same selections are neighbours."""
    masks: dict[Value, list[int]] = {}
    for mask, of in listed:
        if of is not None:
            masks.setdefault(of, []).append(mask)
    ranked = sorted(masks, key=lambda of: (sorted(masks[of]), str(of)))
    return {None: -1, **{of: i for i, of in enumerate(ranked)}}
