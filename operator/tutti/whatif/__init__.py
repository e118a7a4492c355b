"""Why a gang waits, and the smallest changes that would start it: the full answer, on demand.

Every change is tried on the planner itself, so the advice works. A statement about smaller changes
is proved, or says that it was only tried. Each question may use a limited number of plans.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..gang import finding_text
from ..gang.demand import PlacementRequest
from ..model.cluster import Snapshot
from ..model.decisions import Plan, Rejection
from ..model.keys import GangKey
from ..planning.compile import pod_classes
from ..planning.compile.pod_classes import SelectorIndex
from .add_nodes import more_nodes
from .baseline import Baseline, has_started, survey, wants
from .end_gangs import ended, preferred
from .min_member import smaller_need
from .placeable import bottlenecks, most, short_shape
from .probes import Planner, Prober
from .results import Advice, Diagnosis

__all__ = ["Advice", "Planner", "advise", "advise_all"]


def advise(snapshot: Snapshot, plan: Plan, key: GangKey, planner: Planner) -> Advice | None:
    """Why the gang waits in this plan, and what would start it; None if it does not wait."""
    for rejection in plan.rejections:
        if rejection.gang == key:
            want = wants(snapshot, [key]).get(key)
            return _advice(rejection, _baseline(snapshot, plan, want), planner)
    return None


def _baseline(snapshot: Snapshot, plan: Plan, want: PlacementRequest | None) -> Baseline | None:
    return None if want is None else survey(snapshot, plan, want)


def advise_all(
    snapshot: Snapshot, plan: Plan, planner: Planner, namespace: str | None = None
) -> Sequence[Advice]:
    """One advice for every type of waiting gang, about the first gang of the type in the plan.

    Gangs are of one type if their requests and their priority are equal. With ``namespace``, the
    gangs of other namespaces are left out.
    """
    waiting = [
        rejection for rejection in plan.rejections if namespace in (None, rejection.gang.namespace)
    ]
    requests = wants(snapshot, (rejection.gang for rejection in waiting))
    members = (member for want in requests.values() for member in want.members)
    index = pod_classes.selector_index(snapshot, members, pod_classes.placed_pods(snapshot))
    types: dict[object, list[Rejection]] = {}
    for rejection in waiting:
        want = requests.get(rejection.gang)
        types.setdefault(rejection.gang if want is None else _type(want, index), []).append(
            rejection
        )
    all_advice = []
    for first, *same_type in types.values():
        advice = _advice(first, _baseline(snapshot, plan, requests.get(first.gang)), planner)
        all_advice.append(replace(advice, alike=tuple(rejection.gang for rejection in same_type)))
    return all_advice


def _type(want: PlacementRequest, index: SelectorIndex) -> object:
    members = index.classify(want.members)
    members_by_shape = Counter((member.role, member.shape) for member in members)
    started = has_started(want.gang)
    return (
        want.need,
        want.minimums,
        frozenset(members_by_shape.items()),
        want.gang.priority,
        started,
    )


def _advice(rejection: Rejection, baseline: Baseline | None, planner: Planner) -> Advice:
    if baseline is None:  # no change of the cluster would start it
        return Advice(rejection.gang, 0, rejection.reason, finding_text.sentence(rejection))
    diagnosis = _diagnosis(baseline, planner)
    need = baseline.want.need
    return Advice(
        rejection.gang, need, rejection.reason, finding_text.sentence(rejection), diagnosis
    )


def _diagnosis(baseline: Baseline, planner: Planner) -> Diagnosis:
    # A gang that has not started starts whole or not at all, whatever minMember is tried.
    goal = baseline.want.need if baseline.is_started else 1
    prober = Prober(planner, baseline.gang.key, goal)
    beside = most(baseline, baseline.planned, baseline.free_after_plan, planner)
    alone = most(baseline, baseline.standing, baseline.free_now, planner)
    min_member = smaller_need(baseline, prober, alone, beside)
    nodes = more_nodes(baseline, prober)
    stopped, rivals = ended(baseline, prober), preferred(baseline, prober, alone)
    return Diagnosis(
        beside=beside,
        alone=alone,
        short=short_shape(baseline, baseline.counts(baseline.free_after_plan)),
        bottlenecks=tuple(bottlenecks(baseline, beside, planner)),
        nodes=nodes,
        min_member=min_member,
        ended=stopped,
        preferred=rivals,
        plans=prober.plans,
    )
