"""What happened in a plan: which kinds of gangs started, and what kept others waiting."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from . import model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .lawful import Answer
    from .model import Grown
    from .world import Gang, Pod, World

    Change = Callable[[World], World]


def started(world: World, answer: Answer) -> Counter[str]:
    """The gangs that start, by what they get."""
    seen = Counter[str]()
    for name in answer.placed:
        seen.update({"started": 1, **dict.fromkeys(_kinds(world, answer, name), 1)})
    return seen


def _kinds(world: World, answer: Answer, name: str) -> Iterator[str]:
    gang, nodes = world.gang(name), answer.placed[name]
    if len(nodes) > gang.need:
        yield "with more members than needed"
    for pod in (gang.pods[i] for i in nodes):
        for claim in pod.devices:
            yield from _kinds_of_claim(world, answer, claim)
        for claim in pod.volumes:
            if world.volume_claims[claim].volume:
                yield "with a volume of its own"
            else:
                yield "with a volume chosen" if answer.volumes[claim] else "with a volume made"
            if claim in world.shared_volumes:
                yield "with a volume that pods share"
            if world.volume_claims[claim].is_for_one:
                yield "with a claim for one pod"
        if pod.volumes and pod.devices:
            yield "with devices and volumes"
        if len(pod.devices) > 1:
            yield "with two claims for devices"


def _kinds_of_claim(world: World, answer: Answer, name: str) -> Iterator[str]:
    known, claim = world.devices_by_name, world.claims[name]
    if claim.own or claim.is_admin:
        yield "with admin access" if claim.is_admin else "with a device of its own"
        return
    yield "with devices"
    if len(world.sharers(name)) > 1:
        yield "with a shared claim"
    if claim.ties:
        yield "with constraints"
    if any(request.count is None for request in claim.requests):
        yield "with all devices"
    if any(len(request.options) > 1 for request in claim.requests):
        yield "with firstAvailable"
    if any(known[one.device].consumes for one in answer.devices[name]):
        yield "with counters"


def waiting(world: World, answer: Answer, grown: Grown) -> Counter[str]:
    """The gangs that wait, by what they would need less of to start beside those that start."""
    seen = Counter[str]()
    for gang in world.gangs:
        if gang.name in answer.placed:
            continue
        seen["waiting"] += 1
        if answer.reasons[gang.name] == NOT_MODELLED:
            seen["not modelled"] += 1
            continue
        for why, change in CHANGES.items():
            changed = change(world)
            if changed != world and _fits(changed, answer, grown, gang):
                seen[why] += 1
    return seen


def _fits(world: World, answer: Answer, grown: Grown, gang: Gang) -> bool:
    return model.is_possible(world, grown, [*answer.placed, gang.name])


def without_counters(world: World) -> World:
    """The cluster whose devices consume nothing."""
    return replace(world, devices=tuple(replace(of, consumes=()) for of in world.devices))


def without_ties(world: World) -> World:
    """The cluster whose claims have no constraints."""
    return replace(world, claims={k: replace(of, ties=()) for k, of in world.claims.items()})


def without_holders(world: World) -> World:
    """The cluster in which others have no devices."""
    own = {of.own for of in world.claims.values()}
    devices = tuple(replace(of, is_held=of.name in own) for of in world.devices)
    return replace(world, devices=devices)


def without_limits(world: World) -> World:
    """The cluster whose nodes take any number of volumes."""
    return replace(world, nodes=tuple(replace(node, limits={}) for node in world.nodes))


def without_claims_for_one(world: World) -> World:
    """The cluster in which each pod that names a claim for one pod has a claim like it."""
    claims = {name: replace(of, is_for_one=False) for name, of in world.volume_claims.items()}
    return replace(world, volume_claims=claims)


def with_volumes_twice(world: World) -> World:
    """The cluster with each volume twice."""
    more = (replace(of, name=f"{of.name} again") for of in world.volumes if not of.is_taken)
    return replace(world, volumes=(*world.volumes, *more))


def with_devices_twice(world: World) -> World:
    """The cluster with each device twice, which consumes as much."""
    more = (replace(of, name=f"{of.name} again") for of in world.devices if not of.is_held)
    return replace(world, devices=(*world.devices, *more))


def _without(**changes: tuple[()]) -> Change:
    def pod(one: Pod) -> Pod:
        return replace(one, **changes)  # type: ignore[arg-type]

    def changed(world: World) -> World:
        gangs = (replace(gang, pods=tuple(map(pod, gang.pods))) for gang in world.gangs)
        return replace(world, gangs=tuple(gangs))

    return changed


NOT_MODELLED = "NotModelled"
CHANGES: Mapping[str, Change] = {
    "waiting because of devices": _without(devices=()),
    "waiting because of counters": without_counters,
    "waiting because of constraints": without_ties,
    "waiting because of volumes": _without(volumes=()),
    "waiting because of a limit of volumes": without_limits,
    "waiting because of a claim for one pod": without_claims_for_one,
    "waiting because of devices of others": without_holders,
}
KINDS = (
    "started",
    "with devices",
    "with counters",
    "with constraints",
    "with all devices",
    "with firstAvailable",
    "with a shared claim",
    "with a device of its own",
    "with admin access",
    "with two claims for devices",
    "with a volume chosen",
    "with a volume made",
    "with a volume of its own",
    "with a claim for one pod",
    "with a volume that pods share",
    "with devices and volumes",
    "with more members than needed",
    "waiting",
    *CHANGES,
)
