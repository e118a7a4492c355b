"""Rows for volumes: a Boolean for each claim, volume and node; limits, and claims for one pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .device_rows import Place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ortools.sat.python import cp_model

    from .device_rows import Uses
    from .world import VolumeClaim, World


def add(
    model: cp_model.CpModel, world: World, on: Mapping[tuple[str, int, int], cp_model.IntVar]
) -> None:
    """Each claim of a pod that starts gets a volume that its node reaches, and no two the same."""
    given: Uses = {volume.name: [] for volume in world.volumes}
    for number, node in enumerate(world.nodes):
        attaching: Uses = {driver: [] for driver in node.limits}
        of_all = {name: model.new_bool_var("") for name in sorted(world.shared_volumes)}
        for name, is_there in of_all.items():
            attaching.get(world.driver(world.volume_claims[name]), []).append(is_there)
        for gang in world.gangs:
            for i, pod in enumerate(gang.pods):
                place = Place(model, world, number, on[gang.name, i, number])
                for name in pod.volumes:
                    driver = world.driver(world.volume_claims[name])
                    if name in of_all:
                        model.add(place.is_here <= of_all[name])
                    else:
                        attaching.get(driver, []).append(place.is_here)
                    _add_claim(place, world.volume_claims[name], given)
        for driver, pods in attaching.items():
            left = node.limits[driver] - node.attached.get(driver, 0)
            model.add(sum(pods) <= max(left, 0))
    for some in given.values():
        model.add(sum(some) <= 1)
    for name in (name for name, claim in world.volume_claims.items() if claim.is_for_one):
        users = [
            is_here
            for (gang, i, _), is_here in on.items()
            if name in world.gang(gang).pods[i].volumes
        ]
        model.add(sum(users) <= 1)


def _add_claim(place: Place, claim: VolumeClaim, given: Uses) -> None:
    """A claim gets one volume on a node, if its pod is there."""
    model, world, number, is_here = place
    if claim.volume:
        if not world.by_name[claim.volume].is_reached(number, world.nodes[number]):
            model.add(is_here == 0)
        return
    ways = []
    for volume in world.volumes:
        if world.will_do(claim, volume, number):
            ways.append(model.new_bool_var(""))
            given[volume.name].append(ways[-1])
    if world.can_make(claim, number):
        ways.append(model.new_bool_var(""))
    model.add(sum(ways) == is_here)
