"""kube-scheduler as it chooses: it binds each pod to a node that its scores like best.

Only the plugins that speak of wishes score, each with the weight that it has by default; of nodes
with equal scores it takes one by chance.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ..collisions import kubescheduler
from .oracle import AGES, Answer, Oracle
from .scenes import SCHEDULER

if TYPE_CHECKING:
    from collections.abc import Mapping

# Those of kube-scheduler's default plugins that score by something else.
OTHERS = (
    "NodeResourcesFit",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "VolumeBinding",
    "DynamicResources",
)


class Chooser(Oracle):
    """One kube-scheduler that binds; its answer is one node."""

    async def start(self) -> None:
        """Run the scheduler, watch the pods that wait."""
        disabled = [{"name": name} for name in OTHERS]
        plugins = {"postFilter": {"disabled": [{"name": "*"}]}, "score": {"disabled": disabled}}
        settings: dict[str, Any] = {
            "profiles": [{"schedulerName": SCHEDULER, "plugins": plugins}],
            "percentageOfNodesToScore": 100,
            "podInitialBackoffSeconds": AGES,
            "podMaxBackoffSeconds": AGES,
        }
        await asyncio.to_thread(kubescheduler.start, self._plane, SCHEDULER, **settings)
        self._watching = asyncio.create_task(self._watch())

    def _hear(self, event: Mapping[str, Any]) -> None:
        pod = event["object"]
        if event["type"] == "MODIFIED" and (node := pod["spec"].get("nodeName")):
            self._note(pod["metadata"]["uid"], Answer(frozenset({node})))
        super()._hear(event)
