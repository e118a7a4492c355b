"""Which decisions of a plan are carried out: those that still hold, up to the limit of a cycle.

The plan was made of an earlier Snapshot. A plan that breaks a promise is a bug: it is logged and
dumped here, and never carried out.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..dump.violations import ViolationDumps
from ..model.cluster import Snapshot
from ..model.decisions import Claim, Eviction, Placement, Plan
from ..model.queues import Preemption
from ..verify import plan_checks
from ..verify.preemption import checks as preemption_checks
from . import dry_run

logger = logging.getLogger(__name__)

LOGGED_VIOLATIONS = 10  # of one plan; the dump has the whole plan


@dataclass(frozen=True, slots=True)
class CheckedPlan:
    """A plan, and the decisions of it that this cycle carries out."""

    plan: Plan
    placements: Sequence[Placement] = ()
    evictions: Sequence[Eviction] = ()
    claims: Sequence[Claim] = ()
    is_capped: bool = False  # other placements are left to the next cycle

    @property
    def decisions(self) -> Sequence[Placement | Eviction | Claim]:
        """All decisions, which are written down before any is carried out."""
        return [*self.placements, *self.evictions, *self.claims]


def checked(
    plan: Plan,
    planned: Snapshot,
    current: Snapshot,
    limit: int,
    preemption: Preemption = Preemption.OFF,
) -> CheckedPlan:
    """The decisions of a plan that still hold; placements of at most ``limit`` members (0: all).

    The plan was made of ``planned``; ``current`` is the cluster now. If the first gangs need one
    another, or the first gang is larger, the placements may have more than ``limit`` members.
    """
    valid = plan.placements
    if current != replace(planned, taken_at=current.taken_at):
        valid = tuple(plan_checks.upheld(current, valid))
    placements: Sequence[Placement] = valid
    if limit:
        # A part of a valid plan can break a promise that the whole plan keeps.
        placements = dry_run.capped(valid, limit, partial(plan_checks.upheld, current))
    evictions = _still_decided(plan.evictions, planned, current)
    carried_out = replace(plan, placements=tuple(placements))
    claims = () if preemption_checks.faults(current, carried_out, preemption) else plan.claims
    is_capped = len(placements) < len(valid)
    return CheckedPlan(plan, placements, evictions, claims, is_capped=is_capped)


def _still_decided(
    evictions: Sequence[Eviction], planned: Snapshot, current: Snapshot
) -> Sequence[Eviction]:
    """The evictions of gangs that have not changed since the evictions were decided."""
    if not evictions:
        return ()
    before = {gang.key: gang for gang in planned.gangs}
    after = {gang.key: gang for gang in current.gangs}
    return [eviction for eviction in evictions if before[eviction.gang] == after.get(eviction.gang)]


async def dump_violations(
    dumps: ViolationDumps | None,
    snapshot: Snapshot,
    plan: Plan,
    strategy: str,
    violations: Sequence[str],
) -> None:
    """Log which promises a plan breaks, and dump the plan with its Snapshot."""
    for sentence in violations[:LOGGED_VIOLATIONS]:
        logger.error("%s broke a promise, this is a bug: %s", strategy, sentence)
    if len(violations) > LOGGED_VIOLATIONS:
        logger.error("%s broke %d more", strategy, len(violations) - LOGGED_VIOLATIONS)
    try:
        path = None if dumps is None else await asyncio.to_thread(dumps.keep, snapshot, plan)
    except (OSError, ValueError, TypeError) as problem:
        logger.error("its plan is dropped; no dump of it: %r", problem)  # noqa: TRY400
    else:
        replay = f"replay it with: tutti plan -f {path}" if path else "no dump of it"
        logger.error("its plan is dropped; %s", replay)
