"""What is held for the starved gang, as far as claims of other gangs must leave it.

The room on nodes is held by ``PartialPlan.hold`` alone. Here are the limits and the cover, for
claims as for starts: ``docs/queues.md`` says what is held from whom.
"""

from ...model.keys import GangKey
from ...queues import cover
from ...queues.cover import QueuedGang
from ..compile.quotas import Quotas
from ..search.starvation import HeldCapacity, QueuedHolder
from .covered_round import HeldCover
from .ledger import QueueLedger


def limits_for(
    start: QueuedGang, quotas: Quotas, hold: HeldCapacity | None, ledger: QueueLedger
) -> Quotas:
    """The limits for the claim of a gang, less what is held of them unless it comes first."""
    if hold is None or hold.holder is None or not _share_a_limit(quotas, start.key, hold.gang.key):
        return quotas
    if _comes_first(start, hold.holder, ledger):
        return quotas
    return quotas.held_for(hold.gang.key, hold.requests)


def leaves_cover(start: QueuedGang, hold: HeldCapacity | None, ledger: QueueLedger) -> bool:
    """Whether a gang that claims leaves the starved gang its cover, if that is held from it."""
    holder = None if hold is None else hold.holder
    if holder is None or not holder.is_entitled or not HeldCover(holder.gang).binds(start):
        return True
    running = (*ledger.without(holder.gang.key), start)
    return cover.would_be_covered(ledger.tree, running, [holder.gang])


def _share_a_limit(quotas: Quotas, gang: GangKey, other: GangKey) -> bool:
    return not {*quotas.of_gang.get(gang, ())}.isdisjoint(quotas.of_gang.get(other, ()))


def _comes_first(start: QueuedGang, holder: QueuedHolder, ledger: QueueLedger) -> bool:
    """Whether a gang comes before the starved gang in the order of a plan."""
    if start.queue == holder.gang.queue:
        return start.priority > holder.gang.priority
    return cover.covering_tier(ledger.tree, ledger.running, start) < holder.tier
