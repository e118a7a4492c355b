"""Lists of what the steps of all standing Reservations require, for the commit to carry out.

``progress`` computes the step of each Reservation by itself.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..gang import demand
from ..model.cluster import Gang, Member, Reservation, Snapshot
from ..model.decisions import Assignment, Released
from ..model.keys import GangKey, NodeName, Uid
from ..model.volumes import VolumeChoice
from .progress import (
    Await,
    Bind,
    BindVolumes,
    Clear,
    Discard,
    Evict,
    Finish,
    Preempt,
    Release,
    Step,
    Steps,
    Trim,
    awaited,
)

WHOLE = "the gang is not given up any more"
UNFIT = "its node will not do any more"


def bindings(steps: Steps) -> Sequence[tuple[GangKey, Assignment]]:
    """The members that are still to be bound, with their gang."""
    return [
        (reservation.gang, assignment)
        for reservation, step in steps
        if isinstance(step, Bind)
        for assignment in step.assignments
    ]


class Start(NamedTuple):
    """A Reservation that gives a gang enough members, and none of whose members is bound yet."""

    gang: Gang
    bound: Sequence[Member]
    members: Sequence[tuple[Member, NodeName]]  # with placeholders of absent members at the end

    def suffices(self, members: Iterable[Member]) -> bool:
        """Whether the gang has enough members if there is room for these."""
        return demand.is_enough(self.gang, [*self.bound, *members])


def starts(steps: Steps, snapshot: Snapshot, members: Mapping[Uid, Member]) -> Iterator[Start]:
    """The gangs that have enough members once those of a Reservation are bound; none is yet.

    ``members`` are those of the Snapshot, by uid.
    """
    gangs = {gang.uid: gang for gang in snapshot.gangs}
    for reservation, step in steps:
        if not isinstance(step, Bind) or step.relies_on is not None:
            continue
        gang = gangs.get(reservation.uid)
        reserved = [members[entry.uid] for entry in reservation.entries if entry.uid in members]
        if gang is None or any(member.counts_as_bound for member in reserved):
            continue
        waiting = [(members[own.uid], own.node) for own in step.assignments]
        waiting += awaited(reservation, gang, snapshot.taken_at)
        start = Start(gang, demand.count_members(gang).bound, waiting)
        if start.suffices(member for member, _ in waiting):
            yield start


def choices(steps: Steps) -> Sequence[tuple[GangKey, VolumeChoice]]:
    """The claims that are still to be bound, with their gang, or one of those that share them."""
    gangs = {
        choice: reservation.gang
        for reservation, step in steps
        if isinstance(step, BindVolumes)
        for choice in step.choices
    }
    return [(gang, choice) for choice, gang in gangs.items()]


def failures(steps: Steps) -> Sequence[tuple[GangKey, Uid, str]]:
    """The members whose claims get no volume, with their gang and the reason."""
    return [
        (reservation.gang, step.failed, _sentence(step))
        for reservation, step in steps
        if isinstance(step, Release | Finish | Trim) and step.failed is not None
    ]


def _sentence(step: Release | Finish | Trim) -> str:
    return UNFIT if isinstance(step, Trim) else step.sentence


def relied_on(steps: Steps) -> Mapping[GangKey, Member]:
    """By gang with members to replace or add, the bound member that this relies on."""
    return {
        reservation.gang: step.relies_on
        for reservation, step in steps
        if isinstance(step, Bind) and step.relies_on is not None
    }


def uids_going_on(steps: Steps) -> Collection[Uid]:
    """The uids of Reservations that go on, and of the pods that they still bind."""
    going_on: set[Uid] = set()
    for reservation, step in steps:
        if isinstance(step, Bind | BindVolumes | Trim | Await | Preempt):
            going_on.add(reservation.uid)
        if isinstance(step, Bind):
            going_on.update(assignment.uid for assignment in step.assignments)
    return going_on


def evictable(steps: Steps) -> Mapping[Uid, Member]:
    """The members that Reservations evict, as they were when the steps were computed."""
    return {
        member.uid: member
        for _, step in steps
        if isinstance(step, Evict | Preempt)
        for member in step.members
    }


def discarded(steps: Steps) -> Sequence[Reservation]:
    """Reservations of leaders that had lost the Lease when they made them."""
    return [reservation for reservation, step in steps if isinstance(step, Discard)]


def releases(steps: Steps) -> Sequence[Released]:
    """Reservations that cannot be carried out and have no bound member."""
    return [
        Released(reservation, step.sentence)
        for reservation, step in steps
        if isinstance(step, Release)
    ]


def ended(steps: Steps) -> Sequence[Released]:
    """All Reservations that end or shrink now, without Reservations that are done."""
    return [
        released
        for reservation, step in steps
        if (released := _released(reservation, step)) is not None
    ]


def announced(steps: Steps) -> Sequence[Released]:
    """The Reservations of ``ended`` that are reported, because they have a sentence."""
    return [
        Released(reservation, step.sentence)
        for reservation, step in steps
        if isinstance(step, Release | Finish) and step.sentence
    ]


def done(steps: Steps) -> Sequence[Reservation]:
    """Reservations with nothing left to bind or to free."""
    return [reservation for reservation, step in steps if isinstance(step, Clear)]


def without_writes(step: Step) -> Step:
    """The step, if it leaves the Reservation as it is; else ``Await``."""
    return step if isinstance(step, Bind | Evict | Preempt) else Await()


def _released(reservation: Reservation, step: Step) -> Released | None:
    match step:
        case Finish(sentence=sentence):
            return Released(reservation, sentence or (WHOLE if reservation.evict else UNFIT))
        case Release(sentence=sentence):
            return Released(reservation, sentence)
        case Trim(rest=rest):  # bound members, whose claims are bound
            return Released(reservation, UNFIT, replace(reservation, entries=rest, volumes=()))
        case _:
            return None
