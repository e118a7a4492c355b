"""The CRDs on a real API server: what is refused, in which words, and what is accepted.

The bodies and the words are in `bodies`.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from ..docs import test_topology
from ..harness.controlplane.errors import RequestError
from .bodies import (
    ACCEPTED_GROUPS,
    ACCEPTED_QUEUES,
    LONGEST_NAME,
    MEMBERS_LIMIT,
    REFUSED_GROUPS,
    REFUSED_QUEUES,
    REFUSED_RESERVATIONS,
    ROOM,
    entries,
    group,
    held,
    nameless,
    queue,
    topology,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..harness.controlplane import ControlPlane

CRDS = Path(__file__).parents[2] / "charts" / "tutti" / "crds"
NAMESPACE = "crds"
SERVED_SECONDS = 20
QUEUES = "/apis/tutti.dev/v1alpha1/queues"
TOPOLOGIES = "/apis/tutti.dev/v1alpha1/topologies"
EXAMPLES = list(test_topology.manifests().values())


@pytest.fixture(scope="module")
def server(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """An API server that serves all kinds, and a namespace of these tests' own."""
    control_plane.apply(yaml.safe_load(path.read_text()) for path in sorted(CRDS.glob("*.yaml")))
    control_plane.create_namespace(NAMESPACE)
    _await_kinds(control_plane)
    yield control_plane
    for kind in ("podgroups", "reservations"):
        control_plane.request("DELETE", _path(kind))
    control_plane.request("DELETE", QUEUES)


def _await_kinds(server: ControlPlane) -> None:
    deadline = time.monotonic() + SERVED_SECONDS
    while True:
        try:
            # Writing is served a little later than the condition Established is set.
            for kind, body in (("podgroups", group({"minMember": 1})), ("reservations", held())):
                server.request("POST", f"{_path(kind)}?dryRun=All", body)
            server.request("POST", f"{QUEUES}?dryRun=All", queue({}))
        except RequestError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def _path(kind: str, name: str = "") -> str:
    return f"/apis/tutti.dev/v1alpha1/namespaces/{NAMESPACE}/{kind}/{name}".rstrip("/")


def _refusal(server: ControlPlane, method: str, path: str, body: object) -> str:
    """What the API server says to a request that it refuses."""
    with pytest.raises(RequestError) as refused:
        server.request(method, path, body)
    return str(refused.value)


@pytest.mark.parametrize(("spec", "sentence"), REFUSED_GROUPS.values(), ids=REFUSED_GROUPS)
def test_a_pod_group_that_makes_no_sense_is_refused_with_a_sentence(
    server: ControlPlane, spec: object, sentence: str
) -> None:
    """Each mistake has its words."""
    assert sentence in _refusal(server, "POST", _path("podgroups"), group(spec))


def test_a_name_that_cannot_be_a_label_value_is_refused(server: ControlPlane) -> None:
    """The longest label value has 63 characters."""
    path = f"{_path('podgroups')}?dryRun=All"
    server.request("POST", path, group({"minMember": 1}, name="a" * 63))
    said = _refusal(server, "POST", path, group({"minMember": 1}, name="a" * 64))
    assert (
        "the name has 64 characters: pods carry it as a label value, which has at most 63" in said
    )


def test_a_misspelt_field_is_refused_by_kubectl(server: ControlPlane) -> None:
    """As kubectl asks for strict checking, the server names the field."""
    body = group({"minMember": 3, "minmember": 4})
    said = _refusal(server, "POST", f"{_path('podgroups')}?fieldValidation=Strict", body)
    assert 'unknown field "spec.minmember"' in said


@pytest.mark.parametrize("spec", ACCEPTED_GROUPS.values(), ids=ACCEPTED_GROUPS)
def test_a_pod_group_that_makes_sense_is_kept_as_written(
    server: ControlPlane, spec: dict[str, object]
) -> None:
    """Nothing is added to what the user wrote."""
    answer = server.request("POST", f"{_path('podgroups')}?dryRun=All", group(spec))
    assert answer["spec"] == spec


@pytest.mark.parametrize("made", EXAMPLES, ids=lambda made: made["metadata"]["name"])
def test_the_examples_of_docs_topology_are_accepted(
    server: ControlPlane, made: dict[str, Any]
) -> None:
    """As kubectl sends them: a misspelt field would be refused."""
    path = TOPOLOGIES if made["kind"] == "Topology" else _path("podgroups")
    answer = server.request("POST", f"{path}?dryRun=All&fieldValidation=Strict", made)
    assert answer["spec"] == made["spec"]


def test_min_member_can_be_raised_and_lowered(server: ControlPlane) -> None:
    """A gang that waits may be made to need less."""
    server.request("POST", _path("podgroups"), group({"minMember": 8}, name="resized"))
    for members in (4, 16):
        patch = {"spec": {"minMember": members}}
        answer = server.request("PATCH", _path("podgroups", "resized"), patch)
        assert answer["spec"]["minMember"] == members


def test_a_template_never_changes(server: ControlPlane) -> None:
    """Room may be held by it; what else a role says is changed as ever."""
    template = {"resources": {"cpu": "1"}}
    role = {"name": "worker", "minMember": 2, "template": template}
    server.request("POST", _path("podgroups"), group({"roles": [role]}, name="declared"))

    def change(role: dict[str, Any]) -> None:
        patch = {"spec": {"roles": [role]}}
        server.request("PATCH", _path("podgroups", "declared"), patch)

    change({**role, "minMember": 3})
    larger = {**role, "template": {"resources": {"cpu": "1000"}}}
    labelled = {**role, "template": {**template, "labels": {"app": "x"}}}
    for changed in (larger, labelled, {"name": "worker", "minMember": 3}):
        with pytest.raises(RequestError, match="the template of a role cannot change"):
            change(changed)


def test_kubectl_get_tells_where_a_gang_is_and_why(server: ControlPlane) -> None:
    """The short name works; the reason is that of Reserved; the sentence comes with -o wide."""
    server.request("POST", _path("podgroups"), group({"minMember": 8}, name="shown"))
    at = {"lastTransitionTime": "2026-01-01T00:00:00Z", "status": "False"}
    status = {
        "phase": "Waiting",
        "members": {"needed": 8, "seen": 5, "bound": 1, "running": 0},
        "conditions": [
            {"type": "Healthy", "reason": "Other", "message": "not this", **at},
            {"type": "Reserved", "reason": "WaitingForMembers", "message": "5 of 8 exist", **at},
        ],
    }
    server.request("PATCH", f"{_path('podgroups', 'shown')}/status", {"status": status})
    narrow = server.kubectl("-n", NAMESPACE, "get", "ptg", "shown")
    heads, row = (line.split() for line in narrow.splitlines())
    assert heads == ["NAME", "PHASE", "NEEDED", "SEEN", "BOUND", "RUNNING", "REASON", "AGE"]
    assert row[:-1] == ["shown", "Waiting", "8", "5", "1", "0", "WaitingForMembers"]
    wide = server.kubectl("-n", NAMESPACE, "get", "ptg", "shown", "-o", "wide")
    assert wide.splitlines()[1].endswith("5 of 8 exist")


def test_a_phase_that_does_not_exist_is_refused(server: ControlPlane) -> None:
    """The closed list is in the refusal."""
    server.request("POST", _path("podgroups"), group({"minMember": 8}, name="phases"))
    patch = {"status": {"phase": "Pending"}}
    said = _refusal(server, "PATCH", f"{_path('podgroups', 'phases')}/status", patch)
    known = '"Waiting", "Reserved", "Bound", "Running", "Finished", "Degraded"'
    assert f"supported values: {known}" in said


def test_users_cannot_write_a_status_by_writing_a_pod_group(server: ControlPlane) -> None:
    """Status is a resource of its own, with rights of its own."""
    body = group({"minMember": 8}, name="forged") | {"status": {"phase": "Bound"}}
    assert "status" not in server.request("POST", _path("podgroups"), body)


def test_kubectl_explain_describes_every_field(server: ControlPlane) -> None:
    """One field's own words, and none without."""
    said = server.kubectl("explain", "ptg.spec.minMember")
    assert "How many members the gang needs to start" in " ".join(said.split())
    for kind in ("ptg", "rsv", "tq"):
        for part in ("spec", "status") if kind != "rsv" else ("spec",):
            assert "<no description>" not in server.kubectl("explain", f"{kind}.{part}")


@pytest.mark.parametrize(("spec", "sentence"), REFUSED_QUEUES.values(), ids=REFUSED_QUEUES)
def test_a_queue_that_makes_no_sense_is_refused_with_a_sentence(
    server: ControlPlane, spec: object, sentence: str
) -> None:
    """Before it counts for anybody."""
    assert sentence in _refusal(server, "POST", QUEUES, queue(spec))


@pytest.mark.parametrize("spec", ACCEPTED_QUEUES.values(), ids=ACCEPTED_QUEUES)
def test_a_queue_that_makes_sense_is_kept_as_written(
    server: ControlPlane, spec: dict[str, object]
) -> None:
    """Nothing is added to what the administrator wrote."""
    answer = server.request("POST", f"{QUEUES}?dryRun=All", queue(spec))
    assert answer["spec"] == spec


def test_a_topology_names_each_label_once(server: ControlPlane) -> None:
    """And has a level at least."""
    path = f"{TOPOLOGIES}?dryRun=All"
    made = topology("zone", "example.com/rack")
    assert server.request("POST", path, made)["spec"] == made["spec"]
    sentence = "two levels have the same label: name each label once"
    assert sentence in _refusal(server, "POST", path, topology("rack", "rack"))
    assert "should have at least 1 items" in _refusal(server, "POST", path, topology())


def test_no_queue_has_the_name_of_the_built_in_one(server: ControlPlane) -> None:
    """Nor one that is too long to be read in a table."""
    path = f"{QUEUES}?dryRun=All"
    assert "root is the built-in queue" in _refusal(server, "POST", path, queue({}, "root"))
    assert "at most 63 characters" in _refusal(server, "POST", path, queue({}, "a" * 64))


def test_kubectl_get_shows_queues_as_a_table(server: ControlPlane) -> None:
    """A field that is left out leaves its cell empty."""
    spec = {"parent": "ml", "weight": 2, "stop": "Hold", "mode": "Active"}
    server.request("POST", QUEUES, queue(spec, "shown"))
    heads, row = (line.split() for line in server.kubectl("get", "tq", "shown").splitlines())
    columns = ["NAME", "PARENT", "WEIGHT", "STOP", "MODE"]
    assert heads == [*columns, "STATE", "VALID", "WAITING", "SHARE", "USE", "AGE"]
    assert row[:-1] == [
        "shown",
        "ml",
        "2",
        "Hold",
        "Active",
    ]  # without a status, as no operator runs


@pytest.mark.parametrize(
    ("body", "sentence"), REFUSED_RESERVATIONS.values(), ids=REFUSED_RESERVATIONS
)
def test_a_reservation_that_makes_no_sense_is_refused_with_a_sentence(
    server: ControlPlane, body: dict[str, Any], sentence: str
) -> None:
    """Should Tutti ever write one, the promise is not made."""
    assert sentence in _refusal(server, "POST", _path("reservations"), body)


LARGEST = {
    # 1.0 MB: every name is a DNS label, each pod on a node of its own.
    "a node each": {"per_node": 1, "pod_name": 63, "node_name": 63},
    # 1.56 MB of the 1.57 that etcd takes: the longest names, on nodes that hold many.
    "the longest names": {"per_node": 125, "pod_name": 253, "node_name": 253},
}


@pytest.mark.parametrize("lengths", LARGEST.values(), ids=LARGEST)
def test_the_largest_gang_fits_into_one_reservation(
    server: ControlPlane, lengths: dict[str, int]
) -> None:
    """5,000 members, all not yet bound."""
    body = held(entries(MEMBERS_LIMIT, **lengths))
    answer = server.request("POST", _path("reservations"), body)
    assert answer["spec"]["placement"] == body["spec"]["placement"]
    server.request("DELETE", _path("reservations", body["metadata"]["name"]))


def test_the_largest_gang_of_the_longest_names_fits_without_the_pods_names(
    server: ControlPlane,
) -> None:
    """5,000 nodes of 253 characters; gang, scheduler name and term are as long as they may be."""
    longest = {"schedulerName": "s" * LONGEST_NAME, "term": "t" * LONGEST_NAME}
    body = held(nameless(MEMBERS_LIMIT), **longest)
    body["spec"]["podGroup"]["name"] = "g" * 63
    path = _path("reservations", body["metadata"]["name"])
    answer = server.request("POST", _path("reservations"), body)
    assert answer["spec"] == body["spec"]
    server.request("PATCH", path, {"spec": {"term": "u" * LONGEST_NAME}})
    server.request("DELETE", path)


def test_a_second_reservation_of_a_gang_is_refused(server: ControlPlane) -> None:
    """The name is the gang's uid: the server keeps two from existing."""
    body = held(ROOM)
    server.request("POST", _path("reservations"), body)
    assert "already exists" in _refusal(server, "POST", _path("reservations"), body)


def test_a_reservation_may_shrink_but_not_change_its_gang_or_its_time(server: ControlPlane) -> None:
    """Slots become names and bound pods leave; every timer counts from one moment."""
    body = held([{"node": "node-a", "slots": {"executor": 3}}])
    path = _path("reservations", body["metadata"]["name"])
    server.request("POST", _path("reservations"), body)
    named = {"spec": {"placement": ROOM}}
    assert server.request("PATCH", path, named)["spec"]["placement"] == ROOM
    for changed in (
        {"reservedAt": "2026-01-02T00:00:00Z"},
        {"podGroup": {"generation": 2}},
        {"schedulerName": "another"},
    ):
        said = _refusal(server, "PATCH", path, {"spec": changed})
        assert "the scheduler name of a Reservation that holds room never change" in said


def test_the_record_of_a_start_never_changes(server: ControlPlane) -> None:
    """Which queue a gang is charged to is decided once; merge patches leave the record alone."""
    start = {"role": "", "members": 2, "requests": {"cpu": "2", "pods": "2"}}
    queue = {"name": "vision", "startedAt": "2026-01-01T00:00:00.5Z", "minimum": [start]}
    body = held(ROOM, queue=queue)
    path = _path("reservations", body["metadata"]["name"])
    assert server.request("POST", _path("reservations"), body)["spec"]["queue"] == queue
    patched = server.request("PATCH", path, {"spec": {"placement": [], "term": "another"}})
    assert patched["spec"]["queue"] == queue
    more = {**queue, "minimum": [start, {"role": "x", "members": 1}]}
    for changed in (None, {"name": "nlp"}, {"startedAt": "2026-01-02T00:00:00Z"}, more):
        sentence = _refusal(server, "PATCH", path, {"spec": {"queue": changed}})
        assert "the queue in which a gang started never changes" in sentence
    server.request("DELETE", path)
    old = held(ROOM)
    path = _path("reservations", old["metadata"]["name"])
    server.request("POST", _path("reservations"), old)
    sentence = _refusal(server, "PATCH", path, {"spec": {"queue": queue}})
    assert "the queue in which a gang started never changes" in sentence
    server.request("DELETE", path)


def test_a_record_without_a_queue_gets_one_once(server: ControlPlane) -> None:
    """Its gang ran before there were Queues."""
    body = held([], queue={"name": "", "uid": "", "startedAt": "2026-01-01T00:00:00Z"})
    path = _path("reservations", body["metadata"]["name"])
    server.request("POST", _path("reservations"), body)
    spec = server.request("PATCH", path, {"spec": {"queue": {"name": "ml", "uid": "1"}}})["spec"]
    assert spec["queue"] == {"name": "ml", "uid": "1", "startedAt": "2026-01-01T00:00:00Z"}
    sentence = _refusal(server, "PATCH", path, {"spec": {"queue": {"name": "", "uid": ""}}})
    assert "the queue in which a gang started never changes" in sentence
    server.request("DELETE", path)


def test_a_reservation_that_is_kept_for_its_record_may_hold_room_again(
    server: ControlPlane,
) -> None:
    """Its room has a time of its own; the gang and the record stay."""
    queue = {"name": "vision", "startedAt": "2026-01-01T00:00:00Z"}
    body = held(ROOM, queue=queue)
    path = _path("reservations", body["metadata"]["name"])
    server.request("POST", _path("reservations"), body)
    reuse = {
        "podGroup": {"generation": 2},
        "term": "another",
        "reservedAt": "2026-01-02T00:00:00Z",
        "placement": ROOM,
        "evict": None,
    }
    assert "holds room never change" in _refusal(server, "PATCH", path, {"spec": reuse})
    server.request("PATCH", path, {"spec": {"placement": [], "evict": ["a"]}})
    assert "holds room never change" in _refusal(server, "PATCH", path, {"spec": reuse})
    server.request("PATCH", path, {"spec": {"evict": None}})
    other = {"podGroup": {"uid": "another"}}
    assert _refusal(server, "PATCH", path, {"spec": other})
    spec = server.request("PATCH", path, {"spec": reuse})["spec"]
    assert (spec["reservedAt"], spec["placement"], spec["queue"]) == (
        reuse["reservedAt"],
        ROOM,
        queue,
    )
    server.request("DELETE", path)


def test_kubectl_get_tells_whose_room_a_reservation_holds(server: ControlPlane) -> None:
    """By its short name."""
    body = held(ROOM, term="tutti-0")
    server.request("POST", _path("reservations"), body)
    name = body["metadata"]["name"]
    lines = server.kubectl("-n", NAMESPACE, "get", "rsv", name).splitlines()
    assert lines[0].split() == ["NAME", "GANG", "TERM", "RESERVED", "AT", "AGE"]
    assert lines[1].split()[:-1] == [name, "train", "tutti-0", "2026-01-01T00:00:00Z"]
