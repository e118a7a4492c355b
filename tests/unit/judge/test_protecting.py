"""No pod ends whose gang a budget or a Job protects, and no gang by half."""

from typing import Any

import pytest

from ...harness.judge import Gap, Kind, Promise, Verdict
from .writing import Story, two_nodes, whole_gang

LABELS = {"matchLabels": {"tutti.dev/pod-group": "old"}}


def _budget(story: Story, allowed: int | None, selector: dict[str, Any] | None = None) -> None:
    body: dict[str, Any] = {"metadata": {"name": "keep", "namespace": "ml"}}
    body["spec"] = {"selector": selector or LABELS}
    body["status"] = {} if allowed is None else {"disruptionsAllowed": allowed}
    story.put(Kind.BUDGETS, body)


def _job(
    story: Story, limit: int, *, failed: int = 0, uncounted: int = 0, ignores: bool = False
) -> None:
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    policy = {"podFailurePolicy": {"rules": rules}} if ignores else {}
    status = {"uncountedTerminatedPods": {"failed": ["x"] * uncounted}, "failed": failed}
    metadata = {"name": "train", "namespace": "ml"}
    story.put(
        Kind.JOBS,
        {"metadata": metadata, "spec": {"backoffLimit": limit, **policy}, "status": status},
    )


def _running() -> Story:
    """A gang of two runs, whose pods are those of a Job; another waits."""
    story = two_nodes()
    owner = {"apiVersion": "batch/v1", "kind": "Job", "uid": "uid-train", "controller": True}
    whole_gang(story, "old", 2)
    for number in (0, 1):
        body = story.body(Kind.PODS, f"old-{number}")
        metadata = {**body["metadata"], "ownerReferences": [owner]}
        story.put(Kind.PODS, {**body, "metadata": metadata})
    story.group("new", 2)
    story.pods("new", 2, gpu="4")
    return story


def _claim(story: Story) -> None:
    ends = {"old": ["old-0", "old-1"]}
    story.reserve("new", {"new-0": "a", "new-1": "b"}, ends=ends, whole=True)


def _end(story: Story) -> Verdict:
    """Evict the gang for the other one, which starts."""
    _claim(story)
    for number in (0, 1):
        story.evict(f"old-{number}")
    return _start(story)


def _start(story: Story) -> Verdict:
    for number in (0, 1):
        story.bind(f"new-{number}", "ab"[number])
    story.release("new")
    return story.verdict()


def _faults(verdict: Verdict) -> list[str]:
    return [finding.sentence for finding in verdict.of(Promise.PROTECTED)]


@pytest.mark.parametrize("allowed", [None, 0, 1])
def test_the_end_of_a_gang_whose_budget_allows_too_few_evictions_is_found(
    allowed: int | None,
) -> None:
    story = _running()
    _budget(story, allowed)
    (fault,) = _faults(_end(story))
    named = "which names 2 pods of PodDisruptionBudget ml/keep to evict"
    stood = f"it stood {allowed or 0} evictions at most"
    assert fault == f"pods were evicted for ml/new, {named}, and {stood}"


def test_a_budget_that_allows_all_of_them_is_judged_and_broken_by_nobody() -> None:
    story = _running()
    _budget(story, 2)
    verdict = _end(story)
    assert not verdict.violations
    assert verdict.protections == 1


def test_a_budget_of_other_pods_protects_nobody() -> None:
    story = _running()
    _budget(story, 0, {"matchLabels": {"tutti.dev/pod-group": "other"}})
    verdict = _end(story)
    assert (_faults(verdict), verdict.protections) == ([], 0)


def test_evictions_that_a_budget_counts_down_do_not_exceed_it() -> None:
    story = _running()
    _budget(story, 2)
    _claim(story)
    for number in (0, 1):
        _budget(story, 1 - number)
        story.evict(f"old-{number}")
    assert not _faults(_start(story))


def test_a_budget_that_is_tightened_or_eased_while_the_claim_stands_is_no_fault_of_tuttis() -> None:
    for before, after in ((2, 0), (0, 2)):
        story = _running()
        _budget(story, before)
        _claim(story)
        _budget(story, after)
        for number in (0, 1):
            story.evict(f"old-{number}")
        assert not _faults(_start(story))


def test_a_budget_that_is_made_or_deleted_while_the_claim_stands_is_none_either() -> None:
    late = _running()
    _claim(late)
    _budget(late, 0)
    early = _running()
    _budget(early, 0)
    _claim(early)
    early.drop(Kind.BUDGETS, "uid-keep")
    for story in (late, early):
        for number in (0, 1):
            story.evict(f"old-{number}")
        assert not _faults(_start(story))


@pytest.mark.parametrize(("failed", "uncounted"), [(0, 0), (1, 0), (0, 1)])
def test_evictions_that_make_a_job_fail_are_found(failed: int, uncounted: int) -> None:
    story = _running()
    _job(story, 1 + failed + uncounted, failed=failed, uncounted=uncounted)
    (fault,) = _faults(_end(story))
    named = "which names 2 pods of Job ml/train to evict"
    assert fault == f"pods were evicted for ml/new, {named}, and it stood 1 evictions at most"


def test_a_job_that_stands_them_or_ignores_them_is_no_protection() -> None:
    for limit, ignores in ((2, False), (0, True)):
        story = _running()
        _job(story, limit, ignores=ignores)
        verdict = _end(story)
        assert (_faults(verdict), verdict.protections) == ([], 1)


def test_a_gang_that_ends_by_half_is_found() -> None:
    story = _running()
    _claim(story)
    story.evict("old-0")
    verdict = _start(story)
    assert _faults(verdict) == ["1 of 2 pods of ml/old stay, the others were evicted"]


def test_one_that_is_ended_by_half_while_the_claim_stands_may_still_end_whole() -> None:
    story = _running()
    _claim(story)
    story.evict("old-0")
    assert not _faults(story.verdict())


def test_a_pod_that_the_api_server_refused_to_evict_may_stay() -> None:
    story = _running()
    _claim(story)
    story.evict("old-0")
    story.wrote("create", "pods/eviction", "old-1", uid="uid-old-1", code=429)
    assert not _faults(_start(story))


def test_a_gang_of_which_extras_alone_end_may_go_on() -> None:
    story = _running()
    story.reserve("new", {"new-0": "a", "new-1": "b"}, ends={"old": ["old-0", "old-1"]})
    story.evict("old-0")
    assert not _faults(_start(story))


def test_a_claim_in_a_namespace_that_nobody_asks_about_is_not_judged() -> None:
    story = _running()
    _budget(story, 0)
    _end(story)
    assert not story.verdict(namespaces=frozenset({"other"})).violations


@pytest.mark.parametrize(("began", "is_proved"), [("before", True), ("meanwhile", False)])
def test_what_changed_in_a_gap_of_the_watch_while_the_claim_stood_is_not_proved(
    *, began: str, is_proved: bool
) -> None:
    story = _running()
    _budget(story, 1)
    before = story.revision
    _claim(story)
    if began == "before":
        story.gaps.append(Gap(Kind.BUDGETS, before - 1, before))
    for number in (0, 1):
        story.evict(f"old-{number}")
    if began == "meanwhile":
        story.gaps.append(Gap(Kind.PODS, story.revision - 1, story.revision))
    verdict = _start(story)
    assert bool(_faults(verdict)) is is_proved
    unproved = [item for item in verdict.unproved if item.promise is Promise.PROTECTED]
    assert bool(unproved) is not is_proved
