"""When a Reservation comes to its end, and whether anybody waits for that."""

from dataclasses import replace

from tutti.commit.progress import Clear, Finish, Step, next_steps
from tutti.model.cluster import ApiRefusal, Phase, SlotReservation
from tutti.model.keys import NodeName

from ...harness.builders import GangBuilder, gang, node, reservation, snapshot_of

ROOM = node("n1", cpu=9)
TWO = gang("a").of(2, cpu=1)
WHOLE = TWO.bound_on("n1", "n1")
TERM = "t"


def step(
    of: GangBuilder, *, is_refused: bool = False, slots: tuple[SlotReservation, ...] = ()
) -> Step:
    held = replace(reservation(TWO, ("a-0", "n1"), ("a-1", "n1")), term=TERM, slots=slots)
    refused = {held.uid: ApiRefusal("deletion of its Reservation refused: no", 30.0)}
    picture = replace(snapshot_of(ROOM, of, held), api_refusals=refused if is_refused else {})
    ((_, found),) = next_steps(picture, TERM)
    return found


def test_that_of_a_whole_gang_is_deleted_whenever() -> None:
    assert step(WHOLE) == Clear()


def test_that_of_a_gang_that_is_not_whole_by_now_is_deleted_before_anything_is_said() -> None:
    assert step(WHOLE.only("a-1", phase=Phase.FAILED)) == Finish()
    assert step(WHOLE.but(min_member=3)) == Finish()


def test_that_of_members_which_have_ended_too_for_it_says_of_which_run_they_are() -> None:
    assert step(WHOLE.only("a-1", phase=Phase.SUCCEEDED)) == Finish()


def test_that_of_a_member_which_may_have_been_bound_unseen_is_not_deleted_without_a_look() -> None:
    """Who is whole without it may be whole with it: its room is free once it is known."""
    gone = WHOLE.but(members=WHOLE.made.members[:1], min_member=1)
    assert step(gone) == Finish()


def test_one_that_holds_room_for_others_too_is_deleted_before_anything_is_said() -> None:
    ended = WHOLE.but(terminating=True)
    assert step(ended, slots=(SlotReservation(NodeName("n1"), "worker", 1),)) == Finish()
    assert step(ended) == Clear()


def test_one_that_could_not_be_deleted_twice_comes_before_the_reports_which_speak_of_it() -> None:
    assert step(WHOLE, is_refused=True) == Finish()
