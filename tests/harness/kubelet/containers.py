"""What runs in the pods of these kubelets: by default nothing, for as long as annotations say.

Separate from ``agent``, so that a test may run real processes in containers' place.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from ..controlplane.nodes import RUN_SECONDS, STOP_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

FAIL_SECONDS = "kubelet.tutti.dev/fail-seconds"  # the pod fails so long after its start


class Containers(Protocol):
    """The life of a pod's containers; called in the loop of the kubelets."""

    async def start(self, pod: Mapping[str, Any]) -> Mapping[str, Any]:
        """Start them; answers what the pod's status says of them, its address above all."""

    async def ended(self, pod: Mapping[str, Any]) -> int | None:
        """Their exit code once they have ended; None for what runs for ever."""

    async def stop(self, pod: Mapping[str, Any]) -> None:
        """End them, for the pod is being deleted."""


class Imagined:
    """Containers that end when the pod's annotations say so, and stop as slowly as they say."""

    async def start(self, pod: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002  # the protocol's
        """Nothing is started."""
        return {}

    async def ended(self, pod: Mapping[str, Any]) -> int | None:
        """Well or badly, or never."""
        notes = pod["metadata"].get("annotations") or {}
        for annotation, code in ((RUN_SECONDS, 0), (FAIL_SECONDS, 1)):
            if annotation in notes:
                await asyncio.sleep(float(notes[annotation]))
                return code
        return None

    async def stop(self, pod: Mapping[str, Any]) -> None:
        """It takes as long as is said."""
        notes = pod["metadata"].get("annotations") or {}
        await asyncio.sleep(float(notes.get(STOP_SECONDS, 0)))
