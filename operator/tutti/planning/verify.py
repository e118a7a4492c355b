"""The plan checked against the promises, by code that shares nothing with what made it.

Only the node rules are asked of ``feasibility``; room, wholeness and Reservations are counted
here anew, rules between pods in ``beside``, in plain Python. A violation is a bug of ours, or of a
solver.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..model.cluster import Entry, Gang, Member, Node, Reservation, Snapshot
from ..model.decisions import Assignment, Placement, Plan
from ..model.keys import GangKey, NodeName, Uid
from . import accounts, beside
from .amounts import format_name
from .feasibility import fits_node
from .peers import has_rules


class _Picture:
    """A Snapshot by name; whom nobody asks about is not looked up."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.nodes = {node.name: node for node in snapshot.nodes}
        self.gangs = {gang.key: gang for gang in snapshot.gangs}
        self._snapshot = snapshot
        self._members: dict[GangKey, Mapping[Uid, Member]] = {}
        self._everyone: dict[Uid, Member] = {}

    def members(self, key: GangKey) -> Mapping[Uid, Member]:
        """The members of one gang."""
        if key not in self._members:
            gang = self.gangs.get(key)
            self._members[key] = {m.uid: m for m in (gang.members if gang is not None else ())}
        return self._members[key]

    def member(self, uid: Uid, expected_in: GangKey) -> Member | None:
        """A member, wherever it is now: a pod's label may have changed, or its PodGroup gone."""
        return self.members(expected_in).get(uid) or self._anywhere().get(uid)

    def _anywhere(self) -> Mapping[Uid, Member]:
        if not self._everyone:
            self._everyone.update((member.uid, member) for member in self._snapshot.strays)
            for gang in self._snapshot.gangs:
                self._everyone.update((member.uid, member) for member in gang.members)
        return self._everyone


def _asked(member: Member) -> accounts.Amounts:
    return {**dict(member.shape.requests.amounts), "pods": 1}


def violations(snapshot: Snapshot, plan: Plan) -> tuple[str, ...]:
    """What the plan breaks, one sentence each; empty if every promise holds."""
    return tuple(_broken(snapshot, plan.placements))


def upheld(snapshot: Snapshot, placements: Sequence[Placement]) -> tuple[Placement, ...]:
    """The placements that break nothing in this Snapshot, counted together, the first ones first.

    The world may have moved on since they were planned.
    """
    if not placements:
        return ()
    seen = _Picture(snapshot)
    books = _Books.of(snapshot, seen)
    sound: list[Placement] = []
    for placement in placements:
        trial = books.on_trial(one.node for one in placement.assignments)
        if not any(True for _ in _faults(placement, seen, trial)):
            books.ledger.left.update(trial.ledger.left)
            sound.append(placement)
    return tuple(_sociable(snapshot, sound, seen))


def _sociable(snapshot: Snapshot, sound: list[Placement], seen: _Picture) -> Sequence[Placement]:
    """Those that rules between pods let be together; whoever breaks one leaves, the last first."""
    for _ in tuple(sound):
        unsocial = [placement for placement, _ in _unsocial(snapshot, sound, seen)]
        if not unsocial:
            break
        sound = [placement for placement in sound if placement is not unsocial[-1]]
    return sound


def _broken(snapshot: Snapshot, placements: Sequence[Placement]) -> Iterator[str]:
    if not placements:
        return
    seen = _Picture(snapshot)
    books = _Books.of(snapshot, seen)
    for placement in placements:
        yield from _faults(placement, seen, books)
    for _, fault in _unsocial(snapshot, placements, seen):
        yield fault


@dataclass(frozen=True, slots=True)
class _Books:
    """What is promised so far: room, pods, and gangs."""

    ledger: accounts.Ledger
    pods: set[Uid]
    gangs: set[GangKey]

    @classmethod
    def of(cls, snapshot: Snapshot, seen: _Picture) -> "_Books":
        """Start from what is used and what standing Reservations hold."""
        books = cls(
            accounts.Ledger(seen.nodes),
            {entry.uid for held in snapshot.reservations for entry in held.entries},
            {held.gang for held in snapshot.reservations},
        )
        for held in snapshot.reservations:
            for node, asked in _held(held, seen):
                books.ledger.take(node, asked)
        return books

    def on_trial(self, nodes: Iterable[NodeName]) -> "_Books":
        """The same books with a copy of the room on these nodes; names are not given back."""
        return _Books(self.ledger.copy(nodes), self.pods, self.gangs)


def _faults(placement: Placement, seen: _Picture, books: _Books) -> Iterator[str]:
    """What is wrong with one placement; its promises are added to the books."""
    gang = seen.gangs.get(placement.gang)
    if gang is None or gang.uid != placement.uid:
        yield f"gang {placement.gang}: there is no such gang"
        return
    if gang.terminating or gang.key in books.gangs:
        yield f"gang {gang.key}: it is being deleted, or has a placement already"
    books.gangs.add(gang.key)
    for one in placement.assignments:
        yield from _wrong(one, gang, seen, books.pods, books.ledger)
        books.pods.add(one.uid)
    yield from _incomplete(gang, placement)
    yield from _overfull(gang, placement)


def _wrong(
    one: Assignment, gang: Gang, seen: _Picture, taken: set[Uid], ledger: accounts.Ledger
) -> Iterator[str]:
    """What is wrong with one assignment; its room is taken from the ledger."""
    member, node = seen.members(gang.key).get(one.uid), seen.nodes.get(one.node)
    if member is None or member.key != one.pod:
        yield f"pod {one.pod}: it is no member of gang {gang.key}"
        return
    if node is None:
        yield f"pod {one.pod}: there is no node {one.node}"
        return
    if one.uid in taken:
        yield f"pod {one.pod}: it has a node already"
    is_open = member.unmodelled or member.lacking
    if not member.is_waiting or is_open or not gang.has_place_for(member):
        yield f"pod {one.pod}: it cannot be placed now"
    if (why := fits_node(member.shape, node)) is not None:
        yield f"pod {one.pod}: node {one.node} will not do: {why}"
    asked = _asked(member)
    if lacking := ledger.lacks(one.node, asked):
        names = ", ".join(map(format_name, lacking))
        yield f"pod {one.pod}: node {one.node} has too little {names}"
    ledger.take(one.node, asked)


def _incomplete(gang: Gang, placement: Placement) -> Iterator[str]:
    """What a gang lacks that starts with this placement; one that has started may lack members."""
    bound = [m for m in gang.members if m.counts_as_bound and gang.has_place_for(m)]
    if bound:
        return
    uids = {one.uid for one in placement.assignments}
    starting = [member for member in gang.members if member.uid in uids]
    if len(starting) < gang.min_member:
        yield f"gang {gang.key}: {len(starting)} of {gang.min_member} members are placed"
    for role in gang.roles:
        n = sum(member.role == role.name for member in starting)
        if n < role.min_member:
            yield f"gang {gang.key}: {n} of {role.min_member} of role {role.name} are placed"


def _overfull(gang: Gang, placement: Placement) -> Iterator[str]:
    """Roles of which more members would have a node than their maximum."""
    uids = {one.uid for one in placement.assignments}
    added = Counter(m.role for m in gang.members if m.uid in uids)
    there = Counter(m.role for m in gang.members if m.counts_as_bound and not m.is_over)
    for role in gang.roles:
        n, most = there[role.name] + added[role.name], role.max_member
        if added[role.name] and most is not None and n > most:
            yield f"gang {gang.key}: {n} of at most {most} of role {role.name} are placed"


def _unsocial(
    snapshot: Snapshot, placements: Sequence[Placement], seen: _Picture
) -> Iterator[tuple[Placement, str]]:
    """What rules between pods forbid once all are placed, each looked at as if it came last."""
    gangs = [seen.gangs[one.gang] for one in placements if one.gang in seen.gangs]
    shapes = {id(member.shape): member.shape for gang in gangs for member in gang.members}
    if not (snapshot.residents or snapshot.reservations or any(map(has_rules, shapes.values()))):
        return
    placed = [
        (placement, member, one.node)
        for placement in placements
        for one in placement.assignments
        if (member := seen.members(placement.gang).get(one.uid)) is not None
    ]
    promised = _promised(snapshot, seen)
    neighbours = beside.Neighbours(
        snapshot, [*promised, *((member, node) for _, member, node in placed)]
    )
    for placement, member, node in placed:
        for fault in neighbours.faults(member, node):
            yield placement, fault


def _promised(snapshot: Snapshot, seen: _Picture) -> Sequence[beside.Seat]:
    """The members that Reservations hold a node for and that are not bound yet."""
    return [
        (member, entry.node)
        for held in snapshot.reservations
        for entry in held.entries
        if (member := seen.member(entry.uid, held.gang)) is not None and member.may_get_a_node
    ]


def _held(held: Reservation, seen: _Picture) -> Iterator[tuple[NodeName, accounts.Amounts]]:
    """The room that a Reservation holds and no node counts as used."""
    gang = seen.gangs.get(held.gang)
    siblings = gang.members if gang is not None else ()
    for entry in held.entries:
        member = seen.member(entry.uid, held.gang)
        if member is None:
            yield entry.node, _most(siblings)
        elif member.node is None:
            yield entry.node, _asked(member)
    for slots in held.slots:
        most = _most([member for member in siblings if member.role == slots.role])
        yield slots.node, {name: n * slots.count for name, n in most.items()}


def _most(members: Sequence[Member]) -> accounts.Amounts:
    most: dict[str, int] = {}
    for member in members:
        for name, n in _asked(member).items():
            most[name] = max(n, most.get(name, 0))
    return most


def takes(node: Node, member: Member) -> bool:
    """Whether the node has room for the member beside what is bound there, promises aside."""
    lacking = accounts.Ledger({node.name: node}).lacks(node.name, _asked(member))
    return not lacking and fits_node(member.shape, node) is None


def lost_entries(snapshot: Snapshot) -> Mapping[Uid, tuple[Entry, ...]]:
    """The entries that can no longer be carried out, by the uid of their gang.

    Where a node cannot keep all promises, the oldest Reservations keep theirs.
    """
    seen = _Picture(snapshot)
    ledger = accounts.Ledger(seen.nodes)
    neighbours = beside.Neighbours(snapshot, _promised(snapshot, seen))
    lost: dict[Uid, tuple[Entry, ...]] = {}
    for held in sorted(snapshot.reservations, key=lambda held: (held.reserved_at, held.gang)):
        # Once one of its gang is bound, rules between pods have had their say.
        is_begun = any(one.counts_as_bound for one in seen.members(held.gang).values())
        others = None if is_begun else neighbours
        lost[held.uid] = tuple(
            entry for entry in held.entries if not _is_upheld(entry, held, seen, ledger, others)
        )
        for node, asked in _held(replace(held, entries=()), seen):
            ledger.take(node, asked)
    return {uid: entries for uid, entries in lost.items() if entries}


def _is_still(member: Member, held: Reservation) -> bool:
    """Whether the member waits for what the Reservation holds, and has the volumes for it."""
    return member.is_waiting and not member.lacking and member.gang == held.gang


def _is_upheld(
    entry: Entry,
    held: Reservation,
    seen: _Picture,
    ledger: accounts.Ledger,
    neighbours: beside.Neighbours | None,
) -> bool:
    """Whether the entry can be, or has been, carried out; if it can, its room is taken."""
    member, node = seen.member(entry.uid, held.gang), seen.nodes.get(entry.node)
    if member is None:
        return False
    if member.node == entry.node:
        return True
    if node is None or not _is_still(member, held):
        return False
    if fits_node(member.shape, node) is not None or ledger.lacks(entry.node, _asked(member)):
        return False
    if neighbours is not None and any(True for _ in neighbours.faults(member, entry.node)):
        return False
    ledger.take(entry.node, _asked(member))
    return True
