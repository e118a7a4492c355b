"""Members that do not exist yet: what they will request, and how long room is held for them.

The template of a role gives a placeholder for each absent member. Planning and the rules between
pods treat placeholders like pods. Reservations have slots instead: so many members of a role on a
node. The checker uses this module, too.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf

from ..model.cluster import Gang, Member, Phase, Reservation, Role, SlotReservation, Snapshot
from ..model.keys import NodeName, PodKey, Uid
from ..model.shapes import Shape, Template
from .quantities import count

Places = Counter[tuple[NodeName, str]]  # how many slots, by node and role


def role_of(gang: Gang, name: str) -> Role | None:
    """The role of that name; None if the gang has none."""
    return next((role for role in gang.roles if role.name == name), None)


def template_of(gang: Gang, role: str) -> Template | None:
    """The template of a role; None if there is none."""
    declaration = role_of(gang, role)
    return None if declaration is None else declaration.template


def declared(gang: Gang, role: str) -> Shape | None:
    """The shape that the template of a role declares; None if there is no template."""
    template = template_of(gang, role)
    return None if template is None else template.shape


def placeholders(gang: Gang, role: str, number: int, first: int = 0) -> tuple[Member, ...]:
    """So many absent members of a role; their uids, which no pod has, count from ``first``."""
    template, space = template_of(gang, role), gang.key.namespace
    if template is None:
        return ()
    return tuple(
        Member(
            PodKey(space, ""),
            Uid(f"{gang.uid}/{role}/{i}"),
            "",
            template.shape,
            gang.created,
            group=gang.key.name,
            group_kind=gang.key.kind,
            role=role,
            labels=template.labels,
        )
        for i in range(first, first + number)
    )


def alike(gang: Gang, role: str, number: int, first: int = 0) -> tuple[Member, ...]:
    """The same placeholder object so many times, for a gang that has not started.

    Thousands of gangs may each declare thousands of members that are never created. As long as they
    wait, they are only counted. A placeholder that gets a node gets a uid of its own by ``nth``.
    """
    return placeholders(gang, role, 1, first) * number


def nth(uid: Uid, number: int) -> Uid:
    """The uid of the placeholder that is ``number`` after this one."""
    own, _, first = uid.rpartition("/")
    return Uid(f"{own}/{int(first) + number}")


def mapped(members: tuple[Member, ...], change: Callable[[Member], Member]) -> tuple[Member, ...]:
    """The changed members; members that are one object stay one object."""
    members_by_id = {id(member): member for member in members}
    changed = {key: change(member) for key, member in members_by_id.items()}
    return tuple([changed[id(member)] for member in members])


def placeholders_of_slots(
    gang: Gang, slots: Iterable[SlotReservation]
) -> Sequence[tuple[Member, NodeName]]:
    """A placeholder for each place of these slots, with its node."""
    members_on_nodes: list[tuple[Member, NodeName]] = []
    for slot in slots:
        absent_members = placeholders(gang, slot.role, slot.count, first=len(members_on_nodes))
        members_on_nodes.extend((member, slot.node) for member in absent_members)
    return members_on_nodes


def placeholders_of_snapshot(snapshot: Snapshot) -> Sequence[tuple[Member, NodeName]]:
    """The placeholders of all slots of standing Reservations, with their nodes."""
    if not any(reservation.slots for reservation in snapshot.reservations):
        return ()
    gangs = {gang.uid: gang for gang in snapshot.gangs}
    return [
        member_on_node
        for reservation in snapshot.reservations
        if reservation.slots and (gang := gangs.get(reservation.uid)) is not None
        for member_on_node in placeholders_of_slots(gang, reservation.slots)
    ]


def absent(gang: Gang, present: Mapping[str, int]) -> Mapping[str, int]:
    """How many members of each role are absent and may get slots; only roles with a template.

    ``present`` is how many members of each role there are. Each role lacks members up to its
    minimum. What the gang needs beyond these, it lacks in the first roles that may have more.
    """
    absent_by_role: dict[str, int] = {}
    for role in gang.roles:
        if role.template is not None and (n := role.min_member - present.get(role.name, 0)) > 0:
            absent_by_role[role.name] = n
    minimum = max(gang.min_member, sum(role.min_member for role in gang.roles))
    lacking = minimum - sum(present.values()) - sum(absent_by_role.values())
    for role in gang.roles:
        if role.template is None or lacking <= 0:
            continue
        expected = present.get(role.name, 0) + absent_by_role.get(role.name, 0)
        extra = lacking if role.max_member is None else min(lacking, role.max_member - expected)
        if extra > 0:
            absent_by_role[role.name] = absent_by_role.get(role.name, 0) + extra
            lacking -= extra
    return absent_by_role


def expiry(reservation: Reservation, gang: Gang) -> float:
    """Until when absent members may be created, in seconds since the epoch."""
    return reservation.reserved_at + gang.absent_seconds


def are_open(reservation: Reservation, gang: Gang | None, now: float) -> bool:
    """Whether members may still be created for the slots of a Reservation.

    They are not created any more once the gang has ended or is deleted, or its owner pod, such as a
    driver, has ended. Time does not run out while a present member waits for a slot, which happens
    after a pause of the operator.
    """
    if not reservation.slots or gang is None or not may_come(gang):
        return False
    return now < expiry(reservation, gang) or _has_arrivals(reservation, gang)


def _has_arrivals(reservation: Reservation, gang: Gang) -> bool:
    """Whether a member without reserved room could take a slot."""
    reserved_uids = {entry.uid for entry in reservation.entries}
    roles = {slot.role for slot in reservation.slots}
    return any(
        member.role in roles and member.uid not in reserved_uids and may_take(gang, member)
        for member in gang.members
    )


def is_ready(member: Member) -> bool:
    """Whether the member exists and could be bound now."""
    return member.is_waiting and not (member.unsupported_fields or member.lacks_claims)


def may_take(gang: Gang, member: Member) -> bool:
    """Whether the member could be bound now, and requests no more than its role declares."""
    declared_shape = declared(gang, member.role)
    if declared_shape is None or not is_ready(member):
        return False
    return member.shape.requests.fits(declared_shape.requests)


def may_come(gang: Gang) -> bool:
    """Whether absent members may still be created: not once their driver or the gang is over.

    A gang with later stages is not over when all members of a stage have succeeded.
    """
    if gang.has_later_stages and not gang.terminating:
        return bool(gang.members) and all(m.phase is not Phase.FAILED for m in gang.members)
    return not (gang.terminating or gang.is_idle) and not any(
        member.is_driver and member.is_over and member.key.name == gang.owner_pod
        for member in gang.members
    )


def next_change_at(snapshot: Snapshot) -> float | None:
    """When the next slots are given back, in seconds since the epoch; None if none will be."""
    if not any(reservation.slots for reservation in snapshot.reservations):
        return None
    gangs = {gang.uid: gang for gang in snapshot.gangs}
    moments = (
        expiry(reservation, gangs[reservation.uid])
        for reservation in snapshot.reservations
        if reservation.slots and reservation.uid in gangs
    )
    return min((at for at in moments if snapshot.taken_at < at < inf), default=None)


def number(slots: Iterable[SlotReservation]) -> int:
    """How many members these slots have room for."""
    return sum(slot.count for slot in slots)


def places(slots: Iterable[SlotReservation]) -> Places:
    """How many members the slots have room for, by node and role."""
    counts: Places = Counter()
    for slot in slots:
        counts[slot.node, slot.role] += slot.count
    return counts


def slots_of(counts: Places) -> tuple[SlotReservation, ...]:
    """The slots with these counts, sorted as in Reservations."""
    return tuple(
        SlotReservation(node, role, n) for (node, role), n in sorted(counts.items()) if n > 0
    )


def timeout_message(reservation: Reservation, gang: Gang | None, now: float) -> str:
    """The message about members that were not created in time; empty if time is not the reason."""
    if gang is None or not reservation.slots or now < expiry(reservation, gang):
        return ""
    roles = Counter[str]()
    for slot in reservation.slots:
        roles[slot.role] += slot.count
    members = ", ".join(f"{count(n, 'member')} of role {role}" for role, n in sorted(roles.items()))
    return f"{members} did not come within {gang.absent_seconds:g} s: their room is given back"
