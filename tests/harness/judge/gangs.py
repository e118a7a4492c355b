"""One gang as P1 sees it, followed from revision to revision.

Separate from the sweep over the history so that the rule of P1 is one short method.
"""

from collections import Counter
from dataclasses import dataclass, field

from .findings import Finding, Promise
from .views import Key, Pod, PodGroup, Reservation

LISTED = 8  # names and losses written out in a sentence; more are counted


@dataclass(slots=True)
class Gang:
    """Members, Reservations and what is remembered: the commit, what was lost, what is wrong."""

    key: Key
    group: PodGroup | None = None
    members: dict[str, Pod] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)
    by_us: set[str] = field(default_factory=set)
    reservations: dict[str, Reservation] = field(default_factory=dict)
    committed: bool = False
    losses: list[str] = field(default_factory=list)
    wrong: Finding | None = None  # partly bound with no excuse, since its revision
    broken: Finding | None = None
    past: list[Finding] = field(default_factory=list)  # violations that are over
    repaired: list[Finding] = field(default_factory=list)

    def join(self, pod: Pod, *, by_us: bool) -> None:
        """Take in a member, or its newer state."""
        self.leave(pod.uid)
        self.members[pod.uid] = pod
        if pod.counts_as_bound:
            self.bound.add(pod.uid)
            if by_us:
                self.by_us.add(pod.uid)
        elif pod.is_waiting:
            self.waiting.add(pod.uid)

    def leave(self, uid: str) -> None:
        """Forget a member."""
        self.members.pop(uid, None)
        for uids in (self.bound, self.waiting, self.by_us):
            uids.discard(uid)

    def lose(self, sentence: str) -> None:
        """Remember what was lost after the commit; before it nothing can be."""
        if self.committed:
            self.losses.append(sentence)

    def begin(self, sentence: str) -> None:
        """Remember that somebody else bound a member: from then on it is there to be completed."""
        if not self.committed:
            self.committed = True
            self.losses.append(sentence)

    def relies_on(self, uid: str) -> bool:
        """Whether the pod is bound, or promised a node."""
        return uid in self.bound or any(
            uid in reservation.named for reservation in self.reservations.values()
        )

    def weigh(self, revision: int, *, in_gap: bool = False) -> None:
        """Judge the gang as it is now: whole, reserved, excused by a loss, or wrong."""
        if self.group is None:
            return
        if not self.bound and not self.reservations:
            self._end(revision)
            self.broken, self.committed = None, False
            self.losses.clear()
        elif self._is_enough(self.bound):
            self._end(revision)
            self.committed = True
            self.losses.clear()
            if self.broken:
                self.repaired.append(_extended(self.broken, f"; repaired at revision {revision}"))
                self.broken = None
        elif self._is_covered():
            self._end(revision)
            self.committed = True
            if not self.bound:
                self.losses.clear()
        elif self.committed and self.losses:
            self._end(revision)
            if self.broken is None and self.bound:
                self.broken = self._finding(revision, f"after its commit: {_some(self.losses)}")
        elif self.by_us and self.wrong is None and not in_gap:
            self.wrong = self._finding(revision, self._reserved_part())

    def inherit(self, revision: int) -> None:
        """Accept the state in which the witness found it."""
        partly = self.group and self.bound and not self._is_enough(self.bound)
        if partly and not self._is_covered():
            self.committed = True
            self.losses.append("it was already so when the witness began")
        self.weigh(revision)

    @property
    def is_unfinished(self) -> bool:
        """Whether it is partly bound, and the rest reserved."""
        if self.group is None or not self.bound or self._is_enough(self.bound):
            return False
        return self._is_covered()

    def unfinished(self, revision: int) -> Finding:
        """Say how much of it is bound, and what holds the rest."""
        return self._finding(revision, self._reserved_part())

    @property
    def violations(self) -> tuple[Finding, ...]:
        """Each time that it was partly bound with no excuse; the last may still last."""
        if self.wrong is None:
            return tuple(self.past)
        return (
            *self.past,
            _extended(self.wrong, f"; at rest {self._counts()}, {self._reserved_part()}"),
        )

    def _end(self, revision: int) -> None:
        if self.wrong:
            self.past.append(_extended(self.wrong, f"; it ended at revision {revision}"))
            self.wrong = None

    def _is_covered(self) -> bool:
        named_uids = {
            uid for reservation in self.reservations.values() for uid in reservation.named
        }
        slots: Counter[str] = Counter()
        for reservation in self.reservations.values():
            for (_, role), count in reservation.slots.items():
                slots[role] += count
        return bool(self.reservations) and self._is_enough(
            self.bound | (named_uids & self.waiting), slots
        )

    def _is_enough(self, uids: set[str], slots: Counter[str] | None = None) -> bool:
        if self.group is None:
            return False
        slots = slots or Counter()
        if not self.group.roles:
            return len(uids) + slots.total() >= self.group.min_member
        roles = Counter(self.members[uid].role for uid in uids) + slots
        needed = self.group.roles
        counted = sum(roles[role] for role in needed)
        return counted >= self.group.min_member and all(
            roles[role] >= least for role, least in needed.items()
        )

    def _reserved_part(self) -> str:
        if not self.reservations:
            return "and no Reservation holds the rest"
        parts = []
        for reservation in self.reservations.values():
            alive = sum(uid in self.waiting for uid in reservation.named)
            slots = sum(reservation.slots.values())
            parts.append(
                f"and its Reservation (as of revision {reservation.revision}) names {alive} "
                f"of its {len(self.waiting)} waiting members and {slots} slots"
            )
        return "; ".join(parts)

    def _finding(self, revision: int, why: str) -> Finding:
        names = sorted(self.members[uid].key.name for uid in self.bound)
        sentence = (
            f"gang {self.key}: {self._counts()} since revision {revision} ({_some(names)}), {why}"
        )
        return Finding(Promise.WHOLE, str(self.key), sentence, revision)

    def _counts(self) -> str:
        if self.group is None:
            return f"{len(self.bound)} members bound"
        bound_members = f"{len(self.bound)} of {self.group.min_member} members bound"
        if not self.group.roles:
            return bound_members
        roles = Counter(self.members[uid].role for uid in self.bound)
        parts = (f"{role} {roles[role]}/{least}" for role, least in self.group.roles.items())
        return f"{bound_members} [{', '.join(parts)}]"


def _extended(finding: Finding, more: str) -> Finding:
    return Finding(finding.promise, finding.subject, finding.sentence + more, finding.revision)


def _some(texts: list[str]) -> str:
    more = f" and {len(texts) - LISTED} more" if len(texts) > LISTED else ""
    return ", ".join(texts[:LISTED]) + more
