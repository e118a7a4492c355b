"""Reservations that stood through an outage of an hour are verified before they are carried out.

The operator is killed when gangs are reserved, of half of them some members bound. While it is
away nodes are cordoned, filled, deleted or lost, members and PodGroups come and go.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.harness.proxy import refuse

from . import changes
from .arena import PEERS, Arena, Race
from .endings import OF_GANGS, OF_NODES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiohttp import web

    from tests.harness.proxy import Call
    from tests.harness.proxy.exchange import Exchange

    from .endings import Change

AWAY = timedelta(hours=1)
KINDS = ("Node", "PodGroup", "Pod")
HELD = refuse(409, "held back")
CHANGES = {**OF_NODES, **OF_GANGS}


class Hold:
    """Keeps calls without an answer, and forwards none of them.

    Refused ones would not do: a Reservation of which nothing may be bound is given back.
    """

    def __init__(self) -> None:
        self._is_over = threading.Event()

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        """Hold one call."""
        while not self._is_over.is_set():  # noqa: ASYNC110 - a test's thread sets it
            await asyncio.sleep(0.01)
        return await HELD(exchange)

    def end(self) -> None:
        """Refuse what is held."""
        self._is_over.set()


class Trial(Race):
    """One gang of many, reserved and not bound, or half bound."""

    change: Change

    def holds(self, call: Call) -> bool:
        """Whether this binding must not happen."""
        if not self.binds(call):
            return False
        if not self.placement:
            self.read_placement()
        return not self.is_begun or self.binds_to_target(call)

    def is_ready(self) -> bool:
        """Whether its Reservation stands, and all is bound that should be."""
        held = self.rig.reservations(self.name)
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

    def await_end(self) -> None:
        """Wait for the end that was promised, and no other."""
        CHANGES[self.change](self)
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
        hold = Hold()
        cleared.callback(hold.end)
        begun, others = ([one for one in trials if bool(one.is_begun) is n] for n in (True, False))
        with (
            arena.proxy.rule(lambda call: any(one.holds(call) for one in begun), HELD),
            arena.proxy.rule(lambda call: any(one.holds(call) for one in others), hold),
        ):
            arena.operator.kill()  # so that one plan has all of them: a held call ends no cycle
            _begin(trials)
            arena.operator.start()
            for trial in trials:
                trial.rig.until(trial.is_ready, "the gang is reserved for")
            arena.operator.kill()
            hold.end()
        for trial in trials:
            trial.age()
            trial.keep()
            trial.add_spare()
            trial.change(trial)
        arena.operator.start()
        for trial in trials:
            trial.await_end()


def test_bound_members_that_go_while_the_operator_is_away_are_replaced(arena: Arena) -> None:
    """Of one gang all that were bound are drained, of another their node is gone."""
    with arena.race() as judged, ExitStack() as cleared:
        drained, deserted = trials = [_trial(judged, changes.drain, 1) for _ in range(2)]
        for trial in trials:
            cleared.callback(trial.clear)
        with arena.proxy.rule(lambda call: any(trial.holds(call) for trial in trials), HELD):
            _begin(trials)
            for trial in trials:
                trial.rig.until(trial.is_ready, "half of the gang is bound")
            arena.operator.kill()
        for trial in trials:
            trial.add_spare()
        changes.drain_node(drained, drained.begun)
        deserted.delete("node", deserted.begun)
        arena.operator.start()
        drained.until_waiting(drained.group_name, "WaitingForMembers", "2 of 4 members exist")
        assert drained.bound() == 0
        deserted.until_broken("NodeLost")
        deserted.rig.until(lambda: deserted.is_bound(deserted.victim), "the rest is carried out")
        deserted.remove(*deserted.placement[deserted.begun])
        for trial in trials:
            trial.add_member("new-0")
            trial.add_member("new-1")
            trial.until_whole()
            assert trial.begun not in trial.nodes_of().values()


def _begin(trials: list[Trial]) -> None:
    """Create everything for all of them at once, kind by kind, on nodes that take pods."""
    objects = [manifest for trial in trials for manifest in trial.beginning()]
    nodes, groups, pods = (
        [manifest for manifest in objects if manifest["kind"] == kind] for kind in KINDS
    )
    trials[0].rig.plane.create_nodes(nodes)
    trials[0].rig.create(*groups, *pods)


def _trial(judged: Race, change: Change, is_begun: int) -> Trial:
    trial = Trial(judged.rig, judged.arena)
    trial.change, trial.is_begun = change, bool(is_begun)
    return trial
