"""Queues as the API server shows them; what cannot be read allows nothing and stays in the tree."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.kube import wire
from tutti.kube.codec.queues import decode_queue, encode_queue
from tutti.kube.errors import BadObject
from tutti.model.inter_pod import Requirement
from tutti.model.keys import Uid
from tutti.model.queues import PastUse, Preemption, Queue, QueueMode, Stop

METADATA = {"name": "vision", "uid": "q-1", "resourceVersion": "7"}
GPU = "nvidia.com/gpu"
VISION = {
    "parent": "ml",
    "resources": [
        {"name": GPU, "guaranteed": "16", "limit": 48},
        {"name": "cpu", "limit": "1500m"},
        {"name": "memory", "guaranteed": "1Ki"},
    ],
    "weight": 3,
    "namespaces": {"matchLabels": {"team": "vision"}},
    "defaultFor": {"matchExpressions": [{"key": "kind", "operator": "Exists"}]},
    "stop": "Drain",
    "mode": "Shadow",
    "preemption": "Reclaim",
}


def read(spec: Any, **more: Any) -> Queue:
    body = {"metadata": METADATA, "spec": spec, **more}
    return decode_queue(wire.parse_one(json.dumps(body), wire.Queue)).queue


def test_a_queue_is_read() -> None:
    past = {
        "meanShare": 125_000,
        "share": 50_000,
        "since": "1970-01-01T00:02:00Z",
        "halfLifeSeconds": 3600,
    }
    status = {
        "drainingSince": "1970-01-01T00:01:00Z",
        "pastUse": past,
        "queuesSince": "1970-01-01T00:00:30Z",
    }
    assert read(VISION, status=status) == Queue(
        name="vision",
        uid=Uid("q-1"),
        parent="ml",
        guaranteed=(("memory", 1024), (GPU, 16)),
        limits=(("cpu", 1500), (GPU, 48)),
        weight=3,
        namespaces=(Requirement("team", "In", ("vision",)),),
        default_for=(Requirement("kind", "Exists"),),
        stop=Stop.DRAIN,
        draining_since=60.0,
        mode=QueueMode.SHADOW,
        preemption=Preemption.RECLAIM,
        past_use=PastUse(125_000, 50_000, 120.0, 3600.0),
        queues_since=30.0,
    )


def test_a_queue_that_says_nothing_is_below_the_root_and_nobody_uses_it() -> None:
    assert read({}) == Queue("vision", Uid("q-1"), namespaces=None)
    assert read(None) == read({})


def test_an_empty_selector_selects_every_namespace() -> None:
    queue = read({"namespaces": {}, "defaultFor": {}})
    assert (queue.namespaces, queue.default_for) == ((), ())


@pytest.mark.parametrize("quantity", ["0.9", "999m", "999999999n"])
def test_a_quota_is_rounded_down(quantity: str) -> None:
    """A limit of less than one GPU starts nobody who requests one."""
    entry = {"name": GPU, "guaranteed": quantity, "limit": quantity}
    queue = read({"resources": [entry]})
    assert (queue.guaranteed, queue.limits, queue.unreadable) == (((GPU, 0),), ((GPU, 0),), ())


@pytest.mark.parametrize("quantity", ["-1", "many", "", True, [], {"a": 1}, -1])
def test_an_amount_that_cannot_be_read_is_nothing_and_is_named(quantity: Any) -> None:
    entry = {"name": GPU, "guaranteed": quantity, "limit": quantity}
    queue = read({"resources": [entry]})
    assert (queue.guaranteed, queue.limits) == (((GPU, 0),), ((GPU, 0),))
    fields = (f"spec.resources[{GPU}].guaranteed", f"spec.resources[{GPU}].limit")
    assert queue.unreadable == fields


def test_a_port_is_no_resource() -> None:
    queue = read({"resources": [{"name": "port:80/TCP", "limit": 1}]})
    assert queue.limits == (("port:80/TCP", 0),)
    assert queue.unreadable == ("spec.resources[port:80/TCP].limit",)


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"a b": "c"}},
        {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]},
        {"matchExpressions": [{"key": "a", "operator": "In"}]},
    ],
)
def test_a_selector_that_cannot_be_read_selects_no_namespace(selector: Any) -> None:
    queue = read({"namespaces": selector, "defaultFor": selector})
    assert (queue.namespaces, queue.default_for) == (None, None)
    assert queue.unreadable == ("spec.defaultFor", "spec.namespaces")


def test_a_word_of_a_later_version_stops_the_queue_and_keeps_its_quotas() -> None:
    queue = read({"stop": "Freeze", "mode": "Dry", "preemption": "Everything"})
    assert (queue.stop, queue.mode) == (Stop.HOLD, QueueMode.ACTIVE)
    assert queue.preemption is Preemption.OFF


@pytest.mark.parametrize("weight", [0, -5])
def test_a_weight_is_at_least_one(weight: int) -> None:
    assert read({"weight": weight}).weight == 1


def test_a_queue_that_is_deleted_says_so() -> None:
    metadata = {**METADATA, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert read({}, metadata=metadata).is_terminating


@pytest.mark.parametrize(
    ("spec", "metadata", "sentence"),
    [
        ({"resources": [{"name": "a"}, {"name": "a"}]}, METADATA, "the same resource twice"),
        ({}, {"name": "vision"}, "has no uid"),
        ({"weight": "heavy"}, METADATA, "spec.weight"),
    ],
)
def test_what_no_api_server_takes_is_refused(spec: Any, metadata: Any, sentence: str) -> None:
    with pytest.raises(BadObject, match=sentence):
        read(spec, metadata=metadata)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
ENTRIES = st.fixed_dictionaries(
    {"name": st.sampled_from(["cpu", GPU, "port:1/TCP", ""])} | {"limit": JSON, "guaranteed": JSON}
)


@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(VISION, JSON) | {"resources": st.lists(ENTRIES, max_size=3)},
    )
)
def test_whatever_stands_in_a_queue_is_read_or_refused(spec: Any) -> None:
    """And what is read is what a dump of it says."""
    try:
        queue = read(spec)
    except BadObject:
        return
    again = json.dumps(encode_queue(queue, 0.0))
    assert decode_queue(wire.parse_one(again, wire.Queue)).queue == queue
