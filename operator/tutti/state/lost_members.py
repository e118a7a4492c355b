"""Room of members that were deleted, held for a moment for the pods that replace them.

A controller creates a replacement once it has seen that the pod is gone. Without the hold, a gang
that waits would take the room in between, and the gang that runs would stay short of a member.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from ..gang.demand import MemberCounts
from ..model.cluster import Gang, Member, Phase
from ..model.keys import GangKey, NodeName, Uid
from ..model.resources import NOTHING
from .node_usage import NodeUsage

HOLD_SECONDS = 5.0  # controllers create a replacement within a second or two
MOST_LOSSES = 1000  # a replica that stands by takes no Snapshot, so it forgets the oldest losses


@dataclass(slots=True)
class _Loss:
    """A member that was deleted from its node, and until when its room is held."""

    member: Member
    node: NodeName
    until: float | None = None  # seconds since the epoch; None before the next Snapshot

    @property
    def key(self) -> Uid:
        """What the room is held as; no pod has this uid."""
        return Uid(f"lost:{self.member.uid}")


class LostMembers:
    """Holds room on nodes while a running gang lacks members that its controller may replace."""

    def __init__(self, usage: NodeUsage, gang: Callable[[GangKey], Gang | None]) -> None:
        """``usage`` counts the held room; ``gang`` gives a gang as the next Snapshot has it."""
        self._usage = usage
        self._gang = gang
        self._losses: list[_Loss] = []

    def deleted(self, member: Member) -> None:
        """Take in that a bound member is gone; one without a controller is not replaced."""
        has_controller = member.controller_uid != member.uid
        if member.group and member.node is not None and not member.is_over and has_controller:
            self._losses.append(_Loss(member, member.node))
        if len(self._losses) > MOST_LOSSES:
            self._keep(self._losses[1:])

    def taken(self, node: NodeName) -> None:
        """Hold nothing on a node that another pod came to: the room may be its room."""
        self._keep([loss for loss in self._losses if loss.node != node])

    def settle(self, now: float, evictable: Callable[[], Collection[Uid]]) -> None:
        """Hold room at ``now``, in seconds since the epoch, but no room of ``evictable`` pods."""
        if not self._losses:
            return
        not_held, gangs = evictable(), {loss.member.gang for loss in self._losses}
        for loss in self._losses:
            loss.until = now + HOLD_SECONDS if loss.until is None else loss.until
        standing = [
            loss
            for loss in self._losses
            if loss.until is not None
            and now < loss.until <= now + HOLD_SECONDS
            and loss.member.uid not in not_held
        ]
        needed = {loss.key for gang in gangs for loss in self._needed(gang, standing)}
        self._keep([loss for loss in standing if loss.key in needed])
        for loss in self._losses:
            self._usage.occupy(loss.key, loss.node, loss.member.shape.requests)

    def next_end(self, now: float) -> float | None:
        """The seconds until held room is free again; None if none is held."""
        ends = (loss.until for loss in self._losses if loss.until is not None)
        return min((max(0.0, end - now) for end in ends), default=None)

    def _needed(self, key: GangKey, losses: list[_Loss]) -> Iterator[_Loss]:
        """The latest losses of a gang, as many in each role as it lacks pods to run on."""
        gang = self._gang(key)
        if gang is None or gang.terminating:
            return
        live = [member for member in gang.members if _is_live(member)]
        if not any(member.node is not None and not member.is_over for member in live):
            return  # the whole gang ends
        with_live = MemberCounts(gang, bound=tuple(live))  # as if all live members had nodes
        lacks = Counter(with_live.missing_by_role if gang.roles else {"": with_live.missing})
        for loss in reversed([loss for loss in losses if loss.member.gang == key]):
            role = loss.member.role if gang.roles else ""
            if lacks[role] > 0:
                lacks[role] -= 1
                yield loss

    def _keep(self, losses: list[_Loss]) -> None:
        """Forget all other losses, and free their room."""
        keys = {loss.key for loss in losses}
        for loss in self._losses:
            if loss.key not in keys:
                self._usage.occupy(loss.key, None, NOTHING)
        self._losses = losses


def _is_live(member: Member) -> bool:
    """Whether a member runs, waits or has succeeded."""
    return not member.terminating and member.phase is not Phase.FAILED
