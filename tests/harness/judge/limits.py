"""Limits of queues: what Tutti reserves or binds adds to no queue that is above its limit.

A gang is charged to the queue that its PodGroup names when its first member holds room. It is
charged what its members hold, and no less than what it started with while members are lost. A limit
that is lowered counts once Tutti has written the status of that generation: before, it may not know
it.
Pods without a PodGroup and default queues are not judged.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .findings import Finding, Findings, Promise
from .quantities import Amounts, format_amount
from .replay import Step
from .standpoint import Standpoint
from .views import Key, Pod, PodGroup, Queue, Reservation


@dataclass(slots=True)
class _Gang:
    """What a gang holds, and what it started with."""

    queue: str = ""
    held: dict[str, Pod] = field(default_factory=dict)  # by uid
    promised: dict[str, Pod] = field(default_factory=dict)
    start: dict[str, Pod] = field(default_factory=dict)

    @property
    def charge(self) -> Counter[str]:
        """The larger of what members hold and what it started with; nothing once nobody holds."""
        members = {**self.promised, **self.held}
        return _sum(members) | _sum(self.start) if members else Counter()


def _is_over(pod: Pod) -> bool:
    return pod.phase in ("Succeeded", "Failed")


def _sum(pods: Mapping[str, Pod]) -> Counter[str]:
    total = Counter[str]()
    for pod in pods.values():
        total.update(pod.requests)
    return total


@dataclass(slots=True)
class _Books:
    """All gangs and queues as they are by now."""

    queues: dict[str, list[Queue]] = field(default_factory=dict)  # generations that may count
    groups: dict[Key, PodGroup] = field(default_factory=dict)
    gangs: dict[Key, _Gang] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    charged_to: dict[str, Key] = field(default_factory=dict)  # by uid, from the first room held

    def key_of(self, pod: Pod) -> Key | None:
        """The gang that a pod is charged to, whatever its labels say by now."""
        return self.charged_to.get(pod.uid, pod.gang)

    def gang(self, key: Key) -> _Gang:
        """The gang, with its queue if nobody holds room so far."""
        found = self.gangs.setdefault(key, _Gang())
        if not (found.held or found.promised):
            group = self.groups.get(key)
            found.queue, found.start = (group.queue if group is not None else ""), {}
        return found

    def chain(self, name: str) -> Iterator[str]:
        """The queue and those above it; one that was moved ends it until Tutti knows of that."""
        met = set[str]()
        while name in self.queues and name not in met:
            met.add(name)
            yield name
            parents = {queue.parent for queue in self.queues[name]}
            name = parents.pop() if len(parents) == 1 else ""

    def charged(self, name: str) -> Counter[str]:
        """What is charged to a queue and those below it."""
        total = Counter[str]()
        for gang in self.gangs.values():
            if name in self.chain(gang.queue):
                total.update(gang.charge)
        return total

    def limits(self, name: str) -> Amounts:
        """The limits that count by now: the widest that Tutti may know."""
        known = self.queues[name]
        names = set.intersection(*({*queue.limits} for queue in known))
        return {each: max(queue.limits[each] for queue in known) for each in names}

    def take(self, step: Step) -> Key | None:
        """Take in one change; gives the gang that may hold more by it."""
        match step.before or step.after:
            case Queue() as queue:
                self._take_queue(queue.key.name, step.after)
            case PodGroup() as group:
                if isinstance(step.after, PodGroup):
                    self.groups[group.key] = step.after
            case Pod() as pod if (key := self.key_of(pod)) is not None:
                return self._take_pod(key, pod, step.after)
            case Reservation() as reservation:
                gang = self.gang(reservation.gang)
                named = step.after.named if isinstance(step.after, Reservation) else {}
                known = {uid: self.pods[uid] for uid in named if uid in self.pods}
                gang.promised = {uid: pod for uid, pod in known.items() if not _is_over(pod)}
                self._has_started(reservation.gang, gang)
                return reservation.gang
        return None

    def _take_queue(self, name: str, after: object) -> None:
        if not isinstance(after, Queue):
            self.queues.pop(name, None)
            return
        same = [queue for queue in self.queues.get(name, ()) if queue.uid == after.uid]
        latest = {queue.generation: queue for queue in (*same, after)}
        self.queues[name] = [queue for n, queue in latest.items() if n >= after.observed] or [after]

    def _take_pod(self, key: Key, before: Pod, after: object) -> Key:
        gang = self.gang(key)
        if not isinstance(after, Pod):
            for pods in (self.pods, gang.held, gang.promised):
                pods.pop(before.uid, None)
            self.charged_to.pop(before.uid, None)
            return key
        self.pods[after.uid] = after
        if after.phase == "Succeeded":
            gang.start.pop(after.uid, None)
        if after.takes_room:
            gang.held[after.uid] = after
            self.charged_to[after.uid] = key
        else:
            gang.held.pop(after.uid, None)
            if _is_over(after):
                gang.promised.pop(after.uid, None)
        self._has_started(key, gang)
        return key

    def _has_started(self, key: Key, gang: _Gang) -> None:
        """Note what a gang starts with, once enough members hold room."""
        group, members = self.groups.get(key), {**gang.promised, **gang.held}
        if group is None or gang.start or len(members) < max(group.min_member, 1):
            return
        in_order = sorted(members.values(), key=lambda pod: pod.key)
        needed = [
            pod
            for role, least in group.roles.items()
            for pod in [one for one in in_order if one.role == role][:least]
        ]
        others = [pod for pod in in_order if pod not in needed]
        chosen = (*needed, *others[: max(group.min_member - len(needed), 0)])
        gang.start = {pod.uid: pod for pod in chosen}


def judge_limits(steps: Sequence[Step], standpoint: Standpoint) -> Findings:
    """Replay what queues are charged; a limit exceeded for one moment is a violation."""
    books = _Books()
    violations: list[Finding] = []
    unproved: list[Finding] = []
    judged = 0
    for step in steps:
        key = _gang_of(step, books)
        old = books.gang(key).charge if key is not None else Counter[str]()
        books.take(step)
        if key is None or step.initial or not standpoint.looks_at(key.namespace):
            continue
        more = books.gang(key).charge - old
        if not more or not _is_ours(step, standpoint):
            continue
        judged += 1
        for sentence in _excess(books, key, more):
            finding = Finding(Promise.LIMITS, str(key), sentence, step.revision)
            (violations if step.gap is None else unproved).append(finding)
    return Findings(tuple(violations), unproved=tuple(unproved), judged=judged)


def _gang_of(step: Step, books: _Books) -> Key | None:
    match step.before or step.after:
        case Pod() as pod:
            return books.key_of(pod)
        case Reservation() as reservation:
            return reservation.gang
    return None


def _is_ours(step: Step, standpoint: Standpoint) -> bool:
    """Whether Tutti did it: it alone writes Reservations."""
    return not isinstance(step.after, Pod) or standpoint.bound_by_us(step.after)


def _excess(books: _Books, key: Key, more: Counter[str]) -> Iterator[str]:
    for name in books.chain(books.gang(key).queue):
        charged = books.charged(name)
        for resource, limit in books.limits(name).items():
            if more[resource] > 0 and charged[resource] > limit:
                amounts = f"{format_amount(charged[resource])} of {format_amount(limit)} {resource}"
                yield f"gang {key} holds more, and queue {name} is then charged {amounts}"
