"""What is wrong with the claims of a plan, and with starts of gangs that cannot be ended."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from math import inf

from ...model.cluster import Gang, Member, PodReservation, Reservation, Snapshot
from ...model.decisions import Claim, Placement, Plan
from ...model.keys import GangKey
from ...model.queues import ROOT, Preemption, Queue, QueueMode
from .. import lookup
from ..inter_pod import InterPodChecker
from . import budgets, covers
from .judge import ClaimJudge, Modes


def faults(snapshot: Snapshot, plan: Plan, setting: Preemption) -> tuple[str, ...]:
    """What is wrong with the claims of a plan, once its placements are carried out.

    The ``setting`` holds for queues without a declaration of their own. If it is off, no gang may
    claim.
    """
    if not plan.claims:
        return ()
    modes = {queue.name: _mode(queue, setting) for queue in snapshot.queues} | {ROOT: setting}
    if setting is Preemption.OFF:
        modes = {}
    refused = {gang.uid for gang in snapshot.gangs if gang.uid in snapshot.protected}
    spared = [
        f"gang {claim.gang}: its victim {victim.gang} could not be evicted a while ago"
        for claim in plan.claims
        for victim in claim.victims
        if victim.uid in refused
    ]
    placed, after = {p.gang for p in plan.placements}, _once_placed(snapshot, plan.placements)
    protected = _protected(after, budgets.unendable(after) if after.queues else ())
    broken = violations(after, plan.claims, modes, protected)
    if broken and placed:
        # Borrowers start after the claims by guarantee, but a walk may take them earlier.
        broken = violations(after, plan.claims, modes, protected, later=placed)
    return (*spared, *budgets.faults(snapshot, plan.claims), *broken)


def _mode(queue: Queue, setting: Preemption) -> Preemption:
    if queue.mode is QueueMode.SHADOW:
        return Preemption.OFF
    return setting if queue.preemption is None else queue.preemption


def borrowers(snapshot: Snapshot, placements: Sequence[Placement]) -> Mapping[GangKey, str]:
    """A sentence for each gang that starts, cannot be ended, and is not covered by its own queue.

    The Snapshot comes from ``with_charged_pods``.
    """
    if not snapshot.queues:
        return {}
    starts = {placement.gang: placement for placement in placements}
    gangs = {gang.key: gang for gang in snapshot.gangs if gang.key in starts}
    new = {key for key, gang in gangs.items() if not any(map(_runs, gang.members))}
    unendable = budgets.unendable(snapshot)
    sentences = {
        key: f"gang {key}: its record does not say whether it can be ended"
        for key in sorted(new)
        if (record := starts[key].record) is not None
        and record.is_protected is not (gangs[key].is_protected or key in unendable)
    }
    records = (*snapshot.records.values(), *(start.record for start in placements))
    if not any(record is not None and record.is_protected for record in records):
        return sentences
    after = _once_placed(snapshot, [starts[key] for key in new])
    protected = _protected(after, unendable)
    if not new & protected:
        return sentences
    judge = ClaimJudge.of(after, {}, protected)
    running = [
        replace(gang, started=inf) if key in new else gang for key, gang in judge.running.items()
    ]
    covered = covers.covered(judge.queues, running)
    for gang in running:
        if gang.key in new & protected and covered.get((gang.key, "")) != gang.queue:
            sentences[gang.key] = f"gang {gang.key}: it cannot be ended, and it would borrow"
    return sentences


def _runs(member: Member) -> bool:
    return member.counts_as_bound and not member.is_over


def _protected(snapshot: Snapshot, unendable: Collection[GangKey]) -> AbstractSet[GangKey]:
    """The gangs that cannot be ended: by their PodGroup, or by the record of their start.

    While there are Queues, a gang that holds room is as it was when it started, and budgets and
    graces count of a gang that waits.
    """
    records = snapshot.records if snapshot.queues else {}
    has_room = {r.uid for r in snapshot.reservations if r.entries or r.slots}
    return {
        gang.key
        for gang in snapshot.gangs
        if (
            (record := records.get(gang.uid)) is not None and record.is_protected
            if snapshot.queues and (gang.uid in has_room or _present(gang))
            else gang.is_protected or gang.key in unendable
        )
    }


def _present(gang: Gang) -> bool:
    return any(member.node is not None and not member.is_over for member in gang.members)


def _once_placed(snapshot: Snapshot, placements: Sequence[Placement]) -> Snapshot:
    """The Snapshot in which the placements have Reservations."""
    placed = {placement.uid: placement for placement in placements}
    standing = {reservation.uid: reservation for reservation in snapshot.reservations}
    for uid, placement in placed.items():
        before = standing.get(uid)
        new = [
            PodReservation(assignment.pod, assignment.uid, assignment.node)
            for assignment in placement.assignments
        ]
        standing[uid] = Reservation(
            placement.gang,
            uid,
            placement.generation,
            "",
            "",
            snapshot.taken_at,
            (*(before.entries if before is not None else ()), *new),
            placement.slots,
            record=placement.record if before is None else before.record,
            volumes=(*(before.volumes if before is not None else ()), *placement.volumes),
        )
    return replace(snapshot, reservations=tuple(standing.values()))


def _rule_faults(
    snapshot: Snapshot, claims: Sequence[Claim], seen: lookup.SnapshotLookup
) -> Iterator[str]:
    """The members of claimants whose nodes depend on other pods, or that anti-affinity forbids."""
    if not (claims and lookup.may_have_rules(snapshot)):
        return
    own = [
        (member, assignment.node)
        for claim in claims
        for assignment in claim.assignments
        if (member := seen.members(claim.gang).get(assignment.uid)) is not None
    ]
    held = [p for r in snapshot.reservations for _, p in lookup.unbound_members(r, seen)]
    absent = [p for r in snapshot.reservations for p in lookup.absent_members(r, seen)]
    checker = InterPodChecker(snapshot, [*own, *held, *absent])
    for member, node in own:
        rules = member.shape.rules
        if rules.affinity or any(spread.peers.selector for spread in rules.spread):
            yield f"pod {member.key}: it claims node {node}, which depends on other pods"
        else:
            yield from checker.faults(member, node)


def violations(
    snapshot: Snapshot,
    claims: Sequence[Claim],
    modes: Modes,
    protected: Collection[GangKey],
    *,
    later: Collection[GangKey] = (),
) -> tuple[str, ...]:
    """A sentence for each claim that is not allowed or has no room.

    ``modes`` are by queue; a queue that is missing is off. Gangs that start ``later`` are counted
    after the claims by guarantee, but their room is taken before.
    """
    judge = ClaimJudge.of(snapshot, modes, protected)
    before = judge.measure()
    borrowers = {key: judge.running.pop(key) for key in later if key in judge.running}
    sentences = [*_rule_faults(snapshot, claims, judge.seen)]
    sentences += [s for claim in claims if claim.by_guarantee for s in judge.judged(claim)]
    judge.running |= borrowers
    sentences += [s for claim in claims if not claim.by_guarantee for s in judge.judged(claim)]
    if any(claim.victims for claim in claims) and judge.measure() <= before:
        sentences.append("gangs end, and the plan comes no closer to rest")
    return tuple(sentences)
