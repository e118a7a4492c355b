"""Plans and their differences as JSON, for programs; docs/plugin.md describes the fields."""

from collections.abc import Sequence
from typing import Any

from ...dump.header import PlannerConfig, claim_record, exactly
from ...model.cluster import Snapshot
from ...model.decisions import Level, Placement, Plan
from .plan_diff import GangChange, GangRow

Record = dict[str, Any]


def of_plan(
    snapshot: Snapshot, setup: PlannerConfig, plan: Plan, lines: Sequence[GangRow]
) -> Record:
    """A whole plan; ``claims`` is present if there are any."""
    claims = {"claims": [claim_record(claim) for claim in plan.claims]} if plan.claims else {}
    return claims | {
        "takenAt": exactly(snapshot.taken_at),
        "strategy": setup.strategy,
        "objective": setup.policy.objective.value,
        "proved": plan.proved,
        "shortfall": plan.shortfall,
        "levels": [_level(level) for level in plan.levels],
        "gangs": [of_line(line) for line in lines],
    }


def of_line(line: GangRow) -> Record:
    """One gang; ``placement`` is what this plan adds, ``nodes`` all that the gang then has."""
    gang = line.gang
    return {
        "gang": str(gang.key),
        "kind": gang.key.kind.kind,
        "priority": gang.priority,
        "needed": line.needed,
        "members": len(gang.members),
        "answer": line.answer.value,
        "reason": line.reason,
        "sentence": line.sentence,
        "nodes": dict(line.nodes),
        "placement": [] if line.placement is None else _slots(line.placement),
    }


def of_changes(changes: Sequence[GangChange]) -> list[Record]:
    """The differences between two plans."""
    return [
        {
            "gang": str(change.gang),
            "kind": change.gang.kind.kind,
            "change": change.kind.value,
            "before": None if change.before is None else of_line(change.before),
            "after": None if change.after is None else of_line(change.after),
        }
        for change in changes
    ]


def _level(level: Level) -> Record:
    return {
        "priority": level.priority,
        "admitted": level.admitted,
        "bound": level.bound,
        "gap": level.gap,
    }


def _slots(placement: Placement) -> list[Record]:
    on: dict[str, list[str]] = {}
    absent: dict[str, dict[str, int]] = {}
    for assignment in placement.assignments:
        on.setdefault(assignment.node, []).append(assignment.pod.name)
    for slot in placement.slots:
        absent.setdefault(slot.node, {})[slot.role] = slot.count
    return [
        {"node": node, "pods": sorted(on.get(node, ()))}
        | ({"slots": absent[node]} if node in absent else {})
        for node in sorted(on.keys() | absent.keys())
    ]
