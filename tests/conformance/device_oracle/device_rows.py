"""Rows for devices: a Boolean for each request, option and device, and counters as sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ortools.sat.python import cp_model

    from .world import Device, DeviceClaim, Tie, World

    Uses = dict[str, list[cp_model.IntVar]]


class Place(NamedTuple):
    """A node, and whether the pods of a claim are there."""

    model: cp_model.CpModel
    world: World
    node: int
    is_here: cp_model.IntVar


class Given(NamedTuple):
    """Whether a device is given for an option of a request."""

    request: int
    option: int
    device: Device
    is_given: cp_model.IntVar


def add(
    model: cp_model.CpModel, world: World, on: Mapping[tuple[str, int, int], cp_model.IntVar]
) -> None:
    """Each claim of a pod that starts gets its devices, of the node of the pod."""
    uses: Uses = {device.name: [] for device in world.devices}
    for name, claim in world.claims.items():
        sharers = world.sharers(name)
        for node in range(len(world.nodes)) if sharers else ():
            pods = [on[gang, i, node] for gang, i in sharers]
            for other in () if claim.own else pods[1:]:
                model.add(other <= pods[0])  # the oldest requests the devices
            if not claim.own:
                _add_claim(Place(model, world, node, pods[0]), claim, uses)
            elif world.devices_by_name[claim.own].node != node:
                model.add(sum(pods) == 0)
    for used in uses.values():
        model.add(sum(used) <= 1)
    _add_counters(model, world, uses)


def _add_claim(place: Place, claim: DeviceClaim, uses: Uses) -> None:
    """What a claim gets on a node, each device once; and what it takes from others."""
    own: Uses = {}
    for given in _claim(place, claim):
        own.setdefault(given.device.name, []).append(given.is_given)
    for device, some in own.items():
        place.model.add(sum(some) <= 1)
        uses[device] += [] if claim.is_admin else some


def _add_counters(model: cp_model.CpModel, world: World, uses: Uses) -> None:
    for node in range(len(world.nodes)):
        consuming = [device for device in world.at(node) if device.consumes]
        for i, left in enumerate(world.left(node)):
            consumed = [
                device.consumes[i] * used for device in consuming for used in uses[device.name]
            ]
            if left >= 0:  # else no device that consumes counters can be had
                model.add(sum(consumed) <= left)


def _claim(place: Place, claim: DeviceClaim) -> Sequence[Given]:
    """What a claim gets on a node if its pods are there."""
    given: list[Given] = []
    for number in range(len(claim.requests)):
        given += _request(place, claim, number)
    for tie in claim.ties:
        _tie(place.model, tie, [one for one in given if tie.covers(one.request, one.option)])
    return given


def _request(place: Place, claim: DeviceClaim, number: int) -> Sequence[Given]:
    (model, world, node, is_here), request = place, claim.requests[number]
    given: list[Given] = []
    for option, wanted in enumerate(request.options):
        selected = [device for device in world.at(node) if wanted.selects(device)]
        had = [device for device in selected if world.can_get(claim, device)]
        if request.count is None and not (had and had == selected):
            model.add(is_here == 0)
        given += [Given(number, option, device, model.new_bool_var("")) for device in had]
    if request.count is None:
        for one in given:
            model.add(one.is_given == is_here)
    else:
        model.add(sum(one.is_given for one in given) == request.count * is_here)
    return given


def _tie(model: cp_model.CpModel, tie: Tie, covered: Sequence[Given]) -> None:
    """All that are given have one value, or each another; none lacks the attribute."""
    by_value: dict[int | str, list[cp_model.IntVar]] = {}
    for one in covered:
        value = one.device.values.get(tie.attribute)
        if value is None:
            model.add(one.is_given == 0)
        else:
            by_value.setdefault(value, []).append(one.is_given)
    if tie.is_distinct:
        for some in by_value.values():
            model.add(sum(some) <= 1)
        return
    is_chosen = {value: model.new_bool_var("") for value in by_value}
    model.add_at_most_one(is_chosen.values())
    for value, some in by_value.items():
        for is_given in some:
            model.add_implication(is_given, is_chosen[value])
