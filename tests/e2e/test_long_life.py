"""The soak in small: what leaks or differs after thousands of gangs does so after sixty."""

from __future__ import annotations

from ..chaos.soak import lives, long_life
from ..harness.rig import Rig

GANGS = 60
NODES = 20


def test_gangs_that_lived_and_went_leave_nothing_behind() -> None:
    """No Reservation, no asyncio task, and a World that equals a fresh list."""
    with Rig.start(**long_life.WATCHED) as rig:
        rig.nodes(NODES, cpu=16, memory="32Gi")
        casting = lives.Casting(GANGS, at_once=GANGS // 2, kept=10)
        outcome = long_life.run(rig.plane, rig.operator, casting)
        assert sum(outcome.played.values()) == GANGS
        assert not outcome.reservations
        assert not outcome.leaked
        assert not outcome.after.differences
