"""The header of a dump: when it was taken, the settings of the planner, and the plan.

The header is in the annotations of the List, which kubectl ignores and keeps.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from ..gang.finding_text import sentence
from ..kube import errors
from ..model.cluster import ApiRefusal, Snapshot
from ..model.decisions import Claim, Plan, Policy
from ..model.keys import POD_GROUP, GangKey, Uid
from ..model.volumes import VolumeChoice

PREFIX = "tutti.dev/"
TAKEN_AT, SETTINGS, PLAN = "taken-at", "settings", "plan"
FINISHED, BEREFT, REFUSED, PROTECTED = "finished", "bereft", "refused", "protected"
_DIGITS = 9  # decimal places; more than a float of seconds since 1970 has


@dataclass(frozen=True, slots=True)
class PlannerConfig:
    """The settings of the planner: all inputs of a Plan beside the Snapshot."""

    scheduler: str
    strategy: str
    policy: Policy
    budget: Mapping[str, float] = field(default_factory=dict)  # by field of ``Budget``
    binds_volumes: bool = True  # claims that wait for their pods


@dataclass(frozen=True, slots=True)
class DumpHeader:
    """The header of a dump; ``plan`` is as in ``plan_record``, or None if no plan was made."""

    taken_at: float  # seconds since the epoch
    setup: PlannerConfig
    plan: Mapping[str, Any] | None = None
    finished: Mapping[str, Sequence[str]] = field(default_factory=dict)
    lost_reservations: frozenset[Uid] = frozenset()
    api_refusals: Mapping[Uid, ApiRefusal] = field(default_factory=dict)
    protected: frozenset[Uid] = frozenset()


def plan_record(plan: Plan) -> dict[str, Any]:
    """A Plan as JSON, equal for equal Plans; ``claims`` is absent if there are none."""
    claims = {"claims": [claim_record(claim) for claim in plan.claims]} if plan.claims else {}
    return claims | {
        "placements": [
            {
                "gang": gang_text(placement.gang),
                "uid": placement.uid,
                "generation": placement.generation,
                "assignments": [
                    {"pod": a.pod.name, "uid": a.uid, "version": a.version, "node": a.node}
                    for a in placement.assignments
                ],
                "slots": [[slot.node, slot.role, slot.count] for slot in placement.slots],
                **_volumes_record(placement.volumes),
            }
            for placement in plan.placements
        ],
        "rejections": [
            {
                "gang": gang_text(rejection.gang),
                "reason": rejection.reason.value,
                "sentence": sentence(rejection),
            }
            for rejection in plan.rejections
        ],
        "evictions": [
            {
                "gang": gang_text(eviction.gang),
                "uid": eviction.uid,
                "generation": eviction.generation,
                "members": [member.uid for member in eviction.members],
            }
            for eviction in plan.evictions
        ],
        "proved": plan.proved,
        "shortfall": plan.shortfall,
        "due": plan.next_change_at,
        "levels": [[level.priority, level.admitted, level.bound] for level in plan.levels],
    }


def claim_record(claim: Claim) -> dict[str, Any]:
    """A claim as JSON: where the gang starts, which pods end before, and what that costs."""
    return {
        "gang": gang_text(claim.gang),
        "uid": claim.uid,
        "by": "guarantee" if claim.by_guarantee else "priority",
        "assignments": [
            {"pod": a.pod.name, "uid": a.uid, "node": a.node} for a in claim.assignments
        ],
        **_volumes_record(claim.volumes),
        "victims": [
            {
                "gang": gang_text(victim.gang),
                "whole": victim.is_whole,
                "pods": sorted(member.key.name for member in victim.members),
            }
            for victim in claim.victims
        ],
        "cost": float(claim.cost),
        "bound": float(claim.bound),
    }


def _volumes_record(choices: Sequence[VolumeChoice]) -> dict[str, Any]:
    """The choices as JSON: the volume by claim, or the node that one is provisioned for."""
    if not choices:
        return {}
    return {
        "volumes": {
            choice.claim: {"volume": choice.volume} if choice.volume else {"node": choice.node}
            for choice in choices
        }
    }


def annotations(snapshot: Snapshot, setup: PlannerConfig, plan: Plan | None) -> dict[str, str]:
    """The annotations of a dump, which ``header`` reads back."""
    values = {field.name: getattr(setup.policy, field.name) for field in fields(Policy)}
    settings = {
        "schedulerName": setup.scheduler,
        "strategy": setup.strategy,
        "policy": {name: v.value if isinstance(v, Enum) else v for name, v in values.items()},
        "budget": dict(setup.budget),
        **({} if setup.binds_volumes else {"bindVolumes": False}),
    }
    gangs = snapshot.gangs
    finished = {gang_text(gang.key): list(gang.finished) for gang in gangs if gang.finished}
    lost_reservations = {
        gang_text(gang.key): gang.uid for gang in gangs if gang.uid in snapshot.lost_reservations
    }
    words = {TAKEN_AT: exactly(snapshot.taken_at), SETTINGS: json.dumps(settings)}
    if plan is not None:
        words[PLAN] = json.dumps(plan_record(plan), separators=(",", ":"))
    if finished:
        words[FINISHED] = json.dumps(finished)
    if lost_reservations:
        words[BEREFT] = json.dumps(lost_reservations)
    if snapshot.api_refusals:
        refusals = {
            uid: [refusal.sentence, refusal.until] for uid, refusal in snapshot.api_refusals.items()
        }
        words[REFUSED] = json.dumps(refusals)
    if snapshot.protected:
        words[PROTECTED] = json.dumps({"gangs": sorted(snapshot.protected)})
    return {PREFIX + name: word for name, word in words.items()}


def header(marks: Mapping[Any, Any]) -> DumpHeader | None:
    """Read the annotations of a List; None if the List is not a dump.

    Raises:
        errors.BadObject: the List is a dump, and its annotations cannot be read.
    """
    words = {
        name.removeprefix(PREFIX): word
        for name, word in marks.items()
        if isinstance(name, str) and name.startswith(PREFIX)
    }
    if TAKEN_AT not in words:
        return None
    plan = _json(words, PLAN) if PLAN in words else None
    finished = _json(words, FINISHED) if FINISHED in words else {}
    for gang, roles in finished.items():
        if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
            raise _wrong(FINISHED, f"{gang}: not a list of roles")
    lost_reservations = _json(words, BEREFT) if BEREFT in words else {}
    for gang, uid in lost_reservations.items():
        if not isinstance(uid, str):
            raise _wrong(BEREFT, f"{gang}: not a uid")
    api_refusals = _json(words, REFUSED) if REFUSED in words else {}
    protected = _json(words, PROTECTED).get("gangs") if PROTECTED in words else []
    if not isinstance(protected, list) or not all(isinstance(uid, str) for uid in protected):
        raise _wrong(PROTECTED, "no list of gangs")
    taken_at, setup = _moment(words[TAKEN_AT]), _setup(_json(words, SETTINGS))
    return DumpHeader(
        taken_at,
        setup,
        plan,
        finished,
        frozenset(map(Uid, lost_reservations.values())),
        {Uid(uid): _refused(uid, refusal) for uid, refusal in api_refusals.items()},
        frozenset(map(Uid, protected)),
    )


def exactly(seconds: float) -> str:
    """RFC 3339 with all digits of the fraction."""
    whole = int(seconds // 1)
    text = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f"{seconds:.{_DIGITS}f}".partition(".")[2]
    return f"{text}.{fraction}Z" if int(fraction) else f"{text}Z"


def _refused(uid: str, entry: object) -> ApiRefusal:
    match entry:
        case [str() as sentence, float() | int() as until]:
            return ApiRefusal(sentence, float(until))
        case _:
            raise _wrong(REFUSED, f"{uid}: no sentence and a time")


def _moment(word: object) -> float:
    text = word if isinstance(word, str) else ""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    try:
        seconds = int(datetime.fromisoformat(whole).replace(tzinfo=UTC).timestamp())
        return float(f"{seconds}.{int(fraction or 0):0{len(fraction)}}")
    except (ValueError, OverflowError) as problem:
        raise _wrong(TAKEN_AT, f"{text[:40]!r} is not a time") from problem


def _setup(raw: Mapping[str, Any]) -> PlannerConfig:
    policy, budget = raw.get("policy", {}), raw.get("budget", {})
    if not isinstance(policy, dict) or not isinstance(budget, dict):
        raise _wrong(SETTINGS, "policy and budget are not objects")
    field_types = {
        setting.name: type(getattr(Policy(), setting.name)) for setting in fields(Policy)
    }
    for name, value in budget.items():
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise _wrong(SETTINGS, f"budget.{name}: {value!r} is not a number")
    try:
        values = {
            name: field_types[name](value) for name, value in policy.items() if name in field_types
        }
    except (ValueError, TypeError) as problem:
        raise _wrong(SETTINGS, f"policy: {problem}") from problem
    for name, value in values.items():
        if isinstance(value, float) and not value > 0:
            raise _wrong(SETTINGS, f"policy.{name}: {value!r} is not a positive number")
    for name in ("schedulerName", "strategy"):
        if not isinstance(raw.get(name), str):
            raise _wrong(SETTINGS, f"{name}: is not text")
    binds_volumes = raw.get("bindVolumes", True)
    if not isinstance(binds_volumes, bool):
        raise _wrong(SETTINGS, f"bindVolumes: {binds_volumes!r} is neither true nor false")
    return PlannerConfig(
        raw["schedulerName"], raw["strategy"], Policy(**values), budget, binds_volumes
    )


def _json(words: Mapping[str, Any], name: str) -> dict[str, Any]:
    word = words.get(name)
    try:
        value = json.loads(word) if isinstance(word, str) else None
    except (ValueError, RecursionError) as problem:
        raise _wrong(name, f"is not JSON: {problem}") from problem
    if not isinstance(value, dict):
        raise _wrong(name, "is not a JSON object")
    return value


def _wrong(name: str, sentence: str) -> errors.BadObject:
    return errors.BadObject("List", f"metadata.annotations.{PREFIX}{name}: {sentence}")


def gang_text(key: GangKey) -> str:
    """A gang by namespace and name, and by kind if it is not declared by a PodGroup of Tutti."""
    return str(key) if key.kind == POD_GROUP else f"{key} ({key.kind})"
