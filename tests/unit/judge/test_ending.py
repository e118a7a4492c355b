"""No pod is evicted for a gang that then does not start, unless something outside changed."""

from ...harness.judge import Gap, Kind, Promise, Verdict
from .writing import Story, two_nodes, whole_gang


def _evicted() -> Story:
    """A gang of two has been evicted, so that another starts in its room."""
    story = whole_gang(two_nodes(), "old", 2)
    story.group("new", 2)
    story.pods("new", 2, gpu="4")
    story.reserve("new", {"new-0": "a", "new-1": "b"}, ends={"old": ["old-0", "old-1"]})
    story.evict("old-0")
    story.evict("old-1")
    return story


def _faults(verdict: Verdict) -> list[str]:
    return [finding.sentence for finding in verdict.of(Promise.ENDS)]


def test_evictions_for_a_gang_that_starts_are_clean() -> None:
    story = _evicted()
    story.bind("new-0", "a")
    story.bind("new-1", "b")
    story.release("new")
    verdict = story.verdict()
    assert not verdict.violations
    assert verdict.ends == 2


def test_a_claim_that_still_stands_may_still_start() -> None:
    assert not _faults(_evicted().verdict())


def test_evictions_for_a_gang_that_is_given_up_are_found() -> None:
    story = _evicted()
    story.release("new")
    assert _faults(story.verdict()) == [
        f"pod ml/old-{n} was evicted for ml/new, and nothing of it has started" for n in (0, 1)
    ]
    emptied = _evicted()
    emptied.reserve("new", queue="vision")
    assert len(_faults(emptied.verdict())) == 2


def test_a_binding_by_another_scheduler_is_no_start() -> None:
    story = _evicted()
    story.release("new")
    story.bind("new-0", "a", by="another")
    assert len(_faults(story.verdict())) == 2


def test_what_changes_outside_excuses_a_claim_that_is_given_up() -> None:
    def deletes_a_pod(story: Story) -> None:
        story.drop(Kind.PODS, "uid-new-0")

    def deletes_the_group(story: Story) -> None:
        story.drop(Kind.POD_GROUPS, "uid-new")

    def enlarges_the_group(story: Story) -> None:
        story.group("new", 3)

    def cordons_a_node(story: Story) -> None:
        story.node("a", cordoned=True, gpu="4")

    for change in (deletes_a_pod, deletes_the_group, enlarges_the_group, cordons_a_node):
        story = _evicted()
        change(story)
        story.release("new")
        assert not _faults(story.verdict()), change.__name__


def test_a_change_of_a_node_that_the_claim_does_not_name_excuses_nothing() -> None:
    story = _evicted()
    story.node("c", gpu="4")
    story.node("c", cordoned=True, gpu="4")
    story.release("new")
    assert len(_faults(story.verdict())) == 2


def test_an_eviction_that_names_no_claim_is_another_promise() -> None:
    story = whole_gang(two_nodes(), "old", 2)
    story.evict("old-0")
    verdict = story.verdict()
    assert (_faults(verdict), verdict.ends) == ([], 0)


def test_a_start_by_a_later_reservation_excuses_no_claim_that_was_given_up() -> None:
    """Whether the object is deleted, or emptied and used again; and what changes later neither."""
    for is_kept in (False, True):
        story = _evicted()
        if is_kept:
            story.reserve("new", queue="vision")
        else:
            story.release("new")
        story.reserve("new", {"new-0": "a", "new-1": "b"})
        story.bind("new-0", "a")
        story.bind("new-1", "b")
        story.node("a", cordoned=True, gpu="4")
        story.release("new")
        assert len(_faults(story.verdict())) == 2


def test_each_claim_of_one_object_is_judged_by_itself() -> None:
    story = whole_gang(two_nodes(), "old", 2)
    story.group("new", 1)
    story.pod("new-0", "new", gpu="4")
    story.reserve("new", {"new-0": "a"}, ends={"old": ["old-0"]})
    story.evict("old-0")
    story.reserve("new", queue="vision")
    story.reserve("new", {"new-0": "b"}, ends={"old": ["old-1"]})
    story.evict("old-1")
    story.bind("new-0", "b")
    story.release("new")
    assert _faults(story.verdict()) == [
        "pod ml/old-0 was evicted for ml/new, and nothing of it has started"
    ]


def test_a_binding_in_a_gap_of_the_watch_may_have_come_while_the_claim_stood() -> None:
    story = _evicted()
    before = story.revision
    story.release("new")
    story.bind("new-0", "a")
    story.gaps.append(Gap(Kind.PODS, before, story.revision))
    assert not _faults(story.verdict())
