"""A plan read up to some stage: what has started by then, and what is left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from .lawful import after, free, has_begun, use
from .model import Stage
from .world import entry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .lawful import Placed
    from .world import Amounts, Entry, Gang, World


class Hold(NamedTuple):
    """A starved gang for which room, limits and cover are held, and what was so at that stage."""

    gang: Gang
    is_entitled: bool
    use: Mapping[str, Amounts]
    begun: frozenset[str]  # gangs that ran or had started


@dataclass(frozen=True, eq=False)
class Reading:
    """A plan read up to some stage."""

    world: World
    placed: Placed  # all of the plan
    starts: tuple[str, ...] = ()  # gangs
    joined: tuple[tuple[str, int], ...] = ()  # members beyond those needed, and repairs
    together: tuple[str, ...] = ()  # gangs whose starts must be covered with the next ones
    held: Hold | None = None  # then nothing later can be known to be the best

    @cached_property
    def now(self) -> list[Gang]:
        """The gangs as they are by now; those that start have their oldest members placed."""
        shown: Placed = {}
        for name, pod in self.minimums:
            shown.setdefault(name, {})[pod] = self.placed[name][pod]
        for name, pod in self.joined:
            shown.setdefault(name, {})[pod] = self.placed[name][pod]
        return after(self.world, shown)

    @property
    def minimums(self) -> list[tuple[str, int]]:
        """The pods with which gangs start: the oldest that they need."""
        return [
            (n, pod) for n in self.starts for pod in sorted(self.placed[n])[: self.gang(n).need]
        ]

    def gang(self, name: str) -> Gang:
        """The gang of this name, as it was."""
        return next(gang for gang in self.world.gangs if gang.name == name)

    @cached_property
    def running(self) -> list[Entry]:
        """All that are charged, as the walk sees them."""
        return [entry(gang) for gang in self.now if has_begun(gang)]

    @property
    def others(self) -> list[Entry]:
        """The same without the gangs that must be covered with the next ones."""
        return [one for one in self.running if one.name not in self.together]

    @property
    def covered_before(self) -> list[Entry]:
        """The gangs that must be covered with the next ones."""
        return [one for one in self.running if one.name in self.together]

    @property
    def waiting(self) -> list[Gang]:
        """The gangs that wait."""
        return [g for g in self.world.gangs if not (has_begun(g) or g.name in self.starts)]

    @property
    def room(self) -> list[Amounts]:
        """The room that gangs share which start: extras are where the plan has them."""
        fixed: Placed = {}
        for name, pod in self.joined:
            fixed.setdefault(name, {})[pod] = self.placed[name][pod]
        return free(self.world, after(self.world, fixed))

    @property
    def left(self) -> dict[str, list[int | None]]:
        """What is left of each limit."""
        used = use(self.world, self.now)
        return {
            team: [
                None if n is None else max(n - used[team][r], 0) for r, n in enumerate(own.limit)
            ]
            for team, own in self.world.teams.items()
        }

    def stage(self, gangs: Sequence[Gang], tier: int | None = None) -> Stage:
        """A stage that decides on these."""
        before = [self.gang(name) for name in self.starts]
        walked = self.others, self.covered_before
        return Stage(self.world, self.room, before, gangs, self.left, *walked, tier)

    def with_starts(self, gangs: Sequence[Gang]) -> Reading:
        """These have started, too."""
        names = tuple(gang.name for gang in gangs)
        return replace(self, starts=(*self.starts, *names), together=(*self.together, *names))

    def extras(self, gangs: Sequence[Gang]) -> list[tuple[str, int]]:
        """The members of these that wait and may join by now."""
        by_name = {gang.name: gang for gang in self.now}
        return [
            (gang.name, pod)
            for gang in gangs
            for pod in by_name[gang.name].waiting
            if has_begun(by_name[gang.name]) and (gang.name, pod) not in self.joined
        ]
