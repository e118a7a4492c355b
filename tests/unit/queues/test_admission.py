"""Which queue a gang belongs to."""

from dataclasses import replace

from tutti.model.inter_pod import Requirement
from tutti.model.keys import Uid
from tutti.model.queues import ROOT, QueueRecord, Selector
from tutti.queues.admission import Membership, Refusal, charged_queue, membership
from tutti.queues.tree import QueueTree

from .builders import queue


def team(name: str) -> Selector:
    return (Requirement("team", "In", (name,)),)


VISION = replace(queue("vision", "research"), namespaces=team("v"), default_for=team("v"))
BATCH = replace(queue("batch"), default_for=())
TREE = QueueTree.of([queue("research"), VISION, queue("free")])
V, W = {"team": "v"}, {"team": "w"}


def test_a_gang_belongs_to_the_queue_that_it_names() -> None:
    assert membership(TREE, "vision", V) == Membership("vision")
    assert membership(TREE, "free", W) == Membership("free")


def test_a_gang_that_names_none_belongs_to_its_namespace_s_default_or_to_the_root() -> None:
    assert membership(TREE, "", V) == Membership("vision")
    assert membership(TREE, "", W) == Membership(ROOT)


def test_two_defaults_are_none() -> None:
    tree = QueueTree.of([queue("research"), VISION, BATCH])
    assert membership(tree, "", W) == Membership("batch")
    assert membership(tree, "", V) == Membership("", Refusal.AMBIGUOUS, ("batch", "vision"))


def test_a_refusal_says_which_queues_would_do() -> None:
    both = ("free", "vision")
    assert membership(TREE, "visoin", V) == Membership("", Refusal.UNKNOWN, both)
    assert membership(TREE, ROOT, V) == Membership("", Refusal.UNKNOWN, both)
    assert membership(TREE, "vision", W) == Membership("", Refusal.FORBIDDEN, ("free",))
    assert membership(TREE, "research", V) == Membership("", Refusal.NOT_A_LEAF, ("vision",))


def test_a_namespace_has_no_default_that_does_not_admit_it() -> None:
    tree = QueueTree.of([replace(VISION, parent="", default_for=())])
    assert membership(tree, "", W) == Membership(ROOT)


def test_a_running_gang_is_charged_where_it_started() -> None:
    now = membership(TREE, "free", V)
    record = QueueRecord("vision", Uid("vision-uid"), 0.0)
    assert charged_queue(TREE, record, now) == "vision"
    assert charged_queue(TREE, None, now) == "free"
    assert charged_queue(TREE, None, membership(TREE, "gone", V)) == ROOT


def test_a_queue_made_anew_is_not_the_one_of_the_record() -> None:
    now = membership(TREE, "vision", V)
    assert charged_queue(TREE, QueueRecord("vision", Uid("older"), 0.0), now) == ROOT
    assert charged_queue(TREE, QueueRecord("gone", Uid("gone-uid"), 0.0), now) == ROOT
