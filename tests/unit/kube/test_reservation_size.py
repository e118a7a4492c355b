"""A Reservation that could not be stored is refused before it is sent, in a sentence."""

import json
from bisect import bisect_left

import pytest

from tutti.kube import encode, errors
from tutti.model.cluster import Entry, Reservation
from tutti.model.keys import GangKey, NodeName, PodKey, Uid

LONGEST = 253  # characters of a pod's or a node's name


def held(members: int, *, per_node: int, name: int) -> Reservation:
    """A Reservation of so many members, whose names have this length."""
    return Reservation(
        gang=GangKey("ml", "train"),
        uid=Uid("u" * 36),
        generation=1,
        term="tutti-0/1",
        reserved_at=0.0,
        entries=tuple(
            Entry(
                PodKey("ml", f"p{i}-".ljust(name, "x")),
                Uid(f"{i}-".ljust(36, "0")),
                NodeName(f"n{i // per_node}-".ljust(name, "x")),
            )
            for i in range(members)
        ),
    )


def test_the_largest_gang_of_the_longest_names_is_refused_with_size_limit_and_advice() -> None:
    with pytest.raises(errors.Refused) as refused:
        encode.reservation(held(5000, per_node=1, name=LONGEST))
    sentence = str(refused.value)
    assert sentence.startswith("the Reservation of 5,000 members would take 2,")
    assert sentence.endswith(
        "bytes, and at most 1,500,000 can be stored: use shorter pod names or a smaller gang"
    )


def test_the_largest_gang_of_ordinary_names_can_be_stored() -> None:
    body = encode.reservation(held(5000, per_node=1, name=63))
    assert len(json.dumps(body)) < encode.RESERVATION_LIMIT


def test_a_reservation_is_taken_up_to_the_limit_and_refused_beyond_it() -> None:
    sizes = range(4000, 5001)
    beyond = sizes[bisect_left(sizes, x=True, key=is_refused)]
    body = encode.reservation(held(beyond - 1, per_node=100, name=LONGEST))
    spare = encode.RESERVATION_LIMIT - len(json.dumps(body, separators=(",", ":")))
    assert 0 <= spare < 2 * (LONGEST + 100)


def is_refused(members: int) -> bool:
    """Whether a Reservation of so many members with long names is not even sent."""
    try:
        encode.reservation(held(members, per_node=100, name=LONGEST))
    except errors.Refused:
        return True
    return False
