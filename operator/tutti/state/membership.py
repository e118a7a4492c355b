"""Which of the pods that name a group are its members, and which roles they have by now."""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from ..kube import gang_sources
from ..kube.gang_sources import GangObject
from ..model.cluster import Gang, GangDeclaration, Member, Phase, Reservation, Role
from ..model.keys import GangKey, Uid


def current(members: Collection[Member], group: GangObject) -> Collection[Uid]:
    """The pods of this object and of the newest run; live pods of others are not members.

    Numbers of runs are compared only between pods of one job, because several jobs whose pods name
    one PodGroup restart by themselves.
    """
    own = [member for member in members if is_for(member, group)]
    if not any(member.run for member in own):
        return {member.uid for member in own}  # nothing has restarted, as nearly always
    newest: dict[GangKey | None, int] = {}
    for member in own:
        job = _job(member)
        newest[job] = max(newest.get(job, 0), member.run)
    return {member.uid for member in own if member.run == newest[_job(member)]}


def _job(member: Member) -> GangKey | None:
    """The job of a pod, whose restarts its run counts; None if no such job is known."""
    gangs = (member.gang, *member.other_gangs)
    return next((gang for gang in gangs if gang_sources.numbers_runs(gang.kind)), None)


def is_for(member: Member, group: GangDeclaration) -> bool:
    """Whether a pod was made for this object, as far as is known."""
    made_for = member.made_for
    return made_for is None or made_for.kind != group.key.kind or made_for.uid == group.uid


def in_stage(gang: Gang, group: GangObject, reservation: Reservation | None) -> Gang:
    """The gang with the roles of its stage, the newest stage that has pods.

    Pods that are over, and pods that terminate, count only if there are no others. Once a stage has
    begun, or its room is held, lost pods of earlier stages that still run are replaced, too; before
    that, the pods that run would count as its own, and it would not start whole. While the newest
    stage lacks pods, pods of an earlier stage that wait come first.
    """
    if not group.stages:
        return gang
    stage_of = {role.name: n for n, roles in enumerate(group.stages) for role in roles}
    pods = [member for member in gang.members if member.role in stage_of]
    live = [pod for pod in pods if not pod.is_over]
    shown = [pod for pod in live if not pod.terminating] or live or pods
    newest = max((stage_of[pod.role] for pod in shown), default=0)
    begun = {stage_of[pod.role] for pod in pods if pod.counts_as_bound}
    stage, starts = newest, set[int]()
    if reservation is not None:
        begun |= {stage_of[slot.role] for slot in reservation.slots if slot.role in stage_of}
        entries = {entry.uid for entry in reservation.entries}
        starts = {stage_of[pod.role] for pod in pods if pod.uid in entries}
    there = Counter(pod.role for pod in live if pod.is_waiting)
    is_complete = all(there[role.name] >= role.min_member for role in group.stages[newest])
    if not (is_complete or newest in begun | starts):
        waiting = (stage_of[pod.role] for pod in live if pod.may_get_a_node)
        stage = max((n for n in waiting if n < newest), default=newest)
    roles = group.stages[stage]
    earlier, later = list[Role](), list[Role]()
    if stage in begun:
        earlier = [replace(r, min_member=0) for before in group.stages[:stage] for r in before]
    if group.holds_later_stages and stage == newest and not _has_failed(gang):
        later = [r for after in group.stages[stage + 1 :] for r in after if r.min_member]
    roles = tuple(sorted((*earlier, *roles, *later), key=lambda role: role.name))
    return replace(
        gang,
        roles=roles,
        min_member=max(1, sum(role.min_member for role in roles)),
        has_later_stages=bool(later),
        other_stages=tuple(sorted(stage_of.keys() - {role.name for role in roles})),
    )


def _has_failed(gang: Gang) -> bool:
    """Whether a pod of the newest run has failed: then each later stage waits for its own room."""
    newest = max((member.run for member in gang.members), default=0)
    return any(m.phase is Phase.FAILED and m.run == newest for m in gang.members)
