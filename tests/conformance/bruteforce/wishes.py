"""Which pods and nodes say more than room and node rules: wishes, and rules between pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .cluster import Raw

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def present(objects: Iterable[Raw]) -> bool:
    """Whether members may change nodes for the better."""
    return any(_wishes(item.get("spec") or {}) for item in objects)


def _wishes(spec: Raw) -> bool:
    affinity = spec.get("affinity") or {}
    return (
        any((affinity.get(kind) or {}).get(PREFERRED) for kind in affinity)
        # What a pod there requires of others draws newcomers, too.
        or has_rules(spec)
        or any(spread.get("whenUnsatisfiable") == "ScheduleAnyway" for spread in spreads(spec))
        or any(one.get("effect") == "PreferNoSchedule" for one in spec.get("taints") or [])
    )


def has_rules(spec: Raw) -> bool:
    """Whether the pod requires something of other pods."""
    return bool(terms(spec, "podAffinity") or terms(spec, "podAntiAffinity") or hard_spreads(spec))


def terms(spec: Raw, kind: str) -> list[Raw]:
    """The required terms about pods."""
    found = ((spec.get("affinity") or {}).get(kind) or {}).get(REQUIRED)
    return list(found or [])


def spreads(spec: Raw) -> list[Raw]:
    """All topology spread constraints."""
    return list(spec.get("topologySpreadConstraints") or [])


def hard_spreads(spec: Raw) -> list[Raw]:
    """Those that must hold."""
    return [
        spread
        for spread in spreads(spec)
        if spread.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"
    ]
