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
    room: FitByShape  # before anybody was placed, by node rules alone
    placed: Collection[Uid]

    def room_after(self, census: MemberCounts) -> RoomAfterOther | None:
        """The pod that a waiting member might find room by; None if no pod can change that."""
        for member in census.ready:
            asked = {self.index.number[who] for who in groups_near_or_even(member.shape)}
            if asked and self.room[member.shape].members:
                for other in self._others(census):
                    if not asked.isdisjoint(groups_of(other.shape)):
                        return RoomAfterOther(member.key, other.key)
        return None

    def _others(self, census: MemberCounts) -> Iterator[Member]:
        """Other pods that may come; those that replace lost members were tried together with it."""
        for other in self.gangs:
            if other.gang.key != census.gang.key:
                for member in other.ready:
                    if member.uid in self.placed or not other.is_committed:
                        yield member
