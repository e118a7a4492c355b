"""The public answers about one cluster, judged."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from . import order, podrules, values
from .answers import answer, key
from .order import HeldError, Standing
from .search import Searcher, UndecidedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .cluster import Cluster, Gang
    from .search import Located, Rooms

LARGE = 2**50  # amounts from here on are told apart from others
HOSTNAME = "kubernetes.io/hostname"
NOT_OF_NEW_NODES = ("node.kubernetes.io/unschedulable", "unready")
NO_ROOM = ("NotEnoughRoom", "NoNodeFits")
RATIO = Fraction(1, 10**6)


class Violation(NamedTuple):
    """What is wrong with an answer."""

    kind: str
    says: str


@dataclass(slots=True)
class Verdict:
    """All that is wrong, and what was not looked at."""

    violations: list[Violation] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    is_proved: bool = False
    is_waiting: bool = False  # whether there is anything to explain

    def add(self, kind: str, says: str) -> None:
        """Note a violation."""
        self.violations.append(Violation(kind, says))


def standing(cluster: Cluster, raw: Mapping[str, Any]) -> Standing:
    """A plan beside its cluster."""
    searcher = Searcher(cluster)
    staying = tuple(p for p in cluster.there if f"{p.namespace}/{p.name}" not in cluster.ours)
    empty = Searcher(replace(cluster, there=staying))
    return Standing(cluster, searcher, answer(cluster, raw), values.firsts(searcher, empty))


def judged(cluster: Cluster, raw: Mapping[str, Any]) -> Verdict:
    """Judge a plan."""
    verdict = Verdict()
    try:
        here = standing(cluster, raw)
    except UndecidedError:
        verdict.skipped.append("undecided")
        return verdict
    verdict.is_proved = here.answer.proved
    for fault in (*here.answer.faults, *unlawful(here)):
        verdict.add("unlawful", fault)
    if verdict.violations:
        return verdict
    verdict.is_waiting = any(not here.answer.starts(gang) for gang in here.waiting)
    _judge_best(here, verdict)
    _judge_beside(here, verdict)
    _judge_values(here, verdict)
    return verdict


def unlawful(here: Standing) -> list[str]:
    """The promises that a placement breaks."""
    faults: list[str] = []
    searcher, placed = here.searcher, here.answer.everybody
    nodes = set(searcher.names)
    for pod, where in placed:
        if where not in nodes or not searcher.allowed(pod)[searcher.names.index(where)]:
            faults.append(f"{pod.name} may not run on {where}")
    if not faults:
        room = searcher.less(searcher.rooms(), placed)
        # What asks for none of an overdrawn resource does not make that worse.
        faults += [
            f"{name} has no room for {resource}"
            for name, left in zip(searcher.names, room, strict=True)
            for resource, n in zip(searcher.resources, left, strict=True)
            if n < 0
        ]
    if here.cluster.has_rules and not faults and (why := podrules.broken(here.cluster, placed)):
        faults.append(why)
    return faults + [fault for gang in here.cluster.gangs for fault in _not_whole(here, gang)]


def _not_whole(here: Standing, gang: Gang) -> list[str]:
    """What a gang's placement breaks of its PodGroup."""
    faults = []
    pods = [pod for pod, _ in here.answer.of(gang)]
    counts = {role.name: sum(p.role == role.name for p in pods) for role in gang.roles}
    for role in gang.roles:
        places = gang.places(role.name)
        if places is not None and counts[role.name] > places:
            faults.append(f"{gang.name} has more than maxMember of {role.name}")
        if pods and not gang.is_started and counts[role.name] < role.least:
            faults.append(f"{gang.name} starts with too few of {role.name}")
    if pods and not gang.is_started and len(pods) < gang.need:
        faults.append(f"{gang.name} starts with {len(pods)} of {gang.need}")
    is_started = here.answer.answers.get(key(gang.name, gang.kind)) in ("starts", "grows")
    if is_started != bool(pods):
        faults.append(f"{gang.name}: the answer is not what the placement says")
    return faults


def _needs(here: Standing) -> str:
    """What of the cluster may have to do with a violation."""
    cluster = here.cluster
    asked = [n for gang in cluster.gangs for pod in gang.waiting for n in pod.request.values()]
    used = [n for pod in cluster.there for n in pod.request.values()]
    is_large = max([*asked, *used], default=0) * (len(asked) + len(used)) >= LARGE
    return "+rules" * cluster.has_rules + "+large" * is_large


def _judge_best(here: Standing, verdict: Verdict) -> None:
    if not here.answer.proved:
        return
    try:
        found = order.better(here)
        if found is None:
            return
        strict = order.better(replace(here, is_trimmed=True))
        if strict is None:
            kind = "maxmember"
        else:
            found = strict
            kind = "level" if found.is_first else "border"
    except (UndecidedError, HeldError) as problem:
        verdict.skipped.append(f"best: {type(problem).__name__}")
        return
    where = ", ".join(f"{pod.name} on {node}" for pod, node in found.placed)
    verdict.add(f"not-best/{kind}{_needs(here)}", f"{found.coordinate}: {found.says} ({where})")


def _judge_beside(here: Standing, verdict: Verdict) -> None:
    placed = here.answer.everybody
    free = here.searcher.less(here.searcher.rooms(), placed)
    for gang in here.cluster.gangs:
        reason = here.answer.reasons.get(key(gang.name, gang.kind), "")
        if not (here.answer.proved or reason in NO_ROOM):
            continue
        try:
            kind = left_out(here, gang, free, placed)
        except (UndecidedError, HeldError) as problem:
            verdict.skipped.append(f"beside: {type(problem).__name__}")
            continue
        if kind is not None:
            verdict.add(f"left-out-{kind}{_needs(here)}", f"{gang.name} fits beside the plan")


def room_for(here: Standing, gang: Gang, free: Sequence[Sequence[int]]) -> Rooms:
    """What a gang may take of the room that is left."""
    first = order.holding(here)
    if first is None or gang is first or gang.priority > first.priority:
        return tuple(map(tuple, free))
    kept = order.hold_room(here, first)
    return tuple(
        tuple(n - h for n, h in zip(room, own, strict=True))
        for room, own in zip(free, kept, strict=True)
    )


def left_out(
    here: Standing, gang: Gang, free: Sequence[Sequence[int]], placed: Sequence[Located]
) -> str | None:
    """What of a gang would fit beside the plan, in a word."""
    searcher, own = here.searcher, {id(pod) for pod, _ in here.answer.of(gang)}
    if not gang.is_started and not own:
        if not values.could_start(gang):
            return None
        rooms = room_for(here, gang, free)
        if searcher.place(rooms, [searcher.whole(gang, gang.oldest)], placed):
            return "gang"
        is_free = searcher.place(rooms, [searcher.whole(gang, gang.waiting)], placed)
        return "gang/maxmember" if is_free else None
    counts: dict[str, int] = {}
    for pod, _ in here.answer.of(gang):
        counts[pod.role] = counts.get(pod.role, 0) + 1
    for pod in gang.waiting:
        places = gang.places(pod.role)
        if id(pod) in own or (places is not None and counts.get(pod.role, 0) >= places):
            continue
        is_repair = gang.is_started and _repairs(gang, pod.role, counts)
        rooms = tuple(map(tuple, free)) if is_repair else room_for(here, gang, free)
        if searcher.place(rooms, [searcher.exactly([pod])], placed):
            word = "repair" if is_repair else "extra"
            return word if pod in gang.oldest else f"{word}/maxmember"
    return None


def _repairs(gang: Gang, role: str, counts: Mapping[str, int]) -> bool:
    """Whether one more of the role would replace a lost member."""
    lacks = gang.missing_by_role
    if counts.get(role, 0) < lacks.get(role, 0):
        return True
    spare = gang.missing - sum(lacks.values())
    return spare - sum(max(n - lacks.get(name, 0), 0) for name, n in counts.items()) > 0


def _judge_values(here: Standing, verdict: Verdict) -> None:
    """Whether the admitted values that are reported are in the ratio of the exact ones."""
    exact: dict[int, Fraction] = {}
    for gang in here.cluster.gangs:
        if here.answer.starts(gang):
            worth = values.value(here.cluster, gang)
            exact[gang.priority] = exact.get(gang.priority, Fraction(0)) + worth
    # What is reported are whole numbers: one more or less says nothing.
    shown = [(here.answer.levels.get(p, 0), n) for p, n in exact.items() if n]
    least = max(((n - 1) / worth for n, worth in shown), default=Fraction(0))
    most = min(((n + 1) / worth for n, worth in shown), default=Fraction(0))
    if least > most * (1 + RATIO):
        says = ", ".join(f"{n} for {float(worth):.9g}" for n, worth in shown)
        verdict.add("value", f"reported and exact values are out of proportion: {says}")


def judged_explanation(cluster: Cluster, raw: Mapping[str, Any], told: Any) -> list[Violation]:
    """Judge what ``tutti explain -o json`` says of gangs that wait."""
    here = standing(cluster, raw)
    placed = here.answer.everybody
    free = here.searcher.less(here.searcher.rooms(), placed)
    gangs = {gang.name: gang for gang in here.waiting if not here.answer.starts(gang)}
    found: list[Violation] = []
    for one in told["gangs"]:
        gang, advice = gangs.get(one["standing"]["gang"]), one["advice"]
        diagnosis = advice and advice["diagnosis"]
        if gang is None or not diagnosis or one["standing"]["state"] != "waits":
            continue
        try:
            found += _about(here, gang, diagnosis, (free, placed))
        except (UndecidedError, HeldError):
            continue
    return found


def _about(
    here: Standing,
    gang: Gang,
    diagnosis: Mapping[str, Any],
    left: tuple[Sequence[Sequence[int]], Sequence[Located]],
) -> list[Violation]:
    free, placed = left
    most = order.most_members(here, gang, room_for(here, gang, free), placed)
    members, certainty = (diagnosis["beside"][k] for k in ("members", "certainty"))
    found = []
    if members != most:
        # docs/explain.md does not say whether room that is held for another gang is room.
        most = order.most_members(here, gang, tuple(map(tuple, free)), placed)
    elif here.answer.proved and members >= gang.need:
        says = f"{gang.name} waits, and has room for {members} of {gang.need} ({certainty})"
        found.append(Violation("explain/contradicts", says))
    if members > most or (certainty == "proved" and members != most):
        says = f"{gang.name}: room for {members} ({certainty}), not {most}"
        found.append(Violation("explain/room", says))
    least = diagnosis.get("minMember")
    if least and least["certainty"] == "proved" and (least["minMember"] or most) < most:
        says = f"{gang.name}: minMember {least['minMember']} (proved), {most} would do"
        found.append(Violation("explain/minMember", says))
    if _would_start_with_fewer_nodes(here, gang, diagnosis):
        says = f"{gang.name}: {diagnosis['nodes']['count']} more nodes (proved), fewer would do"
        found.append(Violation("explain/nodes", says))
    return [Violation(kind + _needs(here), says) for kind, says in found]


def _would_start_with_fewer_nodes(here: Standing, gang: Gang, diagnosis: Mapping[str, Any]) -> bool:
    """Whether a gang that alone waits has a place with one node less than is said to be needed."""
    told, cluster = diagnosis.get("nodes"), here.cluster
    is_alone = all(other is gang or here.answer.starts(other) for other in here.waiting)
    if not (told and told["count"] and told["certainty"] == "proved" and is_alone):
        return False
    if cluster.has_rules or here.firsts or any(one.is_started for one in cluster.gangs):
        return False
    if any(_waits_before(here, one, gang) for one in cluster.gangs):
        return False
    like = next(node for node in cluster.nodes if node.name == told["like"])
    taints = [taint for taint in like.taints if taint["key"] not in NOT_OF_NEW_NODES]
    more = [
        replace(like, name=f"new {i}", taints=taints, labels={**like.labels, HOSTNAME: f"new {i}"})
        for i in range(told["count"] - 1)
    ]
    searcher = Searcher(replace(cluster, nodes=(*cluster.nodes, *more)))
    free = searcher.less(searcher.rooms(), here.answer.everybody)
    whole = searcher.whole(gang, gang.waiting)
    return searcher.place(tuple(map(tuple, free)), [whole]) is not None


def _waits_before(here: Standing, gang: Gang, other: Gang) -> bool:
    """Whether further members of a gang wait, and get nodes before another gang."""
    return gang.priority > other.priority and len(here.answer.of(gang)) < len(gang.oldest)
