"""One plan judged: is it lawful, is each level worth what CP-SAT finds, and who waits for what?"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from . import counting, lawful, model
from .world import GANGS, MEMBERS, priorities

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .counting import Change
    from .lawful import Answer
    from .model import Grown, Worth
    from .world import World

SHOWN = 40_000_000  # a gang that requests the whole cluster, in a plan, if age counts for nothing
WAITS = ("NotEnoughRoom", "NoNodeFits", "BudgetExhausted")


class Judgement(NamedTuple):
    """What is wrong, and what happened."""

    wrong: tuple[str, ...]
    seen: Counter[str]


def judge(world: World, answer: Answer, believed: Change = lambda world: world) -> Judgement:
    """Hold an answer against the pages; CP-SAT sees the cluster that is ``believed``.

    Raises:
        NoAnswerError: CP-SAT gave up.
    """
    if wrong := (*lawful.faults(world, answer),):
        return Judgement(wrong, Counter())
    modelled = _modelled(world, answer)
    grown = _grown(world, answer)
    top = model.best(believed(modelled), grown)
    wrong = (
        *_off(world, answer, top),
        *_wrong_levels(world, answer, top),
        *_wrong_reasons(modelled, answer),
    )
    seen = counting.started(world, answer)
    seen += counting.waiting(modelled, answer, grown)
    seen["contended"] += top != model.worth(world, [gang.name for gang in world.gangs])
    return Judgement(wrong, seen)


def _modelled(world: World, answer: Answer) -> World:
    """The cluster in which pods that are not modelled wait in any case."""
    gangs = tuple(
        replace(
            gang,
            pods=tuple(
                replace(pod, is_blocked=pod.is_blocked or (gang.name, i) in answer.unmodelled)
                for i, pod in enumerate(gang.pods)
            ),
        )
        for gang in world.gangs
    )
    return replace(world, gangs=gangs)


def _grown(world: World, answer: Answer) -> Grown:
    """The gangs with members beyond those needed: they start with just these, on any nodes."""
    return {
        name: frozenset(nodes)
        for name, nodes in answer.placed.items()
        if len(nodes) > world.gang(name).need
    }


def _off(world: World, answer: Answer, top: Worth) -> Iterator[str]:
    """Where a plan that is proved is not the best, or one is better than the best."""
    mine = model.worth(world, [*answer.placed])
    if mine > top or (answer.is_proved and mine != top):
        yield f"starts {_text(mine)}, and the best is {_text(top)}; proved: {answer.is_proved}"


def _wrong_levels(world: World, answer: Answer, top: Worth) -> Iterator[str]:
    """Where a plan counts what it starts otherwise, or a bound is below the best."""
    scale = 1 if world.objective in (GANGS, MEMBERS) else SHOWN
    mine = dict(zip(priorities(world.gangs), model.worth(world, [*answer.placed]), strict=True))
    best = dict(zip(priorities(world.gangs), top, strict=True))
    tolerance = 0 if scale == 1 else 1
    told = {level.priority for level in answer.levels}
    for priority, admitted, bound in answer.levels:
        if abs(admitted - scale * mine[priority]) > tolerance:
            yield f"priority {priority} says {admitted} of {float(scale * mine[priority])}"
        if bound is not None and bound < scale * best[priority] - tolerance:
            yield f"priority {priority}: the bound {bound} is below {float(scale * best[priority])}"
        if answer.is_proved and bound is not None and abs(bound - admitted) > tolerance:
            yield f"priority {priority} is proved, and its bound {bound} is not {admitted}"
    for priority in mine.keys() - told:
        if mine[priority]:
            yield f"priority {priority} is not among the levels"


def _wrong_reasons(world: World, answer: Answer) -> Iterator[str]:
    """Gangs that wait without a reason, or for a reason that is none."""
    places = {(name, i): node for name, of in answer.placed.items() for i, node in of.items()}
    for gang in world.gangs:
        if gang.name in answer.placed:
            continue
        reason = answer.reasons.get(gang.name, "")
        ready = [pod for pod in gang.pods if not pod.is_blocked]
        if reason == "WaitingForVolumes":
            users = [g.pods[i] for g in world.gangs for i in answer.placed.get(g.name, ())]
            taken = {name for pod in users for name in world.claims_for_one(pod)}
            ready = [pod for pod in ready if not world.claims_for_one(pod) & taken]
        together = world.most_together(ready)
        is_enough = together >= gang.need and all(
            world.most_together([pod for pod in ready if pod.role == role]) >= least
            for role, least in gang.least.items()
        )
        if reason not in WAITS:
            if not reason or is_enough:
                yield f"{gang.name} waits with reason {reason!r}, and has {together} pods ready"
            if reason == counting.NOT_MODELLED and not _is_hard(world):
                yield f"{gang.name} is not modelled"
            continue
        starts = [*answer.placed, gang.name]
        exactly = {name: frozenset(nodes) for name, nodes in answer.placed.items()}
        is_open = reason == "BudgetExhausted" and bool(world.shared_volumes)
        if not is_open and model.is_possible(world, exactly, starts, places):
            yield f"{gang.name} waits with reason {reason}, and fits beside the plan"
        if reason == "NoNodeFits" and model.is_possible(_empty(world), {}, [gang.name]):
            yield f"{gang.name} waits with reason {reason}, and has room on empty nodes"
        if reason == "BudgetExhausted" and answer.is_proved:
            yield f"{gang.name} waits with reason {reason}, and the plan is proved"


def _is_hard(world: World) -> bool:
    """Whether some device consumes counters, or a claim has constraints."""
    has_counters = any(device.consumes for device in world.devices)
    return has_counters or any(claim.ties for claim in world.claims.values())


def _empty(world: World) -> World:
    """The cluster in which others have nothing but volumes, which they keep."""
    nodes = tuple(replace(node, used=0, attached={}) for node in world.nodes)
    return counting.without_holders(replace(world, nodes=nodes))


def _text(values: Worth) -> str:
    return ", ".join(map(str, values))
