"""What is charged to a queue exceeds no limit, not for one moment."""

from ...harness.judge import Kind, Promise
from .writing import KUBE, Story, two_nodes


def _faults(story: Story) -> list[str]:
    return [finding.sentence for finding in story.verdict().of(Promise.LIMITS)]


def _gang(story: Story, name: str, count: int, queue: str) -> None:
    story.queued(name, count, queue)
    story.pods(name, count, gpu="1")


def _start(story: Story, name: str, count: int) -> None:
    nodes = {f"{name}-{index}": "ab"[index % 2] for index in range(count)}
    story.reserve(name, nodes)
    for pod, node in nodes.items():
        story.bind(pod, node)
    story.reserve(name, queue="q")


def _scene(limit: str = "3") -> Story:
    story = two_nodes()
    story.queue("top", gpu=limit)
    story.queue("q", "top")
    _gang(story, "first", 2, "q")
    _gang(story, "second", 2, "q")
    _start(story, "first", 2)
    return story


def test_gangs_within_a_limit_are_clean() -> None:
    story = _scene("4")
    _start(story, "second", 2)
    assert _faults(story) == []


def test_a_reservation_above_the_limit_of_a_queue_above_is_found() -> None:
    story = _scene()
    story.reserve("second", {"second-0": "a", "second-1": "b"})
    assert _faults(story) == [
        "gang ml/second holds more, and queue top is then charged 4 of 3 nvidia.com/gpu"
    ]


def test_what_ended_gives_its_part_of_the_limit_back() -> None:
    story = _scene()
    for pod in ("first-0", "first-1"):
        story.phase(pod, "Succeeded")
    _start(story, "second", 2)
    assert _faults(story) == []


def test_a_reservation_that_is_adopted_charges_nothing_for_pods_that_have_ended() -> None:
    story = two_nodes()
    story.queue("q", gpu="2")
    _gang(story, "first", 2, "q")
    nodes = {"first-0": "a", "first-1": "b"}
    story.reserve("first", nodes)
    for pod, node in nodes.items():
        story.bind(pod, node)
        story.phase(pod, "Succeeded")
    story.reserve("first", nodes)
    _gang(story, "second", 2, "q")
    _start(story, "second", 2)
    assert _faults(story) == []


def test_a_lost_member_stays_charged_and_its_replacement_adds_nothing() -> None:
    story = _scene()
    story.drop(Kind.PODS, "uid-first-0")
    story.queued("one", 1, "q")
    story.pods("one", 1, gpu="2")
    story.reserve("one", {"one-0": "a"})
    assert len(_faults(story)) == 1
    story = _scene("2")
    story.drop(Kind.PODS, "uid-first-0")
    story.pod("first-2", "first", gpu="1")
    story.reserve("first", {"first-2": "a"})
    story.bind("first-2", "a")
    assert _faults(story) == []


def test_a_member_beyond_those_needed_counts_where_it_is() -> None:
    story = _scene("2")
    story.pod("first-2", "first", gpu="1")
    story.reserve("first", {"first-2": "a"})
    assert len(_faults(story)) == 1


def test_a_lowered_limit_counts_once_tutti_has_written_about_it() -> None:
    for observed, faults in ((1, 0), (2, 1)):
        story = _scene("4")
        story.queue("top", gpu="3", generation=2, observed=observed)
        _start(story, "second", 2)
        assert len(_faults(story)) == faults
    story = _scene("4")
    story.queue("top", gpu="1", generation=2, observed=2)
    assert _faults(story) == [], "what runs is not ended"


def test_a_queue_that_was_moved_counts_above_once_tutti_has_written_about_it() -> None:
    for observed, faults in ((1, 0), (2, 1)):
        story = _scene("9")
        story.queue("other", gpu="3")
        story.queue("q", "other", generation=2, observed=observed)
        _start(story, "second", 2)
        assert len(_faults(story)) == faults


def test_a_queue_without_limits_and_one_that_is_gone_limit_nothing() -> None:
    story = _scene()
    story.drop(Kind.QUEUES, "uid-top")
    _start(story, "second", 2)
    assert _faults(story) == []


def test_others_and_pods_of_no_gang_are_not_judged() -> None:
    story = _scene("2")
    story.pod("alone", gpu="1")
    story.bind("alone", "a")
    story.pod("second-9", "second", gpu="1", scheduler="default-scheduler")
    story.bind("second-9", "a", by=KUBE)
    assert _faults(story) == []


def test_members_of_roles_are_charged_as_the_gang_started() -> None:
    story = two_nodes()
    story.queue("q", gpu="3")
    story.put(
        Kind.POD_GROUPS,
        {
            "metadata": {"name": "train", "namespace": "ml"},
            "spec": {"queue": "q", "roles": [{"name": "d", "minMember": 1}], "minMember": 2},
        },
    )
    for name, role in (("a", "w"), ("b", "d"), ("c", "w")):
        story.pod(name, "train", role=role, gpu="1")
    story.reserve("train", {"a": "a", "b": "a", "c": "b"})
    assert _faults(story) == []
    story.drop(Kind.PODS, "uid-c")
    _gang(story, "other", 1, "q")
    _start(story, "other", 1)
    assert _faults(story) == []
