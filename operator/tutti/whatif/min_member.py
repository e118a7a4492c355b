"""The largest minMember with which a waiting gang would start now."""

from dataclasses import replace

from ..model.cluster import Gang, Snapshot
from .baseline import Baseline
from .probes import Prober, ProbeResult, SearchRange, first_yes
from .results import Certainty, Placeable, SmallerNeed

PLANS = 8


def smaller_need(
    baseline: Baseline, prober: Prober, alone: Placeable, beside: Placeable
) -> SmallerNeed | None:
    """The largest minMember that fits; None if the gang has started or roles allow no less."""
    gang, need = baseline.gang, baseline.want.need
    floor = max(1, sum(role.min_member for role in gang.roles))
    if baseline.is_started or floor >= need:
        return None
    top = min(alone.members, need - 1)
    is_bound = top < need - 1  # else the plan itself says that one member more does not start
    is_proved = alone.certainty is Certainty.PROVED if is_bound else baseline.plan.proved
    if top < floor:
        return SmallerNeed(0, floor, Certainty.of(proved=is_proved))

    def ask(lower: int) -> ProbeResult | None:
        return prober.verdict(needing(baseline.snapshot, gang, top - lower))

    prober.allow(PLANS)
    guesses = [0, top - min(max(beside.members, floor), top)]
    search = first_yes(ask, SearchRange(0, top - floor, guesses, is_proved=is_proved))
    number = 0 if search.number is None else top - search.number
    return SmallerNeed(number, floor, search.certainty, search.cut)


def needing(snapshot: Snapshot, gang: Gang, least: int) -> Snapshot:
    """The Snapshot with another minMember of the gang."""
    changed = (replace(own, min_member=least) if own is gang else own for own in snapshot.gangs)
    return replace(snapshot, gangs=tuple(changed))
