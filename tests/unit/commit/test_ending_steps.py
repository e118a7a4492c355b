"""The steps of Reservations for which pods end: of a claim, and of a gang that is given up."""

from dataclasses import replace

import pytest

from tutti.commit.progress import (
    Await,
    Bind,
    Evict,
    Finish,
    Preempt,
    Release,
    Step,
    next_steps,
    stuck_sentence,
)
from tutti.model.cluster import (
    STUCK_SECONDS,
    Member,
    OnPartial,
    Phase,
    Reservation,
    ReservedVictim,
    Snapshot,
)
from tutti.model.keys import Uid
from tutti.model.queues import Queue

from ...harness.builders import GangBuilder, gang, node, reservation, snapshot_of, space

TERM = "t"
HIGH = gang("high").of(2, cpu=1).priority(9)
LOW = gang("low").of(2, cpu=1).bound_on("n1", "n1")
LOW_PODS = tuple(member.uid for member in LOW.made.members)
CLAIM = replace(
    reservation(HIGH, ("high-0", "n1"), ("high-1", "n1")),
    term=TERM,
    victims=(ReservedVictim(LOW.key, LOW.made.uid, LOW_PODS, is_whole=True),),
)
FULL, ROOMY = node("n1", cpu=2), node("n1", cpu=4)
GONE = "its PodGroup is gone; nothing of it was bound"


def picture(*parts: object, held: Reservation = CLAIM) -> Snapshot:
    return snapshot_of(*parts, held)  # type: ignore[arg-type]


def only_step(snapshot: Snapshot) -> Step:
    ((_, step),) = next_steps(snapshot, TERM)
    return step


def leaving(of: GangBuilder, name: str, *, gone_by: float = 0.0) -> GangBuilder:
    return of.only(name, terminating=True, gone_by=gone_by)


def test_victims_end_first_and_all_at_once() -> None:
    assert only_step(picture(FULL, HIGH, LOW)) == Preempt(LOW.made.members, [])


def test_a_victim_that_has_begun_to_end_ends_whole() -> None:
    begun = leaving(LOW, "low-0", gone_by=60.0)
    expected = Preempt(begun.made.members[1:], [LOW.made.uid])
    assert only_step(picture(FULL, HIGH, begun)) == expected
    assert only_step(picture(ROOMY, HIGH, begun)) == expected


def test_a_victim_that_has_lost_no_pod_stays_where_there_is_room_without_its_end() -> None:
    assert isinstance(only_step(picture(ROOMY, HIGH, LOW)), Bind)


def test_a_claim_waits_until_its_victims_have_gone() -> None:
    ending = leaving(leaving(LOW, "low-0", gone_by=60.0), "low-1", gone_by=60.0)
    assert only_step(picture(FULL, HIGH, ending)) == Await()
    # They are waited for even where there is room beside them.
    assert only_step(picture(ROOMY, HIGH, ending)) == Await()
    assert isinstance(only_step(picture(FULL, HIGH)), Bind)


def test_a_claim_waits_for_pods_that_leave_room_below_the_limit_of_its_queue() -> None:
    """Its victims have gone; pods of another gang count for the queue until they have gone, too."""
    team = Queue("team", Uid("q"), limits=(("cpu", 2000),))
    other = leaving(leaving(LOW.but(queue="team"), "low-0", gone_by=60.0), "low-1", gone_by=60.0)
    alone = replace(CLAIM, victims=())
    below = picture(node("n1", cpu=9), space("ml"), HIGH.but(queue="team"), other, team, held=alone)
    assert only_step(below) == Await()
    above = replace(below, queues=(replace(team, limits=(("cpu", 4000),)),))
    assert isinstance(only_step(above), Bind)


def test_a_claim_that_cannot_start_is_given_up_before_a_pod_ends_for_it() -> None:
    assert only_step(picture(FULL, LOW)) == Release(GONE)
    assert only_step(picture(FULL, HIGH.but(terminating=True), LOW)) == Release(GONE)


def test_a_victim_that_has_begun_to_end_ends_whole_even_if_the_claim_cannot_start() -> None:
    begun = leaving(LOW, "low-0", gone_by=60.0)
    expected = Preempt(begun.made.members[1:], [LOW.made.uid])
    assert only_step(picture(FULL, begun)) == expected


@pytest.mark.parametrize(
    ("finalizers", "holder"),
    [
        ((), "its kubelet has not ended it: look at the node"),
        (("a.b/c", "d"), "it is held by a.b/c, d, in its metadata.finalizers"),
    ],
)
def test_a_pod_that_does_not_go_in_time_is_named(finalizers: tuple[str, ...], holder: str) -> None:
    ending = leaving(leaving(LOW, "low-0"), "low-1").each(finalizers=finalizers)
    before = replace(picture(FULL, ending), taken_at=STUCK_SECONDS - 1)
    assert stuck_sentence(CLAIM, before) == ""
    assert only_step(before) == Release(GONE)
    stuck = replace(before, taken_at=STUCK_SECONDS)
    sentence = (
        f"VictimStuck: pod ml/low-0 should have gone from n1 by now; {holder}; "
        "planning again without its room"
    )
    assert only_step(stuck) == Release(sentence)
    elsewhere = replace(CLAIM, entries=())
    assert stuck_sentence(elsewhere, stuck) == ""


GIVEN_UP = gang("a").of(3, cpu=1).bound_on("n1", "n1").but(on_partial=OnPartial.RELEASE)
PODS = tuple(member.uid for member in GIVEN_UP.made.members)
EVICTION = replace(reservation(GIVEN_UP), term=TERM, evict=PODS)


def test_the_members_of_a_gang_that_is_given_up_are_evicted_where_they_hold_room() -> None:
    def step(of: GangBuilder) -> Step:
        return only_step(picture(ROOMY, of, held=EVICTION))

    first, second, _ = GIVEN_UP.made.members
    assert step(GIVEN_UP) == Evict((first, second))
    assert step(GIVEN_UP.only("a-0", terminating=True)) == Evict((second,))

    def end(member: Member) -> Member:
        return replace(member, phase=Phase.FAILED)

    assert step(GIVEN_UP.where(end)) == Finish()


def test_nobody_is_evicted_once_the_gang_is_whole_or_is_to_be_completed_or_is_gone() -> None:
    whole = GIVEN_UP.bound_on("n1", "n1", "n1")
    assert only_step(picture(ROOMY, whole, held=EVICTION)) == Finish()
    completed = GIVEN_UP.but(on_partial=OnPartial.COMPLETE)
    assert only_step(picture(ROOMY, completed, held=EVICTION)) == Finish()
    assert only_step(picture(ROOMY, held=EVICTION)) == Finish()
