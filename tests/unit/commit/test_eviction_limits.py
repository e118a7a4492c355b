"""How many pods may end for claims, in one cycle and within an hour."""

from fractions import Fraction

import pytest

from tutti.commit.eviction_limits import DUE_SECONDS, HOUR_SECONDS, EvictionLimits
from tutti.gang.findings import EvictionsCapped
from tutti.model.decisions import Claim, RolloutLimits, Victim
from tutti.model.keys import GangKey, Uid

from ...harness.builders import NAMESPACE, gang
from ...harness.fakes import Clock

NONE = Fraction(0)


def claim(name: str, **pods: int) -> Claim:
    """A claim that ends so many pods of these queues."""
    victims = [
        Victim(
            GangKey(NAMESPACE, f"{name}-{queue}"),
            Uid(f"{name}-{queue}"),
            gang(f"{name}-{queue}").of(n, cpu=1).made.members,
            is_whole=True,
            queue=queue,
        )
        for queue, n in pods.items()
    ]
    key = GangKey(NAMESPACE, name)
    return Claim(key, Uid(name), 1, (), tuple(victims), by_guarantee=True, cost=NONE, bound=NONE)


FIRST, SECOND, FREE = claim("first", a=3), claim("second", a=1, b=2), claim("free")


def carried_out(limits: EvictionLimits, done: Claim) -> None:
    limits.begin(done)
    for victim in done.victims:
        for member in victim.members:
            assert limits.evicted(done.uid, member.uid, "unknown") == (victim.queue, True)
            assert limits.evicted(done.uid, member.uid, "unknown") == (victim.queue, False)


def test_a_cycle_takes_the_first_claims_within_its_limit() -> None:
    for most, n in ((0, 3), (6, 3), (5, 1), (3, 1), (2, 1)):
        limits = EvictionLimits(RolloutLimits(evictions=most), Clock())
        found = limits.within([FIRST, SECOND, FREE])
        assert len(found.claims) == n
        assert found.obstacle == (None if n == 3 else EvictionsCapped(3, most))
        assert found.until is None
    assert EvictionLimits(RolloutLimits(evictions=1), Clock()).within([FREE, FREE]).obstacle is None


def test_a_queue_is_spared_until_the_oldest_of_its_ends_is_an_hour_old() -> None:
    clock = Clock()
    limits = EvictionLimits(RolloutLimits(hourly_evictions=4), clock)
    began = clock.now
    for done in (FREE, FIRST):
        carried_out(limits, done)
    clock.now += 10
    carried_out(limits, claim("other", b=4))
    limits.keep(())
    assert limits.within([claim("x", a=1)]).obstacle is None
    found = limits.within([FREE, SECOND])
    assert found.claims == (FREE,)
    assert found.obstacle == EvictionsCapped(4, 4, "b")
    assert found.until == began + 10 + HOUR_SECONDS
    assert limits.within([claim("x", a=2)]).until == began + HOUR_SECONDS
    clock.now = began + HOUR_SECONDS
    assert limits.within([claim("x", a=9)]).obstacle is None


@pytest.mark.parametrize("most", [2, 3])
def test_claims_of_one_plan_count_together(most: int) -> None:
    """What they exceed together is left to the next cycle, which knows when the first began."""
    limits = EvictionLimits(RolloutLimits(hourly_evictions=most), Clock())
    found = limits.within([FIRST, SECOND])
    assert (found.claims, found.until) == ((FIRST,), None)
    assert found.obstacle == EvictionsCapped(3, most, "a")


def test_pods_that_are_to_end_count_as_long_as_their_claim_stands() -> None:
    clock = Clock()
    limits = EvictionLimits(RolloutLimits(hourly_evictions=3), clock)
    limits.begin(FIRST)
    found = limits.within([claim("x", a=1)])
    assert found.obstacle == EvictionsCapped(3, 3, "a")
    assert found.until == clock.now + DUE_SECONDS, "it may be given up soon"
    limits.keep({FIRST.uid})
    assert limits.within([claim("x", a=1)]).obstacle is not None
    limits.keep(())
    assert limits.within([claim("x", a=3)]).obstacle is None, "no pod has ended"


def test_what_was_evicted_for_a_claim_that_is_given_up_counts_for_an_hour() -> None:
    clock = Clock()
    limits = EvictionLimits(RolloutLimits(hourly_evictions=3), clock)
    limits.begin(FIRST)
    limits.evicted(FIRST.uid, FIRST.victims[0].members[0].uid, "b")
    limits.keep(())
    assert limits.within([claim("x", a=2)]).obstacle is None
    found = limits.within([claim("x", a=3)])
    assert found.obstacle == EvictionsCapped(1, 3, "a")
    assert found.until == clock.now + HOUR_SECONDS


def test_a_pod_that_ends_for_a_claim_of_another_leader_counts_for_the_queue_of_its_gang() -> None:
    limits = EvictionLimits(RolloutLimits(hourly_evictions=1), Clock())
    assert limits.evicted(Uid("other"), Uid("pod"), "b") == ("b", True)
    assert limits.within([claim("x", b=1)]).obstacle == EvictionsCapped(1, 1, "b")
