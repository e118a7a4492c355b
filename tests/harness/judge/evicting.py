"""Tutti evicts no pod unless a standing Reservation names it for this.

Separate from ``ending``, which judges what came of a claim: an eviction that arrives after its
Reservation was deleted ends a pod for nobody, whatever else starts.
"""

from collections.abc import Sequence

from .findings import Finding, Findings, Promise
from .replay import Step
from .standpoint import Standpoint
from .views import Key, Pod, PodGroup, Reservation


def judge_evicting(steps: Sequence[Step], standpoint: Standpoint) -> Findings:
    """Compare each pod that Tutti evicts with the Reservations that stand at this revision."""
    standing: dict[str, Reservation] = {}
    groups: dict[Key | None, str] = {}
    violations: list[Finding] = []
    unproved: list[Finding] = []
    judged = 0
    for step in steps:
        before, after = step.before, step.after
        if isinstance(before, Reservation):
            standing.pop(before.uid, None)
        if isinstance(after, Reservation):
            standing[after.uid] = after
        if isinstance(after, PodGroup):
            groups[after.key] = after.uid
        pod = _leaves(step)
        if pod is None or not standpoint.evicted_by_us(pod):
            continue
        if not standpoint.looks_at(pod.key.namespace):
            continue
        judged += 1
        gang = groups.get(pod.gang, "")
        if any(_names(reservation, pod, gang) for reservation in standing.values()):
            continue
        sentence = (
            f"pod {pod.key} ({pod.uid}) was evicted at revision {step.revision}, "
            "and no Reservation that stood then names it as one to evict"
        )
        finding = Finding(Promise.NAMED_FIRST, str(pod.key), sentence, step.revision)
        (violations if step.gap is None else unproved).append(finding)
    return Findings(violations=tuple(violations), unproved=tuple(unproved), judged=judged)


def _leaves(step: Step) -> Pod | None:
    """The pod that begins to terminate in this step, or goes without having done so."""
    before, after = step.before, step.after
    if step.initial or not isinstance(before, Pod) or before.terminating:
        return None
    if isinstance(after, Pod):
        return after if after.terminating else None
    return before


def _names(reservation: Reservation, pod: Pod, gang: str) -> bool:
    """Whether it has this pod evicted, by itself or with its whole gang."""
    is_named = pod.uid in reservation.ends or pod.uid in reservation.evicts
    return is_named or (bool(gang) and gang in reservation.ended_gangs)
