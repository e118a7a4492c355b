"""Tutti and kube-scheduler, asked about the same pods, name the same nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tutti.filters.volume_supply import OVERLAPS, SHARED
from tutti.state.storage.claim_demand import COUNTED

from ..conformance.differential import providing, storage
from ..conformance.differential.controls import unnoticed
from ..conformance.differential.running import control_plane, run
from ..conformance.differential.telling import sentences

if TYPE_CHECKING:
    from ..conformance.differential.comparing import Case, Tally

CASES = 1_250  # 800 would do to find a wrong answer; wrong rules take some more to be noticed
# What Tutti may still decline to decide on.
OPEN = {
    f"spec.volumes[].persistentVolumeClaim ({why})"
    for why in (
        COUNTED,
        OVERLAPS,
    )
}
OPEN.add("spec.resourceClaims (adminAccess beside claims without it)")
OPEN |= {
    f"spec.resourceClaims (devices[].consumesCounters and {what})"
    for what in ("adminAccess", "allocationMode: All", "firstAvailable")
}

# Wrong rules that take the thousands of cases of `make conformance`, where all must be noticed.
RARE = {
    "All read as one",
    "ReadWriteOncePod read as ReadWriteOnce",
    "ScheduleAnyway binds",
    "adminAccess of allocated devices ignored",
    "adminAccess of requests ignored",
    "affinity's matchLabelKeys ignored",
    "affinity's mismatchLabelKeys ignored",
    "anti-affinity's matchLabelKeys ignored",
    "anti-affinity's mismatchLabelKeys ignored",
    "attach limits ignored",
    "attached volumes that nobody uses ignored",
    "constraints of alternatives read as of requests",
    "counters ignored",
    "host ports of sidecars ignored",
    "minDomains ignored",
    "nodeAffinityPolicy ignored",
    "nodeTaintsPolicy ignored",
    "requests of running pods ignored",
    "sidecars read as init containers",
    "spread's matchLabelKeys ignored",
    "terminating pods are spread, too",
    "the largest volume ignored",
    "the last class of an extended resource counts",
}


@pytest.mark.timeout(600)
def test_every_pod_may_run_where_kube_scheduler_says_and_nowhere_else() -> None:
    recorded: list[Case] = []

    def heed(cases: list[Case], _: Tally) -> None:
        recorded.extend(cases)

    with control_plane() as plane:
        tally, plans = run(plane, CASES, seed=1, heed=heed)
    assert tally.cases >= CASES
    told = ["\n".join(sentences(case, ours)) for case, ours in tally.wrong]
    assert not told, "\n\n".join(told)
    assert plans.asked > 0
    assert not plans.wrong, [(case.name, node) for case, node in plans.wrong]
    assert tally.unmodelled.keys() <= OPEN, tally.unmodelled
    assert not unnoticed(recorded, tally.modelled, RARE)
    # Most must tell something: sets that are neither empty nor everything.
    assert tally.telling * 4 > tally.cases


OPEN_OF_VOLUMES = {f"spec.volumes[].persistentVolumeClaim ({why})" for why in (OVERLAPS, SHARED)}
CLUSTERS = 20  # with volumes, of two seconds each
RARE_OF_VOLUMES = {"the largest volume of a node ignored", "volume modes of claims ignored"}


@pytest.mark.timeout(300)
def test_what_tutti_writes_of_volumes_lets_kube_scheduler_decide_as_after_its_own_choice() -> None:
    recorded: list[Case] = []
    with control_plane() as plane:
        tally, plans, provided = providing.run(plane, CLUSTERS, 1, recorded.extend)
    told = ["\n".join(sentences(case, ours)) for case, ours in tally.wrong]
    assert not told, "\n\n".join(told)
    assert not plans.wrong, [(case.name, node) for case, node in plans.wrong]
    assert tally.unmodelled.keys() <= OPEN_OF_VOLUMES
    assert plans.asked == plans.placed > CLUSTERS // 2
    assert provided.volumes
    assert provided.nodes
    assert not unnoticed(recorded, (storage.ROW,), RARE_OF_VOLUMES)
