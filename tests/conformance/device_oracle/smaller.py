"""A smaller cluster with the same fault: what a person wants to look at."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .world import World


def smallest(world: World, is_wrong: Callable[[World], bool]) -> World:
    """Leave out gangs, pods, devices and volumes one by one, as long as it stays wrong."""
    while (found := next(filter(is_wrong, _smaller(world)), None)) is not None:
        world = found
    return world


def _smaller(world: World) -> Iterator[World]:
    for i in range(len(world.gangs)):
        yield _used(replace(world, gangs=world.gangs[:i] + world.gangs[i + 1 :]))
    for i, gang in enumerate(world.gangs):
        if len(gang.pods) > 1 and gang.need == len(gang.pods) and not gang.least:
            less = replace(gang, need=gang.need - 1, pods=gang.pods[:-1])
            yield _used(replace(world, gangs=(*world.gangs[:i], less, *world.gangs[i + 1 :])))
    needed = {claim.volume for claim in world.volume_claims.values()}
    needed |= {claim.own for claim in world.claims.values()}
    for i, device in enumerate(world.devices):
        if device.name not in needed:
            yield replace(world, devices=world.devices[:i] + world.devices[i + 1 :])
    for i, volume in enumerate(world.volumes):
        if volume.name not in needed:
            yield replace(world, volumes=world.volumes[:i] + world.volumes[i + 1 :])
    for name, claim in world.claims.items():
        if claim.ties:
            yield replace(world, claims={**world.claims, name: replace(claim, ties=())})


def _used(world: World) -> World:
    """The cluster without claims that nobody names."""
    pods = [pod for gang in world.gangs for pod in gang.pods]
    devices = {name for pod in pods for name in pod.devices}
    volumes = {name for pod in pods for name in pod.volumes}
    return replace(
        world,
        claims={name: of for name, of in world.claims.items() if name in devices},
        volume_claims={name: of for name, of in world.volume_claims.items() if name in volumes},
    )
