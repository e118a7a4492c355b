"""P2: over-commits, and whose they are."""

import pytest

from ...harness.judge import Kind, Promise
from .writing import KUBE, Story, two_nodes, whole_gang


def test_a_node_filled_to_the_brim_is_clean() -> None:
    story = whole_gang(two_nodes(), count=8)
    assert not story.verdict().violations


@pytest.mark.parametrize(
    ("requests", "said"),
    [
        ({"gpu": "3"}, "nvidia.com/gpu 6 of 4 (3 by this pod)"),
        ({"cpu": "4001m"}, "cpu 8.002 of 8 (4.001 by this pod)"),
        ({"memory": "17Gi"}, "memory 36507222016 of 34359738368"),
        ({"example.com/fpga": "1"}, "example.com/fpga 1 of 0"),
    ],
)
def test_more_than_allocatable_of_any_resource_is_a_violation(
    requests: dict[str, str], said: str
) -> None:
    story = two_nodes()
    for name in ("one", "two"):
        story.pod(name, **requests)
        story.bind(name, "a")
    found = story.verdict().of(Promise.CAPACITY)
    assert said in found[0].sentence


def test_more_pods_than_the_node_takes_is_a_violation() -> None:
    story = Story()
    story.node("tiny", pods="1")
    story.begins()
    for name in ("one", "two"):
        story.pod(name)
        story.bind(name, "tiny")
    (found,) = story.verdict().of(Promise.CAPACITY)
    assert "pods 2 of 1" in found.sentence
    assert "ml/one (tutti), ml/two (tutti)" in found.sentence


def test_room_of_finished_and_deleted_pods_is_free_again() -> None:
    story = two_nodes()
    for name in ("one", "two", "three"):
        story.pod(name, gpu="4")
    story.bind("one", "a")
    story.phase("one", "Succeeded")
    story.bind("two", "a")
    story.drop(Kind.PODS, "uid-two")
    story.bind("three", "a")
    assert not story.verdict().violations


def test_an_overcommit_by_another_scheduler_is_a_collision() -> None:
    story = two_nodes()
    story.pod("ours", gpu="4")
    story.pod("theirs", gpu="1", scheduler="default-scheduler")
    story.bind("ours", "a")
    story.bind("theirs", "a", by=KUBE)
    verdict = story.verdict()
    assert not verdict.violations
    assert f"ml/theirs was bound by {KUBE}" in verdict.collisions[0].sentence


def test_an_overcommit_by_us_beside_another_scheduler_is_ours() -> None:
    story = two_nodes()
    story.pod("theirs", gpu="1", scheduler="default-scheduler")
    story.pod("ours", gpu="4")
    story.bind("theirs", "a", by=KUBE)
    story.bind("ours", "a")
    assert len(story.verdict().of(Promise.CAPACITY)) == 1


@pytest.mark.parametrize(("since", "ours"), [(-1, 0), (0, 1)])
def test_to_bind_onto_room_that_was_seen_taken_by_another_is_a_violation_and_else_a_collision(
    since: int, ours: int
) -> None:
    story = two_nodes()
    story.pod("theirs", gpu="1", scheduler="default-scheduler")
    story.pod("ours", gpu="4")
    arrival = story.bind("theirs", "a", by=KUBE)
    story.phase("theirs", "Running")
    story.bind("ours", "a")
    with pytest.raises(LookupError, match="uid-ours"):
        story.verdict(seen={})
    verdict = story.verdict(seen={"uid-ours": arrival + since})
    assert len(verdict.violations) == ours
    assert len(verdict.collisions) == 1 - ours


def test_what_we_just_took_is_seen_by_us() -> None:
    story = two_nodes()
    for name in ("one", "two"):
        story.pod(name, gpu="3")
        story.bind(name, "a")
    assert len(story.verdict(seen={"uid-two": 0}).of(Promise.CAPACITY)) == 1


def test_what_another_just_took_excuses_nothing_that_would_not_fit_without_it() -> None:
    story = two_nodes()
    story.pod("theirs", gpu="1", scheduler="default-scheduler")
    story.pod("ours", gpu="5")
    story.bind("theirs", "a", by=KUBE)
    story.bind("ours", "a")
    assert len(story.verdict(seen={"uid-ours": 0}).of(Promise.CAPACITY)) == 1


def test_a_resource_that_the_pod_does_not_take_is_not_held_against_its_binding() -> None:
    story = Story()
    story.node("a", gpu="1")
    story.pod("old", node="a", scheduler="default-scheduler", gpu="2")
    story.begins()
    story.pod("ours", cpu="1")
    story.bind("ours", "a")
    assert not story.verdict().violations


def test_a_node_nobody_saw_is_a_violation_and_one_deleted_just_before_is_not() -> None:
    story = two_nodes()
    story.pod("one")
    story.pod("two")
    story.bind("one", "nowhere")
    story.drop(Kind.NODES, "uid-b")
    story.bind("two", "b")
    verdict = story.verdict()
    assert [violation.subject for violation in verdict.violations] == ["nowhere"]
    assert [collision.subject for collision in verdict.collisions] == ["b"]
