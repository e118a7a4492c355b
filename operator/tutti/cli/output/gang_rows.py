"""The state of each gang and the room that it holds: the figures of ``tutti status`` and ``top``.

These are values only. The reasons come from what the operator has written. So they include a pause,
which only the operator can know.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...gang import domain_rules, finding_text, slots
from ...gang.demand import min_members
from ...gang.domain_rules import LevelDomains
from ...kube.gang_sources import GangObject
from ...model.cluster import Gang, Node, Snapshot
from ...model.keys import GangKey, NodeName
from ...model.queues import Preemption
from ...model.resources import NOTHING, Resources
from ...planning.compile.grids import footprint
from ...planning.observed_demand import observe
from ...planning.queued_gangs import queue_gangs
from ...queues.tree import QueueTree
from ...queues.use import GangCover, gang_covers
from ...reporting.utilisation import GangState, state_of

SPOKEN: Mapping[GangState, str] = {GangState.WAITING: "Reserved", GangState.DEGRADED: "Healthy"}


@dataclass(frozen=True, slots=True)
class StandingRow:
    """One gang that has not ended."""

    gang: Gang
    state: GangState
    bound: int  # members that count as bound
    held: int  # bound members, and reserved ones, absent members included
    nodes: int  # number of nodes of these members
    resources: Resources  # sum of their requests
    queue: str = ""  # that it counts in; empty without Queues, or if it names no valid one
    reason: str = ""  # why it waits, or what it lacks
    message: str = ""
    cover: GangCover | None = None  # None while it waits, and without Queues
    domains: Sequence[LevelDomains] = ()  # of these nodes, for each level that the gang names

    @property
    def needed(self) -> int:
        """The number of members that the gang needs to start."""
        return min_members(self.gang)


def rows(
    snapshot: Snapshot,
    groups: Mapping[GangKey, GangObject],
    namespace: str | None,
    setting: Preemption = Preemption.OFF,
) -> Sequence[StandingRow]:
    """The gangs of a namespace, or of all: the highest priority first, then the oldest.

    The ``setting`` is that of preemption.
    """
    gangs = [gang for gang in snapshot.gangs if namespace in (None, gang.key.namespace)]
    queues: Mapping[GangKey, str] = {}
    covers: Mapping[GangKey, GangCover] = {}
    if snapshot.queues:
        queued = queue_gangs(observe(snapshot))
        queues = queued.queues
        covers = {} if queued.charged is None else gang_covers(queued.charged, setting)
    nodes = {node.name: node for node in snapshot.nodes}
    standing_rows = [
        replace(
            _row(gang, state, snapshot, groups.get(gang.key), nodes),
            queue=queues.get(gang.key, ""),
            cover=covers.get(gang.key),
        )
        for gang in gangs
        if (state := state_of(gang, snapshot)) is not None
    ]
    return sorted(
        standing_rows, key=lambda row: (-row.gang.priority, row.gang.created, row.gang.key)
    )


class UnknownQueueError(Exception):
    """No Queue has this name."""


def rows_of_queue(
    standing_rows: Iterable[StandingRow], snapshot: Snapshot, queue: str
) -> Sequence[StandingRow]:
    """The gangs that count in a queue, or in a queue below it.

    Raises:
        UnknownQueueError: there is no such queue.
    """
    tree = QueueTree.of(snapshot.queues)
    if not snapshot.queues or queue not in tree.queues:
        names = ", ".join(sorted(tree.queues)) if snapshot.queues else "none"
        raise UnknownQueueError(f"--queue {queue}: no Queue has this name; there are: {names}")
    return [row for row in standing_rows if row.queue and queue in tree.paths[row.queue]]


def hindrance(standing_rows: Iterable[StandingRow]) -> str:
    """What keeps every gang from starting, by the operator's messages: paused or shadow mode."""
    messages = [row.message for row in standing_rows if row.state is GangState.WAITING]
    return next(
        (
            why
            for why in finding_text.MODES.values()
            if any(message.startswith(why) for message in messages)
        ),
        "",
    )


def largest(standing_rows: Iterable[StandingRow], snapshot: Snapshot) -> Sequence[StandingRow]:
    """The gangs that hold room, by their largest share of any resource."""
    offered = dict(snapshot.allocatable.amounts)

    def share(row: StandingRow) -> float:
        return max(
            (n / max(offered.get(name, 0), 1) for name, n in row.resources.amounts), default=0
        )

    holding = [row for row in standing_rows if row.held]
    return sorted(holding, key=lambda row: (-share(row), row.gang.key))


def _row(
    gang: Gang,
    state: GangState,
    snapshot: Snapshot,
    group: GangObject | None,
    nodes: Mapping[NodeName, Node],
) -> StandingRow:
    reserved = next(
        (reservation for reservation in snapshot.reservations if reservation.uid == gang.uid), None
    )
    bound = {
        member.uid: member.node
        for member in gang.members
        if member.node is not None and not member.is_over
    }
    entries = () if reserved is None else reserved.entries
    places = {**{entry.uid: entry.node for entry in entries}, **bound}
    absent = () if reserved is None else slots.placeholders_of_slots(gang, reserved.slots)
    here = [footprint(member.shape) for member in gang.members if member.uid in places]
    here += [footprint(member.shape) for member, _ in absent]
    reason, message = _reason_and_message(gang, state, group)
    return StandingRow(
        gang,
        state,
        bound=sum(member.counts_as_bound for member in gang.members) + len(gang.finished),
        held=len(places) + len(absent),
        nodes=len({*places.values(), *(node for _, node in absent)}),
        resources=Resources.total(here) if here else NOTHING,
        reason=reason,
        message=message,
        domains=domain_rules.level_domains(
            gang, domain_rules.places_of(gang, reserved), nodes, snapshot.topologies
        ),
    )


def _reason_and_message(gang: Gang, state: GangState, group: GangObject | None) -> tuple[str, str]:
    """What the operator has written: for a PodGroup in its status, for a single pod in its own."""
    kind = SPOKEN.get(state)
    if kind is None:
        return "", ""
    if gang.is_single:
        return gang.members[0].scheduled_condition.reason, gang.members[
            0
        ].scheduled_condition.message
    lines: Any = group.status.get("conditions") if group is not None else None
    for line in lines if isinstance(lines, list) else ():
        if isinstance(line, dict) and (line.get("type"), line.get("status")) == (kind, "False"):
            return str(line.get("reason", "")), str(line.get("message", ""))
    return "", ""
