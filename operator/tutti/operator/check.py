"""Which part of a plan is carried out: what still holds by now, as much as one cycle may begin.

Separate from the plan, which was made of an earlier Snapshot. Plans that break a promise are a bug:
they are logged and dumped here, and never carried out.
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
from ..verify import plan_checks, preemption_checks
from . import dry_run

logger = logging.getLogger(__name__)

LOGGED_VIOLATIONS = 10  # of one plan; the dump has all of it


@dataclass(frozen=True, slots=True)
class CheckedPlan:
    """A plan, and what of it is carried out in this cycle."""

    plan: Plan
    placements: Sequence[Placement] = ()
    evictions: Sequence[Eviction] = ()
    claims: Sequence[Claim] = ()
    is_capped: bool = False  # other placements are left to the next cycle

    @property
    def decisions(self) -> Sequence[Placement | Eviction | Claim]:
        """All that is written down before anything is carried out."""
        return [*self.placements, *self.evictions, *self.claims]


def checked(
    plan: Plan,
    planned: Snapshot,
    current: Snapshot,
    limit: int,
    preemption: Preemption = Preemption.OFF,
) -> CheckedPlan:
    """What of a plan is still valid, and of that as much as binds ``limit`` members (0: all).

    The plan was made of ``planned``; by now the cluster is as in ``current``.
    """
    valid = plan.placements
    if current != replace(planned, taken_at=current.taken_at):
        valid = tuple(plan_checks.upheld(current, valid))
    placements: Sequence[Placement] = valid
    if limit:
        # Some may break a promise without the rest of their plan.
        placements = dry_run.capped(valid, limit, partial(plan_checks.upheld, current))
    evictions = _still_decided(plan.evictions, planned, current)
    carried_out = replace(plan, placements=tuple(placements))
    claims = () if preemption_checks.faults(current, carried_out, preemption) else plan.claims
    is_capped = len(placements) < len(valid)
    return CheckedPlan(plan, placements, evictions, claims, is_capped=is_capped)


def _still_decided(
    evictions: Sequence[Eviction], planned: Snapshot, current: Snapshot
) -> Sequence[Eviction]:
    """The evictions of gangs that are as they were when it was decided."""
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
    """Log which promises a plan breaks, and write down what it was made of."""
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
