"""Members that must be in one domain of the network get their nodes there.

Judged when a node is promised, or bound without a promise: what others do to labels, nodes and
pods afterwards breaks nothing. Members that have nodes by then fix the domain, or the segments.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from .findings import Finding, Findings, Promise
from .network import Rule, Topology, domain, labels_of
from .replay import Step
from .standpoint import Standpoint
from .views import Key, Node, Pod, PodGroup, Reservation


@dataclass(frozen=True, slots=True)
class _Place:
    """So many members on a node: one pod, or slots of a role."""

    node: str
    role: str
    labels: Mapping[str, str]
    count: int = 1


Places = Mapping[str, _Place]  # by uid of the pod; slots by their node and role


@dataclass(slots=True)
class _Gang:
    """What is known of one gang."""

    group: PodGroup | None = None
    pods: dict[str, Pod] = field(default_factory=dict)
    reservations: dict[str, Reservation] = field(default_factory=dict)

    @property
    def rules(self) -> Sequence[Rule]:
        """What its PodGroup says of domains."""
        return self.group.rules if self.group else ()

    def places(self) -> Places:
        """Members that have a node or are promised one, and slots."""
        places = {}
        for reservation in self.reservations.values():
            for uid, (_, node) in reservation.named.items():
                pod = self.pods.get(uid)
                if pod is not None and pod.is_waiting:
                    places[uid] = _Place(node, pod.role, pod.labels)
            for (node, role), count in reservation.slots.items():
                places[f"slots of {role} on {node}"] = _Place(node, role, {}, count)
        for uid, pod in self.pods.items():
            if pod.takes_room and not pod.terminating:
                places[uid] = _Place(pod.node, pod.role, pod.labels)
        return places

    def size(self, rule: Rule) -> int:
        """How many members of the rule there are: they exist, or slots are held for them."""
        pods = [pod for pod in self.pods.values() if pod.is_waiting or pod.takes_room]
        slots = (
            n
            for each in self.reservations.values()
            for (_, role), n in each.slots.items()
            if rule.covers(role)
        )
        return sum(rule.covers(pod.role) for pod in pods) + sum(slots)


@dataclass(slots=True)
class _Cluster:
    """What is known of all gangs, and of the network."""

    gangs: dict[Key, _Gang] = field(default_factory=dict)
    nodes: dict[str, Mapping[str, str]] = field(default_factory=dict)
    topologies: dict[tuple[str, str], Topology] = field(default_factory=dict)
    levels_known: set[str] = field(default_factory=set)  # at any time

    def gang(self, key: Key) -> _Gang:
        return self.gangs.setdefault(key, _Gang())

    def gang_of(self, step: Step) -> Key | None:
        """The gang of the pod or of the Reservation that changes."""
        match step.after or step.before:
            case Pod(gang=key) | Reservation(gang=key):
                return key
        return None

    def take(self, step: Step) -> None:
        """Apply one step."""
        self._forget(step.before)
        match step.after:
            case Pod(gang=Key() as key) as pod:
                self.gang(key).pods[pod.uid] = pod
            case PodGroup() as group:
                self.gang(group.key).group = group
            case Reservation() as reservation:
                self.gang(reservation.gang).reservations[reservation.uid] = reservation
            case Node() as node:
                self.nodes[node.key.name] = node.labels
            case Topology() as topology:
                self.topologies[topology.order] = topology
                self.levels_known |= {*topology.levels}

    def _forget(self, before: object) -> None:
        match before:
            case Pod(gang=Key() as key) as pod:
                self.gang(key).pods.pop(pod.uid, None)
            case Reservation() as reservation:
                self.gang(reservation.gang).reservations.pop(reservation.uid, None)
            case Node() as node:
                self.nodes.pop(node.key.name, None)
            case Topology() as topology:
                self.topologies.pop(topology.order, None)

    def faults(self, gang: _Gang, old: Places, new: Places) -> Iterator[str]:
        """What is wrong with places that the gang did not have before."""
        for rule in gang.rules:
            labels = labels_of(rule.level, self.topologies.values())
            covered = {name: place for name, place in new.items() if rule.covers(place.role)}
            if not labels:
                if covered and rule.level not in self.levels_known:
                    yield f"no Topology has ever had the level {rule.level}"
                continue
            before = {n: p for n, p in old.items() if rule.covers(p.role) and p.node in self.nodes}
            if not rule.size:
                yield from self._in_one(rule.level, labels, before, covered)
            elif rule.index_label:
                for number in sorted({*_segments(rule, covered)}):
                    own = [
                        {n: p for n, p in of.items() if _segment(rule, p) == number}
                        for of in (before, covered)
                    ]
                    part = f"segment {number} in {rule.level}"
                    yield from self._in_one(part, labels, own[0], own[1])
            elif covered:
                yield from self._in_segments(rule, labels, before, covered, gang.size(rule))

    def _domains(self, labels: Sequence[str], places: Places) -> Counter[str]:
        """By domain, how many members; those of nodes outside all domains under no name."""
        counts: Counter[str] = Counter()
        for place in places.values():
            counts[domain(self.nodes.get(place.node, {}), labels)] += place.count
        return counts

    def _in_one(
        self, level: str, labels: Sequence[str], before: Places, new: Places
    ) -> Iterator[str]:
        counts = self._domains(labels, new)
        there = self._domains(labels, before)
        there.pop("", None)
        if "" in counts:
            yield f"{counts['']} members get nodes outside all domains of {level}"
        elif len(counts) > 1:
            yield f"its members get nodes in several domains of {level}: {_said(counts)}"
        elif there and any(there[name] < max(there.values()) for name in counts):
            yield f"members get nodes in {_said(counts)} of {level}; it is in {_said(there)}"

    def _in_segments(
        self, rule: Rule, labels: Sequence[str], before: Places, new: Places, size: int
    ) -> Iterator[str]:
        counts, there = self._domains(labels, new), self._domains(labels, before)
        if "" in counts:
            yield f"{counts['']} members get nodes outside all domains of {rule.level}"
            return
        there.pop("", None)
        parts = f"segments of {rule.size} in {rule.level}"
        if not there:
            if sum(count % rule.size > 0 for count in counts.values()) > 1:
                yield f"it starts in several parts of {parts}: {_said(counts)}"
            return
        most = max(_number(there, rule.size), ceil(size / rule.size))
        if _number(there + counts, rule.size) > most:
            yield f"it has more than {most} {parts}: {_said(there + counts)}"


def judge_domains(steps: Sequence[Step], standpoint: Standpoint) -> Findings:
    """Check each node that Tutti promises or binds to against the rules of the gang."""
    cluster = _Cluster()
    violations: list[Finding] = []
    unproved: list[Finding] = []
    judged = 0
    for step in steps:
        key = cluster.gang_of(step)
        gang = cluster.gang(key) if key else None
        if key is None or gang is None or not gang.rules:
            cluster.take(step)  # most gangs have no rules, and many members
            continue
        old = gang.places()
        cluster.take(step)
        if not _is_judged(step, key, standpoint):
            continue
        new = _more(old, gang.places())
        judged += bool(new)
        for fault in cluster.faults(gang, old, new):
            sentence = f"gang {key}: {fault}"
            finding = Finding(Promise.DOMAINS, str(key), sentence, step.revision)
            (violations if step.gap is None else unproved).append(finding)
    return Findings(tuple(violations), unproved=tuple(unproved), judged=judged)


def _is_judged(step: Step, key: Key, standpoint: Standpoint) -> bool:
    """Whether Tutti did it: a Reservation, or a binding; a pod created with a node is not bound."""
    now, before = step.after, step.before
    if step.initial or not standpoint.looks_at(key.namespace):
        return False
    if not isinstance(now, Pod):
        return True
    was_bound = not before.node if isinstance(before, Pod) else step.gap is not None
    return was_bound and standpoint.bound_by_us(now)


def _more(old: Places, new: Places) -> Places:
    """Places that are not among the old ones; a pod on a node with a slot of its role has that."""
    held = {(p.node, p.role) for name, p in old.items() if name.startswith("slots of ")}
    more = {}
    for name, place in new.items():
        was = old.get(name)
        if was is None or was.node != place.node:
            if (place.node, place.role) not in held:
                more[name] = place
        elif was.count < place.count:
            more[name] = _Place(place.node, place.role, place.labels, place.count - was.count)
    return more


def _segment(rule: Rule, place: _Place) -> int | None:
    index = place.labels.get(rule.index_label, "")
    return int(index) // rule.size if index.isdecimal() else None


def _segments(rule: Rule, places: Places) -> Iterator[int]:
    numbers = (_segment(rule, place) for place in places.values())
    return (number for number in numbers if number is not None)


def _number(counts: Mapping[str, int], size: int) -> int:
    """How many segments these members are in."""
    return sum(ceil(count / size) for count in counts.values())


def _said(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))
