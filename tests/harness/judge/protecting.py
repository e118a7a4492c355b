"""No claim ends pods whose budget or Job stands fewer evictions, and none ends half a gang.

Budgets and Jobs change while a claim stands, also by its evictions. So a claim has ended what is
protected only if its evictions were too many at all times from its Reservation to the first pod
that went: whatever Tutti had read then said so.
"""

from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from .audit import AuditEntry
from .ending import VictimClaim, claims_of
from .findings import Finding, Findings, Promise
from .history import Gap
from .protections import Budget, Job
from .replay import Step
from .standpoint import Standpoint
from .views import Key, Pod, PodGroup

_TOO_MANY_REQUESTS = 429


@dataclass(slots=True)
class _Course:
    """What is known over time of pods, budgets and Jobs; None: it is gone, or allows all."""

    pods: dict[str, Pod] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)  # when each pod terminated, failed or went
    groups: dict[Key, str] = field(default_factory=dict)  # the uids of gangs
    protections: dict[str, list[Budget | Job]] = field(default_factory=dict)
    allowed: dict[str, list[tuple[int, int | None]]] = field(default_factory=dict)

    @classmethod
    def of(cls, steps: Sequence[Step]) -> "_Course":
        course = cls()
        for step in steps:
            course._take(step)
        return course

    def _take(self, step: Step) -> None:
        match step.after or step.before:
            case Pod() as pod:
                self.pods[pod.uid] = pod
                if step.after is None or pod.terminating or pod.phase == "Failed":
                    self.left.setdefault(pod.uid, step.revision)
            case PodGroup() as group:
                self.groups[group.key] = group.uid
            case Budget() | Job() as protection:
                self.protections.setdefault(protection.uid, []).append(protection)
                allowed = None if step.after is None else protection.allowed
                self.allowed.setdefault(protection.uid, []).append((step.revision, allowed))

    def most(self, uid: str, since: int, until: int) -> int | None:
        """The most evictions that a budget or Job stood in this time; None: no limit, or none yet.

        The state in which it was at the beginning counts.
        """
        values = self.allowed[uid]
        before = [value for revision, value in values if revision <= since][-1:] or [None]
        within = [value for revision, value in values if since < revision <= until]
        known = [value for value in (*before, *within) if value is not None]
        return max(known) if len(known) == len(before) + len(within) else None


def judge_protections(
    steps: Sequence[Step], entries: Sequence[AuditEntry], standpoint: Standpoint
) -> Findings:
    """Compare the evictions of each claim with what budgets and Jobs stood, and with its gangs."""
    course, judged = _Course.of(steps), 0
    violations, unproved = list[Finding](), list[Finding]()
    refused = _refused(entries, standpoint)
    gaps = {step.gap for step in steps if step.gap is not None}
    for claim in claims_of(steps):
        if not standpoint.looks_at(claim.gang.namespace):
            continue
        in_gap = any(_overlaps(claim, gap) for gap in gaps)
        findings = unproved if in_gap else violations
        ended = {uid for uid in claim.ends if _is_ended(uid, claim, course, standpoint)}
        for protection, pods in _protected(claim, course):
            if not pods & ended:
                continue
            judged += 1
            first = min(course.left[uid] for uid in pods & ended)
            most = course.most(protection.uid, claim.since, first)
            if most is not None and len(pods) > most:
                sentence = (
                    f"pods were evicted for {claim.gang}, which names {len(pods)} pods of "
                    f"{protection} to evict, and it stood {most} evictions at most"
                )
                finding = Finding(Promise.PROTECTED, str(protection.key), sentence, first)
                findings.append(finding)
        findings += _halves(claim, course, ended, refused)
    return Findings(violations=tuple(violations), unproved=tuple(unproved), judged=judged)


def _overlaps(claim: VictimClaim, gap: Gap) -> bool:
    """Whether what changed in a gap of the watch may have changed while the claim stood."""
    return gap.upto >= claim.since and (claim.until is None or gap.after <= claim.until)


def _is_ended(uid: str, claim: VictimClaim, course: _Course, standpoint: Standpoint) -> bool:
    """Whether Tutti has evicted a pod while the claim stood."""
    pod, left = course.pods.get(uid), course.left.get(uid)
    if pod is None or left is None or not standpoint.evicted_by_us(pod):
        return False
    return claim.since <= left and (claim.until is None or left <= claim.until)


def _protected(
    claim: VictimClaim, course: _Course
) -> Iterator[tuple[Budget | Job, AbstractSet[str]]]:
    """Each budget and Job of pods that the claim names, with these pods."""
    named = [course.pods[uid] for uid in claim.ends if uid in course.pods]
    for states in course.protections.values():
        last = states[-1]
        if isinstance(last, Job):
            pods = {pod.uid for pod in named if pod.job == last.uid}
        else:
            pods = {pod.uid for pod in named if last.is_of(pod.key.namespace, pod.labels)}
        yield last, pods


def _halves(
    claim: VictimClaim, course: _Course, ended: Collection[str], refused: Collection[Key]
) -> Iterator[Finding]:
    """Gangs that were to end whole, and of which pods stay once the claim is given up or done.

    A pod that the API server has refused to evict may stay: a budget was tightened meanwhile.
    """
    if claim.until is None:
        return
    by_gang: dict[Key, set[str]] = {}
    for uid in claim.ends:
        pod = course.pods.get(uid)
        if pod is not None and pod.gang and course.groups.get(pod.gang) in claim.ended_gangs:
            by_gang.setdefault(pod.gang, set()).add(uid)
    for gang, pods in by_gang.items():
        stay = {uid for uid in pods if course.left.get(uid, claim.until + 1) > claim.until}
        excused = any(course.pods[uid].key in refused for uid in stay)
        if stay and pods & set(ended) and not excused:
            sentence = f"{len(stay)} of {len(pods)} pods of {gang} stay, the others were evicted"
            yield Finding(Promise.PROTECTED, str(gang), sentence, claim.until)


def _refused(entries: Sequence[AuditEntry], standpoint: Standpoint) -> Collection[Key]:
    """The pods of which the API server has refused an eviction to Tutti."""
    return {
        entry.key
        for entry in entries
        if entry.resource == "pods/eviction"
        and entry.user == standpoint.operator_user
        and entry.code == _TOO_MANY_REQUESTS
    }
