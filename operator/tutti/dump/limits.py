"""Limits of the CRDs in files: an object that the API server would refuse is refused here, too.

No API server has checked a file, and a few bytes can request billions of members. The limits in
``documents`` are about texts.
"""

from collections.abc import Iterator

from ..kube import wire
from ..kube.codec import decode
from ..kube.codec.metadata import named
from ..kube.errors import BadObject
from ..kube.gang_sources import GangObject
from ..kube.gang_sources.pod_group import PodGroup, decode_group
from ..model.cluster import Reservation

# The limits of the CRDs; a test checks that they are the same.
MOST_MEMBERS = 5_000
MOST_ROLES = 32
MOST_START_SECONDS = 31_536_000
MOST_ABSENT_SECONDS = 86_400
MOST_SLOTS = 5_000  # of a role on a node
MOST_SLOTS_IN_ALL = MOST_ROLES * MOST_MEMBERS  # of one Reservation: no gang declares more
MOST_DIGITS = 20  # of a number that is quoted


def group(pod_group: PodGroup, *, is_foreign: bool = False) -> GangObject:
    """Read a PodGroup; if it stands for an object of another kind, its minMember has no limit.

    Raises:
        BadObject: a number exceeds its limit in the CRD, or the object cannot be read.
    """
    spec, name = pod_group.spec, named(pod_group)
    if len(spec.roles) > MOST_ROLES:
        problem = f"spec.roles: there are {len(spec.roles)} roles, at most {MOST_ROLES} are allowed"
        raise BadObject(name, f"{problem}: let members of equal needs share a role")
    for field, n in _members(pod_group):
        if is_foreign and field == "spec.minMember":
            continue  # without roles, a large number takes no memory
        if n is not None and n > MOST_MEMBERS:
            raise BadObject(name, f"{_beyond(field, n, MOST_MEMBERS)}: lower it, or split the gang")
    for field, seconds, most in (
        ("scheduleTimeoutSeconds", spec.schedule_timeout_seconds, MOST_START_SECONDS),
        ("absentMemberTimeoutSeconds", spec.absent_member_timeout_seconds, MOST_ABSENT_SECONDS),
    ):
        if seconds is not None and seconds > most:
            raise BadObject(name, f"{_beyond(f'spec.{field}', seconds, most)}: lower it")
    return decode_group(pod_group)


def _members(pod_group: PodGroup) -> Iterator[tuple[str, int | None]]:
    yield "spec.minMember", pod_group.spec.min_member
    for i, role in enumerate(pod_group.spec.roles):
        yield f"spec.roles[{i}].minMember", role.min_member
        yield f"spec.roles[{i}].maxMember", role.max_member


def reservation(wire_object: wire.Reservation) -> Reservation:
    """Read a Reservation.

    Raises:
        BadObject: it has more slots than its CRD allows, or cannot be read.
    """
    name, total = named(wire_object), 0
    for i, node_entry in enumerate(wire_object.spec.placement):
        for role, n in node_entry.slots.items():
            field = f"spec.placement[{i}].slots.{role}"
            if n > MOST_SLOTS:
                raise BadObject(name, f"{_beyond(field, n, MOST_SLOTS)}: lower it")
            total += max(n, 0)
    if total > MOST_SLOTS_IN_ALL:
        problem = _beyond("spec.placement: its slots together", total, MOST_SLOTS_IN_ALL)
        raise BadObject(name, f"{problem}: no gang has so many members, lower them")
    return decode.decode_reservation(wire_object)


def _beyond(field: str, n: int, most: int) -> str:
    amount = f"{n:,}" if n < 10**MOST_DIGITS else f"a number of more than {MOST_DIGITS} digits"
    return f"{field}: asks for {amount}, at most {most:,} are allowed"
