"""What is encoded is read back as it was, and carries the preconditions that fencing needs."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tutti.kube import wire
from tutti.kube.codec import decode, encode
from tutti.model.cluster import (
    ClaimGrounds,
    PodReservation,
    Reservation,
    ReservedVictim,
    SlotReservation,
)
from tutti.model.decisions import Assignment
from tutti.model.keys import POD_GROUP, ApiKind, GangKey, Lease, LeaseKey, NodeName, PodKey, Uid
from tutti.model.queues import QueueRecord
from tutti.model.resources import NOTHING
from tutti.model.shapes import Shape
from tutti.model.volumes import VolumeChoice

from ....harness import builders

WORDS = st.text("abcdefghij-0", min_size=1, max_size=8)
NODES = st.sampled_from(["n1", "n2", "n3"]).map(NodeName)
KINDS = [POD_GROUP, ApiKind("scheduling.volcano.sh", "PodGroup"), ApiKind("ray.io", "RayCluster")]


@st.composite
def reservations(draw: st.DrawFn) -> Reservation:
    """A Reservation as the API server would hold it: whole seconds, one count per node and role."""
    space = draw(WORDS)
    uids = draw(st.lists(WORDS, unique=True, max_size=8))
    entries = [PodReservation(PodKey(space, draw(WORDS)), Uid(uid), draw(NODES)) for uid in uids]
    held = draw(st.dictionaries(st.tuples(NODES, WORDS), st.integers(1, 5000), max_size=4))
    slots = [SlotReservation(node, role, count) for (node, role), count in held.items()]
    return Reservation(
        gang=GangKey(space, draw(WORDS), draw(st.sampled_from(KINDS))),
        uid=Uid(draw(WORDS)),
        generation=draw(st.integers(0, 2**40)),
        scheduler=draw(WORDS),
        term=draw(st.text(max_size=30)),
        reserved_at=float(draw(st.integers(0, 2**33))),
        entries=tuple(sorted(entries, key=lambda entry: (entry.node, entry.pod, entry.uid))),
        slots=tuple(sorted(slots, key=lambda slot: (slot.node, slot.role))),
        evict=tuple(Uid(uid) for uid in draw(st.lists(WORDS, unique=True, max_size=3))),
        version="7",
        self_uid=Uid("self"),
    )


@given(reservations())
def test_a_reservation_is_read_back_as_it_was_written(value: Reservation) -> None:
    body = json.loads(json.dumps(encode.reservation(value)))
    body["metadata"] |= {"uid": "self", "resourceVersion": "7"}
    assert decode.decode_reservation(wire.parse_one(body, wire.Reservation)) == value


@given(reservations())
def test_pods_without_names_are_read_back_by_uid_and_node(value: Reservation) -> None:
    body = json.loads(json.dumps(encode.reservation(value)))
    body["metadata"] |= {"uid": "self", "resourceVersion": "7"}
    for held in body["spec"]["placement"]:
        if pods := held.pop("pods", None):
            held["uids"] = [pod["uid"] for pod in pods]
    nameless = (replace(entry, pod=PodKey(entry.pod.namespace, "")) for entry in value.entries)
    entries = tuple(sorted(nameless, key=lambda entry: (entry.node, entry.uid)))
    read = decode.decode_reservation(wire.parse_one(body, wire.Reservation))
    assert read == replace(value, entries=entries)


@given(reservations())
def test_a_reservation_is_named_after_its_gang_and_owned_by_it_without_blocking(
    value: Reservation,
) -> None:
    body = encode.reservation(value)
    assert body["metadata"]["name"] == value.uid
    (owner,) = body["metadata"]["ownerReferences"]
    kind = value.gang.kind
    names = (owner["kind"], owner["name"], owner["uid"])
    assert names == (kind.kind, value.gang.name, value.uid)
    assert owner["apiVersion"].rpartition("/")[0] == kind.group
    assert "blockOwnerDeletion" not in owner


def test_an_older_replica_reads_what_is_reserved_for_a_podgroup() -> None:
    """What 0.1.0 wrote and read of the gang: these fields and no others."""
    held = builders.reservation(builders.gang("a").of(1, cpu=1), ("a-0", "n1"))
    written = encode.reservation(held)["spec"]["podGroup"]
    assert set(written) == {"name", "uid", "generation"}
    body = json.loads(json.dumps(encode.reservation(held)))
    body["metadata"] |= {"uid": "self", "resourceVersion": "7"}
    assert decode.decode_reservation(wire.parse_one(body, wire.Reservation)).gang == held.gang
    assert held.gang.kind == POD_GROUP


def test_what_a_newer_replica_adds_to_a_reservation_is_passed_over() -> None:
    """The contract by which replicas of two versions run beside each other."""
    held = builders.reservation(builders.gang("a").of(1, cpu=1), ("a-0", "n1"))
    body = json.loads(json.dumps(encode.reservation(held)))
    body["metadata"] |= {"uid": "self", "resourceVersion": "7"}
    read = decode.decode_reservation(wire.parse_one(body, wire.Reservation))
    body["spec"]["later"] = body["spec"]["podGroup"]["later"] = {"a": 1}
    assert decode.decode_reservation(wire.parse_one(body, wire.Reservation)) == read


def test_a_reservation_is_deleted_on_condition_that_it_is_the_same() -> None:
    held = builders.reservation(builders.gang("a").of(1, cpu=1), ("a-0", "n1"))
    known = replace(held, self_uid=Uid("self"), version="12")
    preconditions = encode.delete_options(known)["preconditions"]
    assert preconditions == {"uid": "self", "resourceVersion": "12"}


def test_an_adoption_changes_the_term_of_what_was_seen_and_nothing_else() -> None:
    held = builders.reservation(builders.gang("a").of(1, cpu=1), ("a-0", "n1"))
    patch = encode.adoption(replace(held, version="12"), "tutti-1/now")
    assert patch == {"metadata": {"resourceVersion": "12"}, "spec": {"term": "tutti-1/now"}}


def test_an_amendment_changes_the_placement_of_what_was_seen_and_nothing_else() -> None:
    room = [SlotReservation(NodeName("n2"), "worker", 2)]
    held = builders.reservation(builders.gang("a").of(1, cpu=1), ("a-0", "n1"), slots=room)
    patch = encode.amendment(replace(held, version="12"))
    assert patch == {
        "metadata": {"resourceVersion": "12"},
        "spec": {"placement": encode.reservation(held)["spec"]["placement"], "volumes": None},
    }


def test_a_lease_is_written_as_it_was_meant_and_read_back_as_it_was_written() -> None:
    key = LeaseKey("tutti-system", "tutti")
    at = encode.moment(1_767_225_600.25)
    assert at == "2026-01-01T00:00:00.250000Z"
    mine = Lease("tutti-0", at, at, 10, 3, version="7", mode="active")
    body = encode.lease(key, mine)
    assert body["metadata"] == {
        "name": "tutti",
        "namespace": "tutti-system",
        "resourceVersion": "7",
        "annotations": {"tutti.dev/mode": "active"},
    }
    assert decode.decode_lease(wire.parse_one(body, wire.Lease)) == mine
    unmarked = encode.lease(key, Lease("tutti-0", at, at, 10))["metadata"]
    assert unmarked == {"name": "tutti", "namespace": "tutti-system"}
    assert mine.term == f"tutti-0/{at}"
    assert Lease().term == ""


def test_a_binding_carries_uid_and_version() -> None:
    body = encode.binding(Assignment(PodKey("ml", "a-0"), Uid("u"), "12", NodeName("n1")))
    assert body["metadata"] == {
        "name": "a-0",
        "namespace": "ml",
        "uid": "u",
        "resourceVersion": "12",
    }
    assert body["target"]["name"] == "n1"


def test_a_pods_condition_names_its_uid_and_version_and_fits() -> None:
    pod = builders.member("a-0", Shape(NOTHING))
    body = encode.pod_condition(pod, encode.Why("Unschedulable", "x" * 5000, 0.0))
    assert body["metadata"] == {"uid": pod.uid, "resourceVersion": pod.version}
    (line,) = body["status"]["conditions"]
    assert (line["type"], line["status"]) == ("PodScheduled", "False")
    assert len(line["message"]) <= encode.MESSAGE_LIMIT
    assert line["lastTransitionTime"] == "1970-01-01T00:00:00Z"


def test_an_event_said_twice_in_one_second_has_one_name() -> None:
    about = encode.Regarding.gang(GangKey("ml", "a" * 253), Uid("u"))
    first, again, other = (
        encode.event(encode.Event(about, "Bound", message, at))
        for message, at in (("m", 1.0), ("m", 1.4), ("m2", 1.0))
    )
    assert first == again
    assert other["metadata"]["name"] != first["metadata"]["name"]
    assert len(first["metadata"]["name"]) <= 253
    assert first["type"] == "Normal"
    warned = encode.event(encode.Event(about, "Bound", "m", 1.0, warning=True))
    assert warned["type"] == "Warning"


def test_an_eviction_is_of_one_pod_as_it_was_seen_and_no_namesake() -> None:
    body = encode.eviction(replace(builders.member("a-0", Shape(NOTHING)), version="7"))
    assert body["metadata"] == {"name": "a-0", "namespace": "ml"}
    assert body["deleteOptions"] == {"preconditions": {"uid": "ml/a-0-uid", "resourceVersion": "7"}}


def test_a_reservation_with_the_record_of_a_start_has_no_owner() -> None:
    """Its gang is charged while members run, also once the PodGroup is gone."""
    bare = builders.reservation(builders.gang("a").of(1))
    assert encode.reservation(bare)["metadata"]["ownerReferences"]
    recorded = replace(bare, record=QueueRecord("vision", Uid("q"), 0.0))
    assert "ownerReferences" not in encode.reservation(recorded)["metadata"]


def test_only_a_reservation_with_a_record_is_filled_again() -> None:
    bare = builders.reservation(builders.gang("a").of(1), at=60.0)
    assert encode.amendment(bare)["spec"] == {"placement": [], "volumes": None}
    recorded = replace(bare, record=QueueRecord("vision", Uid("q"), 0.0))
    assert encode.amendment(recorded)["spec"] == {
        "placement": [],
        "volumes": None,
        "podGroup": {"generation": bare.generation},
        "term": bare.term,
        "reservedAt": "1970-01-01T00:01:00Z",
        "evict": None,
        "charged": None,
        "roles": None,
        "queue": {"name": "vision", "uid": "q"},
    }
    done = QueueRecord("vision", Uid("q"), 0.0, succeeded=(("", 1), ("worker", 2)))
    assert encode.amendment(replace(recorded, record=done))["spec"]["succeeded"] == {
        "": 1,
        "worker": 2,
    }
    charged = replace(recorded, charged=(Uid("a"),))
    assert encode.amendment(charged)["spec"]["charged"] == ["a"]
    roles = ((Uid("a"), "worker"), (Uid("b"), ""), (Uid("c"), "worker"))
    assert encode.amendment(replace(charged, roles=roles))["spec"]["roles"] == [
        {"role": "", "pods": ["b"]},
        {"role": "worker", "pods": ["a", "c"]},
    ]
    evicting = replace(recorded, evict=(Uid("a"),))
    assert encode.amendment(evicting)["spec"]["evict"] == ["a"]


def claim() -> Reservation:
    key, pods = GangKey("other", "b"), (Uid("b-0"),)
    victim = ReservedVictim(key, Uid("b"), pods, is_whole=True, lost_milliseconds=1500)
    held = builders.reservation(builders.gang("a").of(1, cpu=1), ("a-0", "n1"), at=60.0)
    return replace(held, victims=(victim,), self_uid=Uid("self"))


def read_back(spec: dict[str, Any]) -> Reservation:
    body = dict(encode.reservation(claim()))
    body["metadata"] = {**body["metadata"], "uid": "self"}
    body["spec"] = {**body["spec"], **spec}
    return decode.decode_reservation(wire.parse_one(body, wire.Reservation))


def test_a_claim_is_read_back_as_it_was_written() -> None:
    assert read_back({}).victims == claim().victims
    free = replace(claim(), victims=())
    assert read_back(encode.reservation(free)["spec"]).victims == ()


def test_the_grounds_of_a_claim_are_read_back_and_go_with_it() -> None:
    for grounds in (
        ClaimGrounds(by_guarantee=True, cost_milliseconds=3, bound_milliseconds=2),
        ClaimGrounds(False, 7, 7, (("cpu", "2"), ("nvidia.com/gpu", "16"))),  # noqa: FBT003
    ):
        of = replace(claim(), grounds=grounds, record=QueueRecord("vision", Uid("q"), 0.0))
        assert read_back(encode.reservation(of)["spec"]).grounds == grounds
        changed = encode.amendment(of)["spec"]["claim"]
        assert changed == encode.reservation(of)["spec"]["claim"]
        ended = encode.amendment(replace(of, victims=(), grounds=None))["spec"]["claim"]
        assert [ended[name] for name in changed.keys() - {"reservedAt", "victims"}] == [None] * 4
        later = {**encode.reservation(of)["spec"], "reservedAt": "1970-01-01T00:02:00Z"}
        assert read_back(later).grounds is None
    assert read_back({}).grounds is None, "an older version made it"


def test_victims_of_an_earlier_placement_count_for_nothing() -> None:
    """An older version that uses the Reservation again leaves the field as it is."""
    assert read_back({"reservedAt": "1970-01-01T00:02:00Z"}).victims is None
    assert read_back({"placement": []}).victims is None
    assert read_back({"claim": None}).victims is None


def test_a_claim_with_a_record_is_amended_with_its_victims() -> None:
    recorded = replace(claim(), record=QueueRecord("vision", Uid("q"), 0.0))
    assert encode.amendment(recorded)["spec"]["claim"]["victims"][0]["uid"] == "b"
    empty = replace(recorded, entries=(), victims=())
    assert encode.amendment(empty)["spec"]["claim"]["victims"] == []


def test_the_volumes_of_claims_are_written_and_read_back() -> None:
    held = builders.reservation(builders.gang("a").of(1, cpu=1), ("a-0", "n1"), at=60.0)
    here = NodeName("n1")
    choices = (
        VolumeChoice("data", "c1", "7", here, "pv-1"),
        VolumeChoice("scratch", "c2", "8", here),
    )
    body = encode.reservation(replace(held, volumes=choices))
    assert body["spec"]["volumes"] == [
        {"claim": "data", "uid": "c1", "version": "7", "node": "n1", "volume": "pv-1"},
        {"claim": "scratch", "uid": "c2", "version": "8", "node": "n1"},
    ]
    body = {**body, "metadata": {**body["metadata"], "uid": "r", "resourceVersion": "9"}}
    again = decode.decode_reservation(wire.parse_one(body, wire.Reservation))
    assert again.volumes == choices
    assert encode.amendment(again)["spec"]["volumes"] == body["spec"]["volumes"]
