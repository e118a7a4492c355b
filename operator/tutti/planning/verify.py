"""The plan checked against the promises, by code that shares nothing with what made it.

Only the node rules are asked of ``feasibility``; room, wholeness and Reservations are counted
here anew, in plain Python. A violation is a bug of ours, or of a solver.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..model.cluster import Entry, Gang, Member, Node, Reservation, Snapshot
from ..model.decisions import Assignment, Placement, Plan
from ..model.keys import GangKey, NodeName, Origin, Uid
from .feasibility import fits_node

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Ledger:
    """What is left of each node while promises are counted one by one."""

    left: dict[NodeName, dict[str, int]]

    @classmethod
    def of(cls, snapshot: Snapshot) -> "_Ledger":
        """Start from what is allocatable and not used."""
        left = {node.name: dict(node.allocatable.amounts) for node in snapshot.nodes}
        for node in snapshot.nodes:
            for name, n in node.used.amounts:
                left[node.name][name] = left[node.name].get(name, 0) - n
        return cls(left)

    def lacks(self, node: NodeName, asked: Amounts) -> Sequence[str]:
        """The resources of which the node has less left than asked."""
        room = self.left[node]
        return [name for name, n in asked.items() if n > max(room.get(name, 0), 0)]

    def take(self, node: NodeName, asked: Amounts) -> None:
        """Count a promise, whether there is room for it or not."""
        room = self.left.get(node)
        if room is not None:
            for name, n in asked.items():
                room[name] = room.get(name, 0) - n


@dataclass(frozen=True, slots=True)
class _Picture:
    """A Snapshot by name."""

    nodes: Mapping[NodeName, Node]
    gangs: Mapping[GangKey, Gang]
    members: Mapping[Uid, Member]
    gang_of: Mapping[Uid, GangKey]

    @classmethod
    def of(cls, snapshot: Snapshot) -> "_Picture":
        """Index a Snapshot."""
        members = {member.uid: member for member in snapshot.strays}
        members.update((m.uid, m) for gang in snapshot.gangs for m in gang.members)
        return cls(
            nodes={node.name: node for node in snapshot.nodes},
            gangs={gang.key: gang for gang in snapshot.gangs},
            members=members,
            gang_of={m.uid: gang.key for gang in snapshot.gangs for m in gang.members},
        )


def _asked(member: Member) -> Amounts:
    return {**dict(member.shape.requests.amounts), "pods": 1}


def violations(snapshot: Snapshot, plan: Plan) -> tuple[str, ...]:
    """What the plan breaks, one sentence each; empty if every promise holds."""
    return tuple(_broken(snapshot, plan.placements))


def upheld(snapshot: Snapshot, placements: Sequence[Placement]) -> tuple[Placement, ...]:
    """The placements that break nothing in this Snapshot, counted together, the first ones first.

    The world may have moved on since they were planned.
    """
    seen = _Picture.of(snapshot)
    books = _Books.of(snapshot, seen)
    sound: list[Placement] = []
    for placement in placements:
        trial = books.on_trial(one.node for one in placement.assignments)
        if not any(True for _ in _faults(placement, seen, trial)):
            books.ledger.left.update(trial.ledger.left)
            sound.append(placement)
    return tuple(sound)


def _broken(snapshot: Snapshot, placements: Sequence[Placement]) -> Iterator[str]:
    seen = _Picture.of(snapshot)
    books = _Books.of(snapshot, seen)
    for placement in placements:
        yield from _faults(placement, seen, books)


@dataclass(frozen=True, slots=True)
class _Books:
    """What is promised so far: room, pods, and gangs."""

    ledger: _Ledger
    pods: set[Uid]
    gangs: set[GangKey]

    @classmethod
    def of(cls, snapshot: Snapshot, seen: _Picture) -> "_Books":
        """Start from what is used and what standing Reservations hold."""
        books = cls(
            _Ledger.of(snapshot),
            {entry.uid for held in snapshot.reservations for entry in held.entries},
            {held.gang for held in snapshot.reservations},
        )
        for held in snapshot.reservations:
            for node, asked in _held(held, seen):
                books.ledger.take(node, asked)
        return books

    def on_trial(self, nodes: Iterable[NodeName]) -> "_Books":
        """The same books with a copy of the room on these nodes; names are not given back."""
        known = self.ledger.left
        left = {node: dict(known[node]) for node in nodes if node in known}
        return _Books(_Ledger(left), self.pods, self.gangs)


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


def _wrong(
    one: Assignment, gang: Gang, seen: _Picture, taken: set[Uid], ledger: _Ledger
) -> Iterator[str]:
    """What is wrong with one assignment; its room is taken from the ledger."""
    member, node = seen.members.get(one.uid), seen.nodes.get(one.node)
    if member is None or member.key != one.pod or seen.gang_of.get(one.uid) != gang.key:
        yield f"pod {one.pod}: it is no member of gang {gang.key}"
        return
    if node is None:
        yield f"pod {one.pod}: there is no node {one.node}"
        return
    if one.uid in taken:
        yield f"pod {one.pod}: it has a node already"
    if not member.is_waiting or member.unmodelled or not gang.has_place_for(member):
        yield f"pod {one.pod}: it cannot be placed now"
    if (why := fits_node(member.shape, node)) is not None:
        yield f"pod {one.pod}: node {one.node} will not do: {why}"
    if lacking := ledger.lacks(one.node, _asked(member)):
        yield f"pod {one.pod}: node {one.node} has too little {', '.join(lacking)}"
    ledger.take(one.node, _asked(member))


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


def _held(held: Reservation, seen: _Picture) -> Iterator[tuple[NodeName, Amounts]]:
    """The room that a Reservation holds and no node counts as used."""
    gang = seen.gangs.get(held.gang)
    siblings = gang.members if gang is not None else ()
    for entry in held.entries:
        member = seen.members.get(entry.uid)
        if member is None:
            yield entry.node, _most(siblings)
        elif member.node is None:
            yield entry.node, _asked(member)
    for slots in held.slots:
        most = _most([member for member in siblings if member.role == slots.role])
        yield slots.node, {name: n * slots.count for name, n in most.items()}


def _most(members: Sequence[Member]) -> Amounts:
    most: dict[str, int] = {}
    for member in members:
        for name, n in _asked(member).items():
            most[name] = max(n, most.get(name, 0))
    return most


def takes(node: Node, member: Member) -> bool:
    """Whether the node has room for the member beside what is bound there, promises aside."""
    left = dict(node.allocatable.amounts)
    for name, n in node.used.amounts:
        left[name] = left.get(name, 0) - n
    has_room = all(n <= max(left.get(name, 0), 0) for name, n in _asked(member).items())
    return has_room and fits_node(member.shape, node) is None


def lost_entries(snapshot: Snapshot) -> Mapping[Uid, tuple[Entry, ...]]:
    """The entries that can no longer be carried out, by the uid of their gang.

    Where a node cannot keep all promises, the oldest Reservations keep theirs.
    """
    seen = _Picture.of(snapshot)
    ledger = _Ledger.of(snapshot)
    lost: dict[Uid, tuple[Entry, ...]] = {}
    for held in sorted(snapshot.reservations, key=lambda held: (held.reserved_at, held.gang)):
        lost[held.uid] = tuple(
            entry for entry in held.entries if not _is_upheld(entry, held, seen, ledger)
        )
        for node, asked in _held(replace(held, entries=()), seen):
            ledger.take(node, asked)
    return {uid: entries for uid, entries in lost.items() if entries}


def _is_upheld(entry: Entry, held: Reservation, seen: _Picture, ledger: _Ledger) -> bool:
    """Whether the entry can be, or has been, carried out; if it can, its room is taken."""
    member, node = seen.members.get(entry.uid), seen.nodes.get(entry.node)
    if member is None:
        return False
    if member.node == entry.node:
        return True
    if node is None or not member.is_waiting or not _belongs(member, held.gang):
        return False
    if fits_node(member.shape, node) is not None or ledger.lacks(entry.node, _asked(member)):
        return False
    ledger.take(entry.node, _asked(member))
    return True


def _belongs(member: Member, gang: GangKey) -> bool:
    own = member.group if gang.origin is Origin.POD_GROUP else member.key.name
    return (member.key.namespace, own) == (gang.namespace, gang.name)
