"""Gangs that run: records, slots, lost members, older runs, and roles that came after the start.

The planner and verify state charges each with code of its own. Their charges must agree, and every
plan must keep the limits as verify counts them.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from tutti.model.cluster import Phase, Reservation, Role, SlotReservation
from tutti.model.decisions import Policy
from tutti.model.keys import NodeName, Uid
from tutti.model.queues import Queue, QueueRecord, RoleAtStart, Stop
from tutti.model.resources import NOTHING, Resources
from tutti.planning import observed_demand
from tutti.planning.plan import plan
from tutti.planning.queued_gangs import queue_gangs
from tutti.strategies import STRATEGIES
from tutti.verify.plan_checks import violations
from tutti.verify.queues.charges import QueueCharges

from ...harness.builders import (
    AMPLE_BUDGET,
    GangBuilder,
    gang,
    node,
    reservation,
    resources,
    snapshot_of,
    space,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.model.cluster import Member, Snapshot

    from ...harness.builders import Part

CPU = 1_000  # milli-CPU
SIZES = (1, 1, 2, 3, 5, 9)  # what members request
OTHER = {"a": "b", "b": "a"}
GONE = "n9"  # a node that does not exist any more


def snapshot(seed: int) -> Snapshot:
    """A small cluster with two queues below one, and gangs most of which run."""
    chance = Random(seed)
    nodes = [f"n{i}" for i in range(chance.randint(1, 2))]
    parts: list[Part] = [space("ml"), *(node(name, cpu=200) for name in nodes), *_queues(chance)]
    strays: list[Member] = []
    relabelled: list[Member] = []
    for number in range(chance.randint(1, 4)):
        made, records = _gang(chance, f"g{number}"), list[Reservation]()
        if chance.random() < 0.75:
            made, records = _running(chance, made, nodes)
        else:
            made = made.but(is_protected=chance.random() < 0.5)
        parts += records
        come = [replace(m, group=made.key.name, role=_roles(made)[0]) for m in relabelled]
        relabelled = [m for m in made.members[:1] if m.node is not None and chance.random() < 0.2]
        made = replace(made, members=(*made.members[len(relabelled) :], *come))
        if records and chance.random() < 0.1:
            strays += made.members  # they belong to no gang any more
            made = replace(made, members=())
        elif chance.random() < 0.2:
            made = made.but(finished=(chance.choice(_roles(made)),))
        parts.append(made)
    return snapshot_of(*parts, strays=strays, at=60.0)


def _queues(chance: Random) -> Iterator[Queue]:
    def of(name: str, parent: str, limit: int, guarantee: int) -> Queue:
        limits = (("cpu", chance.randint(1, limit) * CPU),) if chance.random() < 0.8 else ()
        guaranteed = (("cpu", chance.randint(0, guarantee) * CPU),)
        stop = Stop.HOLD if chance.random() < 0.1 else Stop.NONE
        uid = Uid(f"{name}-1")
        return Queue(name, uid, parent, guaranteed=guaranteed, limits=limits, stop=stop)

    yield of("p", "", 25, 9)
    yield from (of(name, "p" if chance.random() < 0.7 else "", 16, 6) for name in OTHER)


def _roles(made: GangBuilder) -> Sequence[str]:
    return [role.name for role in made.roles] or [""]


def _gang(chance: Random, name: str) -> GangBuilder:
    """A gang with up to two roles, and members that wait, of any age and size."""
    made = gang(name)
    for role in ("d", "w")[: chance.choice((0, 1, 2, 2))]:
        least = chance.randint(0, 2)
        most = least + chance.randint(1, 2) if chance.random() < 0.2 else None
        made = replace(made, roles=(*made.roles, Role(role, least, most)))
        if chance.random() < 0.8:
            made = made.declaring(cpu=chance.randint(1, 3))
    least = max(sum(role.min_member for role in made.roles), chance.randint(1, 4))
    for _ in range(chance.randint(max(1, least - 1), least + 3)):
        made = made.of(1, role=chance.choice(_roles(made)), cpu=chance.choice(SIZES))
    members = [replace(member, created=float(chance.randint(0, 20))) for member in made.members]
    made = replace(made, members=tuple(members)).needing(least)
    return made.but(queue=chance.choice([*OTHER])).priority(chance.randint(0, 3))


def _running(
    chance: Random, made: GangBuilder, nodes: Sequence[str]
) -> tuple[GangBuilder, list[Reservation]]:
    """The gang with members that run, end or have room reserved, and what says how it started."""
    made = made.where(lambda member: _placed(chance, member, nodes))
    runs = [member for member in made.members if member.node is not None]
    pods = [member.uid for member in runs if chance.random() < 0.95]
    pods += [Uid(f"{made.key.name}-gone-{i}") for i in range(chance.randint(0, 2))]
    chance.shuffle(pods)
    spent = reservation(made)
    held = _held(chance, made, nodes) if chance.random() < 0.5 else spent
    record = _record(chance, made)
    held = replace(held, record=record, charged=tuple(pods))
    if chance.random() < 0.25 and len(pods) > 1:  # a record of an earlier PodGroup of its name
        cut, started = chance.randint(1, len(pods) - 1), record.started - chance.randint(0, 1)
        older = replace(spent, uid=Uid(f"{made.key.name}-older"), charged=tuple(pods[:cut]))
        older = replace(older, record=replace(record, started=started))
        return made, [older, replace(held, charged=tuple(pods[cut:]))]
    return made, [held] if chance.random() < 0.9 else []


def _held(chance: Random, made: GangBuilder, nodes: Sequence[str]) -> Reservation:
    """Room for some members that wait, and perhaps for an absent member."""
    waits = [member for member in made.members if member.node is None]
    entries = [(m.key.name, chance.choice(nodes)) for m in waits if chance.random() < 0.3]
    roles = [role.name for role in made.roles if role.template is not None]
    slots = []
    if roles and chance.random() < 0.9:
        count, where = chance.randint(1, 2), chance.choice([*nodes, GONE])
        slots = [SlotReservation(NodeName(where), chance.choice(roles), count)]
    return reservation(made, *entries, slots=slots)


def _placed(chance: Random, member: Member, nodes: Sequence[str]) -> Member:
    if chance.random() < 0.4:
        return member
    bound_at = chance.choice((5.0, 50.0, None))
    placed = replace(member, node=NodeName(chance.choice(nodes)), bound_at=bound_at)
    state = chance.random()
    if state < 0.12:
        return replace(placed, terminating=True)
    if state < 0.26:
        return replace(placed, phase=Phase.SUCCEEDED if state < 0.2 else Phase.FAILED)
    return placed


def _record(chance: Random, made: GangBuilder) -> QueueRecord:
    """A record of a start with the roles of the gang, or with none; mostly in its queue."""
    roles = [role for role in made.roles if role.min_member]
    if not roles or chance.random() < 0.4:
        roles = [Role("", made.least or 1)]
    minimum = tuple(_at_start(chance, role) for role in roles)
    queue = str(made.changes["queue"])
    queue = OTHER[queue] if chance.random() < 0.2 else queue
    return QueueRecord(queue, Uid(f"{queue}-1"), float(chance.randint(0, 6)), minimum)


def _at_start(chance: Random, role: Role) -> RoleAtStart:
    members = role.min_member + chance.randint(0, 1)
    return RoleAtStart(role.name, members, resources(cpu=chance.randint(0, 10), pods=members))


def breaches(seed: int, strategy: str = "bestfit") -> Iterator[str]:
    """What does not hold of the plan for one cluster, and of its charges."""
    seen = snapshot(seed)
    policy = Policy(age_seconds=1e9, starvation_seconds=30.0 if seed % 3 == 0 else 1e9)
    chosen = plan(seen, STRATEGIES[strategy](), STRATEGIES["bestfit"](), AMPLE_BUDGET, policy)
    yield from (f"seed {seed}: {fault}" for fault in violations(seen, chosen))
    has_slots = any(held.slots for held in seen.reservations)
    charges = queue_gangs(observed_demand.observe(seen)).charges
    for key, use in QueueCharges.of(seen, ()).usage.before.items():
        own = charges[key].total if key in charges else NOTHING
        theirs = Resources.of(use)
        # A member that takes a slot may request less or more than the slot.
        if not (own == theirs or has_slots):
            yield f"seed {seed}: {key.name} is charged {own.amounts}, {theirs.amounts} by verify"
