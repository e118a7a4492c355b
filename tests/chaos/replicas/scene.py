"""What the cluster of a trial holds, and what the members of each round's gang request."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from ...harness.judge import Verdict
    from ...harness.rig import Rig

SIZE = 4  # members of one core in each round's gang, and cores of each node
NODES = tuple(f"node-{i:03}" for i in range(3))


def delete_pods(rig: Rig, group: str) -> None:
    """Delete all pods of a group, without any grace."""
    selector = f"labelSelector=tutti.dev%2Fpod-group%3D{group}"
    path = f"/api/v1/namespaces/ml/pods?{selector}&gracePeriodSeconds=0"
    rig.plane.request("DELETE", path)


class Scene:
    """Plain gangs on free nodes."""

    components: Sequence[str] = ()  # of the control plane
    values: Sequence[str] = ()  # of the chart
    environment: Mapping[str, str] = {}  # settings of both replicas

    def about(self) -> Mapping[str, Any]:
        """What each member of a round's gang requests."""
        return {"cpu": 1}

    def open(self, rig: Rig) -> AbstractContextManager[object]:
        """Create the nodes, and all else that it needs, which ends with the context."""
        rig.nodes(len(NODES), cpu=SIZE, memory="64Gi")
        return nullcontext()

    def help_on(self, rig: Rig, name: str) -> None:
        """Do what others must do for a round's gang to start under the other replica."""

    def restore(self, rig: Rig) -> None:
        """Wait until a round can begin; no gang of an earlier round exists."""

    def faults(self, rig: Rig) -> Sequence[str]:  # noqa: ARG002 - for scenes that look at the rig
        """What is wrong at the end of a round, whose gang is whole."""
        return ()

    def has_been_seen(self, verdict: Verdict) -> bool:
        """Whether the judge has seen what only this scene shows."""
        return bool(verdict.bindings)
