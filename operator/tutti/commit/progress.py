"""The next step for a standing Reservation, from the observed state alone.

There is no recovery code: a Reservation that is found after a crash takes the same path as a
Reservation that was created a moment ago.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ..filters.volume_choice import BIND_SECONDS, ChoiceState, ChoiceStates, Stage
from ..gang import demand, health, slots, timeouts
from ..gang.slots import Places
from ..model.cluster import (
    Gang,
    Member,
    PodReservation,
    Reservation,
    ReservedVictim,
    Snapshot,
)
from ..model.decisions import Assignment
from ..model.keys import LeaderTerm, NodeName, Uid
from ..model.volumes import VolumeChoice
from ..planning import partial_release
from ..verify import reservation_checks
from ..verify.queues import starts
from ..verify.reservation_checks import Unkeepable


@dataclass(frozen=True, slots=True)
class Bind:
    """Carry the Reservation out: bind these assignments, which are not bound yet.

    A repair relies on a bound member: without it, the assignments would be only a part of a gang.
    ``relies_on`` is None if the Reservation has enough members to start the gang.
    """

    assignments: tuple[Assignment, ...]
    relies_on: Member | None = None


@dataclass(frozen=True, slots=True)
class BindVolumes:
    """Bind these claims, and wait until all claims of members that are not bound yet are bound.

    Claims that wait for the PV controller or a provisioner are not among ``choices``.
    """

    choices: tuple[VolumeChoice, ...]


@dataclass(frozen=True, slots=True)
class Release:
    """Give the room back: nothing of it is bound, and it cannot be carried out as it stands.

    ``failed`` is the member whose claim got no volume, if that is why.
    """

    sentence: str
    failed: Uid | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """Delete the Reservation: all of it that can be bound is bound, and it awaits no member.

    The ``sentence`` reports room that is given back; it is empty if there is nothing to report.
    ``failed`` is as of ``Release``.
    """

    sentence: str = ""
    failed: Uid | None = None


@dataclass(frozen=True, slots=True)
class Clear:
    """Delete the Reservation at any time: all of it is bound, and the gang is whole."""


@dataclass(frozen=True, slots=True)
class Trim:
    """Keep the room for members that do not exist yet; give back what cannot be carried out.

    ``failed`` is as of ``Release``.
    """

    rest: tuple[PodReservation, ...]
    failed: Uid | None = None


@dataclass(frozen=True, slots=True)
class Await:
    """Leave the Reservation as it is: members that do not exist yet may still come."""


@dataclass(frozen=True, slots=True)
class Discard:
    """Delete the Reservation: the replica that signed it no longer leads, and bound none of it."""


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict these members: the gang is given up for now, and they hold its room."""

    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Preempt:
    """Evict these members: they are victims of a claim, whose placement waits for their room."""

    members: tuple[Member, ...]
    begun: Collection[Uid]  # victims that have lost members to the claim


Step = Bind | BindVolumes | Release | Finish | Clear | Trim | Await | Discard | Evict | Preempt
Steps = tuple[tuple[Reservation, Step], ...]


def members_by_uid(snapshot: Snapshot) -> Mapping[Uid, Member]:
    """Every member in the Snapshot, including strays."""
    members = {member.uid: member for gang in snapshot.gangs for member in gang.members}
    members.update((member.uid, member) for member in snapshot.strays)
    return members


def next_steps(
    snapshot: Snapshot,
    term: LeaderTerm,
    inherited: Collection[Uid | None] = (),
    *,
    preempts: bool = True,
    volume_seconds: float = BIND_SECONDS,
) -> Steps:
    """The next step for every standing Reservation, the oldest first.

    Without ``preempts``, a claim that has no bound member is given up: no gang ends for it.
    ``inherited`` has the objects, by uid, that stood when ``term`` began. An inherited Reservation
    without the signature of ``term`` keeps its room and is left alone. Any other Reservation of
    another term is discarded: the leader that made it had lost the Lease by then, and noticed that
    before its first binding. A claim must be bound within ``volume_seconds`` of its Reservation.
    """
    others = [reservation for reservation in snapshot.reservations if reservation.term != term]
    discarded = [reservation for reservation in others if reservation.self_uid not in inherited]
    standing = tuple(
        reservation
        for reservation in snapshot.reservations
        if reservation.term == term or reservation.self_uid in inherited
    )
    volumes = VolumeProgress(ChoiceStates.of(snapshot.storage), snapshot.taken_at - volume_seconds)
    steps = _steps(replace(snapshot, reservations=standing), volumes, preempts=preempts)
    own = ((reservation, step) for reservation, step in steps if reservation.term == term)
    return (*((reservation, Discard()) for reservation in discarded), *own)


@dataclass(frozen=True, slots=True)
class VolumeProgress:
    """How far the claims of members have come; since ``deadline`` claims have had enough time."""

    states: ChoiceStates
    deadline: float  # seconds since the epoch

    def pending(self, reservation: Reservation, members: Sequence[Member]) -> "PendingVolumes":
        """The claims of these members that are not bound."""
        is_late = reservation.reserved_at <= self.deadline
        choices: dict[VolumeChoice, None] = {}  # members may share a claim
        failed: dict[Uid, ChoiceState] = {}
        is_waiting = False
        for member in members:
            states = [
                state
                for state in self.states.of_members(reservation, [member])
                if state.stage is not Stage.BOUND
            ]
            lost = [state for state in states if state.stage is Stage.LOST]
            late = [state._replace(sentence=f"{state.sentence} in time") for state in states]
            if why := [*lost, *(late if is_late else ())]:
                failed[member.uid] = why[0]
            else:
                is_waiting |= bool(states)
                choices |= {s.choice: None for s in states if s.stage is Stage.CHOSEN}
        return PendingVolumes(tuple(choices), failed, is_waiting=is_waiting)


@dataclass(frozen=True, slots=True)
class PendingVolumes:
    """The choices to write, and by member why a claim gets no volume."""

    choices: tuple[VolumeChoice, ...]
    failed: Mapping[Uid, ChoiceState]
    is_waiting: bool  # whether a claim of another member is not bound

    @property
    def first_failed(self) -> Uid | None:
        """The first member whose claim gets no volume although one was chosen."""
        return next((uid for uid, state in self.failed.items() if state.choice.uid), None)

    @property
    def sentence(self) -> str:
        """Why a claim gets no volume; empty if all may."""
        return next((f"{why.sentence}; planning again" for why in self.failed.values()), "")


@dataclass(frozen=True, slots=True)
class _Observed:
    """A Snapshot, its members by uid, and how far their claims have come."""

    snapshot: Snapshot
    members: Mapping[Uid, Member]
    volumes: VolumeProgress


def _steps(snapshot: Snapshot, volumes: VolumeProgress, *, preempts: bool) -> Steps:
    unkeepable = reservation_checks.lost(snapshot)
    members = members_by_uid(snapshot)
    gangs = {gang.uid: gang for gang in snapshot.gangs}
    ordered = sorted(
        snapshot.reservations, key=lambda reservation: (reservation.reserved_at, reservation.gang)
    )
    claims = _claim_steps(snapshot, gangs, members, unkeepable) if preempts else {}
    seen = _Observed(snapshot, members, volumes)
    return tuple(
        (
            reservation,
            claims.get(reservation.uid)
            or _next_step(
                reservation,
                gangs.get(reservation.uid),
                unkeepable.get(reservation.uid, Unkeepable()),
                seen,
            ),
        )
        for reservation in ordered
    )


def _next_step(
    reservation: Reservation,
    gang: Gang | None,
    unkeepable: Unkeepable,
    seen: _Observed,
) -> Step:
    """The steps of design §4: lost before the first binding → release; after it → go on."""
    snapshot, members, volumes = seen.snapshot, seen.members, seen.volumes
    if reservation.evict:
        return _next_eviction(reservation, gang, members)
    now = snapshot.taken_at
    lost_entries = frozenset(unkeepable.entries)
    is_open = slots.are_open(reservation, gang, now)
    here = [(entry, members.get(entry.uid)) for entry in reservation.entries]
    reserved = [member for _, member in here if member is not None]
    bound = _bound_member(gang, reserved)
    why = _why_not_begin(reservation, gang, reserved, unkeepable, snapshot) if bound is None else ""
    waiting = [member for member in reserved if member.is_waiting]
    pending = volumes.pending(reservation, waiting)
    if why or (bound is None and pending.failed):
        return Release(why or pending.sentence, None if why else pending.first_failed)
    lost_entries |= {entry for entry in reservation.entries if entry.uid in pending.failed}
    open_entries = tuple(
        Assignment(member.key, member.uid, member.version, entry.node, entry.claims)
        for entry, member in here
        if member is not None and member.is_waiting and entry not in lost_entries
    )
    if open_entries:
        is_repair = gang is not None and not _starts(reservation, gang, reserved, now)
        bind = Bind(open_entries, bound if is_repair else None)
        return BindVolumes(pending.choices) if pending.is_waiting else bind
    if is_open or timeouts.may_be_bound(reserved, now):
        return _next_wait(reservation, here, lost_entries, pending.first_failed)
    if gang is not None and _is_plain(reservation, gang, reserved, snapshot):
        return Clear()
    sentence = pending.sentence or slots.timeout_message(reservation, gang, now)
    return Finish(sentence, pending.first_failed)


def _bound_member(gang: Gang | None, reserved: Sequence[Member]) -> Member | None:
    """A bound member that the gang or its Reservation may rely on; None if none is bound.

    Members of roles that the gang needs come first: others may be of an earlier stage.
    """
    bound = demand.count_members(gang).bound if gang is not None else ()
    needed = {role.name for role in gang.roles if role.min_member} if gang is not None else set()
    first = [member for member in bound if member.role in needed]
    return next((member for member in (*first, *bound, *reserved) if member.counts_as_bound), None)


def _is_plain(
    reservation: Reservation, gang: Gang, reserved: Sequence[Member], snapshot: Snapshot
) -> bool:
    """Whether all that the Reservation names is bound and alive, and is enough for the gang.

    Nothing then depends on its deletion. If its deletion was refused, that has to be reported.
    """
    if (
        reservation.slots
        or reservation.victims
        or reservation.uid in snapshot.api_refusals
        or len(reserved) < len(reservation.entries)
    ):
        return False
    is_bound = all(
        member.node is not None and not (member.is_over or member.is_handed_over)
        for member in reserved
    )
    return is_bound and health.is_whole(gang)


def _why_not_begin(
    reservation: Reservation,
    gang: Gang | None,
    reserved: Sequence[Member],
    unkeepable: Unkeepable,
    snapshot: Snapshot,
) -> str:
    """Why a Reservation without a bound member cannot be carried out; empty if it can."""
    if gang is None or gang.terminating:
        return "its PodGroup is gone; nothing of it was bound"
    if unkeepable:
        return _release_sentence(unkeepable.entries, unkeepable.slots)
    waiting = [member for member in reserved if member.is_waiting]
    if not waiting or not _starts(reservation, gang, waiting, snapshot.taken_at):
        return "the gang needs other members by now; planning again"
    refusals = (snapshot.api_refusals.get(member.uid) for member in waiting)
    sentences = (
        refusal.sentence
        for refusal in refusals
        if refusal is not None and snapshot.taken_at < refusal.until
    )
    return next(sentences, "")


def _starts(reservation: Reservation, gang: Gang, members: Sequence[Member], now: float) -> bool:
    """Whether these members, with the members that the Reservation awaits, would start the gang."""
    absent = (member for member, _ in awaited(reservation, gang, now))
    return demand.is_enough(gang, [*members, *absent])


def awaited(reservation: Reservation, gang: Gang, now: float) -> Sequence[tuple[Member, NodeName]]:
    """Placeholders of the members that the Reservation awaits, with their nodes."""
    if not slots.are_open(reservation, gang, now):
        return ()
    return slots.placeholders_of_slots(gang, reservation.slots)


def _next_wait(
    reservation: Reservation,
    here: Sequence[tuple[PodReservation, Member | None]],
    lost_entries: Collection[PodReservation],
    failed: Uid | None,
) -> Step:
    """The step if nothing is left to bind and members are awaited.

    It keeps the slots, and the entries of bound members.
    """
    rest = tuple(
        entry
        for entry, member in here
        if member is not None and member.node is not None and entry not in lost_entries
    )
    return Await() if rest == reservation.entries else Trim(rest, failed)


def _claim_steps(
    snapshot: Snapshot,
    gangs: Mapping[Uid, Gang],
    members: Mapping[Uid, Member],
    unkeepable: Mapping[Uid, Unkeepable],
) -> Mapping[Uid, Step]:
    """The steps of claims without a bound member, by uid of the gang.

    A claim that can be carried out like any Reservation is left out.
    """
    claims = [held for held in snapshot.reservations if held.victims is not None]
    lost_for_good = reservation_checks.lost_for_good(snapshot) if claims else {}
    reserved_of = {
        claim.uid: [members[entry.uid] for entry in claim.entries if entry.uid in members]
        for claim in claims
    }
    unbound = [
        claim
        for claim in claims
        if _bound_member(gangs.get(claim.uid), reserved_of[claim.uid]) is None
    ]
    ends_of = {
        claim.uid: {v.uid: VictimProgress.of(v, snapshot) for v in claim.victims or ()}
        for claim in unbound
    }
    limited = starts.LimitedClaims()
    if unbound and snapshot.queues:
        staying = {
            uid: {member.uid for end in ends.values() for member in end.staying}
            for uid, ends in ends_of.items()
        }
        limited = starts.limited_claims(snapshot, unbound, staying)
    steps = {}
    for claim in unbound:
        gang, reserved = gangs.get(claim.uid), reserved_of[claim.uid]
        gone = lost_for_good.get(claim.uid, Unkeepable())
        why = _why_not_begin(claim, gang, reserved, gone, snapshot)
        if (stuck := limited.stuck.get(claim.gang)) is not None:
            why = why or _stuck_sentence(stuck)
        has_room = claim.uid not in unkeepable and claim.gang not in limited.ending
        step = _next_claim(claim, ends_of[claim.uid], why, snapshot, has_room=has_room)
        if step is None and claim.gang in limited.waiting:
            step = Await()
        if step is not None:
            steps[claim.uid] = step
    return steps


def _next_claim(
    claim: Reservation,
    ends: Mapping[Uid, "VictimProgress"],
    why: str,
    snapshot: Snapshot,
    *,
    has_room: bool,
) -> Step | None:
    """The next step of a claim; None once it can be carried out.

    ``ends`` has the progress of its victims by uid. ``why`` says why it cannot be carried out even
    after its victims have gone, or is empty. A gang that has lost members to the claim ends whole,
    even if the claim is given up. A victim that has lost no member stays if there is room without
    it, on nodes and below limits.
    """
    begun = [uid for uid, end in ends.items() if end.is_begun]
    staying = [
        member
        for uid, end in ends.items()
        if uid in begun or not (why or has_room)
        for member in end.staying
    ]
    if staying:
        return Preempt(tuple(staying), begun)
    if why:
        return Release(stuck_sentence(claim, snapshot) or why)
    now = snapshot.taken_at
    is_leaving = any(member.is_leaving(now) for uid in begun for member in ends[uid].leaving)
    return None if has_room and not is_leaving else Await()


@dataclass(frozen=True, slots=True)
class VictimProgress:
    """How far the end of a victim has come."""

    staying: tuple[Member, ...]  # hold room, and have not been evicted
    leaving: tuple[Member, ...]  # terminate, and still hold room
    is_begun: bool  # some members have gone, or terminate

    @classmethod
    def of(cls, victim: ReservedVictim, snapshot: Snapshot) -> "VictimProgress":
        """The progress of a victim.

        If it ends whole, its later members count, too, until all that the claim names have gone:
        then they belong to its next run.
        """
        gangs = {gang.uid: gang for gang in snapshot.gangs}
        members = members_by_uid(snapshot)
        named = [members[pod] for pod in victim.pods if pod in members]
        gang, held = gangs.get(victim.uid), [m for m in named if m.node is not None]
        is_leaving = victim.is_whole and not all(m.is_over for m in held)
        others = gang.members if gang is not None and is_leaving else ()
        present = {m.uid: m for m in (*held, *others) if m.node is not None and not m.is_over}
        staying = tuple(m for m in present.values() if not m.terminating)
        leaving = tuple(m for m in present.values() if m.terminating)
        return cls(staying, leaving, has_begun(victim, members))


def has_begun(victim: ReservedVictim, members: Mapping[Uid, Member]) -> bool:
    """Whether pods that the claim names have gone, or terminate."""
    return any(uid not in members or members[uid].terminating for uid in victim.pods)


def stuck_sentence(reservation: Reservation, snapshot: Snapshot) -> str:
    """Which pod has not gone in time from the nodes of a claim; empty if there is none."""
    nodes = {entry.node for entry in reservation.entries}
    stuck = (
        member
        for member in snapshot.pods
        if member.node in nodes and member.is_stuck(snapshot.taken_at)
    )
    first = min(stuck, key=lambda member: member.key, default=None)
    return "" if first is None else _stuck_sentence(first)


def _stuck_sentence(pod: Member) -> str:
    holder = "its kubelet has not ended it: look at the node"
    if pod.finalizers:
        holder = f"it is held by {', '.join(pod.finalizers)}, in its metadata.finalizers"
    return (
        f"VictimStuck: pod {pod.key} should have gone from {pod.node} by now; {holder}; "
        "planning again without its room"
    )


def _next_eviction(
    reservation: Reservation, gang: Gang | None, members: Mapping[Uid, Member]
) -> Step:
    """Evict the remaining members, unless the gang is whole or ``onPartial`` has changed."""
    if gang is None or not partial_release.is_given_up(gang):
        return Finish()
    here = (members.get(uid) for uid in reservation.evict)
    remaining = tuple(
        member for member in here if member is not None and partial_release.is_evictable(member)
    )
    return Evict(remaining) if remaining else Finish()


def _release_sentence(lost_entries: tuple[PodReservation, ...], places: Places) -> str:
    if not lost_entries:
        node, role = min(places)
        return f"an absent member of role {role} would have no room on {node}; planning again"
    first = lost_entries[0]
    more = f" and {len(lost_entries) - 1} more" if len(lost_entries) > 1 else ""
    name = first.pod.name or f"pod {first.uid}"
    return f"{name} can no longer be bound to {first.node}{more}; planning again"
