"""No member of a gang is bound without a Reservation that stands and gives it that node."""

import pytest

from ...harness.judge import Promise
from .writing import US, Story, two_nodes, whole_gang

COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"


def _faults(story: Story) -> list[str]:
    return [finding.sentence for finding in story.verdict().of(Promise.RESERVED_FIRST)]


def _waiting_gang(count: int = 2) -> Story:
    story = two_nodes()
    story.group("train", count)
    story.pods("train", count)
    return story


def test_bindings_after_their_reservation_are_clean() -> None:
    assert not _faults(whole_gang(two_nodes()))


def test_a_binding_without_any_reservation_is_found() -> None:
    story = _waiting_gang()
    story.bind("train-0", "a")
    story.bind("train-1", "b")
    assert [fault.rpartition("but ")[2] for fault in _faults(story)] == [
        "it never had a Reservation"
    ] * 2


def test_a_reservation_created_after_the_binding_is_too_late() -> None:
    story = _waiting_gang()
    story.bind("train-0", "a")
    later = story.reserve("train", {"train-0": "a", "train-1": "b"})
    story.bind("train-1", "b")
    (fault,) = _faults(story)
    assert f"created only later, at revision {later}" in fault


def test_a_reservation_deleted_before_the_binding_does_not_count() -> None:
    story = _waiting_gang()
    story.reserve("train", {"train-0": "a", "train-1": "b"})
    story.bind("train-0", "a")
    deleted = story.release("train")
    story.bind("train-1", "b")
    (fault,) = _faults(story)
    assert f"had been deleted at revision {deleted}" in fault


@pytest.mark.parametrize(
    ("deleter", "deleted", "sent", "node", "is_lawful"),
    [
        (COLLECTOR, 2.0, 1.0, "b", True),
        (COLLECTOR, 2.0, 3.0, "b", True),  # the watch may show the deletion late
        (COLLECTOR, 2.0, 3.1, "b", False),  # Tutti knew
        (COLLECTOR, 2.0, 1.0, "a", False),  # to another node than the reserved
        (COLLECTOR, None, 1.0, "b", False),  # nobody knows which came first
        (COLLECTOR, 2.0, None, "b", False),
        (US, 2.0, 1.0, "b", False),  # Tutti waits for its bindings before it deletes
    ],
)
def test_a_binding_under_way_when_another_deletes_the_reservation_is_lawful(
    *, deleter: str, deleted: float | None, sent: float | None, node: str, is_lawful: bool
) -> None:
    story = _waiting_gang()
    story.reserve("train", {"train-0": "a", "train-1": "b"})
    story.bind("train-0", "a", at=0.5)
    story.release("train", by=deleter, at=deleted)
    story.bind("train-1", node, at=sent)
    assert bool(_faults(story)) is not is_lawful


def test_a_binding_under_way_of_a_pod_that_the_deleted_reservation_did_not_name_is_found() -> None:
    story = _waiting_gang()
    story.reserve("train", {"train-0": "a"})
    story.release("train", by=COLLECTOR, at=2.0)
    story.bind("train-1", "b", at=1.0)
    (fault,) = _faults(story)
    assert "had been deleted" in fault


def test_a_deletion_by_another_excuses_nothing_once_tutti_has_reserved_and_deleted_again() -> None:
    story = _waiting_gang()
    placement = {"train-0": "a", "train-1": "b"}
    story.reserve("train", placement)
    story.release("train", by=COLLECTOR, at=2.0)
    story.reserve("train", placement)
    story.release("train", at=3.0)
    story.bind("train-0", "a", at=1.0)
    assert _faults(story)


def test_a_reservation_that_keeps_a_record_alone_does_not_count() -> None:
    story = _waiting_gang()
    story.reserve("train", {"train-0": "a", "train-1": "b"}, queue="vision")
    story.bind("train-0", "a")
    emptied = story.reserve("train", queue="vision")
    story.bind("train-1", "b")
    (fault,) = _faults(story)
    assert f"had been deleted at revision {emptied}" in fault
    again = _waiting_gang()
    again.reserve("train", queue="vision")
    again.reserve("train", {"train-0": "a", "train-1": "b"}, queue="vision")
    again.bind("train-0", "a")
    again.bind("train-1", "b")
    assert not _faults(again)


def test_a_binding_to_another_node_than_the_reserved_is_found() -> None:
    story = _waiting_gang(1)
    story.reserve("train", {"train-0": "a"})
    story.bind("train-0", "b")
    assert "gives it node a" in _faults(story)[0]


def test_a_recreated_pod_of_the_same_name_is_not_the_reserved_one() -> None:
    story = two_nodes()
    story.group("train", 1)
    story.reserve("train", {"train-0": "a"})
    story.pod("train-0", "train", uid="another")
    story.pod("train-0", "train", uid="another", node="a")
    assert "names a pod of that name with uid uid-train-0" in _faults(story)[0]


def test_a_slot_is_given_to_a_member_by_name_before_it_is_bound() -> None:
    story = two_nodes()
    story.group("spark", 2)
    story.reserve("spark", slots={"a": {"executor": 1}, "b": {"executor": 1}})
    story.pod("e0", "spark", role="executor")
    story.pod("e1", "spark", role="executor")
    story.reserve("spark", {"e0": "a"}, slots={"b": {"executor": 1}})
    story.bind("e0", "a")
    story.bind("e1", "b")
    (fault,) = _faults(story)
    assert "e1" in fault
    assert "its slots there are: executor" in fault


def test_gangs_of_one_need_no_reservation() -> None:
    story = two_nodes()
    story.pod("alone")
    story.bind("alone", "a")
    verdict = story.verdict()
    assert not verdict.violations
    assert verdict.bindings == 1


def test_pods_bound_before_the_start_and_pods_created_with_a_node_are_exempt() -> None:
    story = Story()
    story.node("a")
    story.group("train", 1)
    story.pod("train-0", "train", node="a")
    story.begins()
    story.pod("train-1", "train", node="a")
    assert not story.verdict().violations


def test_a_reservation_of_an_earlier_group_of_that_name_does_not_count() -> None:
    story = _waiting_gang(1)
    story.reserve("train", {"train-0": "a"})
    story.put(
        story.events[2].kind,
        {"metadata": {"name": "train", "namespace": "ml", "uid": "new"}, "spec": {"minMember": 1}},
    )
    story.bind("train-0", "a")
    assert "earlier PodGroup" in _faults(story)[0]
