"""Gangs of low priority that fill the nodes: a round's gang starts only if some of them end."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from ...harness.rig import pod, pod_group
from ..faults.preempting import ENVIRONMENT, URGENT, VALUE
from ..faults.scenario import priority_class
from .scene import NODES, SIZE, Scene, delete_pods

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from ...harness.judge import Verdict
    from ...harness.rig import Rig

LOW_SIZE = 2  # so that each round's gang needs the end of more than one
LOW = tuple(f"low-{i}" for i in range(len(NODES) * SIZE // LOW_SIZE))


class Preempting(Scene):
    """Two low gangs end for the gang of each round, and start again before the next round."""

    values = (VALUE,)
    environment = ENVIRONMENT

    def __init__(self) -> None:
        self._numbers = itertools.count()  # no pod has the name of one that ended

    def about(self) -> Mapping[str, Any]:
        """Members of a higher priority."""
        return {"cpu": 1, "spec": {"priorityClassName": URGENT}}

    def open(self, rig: Rig) -> AbstractContextManager[object]:
        """Create the PriorityClass, and the PodGroups of the low gangs, too."""
        rig.create(priority_class(), *(pod_group(name, LOW_SIZE) for name in LOW))
        return super().open(rig)

    def help_on(self, rig: Rig, name: str) -> None:
        """End low gangs if only some members were bound before their nodes were closed.

        The others are then placed as replacements, which claim nothing.
        """

        def is_started() -> bool:
            return rig.bound(name) == SIZE

        def is_stuck() -> bool:
            waits = rig.condition(name, "Reserved").get("reason") == "NotEnoughRoom"
            return waits and rig.bound(name) > 0

        rig.until(lambda: is_started() or is_stuck(), f"{name} has started, or lacks room")
        missing = SIZE - rig.bound(name)
        movable = [low for low in LOW if missing and _is_on_open_nodes(rig, low)]
        for low in movable[: math.ceil(missing / LOW_SIZE)]:
            delete_pods(rig, low)

    def restore(self, rig: Rig) -> None:
        """Create the pods of the low gangs that have ended, and wait until all have nodes."""
        rig.until(lambda: not _terminating(rig), "what was evicted has gone")
        for name in LOW:
            staying = len(rig.pods(name))
            assert staying in (0, LOW_SIZE), f"{name} has {staying} of {LOW_SIZE} pods left"
            if not staying:
                rig.create(*(self._pod(name) for _ in range(LOW_SIZE)))
        for name in LOW:
            rig.until_bound(name, LOW_SIZE)
        rig.until(lambda: not rig.reservations(), "the low gangs have started")

    def _pod(self, group: str) -> dict[str, Any]:
        """A pod that terminates for a while when it is evicted: kwok ends it."""
        spec = {"terminationGracePeriodSeconds": 30}
        return pod(f"{group}-{next(self._numbers)}", group, spec=spec, cpu=1)

    def has_been_seen(self, verdict: Verdict) -> bool:
        """Whether the judge has seen evictions for claims."""
        return bool(verdict.ends)


def _is_on_open_nodes(rig: Rig, group: str) -> bool:
    nodes = {item["spec"]["nodeName"] for item in rig.pods(group)}
    return bool(nodes) and not any(rig.node(name)["spec"].get("unschedulable") for name in nodes)


def _terminating(rig: Rig) -> list[str]:
    return [
        item["metadata"]["name"] for item in rig.pods() if "deletionTimestamp" in item["metadata"]
    ]
