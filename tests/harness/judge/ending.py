"""No pod is evicted for a gang that then does not start, unless something outside changed.

Separate from P1: a gang may end whole, and its room may then be of no use to anybody.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .findings import Finding, Findings, Promise
from .replay import Step
from .standpoint import Standpoint
from .views import Key, Node, Pod, PodGroup, Reservation


@dataclass(slots=True)
class _Claim:
    """What one Reservation has said of its victims and of its own pods, at any revision."""

    gang: Key
    gang_uid: str
    since: int
    ends: set[str] = field(default_factory=set)
    ended_gangs: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
    is_standing: bool = True


def judge_ends(steps: Sequence[Step], standpoint: Standpoint) -> Findings:
    """Look for what each pod ended that Tutti evicted for a claim, and whether that started."""
    claims = _claims(steps)
    pods = {pod.uid: pod for step in steps if isinstance(pod := step.after or step.before, Pod)}
    groups = {group.key: group.uid for step in steps if isinstance(group := step.after, PodGroup)}
    violations, judged = [], 0
    for uid, pod in sorted(pods.items()):
        if not (standpoint.evicted_by_us(pod) and standpoint.looks_at(pod.key.namespace)):
            continue
        gang = groups.get(pod.gang, "") if pod.gang is not None else ""
        own = [c for c in claims.values() if uid in c.ends or (gang and gang in c.ended_gangs)]
        judged += bool(own)
        if own and not any(_is_excused(claim, steps, standpoint) for claim in own):
            names = ", ".join(sorted(str(claim.gang) for claim in own))
            sentence = f"pod {pod.key} was evicted for {names}, and nothing of it has started"
            violations.append(Finding(Promise.ENDS, str(pod.key), sentence, own[0].since))
    return Findings(violations=tuple(violations), judged=judged)


def _claims(steps: Sequence[Step]) -> dict[str, _Claim]:
    """By uid of the Reservation and by revision of the claim."""
    claims: dict[str, _Claim] = {}
    for step in steps:
        now, before = step.after, step.before
        if isinstance(before, Reservation) and before.uid in claims:
            is_over = not isinstance(now, Reservation) or not now.named
            claims[before.uid].is_standing = not is_over
        if isinstance(now, Reservation) and (now.ends or now.ended_gangs):
            claim = claims.setdefault(now.uid, _Claim(now.gang, now.gang_uid, step.revision))
            claim.ends |= now.ends
            claim.ended_gangs |= now.ended_gangs
            claim.named |= now.named.keys()
            claim.nodes |= now.nodes
    return claims


def _is_excused(claim: _Claim, steps: Sequence[Step], standpoint: Standpoint) -> bool:
    """Whether the gang has started, may still start, or something outside has changed since."""
    return claim.is_standing or any(_outcomes(claim, steps, standpoint))


def _outcomes(claim: _Claim, steps: Sequence[Step], standpoint: Standpoint) -> Iterator[bool]:
    for step in steps:
        if step.revision < claim.since:
            continue
        now, before = step.after, step.before
        if isinstance(now, Pod) and now.uid in claim.named and now.node:
            yield standpoint.bound_by_us(now)
        if isinstance(before, Pod) and before.uid in claim.named and now is None:
            yield True  # a pod of the claimant was deleted
        if isinstance(before, PodGroup) and before.uid == claim.gang_uid:
            yield not isinstance(now, PodGroup) or now.min_member != before.min_member
        if isinstance(before, Node) and before.key.name in claim.nodes:
            yield not isinstance(now, Node) or now.state != before.state
