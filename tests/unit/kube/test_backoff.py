"""Waits after refusals of the API server."""

from tutti.kube import backoff
from tutti.kube.backoff import ApiBackoffs
from tutti.model.keys import GangKey, Uid

UID, GANG = Uid("r"), GangKey("ml", "a")


def wait_after(*times: float) -> float:
    """The seconds that are waited after the last of some refusals."""
    refusals = ApiBackoffs(lambda: None)
    for now in times:
        refusals.back_off(UID, GANG, "refused", seconds=backoff.CONFLICT_SECONDS, now=now)
    return refusals.of([GANG], times[-1])[GANG].until - times[-1]


def test_each_attempt_doubles_the_wait() -> None:
    assert wait_after(0, 1) == 5
    assert wait_after(0, 1, 6) == 10
    assert wait_after(0, 1, 6, 16) == 20


def test_many_refusals_of_an_attempt_count_as_few() -> None:
    # A gang of 64 whose claims all change while it is released waited for five minutes.
    assert wait_after(*[0.0] * 64) == 5
    assert wait_after(*[0.0] * 64, *[5.0] * 64) == 10
