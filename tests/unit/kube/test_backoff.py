"""Waits after refusals of the API server."""

from tutti.kube import backoff
from tutti.kube.backoff import ApiBackoffs, Wait
from tutti.model.keys import GangKey, Uid

UID, GANG = Uid("r"), GangKey("ml", "a")


def wait_after(*times: float) -> float:
    """The seconds that are waited after the last of some refusals."""
    refusals = ApiBackoffs(lambda: None)
    for now in times:
        refusals.back_off(UID, GANG, "refused", seconds=backoff.CONFLICT_SECONDS, now=now)
    return refusals.of([GANG], times[-1])[GANG].wait.until - times[-1]


def test_each_attempt_doubles_the_wait() -> None:
    assert wait_after(0, 1) == 5
    assert wait_after(0, 1, 6) == 10
    assert wait_after(0, 1, 6, 16) == 20


def test_a_refusal_outlives_its_gang_so_that_the_wait_grows() -> None:
    # The Reservation of a gang that is gone cannot be deleted, while a webhook is down.
    refusals, waits, now = ApiBackoffs(lambda: None), [], 0.0
    for _ in range(5):
        refusals.back_off(UID, GANG, "refused", seconds=backoff.CONFLICT_SECONDS, now=now)
        assert not refusals.of([], now)
        waits.append(refusals.next_retry(now))
        now += waits[-1] or 0.0
    assert waits == [None, 5, 10, 20, 40]
    assert not refusals.of([], now + backoff.LONGEST_SECONDS)
    refusals.back_off(UID, GANG, "refused", seconds=backoff.CONFLICT_SECONDS, now=now)
    assert refusals.next_retry(now) is None, "it was forgotten"


def test_a_gang_that_is_made_again_is_not_told_of_the_refusal_of_the_gang_before() -> None:
    refusals = ApiBackoffs(lambda: None)
    for now in (0.0, 1.0):
        refusals.back_off(UID, GANG, "refused", seconds=backoff.CONFLICT_SECONDS, now=now)
    assert refusals.of([GANG], 2.0)[GANG].sentence == "refused"
    refusals.of([], 2.0)
    assert not refusals.of([GANG], 3.0)
    assert refusals.holds_off(UID, 3.0)


def test_many_refusals_of_an_attempt_count_as_few() -> None:
    # A gang of 64 whose claims all change while it is released waited for five minutes.
    assert wait_after(*[0.0] * 64) == 5
    assert wait_after(*[0.0] * 64, *[5.0] * 64) == 10


def test_a_small_step_back_of_the_clock_ends_no_wait_and_lengthens_none() -> None:
    """The estimate of the API server's clock is set back a little at many answers."""
    wait = Wait.begun(100.0, 30.0)
    assert [wait.left(now) for now in (99.99, 98.0, 97.9, 0.0)] == [30.0, 30.0, 0.0, 0.0]
    assert [wait.left(now) for now in (100.0, 129.0, 130.0, 131.0)] == [30.0, 1.0, 0.0, 0.0]
    assert Wait.begun(100.0, 0.0).left(99.0) == 0.0


def test_a_small_step_back_of_the_clock_lets_no_refused_call_be_made_again() -> None:
    refusals = ApiBackoffs(lambda: None)
    for now in (0.0, 1.0):
        refusals.back_off(UID, GANG, "refused", seconds=30.0, now=now)
    assert refusals.holds_off(UID, 0.5)
    assert refusals.next_retry(0.5) == 30.0
    assert refusals.snapshot(0.5)[UID].until == 31.0
    assert not refusals.holds_off(UID, -10.0)
    assert refusals.snapshot(-10.0)[UID].until == -10.0
