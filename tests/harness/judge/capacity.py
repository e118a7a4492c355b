"""P2: at each binding by Tutti, what is bound to the node fits what the node offers.

Room is used from the binding until the pod is gone or its containers have ended. On nodes that
others bind to as well, an over-commit by what Tutti had not seen is a collision, not a violation.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .findings import Finding, Findings, Promise
from .quantities import Amounts, format_amount
from .replay import Step
from .standpoint import Standpoint
from .views import Node, Pod


@dataclass(slots=True)
class _Room:
    """One node's books: what it offers, who is there, and what they use together."""

    node: Node | None = None
    gone_at: int | None = None
    pods: dict[str, Pod] = field(default_factory=dict)
    arrivals: dict[str, int] = field(default_factory=dict)  # by uid, the revision
    used: Amounts = field(default_factory=dict)

    def remove(self, pod: Pod) -> None:
        old = self.pods.pop(pod.uid, None)
        for name, value in (old.requests if old else {}).items():
            self.used[name] -= value

    def add(self, pod: Pod, revision: int) -> None:
        self.remove(pod)
        self.pods[pod.uid] = pod
        self.arrivals.setdefault(pod.uid, revision)
        for name, value in pod.requests.items():
            self.used[name] = self.used.get(name, 0) + value

    def shortages(self, pod: Pod, unseen: Iterable[Pod] = ()) -> list[str]:
        """Say each resource that this pod takes and that is then used beyond what there is."""
        offered = self.node.allocatable if self.node else {}
        used = dict(self.used)
        for other in unseen:
            for name, value in other.requests.items():
                used[name] -= value
        return [
            f"{name} {format_amount(used[name])} of {format_amount(offered.get(name, 0))} "
            f"({format_amount(value)} by this pod)"
            for name, value in sorted(pod.requests.items())
            if value > 0 and used[name] > offered.get(name, 0)
        ]

    def was_seen_full(self, pod: Pod, standpoint: Standpoint) -> bool:
        """Whether there was no room for the pod even without what had not been seen yet."""
        unseen = [
            other
            for other in self.pods.values()
            if other.uid != pod.uid
            and standpoint.had_not_seen((pod.uid,), other, self.arrivals[other.uid])
        ]
        return not unseen or bool(self.shortages(pod, unseen))


def judge_capacity(steps: Sequence[Step], standpoint: Standpoint) -> Findings:
    """Replay what is bound where; an over-commit is blamed on whoever bound last."""
    rooms: dict[str, _Room] = {}
    violations: list[Finding] = []
    collisions: list[Finding] = []
    unproved: list[Finding] = []
    judged = 0
    for step in steps:
        if isinstance(step.before or step.after, Node):
            _offer(rooms, step)
            continue
        pod = _arrival(rooms, step)
        if pod is None or step.initial:
            continue
        was_seen_waiting = isinstance(step.before, Pod)
        ours = standpoint.bound_by_us(pod) and (was_seen_waiting or step.gap is not None)
        judged += ours
        binder = standpoint.binder(pod) if was_seen_waiting or ours else "whoever created it"
        finding = _finding(rooms[pod.node], pod, step, binder)
        if finding is None or not standpoint.looks_at(pod.key.namespace):
            continue
        if step.gap is not None:
            unproved.append(finding)
        elif (
            ours
            and rooms[pod.node].gone_at is None
            and rooms[pod.node].was_seen_full(pod, standpoint)
        ):
            violations.append(finding)
        elif ours or any(standpoint.is_ours(other) for other in rooms[pod.node].pods.values()):
            collisions.append(finding)
    return Findings(
        violations=tuple(violations),
        collisions=tuple(collisions),
        unproved=tuple(unproved),
        judged=judged,
    )


def _offer(rooms: dict[str, _Room], step: Step) -> None:
    for node, is_here in ((step.before, False), (step.after, True)):
        if isinstance(node, Node):
            room = rooms.setdefault(node.key.name, _Room())
            room.node = node if is_here else None
            room.gone_at = None if is_here else step.revision


def _arrival(rooms: dict[str, _Room], step: Step) -> Pod | None:
    """Keep the books; gives the pod if this step put it on its node."""
    before, after = step.before, step.after
    if isinstance(before, Pod) and before.takes_room:
        rooms.setdefault(before.node, _Room()).remove(before)
    if not isinstance(after, Pod) or not after.takes_room:
        return None
    rooms.setdefault(after.node, _Room()).add(after, step.revision)
    return None if isinstance(before, Pod) and before.node else after


def _finding(room: _Room, pod: Pod, step: Step, binder: str) -> Finding | None:
    shortages = room.shortages(pod)
    if not shortages:
        return None
    if room.node is None:
        fate = f"was deleted at revision {room.gone_at}" if room.gone_at else "was never seen"
        detail = f"which {fate}"
    else:
        others = sorted(f"{other.key} ({other.scheduler})" for other in room.pods.values())
        there = ", ".join(others[:12]) + (f" and {len(others) - 12} more" * (len(others) > 12))
        detail = f"which is then over-committed: {'; '.join(shortages)}; there are {there}"
    sentence = (
        f"pod {pod.key} was bound by {binder} at revision {step.revision} "
        f"to node {pod.node}, {detail}"
    )
    return Finding(Promise.CAPACITY, pod.node, sentence, step.revision)
