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


def test_two_defaults_are_none_and_what_runs_is_charged_to_the_older_one() -> None:
    older = replace(queue("older"), default_for=team("v"), created=1.0)
    newer = replace(VISION, created=2.0)
    now = membership(QueueTree.of([queue("research"), newer, older]), "", V)
    expected = Membership("", Refusal.AMBIGUOUS, ("older", "vision"), fallback="older")
    assert (now, now.charged) == (expected, "older")


def test_a_default_of_all_namespaces_is_that_of_those_without_another() -> None:
    tree = QueueTree.of([queue("research"), VISION, BATCH])
    assert membership(tree, "", W) == Membership("batch")
    assert membership(tree, "", V) == Membership("vision")
    own = replace(queue("own"), namespaces=team("w"), default_for=())
    assert membership(QueueTree.of([own, BATCH]), "", W) == Membership("own")
    both = QueueTree.of([BATCH, replace(BATCH, name="any", created=1.0)])
    assert membership(both, "", V).candidates == ("any", "batch")
    assert membership(both, "", V).charged == "batch"


def test_no_gang_starts_in_a_default_with_children_unless_one_of_them_is_the_default() -> None:
    parent = replace(queue("research"), default_for=team("v"))
    child = queue("speech", "research")
    now = membership(QueueTree.of([parent, child, BATCH]), "", V)
    assert now == Membership("", Refusal.NOT_A_LEAF, ("speech",), "research", "research")
    assert now.charged == "research"
    assert membership(QueueTree.of([parent, child, VISION]), "", V) == Membership("vision")


def test_nothing_is_known_of_a_namespace_that_no_watch_has_shown() -> None:
    for named in ("", "free", "gone"):
        now = membership(TREE, named, None)
        assert (now.refusal, now.charged) == (Refusal.UNKNOWN_NAMESPACE, ROOT)


def test_a_refusal_says_which_queues_would_do() -> None:
    both = ("free", "vision")
    for name in ("visoin", ROOT):
        expected = Membership("", Refusal.UNKNOWN, both, name, "vision")
        assert membership(TREE, name, V) == expected
    forbidden = Membership("", Refusal.FORBIDDEN, ("free",), "vision")
    assert membership(TREE, "vision", W) == forbidden
    inner = Membership("", Refusal.NOT_A_LEAF, ("vision",), "research", "research")
    assert membership(TREE, "research", V) == inner


def test_a_namespace_has_no_default_that_does_not_admit_it() -> None:
    tree = QueueTree.of([replace(VISION, parent="", default_for=())])
    assert membership(tree, "", W) == Membership(ROOT)


def test_a_running_gang_is_charged_where_it_started() -> None:
    now = membership(TREE, "free", V)
    record = QueueRecord("vision", Uid("vision-uid"), 0.0)
    assert charged_queue(TREE, record, now) == "vision"
    assert charged_queue(TREE, None, now) == "free"
    assert charged_queue(TREE, None, membership(TREE, "gone", V)) == "vision"
    assert charged_queue(TREE, None, membership(TREE, "gone", W)) == ROOT


def test_a_queue_made_anew_is_not_the_one_of_the_record() -> None:
    now = membership(TREE, "vision", V)
    assert charged_queue(TREE, QueueRecord("vision", Uid("older"), 0.0), now) == ROOT
    assert charged_queue(TREE, QueueRecord("gone", Uid("gone-uid"), 0.0), now) == ROOT
