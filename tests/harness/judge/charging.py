"""What gangs are charged to queues, counted from what the API server shows.

docs/queues.md states the rules. A gang is charged its minimum, and no less than it started with
while members are lost; each member beyond; and what terminates, as far as lost members do not make
up for it. Members count that have a node, or room in a Reservation; so do slots. While others are
to end for a gang, its members count once they have a node: until then its queue may be charged for
both.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from .quantities import Amounts
from .queues import Namespace, Queue, default_queue
from .replay import Step
from .views import Key, Pod, PodGroup, Reservation

ALONE = "pod/"  # before the name of a pod without a PodGroup, where the name of a gang stands


@dataclass(frozen=True, slots=True)
class Charge:
    """What a gang is charged, and which members are extras."""

    amounts: Counter[str] = field(default_factory=Counter)
    extras: frozenset[str] = frozenset()


@dataclass(slots=True)
class Gang:
    """What a gang holds, and what it started with."""

    group: PodGroup | None = None  # as it is now
    queue: str | None = None  # as written down at the start; None where it is the default of now
    queue_uid: str = ""
    held: dict[str, Pod] = field(default_factory=dict)  # by uid
    promised: dict[str, Pod] = field(default_factory=dict)
    joined: dict[str, int] = field(default_factory=dict)  # by uid, when it first had room
    slots: Counter[str] = field(default_factory=Counter)  # by role
    has_begun: bool = False  # since then places and lost members are those of the start
    places: Counter[str] = field(default_factory=Counter)  # at the start, by role
    start: dict[str, list[Pod]] = field(default_factory=dict)  # by role
    succeeded: dict[str, str] = field(default_factory=dict)  # roles by uid

    @property
    def runs(self) -> bool:
        """Whether it holds room."""
        return bool(self.held or self.promised or self.slots)

    def charge(self) -> Charge:
        """What it is charged now."""
        if not self.runs:
            return Charge()
        staying = self._staying()
        needed = self._needed(staying)
        held = _sum(needed)
        for role, count in self.slots.items():
            held.update({key: n * count for key, n in self._of_slot(role).items()})
        minimum = held | self._recorded()
        terminating = [pod for pod in self._holders() if pod.terminating]
        leaving = (held + _sum(terminating)) - minimum
        uids = {pod.uid for pod in needed}
        extras = [pod for pod in staying if pod.uid not in uids]
        return Charge(minimum + leaving + _sum(extras), frozenset(pod.uid for pod in extras))

    def begin(self) -> None:
        """Note what it starts with, once enough members hold room."""
        if self.group is None or self.has_begun:
            return
        staying = self._staying()
        there = len(staying) + self.slots.total() + len(self.succeeded)
        if there < max(self.group.min_member, 1):
            return
        needed = self._needed(staying)
        self.has_begun = True
        if not self.succeeded:  # else it is one of an earlier run, and all others are extras
            for pod in needed:
                self.start.setdefault(self._role(pod.role), []).append(pod)
            self.places = Counter({role: len(pods) for role, pods in self.start.items()})
            for role, count in self.slots.items():
                self.places[self._role(role)] += count

    def make_again(self) -> None:
        """Forget what it started with: its PodGroup is gone, or was made again."""
        self.has_begun, self.places, self.start, self.succeeded = True, Counter(), {}, {}

    def _holders(self) -> Iterator[Pod]:
        yield from {**self.promised, **self.held}.values()

    def _staying(self) -> Sequence[Pod]:
        staying = (pod for pod in self._holders() if not pod.terminating)
        return sorted(staying, key=lambda pod: (self.joined[pod.uid], pod.created, pod.key))

    def _role(self, role: str) -> str:
        return role if self.group is not None and self.group.roles else ""

    def _places(self) -> tuple[Counter[str], int]:
        """How many members of each role it needs, and how many more of any role."""
        if self.has_begun:
            return Counter(self.places), 0
        if self.group is None:
            return Counter(), 1
        free = self.group.min_member - sum(self.group.roles.values())
        return Counter(self.group.roles), max(free, 0)

    def _needed(self, staying: Sequence[Pod]) -> Sequence[Pod]:
        """The first of each role that joined, then the first of all."""
        left, free = self._places()
        for role in (*self.succeeded.values(), *self.slots.elements()):
            key = self._role(role)
            free -= left[key] <= 0
            left[key] -= left[key] > 0
        pods: list[Pod] = []
        others: list[Pod] = []
        for pod in staying:
            key = self._role(pod.role)
            is_missing = left[key] > 0
            left[key] -= is_missing
            (pods if is_missing else others).append(pod)
        return [*pods, *others[: max(free, 0)]]

    def _recorded(self) -> Counter[str]:
        """What it started with, less the part of each role that has succeeded; rounded up."""
        total = Counter[str]()
        gone = Counter(self._role(role) for role in self.succeeded.values())
        for role, pods in self.start.items():
            left = max(len(pods) - gone[role], 0)
            amounts = _sum(pods).items()
            total.update({key: -(-n * left // len(pods)) for key, n in amounts})
        return total

    def _of_slot(self, role: str) -> Amounts:
        return {} if self.group is None else dict(self.group.templates.get(role, {}))


def _sum(pods: Iterable[Pod]) -> Counter[str]:
    total = Counter[str]()
    for pod in pods:
        total.update(pod.requests)
    return total


@dataclass(slots=True)
class Books:
    """All gangs and queues as they are by now."""

    scheduler: str
    queues: dict[str, list[Queue]] = field(default_factory=dict)  # generations that may count
    namespaces: dict[str, Namespace] = field(default_factory=dict)
    groups: dict[Key, PodGroup] = field(default_factory=dict)
    named: dict[Key, set[str]] = field(default_factory=dict)  # queues that a gang has ever named
    gangs: dict[Key, Gang] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    charged_to: dict[str, Key] = field(default_factory=dict)  # by uid, from the first room held
    steps: int = 0  # since the first Queue: pods that had room before joined together

    # Look

    def gang_of(self, step: Step) -> Key | None:
        """The gang that may be charged more by a step."""
        match step.before or step.after:
            case Pod() as pod if pod.scheduler == self.scheduler:
                return self._key_of(pod)
            case Reservation() as reservation:
                return reservation.gang
        return None

    def charge(self, key: Key | None) -> Charge:
        """What a gang is charged."""
        gang = None if key is None else self.gangs.get(key)
        return Charge() if gang is None else gang.charge()

    def queue_of(self, key: Key) -> str:
        """The queue that a gang is charged to; empty for the root, and where it is not certain."""
        gang = self.gangs.get(key)
        if gang is None or gang.queue is None:
            return self.default_of(key.namespace)
        known = self.queues.get(gang.queue, ())
        is_same = any(queue.uid == gang.queue_uid for queue in known)
        return gang.queue if is_same else ""

    def default_of(self, namespace: str) -> str:
        """The default of a namespace; empty for the root, and where Tutti may know another."""
        seen = self.namespaces.get(namespace)
        labels = {} if seen is None else seen.labels
        by_age = zip(*((known[0], known[-1]) for known in self.queues.values()), strict=True)
        names = {default_queue(queues, labels) for queues in by_age}
        return names.pop() if len(names) == 1 else ""

    def chain(self, name: str) -> Sequence[str]:
        """The queue and those that are above it in every generation that may count."""
        return sorted(self._above(name, frozenset())) if name else ()

    def _above(self, name: str, met: frozenset[str]) -> frozenset[str]:
        if name not in self.queues or name in met:
            return frozenset()
        above = [self._above(queue.parent, met | {name}) for queue in self.queues[name]]
        return frozenset.intersection(*above) | {name}

    def charged(self, name: str) -> Counter[str]:
        """What is charged to a queue and those below it."""
        total = Counter[str]()
        for key, gang in self.gangs.items():
            if gang.runs and name in self.chain(self.queue_of(key)):
                total.update(gang.charge().amounts)
        return total

    def limits(self, name: str) -> Amounts:
        """The limits that count by now: the widest that Tutti may know."""
        known = self.queues[name]
        names = set.intersection(*({*queue.limits} for queue in known))
        return {key: max(queue.limits[key] for queue in known) for key in names}

    # Take in

    def take(self, step: Step) -> None:
        """Take in one change."""
        self.steps += bool(self.queues)
        match step.before or step.after:
            case Queue() as queue:
                self._take_queue(queue.key.name, step.after)
            case Namespace() as namespace:
                if isinstance(step.after, Namespace):
                    self.namespaces[namespace.key.name] = step.after
            case PodGroup() as group:
                if isinstance(step.after, PodGroup):
                    self._take_group(group.key, step.after)
                elif gang := self.gangs.get(group.key):
                    gang.make_again()
            case Pod() as pod if pod.scheduler == self.scheduler:
                self._take_pod(self._key_of(pod), pod, step.after)
            case Reservation() as reservation:
                self._take_reservation(reservation, step.after)

    def _take_queue(self, name: str, after: object) -> None:
        if not isinstance(after, Queue):
            self.queues.pop(name, None)
            return
        same = [queue for queue in self.queues.get(name, ()) if queue.uid == after.uid]
        latest = {queue.generation: queue for queue in (*same, after)}
        self.queues[name] = [queue for n, queue in latest.items() if n >= after.observed] or [after]

    def _take_group(self, key: Key, group: PodGroup) -> None:
        old = self.groups.get(key)
        self.groups[key] = group
        self.named.setdefault(key, set()).add(group.queue)
        if gang := self.gangs.get(key):
            gang.group = group
            if old is not None and old.uid != group.uid:
                gang.make_again()

    def _take_pod(self, key: Key, before: Pod, after: object) -> None:
        uid = before.uid
        if not isinstance(after, Pod):
            if gang := self.gangs.get(key):
                gang.held.pop(uid, None)
                gang.promised.pop(uid, None)
            self.pods.pop(uid, None)
            self.charged_to.pop(uid, None)
            return
        self.pods[uid] = after
        gang = self._gang(key)
        if after.takes_room:
            gang.held[uid] = after
            gang.joined.setdefault(uid, self.steps)
            self.charged_to[uid] = key
        else:
            gang.held.pop(uid, None)
        if _is_over(after):
            gang.promised.pop(uid, None)
        elif uid in gang.promised:
            gang.promised[uid] = after
        if after.phase == "Succeeded":
            gang.succeeded[uid] = after.role
        gang.begin()

    def _take_reservation(self, before: Reservation, after: object) -> None:
        gang = self._gang(before.gang)
        now = after if isinstance(after, Reservation) else None
        pods = [self.pods[uid] for uid in (now.named if now else ()) if uid in self.pods]
        left = gang.promised.keys() - {pod.uid for pod in pods}
        named = {pod.uid: pod for pod in pods if not _is_over(pod)}
        gang.promised = {} if now is not None and now.ends else named
        gang.joined = {**dict.fromkeys(gang.promised, self.steps), **gang.joined}
        for uid in left - gang.held.keys():
            self.charged_to.pop(uid, None)
        self.charged_to.update(dict.fromkeys(named, before.gang))
        gang.slots = Counter[str]()
        for (_, role), count in (now.slots if now else {}).items():
            gang.slots[role] += count
        if now is not None and now.queue is not None:
            gang.queue, gang.queue_uid = now.queue
        gang.begin()

    def _key_of(self, pod: Pod) -> Key:
        """The gang that a pod is charged to, whatever its labels say by now."""
        alone = Key(pod.key.namespace, ALONE + pod.key.name)
        return self.charged_to.get(pod.uid, pod.gang or alone)

    def _gang(self, key: Key) -> Gang:
        """The gang, with its queue and minimum of now if it holds nothing so far."""
        gang = self.gangs.setdefault(key, Gang())
        if not gang.runs:
            gang.group, gang.has_begun = self.groups.get(key), False
            gang.places, gang.start, gang.joined = Counter(), {}, {}
            name = gang.group.queue if gang.group is not None else ""
            if not key.name.startswith(ALONE):
                name = name or self.default_of(key.namespace)
            known = self.queues.get(name, ())
            is_alone = key.name.startswith(ALONE)
            gang.queue, gang.queue_uid = (
                (None, "") if is_alone else (name, known[-1].uid if known else "")
            )
        return gang


def _is_over(pod: Pod) -> bool:
    return pod.phase in ("Succeeded", "Failed")
