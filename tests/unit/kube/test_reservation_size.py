"""A Reservation too large for names is written without; too large for that, it is not even sent."""

import json
from bisect import bisect_left
from dataclasses import replace

import pytest

from tutti.kube import errors, wire
from tutti.kube.codec import decode, encode
from tutti.model.cluster import PodReservation, Reservation, SlotReservation
from tutti.model.keys import GangKey, NodeName, PodKey, Uid

LONGEST = 253  # characters of a pod's or a node's name, of a scheduler's name, and of a term
LABEL = 63  # of a namespace, and of a PodGroup's name
STORE = 1_572_864  # bytes that etcd takes by default


def held(members: int, *, per_node: int, name: int) -> Reservation:
    """A Reservation of so many members, whose names have this length."""
    space = "s" * LABEL
    return Reservation(
        gang=GangKey(space, "g" * LABEL),
        uid=Uid("u" * 36),
        generation=1,
        scheduler="t" * LONGEST,
        term="r" * LONGEST,
        reserved_at=0.0,
        entries=tuple(
            PodReservation(
                PodKey(space, f"p{i}-".ljust(name, "x")),
                Uid(f"{i}-".ljust(36, "0")),
                NodeName(f"n{i // per_node}-".ljust(name, "x")),
            )
            for i in range(members)
        ),
    )


def test_the_largest_gang_of_the_longest_names_is_written_by_uid() -> None:
    value = held(5000, per_node=1, name=LONGEST)
    body = json.loads(json.dumps(encode.reservation(value)))
    assert size(body) < encode.RESERVATION_LIMIT < STORE
    body["metadata"] |= {"uid": "self", "resourceVersion": "7"}
    read = decode.decode_reservation(wire.parse_one(body, wire.Reservation))
    assert {(entry.uid, entry.node) for entry in read.entries} == {
        (entry.uid, entry.node) for entry in value.entries
    }
    assert {entry.pod.name for entry in read.entries} == {""}


def test_the_largest_gang_of_ordinary_names_keeps_them() -> None:
    body = encode.reservation(held(5000, per_node=1, name=LABEL))
    assert all("pods" in on and "uids" not in on for on in body["spec"]["placement"])


def test_names_are_written_up_to_the_limit_and_left_out_beyond_it() -> None:
    members = range(4000, 5001)
    beyond = members[bisect_left(members, x=True, key=is_nameless)]
    body = encode.reservation(held(beyond - 1, per_node=10, name=LONGEST))
    assert 0 <= encode.RESERVATION_LIMIT - size(body) < 2 * (LONGEST + 100)
    without = encode.reservation(held(beyond, per_node=10, name=LONGEST))
    assert not any("pods" in on for on in without["spec"]["placement"])


def test_slots_stay_where_names_are_left_out() -> None:
    value = held(4000, per_node=1, name=LONGEST)
    first = value.entries[0].node
    body = encode.reservation(replace(value, slots=(SlotReservation(first, "executor", 3),)))
    assert body["spec"]["placement"][0] == {
        "node": first,
        "uids": [value.entries[0].uid],
        "slots": {"executor": 3},
    }


def test_what_no_store_takes_is_refused_with_size_limit_and_advice() -> None:
    with pytest.raises(errors.Refused) as refused:
        encode.reservation(held(5100, per_node=1, name=LONGEST))
    sentence = str(refused.value)
    assert sentence.startswith("the Reservation of 5,100 members would take 1,59")
    assert sentence.endswith("bytes, and at most 1,570,000 can be stored: make the gang smaller")


def is_nameless(members: int) -> bool:
    """Whether a Reservation of so many members with long names is written without them."""
    body = encode.reservation(held(members, per_node=10, name=LONGEST))
    return "uids" in body["spec"]["placement"][0]


def size(body: object) -> int:
    """Bytes of the object as the API server stores it, but for what the server adds."""
    return len(json.dumps(body, separators=(",", ":")))
