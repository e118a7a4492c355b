"""Pods whose placement could make room for a replacement, or must come before it.

Separate from the gangs that are given up, of which it keeps some: by the rules between pods there
can be room tomorrow for a pod that has none today, once others have their nodes.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ..gang.demand import MemberCounts
from ..gang.findings import RoomAfterOther
from ..model.cluster import Member
from ..model.keys import Uid
from .compile.capacity import FitByShape
from .compile.pod_classes import SelectorIndex, groups_near_or_even, groups_of


@dataclass(frozen=True, slots=True, eq=False)
class AwaitedPods:
    """The pods that a plan has given a node or leaves waiting, by the groups that rules count."""

    index: SelectorIndex
    gangs: Sequence[MemberCounts]
    room: FitByShape  # before the first round, by node rules alone
    placed: Collection[Uid]

    def room_after(self, census: MemberCounts) -> RoomAfterOther | None:
        """A pod that may let a waiting member have room; None if no pod can."""
        for member in census.ready:
            groups = {self.index.number[group] for group in groups_near_or_even(member.shape)}
            if groups and self.room[member.shape].members:
                for pod in self._pods_that_may_come(census):
                    if not groups.isdisjoint(groups_of(pod.shape)):
                        return RoomAfterOther(member.key, pod.key)
        return None

    def _pods_that_may_come(self, census: MemberCounts) -> Iterator[Member]:
        """Pods of other gangs that may come; replacements of lost members were tried together."""
        for other_census in self.gangs:
            if other_census.gang.key != census.gang.key:
                for member in other_census.ready:
                    if member.uid in self.placed or not other_census.is_committed:
                        yield member
