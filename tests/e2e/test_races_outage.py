"""Reservations that stood through an outage of an hour are verified before they are carried out.

The operator is killed when gangs are reserved, of half of them some members bound. While it is
away nodes are cordoned, filled, deleted or lost, members and PodGroups come and go.
"""

from __future__ import annotations

from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.proxy import refuse

from . import changes
from .arena import MEMBERS, PEERS, Arena, Race

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from tests.proxy import Call

    from .arena import Told

    Change = Callable[[Race], Collection[Told]]

AWAY = timedelta(hours=1)
NODE_IS_NO_USE = (changes.cordon, changes.delete_node, changes.lose_contact, changes.fill)
CHANGES = (
    *NODE_IS_NO_USE,
    changes.recreate_member,
    changes.delete_member,
    changes.delete_group,
    changes.annotate_group,
)


class Trial(Race):
    """One gang of many, reserved and not bound, or half bound."""

    change: Change
    is_begun: bool

    def holds(self, call: Call) -> bool:
        """Whether this binding must not happen."""
        if not self.binds(call):
            return False
        if not self.placement:
            self.read_placement()
        return not self.is_begun or self.binds_to_target(call)

    def is_ready(self) -> bool:
        """Whether its Reservation stands, and all is bound that should be."""
        (held,) = self.rig.reservations(self.name)
        return bool(held) and self.bound() == (PEERS if self.is_begun else 0)

    def age(self) -> None:
        """Let its Reservation be an hour old: the time of one cannot be changed."""
        (held,) = self.rig.reservations(self.name)
        metadata, spec = held["metadata"], held["spec"]
        at = datetime.fromisoformat(spec["reservedAt"]) - AWAY
        spec["reservedAt"] = at.isoformat().replace("+00:00", "Z")
        path = f"/apis/tutti.dev/v1alpha1/namespaces/{self.name}/reservations"
        self.rig.plane.request("DELETE", f"{path}/{metadata['name']}")
        for field in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
            metadata.pop(field, None)
        self.rig.plane.request("POST", path, held)

    def ends_well(self) -> None:
        """Wait for the end that was promised, and no other."""
        if self.change is changes.delete_member:
            if self.is_begun:
                self.until_broken("MemberLost", "3 of 4 members are bound, 1 missing")
            else:
                self.until_waiting(self.group_name, "WaitingForMembers", "3 of 4 members exist")
                assert self.bound() == 0
            self.add_member("new")
        if self.change is changes.delete_group:
            self.rig.until(lambda: not self.rig.reservations(self.name), "no room is held for it")
            assert self.bound() == (MEMBERS if self.is_begun else 0)
            self.group(self.group_name, MEMBERS)
        self.until_whole()
        if self.change in NODE_IS_NO_USE:
            assert self.target not in self.nodes_of(self.group_name).values()
        assert self.kept.items() <= self.bound_pods().items(), "a bound member was evicted"


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    """One control plane and one operator."""
    with Arena.open() as arena:
        yield arena


def test_reservations_that_stood_through_an_outage_end_well(arena: Arena) -> None:
    with arena.race() as judged, ExitStack() as cleared:
        trials = [_trial(judged, change, is_begun) for change in CHANGES for is_begun in (0, 1)]
        for trial in trials:
            cleared.callback(trial.clear)
        held = refuse(409, "held back")
        with arena.proxy.rule(lambda call: any(one.holds(call) for one in trials), held):
            for trial in trials:
                trial.begin()
            for trial in trials:
                trial.rig.until(trial.is_ready, "the gang is reserved for")
            arena.operator.kill()
        for trial in trials:
            trial.age()
            trial.keep()
            trial.add_spare()
            trial.change(trial)
        arena.operator.start()
        for trial in trials:
            trial.ends_well()


def _trial(judged: Race, change: Change, is_begun: int) -> Trial:
    trial = Trial(judged.rig, judged.arena)
    trial.change, trial.is_begun = change, bool(is_begun)
    return trial
