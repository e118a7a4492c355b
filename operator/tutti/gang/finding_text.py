"""The sentences of rejections: only this module puts findings in words.

A sentence says what was requested, what there is, and what users can do, in this order.
"""

from collections.abc import Iterable, Sequence
from functools import singledispatch

from ..model.decisions import Finding, Mode, Rejection
from . import findings as of
from . import room_findings as room
from .quantities import count, format_amount, format_resources

MOST_QUEUES = 5  # that one sentence names
MOST_VICTIMS = 3
MODES = {
    Mode.PAUSED: "Tutti is paused (TUTTI_MODE=paused), so nothing starts",
    Mode.SHADOW: "Tutti only watches (TUTTI_MODE=shadow), so nothing starts",
}


def sentence(rejection: Rejection) -> str:
    """Why the gang waits, in one sentence."""
    return sentence_of(rejection.findings)


def sentence_of(findings: Iterable[Finding]) -> str:
    """These findings as one sentence."""
    return "; ".join(text(finding) for finding in findings)


@singledispatch
def text(finding: object) -> str:
    """One finding, or part of one, in words.

    Raises:
        TypeError: no function here handles this type of finding.
    """
    raise TypeError(finding)


@text.register
def _(finding: room.Asked) -> str:
    n, requests = finding.members, format_resources(finding.requests)
    if finding.is_single:
        return f"the pod needs {requests}"
    role = f"role {finding.role}: " if finding.role else ""
    purpose = f" {finding.purpose}" if finding.purpose else ""
    needs = f"need{'s' * (n == 1)} {requests}{' each' * (n > 1)}"
    return f"{role}{count(n, 'member')}{purpose} {needs}"


@text.register
def _(finding: room.MixedAsked) -> str:
    kinds = [
        f"{n} with {format_resources(requests)} each ({text(fit)})"
        for n, requests, fit in finding.kinds
    ]
    kinds = _listed(kinds, finding.more_kinds, "more kinds")
    return f"{count(finding.needed, 'member')} needed of {', '.join(kinds)}"


@text.register
def _(finding: room.RoomFor) -> str:
    fit = f"room for {finding.members} on {count(finding.nodes, 'node')}"
    fit = fit if finding.nodes else "room for none"
    return f"{fit}, left unused by this plan" if finding.is_unused else fit


@text.register
def _(finding: room.EmptyClusterRoom) -> str:
    n = finding.members
    return f"even the empty cluster has room for {f'only {n}' if n else 'none'}"


@text.register
def _(finding: room.ShortOf) -> str:
    return f"short {finding.members}"


@text.register
def _(finding: room.LargestDomain) -> str:
    if not finding.domain:
        return f"no node is in a domain of the level {finding.level}"
    share = f"{finding.members} of {count(finding.needed, 'member')}"
    return f"the largest domain of {finding.level} is {finding.domain}: it has room for {share}"


@text.register
def _(finding: room.RoomInSegments) -> str:
    share = f"{finding.members} of {count(finding.needed, 'member')}"
    whole = f"room for {count(finding.whole, 'whole segment')} of {finding.size}: {share}"
    if not finding.around:
        return f"the domains of {finding.level} have {whole}"
    most = f"the domain of {finding.around_level} with room for most is {finding.around}"
    return f"{most}: its domains of {finding.level} have {whole}"


@text.register
def _(finding: room.DomainOfGang) -> str:
    where = f"its domain of {finding.level} is {finding.domain}"
    if finding.others:
        names = [*map(str, finding.others)]
        names += [count(finding.more, "other gang")] if finding.more else []
        are = "is" if len(names) == 1 else "are"
        where += f", where {' and '.join(', '.join(names).rsplit(', ', 1))} {are}, too"
    if not finding.outside:
        return where
    amount = format_amount(finding.resource, finding.outside)
    return f"{where}; pods of no gang have {amount} {finding.resource} there"


@text.register
def _(finding: room.NoDomainsTogether) -> str:
    return f"no choice of domains of {' and '.join(finding.levels)} has room for it"


@text.register
def _(_: room.NoWayTogether) -> str:
    return "no way was found to place them together"


@text.register
def _(finding: room.PortTaken) -> str:
    return f"host port {finding.port} is taken on {count(finding.nodes, 'node')}"


@text.register
def _(finding: room.MorePortsTaken) -> str:
    return f"{finding.ports} more host ports are taken"


@text.register
def _(finding: room.ExcludedByRules) -> str:
    return ", ".join(f"{count(n, 'node')} excluded by {rule}" for n, rule in finding.nodes_by_rule)


@text.register
def _(finding: room.RulesInForce) -> str:
    return f"what its pods ask of others: {', '.join(finding.rules)}"


@text.register
def _(finding: room.RoomHeldForIt) -> str:
    where = count(finding.nodes, "node")
    return f"it has waited longest, so room is held for it on {where} as it frees up"


@text.register
def _(finding: room.RoomHeldForOther) -> str:
    return f"more room is held for gang {finding.gang}, which goes first"


@text.register
def _(finding: room.NoNodeFits) -> str:
    absent = f"an absent member of role {finding.role}"
    member = absent if finding.member is None else f"member {finding.member}"
    return f"no node of the kinds present fits {member}: {_no_node(finding)}"


def _no_node(finding: room.NoNodeFits) -> str:
    """Why no node could hold a member."""
    if not finding.nodes:
        return "there are no nodes"
    n, obstacles = finding.excluded.nodes, text(finding.excluded)
    if n == finding.nodes:
        return f"{count(n, 'node')}: {obstacles}"
    aside = f" ({count(n, 'node')} left out: {obstacles})" if n else ""
    if finding.largest is not None:
        return f"{text(finding.largest)}{aside}"
    return f"asks {format_resources(finding.requests)}; no node has all of it{aside}"


@text.register
def _(finding: room.LargestNode) -> str:
    request = f"asks {format_amount(finding.resource, finding.request)} {finding.resource}"
    if not finding.most:
        return f"{request}; no node has any"
    most = format_amount(finding.resource, finding.most)
    return f"{request}; the largest node has {most} ({finding.node})"


@text.register
def _(finding: room.Excluded) -> str:
    obstacles = [f"{n} {why.removeprefix('is ')}" for n, why in finding.obstacles]
    return ", ".join(_listed(obstacles, finding.others, "for other reasons"))


@text.register
def _(_: of.BeingDeleted) -> str:
    return "the PodGroup is being deleted"


@text.register
def _(finding: of.MembersExist) -> str:
    return f"{finding.members} of {count(finding.needed, 'member')} exist"


@text.register
def _(finding: of.NobodyToStart) -> str:
    roles = " and ".join(finding.roles)
    return f"it needs members of {roles} alone, and none of them exists"


@text.register
def _(finding: of.RoleMembersExist) -> str:
    return f"role {finding.role}: {finding.members} of {finding.needed} exist"


@text.register
def _(finding: of.MembersBound) -> str:
    return f"{finding.members} of {count(finding.needed, 'member')} are bound"


@text.register
def _(finding: of.MembersLost) -> str:
    n, them = finding.members, "it" if finding.members == 1 else "them"
    if finding.has_slots:
        return f"{n} lost or never made, and no room is held for {them}"
    return f"{n} lost, and no pod waits to replace {them}"


@text.register
def _(finding: of.Gated) -> str:
    n = finding.members
    gates = f"scheduling gates ({', '.join(_listed(finding.gates, finding.more_gates, 'more'))})"
    if finding.is_single:
        return f"the pod has {gates}"
    whose = "more" if finding.is_started else "of them"
    return f"{n} {whose} {_have(n)} {gates}"


@text.register
def _(finding: of.Failed) -> str:
    return f"{finding.members} more {_have(finding.members)} failed"


@text.register
def _(finding: of.WithoutRole) -> str:
    n = finding.members
    return f"{count(n, 'pod')} name{'s' * (n == 1)} no role of the gang"


@text.register
def _(finding: of.BeyondMaximum) -> str:
    n = finding.members
    return f"{n} more {'is' if n == 1 else 'are'} beyond the maxMember of their role"


@text.register
def _(finding: of.MaximumReached) -> str:
    n, roles = finding.members, finding.roles
    whose = f"role{'s' * (len(roles) > 1)} {', '.join(roles)}"
    have = "has its" if len(roles) == 1 else "have their"
    return f"{whose} {have} maxMember; {n} more wait{'s' * (n == 1)} until a member has ended"


@text.register
def _(finding: of.TemplateNotRead) -> str:
    absent = f"no room is held for absent members of role {finding.role}"
    return f"{absent}, since its template has {', '.join(finding.problems)}"


@text.register
def _(finding: of.CreatesOneByOne) -> str:
    pods = f"StatefulSet {finding.stateful_set}, if OrderedReady, creates one pod at a time"
    return f"{pods}: set podManagementPolicy: Parallel"


@text.register
def _(finding: of.ParallelismTooSmall) -> str:
    least = f"spec.parallelism must be at least minMember ({finding.needed})"
    return f"Job {finding.job}: {least}"


@text.register
def _(finding: of.Unsupported) -> str:
    n, fields = finding.members, ", ".join(finding.fields)
    uses = "the pod uses" if finding.is_single else f"{count(n, 'member')} use{'s' * (n == 1)}"
    return f"{uses} {fields}, which Tutti does not place yet"


@text.register
def _(finding: of.UnsupportedInGroup) -> str:
    return f"the PodGroup uses {', '.join(finding.fields)}, which Tutti does not place by yet"


@text.register
def _(finding: of.UnknownLevel) -> str:
    known = f"the levels are {', '.join(finding.known)}" if finding.known else "there is none"
    return f"no Topology has the level {finding.level}: {known}"


@text.register
def _(finding: of.MissingIndex) -> str:
    if finding.is_mixed:
        return f"segments by {finding.label} need members of one role with equal requests"
    if finding.pod:
        return f"pod {finding.pod} has no number in the label {finding.label}: segments go by it"
    return (
        f"no pod has {finding.index} in the label {finding.label}: "
        f"segments go by it, and need all numbers from 0 on"
    )


@text.register
def _(finding: of.MembersDiffer) -> str:
    same = f"all pods of the PodGroup must have the same {finding.field}"
    return f"{same}: it is {finding.value}, but {finding.other_value} in pod {finding.pod}"


@text.register
def _(finding: of.VolumesNotReady) -> str:
    n, problems = finding.members, _listed(finding.problems, finding.more_problems, "more")
    return f"{count(n, 'pod')} wait{'s' * (n == 1)} for volumes: {', '.join(problems)}"


@text.register
def _(finding: of.NamesOneClaim) -> str:
    whose = f" of role {finding.role}" if finding.role else ""
    needed = f"{count(finding.needed, 'member')}{whose} must start together"
    claim = f"claim {finding.claim}, which one pod at a time may use (ReadWriteOncePod)"
    instead = "give each pod a claim of its own, or all of them one with ReadWriteMany"
    return f"{needed}, but {finding.members} name {claim}: {instead}"


@text.register
def _(finding: of.DevicesNotReady) -> str:
    n, problems = finding.members, _listed(finding.problems, finding.more_problems, "more")
    return f"{count(n, 'pod')} wait{'s' * (n == 1)} for devices: {', '.join(problems)}"


@text.register
def _(finding: of.NotProved) -> str:
    return f"not proved to be the best choice: {finding.because}"


@text.register
def _(finding: of.NotStartedInTime) -> str:
    return f"not started within {finding.seconds:g} s"


@text.register
def _(_: of.GivenUp) -> str:
    again = "it is tried again if its members are created again"
    return f"given up, since onTimeout is Fail: {again}, or scheduleTimeoutSeconds is raised"


@text.register
def _(finding: of.NoPriorityClass) -> str:
    instead = f"so its pods' highest priority, {finding.priority}, counts"
    return f"PriorityClass {finding.name} does not exist, {instead}"


@text.register
def _(finding: of.ClaimsRoom) -> str:
    if not finding.members:
        return "it starts once pods have gone that terminate"
    why = "a guarantee covers it" if finding.by_guarantee else "its priority is higher"
    first = ", ".join(map(str, finding.victims[:MOST_VICTIMS]))
    others = len(finding.victims) - MOST_VICTIMS
    more = f" and {others} more" if others > 0 else ""
    return f"it starts once {count(finding.members, 'pod')} of {first}{more} have ended: {why}"


@text.register
def _(finding: of.KeptByBudget) -> str:
    more = f", nor {count(finding.more, 'other gang')}" if finding.more else ""
    first, *others = finding.budgets
    if others:
        why = f"a pod of it has the PodDisruptionBudgets {' and '.join(finding.budgets)}"
        return f"gang {finding.gang} cannot end for it{more}: {why}, and is never evicted"
    allows = f"allows {count(finding.allowed, 'eviction')} of {finding.pods}"
    return f"gang {finding.gang} cannot end for it{more}: PodDisruptionBudget {first} {allows}"


@text.register
def _(finding: of.TooManyVictims) -> str:
    ends = f"the {count(finding.victims, 'gang')} that cost least are too many"
    return f"{ends}: at most {finding.most} may end for one gang, and no such choice was found"


@text.register
def _(finding: of.WithinGuarantee) -> str:
    first, *others = finding.queues
    if not others:
        return f"it may not reclaim from queue {first}, which is within its guarantee"
    names = (
        f"queue {first} and {len(others)} others"
        if others[1:]
        else f"queues {first} and {others[0]}"
    )
    return f"it may not reclaim from {names}, which are within their guarantees"


@text.register
def _(finding: of.EvictionsCapped) -> str:
    pods, most = count(finding.pods, "pod"), f"and at most {finding.limit} may"
    if finding.queue:
        return f"but not yet: {pods} of queue {finding.queue} ended within the last hour, {most}"
    return f"but not yet: this cycle ends {pods} already, {most}"


@text.register
def _(finding: of.ToBeReleased) -> str:
    members = count(finding.members, "bound member")
    return f"to be released: {members} to evict, to start again whole"


@text.register
def _(finding: of.NotReleased) -> str:
    return f"not released: {text(finding.because)}"


@text.register
def _(finding: of.MembersSucceeded) -> str:
    return f"{count(finding.members, 'member')} succeeded already"


@text.register
def _(finding: of.NotMadeAgain) -> str:
    if finding.is_driver:
        return f"{finding.pod} is a Spark driver, which no controller creates again"
    return f"{finding.pod} has no controller that creates it again"


@text.register
def _(finding: of.StillLeaving) -> str:
    return f"{finding.pod} has not left node {finding.node} yet"


@text.register
def _(finding: of.RoomAfterOther) -> str:
    return f"{finding.member} may find room once {finding.other} has its node"


@text.register
def _(finding: of.EvictionPutOff) -> str:
    return f"but not yet: {text(finding.because)}"


@text.register
def _(finding: of.JobNotRead) -> str:
    return f"Job {finding.job} cannot be read, so its backoffLimit is unknown"


@text.register
def _(finding: of.JobWouldFail) -> str:
    ways = "raise its backoffLimit, or let its podFailurePolicy ignore DisruptionTarget"
    return f"{_failures(finding)}: {ways}"


def _failures(finding: of.JobWouldFail) -> str:
    return (
        f"Job {finding.job} stands {finding.failures_left} more failures and each of the "
        f"{finding.evictions} evictions counts as one"
    )


@text.register
def _(finding: of.EvictionRefused) -> str:
    if not finding.gone:
        return finding.message
    gone = count(finding.gone, "other")
    return f"{finding.message}; {gone} had left, so no other member is evicted within an hour"


@text.register
def _(finding: of.Quoted) -> str:
    return finding.message


@text.register
def _(finding: of.NothingStarts) -> str:
    return MODES[finding.mode]


@text.register
def _(finding: of.WouldStart) -> str:
    where = count(finding.nodes, "node")
    return f"otherwise {count(finding.members, 'member')} would start now on {where}"


@text.register
def _(finding: of.WouldEvict) -> str:
    members = count(finding.members, "bound member")
    return f"{members} would be evicted now, to start again whole"


@text.register
def _(finding: of.UnknownQueue) -> str:
    return f"queue {finding.queue} does not exist: {_choice(finding.candidates)}"


@text.register
def _(finding: of.ForbiddenQueue) -> str:
    refusal = f"queue {finding.queue} does not admit namespace {finding.namespace}"
    return f"{refusal}: {_choice(finding.candidates)}"


@text.register
def _(finding: of.QueueHasChildren) -> str:
    return f"queue {finding.queue} has children, so no gang starts in it: " + _choice(
        finding.candidates
    )


@text.register
def _(finding: of.AmbiguousDefault) -> str:
    queues = ", ".join(_listed(finding.candidates[:MOST_QUEUES], *_rest(finding.candidates)))
    return (
        f"queues {queues} are all the default of namespace {finding.namespace}: name one of them "
        "in spec.queue of the PodGroup, or let an administrator leave one default"
    )


@text.register
def _(finding: of.UnknownNamespace) -> str:
    return f"namespace {finding.namespace} is not known yet, so neither is the queue of the gang"


@text.register
def _(finding: of.QueueDrained) -> str:
    created = "a PodGroup or pods that were created since it does"
    return f"queue {finding.queue} drains and starts no gang with {created}"


@text.register
def _(finding: of.QueueHeld) -> str:
    who = "it" if finding.by == finding.queue else f"queue {finding.by} above it"
    why = f"{who} {finding.cause}; {_release(finding)}"
    return f"queue {finding.queue} starts no gang now: {why}"


def _release(finding: of.QueueHeld) -> str:
    """What lets gangs start again, in words."""
    match finding.cause:
        case of.HoldCause.STOP:
            return f"gangs start again once the stop of queue {finding.by} is None"
        case of.HoldCause.DELETION:
            return "name another queue in spec.queue of the PodGroup"
        case _:
            return f"correct spec.parent of queue {finding.by}"


@text.register
def _(finding: of.QueueChanges) -> str:
    pods = f"pods of this gang still hold room in queue {finding.charged}"
    return f"{pods}: it starts in queue {finding.queue} once they are gone"


@text.register
def _(finding: of.MayNotBorrow) -> str:
    name = finding.resource
    wanted, guaranteed, in_use = (
        format_amount(name, n) for n in (finding.wanted, finding.guaranteed, finding.in_use)
    )
    used = f", {in_use} {'is' if in_use == '1' else 'are'} in use" if finding.in_use else ""
    amounts = f": it guarantees {guaranteed} {name}{used}, {wanted} wanted" if name else ""
    why, fix = _ending(finding.obstacle)
    queue = f"queue {finding.queue} does not cover it by its own guarantee"
    return f"{why}, and {queue}{amounts}; {fix} it could borrow, and then be ended"


def _ending(obstacle: of.EndingObstacle | None) -> tuple[str, str]:
    """Why a gang cannot be ended, and what would change that."""
    match obstacle:
        case None:
            return "preemption: Never", "with preemption: Any"
        case of.GraceTooLong(pod, seconds, limit):
            return (
                f"pod {pod} may take {seconds} s to end, and gangs that borrow at most {limit} s",
                f"with a terminationGracePeriodSeconds of at most {limit}",
            )
        case of.JobNotRead():
            return text(obstacle), "with a Job that exists"
        case of.JobWouldFail():
            why = _failures(obstacle)
            return why, "with a larger backoffLimit, or without failures by DisruptionTarget,"
        case of.BudgetOfGang((budget,), pods, allowed):
            allows = f"allows {count(allowed, 'eviction')} of {pods}"
            return f"PodDisruptionBudget {budget} {allows}", f"with a budget that allows {pods}"
        case _:
            names = " and ".join(obstacle.budgets)
            why = f"a pod of it has the PodDisruptionBudgets {names}, and is never evicted"
            return why, "with one budget"


@text.register
def _(finding: of.QueueAtLimit) -> str:
    name = finding.resource
    in_use, limit, charge = (
        format_amount(name, n) for n in (finding.in_use, finding.limit, finding.wanted)
    )
    use = f"{in_use} of {limit} {name} {'is' if in_use == '1' else 'are'} in use"
    sentence = f"queue {finding.queue} is at its limit: {use}, {charge} wanted"
    if finding.held_for is not None:
        sentence += f"; some of it is held for gang {finding.held_for}, which goes first"
    sentence += f"; a limit of {format_amount(name, finding.enough)} would be enough"
    if finding.before:
        sentence += " for it alone"
    if finding.has_others:
        sentence += ", with the other limits met, too"
    if finding.ending:
        gangs = " and ".join(f"{gang} ({format_amount(name, n)})" for gang, n in finding.ending)
        sentence += f", or the end of {gangs}"
    if finding.before:
        before = ", ".join(_listed(map(str, finding.before), finding.more_before, "more"))
        sentence += f"; before it in its queue: {before}"
    return sentence


@text.register
def _(_: of.LimitHeldForIt) -> str:
    return "it has waited longest, so what its queue gives back is held for it"


@text.register
def _(_: of.CountsInRoot) -> str:
    return "it names no queue and its namespace has no default, so it counts in queue root"


def _choice(queues: Sequence[str]) -> str:
    """Which queue to name instead, in words."""
    if not queues:
        return "there is no queue that this namespace may use instead"
    names = " or ".join(_listed(queues[:MOST_QUEUES], *_rest(queues)))
    return f"name {names} in spec.queue of the PodGroup"


def _rest(queues: Sequence[str]) -> tuple[int, str]:
    return len(queues) - MOST_QUEUES, "more"


def _listed(items: Iterable[str], rest: int, noun: str) -> list[str]:
    """The items, and as the last one the number of further items, if there are any."""
    return [*items, *[f"{rest} {noun}"] * (rest > 0)]


def _have(n: int) -> str:
    return "has" if n == 1 else "have"
