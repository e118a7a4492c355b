"""Why Tutti may give back room that it held for members that did not exist: P1's only other excuse.

They had their time, nobody is left who would make them, or one came that asks for more than its
role declared. Separate from P1 because it needs a clock, and amounts.
"""

from datetime import datetime

from .gangs import Gang
from .views import Pod, PodGroup, Reservation

ENDED = ("Succeeded", "Failed")


def why_given_back(before: Reservation, slots_left: int, gang: Gang, at: datetime | None) -> str:
    """Say why fewer slots are left than before; empty where they are not, or nothing excuses it."""
    group, pods = gang.group, gang.members.values()
    if group is None or slots_left >= sum(before.slots.values()):
        return ""
    if all(pod.phase in ENDED for pod in pods):
        return "all its members had ended"
    for pod in pods:
        if pod.phase in ENDED and pod.key.name == group.owner_pod:
            return f"{pod.key.name}, which makes its members, had ended"
        if pod.is_waiting and pod.uid not in before.named and _is_larger(pod, group):
            return f"{pod.key.name} asks for more than the template of role {pod.role}"
    if _waited(before, at) >= group.absent_seconds:
        return f"its absent members did not come within {group.absent_seconds} s"
    return ""


def _waited(reservation: Reservation, until: datetime | None) -> float:
    """For how many seconds they were awaited; 0 where nothing says when it ended."""
    if until is None or reservation.reserved_at is None:
        return 0
    return (until - reservation.reserved_at).total_seconds()


def _is_larger(pod: Pod, group: PodGroup) -> bool:
    declared = group.templates.get(pod.role)
    return declared is not None and any(n > declared.get(r, 0) for r, n in pod.requests.items())
