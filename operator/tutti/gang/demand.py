"""What a gang requests now, derived from the observed members and not from earlier decisions.

A gang without a bound member starts whole; a gang that has started is repaired or extended. Only
this module distinguishes the two; the rounds answer all requests in the same way.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from ..model.cluster import Gang, Member
from ..model.keys import Uid
from ..model.shapes import Shape
from ..model.volumes import claim_for_one_pod
from . import slots
from .order import by_age

NEW = 1_000_000  # first number of placeholders for new slots; standing slots begin at 0


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """A request to place ``need`` of these members, within the bounds of each role, or none.

    A role has a maximum if more of its members wait than may get a node. The maximum holds for all
    requests of the gang in one program together.
    """

    gang: Gang
    need: int
    members: tuple[Member, ...]  # the oldest first
    minimums: tuple[tuple[str, int], ...] = ()  # by role
    is_starved: bool = False  # a starved gang goes before the others of its priority
    maximums: tuple[tuple[str, int], ...] = ()  # by role
    is_repair: bool = False  # the members replace lost ones of a gang that has started
    # The members by shape, as ``by_shape`` returns them.
    alike: tuple[tuple[Member, ...], ...] = field(init=False, repr=False, compare=False)
    uids: tuple[Uid, ...] = field(init=False, repr=False, compare=False)  # of the members

    def __post_init__(self) -> None:
        """Group the members by shape once, because every count of room needs the groups."""
        object.__setattr__(self, "alike", by_shape(self.members))
        object.__setattr__(self, "uids", tuple([member.uid for member in self.members]))


def by_shape(members: tuple[Member, ...]) -> tuple[tuple[Member, ...], ...]:
    """The members grouped by shape; groups are in the order of their first members."""
    # Equal pods share one Shape, and comparing identities is cheaper than hashing each Shape.
    shapes = {id(member.shape): member.shape for member in members}
    if len(shapes) == 1:
        return (members,)
    groups: dict[Shape, list[Member]] = {shape: [] for shape in shapes.values()}
    group_of = {key: groups[shape] for key, shape in shapes.items()}
    for member in members:
        group_of[id(member.shape)].append(member)
    return tuple(tuple(group) for group in groups.values())


@dataclass(frozen=True, slots=True)
class MemberCounts:
    """The members of a gang by what they count as now; terminating members are left out."""

    gang: Gang
    bound: tuple[Member, ...] = ()  # count as bound
    ready: tuple[Member, ...] = ()  # could be bound now
    unsupported: tuple[Member, ...] = ()  # wait, but use fields that Tutti does not support
    without_volumes: tuple[Member, ...] = ()  # wait for their claims, of volumes or devices
    gated: tuple[Member, ...] = ()  # have scheduling gates
    roleless: tuple[Member, ...] = ()  # name no role of the gang, so they do not count
    surplus: tuple[Member, ...] = ()  # could be bound, but their role has its maximum
    promised: tuple[Member, ...] = ()  # have room in the gang's Reservation; absent ones, too
    absent: tuple[Member, ...] = ()  # do not exist yet, and room may be reserved for them
    elsewhere: tuple[Member, ...] = ()  # count as bound, but are charged to another gang

    @property
    def waiting(self) -> tuple[Member, ...]:
        """The members that may get room now, present and absent ones."""
        return self.ready + self.absent

    @property
    def is_committed(self) -> bool:
        """Whether the gang has started; a started gang is repaired, not started again."""
        return bool(self.bound)

    @property
    def places_by_role(self) -> Mapping[str, int]:
        """How many more members may get a node; only roles that have a maximum."""
        if not self.gang.roles:
            return {}
        maximums = [
            (role.name, role.max_member) for role in self.gang.roles if role.max_member is not None
        ]
        if not maximums:
            return {}
        present = (*self.bound, *self.elsewhere, *self.promised)
        current = Counter(member.role for member in present if not member.is_over)
        return {role: max(maximum - current[role], 0) for role, maximum in maximums}

    @property
    def missing(self) -> int:
        """How many needed members are neither bound nor promised, by the gang or by its roles."""
        present = len(self.bound) + len(self.gang.finished) + len(self.promised)
        if self.gang.is_finished:
            return 0
        return max(min_members(self.gang) - present, sum(self.missing_by_role.values()))

    @property
    def missing_by_role(self) -> Mapping[str, int]:
        """How many needed members each role lacks; only roles that lack members."""
        members = (*self.bound, *self.promised)
        if self.gang.is_finished:
            return {}
        present = Counter([*(member.role for member in members), *self.gang.finished])
        lacks = {role.name: role.min_member - present[role.name] for role in self.gang.roles}
        return {role: n for role, n in lacks.items() if n > 0}


def min_members(gang: Gang) -> int:
    """How many members the gang needs to start: minMember or the sum over its roles, at least 1."""
    return max(gang.min_member, sum([role.min_member for role in gang.roles]), 1)


def count_members(
    gang: Gang, promised: Collection[Uid] = (), room: Collection[Member] | None = None
) -> MemberCounts:
    """The members of a gang by what they count as; a Reservation has room for the ``promised``.

    ``room`` has the placeholders of absent members that the Reservation has slots for. It is None
    if the gang has no Reservation, or the time for absent members is up.
    """
    if not gang.members and room is None:
        return MemberCounts(gang)  # thousands of PodGroups may wait for their first pod
    roles = {role.name for role in gang.roles}
    kinds: dict[str, list[Member]] = {
        "bound": [],
        "ready": [],
        "unsupported": [],
        "without_volumes": [],
        "gated": [],
        "roleless": [],
        "promised": [*(room or ())],
    }
    for member in by_age(gang.members):
        kind = _kind(member)
        if kind is None:
            continue
        if kind != "bound" and member.uid in promised:
            if room is not None:
                kinds["promised"].append(member)
            continue
        kinds["roleless" if roles and member.role not in roles else kind].append(member)
    present = (*kinds["bound"], *kinds["promised"])
    census = MemberCounts(gang, **{kind: tuple(members) for kind, members in kinds.items()})
    ready = census.ready
    if any(role.max_member is not None for role in gang.roles):
        places = census.places_by_role
        ready = tuple(m for m in ready if places.get(m.role, 1))
        surplus = tuple(m for m in census.ready if not places.get(m.role, 1))
        census = replace(census, ready=ready, surplus=surplus)
    if (room is None and census.is_committed) or not (census.is_committed or ready):
        return census  # no room is reserved for absent members in these cases
    absent = _absent(census, (*present, *within_maximums(census).ready))
    return replace(census, absent=absent) if absent else census


def _absent(census: MemberCounts, present: Iterable[Member]) -> tuple[Member, ...]:
    """Placeholders of the needed members that do not exist.

    Placeholders of a gang that has not started share one object by role (``slots.alike``).
    """
    gang = census.gang
    if any(segments.index for segments in gang.segments):
        return ()  # a pod that does not exist has no index
    if not (any(role.template is not None for role in gang.roles) and slots.may_come(gang)):
        return ()
    present_by_role = Counter([*(member.role for member in present), *gang.finished])
    lacking = slots.absent(gang, present_by_role).items()
    make = slots.placeholders if census.is_committed else slots.alike
    return tuple(chain.from_iterable(make(gang, role, n, NEW) for role, n in lacking))


def numbered(census: MemberCounts, placed_uids: Collection[Uid]) -> MemberCounts:
    """The census of a gang that starts, with a uid of its own for each absent member."""
    if census.is_committed or not any(member.uid in placed_uids for member in census.absent):
        return census
    times = Counter[Uid]()
    absent = []
    for member in census.absent:
        absent.append(replace(member, uid=slots.nth(member.uid, times[member.uid])))
        times[member.uid] += 1
    return replace(census, absent=tuple(absent))


def within_maximums(census: MemberCounts) -> MemberCounts:
    """The census in which each role has at most as many ready members as places, the oldest first.

    It is for gangs of which a plan chooses no member. A plan may choose other members of a role,
    because the oldest may have no room.
    """
    places = census.places_by_role
    if not places:
        return census
    chosen = _oldest(census.ready, places)
    if len(chosen) == len(census.ready):
        return census
    uids = {member.uid for member in chosen}
    beyond_maximum = (member for member in census.ready if member.uid not in uids)
    return replace(census, ready=chosen, surplus=by_age((*census.surplus, *beyond_maximum)))


def _oldest(members: Collection[Member], places: Mapping[str, int]) -> tuple[Member, ...]:
    """The first members of each role, as many as the role has places."""
    chosen_by_role = Counter[str]()
    chosen: list[Member] = []
    for member in members:
        if chosen_by_role[member.role] < places.get(member.role, len(members)):
            chosen.append(member)
            chosen_by_role[member.role] += 1
    return tuple(chosen)


def _kind(member: Member) -> str | None:
    if member.counts_as_bound:
        return "bound"
    if member.size_unknown_because:
        return None
    if member.is_waiting:
        if member.lacks_claims:
            return "without_volumes"
        return "unsupported" if member.unsupported_fields else "ready"
    is_held_back = member.gated and member.node is None
    return "gated" if is_held_back and not (member.terminating or member.is_over) else None


def is_settled(gang: Gang) -> bool:
    """Whether there is nothing to decide: no member may get a node, and none is missing."""
    return not any(member.may_get_a_node for member in gang.members) and (
        count_members(gang).missing <= 0 or gang.terminating
    )


def is_enough(gang: Gang, members: Collection[Member]) -> bool:
    """Whether the gang could start with these members: enough in all, and enough of each role."""
    if len(members) < min_members(gang):
        return False
    if not gang.roles:
        return True
    by_role = Counter([member.role for member in members])
    return all(by_role[role.name] >= role.min_member for role in gang.roles)


class TooFewClaims(NamedTuple):
    """Members of a gang that must start together, and a claim for one pod that keeps them apart."""

    claim: str
    members: int  # that name it
    role: str  # of all these members; empty for the whole gang
    needed: int  # that must start together


def too_few_claims(gang: Gang, members: Collection[Member]) -> TooFewClaims | None:
    """Why the gang cannot start with these members, whichever of them start.

    Of the members that name one claim for one pod, at most one starts.
    """
    claim_of = {member.uid: claims[0] for member in members if (claims := _claims_for_one(member))}
    if not claim_of:
        return None
    minimums = ((role.name, role.min_member) for role in gang.roles)
    for role, needed in (("", min_members(gang)), *minimums):
        own = [member for member in members if role in ("", member.role)]
        named = Counter(claim_of[member.uid] for member in own if member.uid in claim_of)
        if named and len(own) - named.total() + len(named) < needed:
            claim, n = max(named.items(), key=lambda pair: pair[1])
            return TooFewClaims(claim, n, role, needed)
    return None


def _claims_for_one(member: Member) -> Sequence[str]:
    """The claims for one pod that other members which wait name, too."""
    if not member.shape.rules.anti_affinity:
        return ()
    return [claim for label, _ in member.labels if (claim := claim_for_one_pod(label))]


def start_request(census: MemberCounts) -> PlacementRequest | None:
    """The request of a gang that has not started; None while it cannot start."""
    gang = census.gang
    if census.is_committed or gang.terminating:
        return None
    if not is_enough(gang, within_maximums(census).waiting) or are_all_absent(census):
        return None
    if too_few_claims(gang, census.waiting) is not None:
        return None
    minimums = tuple((role.name, role.min_member) for role in gang.roles)
    maximums = maximums_of(census.waiting, census.places_by_role)
    return PlacementRequest(gang, min_members(gang), census.waiting, minimums, maximums=maximums)


def are_all_absent(census: MemberCounts) -> bool:
    """Whether the gang would start with absent members alone, so that it binds no pod."""
    roles = {role.name for role in census.gang.roles if role.min_member}
    least = sum(role.min_member for role in census.gang.roles)
    return min_members(census.gang) <= least and not any(m.role in roles for m in census.ready)


def maximums_of(
    members: Iterable[Member], places: Mapping[str, int]
) -> tuple[tuple[str, int], ...]:
    """The places of the roles that have fewer places than members."""
    if not places:
        return ()
    waiting = Counter(member.role for member in members)
    return tuple((role, n) for role, n in places.items() if waiting[role] > n)


Refusal = tuple[Uid, str, Shape]  # a gang's uid, a role, and a shape that has no room
Refused = Collection[Refusal]


def repair_requests(
    census: MemberCounts, placed: Collection[Uid], refused: Refused
) -> tuple[PlacementRequest, ...]:
    """One request for each lost member of a started gang that a waiting member can replace.

    ``placed`` are the members that this plan has placed already. Members of a ``refused`` shape are
    skipped, because the room for them only shrinks.
    """
    gang = census.gang
    if gang.terminating or not census.is_committed:
        return ()
    replaced = [member for member in census.waiting if member.uid in placed]
    candidates = [
        member
        for member in census.waiting
        if member.uid not in placed and (gang.uid, member.role, member.shape) not in refused
    ]
    chosen: list[Member] = []
    lacking = census.missing - len(replaced)
    for role, lacks in census.missing_by_role.items():
        still = lacks - sum(member.role == role for member in replaced)
        of_role = [member for member in candidates if member.role == role][: max(still, 0)]
        chosen.extend(of_role)
        lacking -= max(still, 0)
    chosen_uids = {member.uid for member in chosen}
    taken_places = Counter(member.role for member in (*replaced, *chosen))
    places = {role: n - taken_places[role] for role, n in census.places_by_role.items()}
    rest = _oldest([member for member in candidates if member.uid not in chosen_uids], places)
    chosen.extend(rest[: max(lacking, 0)])
    return tuple(PlacementRequest(gang, 1, (member,), is_repair=True) for member in chosen)


def may_grow(census: MemberCounts) -> bool:
    """Whether members wait that the gang does not need to start."""
    if census.is_committed:
        return bool(census.ready) and not census.gang.terminating
    oldest = within_maximums(census).ready
    return len(oldest) > min_members(census.gang) and start_request(census) is not None


def growth_requests(census: MemberCounts, placed: Collection[Uid]) -> tuple[PlacementRequest, ...]:
    """One request for each waiting member beyond those needed, if the gang has started or starts.

    ``placed`` are the members that this plan has placed already.
    """
    gang = census.gang
    left = [member for member in census.ready if member.uid not in placed]
    # Beside whole segments, further members have a domain once the others have theirs.
    starts = not gang.segments and len(left) < len(census.ready)
    if not left or gang.terminating or not (census.is_committed or starts):
        return ()
    chosen = Counter(member.role for member in census.waiting if member.uid in placed)
    places = {role: n - chosen[role] for role, n in census.places_by_role.items()}
    members = [member for member in left if places.get(member.role, 1) > 0]
    maximums = dict(maximums_of(members, places))
    return tuple(
        PlacementRequest(
            gang, 1, (m,), maximums=((m.role, maximums[m.role]),) if m.role in maximums else ()
        )
        for m in members
    )
