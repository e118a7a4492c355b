"""No member of a gang is bound without a Reservation that already stood and gives it that node.

Separate from P1: a gang can end whole although its placement was never written down. A binding may
be under way when somebody else, such as the garbage collector, deletes the Reservation: no
precondition of a binding names another object. So it is no violation if it reaches the API server
before Tutti surely knew of that deletion.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from .audit import AuditEntry, Deletions
from .bindings import bound_in
from .findings import Finding, Findings, Promise
from .replay import Step
from .standpoint import Standpoint
from .views import Key, Pod, PodGroup, Reservation

KNOWN_AFTER = timedelta(seconds=1)  # until Tutti's watch has shown a deletion, and its calls end


@dataclass(slots=True)
class _Books:
    """Per gang: Reservations that stand, that stood, and when the first of each came."""

    deletions: Deletions
    standpoint: Standpoint
    standing: dict[Key, dict[str, Reservation]] = field(default_factory=dict)
    ended: dict[Key, tuple[int, Reservation]] = field(default_factory=dict)
    created: dict[Key, list[int]] = field(default_factory=dict)
    group_uids: dict[Key, str] = field(default_factory=dict)
    # By uid of a pod: the Reservation that named it and that another user deleted, and how.
    deleted: dict[str, tuple[Reservation, AuditEntry]] = field(default_factory=dict)

    def note(self, step: Step) -> None:
        if isinstance(step.after, PodGroup):
            self.group_uids[step.after.key] = step.after.uid
        before, after = step.before, step.after
        if isinstance(before, Reservation) and not before.is_spent:
            self.standing.get(before.gang, {}).pop(before.uid, None)
            if not isinstance(after, Reservation) or after.is_spent:
                self.ended[before.gang] = (step.revision, before)
        if isinstance(before, Reservation) and after is None:
            deletion = self.deletions.next_of(before.key)
            if deletion is not None and deletion.user != self.standpoint.operator_user:
                self.deleted.update((uid, (before, deletion)) for uid in before.named)
        if isinstance(after, Reservation) and not after.is_spent:
            for uid in after.named:
                self.deleted.pop(uid, None)
            self.standing.setdefault(after.gang, {})[after.uid] = after

    def fault(self, pod: Pod, gang: Key, revision: int) -> str | None:
        """Say what is wrong with this binding; None where a Reservation covers it or just did."""
        if self._was_under_way(pod):
            return None
        known_uid = self.group_uids.get(gang)
        standing = [
            reservation
            for reservation in self.standing.get(gang, {}).values()
            if not (known_uid and reservation.gang_uid) or reservation.gang_uid == known_uid
        ]
        if not standing:
            return self._absence(gang, revision, is_stale=bool(self.standing.get(gang)))
        faults = [_mismatch(reservation, pod) for reservation in standing]
        return None if None in faults else "; ".join(fault for fault in faults if fault)

    def _was_under_way(self, pod: Pod) -> bool:
        """Whether it reached the API server before Tutti surely knew of a deletion by another."""
        binding = self.standpoint.placing(pod)
        if binding is None or binding.at is None or pod.uid not in self.deleted:
            return False
        reservation, deletion = self.deleted[pod.uid]
        if deletion.answered is None or binding.at > deletion.answered + KNOWN_AFTER:
            return False
        return _mismatch(reservation, pod) is None

    def _absence(self, gang: Key, revision: int, *, is_stale: bool) -> str:
        if is_stale:
            return "the only Reservation is for an earlier PodGroup of that name (other uid)"
        if gang in self.ended:
            at, last = self.ended[gang]
            count = f"it named {len(last.named)} pods"
            return f"its Reservation had been deleted at revision {at} ({count})"
        later = [at for at in self.created.get(gang, ()) if at > revision]
        if later:
            return f"its first Reservation was created only later, at revision {min(later)}"
        return "it never had a Reservation"


def judge_reserving(
    steps: Sequence[Step], entries: Sequence[AuditEntry], standpoint: Standpoint
) -> Findings:
    """Check each binding by Tutti of a gang's member against what stood at that revision."""
    books = _Books(Deletions(entries, "reservations"), standpoint)
    for step in steps:
        if step.before is None and isinstance(step.after, Reservation):
            books.created.setdefault(step.after.gang, []).append(step.revision)
    violations: list[Finding] = []
    unproved: list[Finding] = []
    judged = 0
    for step in steps:
        books.note(step)
        pod = bound_in(step, standpoint)
        if pod is None or pod.gang is None or not standpoint.looks_at(pod.key.namespace):
            continue
        judged += 1
        fault = books.fault(pod, pod.gang, step.revision)
        if fault is None:
            continue
        sentence = (
            f"gang {pod.gang}: member {pod.key.name} ({pod.uid}) was bound to {pod.node} "
            f"at revision {step.revision}, but {fault}"
        )
        finding = Finding(Promise.RESERVED_FIRST, str(pod.gang), sentence, step.revision)
        (violations if step.gap is None else unproved).append(finding)
    return Findings(violations=tuple(violations), unproved=tuple(unproved), judged=judged)


def _mismatch(reservation: Reservation, pod: Pod) -> str | None:
    title = f"its Reservation (as of revision {reservation.revision})"
    if pod.uid in reservation.named:
        name, node = reservation.named[pod.uid]
        if node != pod.node:
            return f"{title} gives it node {node}"
        return None if name in ("", pod.key.name) else f"{title} calls that uid {name}"
    by_name = next(
        (uid for uid, (name, _) in reservation.named.items() if name == pod.key.name), ""
    )
    if by_name:
        return f"{title} names a pod of that name with uid {by_name}"
    roles = {role for node, role in reservation.slots if node == pod.node}
    role_names = ", ".join(sorted(roles)) or "none"
    return (
        f"{title} names {len(reservation.named)} other pods, and its slots there are: {role_names}"
    )
