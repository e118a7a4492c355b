"""What the queue of a gang that runs is charged: its minimum, its extras, and what still leaves.

Amounts are requests by resource; ``pods`` is 1 for each member. Host ports and volumes are not
charged.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import repeat
from math import inf
from types import MappingProxyType

from ..gang import demand, slots
from ..gang.order import by_age
from ..model import ports
from ..model.cluster import Gang, Member, Phase, Reservation
from ..model.devices.claims import is_counting
from ..model.keys import Uid
from ..model.queues import QueueRecord, RoleAtStart
from ..model.resources import NOTHING, Resources
from ..model.volumes import counts_volumes

PODS = "pods"


@dataclass(frozen=True, slots=True)
class GangCharge:
    """What a gang is charged.

    ``held_minimum`` is what the needed members that hold room request. ``minimum`` is larger while
    members are lost. ``credit`` is the part of ``minimum`` that no member or slot holds:
    replacements of lost members add only what they request beyond it.
    """

    minimum: Resources = NOTHING
    extras: tuple[tuple[str, Resources], ...] = ()  # by pod, in the order in which they joined
    # What terminating members and pods that are no members request beyond the lost members.
    leaving: Resources = NOTHING
    held_minimum: Resources = NOTHING
    credit: Resources = NOTHING
    given_back: Resources = NOTHING  # slots, by a plan that is not written down yet

    @property
    def total(self) -> Resources:
        """The minimum, the extras, what leaves and what is given back, together."""
        if not (self.extras or self.leaving.amounts or self.given_back.amounts):
            return self.minimum
        extras = (extra for _, extra in self.extras)
        return Resources.total((self.minimum, self.leaving, self.given_back, *extras))

    @property
    def extras_in_credit(self) -> "GangCharge":
        """The charge with a credit that its extras have used up, as far as it goes.

        It is for members whose roles are not written down: a tenant makes an extra of such a member
        by the label of its role, and its place must not leave a credit behind.
        """
        extras = Resources.total(requests for _, requests in self.extras)
        return replace(self, credit=(self.credit - extras).at_least(NOTHING))

    def at_least(self, other: "GangCharge") -> "GangCharge":
        """The charge, with what the other charge exceeds it by as given back."""
        surplus = (other.total - self.total).at_least(NOTHING)
        return replace(self, given_back=surplus) if surplus.amounts else self

    def once_gone(self, stuck: Resources) -> "GangCharge":
        """The charge once all pods that leave have gone, but for pods with these requests."""
        surplus = (self.held_minimum + stuck - self.minimum).at_least(NOTHING)
        return self if surplus == self.leaving else replace(self, leaving=surplus)


def gang_charge(
    gang: Gang,
    reservation: Reservation | None,
    record: QueueRecord | None,
    others: Sequence[Member] = (),
    joined: Mapping[Uid, int] = MappingProxyType({}),
) -> GangCharge:
    """What a gang that has started is charged now.

    Slots count, and members that have a node or room in the Reservation. ``record`` says what the
    gang started with; without it, lost members are not charged. Once no member, slot or other pod
    holds room, nothing is charged. ``others`` are pods with a node that are charged to the gang but
    are not its members, such as pods of older runs: they count as terminating. ``joined`` numbers
    pods in the order in which they joined; others joined after them. The loss of a member never
    raises the charge, and a member that joins adds at most what it requests.
    """
    has_node = any(member.node is not None for member in gang.members)
    if not (reservation is not None or others or has_node):
        return GangCharge()
    promised = {entry.uid for entry in reservation.entries} if reservation is not None else set()
    holders = [
        member
        for member in by_joining(gang.members, joined)
        if not member.is_over and (member.node is not None or member.uid in promised)
    ]
    staying = [member for member in holders if not member.terminating]
    slotted = Counter[str]()
    for slot in reservation.slots if reservation is not None else ():
        slotted[slot.role] += slot.count
    if not (holders or slotted or others):
        return GangCharge()
    places = Places.of(gang, record)
    done = places.by_role(_succeeded(gang)) if record is None else Counter[str]()
    there = places.by_role(slotted.elements()) + done
    needed = places.filled(staying, there)
    with_place = slotted if record is None else places.with_place(slotted)
    in_places = requests_together(needed) + _of_slots(gang, with_place, others)
    beside = _of_slots(gang, slotted - with_place, others)
    in_use, minimum = in_places + beside, in_places.at_least(_recorded(record)) + beside
    terminating = [member for member in holders if member.terminating]
    leaving = requests_together((*terminating, *others))
    surplus = in_use + leaving - minimum
    uids = {member.uid for member in needed}
    extras = tuple((m.key.name, requests_of(m)) for m in staying if m.uid not in uids)
    credit = (minimum - in_use - leaving).at_least(NOTHING)
    roles = Counter(member.role for member in needed)
    if credit.amounts and not _repairs_fill_places(
        gang, places, present=slotted + roles, taken=places.by_role((with_place + roles).elements())
    ):
        credit = NOTHING
    return GangCharge(minimum, extras, surplus.at_least(NOTHING), in_use, credit)


@dataclass(frozen=True, slots=True)
class Places:
    """How many members of each role the minimum of a gang has; all others are extras.

    A gang that has started keeps the places of the record of its start, whatever its PodGroup says
    later, but for those of members that succeeded. No member of another role takes the place of a
    lost member.
    """

    count: Mapping[str, int]
    has_roles: bool
    free: int = 0  # places for members of any role, which no record has

    @classmethod
    def of(cls, gang: Gang, record: QueueRecord | None) -> "Places":
        """The places that the record names; without a record, those of the PodGroup."""
        if record is not None and record.minimum:
            count = {start.role: _left(record, start) for start in record.minimum}
            return cls(count, record.has_roles)
        least = demand.min_members(gang)
        if not gang.roles:
            return cls({"": least}, has_roles=False)
        count = {role.name: role.min_member for role in gang.roles}
        return cls(count, has_roles=True, free=least - sum(count.values()))

    def by_role(self, roles: Iterable[str]) -> Counter[str]:
        """How often each role occurs; where places have no roles, every role counts as ""."""
        return Counter(role if self.has_roles else "" for role in roles)

    def with_place(self, slotted: Counter[str]) -> Counter[str]:
        """The slots that have places, by role; those of a role that came later have none."""
        left, chosen = Counter(self.count), Counter[str]()
        for role, n in sorted(slotted.items()):
            key = role if self.has_roles else ""
            chosen[role] = min(n, left[key])
            left[key] -= chosen[role]
        return chosen

    def filled(self, staying: Iterable[Member], there: Counter[str]) -> Sequence[Member]:
        """The members with places; those that come first in ``staying`` get them first.

        ``there`` counts those that have places already, such as slots.
        """
        left = Counter(self.count) - there
        free = max(self.free - (there - Counter(self.count)).total(), 0)
        chosen: list[Member] = []
        others: list[Member] = []
        for member in staying:
            role = member.role if self.has_roles else ""
            has_place = left[role] > 0
            left[role] -= has_place
            (chosen if has_place else others).append(member)
        return [*chosen, *others[:free]]


def start_charge(gang: Gang, members: Iterable[Member]) -> tuple[RoleAtStart, ...]:
    """The minimum of a gang that starts with these members, by role, for the record of its start.

    ``members`` are in the order in which they join. If the gang has no roles, all of it is under
    the role "", whatever roles the members name. Members that have succeeded are part of it, and
    count as requesting what the others of their role do: ``with_succeeded`` takes their part away.
    """
    places = Places.of(gang, None)
    succeeded = places.by_role(_succeeded(gang))
    filled: dict[str, list[Member]] = {role: [] for role in succeeded}
    for member in places.filled(members, succeeded):
        filled.setdefault(member.role if gang.roles else "", []).append(member)
    return tuple(_at_start(role, own, succeeded[role]) for role, own in sorted(filled.items()))


def _at_start(role: str, needed: Sequence[Member], succeeded: int) -> RoleAtStart:
    """A role with these members, and with so many that have succeeded."""
    total, running = requests_together(needed), max(len(needed), 1)
    members = len(needed) + succeeded
    requests = {name: n * members // running for name, n in total.amounts}
    return RoleAtStart(role, members, total if not succeeded else Resources.of(requests))


def with_lost(gang: Gang, minimum: Sequence[RoleAtStart]) -> tuple[RoleAtStart, ...]:
    """The minimum of a gang that runs, with the members that it lacks; they request nothing.

    What it lacks beyond the minimums of its roles is under the role "".
    """
    by_role = {start.role: start for start in minimum}
    for role in gang.roles:
        start = by_role.get(role.name, RoleAtStart(role.name, 0, NOTHING))
        by_role[role.name] = replace(start, members=max(start.members, role.min_member))
    lacks = demand.min_members(gang) - sum(start.members for start in by_role.values())
    if lacks > 0:
        start = by_role.get("", RoleAtStart("", 0, NOTHING))
        by_role[""] = replace(start, members=start.members + lacks)
    return tuple(start for _, start in sorted(by_role.items()) if start.members)


def as_started(gang: Gang, record: QueueRecord | None) -> Gang:
    """The gang with no larger minimum than it started with; unchanged without a record.

    So if the minimum is raised while the gang runs, the members that join for it are extras.
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
    """The gang with a minimum of one member, and of none in each role: its members are extras.

    It is for a gang with members that succeeded and without members that hold room.
    """
    return replace(
        gang, min_member=1, roles=tuple(replace(role, min_member=0) for role in gang.roles)
    )


def started_at(gang: Gang) -> float:
    """When a gang without a record started, in seconds since the epoch.

    It is when its first member got a node; if no time of this is known, when it was created.
    """
    bound = (member.bound_at for member in gang.members if member.node is not None)
    return min((at for at in bound if at is not None), default=gang.created)


def requests_of(member: Member) -> Resources:
    """What one member is charged."""
    return charged(member.shape.requests)


def requests_together(members: Iterable[Member]) -> Resources:
    """What these members are charged together."""
    groups = demand.by_shape(tuple(members))
    return Resources.total(requests_of(group[0]).scaled(len(group)) for group in groups)


def slot_requests(gang: Gang, role: str, others: Sequence[Member] = ()) -> Resources:
    """What a slot of a role is charged.

    It is what the role declares, or else the most that any pod of the role requests that is charged
    to the gang; ``others`` are those that are not its members.
    """
    if (shape := slots.declared(gang, role)) is not None:
        return charged(shape.requests)
    most = charged(NOTHING)
    for member in (*gang.members, *others):
        if member.role == role:
            most = most.at_least(requests_of(member))
    return most


def covers_slot(record: QueueRecord | None, member: Member) -> bool:
    """Whether a member requests no more than a slot of its role was charged at the start.

    A slot is given away without a look at limits, and its tenant may change the role's template
    later. Members of one role count as equal at the start. Without a record there are no limits.
    """
    if record is None:
        return True
    role = member.role if record.has_roles else ""
    start = next((start for start in record.minimum if start.role == role), None)
    if start is None:
        return False
    requests = requests_of(member).scaled(start.members)
    return (requests - start.requests).at_least(NOTHING) == NOTHING


@lru_cache(maxsize=4096)  # members share few requests, and a plan asks for each member many times
def charged(requests: Resources) -> Resources:
    """What a member with these requests is charged."""
    amounts = {
        name: n
        for name, n in requests.amounts
        if not (ports.is_port(name) or counts_volumes(name) or is_counting(name))
    }
    return Resources.of({**amounts, PODS: 1})


def _succeeded(gang: Gang) -> Iterator[str]:
    """The role of each member that succeeded in this run, also of members that are gone."""
    yield from (member.role for member in gang.members if member.phase is Phase.SUCCEEDED)
    yield from gang.finished


def _held(gang: Gang, reservation: Reservation) -> Iterator[str]:
    """The role of each member that stays and holds room, and of each slot."""
    promised = {entry.uid for entry in reservation.entries}
    for member in gang.members:
        has_room = member.node is not None or member.uid in promised
        if has_room and not (member.is_over or member.terminating):
            yield member.role
    for slot in reservation.slots:
        yield from repeat(slot.role, slot.count)


def by_joining(members: Iterable[Member], joined: Mapping[Uid, int]) -> Sequence[Member]:
    """The members in the order in which they joined; of several, the oldest first."""
    ordered = by_age(members)
    return sorted(ordered, key=lambda m: joined.get(m.uid, inf)) if joined else ordered


def _of_slots(gang: Gang, slotted: Counter[str], others: Sequence[Member]) -> Resources:
    """What slots are charged together; ``slotted`` counts them by role."""
    return Resources.total(
        slot_requests(gang, role, others).scaled(n) for role, n in slotted.items()
    )


def _repairs_fill_places(
    gang: Gang, places: Places, present: Counter[str], taken: Counter[str]
) -> bool:
    """Whether each member that replaces a lost member gets a place, whichever members these are.

    A member without a place is an extra, and adds all that it requests. ``gang`` has no larger
    minimum than it started with. ``present`` counts the members with places and the slots by role,
    and ``taken`` the places that they have. A member that succeeded is replaced if the gang shows
    it no more, though its place has ended. Of a role with a template, slots may replace any number.
    """
    counted = present + Counter(_succeeded(gang))
    lacks = {role.name: max(role.min_member - counted[role.name], 0) for role in gang.roles}
    missing = demand.min_members(gang) - counted.total()
    any_role = max(missing - sum(lacks.values()), 0)
    limit = any_role + sum(lacks.values())
    waiting = Counter(member.role for member in gang.members if member.may_get_a_node)
    absent = {role.name: limit for role in gang.roles if role.template is not None}
    most = Counter[str]()
    for role, n in (waiting | Counter(absent)).items():
        most[role if places.has_roles else ""] += min(n, lacks.get(role, 0) + any_role)
    return all(min(n, limit) <= places.count.get(role, 0) - taken[role] for role, n in most.items())


def with_succeeded(
    gang: Gang, record: QueueRecord, reservation: Reservation | None = None
) -> QueueRecord:
    """The record with the members that have succeeded by now; the same record if it has them all.

    Of a gang that runs, given its ``reservation``, members count that leave a place empty: an extra
    that succeeds ends no place. Only what is written down is taken off the charge: pods and
    PodGroups can be changed later, so that fewer members seem to have succeeded.
    """
    places, before = Places.of(gang, record), dict(record.succeeded)
    shown, filled = places.by_role(_succeeded(gang)), Counter[str]()
    if reservation is not None:
        filled = places.by_role(_held(gang, reservation))
    now = {
        start.role: max(
            before.get(start.role, 0),
            min(shown[start.role], start.members - filled[start.role]),
        )
        for start in record.minimum
    }
    succeeded = tuple(sorted((role, n) for role, n in now.items() if n))
    return record if succeeded == record.succeeded else replace(record, succeeded=succeeded)


def _left(record: QueueRecord, start: RoleAtStart) -> int:
    """How many members of a role have not succeeded since the start."""
    return max(start.members - dict(record.succeeded).get(start.role, 0), 0)


def _recorded(record: QueueRecord | None) -> Resources:
    """What the gang started with, less the part of the members that succeeded; rounded up."""
    if record is None:
        return NOTHING
    amounts = []
    for start in record.minimum:
        left = _left(record, start)
        amounts.append(
            Resources.of(
                {name: -(-n * left // start.members) for name, n in start.requests.amounts}
            )
        )
    return Resources.total(amounts)
