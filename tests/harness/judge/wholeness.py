"""P1: no gang is partly bound unless the rest is reserved, or was lost after the commit.

Judged at every revision, not only at rest. A loss is a fact of the history: a member or a node
that went, room that others took, a Reservation that somebody else deleted, a minMember raised. A
gang of which somebody else bound a member has begun, and may be completed one by one.
"""

from collections.abc import Iterable, Sequence

from .audit import AuditEntry, Deletions
from .awaiting import why_given_back
from .findings import Findings
from .gangs import Gang
from .replay import Step
from .standpoint import Standpoint
from .views import Key, Node, Pod, PodGroup, Reservation


def judge_wholeness(
    steps: Sequence[Step], entries: Sequence[AuditEntry], standpoint: Standpoint
) -> Findings:
    """Follow every gang through the history, then look at what is left at rest."""
    sweep = _Sweep(standpoint, entries)
    initial = [step for step in steps if step.initial]
    for step in initial:
        sweep.take(step)
    for gang in sweep.gangs.values():
        gang.inherit(max((step.revision for step in initial), default=0))
    for step in steps:
        if not step.initial:
            for gang in sweep.take(step):
                gang.weigh(step.revision, in_gap=step.gap is not None)
    last = steps[-1].revision if steps else 0
    gangs = [gang for gang in sweep.gangs.values() if standpoint.looks_at(gang.key.namespace)]
    for gang in gangs:
        gang.weigh(last)
    return _findings(gangs, last)


def _findings(gangs: Sequence[Gang], last: int) -> Findings:
    broken = [finding for gang in gangs for finding in (*gang.repaired, gang.broken) if finding]
    return Findings(
        violations=tuple(finding for gang in gangs for finding in gang.violations),
        broken=tuple(broken),
        unfinished=tuple(gang.unfinished(last) for gang in gangs if gang.is_unfinished),
        judged=sum(gang.group is not None for gang in gangs),
    )


class _Sweep:
    """All gangs, kept up to date step by step."""

    def __init__(self, standpoint: Standpoint, entries: Iterable[AuditEntry]) -> None:
        self.gangs: dict[Key, Gang] = {}
        # By node, in the order in which they came, with the revisions at which they did.
        self._strangers: dict[str, list[tuple[Pod, int]]] = {}
        self._standpoint = standpoint
        self._deletions = Deletions(entries, "reservations")

    def take(self, step: Step) -> list[Gang]:
        """Apply one step; gives the gangs that it touches."""
        match step.after or step.before:
            case Pod():
                return self._take_pod(step)
            case PodGroup():
                return self._take_group(step)
            case Reservation():
                return self._take_reservation(step)
            case _:
                return self._take_node(step)

    def _gang(self, key: Key) -> Gang:
        return self.gangs.setdefault(key, Gang(key))

    def _gang_of(self, pod: object) -> Gang | None:
        if isinstance(pod, Pod) and pod.gang and self._standpoint.is_ours(pod):
            return self._gang(pod.gang)
        return None

    def _take_pod(self, step: Step) -> list[Gang]:
        before, after = step.before, step.after
        old_gang, new_gang = self._gang_of(before), self._gang_of(after)
        touched = [gang for gang in (old_gang, new_gang) if gang]
        if old_gang and isinstance(before, Pod):
            loss = _loss(before, after, step.revision)
            if loss and old_gang.relies_on(before.uid):
                old_gang.lose(loss)
            if old_gang is not new_gang:
                old_gang.leave(before.uid)
        if new_gang and isinstance(after, Pod):
            saw_it_unbound = isinstance(before, Pod) and not before.node
            may_be = saw_it_unbound or step.initial or step.gap is not None
            by_us = after.uid in new_gang.by_us or (may_be and self._standpoint.bound_by_us(after))
            new_gang.join(after, by_us=by_us)
            if by_us and new_gang.bound == {after.uid} and not step.initial:
                self._lose_unseen(new_gang, after)
            if may_be and after.counts_as_bound and after.node and not by_us:
                who = self._standpoint.binder(after)
                new_gang.begin(f"{who} bound {after.key.name} at revision {step.revision}")
        return touched or self._take_stranger(step)

    def _take_stranger(self, step: Step) -> list[Gang]:
        """A pod outside all gangs took room on a node: gangs that reserved there may lose it."""
        pod = step.after
        arrived = isinstance(pod, Pod) and pod.takes_room
        if not arrived or (isinstance(step.before, Pod) and step.before.node):
            return []
        assert isinstance(pod, Pod)
        if self._standpoint.bound_by_us(pod):
            return []
        self._strangers.setdefault(pod.node, []).append((pod, step.revision))
        return self._lose_on(
            pod.node, f"pod {pod.key} took room on {pod.node} at revision {step.revision}"
        )

    def _lose_unseen(self, gang: Gang, first: Pod) -> None:
        """Count the room that others took and that Tutti had not seen when it bound the first.

        It did not know of it when it reserved, either.
        """
        standing = gang.reservations.values()
        sent = [first.uid, *(uid for reservation in standing for uid in reservation.named)]
        for node in {node for reservation in standing for node in reservation.nodes}:
            for other, arrival in self._strangers.get(node, ()):
                if self._standpoint.had_not_seen(sent, other, arrival):
                    gang.lose(f"pod {other.key} took room on {node} just before")

    def _take_node(self, step: Step) -> list[Gang]:
        before, after = step.before, step.after
        if not isinstance(before, Node):
            return []
        name = before.key.name
        if not isinstance(after, Node):
            return self._lose_on(name, f"node {name} was deleted at revision {step.revision}")
        if before.state != after.state or before.allocatable != after.allocatable:
            change = f"{before.state} to {after.state}"
            if before.state == after.state:
                change = "its allocatable"
            return self._lose_on(name, f"node {name} changed at revision {step.revision}: {change}")
        return []

    def _lose_on(self, node: str, sentence: str) -> list[Gang]:
        hit = [
            gang
            for gang in self.gangs.values()
            if any(node in reservation.nodes for reservation in gang.reservations.values())
        ]
        for gang in hit:
            gang.lose(sentence)
        return hit

    def _take_group(self, step: Step) -> list[Gang]:
        before, after = step.before, step.after
        if not isinstance(after, PodGroup):
            assert isinstance(before, PodGroup)
            # The gang is judged by what was known last; whom it awaited will not come any more.
            gang = self._gang(before.key)
            gang.lose(f"its PodGroup was deleted at revision {step.revision}")
            return [gang]
        gang = self._gang(after.key)
        if isinstance(before, PodGroup) and (before.min_member, before.roles) != (
            after.min_member,
            after.roles,
        ):
            gang.lose(
                f"minMember went from {before.min_member} to {after.min_member}, roles from "
                f"{dict(before.roles)} to {dict(after.roles)} at revision {step.revision}"
            )
        gang.group = after
        return [gang]

    def _take_reservation(self, step: Step) -> list[Gang]:
        before, after = step.before, step.after
        reservation = after or before
        assert isinstance(reservation, Reservation)
        gang = self._gang(reservation.gang)
        if isinstance(before, Reservation) and before.is_spent and after is None:
            return [gang]  # no room went with it
        by, at = self._standpoint.operator_user, None
        if isinstance(after, Reservation) and not after.is_spent:
            gang.reservations[after.uid] = after
        else:
            gang.reservations.pop(reservation.uid, None)
            if after is None and (entry := self._deletions.next_of(reservation.key)):
                by, at = entry.user, entry.at
        if by != self._standpoint.operator_user:
            gang.lose(f"{by} deleted its Reservation at revision {step.revision}")
        elif isinstance(before, Reservation):
            slots_left = sum(after.slots.values()) if isinstance(after, Reservation) else 0
            if why := why_given_back(before, slots_left, gang, at):
                gang.lose(f"{why}, at revision {step.revision}")
        return [gang]


def _loss(before: Pod, after: object, revision: int) -> str:
    """Say how a member was lost in this step; empty where it was not."""
    name = before.key.name
    if not isinstance(after, Pod):
        return f"member {name} was deleted at revision {revision}"
    if after.gang != before.gang:
        return f"member {name} left the group at revision {revision}"
    if after.phase == "Failed" != before.phase:
        return f"member {name} failed at revision {revision}"
    if after.terminating and not before.terminating:
        return f"member {name} began to terminate at revision {revision}"
    return ""
