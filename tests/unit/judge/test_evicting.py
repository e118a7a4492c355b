"""Tutti evicts no pod unless a Reservation that stands then names it."""

import json

import pytest

from ...harness.judge import Gap, Kind, Promise
from ...harness.judge.audit import entry_of
from .writing import KUBE, US, Story, moment, two_nodes, whole_gang


def _running() -> Story:
    """A gang of two runs, and another waits."""
    story = whole_gang(two_nodes(), "old", 2)
    story.group("new", 2)
    story.pods("new", 2, gpu="4")
    return story


def _claim(story: Story, *pods: str, whole: bool = False) -> None:
    story.reserve("new", {"new-0": "a", "new-1": "b"}, ends={"old": pods}, whole=whole)


def _faults(story: Story) -> list[str]:
    return [finding.sentence for finding in story.verdict().of(Promise.NAMED_FIRST)]


def test_pods_that_a_standing_claim_names_may_be_evicted() -> None:
    story = _running()
    _claim(story, "old-0", "old-1")
    story.evict("old-0")
    story.evict("old-1")
    assert not story.verdict().violations


def test_so_may_later_members_of_a_gang_that_ends_whole() -> None:
    for whole in (True, False):
        story = _running()
        _claim(story, "old-0", whole=whole)
        story.evict("old-1")
        assert bool(_faults(story)) is not whole


def test_so_may_members_of_a_gang_that_is_given_up() -> None:
    story = _running()
    story.reserve("old", evict=["old-0"])
    story.evict("old-0")
    assert not _faults(story)


def test_an_eviction_that_no_reservation_names_is_found() -> None:
    story = _running()
    story.evict("old-0")
    (sentence,) = _faults(story)
    assert sentence == (
        f"pod ml/old-0 (uid-old-0) was evicted at revision {story.revision}, "
        "and no Reservation that stood then names it as one to evict"
    )


def test_an_eviction_after_the_claim_was_deleted_is_found_whatever_has_started() -> None:
    story = _running()
    _claim(story, "old-0", "old-1")
    story.evict("old-0")
    story.release("new")
    story.evict("old-1")
    assert len(_faults(story)) == 1


def test_an_eviction_is_judged_when_its_pod_begins_to_terminate() -> None:
    story = _running()
    _claim(story, "old-0", "old-1")
    story.wrote("create", "pods/eviction", "old-0", uid="uid-old-0", code=201)
    story.pod("old-0", "old", node="a", deleted=moment(0.0))
    story.release("new")
    story.drop(Kind.PODS, "uid-old-0")
    assert not _faults(story)


def test_evictions_by_others_and_of_namesakes_are_none_of_tuttis() -> None:
    story = _running()
    story.wrote("create", "pods/eviction", "old-0", user=KUBE, uid="uid-old-0", code=201)
    story.drop(Kind.PODS, "uid-old-0")
    story.wrote("create", "pods/eviction", "old-1", uid="an-earlier-pod", code=201)
    story.wrote("create", "pods/eviction", "old-1", uid="uid-old-1", code=409)
    story.drop(Kind.PODS, "uid-old-1")
    assert not _faults(story)


def test_what_lies_in_a_gap_of_the_watch_is_not_proved() -> None:
    story = _running()
    before = story.revision
    story.evict("old-0")
    story.gaps.append(Gap(Kind.PODS, before, story.revision))
    verdict = story.verdict()
    assert not verdict.of(Promise.NAMED_FIRST)
    assert [finding.promise for finding in verdict.unproved] == [Promise.NAMED_FIRST]


@pytest.mark.parametrize("conditions", [{"uid": "u1", "resourceVersion": "7"}, {}])
def test_the_preconditions_of_an_eviction_say_which_pod_was_meant(
    conditions: dict[str, str],
) -> None:
    body = {"metadata": {"name": "p"}, "deleteOptions": {"preconditions": conditions}}
    about = {"resource": "pods", "subresource": "eviction", "namespace": "ml", "name": "p"}
    line = {"verb": "create", "objectRef": about, "requestObject": body, "user": {"username": US}}
    entry = entry_of(json.loads(json.dumps(line)))
    assert (entry.uid, entry.resource) == (conditions.get("uid", ""), "pods/eviction")
