"""Where Tutti says that a pod may run, from the same objects that the oracle saw."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tutti.dump.decode import read
from tutti.dump.documents import Text
from tutti.dump.load import snapshot_of
from tutti.model.volumes import ClaimKey
from tutti.planning.plan import plan
from tutti.strategies import load
from tutti.strategies.best_fit import BestFit

from ...harness.builders import AMPLE_BUDGET
from . import feasible
from .scenes import SCHEDULER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tutti.dump.decode import Objects
    from tutti.model.cluster import Member, Snapshot
    from tutti.model.decisions import Assignment
    from tutti.model.volumes import VolumeChoice


@dataclass(frozen=True, slots=True)
class Ours:
    """Where a pod may run, unless Tutti says that it does not know a rule, or it is gated."""

    nodes: frozenset[str]
    unmodelled: tuple[str, ...] = ()
    gated: bool = False
    broken: str = ""  # what was raised, which nothing may
    is_bound: bool = False  # it may run on more nodes: it counts volumes that others share


class Reading:
    """A cluster as Tutti reads it; what is asked about comes later."""

    def __init__(self, objects: Iterable[Mapping[str, Any]]) -> None:
        self._found = _read(objects)

    def answer(self, pod: Mapping[str, Any]) -> Ours:
        """Where a pod may run if it alone waits."""
        try:
            return self._answer(pod)
        except Exception as problem:  # noqa: BLE001 - whatever it is, it is a finding
            return Ours(frozenset(), broken=f"{type(problem).__name__}: {problem}")

    def picture(self, pod: Mapping[str, Any]) -> tuple[Snapshot, Member]:
        """The Snapshot in which it alone waits, and the pod as a member."""
        objects = _read([{"apiVersion": "v1", "kind": "Pod", **pod}])
        (member,) = objects.members
        known = replace(self._found, members=(*self._found.members, member))
        snapshot = snapshot_of(known)
        (member,) = (
            each for gang in snapshot.gangs for each in gang.members if each.uid == member.uid
        )
        return snapshot, member

    def _answer(self, pod: Mapping[str, Any]) -> Ours:
        snapshot, member = self.picture(pod)
        if member.volume_problems or member.device_problems:
            return Ours(frozenset(), gated=member.gated)
        if member.unsupported_fields:
            return Ours(frozenset(), member.unsupported_fields)
        if not member.is_waiting:
            return Ours(frozenset(), gated=member.gated)
        nodes = frozenset(map(str, feasible.nodes(snapshot, member)))
        return Ours(nodes, is_bound=member.shape.shares_volumes)


def placed(objects: Iterable[Mapping[str, Any]]) -> Mapping[str, str]:
    """The plan for all who wait: the node of each pod's name."""
    return {name: str(assigned.node) for name, assigned in assignments(objects)[1].items()}


def assignments(
    objects: Iterable[Mapping[str, Any]],
) -> tuple[Snapshot, Mapping[str, Assignment]]:
    """The Snapshot of all who wait, and its plan by the name of each pod."""
    snapshot = snapshot_of(_read(objects))
    made = plan(snapshot, load("ilp"), BestFit(), AMPLE_BUDGET)
    return snapshot, {
        assignment.pod.name: assignment
        for placement in made.placements
        for assignment in placement.assignments
    }


def choices(
    objects: Iterable[Mapping[str, Any]],
) -> tuple[Mapping[str, Assignment], Mapping[ClaimKey, VolumeChoice]]:
    """The plan for all who wait by the name of each pod, and its choices of volumes by claim."""
    made = plan(snapshot_of(_read(objects)), load("ilp"), BestFit(), AMPLE_BUDGET)
    assigned = {
        assignment.pod.name: assignment
        for placement in made.placements
        for assignment in placement.assignments
    }
    return assigned, {
        ClaimKey(placement.assignments[0].pod.namespace, choice.claim): choice
        for placement in made.placements
        for choice in placement.volumes
    }


def _read(objects: Iterable[Mapping[str, Any]]) -> Objects:
    content = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    return read([Text("cluster", content.encode())], SCHEDULER)
