"""Converts observations and plans to data for the page, and what-if questions from the page."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from ..gang.quantities import quantity
from ..model.cluster import Snapshot
from ..model.decisions import Objective
from ..model.queues import Preemption
from . import cluster_map
from .observation import Observation, PlanAnswer, Record, WhatIf, WrongQuestion


def news(observation: Observation) -> Record:
    """The data that every page needs after each change."""
    return {
        "version": observation.version,
        "takenAt": observation.snapshot.taken_at,
        "missing": [missing._asdict() for missing in observation.missing],
    }


def offered(snapshot: Snapshot) -> Record:
    """The sum of all nodes' allocatable amounts, by resource."""
    return {name: quantity(name, n) for name, n in snapshot.allocatable.amounts}


def what_if(body: Mapping[str, Any]) -> WhatIf:
    """The what-if question that a page has sent.

    Raises:
        WrongQuestion: it cannot be read.
    """
    try:
        return WhatIf(
            [(int(entry["count"]), str(entry["like"])) for entry in body.get("addNodes", ())],
            [str(name) for name in body.get("removeNodes", ())],
            [(str(entry["gang"]), int(entry["priority"])) for entry in body.get("priorities", ())],
            str(body.get("manifest", "")),
            [str(words) for words in body.get("queues", ())],
            _choice(Objective, body.get("objective")),
            _choice(Preemption, body.get("preemption")),
        )
    except (TypeError, ValueError, KeyError, AttributeError) as problem:
        raise WrongQuestion("these changes cannot be read") from problem


def _choice(choices: type[StrEnum], value: Any) -> str:
    """The value, if it is one of the choices; empty if there is none."""
    return choices(value).value if value else ""


def maps(answer: PlanAnswer) -> Sequence[Record]:
    """The map of each plan: what gangs have, and what would start where."""
    return [
        {
            "labels": [grouping.name for grouping in cluster_map.groupings(snapshot)],
            "rows": list(cluster_map.rows(snapshot, plan).values()),
        }
        for snapshot, plan in answer.plans
    ]
