"""The ways to choose devices of a node for one bundle, so that they match."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .bundles import Kind

MOST_STEPS = 20_000  # choices of devices that are tried on one node
MISSING = -1  # the number of the value that a device does not have

Way = tuple[int, ...]  # the kind of each device of a bundle, part after part


class Want(NamedTuple):
    """A bundle: the index of the selection and the count of each part, and what must match.

    Each match has the index of the attribute, and its parts.
    """

    parts: tuple[tuple[int, int], ...]
    matches: tuple[tuple[int, tuple[int, ...]], ...] = ()


class NoLimitsError(Exception):
    """There are too many ways, or no limits say which numbers of bundles fit; it says which."""


def ways(want: Want, kinds: Sequence[Kind], left: Sequence[int]) -> Iterator[Way]:
    """Each choice of devices for a bundle, of which ``left`` are there; equal devices count once.

    Raises:
        NoLimitsError: there are too many.
    """
    slots = [part for part, (_, count) in enumerate(want.parts) for _ in range(count)]
    matches = [
        [(i, attribute) for i, (attribute, parts) in enumerate(want.matches) if part in parts]
        for part in range(len(want.parts))
    ]
    remaining, chosen, values = list(left), list[int](), dict[int, int]()
    steps = 0

    def extended() -> Iterator[Way]:
        nonlocal steps
        steps += 1
        if steps > MOST_STEPS:
            raise NoLimitsError(f"more than {MOST_STEPS} ways to choose devices of a node")
        at = len(chosen)
        if at == len(slots):
            yield tuple(chosen)
            return
        part = slots[at]
        first = chosen[-1] if at and slots[at - 1] == part else 0
        for kind in range(first, len(kinds)):
            known = [(i, kinds[kind].values[attribute]) for i, attribute in matches[part]]
            if (
                remaining[kind]
                and kinds[kind].selections >> want.parts[part][0] & 1
                and all(of == values.get(i, of) != MISSING for i, of in known)
            ):
                new = [(i, of) for i, of in known if i not in values]
                values.update(new)
                remaining[kind] -= 1
                chosen.append(kind)
                yield from extended()
                chosen.pop()
                remaining[kind] += 1
                for i, _ in new:
                    del values[i]

    return extended()
