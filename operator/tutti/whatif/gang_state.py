"""The state of a gang, whether it waits or not, and the nodes of its members."""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from ..gang import demand, domain_rules, health
from ..model.cluster import Gang, Snapshot
from ..model.decisions import Plan
from ..model.keys import GangKey, NodeName
from ..queues.use import GangCover
from .results import OPTIONAL


class GangOutcome(StrEnum):
    """What state a gang is in."""

    WAITS = "waits"
    STARTS = "starts"  # the plan places it
    RESERVED = "reserved"  # and is being bound
    BOUND = "bound"
    PARTIAL = "partly bound"  # it has lost members
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class GangStanding:
    """The state of one gang; ``nodes`` are where its members are, or will be."""

    gang: GangKey
    state: GangOutcome
    needed: int
    bound: int  # members that count as bound
    nodes: tuple[tuple[NodeName, int], ...] = ()
    ailment: str = ""  # what a gang that has started lacks
    hindrance: str = ""  # why it does not start, though this plan places it
    # Which preferred levels of a topology it does without; not in data where it is empty.
    preference: str = field(default="", metadata={OPTIONAL: True})
    # For each level that it names; not in data where it names none, or has no node.
    domains: tuple[domain_rules.LevelDomains, ...] = field(default=(), metadata={OPTIONAL: True})
    # If it runs in a queue; not in data otherwise.
    cover: GangCover | None = field(default=None, metadata={OPTIONAL: True})


def standing(snapshot: Snapshot, plan: Plan, key: GangKey) -> GangStanding | None:
    """The state of the gang with this key; None if there is none."""
    gang = next((gang for gang in snapshot.gangs if gang.key == key), None)
    if gang is None:
        return None
    census = demand.count_members(gang)
    state = _state(gang, snapshot, plan, is_started=census.is_committed)
    roles = {member.uid: member.role for member in gang.members}
    places = [(m.role, m.node) for m in gang.members if m.node and not m.is_over]
    if state is GangOutcome.STARTS:
        own = [p for p in plan.placements if p.gang == key]
        places += [(roles.get(a.uid, ""), a.node) for p in own for a in p.assignments]
        places += [
            (slot.role, slot.node) for p in own for slot in p.slots for _ in range(slot.count)
        ]
    if state is GangOutcome.RESERVED:
        bound = {member.uid for member in gang.members if member.node is not None}
        reserved = [r for r in snapshot.reservations if r.gang == key]
        entries = [e for r in reserved for e in r.entries if e.uid not in bound]
        places += [(roles.get(e.uid, ""), e.node) for e in entries]
        places += [(s.role, s.node) for r in reserved for s in r.slots for _ in range(s.count)]
    nodes = {node.name: node for node in snapshot.nodes}
    ready = {name: node.ready for name, node in nodes.items()}
    ailment = health.ailment(gang, ready, health.PreviousStatus()) if census.is_committed else None
    return GangStanding(
        gang=key,
        state=state,
        needed=demand.min_members(gang),
        bound=len(census.bound) + len(gang.finished),
        nodes=tuple(sorted(Counter(node for _, node in places).items())),
        ailment="" if ailment is None else f"{ailment.cause}: {ailment.sentence}",
        preference=(
            domain_rules.preference_note(gang, places, nodes, snapshot.topologies) if places else ""
        ),
        domains=domain_rules.level_domains(gang, places, nodes, snapshot.topologies),
    )


def _state(gang: Gang, snapshot: Snapshot, plan: Plan, *, is_started: bool) -> GangOutcome:
    if any(reservation.gang == gang.key for reservation in snapshot.reservations):
        return GangOutcome.RESERVED
    if health.is_whole(gang):
        return GangOutcome.FINISHED if gang.is_idle else GangOutcome.BOUND
    if any(placement.gang == gang.key for placement in plan.placements):
        return GangOutcome.STARTS
    return GangOutcome.PARTIAL if is_started else GangOutcome.WAITS
