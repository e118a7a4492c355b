"""What a gang that runs is charged to its queue: its minimum, its extras and what still leaves.

Amounts are requests by resource; ``pods`` is 1 for each member. Host ports and volumes are no
quota, so they are left out.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ..gang import demand, slots
from ..gang.order import by_age
from ..model import ports
from ..model.cluster import Gang, Member, Phase, Reservation
from ..model.queues import QueueRecord, RoleAtStart
from ..model.resources import NOTHING, Resources
from ..model.volumes import is_attaching

PODS = "pods"


@dataclass(frozen=True, slots=True)
class GangCharge:
    """What a gang is charged; ``held_minimum`` is what needed members have a node for now.

    ``minimum`` is more than that while members are lost. ``credit`` is what nobody holds of it:
    those who replace lost members add only what they request beyond that.
    """

    minimum: Resources = NOTHING
    extras: tuple[tuple[str, Resources], ...] = ()  # by pod, the oldest first
    # Of terminating members and of pods that are no members, what the lost ones do not make up.
    leaving: Resources = NOTHING
    held_minimum: Resources = NOTHING
    credit: Resources = NOTHING

    @property
    def total(self) -> Resources:
        """All of it."""
        if not (self.extras or self.leaving.amounts):
            return self.minimum
        return Resources.total((self.minimum, self.leaving, *(one for _, one in self.extras)))


def gang_charge(
    gang: Gang,
    reservation: Reservation | None,
    record: QueueRecord | None,
    others: Sequence[Member] = (),
) -> GangCharge:
    """What a gang that has started is charged now.

    Members count that have a node or room in the Reservation, and slots. ``record`` says what the
    gang started with; without it, lost members are not charged. Once nobody holds room, nothing is
    charged. ``others`` are pods with a node that are charged to the gang and are no members of it,
    as those of older runs: they count as terminating.
    """
    has_node = any(member.node is not None for member in gang.members)
    if not (reservation is not None or others or has_node):
        return GangCharge()
    promised = {entry.uid for entry in reservation.entries} if reservation is not None else set()
    holders = [
        member
        for member in by_age(gang.members)
        if not member.is_over and (member.node is not None or member.uid in promised)
    ]
    staying = [member for member in holders if not member.terminating]
    slotted = Counter[str]()
    for slot in reservation.slots if reservation is not None else ():
        slotted[slot.role] += slot.count
    if not (holders or slotted or others):
        return GangCharge()
    succeeded = _by_role(gang, _succeeded(gang))
    needed = _needed(gang, staying, slotted + succeeded)
    held = Resources.total(
        (
            *(requests_of(member) for member in needed),
            *(slot_requests(gang, role).scaled(n) for role, n in slotted.items()),
        )
    )
    minimum = held.at_least(_recorded(record, succeeded))
    terminating = [member for member in holders if member.terminating]
    leaving = Resources.total(requests_of(member) for member in (*terminating, *others))
    surplus = held + leaving - minimum
    roles = [*slotted.elements(), *succeeded.elements(), *(member.role for member in needed)]
    uids = {member.uid for member in needed}
    extras = ((m.key.name, requests_of(m)) for m in staying if m.uid not in uids)
    credit = NOTHING if _is_exchange(gang, roles) else (minimum - held - leaving).at_least(NOTHING)
    return GangCharge(minimum, tuple(extras), surplus.at_least(NOTHING), held, credit)


def start_charge(gang: Gang, members: Iterable[Member]) -> tuple[RoleAtStart, ...]:
    """What is written down of a gang that starts with these members: its minimum, by role.

    Without roles, what members name as theirs counts for nothing.
    """
    requests: dict[str, list[Resources]] = {}
    for member in _needed(gang, by_age(members), _by_role(gang, _succeeded(gang))):
        requests.setdefault(member.role if gang.roles else "", []).append(requests_of(member))
    return tuple(
        RoleAtStart(role, len(amounts), Resources.total(amounts))
        for role, amounts in sorted(requests.items())
    )


def as_started(gang: Gang, record: QueueRecord | None) -> Gang:
    """The gang with no larger minimum than it started with; as it is without a record.

    A minimum that is raised while the gang runs makes extras of the members that come for it.
    """
    if record is None:
        return gang
    started = {start.role: start.members for start in record.minimum}
    roles = tuple(
        replace(role, min_member=min(role.min_member, started.get(role.name, 0)))
        for role in gang.roles
    )
    least = min(gang.min_member, sum(started.values()))
    if roles == gang.roles and least == gang.min_member:
        return gang
    return replace(gang, min_member=least, roles=roles)


def without_minimum(gang: Gang) -> Gang:
    """A gang of which members have succeeded and none holds room: all others are extras."""
    return replace(
        gang, min_member=1, roles=tuple(replace(role, min_member=0) for role in gang.roles)
    )


def started_at(gang: Gang) -> float:
    """When a gang without a record started: its first member got a node, or else was created."""
    bound = (member.bound_at for member in gang.members if member.node is not None)
    return min((at for at in bound if at is not None), default=gang.created)


def requests_of(member: Member) -> Resources:
    """What one member is charged."""
    return charged(member.shape.requests)


def slot_requests(gang: Gang, role: str) -> Resources:
    """What room for an absent member is charged: what its role declares, else the most of it."""
    if (shape := slots.declared(gang, role)) is not None:
        return charged(shape.requests)
    most = NOTHING
    for member in gang.members:
        if member.role == role:
            most = most.at_least(requests_of(member))
    return most


@lru_cache(maxsize=4096)  # members share few requests, and a plan asks for each member many times
def charged(requests: Resources) -> Resources:
    """What a member with these requests is charged."""
    amounts = {
        name: n for name, n in requests.amounts if not (ports.is_port(name) or is_attaching(name))
    }
    return Resources.of({**amounts, PODS: 1})


def _succeeded(gang: Gang) -> Iterator[str]:
    """The roles of the members that succeeded in this run, those included that are gone."""
    yield from (member.role for member in gang.members if member.phase is Phase.SUCCEEDED)
    yield from gang.finished


def _by_role(gang: Gang, roles: Iterable[str]) -> Counter[str]:
    """How many there are of each role; of a gang without roles, all count as one."""
    return Counter(role if gang.roles else "" for role in roles)


def _needed(gang: Gang, staying: Sequence[Member], there: Mapping[str, int]) -> Sequence[Member]:
    """The members that make up the minimum; ``there`` counts what does so beside them, by role.

    The oldest of each role come first, as many as the role needs, then the oldest of all.
    """
    missing = Counter({r.name: max(r.min_member - there.get(r.name, 0), 0) for r in gang.roles})
    left = demand.min_members(gang) - sum(there.values())
    chosen: list[Member] = []
    others: list[Member] = []
    for member in staying:
        if missing[member.role] > 0:
            missing[member.role] -= 1
            chosen.append(member)
        else:
            others.append(member)
    return [*chosen, *others[: max(left - len(chosen), 0)]]


def _is_exchange(gang: Gang, roles: Collection[str]) -> bool:
    """Whether one who joins a role that lacks members turns another of the minimum into an extra.

    Then it adds all that it requests. ``roles`` are those of the members of the minimum.
    """
    there = Counter(roles)
    lacks = sum(max(role.min_member - there[role.name], 0) for role in gang.roles)
    return lacks > max(demand.min_members(gang) - len(roles), 0)


def _recorded(record: QueueRecord | None, succeeded: Mapping[str, int]) -> Resources:
    """What the gang started with, less the part of those that have succeeded; rounded up."""
    found = []
    for start in record.minimum if record is not None else ():
        left = max(start.members - succeeded.get(start.role, 0), 0)
        found.append(
            Resources.of(
                {name: -(-n * left // start.members) for name, n in start.requests.amounts}
            )
        )
    return Resources.total(found)
