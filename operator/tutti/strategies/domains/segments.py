"""Segments by counting: how many members domains hold in segments, and which domains take them.

A gang of N members in segments of S has ⌊N / S⌋ whole segments and a short one of N mod S.
"""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from ..problem import Segments, Share
from ..shape_demand import Array


def by_domain(domain: Array, counts: Array) -> Array:
    """[domain]: the sum of the counts of its nodes."""
    size = int(domain.max(initial=-1)) + 1
    return np.bincount(domain + 1, counts, size + 1)[1:].astype(np.int64)


def most_members(rooms: Array, size: int) -> int:
    """How many members of one shape domains with these rooms hold in segments of one gang.

    This is exact for members of one shape: each domain holds whole segments, and one domain a
    short segment in the room that is left.
    """
    return int((rooms - rooms % size).sum() + (rooms % size).max(initial=0))


def are_whole(domain: Array, own: Segments, shares: Iterable[Share]) -> bool:
    """Whether these members are in segments of full size, all but one, in one domain each."""
    members = Counter[int]()
    for share in shares:
        if share.part in own.parts:
            members[int(domain[share.node])] += share.count
    return -1 not in members and sum(n % own.size > 0 for n in members.values()) <= 1


def domains_for_short(rooms: Array, size: int, short: int) -> list[int]:
    """The domains with room for a short segment, the best first.

    Those come first that have room for it beside whole segments, with least room to spare.
    """
    enough = np.flatnonzero(rooms >= short)
    rest = rooms[enough] % size
    order = np.lexsort((rooms[enough], rest, rest < short))
    return [int(number) for number in enough[order]]


def domains_for_whole(rooms: Array, size: int) -> list[int]:
    """The domains with room for a whole segment, those with the least room first."""
    enough = np.flatnonzero(rooms >= size)
    return [int(number) for number in enough[np.argsort(rooms[enough], kind="stable")]]
