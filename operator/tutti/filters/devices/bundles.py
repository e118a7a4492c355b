"""Requests of a claim that constraints tie together.

A *bundle* has the requests whose devices must have the same value of an attribute, or different
ones. It gets all of its devices from one node, or none. A constraint may be for some alternatives
of a request: these are an *option* of the bundle, and the others are another. Sources:
``matchAttributeConstraint`` and ``distinctAttributeConstraint`` of the allocator of
k8s.io/dynamic-resource-allocation.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...model.devices.claims import (
    AttributeConstraint,
    AttributeName,
    DeviceClaim,
    DeviceRequest,
    Selection,
)
from ...model.devices.inventory import Device, DeviceClass
from . import requests
from .counters import Uses

Value = Hashable  # of an attribute, with its type; None if the device does not have it
MOST_NAMED = 8  # requests of a bundle, for users
OF_STAND_IN: Value = "stand-in"  # the value of all attributes of a device that does not exist

Seen = tuple[int, tuple[Value, ...], Uses]  # of a device: selections, values, counters


class Constraint(NamedTuple):
    """The devices of these options have one value of an attribute, or each another."""

    attribute: AttributeName
    options: tuple[int, ...]
    is_distinct: bool = False


class Bundle(NamedTuple):
    """What each request of a bundle selects, for how many devices, and the constraints.

    ``options`` has the part and the selection of each option; without any, each part is one. A
    bundle with ``alternatives`` has nothing else: it gets what one of them selects.
    """

    parts: tuple[tuple[Selection, int], ...]
    constraints: tuple[Constraint, ...] = ()
    options: tuple[tuple[int, Selection], ...] = ()
    alternatives: tuple[tuple[Selection, int], ...] = ()  # the most wanted first

    @property
    def answers(self) -> Sequence[tuple[int, Selection]]:
        """The options of all parts; of a bundle with alternatives, these."""
        if self.alternatives:
            return [(0, selected) for selected, _ in self.alternatives]
        return self.options or [(part, selected) for part, (selected, _) in enumerate(self.parts)]

    @property
    def selections(self) -> Iterator[Selection]:
        """The selections of its parts, their options and its alternatives."""
        yield from (selected for selected, _ in (*self.parts, *self.alternatives))
        yield from (selected for _, selected in self.options)

    @property
    def label(self) -> str:
        """For users: the classes and the attributes, and a digest that tells bundles apart."""
        if self.alternatives:
            return " or ".join(_counted(*part) for part in self.alternatives)
        if not self.constraints:
            return self.parts[0][0].label
        devices = [_counted(*part) for part in self.parts[:MOST_NAMED]]
        if (unnamed := len(self.parts) - MOST_NAMED) > 0:
            devices.append(f"{unnamed} more requests")
        wanted = dict.fromkeys(
            f"{'different' if of.is_distinct else 'one'} {of.attribute.name}"
            for of in self.constraints
        )
        return f"{' + '.join(devices)} with {' and '.join(wanted)}#{requests.digest(self)}"


class ClaimBundle(NamedTuple):
    """A bundle of a claim, its requests, and the names that devices of each option may be for.

    The names are in the order of the alternatives of the option.
    """

    bundle: Bundle
    requests: tuple[DeviceRequest, ...]
    names: tuple[tuple[str, ...], ...]


class Divided(NamedTuple):
    """The bundles of a claim, and the requests that are in none."""

    bundles: tuple[ClaimBundle, ...]
    loose: tuple[tuple[DeviceRequest, Selection], ...]


def unit(selected: Selection) -> Bundle:
    """One device of a selection, which matches no other."""
    return Bundle(((selected, 1),))


def _counted(selected: Selection, count: int) -> str:
    return f"{count} {selected.label}" if count > 1 else selected.label


def divided(claim: DeviceClaim, classes: Mapping[str, DeviceClass]) -> Divided:
    """The requests of a claim whose classes exist; constraints that share one tie all of theirs.

    A request with an alternative for several devices is a bundle of its own.
    """
    chosen = list(requests.selections(claim, classes))
    tied: list[set[str]] = []
    for constraint in claim.constraints:
        names = _tied_by(constraint, claim)
        names.update(*(known for known in tied if known & names))
        tied = [known for known in tied if not known & names] + [names]
    bound = {name for names in tied for name in names}
    together = (
        _bundle(own, [of for of in claim.constraints if _tied_by(of, claim) <= names], classes)
        for names in tied
        if (own := [pair for pair in chosen if pair[0].name in names])
    )
    alone = (_of_alternatives(*of) for of in requests.plural(claim, classes))
    return Divided((*together, *alone), tuple(pair for pair in chosen if pair[0].name not in bound))


def _of_alternatives(request: DeviceRequest, selected: Sequence[Selection]) -> ClaimBundle:
    """The bundle of a request with an alternative for several devices."""
    counts = (part.count for part in request.alternatives)
    bundle = Bundle((), alternatives=tuple(zip(selected, counts, strict=True)))
    return ClaimBundle(bundle, (request,), tuple((name,) for name, _ in request.by_name()))


def selections(claim: DeviceClaim, classes: Mapping[str, DeviceClass]) -> Iterator[Selection]:
    """What the requests of a claim whose classes exist select, and the options of its bundles."""
    yield from (selected for _, selected in requests.selections(claim, classes))
    for of in divided(claim, classes).bundles:
        yield from of.bundle.selections


def _tied_by(constraint: AttributeConstraint, claim: DeviceClaim) -> set[str]:
    """The names of the requests that a constraint is for, or some alternatives of them."""
    named = constraint.requests or tuple(request.name for request in claim.requests)
    return {name.split("/")[0] for name in named}


def _bundle(
    own: Sequence[tuple[DeviceRequest, Selection]],
    constraints: Sequence[AttributeConstraint],
    classes: Mapping[str, DeviceClass],
) -> ClaimBundle:
    """The bundle of these requests; alternatives with the same constraints are one option."""
    options: list[tuple[int, Selection]] = []
    names: list[tuple[str, ...]] = []
    bound: dict[int, list[int]] = {i: [] for i in range(len(constraints))}
    for part, (request, selected) in enumerate(own):
        groups: dict[tuple[bool, ...], list[tuple[str, DeviceRequest]]] = {}
        for name, alternative in request.by_name():
            covered = tuple(constraint.covers(name) for constraint in constraints)
            groups.setdefault(covered, []).append((name, alternative))
        for covered, group in groups.items():
            for i in bound:
                bound[i] += [len(options)] if covered[i] else []
            some = replace(request, alternatives=tuple(of for _, of in group))
            options.append(
                (part, selected if len(groups) == 1 else requests.selection(some, classes))
            )
            names.append(tuple(name for name, _ in group))
    parts = tuple((selected, request.count) for request, selected in own)
    rules = {
        Constraint(of.attribute, tuple(bound[i]), of.is_distinct)
        for i, of in enumerate(constraints)
    }
    is_simple = len(options) == len(parts)
    bundle = Bundle(parts, tuple(sorted(rules)), () if is_simple else tuple(options))
    return ClaimBundle(bundle, tuple(request for request, _ in own), tuple(names))


def value(device: Device, attribute: AttributeName) -> Value:
    """The value of an attribute with its type; None if the device does not have it."""
    for known in device.attributes:
        if (known.domain, known.name) == attribute:
            return known.is_version, type(known.value).__name__, known.value
    return None


class Kind(NamedTuple):
    """Equal devices: the selections that they meet, their values, and how many there are.

    Values are numbered for each attribute; -1 stands for a device without the attribute, and -2 for
    one that does not exist.
    """

    selections: int
    values: tuple[int, ...]
    devices: int
    counters: Uses = ()  # that each consumes
    stacks: tuple[int, ...] = ()  # with a value of its own each: see ``cells``


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
        if of not in (None, OF_STAND_IN):
            masks.setdefault(of, []).append(mask)
    ranked = sorted(masks, key=lambda of: (sorted(masks[of]), str(of)))
    return {None: -1, OF_STAND_IN: -2, **{of: i for i, of in enumerate(ranked)}}
