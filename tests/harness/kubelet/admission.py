"""Whether a pod is let in, by what its node has admitted already, in the kubelet's own words.

Pods are asked about in the order of their bindings; what was admitted counts until it has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..judge.quantities import NANO, Amounts, amounts, effective_requests

if TYPE_CHECKING:
    from collections.abc import Mapping

MILLI = NANO // 1000
FIRST = ("pods", "cpu", "memory", "ephemeral-storage")  # the order in which a kubelet looks


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a pod was not let in: ``status.reason`` and ``status.message``."""

    reason: str
    message: str


UNEXPECTED = Rejection(
    "UnexpectedAdmissionError",
    "Pod was rejected: Allocate failed due to requested number of devices unavailable for "
    "example.com/device. Requested: 1, Available: 0, which is unexpected",
)


@dataclass(slots=True)
class Ledger:
    """One node: what it has, and what each admitted pod asked for."""

    allocatable: Amounts
    admitted: dict[str, Amounts] = field(default_factory=dict)

    @classmethod
    def of(cls, node: Mapping[str, Any]) -> Ledger:
        """An empty one for a Node object."""
        return cls(amounts(node["status"]["allocatable"]))

    def admit(self, uid: str, spec: Mapping[str, Any]) -> Rejection | None:
        """Let a pod in, or say why not."""
        amounts = effective_requests(dict(spec))
        for resource in sorted(amounts, key=_rank):
            used = sum(each.get(resource, 0) for each in self.admitted.values())
            room = self.allocatable.get(resource, 0)
            if amounts[resource] and used + amounts[resource] > room:
                return _rejection(resource, amounts[resource], used, room)
        self.admitted[uid] = amounts
        return None

    def take(self, uid: str, spec: Mapping[str, Any]) -> None:
        """Count a pod that runs already."""
        self.admitted[uid] = effective_requests(dict(spec))

    def leave(self, uid: str) -> None:
        """A pod has ended, or was never let in."""
        self.admitted.pop(uid, None)


def _rank(resource: str) -> tuple[int, str]:
    return (FIRST.index(resource) if resource in FIRST else len(FIRST), resource)


def _rejection(resource: str, asked: int, used: int, room: int) -> Rejection:
    unit = MILLI if resource == "cpu" else NANO
    if "/" in resource:  # devices are handed out before the sums are looked at
        return Rejection(
            "UnexpectedAdmissionError",
            "Pod was rejected: Allocate failed due to requested number of devices unavailable for "
            f"{resource}. Requested: {asked // unit}, Available: {max(0, room - used) // unit}, "
            "which is unexpected",
        )
    return Rejection(
        f"OutOf{resource}",
        f"Pod was rejected: Node didn't have enough resource: {resource}, requested: "
        f"{asked // unit}, used: {used // unit}, capacity: {room // unit}",
    )
