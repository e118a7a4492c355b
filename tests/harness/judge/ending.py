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
class VictimClaim:
    """What one Reservation has said of its victims and of its own pods, until it held nothing.

    The object may then be used again, for another claim.
    """

    gang: Key
    gang_uid: str
    since: int
    ends: set[str] = field(default_factory=set)
    ended_gangs: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
    until: int | None = None  # the revision at which it was given up or done; None: it stands


def judge_ends(steps: Sequence[Step], standpoint: Standpoint) -> Findings:
    """Look for what each pod ended that Tutti evicted for a claim, and whether that started."""
    claims = claims_of(steps)
    pods = {pod.uid: pod for step in steps if isinstance(pod := step.after or step.before, Pod)}
    groups = {group.key: group.uid for step in steps if isinstance(group := step.after, PodGroup)}
    violations, judged = [], 0
    for uid, pod in sorted(pods.items()):
        if not (standpoint.evicted_by_us(pod) and standpoint.looks_at(pod.key.namespace)):
            continue
        gang = groups.get(pod.gang, "") if pod.gang is not None else ""
        own = [c for c in claims if uid in c.ends or (gang and gang in c.ended_gangs)]
        judged += bool(own)
        if own and not any(_is_excused(claim, steps, standpoint) for claim in own):
            names = ", ".join(sorted(str(claim.gang) for claim in own))
            sentence = f"pod {pod.key} was evicted for {names}, and nothing of it has started"
            violations.append(Finding(Promise.ENDS, str(pod.key), sentence, own[0].since))
    return Findings(violations=tuple(violations), judged=judged)


def claims_of(steps: Sequence[Step]) -> Sequence[VictimClaim]:
    """The claims that Reservations have named, in the order in which they were made."""
    claims: list[VictimClaim] = []
    standing: dict[str, VictimClaim] = {}  # by uid of the Reservation
    for step in steps:
        now, before = step.after, step.before
        held = now if isinstance(now, Reservation) and now.named else None
        if isinstance(before, Reservation) and before.uid in standing and held is None:
            standing.pop(before.uid).until = step.revision
        if held is not None and (held.ends or held.ended_gangs):
            if held.uid not in standing:
                standing[held.uid] = VictimClaim(held.gang, held.gang_uid, step.revision)
                claims.append(standing[held.uid])
            claim = standing[held.uid]
            claim.ends |= held.ends
            claim.ended_gangs |= held.ended_gangs
            claim.named |= held.named.keys()
            claim.nodes |= held.nodes
    return claims


def _is_excused(claim: VictimClaim, steps: Sequence[Step], standpoint: Standpoint) -> bool:
    """Whether the gang has started, may still start, or something outside has changed since."""
    return claim.until is None or any(_outcomes(claim, steps, standpoint))


def _outcomes(claim: VictimClaim, steps: Sequence[Step], standpoint: Standpoint) -> Iterator[bool]:
    """What happened while the claim stood; what comes later is not why it was given up.

    A change that is seen in a gap of the watch may be older than its revision.
    """
    for step in steps:
        earliest = step.revision if step.gap is None else step.gap.after
        is_later = claim.until is not None and earliest > claim.until
        if step.revision < claim.since or is_later:
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
