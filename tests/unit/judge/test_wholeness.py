"""P1: partly bound gangs, excused and not."""

import pytest

from ...harness.judge import Gap, Kind, Promise
from .writing import KUBE, Story, two_nodes, whole_gang


def _whole(story: Story) -> list[str]:
    return [finding.sentence for finding in story.verdict().of(Promise.WHOLE)]


def test_a_gang_reserved_then_bound_whole_is_clean() -> None:
    verdict = whole_gang(two_nodes()).verdict()
    assert not verdict.violations
    assert not verdict.broken
    assert (verdict.bindings, verdict.gangs) == (4, 1)


def test_a_gang_that_rests_partly_bound_without_reservation_is_a_violation() -> None:
    story = two_nodes()
    story.group("train", 4)
    story.pods("train", 4)
    at = story.bind("train-2", "a")
    (sentence,) = _whole(story)
    assert f"gang ml/train: 1 of 4 members bound since revision {at} (train-2)" in sentence
    assert "no Reservation holds the rest; at rest 1 of 4" in sentence


def test_one_member_bound_early_is_a_violation_though_the_gang_is_whole_later() -> None:
    story = two_nodes()
    story.group("train", 2)
    story.pods("train", 2)
    story.bind("train-0", "a")
    ended = story.reserve("train", {"train-1": "b"})
    story.bind("train-1", "b")
    (sentence,) = _whole(story)
    assert f"it ended at revision {ended}" in sentence


def test_a_reservation_taken_away_in_the_middle_is_a_violation() -> None:
    story = two_nodes()
    story.group("train", 3)
    story.pods("train", 3)
    story.reserve("train", {"train-0": "a", "train-1": "a", "train-2": "b"})
    story.bind("train-0", "a")
    story.release("train")
    assert len(_whole(story)) == 1


def test_a_reservation_that_keeps_a_record_alone_holds_nothing() -> None:
    story = two_nodes()
    story.group("train", 3)
    story.pods("train", 3)
    placement = {"train-0": "a", "train-1": "a", "train-2": "b"}
    story.reserve("train", placement, queue="vision")
    story.bind("train-0", "a")
    story.reserve("train", queue="vision")
    (sentence,) = _whole(story)
    assert "no Reservation holds the rest" in sentence


def test_who_deletes_the_record_of_a_gang_excuses_nothing() -> None:
    story = two_nodes()
    story.group("train", 2)
    story.pods("train", 2)
    story.reserve("train", queue="vision")
    story.release("train", by="system:admin")
    story.bind("train-0", "a")
    assert len(_whole(story)) == 1


def test_a_reservation_that_somebody_else_deleted_is_not_our_violation() -> None:
    story = two_nodes()
    story.group("train", 3)
    story.pods("train", 3)
    story.reserve("train", {"train-0": "a", "train-1": "a", "train-2": "b"})
    story.bind("train-0", "a")
    story.release("train", by="system:admin")
    verdict = story.verdict()
    assert not verdict.violations
    assert "system:admin deleted its Reservation" in verdict.broken[0].sentence


def test_a_reservation_for_fewer_than_the_rest_is_a_violation() -> None:
    story = two_nodes()
    story.group("train", 3)
    story.pods("train", 3)
    story.reserve("train", {"train-0": "a", "train-1": "a"})
    story.bind("train-0", "a")
    story.bind("train-1", "a")
    (sentence,) = _whole(story)
    assert "names 1 of its 2 waiting members and 0 slots" in sentence


def test_partly_bound_with_the_rest_reserved_is_listed_but_no_violation() -> None:
    story = two_nodes()
    story.group("spark", driver=1, executor=3)
    story.pod("driver", "spark", role="driver")
    story.reserve("spark", {"driver": "a"}, slots={"a": {"executor": 1}, "b": {"executor": 2}})
    story.bind("driver", "a")
    verdict = story.verdict()
    assert not verdict.violations
    assert "[driver 1/1, executor 0/3]" in verdict.unfinished[0].sentence


def test_enough_members_of_the_wrong_roles_are_not_whole() -> None:
    story = two_nodes()
    story.group("spark", driver=1, executor=2)
    placed = {f"e{index}": "a" for index in range(3)}
    for pod in placed:
        story.pod(pod, "spark", role="executor")
    story.reserve("spark", placed)
    for pod, node in placed.items():
        story.bind(pod, node)
    assert "[driver 0/1, executor 3/2]" in _whole(story)[0]


def test_a_member_lost_after_the_gang_was_whole_is_broken_not_violated() -> None:
    story = whole_gang(two_nodes())
    story.drop(Kind.PODS, "uid-train-1")
    verdict = story.verdict()
    assert not verdict.violations
    assert "3 of 4 members bound" in verdict.broken[0].sentence
    assert "member train-1 was deleted" in verdict.broken[0].sentence


def test_a_failed_member_that_is_replaced_is_told_as_repaired() -> None:
    story = whole_gang(two_nodes())
    story.phase("train-1", "Failed")
    story.pod("train-4", "train", gpu="1")
    story.reserve("train", {"train-4": "b"})
    story.bind("train-4", "b")
    verdict = story.verdict()
    assert not verdict.violations
    assert "repaired at revision" in verdict.broken[0].sentence


def test_a_node_lost_between_reserving_and_binding_excuses_what_is_missing() -> None:
    story = two_nodes()
    story.group("train", 2)
    story.pods("train", 2)
    story.reserve("train", {"train-0": "a", "train-1": "b"})
    story.bind("train-0", "a")
    story.drop(Kind.NODES, "uid-b")
    story.release("train")
    verdict = story.verdict()
    assert not verdict.violations
    assert "node b was deleted" in verdict.broken[0].sentence


@pytest.mark.parametrize("is_before_the_reservation", [True, False])
@pytest.mark.parametrize(("since", "ours"), [(-1, 0), (0, 1)])
def test_room_that_was_not_seen_taken_when_the_first_member_was_bound_excuses_what_is_missing(
    since: int, ours: int, *, is_before_the_reservation: bool
) -> None:
    story = two_nodes()
    story.group("train", 2)
    story.pods("train", 2)
    story.pod("theirs", scheduler="default-scheduler")
    if is_before_the_reservation:
        arrival = story.bind("theirs", "b", by=KUBE)
    story.reserve("train", {"train-0": "a", "train-1": "b"})
    if not is_before_the_reservation:
        arrival = story.bind("theirs", "b", by=KUBE)
    story.bind("train-0", "a")
    story.release("train")
    verdict = story.verdict(seen={"uid-train-0": arrival + since})
    assert (len(verdict.violations), len(verdict.broken)) == (ours, 1 - ours)


def test_succeeded_members_count_as_bound() -> None:
    story = whole_gang(two_nodes())
    for index in range(3):
        story.phase(f"train-{index}", "Succeeded")
    verdict = story.verdict()
    assert not verdict.violations
    assert not verdict.broken


def test_a_group_deleted_while_pods_wait_is_judged_by_its_last_min_member() -> None:
    story = two_nodes()
    story.group("train", 2)
    story.pods("train", 2)
    story.drop(Kind.POD_GROUPS, "uid-train")
    story.bind("train-0", "a")
    assert "1 of 2 members bound" in _whole(story)[0]


def test_a_second_life_of_a_gang_must_be_whole_again() -> None:
    story = whole_gang(two_nodes())
    for index in range(4):
        story.drop(Kind.PODS, f"uid-train-{index}")
    story.pods("train", 4)
    story.bind("train-0", "a")
    assert len(_whole(story)) == 1


def test_a_gang_that_somebody_else_began_may_be_completed_one_by_one() -> None:
    story = two_nodes()
    story.group("train", 3)
    story.pods("train", 3)
    story.bind("train-0", "a", by="system:admin")
    story.reserve("train", {"train-1": "a"})
    story.bind("train-1", "a")
    story.release("train")
    verdict = story.verdict()
    assert not verdict.violations
    assert "system:admin bound train-0" in verdict.broken[0].sentence


def test_a_gang_found_partly_bound_at_the_start_is_not_blamed() -> None:
    story = Story()
    story.node("a")
    story.group("old", 2)
    story.pod("old-0", "old", node="a")
    story.pod("old-1", "old")
    verdict = story.begins().verdict()
    assert not verdict.violations
    assert "already so when the witness began" in verdict.broken[0].sentence


def test_gangs_of_one_name_in_two_namespaces_are_kept_apart_and_others_can_be_left_out() -> None:
    story = two_nodes()
    story.group("train", 2)
    story.pods("train", 2)
    story.bind("train-0", "a")
    assert not story.verdict(namespaces=frozenset({"elsewhere"})).violations


def test_another_scheduler_that_half_binds_its_pods_is_none_of_our_business() -> None:
    story = two_nodes()
    story.group("train", 2)
    for name in ("train-0", "train-1"):
        story.pod(name, "train", scheduler="default-scheduler")
    story.bind("train-0", "a", by=KUBE)
    assert not story.verdict().violations


def test_what_is_partly_bound_only_inside_a_gap_is_not_judged() -> None:
    story = two_nodes()
    story.group("train", 2)
    story.pods("train", 2)
    first = story.bind("train-0", "a")
    last = story.bind("train-1", "b")
    story.gaps.append(Gap(Kind.PODS, first - 1, last))
    verdict = story.verdict()
    assert not verdict.violations
    assert len(verdict.unproved) == 2


def _awaiting(maker: str = "") -> Story:
    """A driver that is bound, and three executors that are awaited for 5 seconds."""
    story = two_nodes()
    story.awaiting("spark", maker=maker, driver=1, executor=3)
    story.pod("driver", "spark", role="driver")
    story.reserve("spark", {"driver": "a"}, slots={"a": {"executor": 1}, "b": {"executor": 2}})
    story.bind("driver", "a")
    return story


@pytest.mark.parametrize(("at", "is_excused"), [(4.0, False), (5.0, True), (None, False)])
def test_room_for_absent_members_is_given_back_in_time_and_no_sooner(
    at: float | None, *, is_excused: bool
) -> None:
    story = _awaiting()
    story.release("spark", at=at)
    assert bool(_whole(story)) is not is_excused
    if is_excused:
        said = story.verdict().broken[0].sentence
        assert "its absent members did not come within 5 s" in said


@pytest.mark.parametrize(("cpu", "is_excused"), [("1", False), ("2", True)])
def test_a_slot_is_given_back_for_a_member_that_asks_for_more(
    cpu: str, *, is_excused: bool
) -> None:
    story = _awaiting()
    story.pod("e0", "spark", role="executor", cpu=cpu)
    story.reserve("spark", slots={"b": {"executor": 2}})
    assert bool(_whole(story)) is not is_excused


@pytest.mark.parametrize("maker", ["", "driver"])
def test_slots_are_given_back_once_nobody_makes_members_any_more(maker: str) -> None:
    story = _awaiting(maker=maker)
    story.phase("driver", "Failed" if maker else "Succeeded")
    if maker:
        story.pod("e0", "spark", role="executor", node="a")
    story.release("spark")
    assert not _whole(story)
