"""Queues as they are not, but could be."""

from dataclasses import replace

import pytest

from tutti.model.cluster import Snapshot
from tutti.model.keys import Uid
from tutti.model.queues import PastUse, Preemption, Queue, QueueMode, Stop
from tutti.whatif.changes import Changes, change
from tutti.whatif.edits import WrongChange
from tutti.whatif.queue_edits import changed, with_queue

from ...harness.builders import gang, node, snapshot_of

GPU = "nvidia.com/gpu"
VISION = Queue(
    "vision",
    Uid("v-1"),
    parent="ml",
    guaranteed=(("cpu", 2000), (GPU, 8)),
    limits=((GPU, 48),),
    stop=Stop.DRAIN,
    draining_since=5.0,
)
CLUSTER = Snapshot(0.0, queues=(Queue("ml", Uid("m-1")), VISION, Queue("vision.old", Uid("o-1"))))


def after(words: str, of: Snapshot = CLUSTER, name: str = "vision") -> Queue:
    snapshot = changed(of, words)
    assert [queue.name for queue in snapshot.queues] == [queue.name for queue in of.queues]
    return next(queue for queue in snapshot.queues if queue.name == name)


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ("vision.limit.nvidia.com/gpu=56", {"limits": ((GPU, 56),)}),
        ("vision.limit=56", {"limits": ((GPU, 56),)}),
        ("vision.limit.memory=1Ki", {"limits": (("memory", 1024), (GPU, 48))}),
        ("vision.limit=none", {"limits": ()}),
        ("vision.limit.memory=none", {}),
        ("vision.guaranteed.cpu=1500m", {"guaranteed": (("cpu", 1500), (GPU, 8))}),
        ("vision.weight=3", {"weight": 3}),
        ("vision.parent=vision.old", {"parent": "vision.old"}),
        ("vision.parent=root", {"parent": ""}),
        ("vision.parent=none", {"parent": ""}),
        ("vision.stop=Hold", {"stop": Stop.HOLD, "draining_since": None}),
        ("vision.stop=Drain", {}),
        ("vision.mode=Shadow", {"mode": QueueMode.SHADOW}),
        ("vision.preemption=Reclaim", {"preemption": Preemption.RECLAIM}),
        ("vision.preemption=none", {"preemption": None}),
    ],
)
def test_one_field_of_one_queue_changes(words: str, fields: dict[str, object]) -> None:
    assert after(words) == replace(VISION, **fields)  # type: ignore[arg-type]


def test_the_longest_name_counts() -> None:
    assert after("vision.old.weight=2", name="vision.old").weight == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("vison.limit=4", "there is no queue vison; did you mean vision?"),
        ("x.limit=4", "there is no queue x; there are ml, vision, vision.old"),
        ("vision=4", "write it as QUEUE.FIELD=VALUE, such as vision.limit.nvidia.com/gpu=48"),
        ("vision.limit", "write it as QUEUE.FIELD=VALUE"),
        ("vision.limit=", "write it as QUEUE.FIELD=VALUE"),
        (
            "vision.max=4",
            "max is no such field; there are limit, guaranteed, weight, parent, stop, mode",
        ),
        (
            "vision.guaranteed=4",
            "name the resource, of cpu, nvidia.com/gpu: vision.guaranteed.RESOURCE=4",
        ),
        ("ml.limit=4", "name the resource, such as nvidia.com/gpu: ml.limit.RESOURCE=4"),
        (
            "vision.limit.cpu=many",
            "'many' is not a quantity such as 500m, 2 or 1.5Gi; none takes the quota away",
        ),
        ("vision.limit.cpu=-1", "the quantity -1 is negative"),
        ("vision.limit.bad name=1", "'bad name' is no name of a resource"),
        ("vision.weight.cpu=3", "weight has no resource; write it as QUEUE.FIELD=VALUE"),
        ("vision.parent=vision", "vision would be its own ancestor"),
        ("vision.parent=nowhere", "there is no queue nowhere; there are ml, vision.old"),
        ("vision.weight=0", "a weight is a number from 1 to 10000"),
        ("vision.weight=x", "a weight is a number from 1 to 10000"),
        ("vision.stop=Now", "Now is none of None, Hold, Drain"),
        ("vision.mode=Off", "Off is none of Active, Shadow"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_to_write(words: str, sentence: str) -> None:
    with pytest.raises(WrongChange) as refused:
        changed(CLUSTER, words)
    assert str(refused.value).startswith(f"--set-queue {words}: ")
    assert sentence in str(refused.value)


def test_without_queues_there_is_none_to_change() -> None:
    with pytest.raises(WrongChange, match="add one with --add-queue FILE"):
        changed(Snapshot(0.0), "vision.limit=4")


def test_a_queue_is_added_or_takes_the_place_of_its_namesake() -> None:
    nlp = Queue("nlp", Uid("new"))
    assert [q.name for q in with_queue(CLUSTER, nlp).queues] == [
        "ml",
        "nlp",
        "vision",
        "vision.old",
    ]
    again = with_queue(CLUSTER, Queue("vision", Uid("new"), weight=9))
    assert (again.queues[1].uid, again.queues[1].weight) == ("v-1", 9)
    assert again.queues[1].limits == ()


def test_what_is_recorded_of_a_queue_stays_if_it_is_replaced() -> None:
    past = PastUse(1, 2, 3.0, 4.0)
    old = replace(VISION, created=1.0, past_use=past, queues_since=2.0)
    new = Queue("vision", Uid("new"), stop=Stop.DRAIN, created=9.0)
    (now,) = with_queue(Snapshot(60.0, queues=(old,)), new).queues
    assert now == replace(
        new, uid=old.uid, created=1.0, draining_since=5.0, past_use=past, queues_since=2.0
    )


def test_a_queue_is_added_after_all_that_has_a_node() -> None:
    new = Queue("vision", Uid("new"), created=9.0, queues_since=2.0)
    waits = gang("b").of(1)
    for bound_at, now in ((50.0, 60.0), (70.0, 70.0)):
        runs = gang("a").of(1).each(bound_at=bound_at).bound_on("n1")
        (queue,) = with_queue(snapshot_of(node("n1"), runs, waits, at=60.0), new).queues
        assert queue == replace(new, created=now, queues_since=None)


def test_changes_of_queues_are_made_with_those_of_the_rest() -> None:
    snapshot = change(CLUSTER, Changes(queues=["vision.weight=3", "ml.weight=2"]))
    assert [queue.weight for queue in snapshot.queues] == [2, 3, 1]


def test_a_drain_that_is_tried_begins_after_all_that_exists() -> None:
    assert after("ml.stop=Drain", name="ml").draining_since == 1.0
    later = replace(CLUSTER, taken_at=60.5)
    assert after("ml.stop=Drain", later, name="ml").draining_since == 61.0
    (added, *_) = with_queue(later, Queue("a", Uid(""), stop=Stop.DRAIN)).queues
    assert added.draining_since == 61.0


def test_a_queue_that_is_deleted_stays_so_if_it_is_declared_again() -> None:
    going = replace(CLUSTER, queues=(Queue("a", Uid("a-1"), is_terminating=True),))
    (queue,) = with_queue(going, Queue("a", Uid(""))).queues
    assert queue.is_terminating
