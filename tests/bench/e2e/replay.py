"""Arrivals as they happen: gangs are created in time, and end once they were whole and have run."""

from __future__ import annotations

import time
from enum import IntEnum
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from ..load.gangs import gang_of
from .changes import completion, creation, group_deletion, pod_deletion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .arrivals import Arrival
    from .ledger import Ledger
    from .plays import Play
    from .writing import Writer

_LOOK_SECONDS = 0.02
# Until a finished gang is deleted, as a controller of jobs does: who keeps finalizers on pods, as
# Kueue does, takes them away before.
_KEPT_SECONDS = 10.0


class _Step(IntEnum):
    """What is due for a gang."""

    CREATE = 0
    COMPLETE = 1
    DELETE = 2


class Replay:
    """One loop that sees bindings in the audit log and writes what is due."""

    def __init__(
        self,
        play: Play,
        arrivals: Mapping[str, Arrival],
        began: float,
        ledger: Ledger,
        writer: Writer,
    ) -> None:
        """``began`` is in seconds since the epoch, as all times here."""
        self._play = play
        self._arrivals = arrivals
        self._ledger = ledger
        self._writer = writer
        self._unbound = {name: set(play.members(name)) for name in arrivals}
        self._due = [(began + arrival.at, _Step.CREATE, name) for name, arrival in arrivals.items()]
        heapify(self._due)
        self._do: Mapping[_Step, Callable[[str], None]] = {
            _Step.CREATE: self._create,
            _Step.COMPLETE: self._complete,
            _Step.DELETE: self._delete,
        }

    def until(self, end: float) -> None:
        """Do all that is due before this time.

        Raises:
            RequestError: the API server has refused a write.
        """
        while (now := time.time()) < end:
            self._see()
            while self._due and self._due[0][0] <= now:
                _, step, name = heappop(self._due)
                self._do[step](name)
            time.sleep(_LOOK_SECONDS)

    def _see(self) -> None:
        """Note which gangs are whole by now, and when they will have run."""
        self._ledger.follow()
        for binding in self._ledger.bindings():
            name = gang_of(binding.name)
            unbound = self._unbound.get(name, set())
            if binding.name in unbound:
                unbound.remove(binding.name)
                if not unbound:
                    due = binding.at + self._arrivals[name].run_seconds
                    heappush(self._due, (due, _Step.COMPLETE, name))

    def _create(self, name: str) -> None:
        self._writer.send(creation(manifest) for manifest in self._play.manifests(name))

    def _complete(self, name: str) -> None:
        self._writer.send(completion(pod) for pod in self._play.members(name))
        heappush(self._due, (time.time() + _KEPT_SECONDS, _Step.DELETE, name))

    def _delete(self, name: str) -> None:
        self._writer.send(pod_deletion(pod) for pod in self._play.members(name))
        if (group := self._play.group(name)) is not None:
            self._writer.send([group_deletion(group)])
