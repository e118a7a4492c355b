"""Gangs that lost members and find no room, where their PodGroup says ``onPartial: Release``.

Tutti evicts a gang for this reason only if a controller creates every pod again; otherwise the
rejection names the obstacle. An eviction frees the room of the gang, which then starts again whole.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..filters import job_failures
from ..gang import demand, health
from ..gang.demand import MemberCounts
from ..gang.findings import (
    EvictionObstacle,
    EvictionPutOff,
    MembersSucceeded,
    NotMadeAgain,
    NotReleased,
    ReleaseObstacle,
    RoomAfterOther,
    StillLeaving,
    ToBeReleased,
)
from ..model.cluster import Gang, Member, OnPartial, Phase, Snapshot
from ..model.decisions import Eviction, Plan, Reason, Rejection
from ..model.keys import NodeName, Uid
from ..model.owners import Job, JobKey
from .compile.capacity import FitByShape
from .compile.pod_classes import SelectorIndex, groups_near_or_even, groups_of

NO_ROOM = (Reason.NOT_ENOUGH_ROOM, Reason.NO_NODE_FITS)  # both are proved


@dataclass(frozen=True, slots=True)
class ReleaseDecision:
    """Whether to evict a gang, and its rejection either way."""

    eviction: Eviction | None
    rejection: Rejection


@dataclass(frozen=True, slots=True, eq=False)
class AwaitedPods:
    """The pods that a plan has given a node or leaves waiting, by the groups that rules count.

    By the rules between pods there can be room tomorrow for a pod that has none today, once others
    have their nodes.
    """

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


def verdicts(
    snapshot: Snapshot,
    gangs: Sequence[MemberCounts],
    rejections: Sequence[Rejection],
    awaited_pods: AwaitedPods,
) -> tuple[tuple[Eviction, ...], tuple[Rejection, ...]]:
    """The gangs to evict, and every rejection, with findings about evictions."""
    if all(census.gang.on_partial is not OnPartial.RELEASE for census in gangs):
        return (), tuple(rejections)
    nodes = {node.name: node.ready for node in snapshot.nodes}
    censuses = {census.gang.key: demand.within_maximums(census) for census in gangs}
    answers = [
        _verdict(censuses[rejection.gang], rejection, nodes, awaited_pods)
        for rejection in rejections
    ]
    evictions = tuple(answer.eviction for answer in answers if answer.eviction is not None)
    return evictions, tuple(answer.rejection for answer in answers)


def _verdict(
    census: MemberCounts,
    rejection: Rejection,
    nodes: Mapping[NodeName, bool],
    awaited_pods: AwaitedPods,
) -> ReleaseDecision:
    gang = census.gang
    is_partial = census.is_committed and census.missing > 0 and _are_replaced(census)
    if gang.on_partial is not OnPartial.RELEASE or not is_partial:
        return ReleaseDecision(None, rejection)
    if rejection.reason not in NO_ROOM or census.promised or census.absent:
        # There is no proof, or room is held for members that are still to come.
        return ReleaseDecision(None, rejection)
    if obstacle := _obstacle(gang, nodes) or awaited_pods.room_after(census):
        return ReleaseDecision(None, rejection.with_findings(NotReleased(obstacle)))
    members = evictable(gang)
    eviction = Eviction(gang.key, gang.uid, gang.generation, members)
    return ReleaseDecision(eviction, rejection.with_findings(ToBeReleased(len(members))))


def evictable(gang: Gang) -> tuple[Member, ...]:
    """The members whose eviction frees the gang's room."""
    return tuple(member for member in gang.members if is_evictable(member))


def is_evictable(member: Member) -> bool:
    """Whether the member holds room and is neither terminating nor over."""
    return member.node is not None and not (member.terminating or member.is_over)


def is_given_up(gang: Gang) -> bool:
    """Whether an eviction that was decided on still makes sense."""
    is_release = gang.on_partial is OnPartial.RELEASE and not gang.terminating
    return is_release and not health.is_whole(gang)


def spared(plan: Plan, jobs: Mapping[JobKey, Job]) -> Plan:
    """The plan without evictions that would make a Job fail; its rejections say why."""
    obstacles = {
        eviction.uid: obstacle
        for eviction in plan.evictions
        if (obstacle := job_failures.obstacle(eviction.members, jobs)) is not None
    }
    return without(plan, obstacles)


def without(plan: Plan, obstacles: Mapping[Uid, EvictionObstacle]) -> Plan:
    """The plan without evictions that have an obstacle; ``obstacles`` is by uid of the gang."""
    put_off = {
        eviction.gang: EvictionPutOff(obstacles[eviction.uid])
        for eviction in plan.evictions
        if eviction.uid in obstacles
    }
    if not put_off:
        return plan
    rejections = tuple(
        rejection.with_findings(put_off[rejection.gang]) if rejection.gang in put_off else rejection
        for rejection in plan.rejections
    )
    evictions = tuple(eviction for eviction in plan.evictions if eviction.gang not in put_off)
    return replace(plan, evictions=evictions, rejections=rejections)


def _are_replaced(census: MemberCounts) -> bool:
    """Whether each missing member has a waiting replacement, in its role."""
    if len(census.ready) < census.missing:
        return False
    return all(
        sum(member.role == role for member in census.ready) >= n
        for role, n in census.missing_by_role.items()
    )


def _obstacle(gang: Gang, nodes: Mapping[NodeName, bool]) -> ReleaseObstacle | None:
    """Why the gang must keep the room that it has; None if nothing prevents the eviction."""
    over = sum(m.phase is Phase.SUCCEEDED for m in gang.members) + len(gang.finished)
    if over:
        return MembersSucceeded(over)
    for member in evictable(gang):
        if member.is_driver or member.owner is None:
            return NotMadeAgain(member.key.name, is_driver=member.is_driver)
    for member in gang.members:
        if member.terminating and not member.is_over and nodes.get(member.node or NodeName("")):
            return StillLeaving(member.key.name, member.node)
    return None
